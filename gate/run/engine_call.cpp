// One call of an engine: its command line, environment and folder, and how it ended.
#include "gate/run/engine_call.hpp"

#include <algorithm>
#include <csignal>
#include <set>

#include <string.h>

#include "gate/base/ending.hpp"
#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/probes/format.h"
#include "gate/probes/read/kernel_names.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/leftovers.hpp"
#include "gate/run/named_files.hpp"
#include "gate/sys/code_file.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/python_environment.hpp"
#include "gate/unit/device_api.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::run {
namespace {

using profile::Ended;
using profile::RunRecord;

// The enumerations have the same values in the same order.
static_assert(static_cast<int>(Ended::timed_out) == static_cast<int>(sys::HowEnded::timed_out) &&
              static_cast<int>(Ended::interrupted) == static_cast<int>(sys::HowEnded::interrupted));

// Returns why a process measures nothing, or nothing if it ended with code 0.
std::optional<std::string> process_failure(const sys::Finished& finished,
                                           const sys::ProcessSpec& spec) {
  using sys::HowEnded;
  if (finished.ended == HowEnded::exited && finished.exit_code == 0) return std::nullopt;
  if (finished.ended == HowEnded::signaled) return describe_signal(finished.signal);
  std::string reason_text = sys::describe_ending(finished, spec);
  if (finished.ended == HowEnded::output_limit) reason_text += " (output_limit)";
  return reason_text;
}

}  // namespace

// Returns the engine's command line and environment for a step of the plan, with the placeholders
// filled. A cell with a device twin (a simulated GPU) also gets the variables that load it.
config::CommandLine make_command_line(const PreparedCell& cell, const Step& step,
                                      const std::string& out_folder, const std::string& probe_dir,
                                      const std::string& port) {
  config::CommandLine line = config::fill(
      cell.cell, {.parameters = step.parameters,
                  .model = cell.model,
                  .prompt_file = cell.prompt_file,
                  .out = out_folder,
                  .probe_dir = probe_dir,
                  .port = port,
                  .threads = cell.threads_in(step.pass),
                  .pass = step.with_probes.value_or(false) ? profile::Pass::counted : step.pass,
                  .bare = step.is_counted_apart(),
                  .one_thread = step.counts == profile::Counts::instructions});
  if (!line.argv.empty()) line.argv.front() = cell.program;  // empty for a server that runs already
  if (cell.twin) {
    const sys::EnvironmentList line_variables(line.env.begin(), line.env.end());
    for (auto& [name, value] :
         merge_environment(line_variables, twin_environment(*cell.twin, step.twin_fill), {})) {
      line.env[name] = std::move(value);
    }
  }
  return line;
}

// Starts the record of a step (one process of the plan) with what is known before it runs.
RunRecord begin_record(const Effects& effects, const PreparedCell& cell, const Step& step,
                       std::int64_t attempt) {
  RunRecord record;
  record.cell = cell.cell.key.str();
  record.pass = step.pass;
  record.counts = step.counts;
  record.twin_fill = step.twin_fill;
  record.order = step.order;
  record.side = step.side;
  record.pair = step.pair;
  record.with_probes = step.with_probes;
  record.parameters = step.parameters;
  record.attempt = attempt;
  record.started_at = effects.clock.now();
  record.machine.other_load = effects.load.load_average();
  return record;
}

// Describes the signal that ended an engine, as in "crashed: SIGSEGV (Segmentation fault)".
std::string describe_signal(int signal) {
  if (signal == SIGKILL) {
    return "was killed (SIGKILL): by the system when memory ran out, or by hand";
  }
  // sigabbrev_np() would do, but glibc 2.31 and macOS lack it.
  static const std::map<int, std::string_view> k_names = {
      {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},  {SIGFPE, "SIGFPE"},   {SIGHUP, "SIGHUP"},
      {SIGILL, "SIGILL"},   {SIGINT, "SIGINT"},  {SIGPIPE, "SIGPIPE"}, {SIGQUIT, "SIGQUIT"},
      {SIGSEGV, "SIGSEGV"}, {SIGSYS, "SIGSYS"},  {SIGTERM, "SIGTERM"}, {SIGTRAP, "SIGTRAP"},
      {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}};
  const auto name = k_names.find(signal);
  if (name == k_names.end()) return fmt::format("crashed: signal {}", signal);
  return fmt::format("crashed: {} ({})", name->second, strsignal(signal));
}

