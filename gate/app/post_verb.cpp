// weir post: a verdict to a pull request and its commit.
#include <algorithm>

#include "gate/app/github_access.hpp"
#include "gate/app/post_where.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/api.hpp"

namespace weir::app {
namespace {

// What was posted, in words and as weir.post/1.
struct Told {
  publish::Target target;
  std::string gate;
  std::vector<publish::Part> parts;
  std::vector<std::string> notes;

  [[nodiscard]] bool failed() const {
    return std::any_of(parts.begin(), parts.end(), [](const publish::Part& part) {
      return part.outcome == publish::Part::Outcome::failed;
    });
  }
};

std::string one_line(const std::string& words) { return text::join(text::lines(words), "; "); }

std::string words_of(const Told& told) {
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

Json json_of(const Told& told) {
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

std::vector<std::string> wanted_parts(const PostWords& words) {
  std::vector<std::string> names;
  if (words.comment) names.emplace_back("comment");
  if (words.check) names.emplace_back("check run");
  if (words.status) names.emplace_back("commit status");
  return names;
}

publish::PostOptions options_of(const PostWords& words) {
  publish::PostOptions options;
  options.gate = publish::gate_name(words.name);
  options.comment = words.comment;
  options.check = words.check;
  options.status = words.status;
  return options;
}

publish::Target target_of(const publish::Event& event, const std::string& run_url) {
  return {event.repository, event.pull_request, event.sha, event.run, run_url};
}

Result<ExitCode> rehearse(const PostWords& words, const publish::Event& event,
                          const publish::Texts& texts, const std::string& run_url,
                          const std::string& api_url, std::vector<std::string> notes) {
  if (!event.pull_request && event.head) {
    notes.push_back("the pull request of this run would be asked for; --pr N names it here");
  }
  if (event.pull_request && event.sha.empty()) {
    notes.push_back("the head of the pull request would be asked for; --sha SHA names it here");
  }
  publish::Rehearsal rehearsal;
  const auto parts =
      publish::post(rehearsal, target_of(event, run_url), texts, options_of(words), [](double) {});
  for (const publish::Part& part : parts) {
    if (!part.reason.empty()) notes.push_back(fmt::format("no {}: {}", part.name, part.reason));
  }
  for (const std::string& note : notes) talk(words.common, "weir: " + text::printable(note));
  std::string text = fmt::format("{} would be sent to {}:\n",
                                 rehearsal.sent().size() == 1
                                     ? "1 request"
                                     : fmt::format("{} requests", rehearsal.sent().size()),
                                 api_url);
  for (const publish::ApiRequest& request : rehearsal.sent()) {
    text += fmt::format("\n{} {}{}\n{}\n", request.method, api_url, request.path,
                        dump_json(request.body, 1));
  }
  answer(words.common, text::printable(text));
  WEIR_CHECK(
      write_json(words.common, dump_json(publish::to_json(rehearsal.sent(), api_url), 1) + "\n"));
  return ExitCode::pass;
}

// Where it can not be found out where to post, each part says so.
std::vector<publish::Part> none_posted(const std::vector<std::string>& names, const Error& why) {
  std::vector<publish::Part> parts;
  parts.reserve(names.size());
  for (const std::string& name : names) {
    parts.push_back({.name = name,
                     .outcome = publish::Part::Outcome::failed,
                     .id = 0,
                     .url = "",
                     .reason = why.message,
                     .warnings = {}});
  }
  return parts;
}

Told post_all(publish::Api& api, const PostWords& words, publish::Event& event,
              const publish::Texts& texts, const std::string& run_url, double settle_seconds,
              const publish::Wait& wait) {
  Told told;
  told.gate = publish::gate_name(words.name);
  publish::PostOptions options = options_of(words);
  options.settle_seconds = settle_seconds;
  options.now = sys::time_of(sys::RealClock().now());
  const auto found = publish::look_up(api, event, told.notes);
  told.target = target_of(event, run_url);
  if (!found && event.sha.empty()) {
    told.parts = none_posted(wanted_parts(words), found.error());
    return told;
  }
  if (!found && options.comment) {
    told.parts = none_posted({"comment"}, found.error());
    options.comment = false;
  }
  const auto posted = publish::post(api, told.target, texts, options, wait);
  told.parts.insert(told.parts.end(), posted.begin(), posted.end());
  for (const publish::Part& part : told.parts) {
    for (const std::string& warning : part.warnings) {
      told.notes.push_back(fmt::format("{}: {}", part.name, one_line(warning)));
    }
  }
  if (told.failed() && event.reads_only) {
    told.notes.emplace_back(
        "a pull request from a fork is given a token that may only read: post from a workflow_run "
        "workflow (docs/posting.md)");
  }
  return told;
}

Result<ExitCode> post(const PostWords& words) {
  sys::RealFiles files;
  WEIR_TRY(const std::string api_url, api_url_of(words));
  WEIR_TRY(publish::Event event, event_of(words, files));
  WEIR_TRY(const std::string run_url, run_url_of(words, event, api_url));
  std::vector<std::string> notes;
  WEIR_TRY(publish::Texts texts, texts_of(words, event, run_url, files, notes));
  if (words.dry_run) return rehearse(words, event, texts, run_url, api_url, notes);

  WEIR_TRY(const Secret token,
           token_of(words.token_file, files, "--dry-run posts nothing and needs none"));
  WEIR_TRY(const double time_limit, unit::parse_duration_seconds(words.time_limit));
  WEIR_TRY(const double settle, unit::parse_duration_seconds(words.settle));
  WEIR_TRY(const auto github,
           GithubAccess::make(api_url, token, time_limit, [&](const std::string& line) {
             talk(words.common, "weir: " + line);
           }));
  const Masker& masker = github->masker();
  sys::RealPause pause;
  const publish::Wait wait = [&](double seconds) { (void)pause.wait(seconds, github->stop()); };
  Told told = post_all(github->api(), words, event, masked(std::move(texts), masker), run_url,
                       std::min(settle, time_limit / 4), wait);
  told.notes.insert(told.notes.begin(), notes.begin(), notes.end());
  for (const std::string& note : told.notes) {
    talk(words.common, "weir: " + masker.mask(text::printable(note)));
  }
  answer(words.common, masker.mask(text::printable(words_of(told))));
  WEIR_CHECK(write_json(words.common, masker.mask(dump_json(json_of(told), 1)) + "\n"));
  if (github->stop().requested()) return ExitCode::interrupted;
  return words.fail && told.failed() ? ExitCode::unmeasured : ExitCode::pass;
}

// "--check" and "--no-check", of which the first is what goes without saying.
void add_part(CLI::App& verb, const std::string& name, bool& wanted) {
  CLI::Option* with = verb.add_flag_callback(
      "--" + name, [&wanted] { wanted = true; }, fmt::format("Post the {} (default)", name));
  verb.add_flag_callback(
          "--no-" + name, [&wanted] { wanted = false; }, fmt::format("Leave the {} out", name))
      ->excludes(with);
}

void add_where(CLI::App& verb, PostWords& words) {
  verb.add_option("--repo", words.repository, "Where to (default: GITHUB_REPOSITORY)")
      ->type_name("OWNER/NAME");
  verb.add_option("--pr", words.pull_request, "The pull request that is commented on")
      ->type_name("N");
  verb.add_option("--sha", words.sha, "The commit that was measured")
      ->type_name("SHA")
      ->check([](const std::string& text) {
        return text.empty() ? std::string("a commit is meant") : std::string();
      });
  verb.add_option("--event", words.event_file,
                  "GitHub's event, which says all three (default: GITHUB_EVENT_PATH)")
      ->type_name("FILE");
  verb.add_option("--name", words.name,
                  "Of this gate, where a pull request has several: each has a comment of its own")
      ->type_name("NAME");
  verb.add_option("--api", words.api_url,
                  "GitHub's API (default: GITHUB_API_URL, else https://api.github.com)")
      ->type_name("URL");
  verb.add_option("--token-file", words.token_file,
                  "Holds the token (default: WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN)")
      ->type_name("FILE");
  verb.add_option("--run-url", words.run_url, "The page that is linked (default: GitHub's run)")
      ->type_name("URL");
}

}  // namespace

void add_post(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("post", "Summary to GitHub: comment, check run, commit status");
  auto words = std::make_shared<PostWords>();
  verb->add_option("RUN", words->run,
                   "A run's folder, or a verdict.json (default: the newest run below --out)")
      ->type_name("");
  add_where(*verb, *words);
  add_part(*verb, "comment", words->comment);
  add_part(*verb, "check", words->check);
  add_part(*verb, "status", words->status);
  verb->add_option("--missing-verdict", words->missing_verdict,
                   "Where there is no verdict, post that nothing was measured, and why")
      ->type_name("WHY");
  verb->add_flag("--dry-run", words->dry_run,
                 "Print what would be sent where nothing was posted yet; no network, no token");
  verb->add_flag("--fail", words->fail, "Exit 3 where a part could not be posted");
  verb->add_option("--time-limit", words->time_limit, "For all of it")
      ->type_name("DURATION")
      ->capture_default_str();
  verb->add_option("--settle", words->settle,
                   "How long to look for another poster's comment after making one")
      ->type_name("DURATION")
      ->capture_default_str();
  verb->add_option("--out", words->common.out, "Where runs are kept")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--json", words->common.json,
                   "Write what was posted, or would be sent, as JSON to FILE or standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->default_str("-");
  verb->add_flag("-q,--quiet", words->common.quiet, "Only the answer");
  verb->footer(
      "Examples:\n"
      "  weir post                                    on GitHub's runners: the event says where\n"
      "  weir post --repo o/r --pr 7 --sha $(git rev-parse HEAD) --dry-run\n"
      "  weir post artifact/verdict.json --name gpu   in a workflow_run workflow\n\n"
      "What can not be posted is told; the exit code stays 0 unless --fail is given (then 3). 2 "
      "is\n"
      "a usage error. docs/posting.md has tokens, permissions, forks and GitHub Enterprise.");
  set_action(*verb, [words] { return post(*words); });
}

}  // namespace weir::app
