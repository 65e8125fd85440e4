// weir post: posts a verdict to a pull request and its commit on GitHub.
#include "gate/flow/post.hpp"

#include "gate/base/text.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/reports.hpp"
#include "gate/publish/api.hpp"
#include "gate/publish/url.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {

// --- access to the API: its address and its token

std::string without_slash(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

Result<std::string> github_api_url(const Job& job, const std::string& option) {
  std::string url = option.empty() ? job.variable("GITHUB_API_URL") : option;
  if (url.empty()) return std::string("https://api.github.com");
  url = without_slash(std::move(url));
  const auto parsed = publish::parse_url(url);
  if (!parsed || parsed->target.find('?') != std::string::npos) {
    return fail(Code::usage, "--api \"{}\": no https address (GitHub Enterprise: {})", url,
                "https://HOST/api/v3");
  }
  return url;
}

Result<std::string> github_repository(const Job& job, const std::string& option) {
  std::string name = option.empty() ? job.variable("GITHUB_REPOSITORY") : option;
  if (publish::is_repository(name)) return name;
  if (!option.empty()) return fail(Code::usage, "--repo \"{}\": no OWNER/NAME", option);
  return fail(Code::usage, "where to? Outside of GitHub's runners --repo OWNER/NAME says it");
}

// Returns the token from `file` or from the environment. Fails with Code::usage if there is none;
// `without` says what works without it.
Result<Secret> github_token(const Job& job, const std::string& file, const std::string& without) {
  if (!file.empty()) {
    WEIR_TRY(const std::string text, job.files().read(file, 64 << 10));
    const std::string token(text::trim(text));
    if (token.empty()) return fail(Code::usage, "{}: no token in it", file);
    return Secret(token);
  }
  for (const char* name : {"WEIR_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"}) {
    const std::string value(text::trim(job.variable(name)));
    if (!value.empty()) return Secret(value);
  }
  return fail(Code::usage,
              "this needs a token: in WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN, or in a file that "
              "--token-file names ({})",
              without);
}

Result<std::unique_ptr<publish::GithubApi>> github_api(sys::World& world,
                                                       publish::GithubSettings settings,
                                                       const sys::Stop& stop) {
  settings.version = k_version;
  WEIR_TRY(publish::GithubApi api,
           publish::GithubApi::make(std::move(settings),
                                    {world.http, world.clock, world.pause, world.coin, stop}));
  return std::make_unique<publish::GithubApi>(std::move(api));
}

// Makes access to GitHub's API with a token and a time limit. Fails with Code::usage for bad
// options.
Result<std::unique_ptr<Github>> Github::open(const Job& job, const GithubOptions& options,
                                             const std::string& without) {
  std::unique_ptr<Github> github(new Github(job.world));
  publish::GithubSettings settings;
  WEIR_TRY(settings.base_url, github_api_url(job, options.api_url));
  WEIR_TRY(settings.token, github_token(job, options.token_file, without));
  WEIR_TRY(github->limit_seconds_, unit::parse_duration_seconds(options.time_limit));
  github->masker_.add(settings.token);
  settings.say = [masker = github->masker_, &job](const std::string& line) {
    job.log("weir: " + masker.mask(text::printable(line)));
  };
  settings.total_seconds = github->limit_seconds_;
  // Leaves time to find out what became of a request that got no answer.
  settings.each.total_seconds = std::min(settings.each.total_seconds, github->limit_seconds_ / 4);
  WEIR_TRY(github->api_, github_api(job.world, std::move(settings), github->stop()));
  return github;
}

publish::Wait Github::wait() const {
  return [this](double seconds) { (void)world_.pause.wait(seconds, stop()); };
}

// --- the verdict and where it goes

namespace {

// Fails if --repo, --sha or --pr is malformed.
Result<void> check_options(const PostOptions& options) {
  if (!options.repository.empty() && !publish::is_repository(options.repository)) {
    return fail(Code::usage, "--repo \"{}\": no OWNER/NAME", options.repository);
  }
  if (!options.sha.empty() && !publish::is_sha(options.sha)) {
    return fail(Code::usage, "--sha \"{}\": no commit (40 or 64 hex digits)", options.sha);
  }
  if (options.pull_request && *options.pull_request <= 0) {
    return fail(Code::usage, "--pr {}: pull requests are counted from 1", *options.pull_request);
  }
  return {};
}

// Reads the event of a CI job. An event file given by hand must not mix with the environment's
// event, so the environment's variables are dropped.
Result<publish::Event> read_event(const Job& job, const PostOptions& options) {
  publish::CiVariables surroundings{.event_name = job.variable("GITHUB_EVENT_NAME"),
                                    .repository = job.variable("GITHUB_REPOSITORY"),
                                    .sha = job.variable("GITHUB_SHA"),
                                    .run_id = job.variable("GITHUB_RUN_ID"),
                                    .run_attempt = job.variable("GITHUB_RUN_ATTEMPT")};
  std::string file = job.variable("GITHUB_EVENT_PATH");
  if (!options.event_file.empty() && options.event_file != file) {
    file = options.event_file;
    surroundings.event_name.clear();
    surroundings.repository.clear();
    surroundings.sha.clear();
  }
  if (file.empty()) return publish::read_event(std::nullopt, surroundings, "");
  WEIR_TRY(const std::string text, job.files().read(file, publish::k_largest_event));
  return publish::read_event(text, surroundings, file);
}

Result<std::string> find_verdict_file(const Job& job, const PostOptions& options) {
  std::string run = options.run;
  if (run.empty()) WEIR_TRY_SET(run, newest_run(job));
  return find_verdict(run, job.files());
}

// Returns the place to post to: the event, replaced by --repo, --pr and --sha. Fails with
// Code::usage if neither a commit nor a pull request is known.
Result<publish::Event> complete_event(const Job& job, const PostOptions& options) {
  WEIR_CHECK(check_options(options));
  WEIR_TRY(publish::Event event, read_event(job, options).map_error([](const Error& error) {
    return Error{Code::usage, error.message};
  }));
  if (!options.repository.empty() &&
      !text::equal_ignoring_case(options.repository, event.repository)) {
    // The event describes its own repository, so nothing of it holds for another.
    const publish::RunNumber run = event.run;
    event = {};
    event.run = run;
    event.repository = options.repository;
  }
  if (options.pull_request) {
    if (event.pull_request && event.pull_request != options.pull_request) event.sha.clear();
    if (event.pull_request != options.pull_request) event.base.clear();
    event.pull_request = options.pull_request;
    event.of_pull_request = true;
    event.head.reset();
  }
  if (!options.sha.empty()) event.sha = text::lower(options.sha);
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

// Returns the link to the CI run: --run-url, else made from GitHub's address and the event.
Result<std::string> find_run_url(const Job& job, const PostOptions& options,
                                 const publish::Event& event, const std::string& api_url) {
  if (!options.run_url.empty()) {
    if (!publish::parse_url(options.run_url)) {
      return fail(Code::usage, "--run-url \"{}\": no http or https address", options.run_url);
    }
    return options.run_url;
  }
  constexpr std::string_view k_enterprise = "/api/v3";
  std::string server = without_slash(job.variable("GITHUB_SERVER_URL"));
  if (server.empty() && api_url.ends_with(k_enterprise)) {
    server = api_url.substr(0, api_url.size() - k_enterprise.size());
  }
  if (server.empty()) server = "https://github.com";
  if (!publish::parse_url(server)) {
    return fail(Code::usage, "GITHUB_SERVER_URL \"{}\": no https address", server);
  }
  return publish::make_run_url(server, event.repository, event.run);
}

std::optional<verdict::Comment> parse_comment(const PostOptions& options) {
  return value_of(verdict::k_comments, options.comment);
}

// A verdict to post, or the message that there is none.
struct PostSource {
  std::optional<verdict::GateVerdict> gate;
  publish::MissingVerdict none;  // for a run without a verdict
};

// Reads the verdict to post. A CI run without one is posted as not measured; a wrong name is an
// error.
Result<PostSource> read_post_source(const Job& job, const PostOptions& options,
                                    const publish::Event& event, std::vector<std::string>& notes) {
  const auto file = find_verdict_file(job, options);
  auto gate = file.and_then([&](const auto& name) { return read_verdict(name, job.files()); });
  if (gate && options.judged_here) {
    // The run lies in a folder of this job: no reader of the post has that.
    gate->run.reset();
    gate->options.erase("--from");
  }
  if (gate) return PostSource{*std::move(gate), {}};
  // A CI run that left no verdict has to be reported; a mistyped name has not.
  if (!options.missing_verdict && !event.conclusion) return tl::unexpected(gate.error());
  if (!options.missing_verdict) {
    notes.push_back(fmt::format("not measured: {}", gate.error().message));
  }
  PostSource source{
      {},
      {options.missing_verdict.value_or(""), event.conclusion, event.sha, parse_comment(options)}};
  if (source.none.why.empty() && file) source.none.why = "what the run left is no verdict";
  return source;
}

// Fails with Code::usage if the verdict is of another commit than the one to post to.
Result<void> check_commit(publish::Api& api, const publish::Event& event,
                          const PostSource& source) {
  const bool are_known = source.gate && source.gate->commit && !event.sha.empty();
  return are_known ? publish::check_measured(api, event, *source.gate->commit) : Result<void>();
}

// Returns the texts of the comment, the check run and the status. `wrong_rules` is the reason if
// the verdict's rules are not its base's.
publish::Texts post_texts(const PostSource& source, const PostOptions& options,
                          const publish::Event& event, const std::string& wrong_rules) {
  report::MarkdownStyle style;
  style.verbs = report_hints();
  if (!event.run_url.empty()) style.run_url = event.run_url;
  if (!source.gate) return publish::missing_verdict_texts(source.none, style);
  return publish::texts_of(*source.gate, style,
                           {event.conclusion, event.from_fork, options.judged_here,
                            event.of_pull_request, wrong_rules, parse_comment(options)},
                           event, publish::gate_name(options.name));
}

// The outcome of posting: each part, and notes.
struct PostResult {
  publish::Target target;
  std::string gate;
  std::vector<publish::Part> parts;
  std::vector<std::string> notes;

  [[nodiscard]] bool failed() const {
    return std::ranges::count(parts, publish::Part::Outcome::failed, &publish::Part::outcome) > 0;
  }
};

std::string printable_line(const std::string& words) {
  return text::join(text::lines(words), "; ");
}

// Returns the outcome of posting as lines for people, one a part.
std::string result_text(const PostResult& result) {
  const publish::Target& target = result.target;
  std::string text = fmt::format("weir post  {}", target.repository);
  if (target.pull_request) text += fmt::format("#{}", *target.pull_request);
  if (!target.sha.empty()) text += "  " + text::short_commit(target.sha);
  if (result.gate != publish::k_default_gate) text += "  " + result.gate;
  text += "\n\n";
  for (const publish::Part& part : result.parts) {
    std::string line = fmt::format("{:<13}  {:<10}", part.name, publish::to_string(part.outcome));
    if (!part.reason.empty()) line += "  " + printable_line(part.reason);
    if (!part.url.empty()) line += "  " + part.url;
    text += std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
  }
  return text;
}

// Returns the outcome of posting as a weir.post/1 document.
Json result_json(const PostResult& result) {
  Json parts = Json::array();
  for (const publish::Part& part : result.parts) {
    Json json = {{"part", part.name}, {"outcome", publish::to_string(part.outcome)}};
    if (part.id > 0) json["id"] = part.id;
    if (!part.url.empty()) json["url"] = part.url;
    if (!part.reason.empty()) json["reason"] = part.reason;
    if (!part.warnings.empty()) json["warnings"] = part.warnings;
    parts.push_back(std::move(json));
  }
  const publish::Target& target = result.target;
  return {{"schema", "weir.post/1"},
          {"repository", target.repository},
          {"pull_request", target.pull_request ? Json(*target.pull_request) : Json()},
          {"sha", target.sha.empty() ? Json() : Json(target.sha)},
          {"gate", result.gate},
          {"run", {{"id", target.run.id}, {"attempt", target.run.attempt}}},
          {"parts", std::move(parts)},
          {"notes", result.notes},
          {"complete", !result.failed()}};
}

// Masks the token in all texts to post: an engine may have printed it.
publish::Texts mask_texts(publish::Texts texts, const Masker& masker) {
  const auto mask = [&](std::string& text) { text = masker.mask(text); };
  mask(texts.comment);
  mask(texts.check.title);
  mask(texts.check.summary);
  mask(texts.check.text);
  for (report::CheckAnnotation& annotation : texts.check.annotations) {
    mask(annotation.path);
    mask(annotation.title);
    mask(annotation.message);
  }
  mask(texts.status.description);
  return texts;
}

publish::PostOptions publish_options(const PostOptions& post_options) {
  publish::PostOptions options = post_options.parts;
  options.gate = publish::gate_name(post_options.name);
  options.app = post_options.access.app;
  return options;
}

// Returns the requests that posting would send, without sending any.
Result<Answer> rehearse(const Job& job, const PostOptions& options, const publish::Event& event,
                        const PostSource& source, const std::string& api_url,
                        std::vector<std::string> notes) {
  if (!event.pull_request && event.head) {
    notes.push_back("the pull request of this run would be asked for; --pr N names it here");
  }
  if (event.pull_request && event.sha.empty()) {
    notes.push_back("the head of the pull request would be asked for; --sha SHA names it here");
  }
  if (event.of_pull_request && event.base.empty()) {
    notes.push_back("the base of the pull request would be asked for: it stands in each name");
  }
  publish::Rehearsal rehearsal;
  if (const auto measured = check_commit(rehearsal, event, source); !measured) {
    if (!event.of_pull_request) return tl::unexpected(measured.error());
    notes.push_back(fmt::format("if commit {} merges the head would be asked",
                                text::short_commit(*source.gate->commit)));
  }
  const auto parts = publish::post(rehearsal, event, post_texts(source, options, event, ""),
                                   publish_options(options), [](double) {});
  for (const publish::Part& part : parts) {
    if (!part.reason.empty()) notes.push_back(fmt::format("no {}: {}", part.name, part.reason));
  }
  for (const std::string& note : notes) job.log("weir: " + text::printable(note));
  std::string text = fmt::format("{} would be sent to {}:\n",
                                 text::plural(rehearsal.sent().size(), "request"), api_url);
  for (const publish::ApiRequest& request : rehearsal.sent()) {
    text += fmt::format("\n{} {}{}\n{}\n", request.method, api_url, request.path,
                        dump_json(request.body, 1));
  }
  return Answer{text::printable(text), json_document(publish::to_json(rehearsal.sent(), api_url))};
}

// Posts the comment, the check run and the status, and returns the outcome of each. Fails with
// Code::usage if the verdict is of another commit than the one to post to.
Result<PostResult> post_all(const PostOptions& options, publish::Event& event,
                            const PostSource& source, double settle_seconds, const Github& github) {
  publish::Api& api = github.api();
  PostResult result;
  result.gate = publish::gate_name(options.name);
  publish::PostOptions parts = publish_options(options);
  parts.settle_seconds = settle_seconds;
  const auto resolved = publish::look_up(api, event, result.notes);
  result.target = event;
  WEIR_CHECK(check_commit(api, event, source));
  // If the place to post to cannot be found out, each part reports that.
  const auto add_failed_part = [&](const char* name, bool wanted) {
    if (!wanted) return;
    result.parts.push_back(
        {name, publish::Part::Outcome::failed, 0, "", resolved.error().message, {}});
  };
  if (!resolved) {
    add_failed_part("comment", parts.comment);
    parts.comment = false;
  }
  if (!resolved && event.sha.empty()) {
    add_failed_part("check run", parts.check);
    add_failed_part("commit status", parts.status);
    return result;
  }
  std::string wrong_rules;
  if (source.gate && source.gate->rules && !event.base.empty()) {
    wrong_rules = publish::why_not_rules_of_base(api, event, source.gate->rules->commit);
  }
  const publish::Texts texts =
      mask_texts(post_texts(source, options, event, wrong_rules), github.masker());
  const auto posted_parts = publish::post(api, event, texts, parts, github.wait());
  result.parts.insert(result.parts.end(), posted_parts.begin(), posted_parts.end());
  for (const publish::Part& part : result.parts) {
    for (const std::string& warning : part.warnings) {
      result.notes.push_back(fmt::format("{}: {}", part.name, printable_line(warning)));
    }
  }
  if (result.failed() && event.reads_only) {
    result.notes.emplace_back(
        "a pull request from a fork is given a token that may only read: post from a workflow_run "
        "workflow (docs/how-to/post.md)");
  }
  return result;
}

}  // namespace

// Posts the verdict of a run to GitHub, or shows with --dry-run what it would send.
Result<Answer> post(const Job& job, const PostOptions& options) {
  WEIR_TRY(const std::string api_url, github_api_url(job, options.access.api_url));
  WEIR_TRY(publish::Event event, complete_event(job, options));
  WEIR_TRY(event.run_url, find_run_url(job, options, event, api_url));
  std::vector<std::string> notes;
  WEIR_TRY(const PostSource source, read_post_source(job, options, event, notes));
  if (options.dry_run) return rehearse(job, options, event, source, api_url, notes);

  WEIR_TRY(const auto github,
           Github::open(job, options.access, "--dry-run posts nothing and needs none"));
  WEIR_TRY(const double settle, unit::parse_duration_seconds(options.settle));
  const Masker& masker = github->masker();
  WEIR_TRY(PostResult result, post_all(options, event, source,
                                       std::min(settle, github->limit_seconds() / 4), *github));
  result.notes.insert(result.notes.begin(), notes.begin(), notes.end());
  for (const std::string& note : result.notes) {
    job.log("weir: " + masker.mask(text::printable(note)));
  }
  ExitCode code = ExitCode::pass;
  if (options.fail && result.failed()) code = ExitCode::unmeasured;
  if (github->stop().requested()) code = ExitCode::interrupted;
  return Answer{masker.mask(text::printable(result_text(result))),
                masker.mask(dump_json(result_json(result), 1)) + "\n", code};
}

}  // namespace weir::flow
