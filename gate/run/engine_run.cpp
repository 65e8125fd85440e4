// Runs an engine for one step and reads what it and its probes wrote.
#include "gate/run/engine_run.hpp"

#include "gate/adapters/format.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/host.hpp"
#include "gate/probes/read/instructions.hpp"
#include "gate/run/code_store.hpp"
#include "gate/run/engine_call.hpp"
#include "gate/run/kernel_compiler.hpp"
#include "gate/run/server_run.hpp"
#include "gate/sys/gunzip.hpp"

namespace weir::run {
namespace {

using profile::Ended;
using profile::RunRecord;

// Makes the process count instructions, with perf events or under valgrind.
void count_instructions(const PreparedCell& cell, const std::string& folder,
                        sys::ProcessSpec& spec) {
  if (cell.instructions != CountInstructions::valgrind) {
    spec.count = sys::instructions_event();
    return;
  }
  spec.argv = probes::under_valgrind(cell.valgrind, folder, spec.argv);
  spec.timeout_seconds *= probes::k_valgrind_is_slower;
}

// Reads the result file that another tool has written, in place of running an engine. The record
// has the report, or the error.
RunRecord read_result(const Effects& effects, const PreparedCell& cell, const Step& step,
                      std::int64_t attempt) {
  RunRecord record = begin_record(effects, cell, step, attempt);
  record.machine.other_load.reset();  // the tool ran before
  const auto& [file, warning] = cell.cell.results.at(step.result);
  if (warning) record.warnings.push_back(*warning);
  sys::Finished finished;
  auto report = sys::read_unpacked(effects.files, file, adapters::k_max_result_bytes)
                    .and_then([&](std::string text) {
                      finished.out = std::move(text);
                      return read_report(cell, step, finished);
                    })
                    .map_error(with_prefix(file));
  if (report) {
    record.report = std::move(*report);
  } else {
    record.error = text::printable(report.error().message);
  }
  return record;
}

// Returns the instructions that Valgrind wrote to a file or the kernel counted.
Result<profile::ProbeCounts> count_instructions(const Effects& effects, const PreparedCell& cell,
                                                const std::string& folder,
                                                const sys::Finished& finished) {
  if (cell.instructions == CountInstructions::valgrind) {
    return probes::collect_valgrind(effects.files, folder);
  }
  if (!finished.counted) return fail(Code::unavailable, "{}", finished.count_error);
  return probes::perf_counts(*finished.counted);
}

// Adds the counted instructions to the record, or the reason why they are missing.
void add_instructions(const Effects& effects, const PreparedCell& cell, const std::string& folder,
                      const sys::Finished& finished, RunRecord& record) {
  auto counts = count_instructions(effects, cell, folder, finished);
  if (counts) {
    record.probes = {std::move(*counts)};
  } else {
    record.error = "instructions could not be counted: " + counts.error().message;
  }
}

}  // namespace

// Reads the engine's output with the cell's adapter, the reader of its format.
Result<profile::EngineReport> read_report(const PreparedCell& cell, const Step& step,
                                          const sys::Finished& finished) {
  const adapters::Adapter* adapter = adapters::find(cell.cell.adapter);
  if (adapter == nullptr) {
    return fail(Code::internal, "no adapter \"{}\" in this build", cell.cell.adapter);
  }
  adapters::Output output;
  output.out = finished.out;
  output.err = finished.err;
  output.parameters = step.parameters;
  output.device = cell.cell.device;
  if (cell.cell.engine != nullptr) output.generic = &cell.cell.engine->generic;
  output.works = cell.cell.works;
  output.wanted_load = cell.cell.wanted_load;
  // A process that counts instructions or system calls needs no other figures.
  if (!step.is_counted_apart()) output.pass = step.pass;
  return adapter->read(output);
}

// Stores the recorded GPU kernels for later reports, and adds the compiler's figures of them to the
// probe that saw them. Problems become warnings.
void add_code(const Effects& effects, const PreparedCell& cell, const std::string& folder,
              std::vector<profile::ProbeCounts>& counts, std::vector<std::string>& warnings) {
  const auto recordings = probes::recorded_kernel_files(effects.files, folder);
  auto* code_probe =
      find_first(counts, [](const auto& probe) { return !probe.code_facts.empty(); });
  if (!recordings || code_probe == nullptr) return;
  if (effects.codes != nullptr) effects.codes->store(effects.files, *recordings);
  if (effects.compiler == nullptr || cell.compile.empty()) return;
  auto compiled = effects.compiler->compile(cell.compile, *recordings, effects.stop);
  if (!compiled) {
    return warnings.push_back("kernels were not compiled: " + compiled.error().message);
  }
  code_probe->compiler = std::move(compiled->compiler);
  for (auto& [identity, code] : compiled->codes) code_probe->code_facts[identity] = std::move(code);
  warnings.insert(warnings.end(), compiled->warnings.begin(), compiled->warnings.end());
}

// Runs one step. An engine that fails gives a record with an error; nothing if weir was stopped.
Result<std::optional<RunRecord>> run_engine(const Effects& effects, const std::string& folder,
                                            const PreparedCell& cell, const Step& step,
                                            std::int64_t attempt) {
  if (cell.cell.engine != nullptr && cell.cell.engine->server) {
    return run_server(effects, folder, {&cell, &step, attempt});
  }
  if (!cell.cell.results.empty()) return read_result(effects, cell, step, attempt);
  EngineCall call(effects, folder, cell, step, attempt);
  WEIR_CHECK(call.make_place());
  RunRecord record = begin_record(effects, cell, step, attempt);
  auto prepared = call.attach_probes();
  if (prepared) prepared = call.prepare();
  if (!prepared) {
    record.ended = Ended::not_started;
    record.error = prepared.error().message;
    return record;
  }
  sys::ProcessSpec& spec = call.spec;
  if (cell.cell.engine != nullptr) {
    spec.timeout_seconds = cell.cell.engine->timeout_seconds;
    spec.output_limit = static_cast<std::uint64_t>(cell.cell.engine->output_limit);
  }
  if (step.counts == profile::Counts::instructions) count_instructions(cell, call.probes(), spec);
  spec.count_calls = step.counts == profile::Counts::system_calls;
  if (spec.count_calls) spec.timeout_seconds *= probes::k_tracing_is_slower;
  const auto ticks_before = effects.load.ticks();
  Result<sys::Finished> outcome = effects.processes.run(spec, effects.stop);
  const auto ticks_after = effects.load.ticks();
  std::string leftovers = call.end_leftovers(outcome);
  if (!outcome)
    return tl::unexpected(leftovers.empty() ? outcome.error()
                                            : add_prefix(leftovers, outcome.error()));
  sys::Finished& finished = *outcome;
  if (!leftovers.empty()) record.warnings.push_back(std::move(leftovers));
  if (finished.ended == sys::HowEnded::interrupted) return std::nullopt;
  call.copy_outcome(record, finished);
  if (ticks_before && ticks_after)
    record.machine.steal_share = sys::steal_share(*ticks_before, *ticks_after);

  record.error = call.failure(finished);
  if (step.counts == profile::Counts::instructions && record.error) {
    finished.err += probes::valgrind_log(effects.files, call.probes());
  }
  if (record.error && (record.ended == Ended::exited || record.ended == Ended::signaled)) {
    // A missing kernel explains more than an exit code.
    if (const auto missing = adapters::missing_kernel(finished.err)) {
      record.error = fmt::format("missing kernel: {} ({})", *missing, *record.error);
    }
  }
  if (!record.error) {
    auto report = read_report(cell, step, finished);
    if (report) {
      record.report = std::move(*report);
    } else {
      record.error = report.error().message;
    }
  }
  if (call.attaches_probes() && record.ended != Ended::not_started) {
    // Read counts after a crash too: those until then are there.
    auto counts =
        effects.probing.collect(call.attached_probes(), call.probes(), cell.cell.engine->processes);
    if (counts && step.counts == profile::Counts::python) {
      std::erase_if(*counts, [](const auto& probe) { return probe.probe != profile::k_python; });
      record.probes = std::move(*counts);
    } else if (counts) {
      record.probes = std::move(*counts);
      for (auto& probe : record.probes) probes::name_kernels(cell.shaders, probe);
      add_code(effects, cell, call.probes(), record.probes, record.warnings);
    } else if (!record.error) {
      record.error = "what the probes counted could not be read: " + counts.error().message;
    }
  }
  if (step.counts == profile::Counts::instructions && !record.error)
    add_instructions(effects, cell, call.probes(), finished, record);
  if (step.counts == profile::Counts::system_calls && finished.calls) {
    record.probes = {probes::system_call_counts(*finished.calls)};
    if (finished.calls->has_hidden_process && !record.error) {
      record.error =
          "it started a process that may not be traced (CLONE_UNTRACED), so that its system calls "
          "are not known";
    }
  }
  if (record.error) {
    record.error = text::printable(*record.error);
    record.stderr_tail = last_lines(sys::error_output(finished));
  }
  return record;
}

}  // namespace weir::run
