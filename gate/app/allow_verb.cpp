// weir allow: a change is accepted for one pull request. By hand onto a local branch, or, asked for
// by a comment, through GitHub's API.
#include <memory>

#include "gate/app/allowed.hpp"
#include "gate/app/branch.hpp"
#include "gate/app/github_access.hpp"
#include "gate/app/post_where.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/allow.hpp"
#include "gate/publish/target.hpp"
#include "gate/publish/url.hpp"
#include "gate/sys/paths.hpp"
#include "gate/verdict/allowance.hpp"

namespace weir::app {
namespace {

constexpr double k_day_seconds = 24 * 3600.0;
constexpr std::uint64_t k_largest_verdict = std::uint64_t{64} << 20;

struct AllowWords {
  CommonOptions common;
  std::string verdict;  // a run's folder or a verdict.json
  std::optional<std::int64_t> pull_request;
  std::string sha, cell, metric, from, to, reason, who, until;
  std::string branch = "perf-baselines";
  std::string event_file, gate, app = "github-actions", api_url, token_file;
  std::string time_limit = "2m";
};

std::string until_of(const AllowWords& words) {
  constexpr int k_days = 30;
  if (!words.until.empty()) return words.until;
  return sys::date_of(sys::RealClock().now() + k_days * k_day_seconds);
}

Result<verdict::WouldTake> read_verdict(const std::string& place, const sys::Files& files) {
  const std::string file =
      files.kind(place) == sys::Kind::folder ? sys::join_path(place, "verdict.json") : place;
  const auto in_file = [&](Error error) { return with_context(file, std::move(error)); };
  WEIR_TRY(const std::string text, files.read(file, k_largest_verdict));
  WEIR_TRY(const Json json, parse_json(text).map_error(in_file));
  WEIR_TRY(const verdict::GateVerdict gate, verdict::verdict_from_json(json).map_error(in_file));
  return verdict::would_take(gate);
}

std::string line_of(const verdict::Allowable& what) {
  return fmt::format("    {} of {}: {} → {}\n", what.metric, what.cell, what.from, what.to);
}

// All that is to be allowed by hand: what the options say, or what a verdict would take.
Result<verdict::WouldTake> wanted(const AllowWords& words, const sys::Files& files) {
  const bool one =
      !words.cell.empty() || !words.metric.empty() || !words.from.empty() || !words.to.empty();
  if (words.verdict.empty() == !one) {
    return fail(Code::usage,
                "what is allowed? --cell C --metric M --from A --to B, or a verdict.json (or a "
                "run's folder) whose fails all are");
  }
  if (!words.verdict.empty()) {
    WEIR_TRY(verdict::WouldTake take, read_verdict(words.verdict, files));
    if (take.changes.empty()) {
      return fail(Code::usage, "{}: no fail in it that could be allowed", words.verdict);
    }
    return take;
  }
  if (words.metric == "kernels") {
    return fail(Code::usage, "kernels are allowed each by its name: from a verdict.json");
  }
  return verdict::WouldTake{{{words.cell, words.metric, words.from, words.to}}, {}};
}

Result<ExitCode> by_hand(const AllowWords& words) {
  sys::RealFiles files;
  if (!words.pull_request) return fail(Code::usage, "for which pull request? --pr N");
  WEIR_TRY(const verdict::WouldTake take, wanted(words, files));
  std::optional<std::string> head;
  if (!words.sha.empty()) head = text::lower(words.sha);
  std::vector<verdict::Allowance> added;
  for (const verdict::Allowable& what : take.changes) {
    added.push_back({what, *words.pull_request, head, words.reason, words.who, until_of(words)});
    if (const auto problem = verdict::problem_of(added.back())) {
      return fail(Code::usage, "an allowance {}", *problem);
    }
  }
  WEIR_TRY(const auto repository,
           Repository::around(sys::absolute(sys::folder_of(words.common.config))));
  const std::int64_t number = *words.pull_request;
  const auto edit = [&](const std::optional<std::string>& parent) -> Result<BranchEdit> {
    std::vector<verdict::Allowance> there;
    if (parent) {
      WEIR_TRY(there, allowances_of(repository->git(), *parent, number));
    }
    const std::string before = verdict::to_text(number, there);
    const std::string text = verdict::to_text(number, verdict::with_allowances(there, added));
    BranchEdit made;
    if (text != before || there.empty()) made.changes[verdict::allowance_path(number)] = text;
    made.message = fmt::format("Allow {} change{} of pull request {}", added.size(),
                               added.size() == 1 ? "" : "s", number);
    return made;
  };
  WEIR_TRY(const std::string commit, edit_branch(*repository, words.branch, edit));
  answer(words.common, fmt::format("allowed for pull request {}{} until {}:\n", number,
                                   head ? " at " + head->substr(0, 7) : "", until_of(words)));
  for (const verdict::Allowable& what : take.changes) {
    answer(words.common, text::printable(line_of(what)));
  }
  for (const std::string& one : take.beyond) {
    answer(words.common, fmt::format("not allowed: {}\n", text::printable(one)));
  }
  answer(words.common, written_words(words.branch, commit));
  Json list = Json::array();
  for (const verdict::Allowable& what : take.changes) list.push_back(verdict::to_json(what));
  WEIR_CHECK(write_json(words.common, dump_json({{"schema", "weir.allowed/1"},
                                                 {"pull_request", number},
                                                 {"commit", commit},
                                                 {"changes", std::move(list)},
                                                 {"beyond", take.beyond}},
                                                1) +
                                          "\n"));
  return ExitCode::pass;
}

// What a workflow goes on with. Nothing in it is anybody's free text.
Result<void> tell_workflow(const publish::Answer& answer) {
  const auto file = sys::environment_value("GITHUB_OUTPUT");
  if (!file || file->empty()) return {};
  return append_text(*file, fmt::format("command={}\nsha={}\nfork={}\npull-request={}\ngreen={}\n",
                                        publish::to_string(answer.kind), answer.sha, answer.fork,
                                        answer.pull_request, answer.green));
}

Json json_of(const publish::Answer& answer) {
  Json list = Json::array();
  for (const verdict::Allowable& what : answer.changes) list.push_back(verdict::to_json(what));
  return {{"schema", "weir.answer/1"},
          {"command", publish::to_string(answer.kind)},
          {"why", answer.why},
          {"pull_request", answer.pull_request},
          {"sha", answer.sha.empty() ? Json() : Json(answer.sha)},
          {"fork", answer.fork},
          {"green", answer.green},
          {"changes", std::move(list)},
          {"notes", answer.notes}};
}

Result<ExitCode> by_comment(const AllowWords& words) {
  for (const std::string* own : {&words.cell, &words.metric, &words.from, &words.to, &words.reason,
                                 &words.who, &words.sha}) {
    if (!own->empty() || words.pull_request) {
      return fail(Code::usage,
                  "--event takes all of that from the comment and the check run: leave it out");
    }
  }
  sys::RealFiles files;
  const auto variable = [](const char* name) { return sys::environment_value(name).value_or(""); };
  WEIR_TRY(const std::string text, files.read(words.event_file, publish::k_largest_event));
  WEIR_TRY(const publish::CommentEvent event,
           publish::read_comment_event(text, variable("GITHUB_REPOSITORY"), words.event_file));
  publish::AllowOptions options;
  options.gate = publish::gate_name(words.gate);
  options.branch = words.branch;
  options.until = until_of(words);
  options.app = words.app;
  options.now = sys::time_of(sys::RealClock().now());
  if (!words.verdict.empty()) {
    WEIR_TRY(options.claimed, read_verdict(words.verdict, files));
  }
  publish::Answer answered;
  if (publish::parse_command(event.body).kind == publish::Command::Kind::none) {
    answered.why = "the comment asks weir for nothing";  // most do: no token is needed to say so
    answered.pull_request = event.number;
  } else {
    PostWords where;
    where.api_url = words.api_url;
    WEIR_TRY(const std::string api_url, api_url_of(where));
    WEIR_TRY(const Secret token,
             token_of(words.token_file, files, "with --pr N it is done by hand, without one"));
    WEIR_TRY(const double limit, unit::parse_duration_seconds(words.time_limit));
    const auto say = [&](const std::string& line) { talk(words.common, "weir: " + line); };
    WEIR_TRY(const auto github, GithubAccess::make(api_url, token, limit, say));
    WEIR_TRY(answered, publish::answer_comment(github->api(), event, options));
  }
  answer(words.common,
         fmt::format("{}: {}\n", publish::to_string(answered.kind), text::printable(answered.why)));
  for (const verdict::Allowable& what : answered.changes) {
    answer(words.common, text::printable(line_of(what)));
  }
  for (const std::string& note : answered.notes)
    talk(words.common, "weir: " + text::printable(note));
  WEIR_CHECK(write_json(words.common, dump_json(json_of(answered), 1) + "\n"));
  WEIR_CHECK(tell_workflow(answered));
  return answered.kind == publish::Answer::Kind::refused ? ExitCode::fail : ExitCode::pass;
}

}  // namespace

void add_allow(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("allow", "Accept a change for one pull request");
  auto words = std::make_shared<AllowWords>();
  verb->add_option(
          "VERDICT", words->verdict,
          "A verdict.json or a run's folder: all its fails. With --event it must say what\n"
          "the check run shows")
      ->type_name("");
  verb->add_option("--pr", words->pull_request, "For this pull request alone")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb->add_option("--sha", words->sha, "And this commit of it: void after a later push")
      ->type_name("SHA");
  verb->add_option("--cell", words->cell, "Its name as reports show it")->type_name("CELL");
  verb->add_option("--metric", words->metric, "A count's or a time's name")->type_name("METRIC");
  verb->add_option("--from", words->from, "The exact value before: 65, 133/2; of a time \"0 %\"")
      ->type_name("VALUE");
  verb->add_option("--to", words->to,
                   "The exact value that is allowed; of a time the worst change: \"-12 %\"")
      ->type_name("VALUE");
  verb->add_option("--reason", words->reason, "Why, for those who read it later")
      ->type_name("TEXT");
  verb->add_option("--who", words->who, "Who allows it")->type_name("LOGIN");
  verb->add_option("--until", words->until, "The last day that it holds (default: in 30 days)")
      ->type_name("DATE");
  verb->add_option("--allowances-ref", words->branch, "The branch that it is written to")
      ->type_name("BRANCH")
      ->capture_default_str();
  verb->add_option("--event", words->event_file,
                   "Do what the comment of this issue_comment event asks for, if its author may\n"
                   "write here: /weir accept REASON, /weir run")
      ->type_name("FILE");
  verb->add_option("--name", words->gate, "Of the gate, as weir post was told")->type_name("NAME");
  verb->add_option("--app", words->app, "The app that weir posts check runs as")
      ->type_name("SLUG")
      ->capture_default_str();
  verb->add_option("--api", words->api_url,
                   "GitHub's API (default: GITHUB_API_URL, else https://api.github.com)")
      ->type_name("URL");
  verb->add_option("--token-file", words->token_file,
                   "Holds the token (default: WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN)")
      ->type_name("FILE");
  verb->add_option("--time-limit", words->time_limit, "For all that the API is asked")
      ->type_name("DURATION")
      ->capture_default_str();
  add_common(*verb, words->common, Takes::config);
  verb->footer(
      "Examples:\n"
      "  weir allow weir-out/RUN --pr 12 --sha $(git rev-parse HEAD) --who ada --reason 'new "
      "fusion'\n"
      "  weir allow --pr 12 --cell llama.cpp/tiny/vulkan/decode --metric dispatches_per_token \\\n"
      "    --from 65 --to 77 --who ada --reason 'new fusion' --until 2026-12-31\n"
      "  weir allow --event \"$GITHUB_EVENT_PATH\"     in an issue_comment workflow\n\n"
      "By hand it becomes a commit on a local branch; git push is yours. Exit codes: 0 done, or\n"
      "nothing was asked for; 1 refused; 2 usage. docs/rules.md says who may, and what is void.");
  set_action(*verb,
             [words] { return words->event_file.empty() ? by_hand(*words) : by_comment(*words); });
}

}  // namespace weir::app
