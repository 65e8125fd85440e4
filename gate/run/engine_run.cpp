#include "gate/run/engine_run.hpp"

#include <algorithm>
#include <utility>

#include "gate/adapters/format.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/instructions.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/in_container.hpp"
#include "gate/run/server_run.hpp"
#include "gate/run/step_record.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

using profile::Ended;
using profile::Pass;
using profile::RunRecord;

Result<profile::EngineReport> read_report(const PreparedCell& cell, const Step& step,
                                          const sys::Finished& finished) {
  const adapters::Adapter* adapter = adapters::find(cell.cell.adapter);
  if (adapter == nullptr) {
    return fail(Code::internal, "no adapter \"{}\" in this build", cell.cell.adapter);
  }
  adapters::Output output;
  output.out = finished.out;
  output.err = finished.err;
  output.asked = step.asked;
  output.device = cell.cell.device;
  output.generic = cell.cell.engine == nullptr ? nullptr : &cell.cell.engine->generic;
  output.works = cell.cell.works;
  // Of a process for instructions nothing else is needed.
  if (!step.instructions) output.pass = step.pass;
  return adapter->read(output);
}

void count_instructions(const PreparedCell& cell, const std::string& folder,
                        sys::ProcessSpec& spec) {
  if (cell.instructions != CountInstructions::valgrind) {
    spec.count = sys::instructions_event();
    return;
  }
  spec.argv = probes::under_valgrind(cell.valgrind, folder, spec.argv);
  spec.timeout_seconds *= probes::k_valgrind_is_slower;
}

// What was counted into the record, or why not.
void take_instructions(const Effects& effects, const PreparedCell& cell, const WorkPlace& place,
                       const sys::Finished& finished, RunRecord& record) {
  Result<profile::ProbeCounts> counts = fail(Code::unavailable, "{}", finished.count_error);
  if (cell.instructions == CountInstructions::valgrind) {
    counts = probes::collect_valgrind(effects.files, place.probes());
  } else if (finished.counted) {
    counts = probes::counted_by_perf(*finished.counted);
  }
  if (counts) {
    record.probes = {std::move(*counts)};
  } else {
    record.error = "instructions could not be counted: " + counts.error().message;
  }
}

}  // namespace

config::CommandLine line_of(const PreparedCell& cell, const Step& step, const std::string& out,
                            const std::string& probe_dir, const std::string& port) {
  config::CommandLine line = config::fill(cell.cell, {.asked = step.asked,
                                                      .model = cell.model,
                                                      .prompt_file = cell.prompt_file,
                                                      .out = out,
                                                      .probe_dir = probe_dir,
                                                      .port = port,
                                                      .threads = cell.threads_in(step.pass),
                                                      .pass = step.pass,
                                                      .instructions = step.instructions});
  if (!line.argv.empty()) line.argv.front() = cell.program;  // none: a server that runs already
  if (cell.twin) {
    for (auto& [name, value] : twin_environment(*cell.twin, step.twin_fill)) {
      line.env[name] = std::move(value);
    }
  }
  return line;
}

Result<std::optional<RunRecord>> run_engine(const Effects& effects, const std::string& folder,
                                            const PreparedCell& cell, const Step& step,
                                            std::int64_t attempt) {
  if (cell.cell.engine != nullptr && cell.cell.engine->server) {
    return run_server(effects, folder, {&cell, &step, attempt});
  }
  WorkPlace place(effects.files,
                  sys::join_path(folder, fmt::format("tmp/{:07}-{}", step.order, attempt)));
  WEIR_CHECK(place.make());
  const bool counted = step.pass == Pass::counted;
  const bool probed = counted && !step.instructions && !cell.probes.empty();
  config::CommandLine line = line_of(cell, step, place.out(), counted ? place.probes() : "");
  const config::ContainerSettings* container = container_of(cell);
  RunRecord record = begin_record(effects, cell, step, attempt);
  config::Environment probe_env;
  if (probed) {
    const bool own = container != nullptr && has_own_environment(*container);
    auto attached = effects.probing.attach(cell.probes, place.probes(), own ? &line.env : nullptr);
    if (!attached) {
      record.ended = Ended::not_started;
      record.error = "the probes could not be attached: " + attached.error().message;
      return record;
    }
    probe_env = std::move(*attached);
  }
  sys::ProcessSpec spec;
  spec.argv = std::move(line.argv);
  const CarriedPlace carried{place.path(), place.out(), probed ? place.probes() : std::string()};
  const std::string name =
      "weir-" + short_hash(fmt::format("{} {}", place.path(), effects.clock.now()));
  if (container == nullptr) {
    spec.env = merge_environment(sys::own_environment(), line.env, probe_env);
    spec.unset = probes_own(sys::own_environment());  // those that are set come after
  } else if (auto put = put_in_container(effects, cell, carried, name, line.env, probe_env, spec);
             !put) {
    record.ended = Ended::not_started;
    record.error = put.error().message;
    return record;
  }
  spec.folder = cell.folder;
  if (cell.cell.engine != nullptr) {
    spec.timeout_seconds = cell.cell.engine->timeout_seconds;
    spec.output_limit = static_cast<std::uint64_t>(cell.cell.engine->output_limit);
  }
  if (step.instructions) count_instructions(cell, place.probes(), spec);
  const auto before = effects.load.ticks();
  Result<sys::Finished> ran = effects.processes.run(spec, effects.stop);
  const auto after = effects.load.ticks();
  std::string left;
  if (container != nullptr && may_have_left(cell, ran)) {
    left = end_container(effects, cell, carried, name);
  }
  if (!ran)
    return left.empty() ? tl::unexpected(ran.error())
                        : tl::unexpected(with_context(left, ran.error()));
  sys::Finished& finished = *ran;
  if (!left.empty()) record.warnings.push_back(std::move(left));
  if (finished.ended == sys::HowEnded::interrupted) return std::nullopt;
  take_over(record, finished);
  if (before && after) record.machine.steal_share = sys::steal_share(*before, *after);

  record.error = failure_of(finished, spec);
  if (container != nullptr) {
    leave_out_runtimes_own(record);
    if (record.error) record.error = failure_in_container(cell, finished, *record.error);
  }
  if (step.instructions && record.error) {
    finished.err += probes::valgrind_log(effects.files, place.probes());
  }
  if (record.error && (record.ended == Ended::exited || record.ended == Ended::signaled)) {
    // What it could not do tells more than how it ended.
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
  if (probed && record.ended != Ended::not_started) {
    // Also after a crash: what was counted until then is there.
    auto counts = effects.probing.collect(cell.probes, place.probes());
    if (counts) {
      record.probes = std::move(*counts);
    } else if (!record.error) {
      record.error = "what the probes counted could not be read: " + counts.error().message;
    }
  }
  if (step.instructions && !record.error) take_instructions(effects, cell, place, finished, record);
  if (record.error) {
    record.error = text::printable(*record.error);
    record.stderr_tail = last_lines(finished.err);
  }
  return record;
}

}  // namespace weir::run