std::string timeout_hint(const config::EngineSettings& engine) {
  return fmt::format("; if it was only slow, set a longer time for engine {}: \"timeout: {:g}s\"",
                     engine.name, 2 * engine.timeout_seconds);
}

// Writes the symbol of a kernel at the end of a device twin's line as a name.
void make_kernel_readable(std::string& line) {
  constexpr std::string_view k_kernel = "The kernel: ";
  const std::size_t at = line.rfind(k_kernel);
  if (at == line.npos) return;
  const std::size_t begin = at + k_kernel.size();
  line.replace(begin, line.npos, probes::readable_kernel_name(line.substr(begin)));
}

// Returns the last 20 lines of an engine's output; weir's own lines, which give the reason, come
// last, at most three.
std::string last_lines(std::string_view text) {
  constexpr std::size_t k_lines = 20, k_reasons = 3, k_characters = 500, k_bytes = 16384;
  if (text.size() > k_bytes) text.remove_prefix(text.size() - k_bytes);
  std::vector<std::string> lines = text::lines(text::printable(text));
  while (!lines.empty() && text::trim(lines.back()).empty()) lines.pop_back();
  // A line of a device twin or a probe gives the reason, but a backtrace may follow it.
  const auto first_own_line =
      std::stable_partition(lines.begin(), lines.end(),
                            [](const std::string& line) { return !line.starts_with("weir: "); });
  std::vector<std::string> reasons(first_own_line, lines.end());
  if (reasons.size() > k_reasons) reasons.resize(k_reasons);
  for (std::string& reason : reasons) make_kernel_readable(reason);
  lines.erase(first_own_line, lines.end());
  text::keep_last_lines(lines, k_lines - reasons.size());
  lines.insert(lines.end(), reasons.begin(), reasons.end());
  for (std::string& line : lines) line = text::shortened(std::move(line), k_characters);
  return text::join(lines, "\n");
}

EngineCall::EngineCall(const Effects& effects, const std::string& folder, const PreparedCell& cell,
                       const Step& step, std::int64_t attempt)
    : effects_(effects),
      cell_(cell),
      step_(step),
      container_(find_container(cell)),
      root_(sys::join_path(folder, fmt::format("tmp/{:07}-{}", step.order, attempt))) {}

EngineCall::~EngineCall() {
  (void)effects_.files.remove_tree(root_);  // a failure does no harm
}

Result<void> check_before_process(const Effects& effects) {
  if (!sys::restore_own_settings()) {
    return fail(Code::unavailable,
                "the limits of weir's own process on resources (ulimit, cgroup, autogroup) were "
                "changed while it ran, and engines inherit them, so nothing can be compared: run "
                "it again");
  }
  return effects.check ? effects.check() : Result<void>();
}

Result<void> EngineCall::make_place() {
  WEIR_CHECK(check_before_process(effects_));
  WEIR_CHECK(effects_.files.make_dirs(out()));
  WEIR_CHECK(effects_.files.make_dirs(probes()));
  if (attaches_probes()) counts_watch_ = sys::FolderWatch(probes(), WEIR_PROBE_SUFFIX);
  return {};
}

config::CommandLine EngineCall::line(const std::string& port) const {
  return make_command_line(cell_, step_, out(), counts() ? probes() : "", port);
}

std::vector<std::string> EngineCall::attached_probes() const {
  std::vector<std::string> names = cell_.probes;
  if (step_.counts == profile::Counts::python) names.emplace_back(profile::k_python);
  return names;
}

