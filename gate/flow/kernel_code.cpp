// The stored code of kernels: which compiler costs it, and how two versions of it differ.
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

// Returns the file of a piece of code in weir's cache; Code::unavailable if it is not there.
Result<std::string> find_stored_code(const std::string& hash, const sys::Files& files) {
  std::string path = code_store().find(files, hash);
  if (!path.empty()) return path;
  return fail(Code::unavailable,
              "the code {} is not in weir's cache: measure that side on this machine",
              text::printable(hash));
}

// Reads pieces of GPU code by their hashes from weir's cache. `recordings` own the code.
Result<std::vector<explain::KernelCode>> read_stored_codes(
    const std::vector<std::string>& hashes, const sys::Files& files,
    std::list<probes::RecordedKernels>& recordings) {
  std::vector<explain::KernelCode> codes;
  for (const std::string& hash : hashes) {
    WEIR_TRY(const std::string path, find_stored_code(hash, files));
    WEIR_TRY_SET(recordings.emplace_back(), probes::read_recording(files, path));
    const probes::RecordedKernels& recorded = recordings.back();
    if (recorded.pipelines.size() != 1 ||
        probes::pipeline_hash(recorded.pipelines.front()) != hash) {
      return fail(Code::data, "{}: no recording of the kernel {}", path, text::printable(hash));
    }
    const auto facts = probes::code_facts(recorded).begin()->second;
    codes.push_back({recorded.codes.front().words, facts.source, facts.options, hash});
  }
  return codes;
}

// Compares each piece of a kernel's code with the one that it replaces.
Result<std::vector<explain::CodeChanges>> compare_code(const verdict::KernelChange& code,
                                                       const sys::Files& files) {
  std::list<probes::RecordedKernels> recordings;
  WEIR_TRY(auto before, read_stored_codes(code.hashes_before, files, recordings));
  WEIR_TRY(auto after, read_stored_codes(code.hashes_now, files, recordings));
  return explain::code_changes(std::move(before), std::move(after));
}

}  // namespace

Result<std::unique_ptr<run::KernelCompiler>> make_compiler(const Job& job) {
  sys::World& world = job.world;
  WEIR_TRY(const probes::Places probes, probe_places(world));
  WEIR_TRY(const std::string cache, source::default_cache_folder());
  WEIR_TRY(run::CompilerPlaces places,
           run::find_compiler(world.files, probes, cache, environment_reader(world)));
  if (!job.reuses_cache()) places.cache.clear();
  return std::make_unique<run::KernelCompiler>(world.files, world.processes, std::move(places));
}

run::CodeStore code_store() {
  const auto cache = source::default_cache_folder();
  return run::CodeStore(cache ? sys::join_path(*cache, "kernels/code") : "");
}

