#include "gate/app/allowed.hpp"

#include "gate/app/repository.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/event.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

constexpr std::uint64_t k_largest_file = std::uint64_t{8} << 20;

// The pull request that a CI system builds, and its head.
publish::Event event_here(const sys::Files& files) {
  const auto value = [](const char* name) { return sys::environment_value(name).value_or(""); };
  const std::string path = value("GITHUB_EVENT_PATH");
  if (path.empty()) return {};
  const auto text = files.read(path, publish::k_largest_event);
  if (!text) return {};
  publish::Surroundings here;
  here.event_name = value("GITHUB_EVENT_NAME");
  here.repository = value("GITHUB_REPOSITORY");
  return publish::read_event(*text, here, path).value_or(publish::Event{});
}

// Of a work tree: HEAD, or of a merge commit made for the run what was merged.
Result<std::string> head_here(const source::Git& git) {
  WEIR_TRY(const std::optional<std::string> head, git.commit("HEAD"));
  if (!head) return std::string();
  if (!sys::environment_value("GITHUB_REF").value_or("").ends_with("/merge")) return *head;
  WEIR_TRY(const std::vector<std::string> parents, git.parents(*head));
  return parents.size() == 2 ? parents[1] : *head;
}

}  // namespace

Result<std::vector<verdict::Allowance>> allowances_of(const source::Git& git,
                                                      const std::string& commit,
                                                      std::int64_t pull_request) {
  const std::string path = verdict::allowance_path(pull_request);
  WEIR_TRY(const std::optional<std::string> text,
           source::file_of(git, commit, path, k_largest_file));
  if (!text) return std::vector<verdict::Allowance>();
  return verdict::parse_allowances(*text, pull_request).map_error([&](Error error) {
    return with_context(fmt::format("{} of {}", path, source::short_commit(commit)),
                        std::move(error));
  });
}

Result<std::shared_ptr<const Allowed>> read_allowed(const AllowedWanted& wanted,
                                                    const CommonOptions& options,
                                                    const sys::Files& files) {
  if (!wanted.ref) {
    if (!wanted.pull_request) return std::shared_ptr<const Allowed>();
    return fail(Code::usage, "--pr is for --allowances-ref: whose allowances hold");
  }
  auto allowed = std::make_shared<Allowed>();
  const publish::Event event = event_here(files);
  const auto number = wanted.pull_request ? wanted.pull_request : event.pull_request;
  if (!number) {
    allowed->notes.emplace_back("nothing is allowed here: no pull request is known (--pr N)");
    return allowed;
  }
  WEIR_TRY(const auto repository,
           Repository::around(sys::absolute(sys::folder_of(options.config))));
  allowed->pull_request = *number;
  allowed->today = sys::date_of(sys::RealClock().now());
  allowed->head = event.pull_request == number ? event.sha : "";
  if (allowed->head.empty()) {
    WEIR_TRY(allowed->head, head_here(repository->git()));
  }
  WEIR_TRY(const std::optional<std::string> commit, repository->git().commit(*wanted.ref));
  if (!commit) {
    allowed->notes.push_back(
        fmt::format("nothing is allowed here: {} is not known", text::printable(*wanted.ref)));
    return allowed;
  }
  WEIR_TRY(allowed->list, allowances_of(repository->git(), *commit, *number));
  return allowed;
}

Json to_json(const Allowed& allowed) {
  return {{"pull_request", allowed.pull_request},
          {"head", allowed.head},
          {"today", allowed.today},
          {"notes", allowed.notes},
          {"list", verdict::to_text(allowed.pull_request, allowed.list)}};
}

Result<Allowed> allowed_from_json(const Json& json) {
  Allowed allowed;
  JsonReader read(json, "allowances");
  allowed.pull_request = read.integer("pull_request");
  allowed.head = read.string("head");
  allowed.today = read.string("today");
  allowed.notes = read.strings("notes");
  const std::string list = read.string("list");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  WEIR_TRY(allowed.list, verdict::parse_allowances(list, allowed.pull_request));
  return allowed;
}

}  // namespace weir::app