// Sets the variables that attach the probes, libraries that count an engine's work, to the engine.
// Does nothing for a step without probes.
Result<void> EngineCall::attach_probes() {
  if (!attaches_probes()) return {};
  // An image has its own environment; all that is known of it is what weir.yaml sets.
  const bool image_has_own_environment = container_ != nullptr && has_own_environment(*container_);
  const config::Environment line_env = line("").env;
  auto attached = effects_.probing.attach(attached_probes(), probes(),
                                          image_has_own_environment ? &line_env : nullptr);
  if (!attached) {
    return fail(attached.error().code, "the probes could not be attached: {}",
                attached.error().message);
  }
  probe_env_ = std::move(*attached);
  if (step_.counts == profile::Counts::python && cell_.cell.engine->python_lines)
    probe_env_[WEIR_PROBE_PYTHON_LINES_VARIABLE] = "1";
  // If weir.yaml already sets a profiler for an API, weir adds none of its own.
  for (const unit::DeviceApi& api : unit::device_apis()) {
    const std::string variable(api.check_variable);
    if (line_env.contains(variable)) probe_env_.erase(variable);
  }
  return {};
}

// Reads the model, the program and its files into the system's cache before a run of a pair. So
// neither base nor candidate waits for the disk. Notes what does not fit into memory.
void EngineCall::read_inputs() {
  if (!step_.pair) return;
  const auto available = effects_.load.memory_available();
  std::uint64_t bytes_left = available ? static_cast<std::uint64_t>(*available) : UINT64_MAX;
  std::set<std::string> seen_paths{""};
  // Reads files that were not read before. Returns false if they do not fit into memory together.
  const auto read_if_room = [&](std::vector<std::string> paths) {
    std::erase_if(paths, [&](const std::string& path) { return !seen_paths.insert(path).second; });
    std::uint64_t bytes = 0;
    for (const std::string& path : paths) bytes += effects_.files.size(path).value_or(0);
    if (bytes > bytes_left) return false;
    bytes_left -= bytes;
    for (const std::string& path : paths) effects_.read_into_cache(path);
    return true;
  };
  is_too_large_ = !read_if_room(model_files(effects_.files, cell_.model));
  for (const std::string& path : {cell_.program, cell_.prompt_file}) {
    if (seen_paths.insert(path).second) effects_.read_into_cache(path);
  }
  const bool has_libraries = read_if_room(find_libraries(effects_.files, cell_.program));
  const bool has_inputs = read_if_room(find_named_files(effects_.files, line(""), cell_.folder));
  has_large_inputs_ = !has_libraries || !has_inputs;
}

// Fills `spec` for a start: the engine directly, or through the container's runtime. `published` is
// the port that the container publishes, "" for none.
Result<void> EngineCall::prepare(const std::string& port, const std::string& published) {
  read_inputs();
  config::CommandLine command = line(port);
  if (container_ == nullptr) {
    spec = {};
    spec.argv = std::move(command.argv);
    spec.folder = cell_.folder;
    sys::EnvironmentList inherited = sys::own_environment();
    for (auto& [name, value] : inherited) value = look_up(cell_.moved_env, name, value);
    spec.env.assign(cell_.moved_env.begin(), cell_.moved_env.end());
    for (auto& variable : merge_environment(inherited, command.env, probe_env_))
      spec.env.push_back(std::move(variable));
    spec.unset = probes_own(sys::own_environment());  // `env` is set afterwards
    spec.passed_variables = passed_variables(cell_);
    spec.watched = watched_folder();
    sys::EnvironmentList needed = spec.env;
    std::erase_if(needed,
                  [&](const auto& variable) { return !probe_env_.contains(variable.first); });
    if (cell_.twin) spec.needed_with_gpu = needed;
    if (step_.counts == profile::Counts::python) spec.needed_with_python = std::move(needed);
    return {};
  }
  folders_ = {root_, out(), attaches_probes() ? probes() : "", published};
  name_ = "weir-" + short_hash(fmt::format("{} {} {}", root_, port, effects_.clock.now()));
  if (has_own_environment(*container_)) {
    // The engine may run as any user inside; only weir's user can reach these folders outside.
    constexpr unsigned k_owner_only = 0700, k_all_users = 0777;
    WEIR_CHECK(effects_.files.set_mode(folders_.root, k_owner_only));
    for (const std::string& folder : {folders_.out, folders_.counts}) {
      if (!folder.empty()) WEIR_CHECK(effects_.files.set_mode(folder, k_all_users));
    }
  }
  const ContainerInputs inputs = make_container_inputs(cell_, folders_, effects_.probing.folder(),
                                                       name_, command.env, probe_env_);
  id_file_ = inputs.id_file;
  (void)effects_.files.remove(id_file_);  // left by an earlier start, it would refuse this one
  WEIR_TRY(spec, container_command(container_->runtime, command.argv, inputs));
  spec.folder = cell_.folder;
  return {};
}

