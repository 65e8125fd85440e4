#include "gate/run/in_container.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/step_record.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

using config::Runtime;

constexpr double k_patience_seconds = 30;
// Asked to end, srun has Slurm kill the engine, and waits until that is done.
constexpr double k_slurm_seconds = 45;
// Podman leaves a process that puts things in order behind it.
constexpr double k_podman_seconds = 5;

std::string id_file_of(const CarriedPlace& place) { return place.root + "/container"; }

// The call's output; nothing when it did not end well.
std::optional<std::string> asked(const Effects& effects, std::vector<std::string> argv) {
  // A stop that was requested already must not keep what it stops from being ended.
  const sys::Stop never;
  sys::ProcessSpec spec;
  spec.argv = std::move(argv);
  spec.timeout_seconds = k_patience_seconds;
  const auto finished = effects.processes.run(spec, never);
  if (!finished || finished->ended != sys::HowEnded::exited || finished->exit_code != 0) {
    return std::nullopt;
  }
  return finished->out;
}

bool is_id(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(),
                                      [](unsigned char c) { return std::isxdigit(c) != 0; });
}

bool removed(const Effects& effects, const PreparedCell& cell, const std::string& id) {
  const std::vector<std::string> remove{cell.program, "rm", "--force", "--volumes", id};
  if (container_of(cell)->runtime == Runtime::podman) {
    // Podman waits ten seconds for an engine that it asks to end. Before 4.0 it can not be told not
    // to.
    std::vector<std::string> at_once = remove;
    at_once.insert(at_once.end() - 1, "--time=0");
    if (asked(effects, at_once)) return true;
  }
  if (asked(effects, remove)) return true;
  // One that "--rm" removed meanwhile is as good as ended; only then is it not listed.
  const auto left = asked(effects, {cell.program, "ps", "--all", "--quiet", "--no-trunc"});
  return left && left->find(id) == std::string::npos;
}

std::string end_containers(const Effects& effects, const PreparedCell& cell,
                           const CarriedPlace& place, const std::string& name) {
  constexpr std::uint64_t k_longest = 256;
  const auto text = effects.files.read(id_file_of(place), k_longest);
  std::vector<std::string> ids;
  if (std::string id(text::trim(text.value_or(""))); is_id(id)) {
    ids.push_back(std::move(id));
  } else {
    // Ended between the making of a container and the writing of its id, or none was made.
    const auto listed = asked(effects, {cell.program, "ps", "--all", "--quiet", "--no-trunc",
                                        "--filter=label=weir=" + name});
    if (!listed) {
      return fmt::format(
          "{} could not be asked whether it left a container (it would have the label weir={})",
          config::to_string(container_of(cell)->runtime), name);
    }
    for (const std::string& line : text::lines(*listed)) {
      if (is_id(text::trim(line))) ids.emplace_back(text::trim(line));
    }
  }
  std::erase_if(ids, [&](const std::string& id) { return removed(effects, cell, id); });
  if (ids.empty()) return "";
  return fmt::format("the container {} could not be removed", ids.front().substr(0, 12));
}

// Slurm's other programs lie where srun does.
std::string end_by_name(const Effects& effects, const PreparedCell& cell, const std::string& name) {
  const std::string folder = sys::folder_of(cell.program);
  const std::string scancel = sys::join_path(folder, "scancel");
  const auto steps = asked(effects, {sys::join_path(folder, "squeue"), "--me", "--steps",
                                     "--noheader", "--format=%i %j"});
  bool all = steps.has_value();
  for (const std::string& step : steps_named(steps.value_or(""), name)) {
    all = asked(effects, {scancel, step}) && all;
  }
  all = asked(effects, {scancel, "--quiet", "--name=" + name}) && all;
  return all ? "" : "Slurm could not be asked to end the step " + name;
}

}  // namespace