// Checks that the compilers of all cells work. Cells of device twins (simulated GPUs) go without,
// with a note.
Result<std::vector<std::string>> check_compilers(std::vector<run::PreparedCell>& cells,
                                                 const Job& job, const sys::Stop& stop,
                                                 std::unique_ptr<run::KernelCompiler>& compiler) {
  std::vector<std::string> notes;
  std::map<std::string, Result<void>> results;
  for (run::PreparedCell& cell : cells) {
    if (cell.compile.empty()) continue;
    const auto [entry, is_new] = results.try_emplace(cell.compile);
    Result<void>& fits = entry->second;
    if (is_new && compiler == nullptr) {
      auto built = make_compiler(job);
      if (built) compiler = std::move(*built);
      if (!built) fits = tl::unexpected(built.error());
    }
    if (is_new && compiler != nullptr) fits = compiler->check(cell.compile, stop);
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

// Lists the differences of each piece of GPU code, if both versions are in weir's cache.
static void add_code_differences(std::vector<verdict::KernelChange>& codes,
                                 const sys::Files& files) {
  for (verdict::KernelChange& code : codes) {
    if (!code.code_changed) continue;
    const auto changes = compare_code(code, files);
    if (!changes) continue;
    // Several pieces under one name mostly change alike, so equal lines appear once.
    std::vector<std::string> lines;
    const auto add_line = [&](const std::string& line) {
      if (!line.empty() && !holds(lines, line)) lines.push_back(line);
    };
    for (const explain::CodeChanges& piece : *changes) add_line(piece.headline);
    for (const explain::CodeChanges& piece : *changes) {
      for (const std::string& line : piece.lines) add_line(line);
    }
    if (!lines.empty()) code.metadata_differences = std::move(lines);
  }
}

void add_code_differences(std::vector<verdict::CellVerdict>& cells, const sys::Files& files) {
  for (verdict::CellVerdict& cell : cells) {
    for (verdict::Judgement& judgement : cell.judgements)
      add_code_differences(judgement.code, files);
  }
}

std::string compiler_target(const std::string& compiler) {
  return compiler.substr(0, compiler.find(','));
}

// Returns how a kernel's machine code for `target` differs from the base's, at most `max_lines`
// lines.
Result<std::string> machine_code_diff(const verdict::KernelChange& code, const std::string& target,
                                      std::size_t max_lines, const Job& job) {
  WEIR_TRY(const auto compiler, make_compiler(job));
  const sys::Interrupts interrupts;
  const auto read_assembly = [&](const std::string& hash) -> Result<std::string> {
    WEIR_TRY(const std::string path, find_stored_code(hash, job.files()));
    return compiler->assembly(target, path, hash, interrupts.stop());
  };
  WEIR_TRY(const auto changes, compare_code(code, job.files()));
  if (changes.empty()) return fail(Code::unavailable, "each piece of its code is as it was");
  std::string diff;
  for (const explain::CodeChanges& piece : changes) {
    WEIR_TRY(const std::string before, read_assembly(piece.before));
    WEIR_TRY(const std::string after, read_assembly(piece.now));
    if (changes.size() > 1) {
      diff += fmt::format("{} \u2192 {}: {}\n", piece.before, piece.now, piece.headline);
    }
    WEIR_TRY(const std::string lines,
             source::Git::diff(source_effects(job.world, interrupts.stop()), before, after));
    diff += lines;
  }
  std::vector<std::string> lines = text::lines(diff);
  if (lines.size() <= max_lines) return diff;
  const std::size_t left_out = lines.size() - max_lines;
  lines.resize(max_lines);
  return fmt::format("{}\n({} more lines)\n", text::join(lines, "\n"), left_out);
}

// Differences of machine code, by the hashes of both sides.
using MachineCodeDiffs = std::map<std::vector<std::string>, std::string>;

// Adds the difference of machine code to the changed kernels of a judgement, as long as `diffs` has
// room for more.
static void add_machine_code(verdict::Judgement& judgement, const Job& job,
                             MachineCodeDiffs& diffs) {
  constexpr std::size_t k_max_kernels = 6, k_max_lines = 600;
  if (judgement.compiler.empty()) return;
  for (verdict::KernelChange& code : judgement.code) {
    std::vector<std::string> key = code.hashes_before;
    key.insert(key.end(), code.hashes_now.begin(), code.hashes_now.end());
    // Private cells have no differences, and get no machine code.
    const bool is_private = code.metadata_differences.empty();
    if (!code.code_changed || is_private) continue;
    if (diffs.size() == k_max_kernels && !diffs.contains(key)) continue;
    const auto [entry, is_new] = diffs.try_emplace(std::move(key));
    if (is_new) {
      const std::string target = compiler_target(judgement.compiler);
      entry->second = machine_code_diff(code, target, k_max_lines, job).value_or("");
    }
    code.machine_code = entry->second;
  }
}

// Adds the difference of machine code to the first changed kernels of a verdict, each once.
void add_machine_code(verdict::GateVerdict& gate, const Job& job) {
  if (gate.rules) return;  // a run by others may claim any hashes and compilers
  MachineCodeDiffs diffs;
  for (verdict::CellVerdict& cell : gate.cells) {
    for (verdict::Judgement& judgement : cell.judgements) add_machine_code(judgement, job, diffs);
  }
}

}  // namespace weir::flow
