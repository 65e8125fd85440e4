#include "gate/run/engine_call.hpp"

#include <algorithm>
#include <csignal>

#include <string.h>

#include "gate/base/ending.hpp"
#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/probes/format.h"
#include "gate/run/environment.hpp"
#include "gate/run/leftovers.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::run {
namespace {

using profile::Ended;
using profile::RunRecord;

// Both have the same words in the same order.
static_assert(static_cast<int>(Ended::timed_out) == static_cast<int>(sys::HowEnded::timed_out) &&
              static_cast<int>(Ended::interrupted) == static_cast<int>(sys::HowEnded::interrupted));

// Why a process measures nothing, whatever it ran in; nothing when it ended as it should.
std::optional<std::string> failure_of(const sys::Finished& finished, const sys::ProcessSpec& spec) {
  using sys::HowEnded;
  if (finished.ended == HowEnded::exited && finished.exit_code == 0) return std::nullopt;
  if (finished.ended == HowEnded::signaled) return signal_words(finished.signal);
  std::string words = sys::ended_words(finished, spec);
  if (finished.ended == HowEnded::output_limit) words += " (output_limit)";
  return words;
}

}  // namespace

config::CommandLine line_of(const PreparedCell& cell, const Step& step, const std::string& out,
                            const std::string& probe_dir, const std::string& port) {
  config::CommandLine line = config::fill(
      cell.cell, {.asked = step.asked,
                  .model = cell.model,
                  .prompt_file = cell.prompt_file,
                  .out = out,
                  .probe_dir = probe_dir,
                  .port = port,
                  .threads = cell.threads_in(step.pass),
                  .pass = step.probed.value_or(false) ? profile::Pass::counted : step.pass,
                  .bare = step.bare(),
                  .one_thread = step.instructions});
  if (!line.argv.empty()) line.argv.front() = cell.program;  // none: a server that runs already
  if (cell.twin) {
    for (auto& [name, value] : twin_environment(*cell.twin, step.twin_fill)) {
      std::string& there = line.env[name];
      const bool behind = name == "LD_LIBRARY_PATH" && !there.empty();
      there = behind ? value + ":" + there : std::move(value);
    }
  }
  return line;
}

RunRecord begin_record(const Effects& effects, const PreparedCell& cell, const Step& step,
                       std::int64_t attempt) {
  RunRecord record;
  record.cell = cell.cell.key.str();
  record.pass = step.pass;
  record.instructions = step.instructions;
  record.host = step.host;
  record.twin_fill = step.twin_fill;
  record.order = step.order;
  record.side = step.side;
  record.pair = step.pair;
  record.probed = step.probed;
  record.asked = step.asked;
  record.attempt = attempt;
  record.started_at = effects.clock.now();
  record.machine.other_load = effects.load.load_average();
  return record;
}

std::string signal_words(int signal) {
  if (signal == SIGKILL) {
    return "was killed (SIGKILL): by the system when memory ran out, or by hand";
  }
  // sigabbrev_np() knows all names, and glibc 2.31 and macOS do not have it.
  static const std::map<int, std::string_view> k_names = {
      {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},  {SIGFPE, "SIGFPE"},   {SIGHUP, "SIGHUP"},
      {SIGILL, "SIGILL"},   {SIGINT, "SIGINT"},  {SIGPIPE, "SIGPIPE"}, {SIGQUIT, "SIGQUIT"},
      {SIGSEGV, "SIGSEGV"}, {SIGSYS, "SIGSYS"},  {SIGTERM, "SIGTERM"}, {SIGTRAP, "SIGTRAP"},
      {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}};
  const auto name = k_names.find(signal);
  if (name == k_names.end()) return fmt::format("crashed: signal {}", signal);
  return fmt::format("crashed: {} ({})", name->second, strsignal(signal));
}

std::string more_time(const config::EngineSettings& engine) {
  return fmt::format("; if it was only slow, set a longer time for engine {}: \"timeout: {:g}s\"",
                     engine.name, 2 * engine.timeout_seconds);
}

std::string last_lines(std::string_view text) {
  constexpr std::size_t k_lines = 20, k_reasons = 3, k_characters = 500, k_bytes = 16384;
  if (text.size() > k_bytes) text.remove_prefix(text.size() - k_bytes);
  std::vector<std::string> lines = text::lines(text::printable(text));
  while (!lines.empty() && text::trim(lines.back()).empty()) lines.pop_back();
  // What a twin or a probe of weir's says is the reason: it stands last, behind any backtrace.
  const auto own = std::stable_partition(lines.begin(), lines.end(), [](const std::string& line) {
    return !line.starts_with("weir: ");
  });
  std::vector<std::string> reasons(own, lines.end());
  if (reasons.size() > k_reasons) reasons.resize(k_reasons);
  lines.erase(own, lines.end());
  text::keep_end(lines, k_lines - reasons.size());
  lines.insert(lines.end(), reasons.begin(), reasons.end());
  for (std::string& line : lines) line = text::shortened(std::move(line), k_characters);
  return text::join(lines, "\n");
}

