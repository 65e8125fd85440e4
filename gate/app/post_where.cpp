#include "gate/app/post_where.hpp"

#include "gate/app/judging.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/url.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {
namespace {

constexpr std::uint64_t k_largest_verdict = std::uint64_t{64} << 20;

std::string variable(const char* name) { return sys::environment_value(name).value_or(""); }

bool alike(std::string_view a, std::string_view b) { return text::lower(a) == text::lower(b); }

std::string without_slash(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

Result<void> check_words(const PostWords& words) {
  if (!words.repository.empty() && !publish::is_repository(words.repository)) {
    return fail(Code::usage, "--repo \"{}\": no OWNER/NAME", words.repository);
  }
  if (!words.sha.empty() && !publish::is_sha(words.sha)) {
    return fail(Code::usage, "--sha \"{}\": no commit (40 or 64 hex digits)", words.sha);
  }
  if (words.pull_request && *words.pull_request <= 0) {
    return fail(Code::usage, "--pr {}: pull requests are counted from 1", *words.pull_request);
  }
  return {};
}

// An event that is named by hand speaks for itself; the environment's is the runner's own, and the
// two have to agree.
Result<publish::Event> read_event(const PostWords& words, const sys::Files& files) {
  publish::Surroundings surroundings{.event_name = variable("GITHUB_EVENT_NAME"),
                                     .repository = variable("GITHUB_REPOSITORY"),
                                     .sha = variable("GITHUB_SHA"),
                                     .run_id = variable("GITHUB_RUN_ID"),
                                     .run_attempt = variable("GITHUB_RUN_ATTEMPT")};
  std::string file = variable("GITHUB_EVENT_PATH");
  if (!words.event_file.empty() && words.event_file != file) {
    file = words.event_file;
    surroundings.event_name.clear();
    surroundings.repository.clear();
    surroundings.sha.clear();
  }
  if (file.empty()) return publish::read_event(std::nullopt, surroundings, "");
  WEIR_TRY(const std::string text, files.read(file, publish::k_largest_event));
  return publish::read_event(text, surroundings, file);
}

struct Found {
  std::string file;
  std::optional<Error> missing;  // why there is none
};

Found find_verdict(const PostWords& words, const sys::Files& files) {
  std::string run = words.run;
  if (run.empty()) {
    auto newest = run::newest_run(files, words.common.out);
    if (!newest) return {"", newest.error()};
    run = *newest;
  }
  const bool folder = files.kind(run) == sys::Kind::folder;
  Found found{folder ? sys::join_path(run, "verdict.json") : run, std::nullopt};
  if (files.kind(found.file) != sys::Kind::file) {
    found.missing = Error{
        Code::usage,
        fmt::format("{}: there is no such file{}", found.file,
                    folder ? "\n  weir gate --from " + run + " judges that run" : std::string())};
  }
  return found;
}

Result<verdict::GateVerdict> read_verdict(const std::string& file, const sys::Files& files) {
  const auto in_file = [&](Error error) { return with_context(file, std::move(error)); };
  WEIR_TRY(const std::string text, files.read(file, k_largest_verdict));
  WEIR_TRY(const Json json, parse_json(text).map_error(in_file));
  return verdict::verdict_from_json(json).map_error(in_file);
}

}  // namespace

Result<std::string> api_url_of(const PostWords& words) {
  std::string url = words.api_url.empty() ? variable("GITHUB_API_URL") : words.api_url;
  if (url.empty()) return std::string("https://api.github.com");
  url = without_slash(std::move(url));
  const auto parsed = publish::parse_url(url);
  if (!parsed || parsed->target.find('?') != std::string::npos) {
    return fail(Code::usage, "--api \"{}\": no https address (GitHub Enterprise: {})", url,
                "https://HOST/api/v3");
  }
  return url;
}

Result<std::string> repository_of(const PostWords& words) {
  WEIR_CHECK(check_words(words));
  std::string name = words.repository.empty() ? variable("GITHUB_REPOSITORY") : words.repository;
  if (!publish::is_repository(name)) {
    return fail(Code::usage, "where to? Outside of GitHub's runners --repo OWNER/NAME says it");
  }
  return name;
}

Result<publish::Event> event_of(const PostWords& words, const sys::Files& files) {
  WEIR_CHECK(check_words(words));
  WEIR_TRY(publish::Event event, read_event(words, files).map_error([](Error error) {
    error.code = Code::usage;
    return error;
  }));
  if (!words.repository.empty() && !alike(words.repository, event.repository)) {
    // Nothing that the event says of its repository holds in another.
    const publish::RunNumber run = event.run;
    event = {};
    event.run = run;
    event.repository = words.repository;
  }
  if (words.pull_request) {
    if (event.pull_request && event.pull_request != words.pull_request) event.sha.clear();
    event.pull_request = words.pull_request;
    event.head.reset();
  }
  if (!words.sha.empty()) event.sha = text::lower(words.sha);
  if (event.repository.empty()) {
    return fail(Code::usage,
                "where to? Outside of GitHub's runners --repo OWNER/NAME says it, with --pr N for "
                "the comment and --sha SHA for the check run and the commit status");
  }
  if (event.sha.empty() && !event.pull_request) {
    return fail(Code::usage,
                "where to in {}? --pr N says it for the comment, --sha SHA for the check run and "
                "the commit status",
                event.repository);
  }
  return event;
}

Result<std::string> run_url_of(const PostWords& words, const publish::Event& event,
                               const std::string& api_url) {
  if (!words.run_url.empty()) {
    if (!publish::parse_url(words.run_url)) {
      return fail(Code::usage, "--run-url \"{}\": no http or https address", words.run_url);
    }
    return words.run_url;
  }
  constexpr std::string_view k_enterprise = "/api/v3";
  std::string server = without_slash(variable("GITHUB_SERVER_URL"));
  if (server.empty() && api_url.ends_with(k_enterprise)) {
    server = api_url.substr(0, api_url.size() - k_enterprise.size());
  }
  if (server.empty()) server = "https://github.com";
  if (!publish::parse_url(server)) {
    return fail(Code::usage, "GITHUB_SERVER_URL \"{}\": no https address", server);
  }
  return publish::run_url_of(server, event.repository, event.run);
}

Result<publish::Texts> texts_of(const PostWords& words, const publish::Event& event,
                                const std::string& run_url, const sys::Files& files,
                                std::vector<std::string>& notes) {
  report::MarkdownStyle style;
  style.verbs = report_hints();
  if (!run_url.empty()) style.run_url = run_url;
  const Found found = find_verdict(words, files);
  std::optional<Error> missing = found.missing;
  if (!missing) {
    const auto gate = read_verdict(found.file, files);
    if (gate) return publish::texts_of(*gate, style, event.conclusion);
    missing = gate.error();
  }
  // A workflow run that left no verdict is something to tell; a name that is typed wrong is not.
  if (!words.missing_verdict && !event.conclusion) return tl::unexpected(*missing);
  notes.push_back(fmt::format("not measured: {}", missing->message));
  publish::NotMeasured what{words.missing_verdict.value_or(""), event.conclusion, event.sha};
  if (what.why.empty() && !found.missing) what.why = "what the run left is no verdict";
  return publish::not_measured(what, style);
}

}  // namespace weir::app