// Returns the folder to watch. Times that are judged are not watched, nor what is counted from
// outside.
std::optional<sys::WatchedFolder> EngineCall::watched_folder() const {
  const bool is_judged_time = step_.pass == profile::Pass::timed && step_.pair != 0;
  if (!cell_.watched || is_judged_time || step_.is_counted_apart()) return std::nullopt;
  sys::WatchedFolder watched = *cell_.watched;
  for (const std::string& folder : {root_, effects_.probing.folder()})
    watched.except.push_back(sys::follow_links(folder));
  return watched;
}

// Returns why the counts of one of the engine's processes may be missing; nullopt if none may.
// Either the folder of the probes' files was removed meanwhile, or a process used the device twin
// (weir's simulated GPU) without the Vulkan probe: the twin then leaves a mark file there.
std::optional<std::string> EngineCall::find_lost_counts() const {
  if (const auto removed = counts_watch_.find_removed()) {
    return fmt::format(
        "a process of it left no record: {}, where a probe counts, was removed, renamed or "
        "replaced, so that its work is in no count",
        text::printable(*removed));
  }
  if (!attaches_probes() || !cell_.twin || !holds(cell_.probes, "vulkan")) return std::nullopt;
  const auto marks_of_uncounted_processes =
      probes::list_files(effects_.files, probes(), WEIR_PROBE_UNCOUNTED, WEIR_PROBE_SUFFIX);
  if (!marks_of_uncounted_processes || marks_of_uncounted_processes->empty()) return std::nullopt;
  return "a process of it used the device twin past the probe, whose Vulkan layer was turned off "
         "(VK_LOADER_LAYERS_DISABLE), so that its work is in no count: let all processes inherit "
         "the engine's environment";
}

// Returns why a process does not count as base or candidate: its counts were lost, or it opened
// code of the other's folder. Nullopt if it counts.
std::optional<std::string> EngineCall::wrong_code_reason(const sys::Finished& finished) const {
  if (auto lost = find_lost_counts()) return lost;
  if (!finished.gpu_library.empty()) {
    return fmt::format(
        "a process of it opened {} without the variables of the probes (WEIR_PROBE_DIR), so that "
        "its work is in no count: let all processes inherit the engine's environment",
        text::printable(finished.gpu_library));
  }
  if (finished.has_unprobed_python) {
    return "a process of it ran Python without the variables of the probes (WEIR_PROBE_DIR, "
           "LD_PRELOAD), so that its calls are in no count: let all processes inherit the engine's "
           "environment";
  }
  std::vector<std::string> files;
  for (const std::string& path : finished.opened.value_or(std::vector<std::string>())) {
    const auto name = sys::relative_path(path, spec.watched->folder);
    if (name && (sys::is_program(effects_.files, path) || sys::is_module(path)))
      files.push_back(text::printable(*name));
  }
  if (files.empty()) return std::nullopt;
  constexpr std::size_t k_max_files = 5;
  if (sys::is_python_environment(effects_.files, spec.watched->folder)) {
    return fmt::format(
        "opened an installed copy of what the change edits, not the files of the work tree: {} in "
        "{}; install the package again (pip install .), or let \"build:\" make an environment in "
        "each checkout",
        verdict::list_some(files, k_max_files), text::printable(spec.watched->folder));
  }
  if (files.front().find("/site-packages/") != std::string::npos) {
    return fmt::format(
        "opened an installed copy of what the change edits, in the virtual environment that both "
        "sides share: {}; so neither side runs its own files: let \"build:\" make the environment "
        "in each checkout (build: [uv, sync])",
        verdict::list_some(files, k_max_files));
  }
  return fmt::format(
      "opened code of the work tree, where the candidate's is: {}; let \"build:\" make it in the "
      "base's checkout, or move it out of the work tree (PATH, an installed wrapper, or a package "
      "installed with -e may lead there)",
      verdict::list_some(files, k_max_files));
}

