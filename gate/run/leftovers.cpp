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
    // Docker's own failure: where it lost the daemon, the engine goes on.
    may_be_left = !by_slurm && finished->exit_code == k_runtime_failed;
  }
  if (!may_be_left) return "";
  return by_slurm ? end_steps() : end_containers();
}

std::optional<std::string> Leftovers::asked(std::vector<std::string> argv) const {
  // A stop that was requested already must not keep what it stops from being ended.
  const sys::Stop never;
  sys::ProcessSpec question;
  question.argv = std::move(argv);
  question.timeout_seconds = k_patience_seconds;
  const auto finished = processes.run(question, never);
  if (!finished || finished->ended != sys::HowEnded::exited || finished->exit_code != 0) {
    return std::nullopt;
  }
  return finished->out;
}

bool Leftovers::removed(const std::string& id) const {
  const std::vector<std::string> remove{program, "rm", "--force", "--volumes", id};
  if (runtime == Runtime::podman) {
    // Podman waits ten seconds for an engine that it asks to end. Before 4.0 it cannot be told not
    // to.
    std::vector<std::string> at_once = remove;
    at_once.insert(at_once.end() - 1, "--time=0");
    if (asked(at_once)) return true;
  }
  if (asked(remove)) return true;
  // One that "--rm" removed meanwhile is as good as ended; only then is it not listed.
  const auto left = asked({program, "ps", "--all", "--quiet", "--no-trunc"});
  return left && left->find(id) == std::string::npos;
}

std::string Leftovers::end_containers() const {
  constexpr std::uint64_t k_longest = 256;
  const auto text = files.read(id_file, k_longest);
  std::vector<std::string> ids;
  if (std::string id(text::trim(text.value_or(""))); is_id(id)) {
    ids.push_back(std::move(id));
  } else {
    // Ended between the making of a container and the writing of its id, or none was made.
    const auto listed =
        asked({program, "ps", "--all", "--quiet", "--no-trunc", "--filter=label=weir=" + name});
    if (!listed) {
      return fmt::format(
          "{} could not be asked whether it left a container (it would have the label weir={})",
          config::to_string(runtime), name);
    }
    for (const std::string& line : text::lines(*listed)) {
      if (is_id(text::trim(line))) ids.emplace_back(text::trim(line));
    }
  }
  std::erase_if(ids, [&](const std::string& id) { return removed(id); });
  if (ids.empty()) return "";
  return fmt::format("the container {} could not be removed", ids.front().substr(0, 12));
}

// Slurm's other programs lie where srun does.
std::string Leftovers::end_steps() const {
  const std::string folder = sys::folder_of(program);
  const std::string scancel = sys::join_path(folder, "scancel");
  const auto steps =
      asked({sys::join_path(folder, "squeue"), "--me", "--steps", "--noheader", "--format=%i %j"});
  bool all = steps.has_value();
  for (const std::string& step : steps_named(steps.value_or(""), name)) {
    all = asked({scancel, step}) && all;
  }
  all = asked({scancel, "--quiet", "--name=" + name}) && all;
  return all ? "" : "Slurm could not be asked to end the step " + name;
}

}  // namespace weir::run
