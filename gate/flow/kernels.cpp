// weir kernels: what kernels cost by a card's own compiler, and how their code differs.
#include "gate/flow/kernels.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/builds.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/kernel_code.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/profile_files.hpp"
#include "gate/flow/program.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/report/kernels_text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

using profile::Profile;
using report::KernelsOfCell;

constexpr const char* k_no_code =
    "\n  The Vulkan layer and the probes of CUDA and HIP tell the code of kernels that have names: "
    "see docs/how-to/slower-kernel.md";

// Compiles the kernels of a cell's profile again, for `target`, from their stored code.
Result<Profile> compile_for(Profile profile, const std::string& target,
                            run::KernelCompiler& compiler, const Job& job, const sys::Stop& stop) {
  std::vector<std::string> files;
  for (auto& [hash, code] : profile.code_facts) {
    const std::string path = code_store().find(job.files(), hash);
    if (!path.empty()) files.push_back(path);
    code.costs.clear();
    code.not_compiled = path.empty() ? "its code is no longer in weir's cache" : "";
  }
  WEIR_TRY(run::CompiledCode compiled, compiler.compile(target, files, stop));
  profile.compiler = compiled.compiler;
  for (auto& [hash, code] : compiled.codes) profile.code_facts[hash] = std::move(code);
  return profile;
}

// Returns the table of each profile's kernels, compiled again for each of `targets` if there are
// any.
Result<std::vector<KernelsOfCell>> make_tables(const Job& job, const std::vector<Profile>& profiles,
                                               const std::vector<std::string>& targets) {
  std::vector<KernelsOfCell> tables;
  if (targets.empty()) {
    for (const Profile& profile : profiles) tables.push_back(report::kernels_of(profile));
    return tables;
  }
  WEIR_TRY(const auto compiler, make_compiler(job));
  const sys::Interrupts interrupts;
  for (const Profile& profile : profiles) {
    for (const std::string& target : targets) {
      WEIR_TRY(const Profile compiled,
               compile_for(profile, target, *compiler, job, interrupts.stop()));
      tables.push_back(report::kernels_of(compiled));
    }
  }
  return tables;
}

// Runs the program after "--" and returns the kernels that it ran, as a profile without a cell.
Result<Profile> profile_program(const Job& job, const KernelsOptions& options) {
  WEIR_TRY(sys::ProcessSpec spec, command_spec(job, options.trailing_arguments, options.timeout));
  WEIR_TRY(const auto probing, make_probing(job.world));
  WEIR_TRY(const sys::ScratchFolder folder,
           sys::ScratchFolder::make_temporary(job.files(), "weir-kernels-"));
  WEIR_CHECK(attach_probes(*probing, {"vulkan"}, folder.path(), {}, spec));
  spec.whole_output = false;
  const sys::Interrupts interrupts;
  WEIR_TRY(const sys::Finished finished, run_program(job.world, spec, interrupts.stop()));
  const std::string failure = failure_text(finished, spec);
  if (!failure.empty()) job.log("the program: " + failure);
  WEIR_TRY(const profile::ProbeCounts counts,
           probes::collect(job.files(), folder.path(), "vulkan"));
  if (const auto recordings = probes::recorded_kernel_files(job.files(), folder.path())) {
    code_store().store(job.files(), *recordings);
  }
  Profile profile;
  profile.cell.engine = text::join(options.trailing_arguments, " ");
  for (const auto& [table, set] :
       {std::pair(&counts.codes, &profile.codes), {&counts.code_groups, &profile.code_groups}}) {
    set->emplace().counts.insert(table->begin(), table->end());
    (*set)->scope = unit::Scope::whole_run;
  }
  profile.code_facts = counts.code_facts;
  if (counts.codes.empty()) {
    return fail(Code::unavailable, "{} ran no kernel with a name on a Vulkan device{}",
                options.trailing_arguments.front(), k_no_code);
  }
  return profile;
}