std::string EngineCall::end_leftovers(const Result<sys::Finished>& finished) const {
  if (container_ == nullptr) return "";
  return Leftovers{effects_.processes, effects_.files, container_->runtime,
                   cell_.program,      name_,          id_file_}
      .end(finished);
}

// Copies how the process ended and what it used (seconds, bytes, page faults) into the record. A
// container's runtime says nothing of the engine in it, so its figures are left out.
void EngineCall::copy_outcome(RunRecord& record, const sys::Finished& finished) const {
  record.ended = static_cast<Ended>(finished.ended);
  record.exit_code = finished.exit_code;
  record.signal = finished.signal;
  record.wall_seconds = finished.wall_seconds;
  record.cpu_seconds = finished.cpu_seconds;
  record.peak_rss_bytes = finished.peak_rss_bytes;
  record.peak_rss_bound = finished.peak_rss_bound;
  if (spec.watched && !finished.opened && finished.ended != sys::HowEnded::not_started) {
    record.warnings.emplace_back(k_not_watched);
  }
  if (is_too_large_) record.warnings.emplace_back(k_not_cached);
  if (has_large_inputs_) record.warnings.emplace_back(k_inputs_not_cached);
  if (const auto& usage = finished.usage) {
    record.machine.major_faults = usage->major_faults;
    if (cell_.host && record.pass == profile::Pass::timed) {
      record.system_usage = {usage->waits, usage->preemptions, usage->minor_faults,
                             usage->major_faults};
    }
  }
  if (container_ != nullptr) {
    // These figures are of docker, podman or srun, not of the engine.
    record.cpu_seconds.reset();
    record.peak_rss_bytes.reset();
    record.peak_rss_bound.reset();
    record.machine.major_faults.reset();
  } else if (finished.left_behind > 0) {
    record.warnings.push_back(fmt::format("the engine left {} running, which weir ended",
                                          finished.left_behind == 1
                                              ? std::string("a process")
                                              : fmt::format("{} processes", finished.left_behind)));
  }
}

// Returns why the process measures nothing; nullopt if it ended as it should.
std::optional<std::string> EngineCall::failure(const sys::Finished& finished) const {
  if (auto why = wrong_code_reason(finished)) return why;
  const auto* engine = cell_.cell.engine;
  if (engine != nullptr && finished.ended == sys::HowEnded::exited &&
      holds(engine->ok_exit_codes, finished.exit_code)) {
    return std::nullopt;
  }
  auto reason_text = process_failure(finished, spec);
  if (engine != nullptr && finished.ended == sys::HowEnded::timed_out) {
    *reason_text += timeout_hint(*engine);
  }
  if (!reason_text || container_ == nullptr || finished.ended != sys::HowEnded::exited)
    return reason_text;
  // As in shells, an exit code above 128 is a signal.
  constexpr int k_signal_offset = 128, k_last_signal = 64;
  const int signal = finished.exit_code - k_signal_offset;
  if (signal > 0 && signal <= k_last_signal) return describe_signal(signal);
  return *reason_text + describe_exit_code(container_->runtime, finished.exit_code);
}

}  // namespace weir::run