const config::ContainerSettings* container_of(const PreparedCell& cell) {
  const config::EngineSettings* engine = cell.cell.engine;
  return engine != nullptr && engine->container ? &*engine->container : nullptr;
}

bool has_own_environment(const config::ContainerSettings& container) {
  return container.runtime != Runtime::srun;
}

Carried carried_into(const PreparedCell& cell, const CarriedPlace& place, const std::string& probes,
                     const std::string& name, const config::Environment& line_env,
                     const config::Environment& probe_env) {
  Carried carried;
  const bool own = has_own_environment(*container_of(cell));
  for (auto& [variable, value] : merge_environment(
           own ? sys::EnvironmentList() : sys::own_environment(), line_env, probe_env)) {
    carried.env[variable] = value;
  }
  carried.mounts = mounts_of(cell);
  for (const std::string& folder : {place.out, place.counts}) {
    if (!folder.empty()) carried.mounts.push_back({folder, true});
  }
  if (!place.counts.empty() || cell.twin) carried.mounts.push_back({probes, false});
  carried.id_file = id_file_of(place);
  carried.port = place.port;
  carried.name = name;
  if (cell.cell.engine->server) carried.handed_on = cell.cell.engine->server->token_env;
  return carried;
}

Result<void> put_in_container(const Effects& effects, const PreparedCell& cell,
                              const CarriedPlace& place, const std::string& name,
                              const config::Environment& line_env,
                              const config::Environment& probe_env, sys::ProcessSpec& spec) {
  const config::ContainerSettings& container = *container_of(cell);
  if (has_own_environment(container)) {
    // The engine may be anybody inside; no one else comes by here.
    constexpr unsigned k_own = 0700, k_everybody = 0777;
    WEIR_CHECK(effects.files.set_mode(place.root, k_own));
    for (const std::string& folder : {place.out, place.counts}) {
      if (!folder.empty()) WEIR_CHECK(effects.files.set_mode(folder, k_everybody));
    }
  }
  const Carried carried =
      carried_into(cell, place, effects.probing.folder(), name, line_env, probe_env);
  (void)effects.files.remove(carried.id_file);  // of an earlier start, which would refuse this one
  WEIR_TRY(RuntimeCall call, carry_in(container.runtime, spec.argv, carried));
  spec.argv = std::move(call.argv);
  spec.env = std::move(call.env);
  spec.unset = std::move(call.unset);
  if (container.runtime == Runtime::podman) spec.settle_seconds = k_podman_seconds;
  if (container.runtime == Runtime::srun) spec.kill_grace_seconds = k_slurm_seconds;
  return {};
}

bool may_have_left(const PreparedCell& cell, const Result<sys::Finished>& finished) {
  if (!finished) return true;
  if (finished->ended == sys::HowEnded::not_started) return false;
  if (finished->ended != sys::HowEnded::exited) return true;
  // Docker's own failure: where it lost the daemon, the engine goes on.
  return container_of(cell)->runtime != Runtime::srun && finished->exit_code == k_runtime_failed;
}

std::string end_container(const Effects& effects, const PreparedCell& cell,
                          const CarriedPlace& place, const std::string& name) {
  return container_of(cell)->runtime == Runtime::srun ? end_by_name(effects, cell, name)
                                                      : end_containers(effects, cell, place, name);
}

void leave_out_runtimes_own(profile::RunRecord& record) {
  record.cpu_seconds.reset();
  record.peak_rss_bytes.reset();
  record.machine.major_faults.reset();
}

std::string failure_in_container(const PreparedCell& cell, const sys::Finished& finished,
                                 std::string failure) {
  if (finished.ended != sys::HowEnded::exited) return failure;
  constexpr int k_signals = 128, k_last_signal = 64;  // as shells say it
  const int signal = finished.exit_code - k_signals;
  if (signal > 0 && signal <= k_last_signal) return signal_words(signal);
  return failure + exit_words(container_of(cell)->runtime, finished.exit_code);
}

}  // namespace weir::run
