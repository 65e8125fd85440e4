#include "gate/flow/kernel_code.hpp"

#include <algorithm>
#include <list>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/code_changes.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/program.hpp"
#include "gate/flow/repository.hpp"
#include "gate/probes/read/code_facts.hpp"
#include "gate/source/base.hpp"
#include "gate/source/git.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

Result<std::string> kept_code(const std::string& hash, const sys::Files& files) {
  std::string path = code_store().find(files, hash);
  if (!path.empty()) return path;
  return fail(Code::unavailable,
              "the code {} is not in weir's cache: measure that side on this machine",
              text::printable(hash));
}

// `recordings` own the code.
Result<std::vector<explain::KernelCode>> kept(const std::vector<std::string>& hashes,
                                              const sys::Files& files,
                                              std::list<probes::RecordedKernels>& recordings) {
  std::vector<explain::KernelCode> codes;
  for (const std::string& hash : hashes) {
    WEIR_TRY(const std::string path, kept_code(hash, files));
    WEIR_SET(recordings.emplace_back(), probes::read_recording(files, path));
    const probes::RecordedKernels& recorded = recordings.back();
    if (recorded.pipelines.size() != 1) {
      return fail(Code::data, "{}: no recording of one kernel", path);
    }
    const auto facts = probes::code_facts(recorded).begin()->second;
    codes.push_back({recorded.codes.front().words, facts.source, facts.options, hash});
  }
  return codes;
}

// What each piece of a kernel's code differs in from the one that it was.
Result<std::vector<explain::CodeChanges>> code_changes_of(const verdict::OtherCode& one,
                                                          const sys::Files& files) {
  std::list<probes::RecordedKernels> recordings;
  WEIR_TRY(auto before, kept(one.before, files, recordings));
  WEIR_TRY(auto now, kept(one.now, files, recordings));
  return explain::code_changes(std::move(before), std::move(now));
}

}  // namespace

Result<std::unique_ptr<run::KernelCompiler>> make_compiler(sys::World& world) {
  WEIR_TRY(const probes::Places probes, probe_places(world));
  WEIR_TRY(const std::string cache, source::default_cache_folder());
  WEIR_TRY(run::CompilerPlaces places,
           run::find_compiler(world.files, probes, cache, variables_of(world)));
  return std::make_unique<run::KernelCompiler>(world.files, world.processes, std::move(places));
}

run::CodeStore code_store() {
  const auto cache = source::default_cache_folder();
  return run::CodeStore(cache ? sys::join_path(*cache, "kernels/code") : "");
}

Result<std::vector<std::string>> check_compilers(std::vector<run::PreparedCell>& cells,
                                                 sys::World& world, const sys::Stop& stop,
                                                 std::unique_ptr<run::KernelCompiler>& compiler) {
  std::vector<std::string> notes;
  std::map<std::string, Result<void>> known;
  for (run::PreparedCell& cell : cells) {
    if (cell.compile.empty()) continue;
    const auto [place, fresh] = known.try_emplace(cell.compile);
    Result<void>& fits = place->second;
    if (fresh && compiler == nullptr) {
      auto made = make_compiler(world);
      if (made) compiler = std::move(*made);
      if (!made) fits = tl::unexpected(made.error());
    }
    if (fresh && compiler != nullptr) fits = compiler->check(cell.compile, stop);
    if (fits) continue;
    if (!cell.cell.compile.empty()) {
      return fail(Code::config, "compile: {}: {}", cell.compile, fits.error().message);
    }
    std::string note = fmt::format("what kernels cost on {} is not known: {}", *cell.cell.twin,
                                   fits.error().message);
    if (!holds(notes, note)) notes.push_back(std::move(note));
    cell.compile.clear();
  }
  return notes;
}

static void add_code_differences(std::vector<verdict::OtherCode>& codes, const sys::Files& files) {
  for (verdict::OtherCode& one : codes) {
    if (!one.other_code) continue;
    const auto changes = code_changes_of(one, files);
    if (!changes) continue;
    // Several pieces of code under one name mostly change alike: each line once.
    std::vector<std::string> lines;
    const auto add = [&](const std::string& line) {
      if (!line.empty() && !holds(lines, line)) lines.push_back(line);
    };
    for (const explain::CodeChanges& piece : *changes) add(piece.headline);
    for (const explain::CodeChanges& piece : *changes) std::ranges::for_each(piece.lines, add);
    if (!lines.empty()) one.differences = std::move(lines);
  }
}

void add_code_differences(std::vector<verdict::CellVerdict>& cells, const sys::Files& files) {
  for (verdict::CellVerdict& cell : cells) {
    for (verdict::Judgement& judged : cell.judgements) add_code_differences(judged.code, files);
  }
}

std::string target_of(const std::string& compiler) {
  return compiler.substr(0, compiler.find(','));
}

Result<std::string> machine_code_diff(const verdict::OtherCode& one, const std::string& target,
                                      std::size_t most, sys::World& world) {
  WEIR_TRY(const auto compiler, make_compiler(world));
  const sys::Interrupts interrupts;
  const auto text_of = [&](const std::string& hash) -> Result<std::string> {
    WEIR_TRY(const std::string path, kept_code(hash, world.files));
    return compiler->assembly(target, path, hash, interrupts.stop());
  };
  WEIR_TRY(const auto changes, code_changes_of(one, world.files));
  if (changes.empty()) return fail(Code::unavailable, "each piece of its code is as it was");
  std::string diff;
  for (const explain::CodeChanges& piece : changes) {
    WEIR_TRY(const std::string before, text_of(piece.before));
    WEIR_TRY(const std::string now, text_of(piece.now));
    if (changes.size() > 1) {
      diff += fmt::format("{} \u2192 {}: {}\n", piece.before, piece.now, piece.headline);
    }
    WEIR_TRY(const std::string lines,
             source::Git::diff(effects_of(world, interrupts.stop()), before, now));
    diff += lines;
  }
  std::vector<std::string> lines = text::lines(diff);
  if (lines.size() <= most) return diff;
  const std::size_t left_out = lines.size() - most;
  lines.resize(most);
  return fmt::format("{}\n({} more lines)\n", text::join(lines, "\n"), left_out);
}

void add_machine_code(verdict::GateVerdict& gate, sys::World& world) {
  if (gate.rules) return;  // perhaps a stranger's run: its hashes and compilers are claims
  constexpr std::size_t k_kernels = 6, k_lines = 600;
  std::map<std::vector<std::string>, std::string> known;  // by the code on both sides
  const auto add = [&](verdict::Judgement& judged) {
    if (judged.compiler.empty()) return;
    for (verdict::OtherCode& one : judged.code) {
      std::vector<std::string> key = one.before;
      key.insert(key.end(), one.now.begin(), one.now.end());
      // Those of private cells have none.
      if (!one.other_code || one.differences.empty() ||
          (known.size() == k_kernels && !known.contains(key)))
        continue;
      const auto [place, fresh] = known.try_emplace(std::move(key));
      if (fresh) {
        const std::string target = target_of(judged.compiler);
        place->second = machine_code_diff(one, target, k_lines, world).value_or("");
      }
      one.machine_code = place->second;
    }
  };
  for (verdict::CellVerdict& cell : gate.cells) std::ranges::for_each(cell.judgements, add);
}

}  // namespace weir::flow