EngineCall::EngineCall(const Effects& effects, const std::string& folder, const PreparedCell& cell,
                       const Step& step, std::int64_t attempt)
    : effects_(effects),
      cell_(cell),
      step_(step),
      container_(container_of(cell)),
      root_(sys::join_path(folder, fmt::format("tmp/{:07}-{}", step.order, attempt))) {}

EngineCall::~EngineCall() {
  (void)effects_.files.remove_tree(root_);
}  // where not, it does no harm

Result<void> EngineCall::make_place() {
  WEIR_CHECK(effects_.files.make_dirs(out()));
  return effects_.files.make_dirs(probes());
}

config::CommandLine EngineCall::line(const std::string& port) const {
  return line_of(cell_, step_, out(), counts() ? probes() : "", port);
}

Result<void> EngineCall::attach_probes() {
  if (!probed()) return {};
  // An image has an environment of its own: what weir.yaml sets in it is all that is known.
  const bool own = container_ != nullptr && has_own_environment(*container_);
  const config::Environment set = line("").env;
  auto attached = effects_.probing.attach(cell_.probes, probes(), own ? &set : nullptr);
  if (!attached) {
    return fail(attached.error().code, "the probes could not be attached: {}",
                attached.error().message);
  }
  probe_env_ = std::move(*attached);
  // A profiler that weir.yaml names stays: a second count is not needed.
  for (const unit::DeviceApi& api : unit::device_apis()) {
    const std::string variable(api.check_variable);
    if (set.contains(variable)) probe_env_.erase(variable);
  }
  return {};
}

Result<void> EngineCall::prepare(const std::string& port, const std::string& published) {
  config::CommandLine words = line(port);
  if (container_ == nullptr) {
    spec = {};
    spec.argv = std::move(words.argv);
    spec.folder = cell_.folder;
    spec.env = merge_environment(sys::own_environment(), words.env, probe_env_);
    spec.unset = probes_own(sys::own_environment());  // those that are set come after
    spec.passed = handed_on(cell_);
    return {};
  }
  carried_ = {root_, out(), probed() ? probes() : "", published};
  name_ = "weir-" + short_hash(fmt::format("{} {} {}", root_, port, effects_.clock.now()));
  if (has_own_environment(*container_)) {
    // The engine may be anybody inside; no one else comes by here.
    constexpr unsigned k_own = 0700, k_everybody = 0777;
    WEIR_CHECK(effects_.files.set_mode(carried_.root, k_own));
    for (const std::string& folder : {carried_.out, carried_.counts}) {
      if (!folder.empty()) WEIR_CHECK(effects_.files.set_mode(folder, k_everybody));
    }
  }
  const Carried carried =
      carried_into(cell_, carried_, effects_.probing.folder(), name_, words.env, probe_env_);
  id_file_ = carried.id_file;
  (void)effects_.files.remove(id_file_);  // of an earlier start, which would refuse this one
  WEIR_TRY(spec, carry_in(container_->runtime, words.argv, carried));
  spec.folder = cell_.folder;
  return {};
}

std::string EngineCall::end_rest(const Result<sys::Finished>& finished) const {
  if (container_ == nullptr) return "";
  return Leftovers{effects_.processes, effects_.files, container_->runtime,
                   cell_.program,      name_,          id_file_}
      .end(finished);
}

void EngineCall::take_over(RunRecord& record, const sys::Finished& finished) const {
  record.ended = static_cast<Ended>(finished.ended);
  record.exit_code = finished.exit_code;
  record.signal = finished.signal;
  record.wall_seconds = finished.wall_seconds;
  record.cpu_seconds = finished.cpu_seconds;
  record.peak_rss_bytes = finished.peak_rss_bytes;
  if (const auto& took = finished.took) {
    record.machine.major_faults = took->major_faults;
    if (cell_.host && record.pass == profile::Pass::timed) {
      record.took = {took->waits, took->preemptions, took->minor_faults, took->major_faults};
    }
  }
  if (container_ != nullptr) {
    // Known of docker, podman or srun, and not of the engine; so is what of these still runs for a
    // moment.
    record.cpu_seconds.reset();
    record.peak_rss_bytes.reset();
    record.machine.major_faults.reset();
  } else if (finished.left_behind > 0) {
    record.warnings.push_back(fmt::format("the engine left {} running, which weir ended",
                                          finished.left_behind == 1
                                              ? std::string("a process")
                                              : fmt::format("{} processes", finished.left_behind)));
  }
}

std::optional<std::string> EngineCall::failure(const sys::Finished& finished) const {
  const auto* engine = cell_.cell.engine;
  if (engine != nullptr && finished.ended == sys::HowEnded::exited &&
      holds(engine->ok_exit_codes, finished.exit_code)) {
    return std::nullopt;
  }
  auto why = failure_of(finished, spec);
  if (engine != nullptr && finished.ended == sys::HowEnded::timed_out) {
    *why += more_time(*engine);
  }
  if (!why || container_ == nullptr || finished.ended != sys::HowEnded::exited) return why;
  constexpr int k_signals = 128, k_last_signal = 64;  // as shells say it
  const int signal = finished.exit_code - k_signals;
  if (signal > 0 && signal <= k_last_signal) return signal_words(signal);
  return *why + exit_words(container_->runtime, finished.exit_code);
}

}  // namespace weir::run
