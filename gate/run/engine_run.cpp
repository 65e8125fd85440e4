#include "gate/run/engine_run.hpp"

#include <algorithm>
#include <csignal>
#include <span>
#include <utility>

#include <string.h>

#include "gate/adapters/adapter.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/instructions.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/in_container.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

using profile::Ended;
using profile::Pass;
using profile::RunRecord;

// The place of one process; gone when the process has been read.
class WorkPlace {
 public:
  WorkPlace(sys::Files& files, std::string path) : files_(files), path_(std::move(path)) {}
  ~WorkPlace() { (void)files_.remove_tree(path_); }  // what can not be removed does no harm
  WorkPlace(const WorkPlace&) = delete;
  WorkPlace& operator=(const WorkPlace&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string out() const { return path_ + "/out"; }
  [[nodiscard]] std::string probes() const { return path_ + "/probes"; }
  [[nodiscard]] Result<void> make() {
    WEIR_CHECK(files_.make_dirs(out()));
    return files_.make_dirs(probes());
  }

 private:
  sys::Files& files_;
  std::string path_;
};

Ended ended_of(sys::HowEnded how) {
  switch (how) {
    case sys::HowEnded::exited:
      return Ended::exited;
    case sys::HowEnded::signaled:
      return Ended::signaled;
    case sys::HowEnded::timed_out:
      return Ended::timed_out;
    case sys::HowEnded::output_limit:
      return Ended::output_limit;
    case sys::HowEnded::not_started:
      return Ended::not_started;
    case sys::HowEnded::interrupted:
      break;
  }
  return Ended::interrupted;
}

std::string signal_words(int signal) {
  if (signal == SIGKILL) {
    return "was killed (SIGKILL): by the system when memory ran out, or by hand";
  }
#ifdef __GLIBC__
  const char* name = sigabbrev_np(signal);
  const char* words = sigdescr_np(signal);
  if (name != nullptr && words != nullptr) return fmt::format("crashed: SIG{} ({})", name, words);
#endif
  return fmt::format("crashed: signal {}", signal);
}

// Why a process measures nothing; nothing when it ended as it should.
std::optional<std::string> failure_of(const sys::Finished& finished, const sys::ProcessSpec& spec) {
  switch (finished.ended) {
    case sys::HowEnded::exited:
      if (finished.exit_code == 0) return std::nullopt;
      return fmt::format("exited with code {}", finished.exit_code);
    case sys::HowEnded::signaled:
      return signal_words(finished.signal);
    case sys::HowEnded::timed_out:
      return fmt::format("did not end within {:g} s and was stopped (timeout)",
                         spec.timeout_seconds);
    case sys::HowEnded::output_limit:
      return fmt::format("printed more than {:g} MiB and was stopped (output_limit)",
                         static_cast<double>(spec.output_limit) / (1 << 20));
    case sys::HowEnded::not_started:
      return fmt::format("could not be started: {}", finished.start_error);
    case sys::HowEnded::interrupted:
      break;
  }
  return "was interrupted";
}

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
  // Of a process for instructions nothing else is needed.
  if (!step.instructions) output.pass = step.pass;
  return adapter->read(output);
}

RunRecord begin_record(const Effects& effects, const PreparedCell& cell, const Step& step,
                       std::int64_t attempt) {
  RunRecord record;
  record.cell = cell.cell.key.str();
  record.pass = step.pass;
  record.instructions = step.instructions;
  record.twin_fill = step.twin_fill;
  record.order = step.order;
  record.side = step.side;
  record.pair = step.pair;
  record.asked = step.asked;
  record.attempt = attempt;
  record.started_at = effects.clock.now();
  record.machine.other_load = effects.load.load_average();
  return record;
}

void take_over(RunRecord& record, const sys::Finished& finished) {
  record.ended = ended_of(finished.ended);
  record.exit_code = finished.exit_code;
  record.signal = finished.signal;
  record.wall_seconds = finished.wall_seconds;
  record.cpu_seconds = finished.cpu_seconds;
  record.peak_rss_bytes = finished.peak_rss_bytes;
  record.machine.major_faults = finished.major_faults;
  if (finished.left_behind > 0) {
    record.warnings.push_back(fmt::format("the engine left {} running, which weir ended",
                                          finished.left_behind == 1
                                              ? std::string("a process")
                                              : fmt::format("{} processes", finished.left_behind)));
  }
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

std::string last_lines(std::string_view text) {
  constexpr std::size_t k_lines = 20, k_characters = 500, k_bytes = 16384;
  if (text.size() > k_bytes) text.remove_prefix(text.size() - k_bytes);
  std::vector<std::string> lines = text::lines(text::printable(text));
  while (!lines.empty() && text::trim(lines.back()).empty()) lines.pop_back();
  if (lines.size() > k_lines) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(k_lines));
  }
  for (std::string& line : lines) {
    if (line.size() <= k_characters) continue;
    std::size_t cut = k_characters;
    // Not within a character.
    while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xC0U) == 0x80U) --cut;
    line.resize(cut);
    line += "…";
  }
  return text::join(lines, "\n");
}

config::CommandLine line_of(const PreparedCell& cell, const Step& step, const std::string& out,
                            const std::string& probe_dir) {
  config::CommandLine line = config::fill(cell.cell, {.asked = step.asked,
                                                      .model = cell.model,
                                                      .prompt_file = cell.prompt_file,
                                                      .out = out,
                                                      .probe_dir = probe_dir,
                                                      .threads = cell.threads_in(step.pass),
                                                      .pass = step.pass,
                                                      .instructions = step.instructions});
  line.argv.front() = cell.program;
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
    // Those of docker, podman or srun, not the engine's.
    record.cpu_seconds.reset();
    record.peak_rss_bytes.reset();
    record.machine.major_faults.reset();
    constexpr int k_signals = 128, k_last_signal = 64;  // as shells say it
    const int signal = finished.ended == sys::HowEnded::exited ? finished.exit_code - k_signals : 0;
    if (record.error && signal > 0 && signal <= k_last_signal) {
      record.error = signal_words(signal);
    } else if (record.error) {
      record.error = failure_in_container(cell, finished, *record.error);
    }
  }
  if (step.instructions && record.error) {
    finished.err += probes::valgrind_log(effects.files, place.probes());
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
