#include "gate/publish/target.hpp"

#include <algorithm>

#include "gate/base/encode.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/answers.hpp"

namespace weir::publish {
namespace {

bool alike(std::string_view a, std::string_view b) { return text::lower(a) == text::lower(b); }

// Numbers of the pull requests of `list` whose head is what `event` measured.
std::vector<std::int64_t> measured_pulls(const Json& list, const Event& event) {
  std::vector<std::int64_t> numbers;
  for (const Json& pull : list) {
    const Json& head = below(pull, "head");
    const std::string head_repository = text_in(below(head, "repo"), "full_name");
    const bool same =
        text_in(pull, "state") == "open" && alike(text_in(head, "sha"), event.sha) &&
        text_in(head, "ref") == event.head->branch &&
        alike(head_repository, event.head->repository) &&
        alike(text_in(below(below(pull, "base"), "repo"), "full_name"), event.repository);
    const std::int64_t number = number_in(pull, "number");
    if (same && number > 0 && std::find(numbers.begin(), numbers.end(), number) == numbers.end()) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

Result<void> find_pull(Api& api, Event& event, std::vector<std::string>& notes) {
  constexpr std::size_t k_most = 300;
  const std::string owner = event.head->repository.substr(0, event.head->repository.find('/'));
  // The second knows a fork's branches, which the first may not; each alone may lag behind.
  const std::string paths[] = {
      fmt::format("/repos/{}/commits/{}/pulls", event.repository, event.sha),
      fmt::format("/repos/{}/pulls?state=open&head={}", event.repository,
                  percent_encoded(owner + ":" + event.head->branch))};
  std::vector<std::int64_t> numbers;
  std::optional<Error> problem;
  for (const std::string& path : paths) {
    const auto list = api.list(path, k_most);
    if (list) numbers = measured_pulls(*list, event);
    if (!list && !problem) problem = list.error();
    if (!numbers.empty()) break;
  }
  if (numbers.size() == 1) {
    event.pull_request = numbers.front();
    return {};
  }
  if (numbers.empty() && problem) {
    return tl::unexpected(with_context("looking for the pull request", *problem));
  }
  const std::string branch = text::printable(event.head->branch);
  notes.push_back(
      numbers.empty()
          ? fmt::format("no open pull request has {} of {} at {} any more: no comment", branch,
                        event.head->repository, event.sha.substr(0, 7))
          : fmt::format("{} pull requests have {} of {}: no comment; name one with --pr",
                        numbers.size(), branch, event.head->repository));
  return {};
}

Result<void> find_head(Api& api, Event& event) {
  const std::string path = fmt::format("/repos/{}/pulls/{}", event.repository, *event.pull_request);
  WEIR_TRY(const ApiResponse answer, api.call({.method = "GET", .path = path}));
  if (!fine(answer)) {
    return fail(Code::unavailable, "pull request {} of {}: {}", *event.pull_request,
                event.repository, refusal(answer));
  }
  const std::string sha = text_in(below(answer.body, "head"), "sha");
  if (!is_sha(sha)) {
    return fail(Code::data, "pull request {} of {}: head.sha is no commit", *event.pull_request,
                event.repository);
  }
  event.sha = text::lower(sha);
  return {};
}

}  // namespace

std::string run_url_of(const std::string& server_url, const std::string& repository,
                       const RunNumber& run) {
  if (!run.known() || server_url.empty() || repository.empty()) return "";
  return fmt::format("{}/{}/actions/runs/{}/attempts/{}", server_url, repository, run.id,
                     run.attempt);
}

RunNumber run_of_url(std::string_view url, const std::string& repository) {
  const std::string before = fmt::format("/{}/actions/runs/", repository);
  const std::size_t start = text::lower(url).find(text::lower(before));
  if (start == std::string_view::npos) return {};
  const std::vector<std::string> parts = text::split(url.substr(start + before.size()), '/');
  const auto id = text::to_int(parts[0]);
  if (!id || *id <= 0) return {};
  const auto attempt = parts.size() == 3 && parts[1] == "attempts" ? text::to_int(parts[2])
                                                                   : std::optional<long long>(1);
  return {*id, attempt && *attempt > 0 ? *attempt : 1};
}

Result<void> look_up(Api& api, Event& event, std::vector<std::string>& notes) {
  if (event.pull_request && event.sha.empty()) return find_head(api, event);
  if (!event.pull_request && event.head && !event.sha.empty()) {
    return find_pull(api, event, notes);
  }
  return {};
}

}  // namespace weir::publish
