#include "gate/app/commit_here.hpp"

#include "gate/app/repository.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {
namespace {

// CI systems check out commits, not branches, and say in variables of theirs which branch it is.
std::optional<std::string> branch_of_ci() {
  for (const char* name :
       {"GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH"}) {
    if (auto branch = sys::environment_value(name); branch && !branch->empty()) return branch;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CommitHere> commit_here(const std::string& config) {
  const auto repository = Repository::around(sys::absolute(sys::folder_of(config)));
  if (!repository) return std::nullopt;
  const auto head = (*repository)->git().head();
  if (!head || !*head) return std::nullopt;
  const auto dirty = (*repository)->git().dirty();
  return CommitHere{(*head)->name, (*head)->branch ? (*head)->branch : branch_of_ci(),
                    (*head)->time, dirty.value_or(false)};
}

Json to_json(const CommitHere& here) {
  Json json{{"name", here.commit}, {"time", here.time}, {"dirty", here.dirty}};
  if (here.branch) json["branch"] = *here.branch;
  return json;
}

std::optional<CommitHere> commit_here_from_json(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  JsonReader read(json, "commit");
  CommitHere here;
  here.commit = read.string("name");
  here.branch = read.optional_string("branch");
  here.time = read.number("time");
  here.dirty = read.optional_boolean("dirty").value_or(false);
  return read.problem() ? std::nullopt : std::optional(std::move(here));
}

}  // namespace weir::app
