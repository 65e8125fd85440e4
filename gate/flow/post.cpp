#include "gate/flow/post.hpp"

#include "gate/base/text.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/reports.hpp"
#include "gate/publish/api.hpp"
#include "gate/publish/url.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {

// --- the API: where it is, and the token for it

std::string without_slash(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

Result<std::string> api_url_of(const Job& job, const std::string& given) {
  std::string url = given.empty() ? job.variable("GITHUB_API_URL") : given;
  if (url.empty()) return std::string("https://api.github.com");
  url = without_slash(std::move(url));
  const auto parsed = publish::parse_url(url);
  if (!parsed || parsed->target.find('?') != std::string::npos) {
    return fail(Code::usage, "--api \"{}\": no https address (GitHub Enterprise: {})", url,
                "https://HOST/api/v3");
  }
  return url;
}

Result<std::string> repository_of(const Job& job, const std::string& given) {
  std::string name = given.empty() ? job.variable("GITHUB_REPOSITORY") : given;
  if (publish::is_repository(name)) return name;
  if (!given.empty()) return fail(Code::usage, "--repo \"{}\": no OWNER/NAME", given);
  return fail(Code::usage, "where to? Outside of GitHub's runners --repo OWNER/NAME says it");
}

Result<Secret> token_of(const Job& job, const std::string& file, const std::string& without) {
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

Result<std::unique_ptr<Github>> Github::open(const Job& job, const GithubOptions& options,
                                             const std::string& without) {
  std::unique_ptr<Github> made(new Github(job.world));
  publish::GithubSettings settings;
  WEIR_TRY(settings.base_url, api_url_of(job, options.api_url));
  WEIR_TRY(settings.token, token_of(job, options.token_file, without));
  WEIR_TRY(made->limit_seconds_, unit::parse_duration_seconds(options.time_limit));
  made->masker_.add(settings.token);
  settings.say = [masker = made->masker_, &job](const std::string& line) {
    job.talk("weir: " + masker.mask(text::printable(line)));
  };
  settings.total_seconds = made->limit_seconds_;
  // So that after an answer that never comes there is time to look what became of the request.
  settings.each.total_seconds = std::min(settings.each.total_seconds, made->limit_seconds_ / 4);
  WEIR_TRY(made->api_, github_api(job.world, std::move(settings), made->stop()));
  return made;
}

publish::Wait Github::wait() const {
  return [this](double seconds) { (void)world_.pause.wait(seconds, stop()); };
}

// --- what is posted

namespace {

bool alike(std::string_view a, std::string_view b) { return text::lower(a) == text::lower(b); }

Result<void> check_words(const PostOptions& words) {
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
Result<publish::Event> read_event(const Job& job, const PostOptions& words) {
  publish::Surroundings surroundings{.event_name = job.variable("GITHUB_EVENT_NAME"),
                                     .repository = job.variable("GITHUB_REPOSITORY"),
                                     .sha = job.variable("GITHUB_SHA"),
                                     .run_id = job.variable("GITHUB_RUN_ID"),
                                     .run_attempt = job.variable("GITHUB_RUN_ATTEMPT")};
  std::string file = job.variable("GITHUB_EVENT_PATH");
  if (!words.event_file.empty() && words.event_file != file) {
    file = words.event_file;
    surroundings.event_name.clear();
    surroundings.repository.clear();
    surroundings.sha.clear();
  }
  if (file.empty()) return publish::read_event(std::nullopt, surroundings, "");
  WEIR_TRY(const std::string text, job.files().read(file, publish::k_largest_event));
  return publish::read_event(text, surroundings, file);
}

Result<std::string> verdict_file(const Job& job, const PostOptions& words) {
  std::string run = words.run;
  if (run.empty()) WEIR_SET(run, run::newest_run(job.files(), job.asked.out));
  return find_verdict(run, job.files());
}

Result<publish::Event> event_of(const Job& job, const PostOptions& words) {
  WEIR_CHECK(check_words(words));
  WEIR_TRY(publish::Event event, read_event(job, words).map_error([](const Error& error) {
    return Error{Code::usage, error.message};
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
    if (event.pull_request != words.pull_request) event.base.clear();
    event.pull_request = words.pull_request;
    event.of_pull_request = true;
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

Result<std::string> run_url_of(const Job& job, const PostOptions& words,
                               const publish::Event& event, const std::string& api_url) {
  if (!words.run_url.empty()) {
    if (!publish::parse_url(words.run_url)) {
      return fail(Code::usage, "--run-url \"{}\": no http or https address", words.run_url);
    }
    return words.run_url;
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
  return publish::run_url_of(server, event.repository, event.run);
}

std::optional<verdict::Comment> comment_of(const PostOptions& words) {
  return value_of(verdict::k_comments, words.comment);
}

// A verdict, or that there is none.
struct Said {
  std::optional<verdict::GateVerdict> gate;
  publish::NotMeasured none;  // without a gate
};

Result<Said> said_of(const Job& job, const PostOptions& words, const publish::Event& event,
                     std::vector<std::string>& notes) {
  const auto file = verdict_file(job, words);
  auto gate = file.and_then([&](const auto& name) { return read_verdict(name, job.files()); });
  if (gate) return Said{*std::move(gate), {}};
  // A workflow run that left no verdict is something to tell; a name that is typed wrong is not.
  if (!words.missing_verdict && !event.conclusion) return tl::unexpected(gate.error());
  notes.push_back(fmt::format("not measured: {}", gate.error().message));
  Said said{{},
            {words.missing_verdict.value_or(""), event.conclusion, event.sha, comment_of(words)}};
  if (said.none.why.empty() && file) said.none.why = "what the run left is no verdict";
  return said;
}

// `wrong_rules`: why those of the verdict are not its base's.
publish::Texts texts_of(const Said& said, const PostOptions& words, const publish::Event& event,
                        const std::string& wrong_rules) {
  report::MarkdownStyle style;
  style.verbs = report_hints();
  if (!event.run_url.empty()) style.run_url = event.run_url;
  if (!said.gate) return publish::not_measured(said.none, style);
  return publish::texts_of(*said.gate, style,
                           {event.conclusion, event.from_fork, words.judged_here,
                            event.of_pull_request, wrong_rules, comment_of(words)},
                           event, publish::gate_name(words.name));
}

// What was posted, in words and as weir.post/1.
struct Posted {
  publish::Target target;
  std::string gate;
  std::vector<publish::Part> parts;
  std::vector<std::string> notes;

  [[nodiscard]] bool failed() const {
    return std::ranges::count(parts, publish::Part::Outcome::failed, &publish::Part::outcome) > 0;
  }
};

std::string one_line(const std::string& words) { return text::join(text::lines(words), "; "); }

std::string words_of(const Posted& told) {
  const publish::Target& target = told.target;
  std::string text = fmt::format("weir post  {}", target.repository);
  if (target.pull_request) text += fmt::format("#{}", *target.pull_request);
  if (!target.sha.empty()) text += "  " + target.sha.substr(0, 7);
  if (told.gate != publish::k_default_gate) text += "  " + told.gate;
  text += "\n\n";
  for (const publish::Part& part : told.parts) {
    std::string line = fmt::format("{:<13}  {:<10}", part.name, publish::to_string(part.outcome));
    if (!part.reason.empty()) line += "  " + one_line(part.reason);
    if (!part.url.empty()) line += "  " + part.url;
    text += std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
  }
  return text;
}

Json json_of(const Posted& told) {
  Json parts = Json::array();
  for (const publish::Part& part : told.parts) {
    Json json = {{"part", part.name}, {"outcome", publish::to_string(part.outcome)}};
    if (part.id > 0) json["id"] = part.id;
    if (!part.url.empty()) json["url"] = part.url;
    if (!part.reason.empty()) json["reason"] = part.reason;
    if (!part.warnings.empty()) json["warnings"] = part.warnings;
    parts.push_back(std::move(json));
  }
  const publish::Target& target = told.target;
  return {{"schema", "weir.post/1"},
          {"repository", target.repository},
          {"pull_request", target.pull_request ? Json(*target.pull_request) : Json()},
          {"sha", target.sha.empty() ? Json() : Json(target.sha)},
          {"gate", told.gate},
          {"run", {{"id", target.run.id}, {"attempt", target.run.attempt}}},
          {"parts", std::move(parts)},
          {"notes", told.notes},
          {"complete", !told.failed()}};
}

// Everything that is sent or shown goes through here: what an engine printed may hold the token.
publish::Texts masked(publish::Texts texts, const Masker& masker) {
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

publish::PostOptions options_of(const PostOptions& words) {
  publish::PostOptions options = words.parts;
  options.gate = publish::gate_name(words.name);
  options.app = words.access.app;
  return options;
}

Result<Answer> rehearse(const Job& job, const PostOptions& words, const publish::Event& event,
                        const Said& said, const std::string& api_url,
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
  const auto parts = publish::post(rehearsal, event, texts_of(said, words, event, ""),
                                   options_of(words), [](double) {});
  for (const publish::Part& part : parts) {
    if (!part.reason.empty()) notes.push_back(fmt::format("no {}: {}", part.name, part.reason));
  }
  for (const std::string& note : notes) job.talk("weir: " + text::printable(note));
  std::string text = fmt::format("{} would be sent to {}:\n",
                                 report::plural(rehearsal.sent().size(), "request"), api_url);
  for (const publish::ApiRequest& request : rehearsal.sent()) {
    text += fmt::format("\n{} {}{}\n{}\n", request.method, api_url, request.path,
                        dump_json(request.body, 1));
  }
  return Answer{text::printable(text), document(publish::to_json(rehearsal.sent(), api_url))};
}

Posted post_all(const PostOptions& words, publish::Event& event, const Said& said,
                double settle_seconds, const Github& github) {
  publish::Api& api = github.api();
  Posted told;
  told.gate = publish::gate_name(words.name);
  publish::PostOptions options = options_of(words);
  options.settle_seconds = settle_seconds;
  const auto found = publish::look_up(api, event, told.notes);
  told.target = event;
  // Where it cannot be found out where to post, each part says so.
  const auto not_posted = [&](const char* name, bool wanted) {
    if (!wanted) return;
    told.parts.push_back({name, publish::Part::Outcome::failed, 0, "", found.error().message, {}});
  };
  if (!found) {
    not_posted("comment", options.comment);
    options.comment = false;
  }
  if (!found && event.sha.empty()) {
    not_posted("check run", options.check);
    not_posted("commit status", options.status);
    return told;
  }
  std::string wrong_rules;
  if (said.gate && said.gate->rules && !event.base.empty()) {
    wrong_rules = publish::why_not_rules_of_base(api, event, said.gate->rules->commit);
  }
  const publish::Texts texts = masked(texts_of(said, words, event, wrong_rules), github.masker());
  const auto posted = publish::post(api, event, texts, options, github.wait());
  told.parts.insert(told.parts.end(), posted.begin(), posted.end());
  for (const publish::Part& part : told.parts) {
    for (const std::string& warning : part.warnings) {
      told.notes.push_back(fmt::format("{}: {}", part.name, one_line(warning)));
    }
  }
  if (told.failed() && event.reads_only) {
    told.notes.emplace_back(
        "a pull request from a fork is given a token that may only read: post from a workflow_run "
        "workflow (docs/how-to/post.md)");
  }
  return told;
}

}  // namespace

Result<Answer> post(const Job& job, const PostOptions& words) {
  WEIR_TRY(const std::string api_url, api_url_of(job, words.access.api_url));
  WEIR_TRY(publish::Event event, event_of(job, words));
  WEIR_TRY(event.run_url, run_url_of(job, words, event, api_url));
  std::vector<std::string> notes;
  WEIR_TRY(const Said said, said_of(job, words, event, notes));
  if (words.dry_run) return rehearse(job, words, event, said, api_url, notes);

  WEIR_TRY(const auto github,
           Github::open(job, words.access, "--dry-run posts nothing and needs none"));
  WEIR_TRY(const double settle, unit::parse_duration_seconds(words.settle));
  const Masker& masker = github->masker();
  Posted told =
      post_all(words, event, said, std::min(settle, github->limit_seconds() / 4), *github);
  told.notes.insert(told.notes.begin(), notes.begin(), notes.end());
  for (const std::string& note : told.notes) {
    job.talk("weir: " + masker.mask(text::printable(note)));
  }
  const bool failed = words.fail && told.failed();
  return Answer{masker.mask(text::printable(words_of(told))),
                masker.mask(dump_json(json_of(told), 1)) + "\n",
                github->stop().requested() ? ExitCode::interrupted
                : failed                   ? ExitCode::unmeasured
                                           : ExitCode::pass};
}

}  // namespace weir::flow