// Lists the kernels of a program, a run or a profile, with their costs.
Result<Answer> list_kernels(const Job& job, const KernelsOptions& options) {
  std::vector<Profile> profiles;
  std::vector<std::string> targets = options.targets;
  if (!options.trailing_arguments.empty()) {
    if (targets.empty()) {
      return fail(Code::usage, "name what to compile for: --target radv-navi31, radv-navi21, …");
    }
    WEIR_TRY_SET(profiles.emplace_back(), profile_program(job, options));
  } else {
    std::optional<MeasuredRun> run;
    std::string path = options.what;
    if (path.empty()) WEIR_TRY_SET(path, newest_run(job));
    WEIR_TRY(ProfileFile file, read_profiles(job, path, run));
    for (Profile& profile : file.profiles) {
      if (profile.codes && job.selection.wants(profile.cell.str()))
        profiles.push_back(std::move(profile));
    }
    if (profiles.empty()) {
      return fail(Code::usage, "{}: no cell in it with the code of kernels{}", path, k_no_code);
    }
  }
  WEIR_TRY(const std::vector<KernelsOfCell> tables, make_tables(job, profiles, targets));
  return Answer{report::kernels_text(tables, job.width(), options.top),
                json_document(report::kernels_json(tables))};
}

// --- one kernel, compared with its base

// Shows how the code of the kernels that --diff names changed in a verdict.
Result<Answer> diff_kernels(const Job& job, const KernelsOptions& options) {
  std::string run = options.what;
  if (run.empty()) WEIR_TRY_SET(run, newest_run(job));
  WEIR_TRY(const std::string file, find_verdict(run, job.files()));
  WEIR_TRY(const verdict::GateVerdict gate, read_verdict(file, job.files()));
  if (options.targets.size() > 1) return fail(Code::usage, "--diff is for one --target");
  std::vector<report::KernelDiff> diffs;
  for (const verdict::CellVerdict& cell : gate.cells) {
    if (!job.selection.wants(cell.cell.str())) continue;
    const verdict::Judgement& code = cell.judgement_of(verdict::k_kernel_code);
    for (const verdict::KernelChange& kernel_change : code.code) {
      if (!text::glob_match(options.diff, kernel_change.kernel)) continue;
      auto* kernel_diff = find_first(diffs, [&](const report::KernelDiff& diff) {
        return diff.code.kernel == kernel_change.kernel &&
               diff.code.hashes_before == kernel_change.hashes_before &&
               diff.code.hashes_now == kernel_change.hashes_now;
      });
      if (kernel_diff == nullptr) {
        kernel_diff = &diffs.emplace_back(report::KernelDiff{kernel_change, {}, code.compiler, ""});
      }
      kernel_diff->cells.push_back(cell.cell.str());
    }
  }
  if (diffs.empty()) {
    return fail(Code::usage, "{}: no kernel \"{}\" with other code in its verdict", run,
                text::printable(options.diff));
  }
  for (report::KernelDiff& diff : diffs) {
    if (!options.assembly) continue;
    const std::string target =
        options.targets.empty() ? compiler_target(diff.compiler) : options.targets.front();
    constexpr std::size_t k_lines = 4000;
    auto text = machine_code_diff(diff.code, target, k_lines, job);
    diff.assembly = text ? std::move(*text) : "not compared: " + text.error().message;
  }
  return Answer{report::kernel_diffs_text(diffs, job.width()),
                json_document(report::kernel_diffs_json(diffs))};
}

}  // namespace

// Lists a run's kernels, compares those of two runs (--diff), or those in two builds.
Result<Answer> kernels(const Job& job, const KernelsOptions& options) {
  if (!options.now.empty()) {
    if (!options.diff.empty() || !options.trailing_arguments.empty()) {
      return fail(Code::usage,
                  "two builds are compared without --diff and without a program after --");
    }
    return compare_builds(job, {options.what, options.now, options.targets, options.max_increase,
                                options.max_decrease, options.top});
  }
  if (!options.max_increase.empty() || !options.max_decrease.empty()) {
    return fail(
        Code::usage,
        "--max-increase and --max-decrease judge two builds: weir kernels OLD NEW. Limits of "
        "cells stand in weir.yaml (docs/how-to/slower-kernel.md)");
  }
  return options.diff.empty() ? list_kernels(job, options) : diff_kernels(job, options);
}

}  // namespace weir::flow
