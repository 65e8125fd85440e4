// Ends containers and Slurm steps that a runtime may have left.
#include "gate/run/leftovers.hpp"

#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/run/container.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

using config::Runtime;

constexpr double k_patience_seconds = 30;

bool is_id(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

}  // namespace

std::string Leftovers::end(const Result<sys::Finished>& finished) const {
  const bool by_slurm = runtime == Runtime::srun;
  bool may_be_left = true;
  if (finished && finished->ended == sys::HowEnded::not_started) may_be_left = false;
  if (finished && finished->ended == sys::HowEnded::exited) {
    // Docker itself failed: if it only lost its daemon, the engine goes on.
    may_be_left = !by_slurm && finished->exit_code == k_runtime_failed;
  }
  if (!may_be_left) return "";
  return by_slurm ? end_steps() : end_containers();
}

// Runs a command of the container's runtime. Returns its output; nullopt if it failed.
std::optional<std::string> Leftovers::run_command(std::vector<std::string> argv) const {
  // We clean up after a stop too, so don't pass the caller's stop on.
  const sys::Stop never;
  sys::ProcessSpec spec;
  spec.argv = std::move(argv);
  spec.timeout_seconds = k_patience_seconds;
  const auto finished = processes.run(spec, never);
  if (!finished || finished->ended != sys::HowEnded::exited || finished->exit_code != 0) {
    return std::nullopt;
  }
  return finished->out;
}

// Removes a container. Returns true if it is gone, whoever removed it.
bool Leftovers::remove_container(const std::string& id) const {
  const std::vector<std::string> command{program, "rm", "--force", "--volumes", id};
  if (runtime == Runtime::podman) {
    // Podman gives an engine ten seconds to end; before 4.0 it has no option to change that.
    std::vector<std::string> command_now = command;
    command_now.insert(command_now.end() - 1, "--time=0");
    if (run_command(command_now)) return true;
  }
  if (run_command(command)) return true;
  // A container that "--rm" has removed meanwhile is gone too: then it is not listed.
  const auto containers = run_command({program, "ps", "--all", "--quiet", "--no-trunc"});
  return containers && containers->find(id) == std::string::npos;
}

// Removes the containers that this start left, by id file or label. Returns a warning if one may
// still run; "" if none does.
std::string Leftovers::end_containers() const {
  constexpr std::uint64_t k_max_id_bytes = 256;
  const auto text = files.read(id_file, k_max_id_bytes);
  std::vector<std::string> ids;
  if (std::string id(text::trim(text.value_or(""))); is_id(id)) {
    ids.push_back(std::move(id));
  } else {
    // No id was written: no container was made, or the runtime ended in between.
    const auto listed = run_command(
        {program, "ps", "--all", "--quiet", "--no-trunc", "--filter=label=weir=" + name});
    if (!listed) {
      return fmt::format(
          "{} could not be asked whether it left a container (it would have the label weir={})",
          config::to_string(runtime), name);
    }
    for (const std::string& line : text::lines(*listed)) {
      if (is_id(text::trim(line))) ids.emplace_back(text::trim(line));
    }
  }
  std::erase_if(ids, [&](const std::string& id) { return remove_container(id); });
  if (ids.empty()) return "";
  return fmt::format("the container {} could not be removed", ids.front().substr(0, 12));
}

// Ends the Slurm steps of this name with scancel, which lies beside srun. Returns a warning if
// Slurm could not be asked; "" if all went well.
std::string Leftovers::end_steps() const {
  const std::string folder = sys::folder_of(program);
  const std::string scancel = sys::join_path(folder, "scancel");
  const auto steps = run_command(
      {sys::join_path(folder, "squeue"), "--me", "--steps", "--noheader", "--format=%i %j"});
  bool all_succeeded = steps.has_value();
  for (const std::string& step : parse_step_ids(steps.value_or(""), name)) {
    all_succeeded = run_command({scancel, step}) && all_succeeded;
  }
  all_succeeded = run_command({scancel, "--quiet", "--name=" + name}) && all_succeeded;
  return all_succeeded ? "" : "Slurm could not be asked to end the step " + name;
}

}  // namespace weir::run
