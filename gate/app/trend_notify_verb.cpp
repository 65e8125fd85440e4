// weir trend notify: one issue on GitHub for each change that nobody has acknowledged.
#include <algorithm>

#include "gate/app/github_access.hpp"
#include "gate/app/post_where.hpp"
#include "gate/app/trend_changes.hpp"
#include "gate/base/text.hpp"
#include "gate/history/changes.hpp"
#include "gate/publish/api.hpp"
#include "gate/publish/issues.hpp"
#include "gate/sys/clock.hpp"
#include "gate/unit/metric.hpp"

namespace weir::app {
namespace {

struct NotifyOptions {
  StoreOptions store;
  FilterOptions filter;
  PostWords words;
  std::string checkout = ".", site_url, newer = "1440h";
  publish::IssueOptions issues;
};

Result<std::vector<publish::IssueWanted>> issues_wanted(const NotifyOptions& options) {
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  WEIR_TRY(const double newer, unit::parse_duration_seconds(options.newer));
  const double since = sys::RealClock().now() - newer;
  WEIR_TRY(const auto store, open_history(options.store, false));
  WEIR_TRY(const ChangedHistory read,
           read_changes(*store, filter, commit_order(options.checkout), {}, Looks::known));
  std::vector<publish::IssueWanted> wanted;
  for (const history::SeriesChange& change : read.changes) {
    const history::Series& series = read.history.series[change.series];
    // A drift is told when it has gone on for weeks: its end says whether it is news.
    const std::size_t last =
        change.kind == history::SeriesChangeKind::drift ? change.end - 1 : change.index;
    if (!is_change_to_tell(change) || read.history.run_of(series.points[last]).time < since) {
      continue;
    }
    history::ChangeIssue issue = history::issue_of(read.history, change, options.site_url);
    wanted.push_back({std::move(issue.series), std::move(issue.at), std::move(issue.near),
                      std::move(issue.title), std::move(issue.body)});
  }
  return wanted;
}

std::string words_of_issues(const std::vector<publish::Part>& parts) {
  if (parts.empty()) return "no change to open an issue for\n";
  std::string text;
  for (const publish::Part& part : parts) {
    text += fmt::format("{:<10}  {}", publish::to_string(part.outcome), part.name);
    if (part.id > 0) text += fmt::format("  #{}", part.id);
    if (!part.reason.empty()) text += "  (" + text::first_line(part.reason) + ")";
    text += "\n";
    for (const std::string& warning : part.warnings) text += "            " + warning + "\n";
  }
  return text;
}

Json json_of_issues(const std::vector<publish::Part>& parts) {
  Json all = Json::array();
  for (const publish::Part& part : parts) {
    all.push_back({{"title", part.name},
                   {"outcome", publish::to_string(part.outcome)},
                   {"number", part.id > 0 ? Json(part.id) : Json(nullptr)},
                   {"url", part.url},
                   {"reason", part.reason}});
  }
  return all;
}

Result<ExitCode> rehearse_issues(const NotifyOptions& options, const std::string& repository,
                                 const std::string& api_url,
                                 const std::vector<publish::IssueWanted>& wanted) {
  publish::Rehearsal rehearsal;
  WEIR_TRY(const auto parts,
           publish::post_issues(rehearsal, repository, wanted, options.issues, [](double) {}));
  answer(options.words.common, text::printable(words_of_issues(parts)));
  WEIR_CHECK(write_json(options.words.common,
                        dump_json(publish::to_json(rehearsal.sent(), api_url), 1) + "\n"));
  return ExitCode::pass;
}

Result<ExitCode> notify(const NotifyOptions& options) {
  sys::RealFiles files;
  const std::string& label = options.issues.label;
  const bool fit = !label.empty() && label.size() <= 50 &&
                   label.find_first_not_of(
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                       "0123456789-_.") == std::string::npos;
  if (!fit)
    return fail(Code::usage, "--label {}: letters, digits, \"-_.\"", text::printable(label));
  WEIR_TRY(const std::string api_url, api_url_of(options.words));
  WEIR_TRY(const std::string repository, repository_of(options.words));
  WEIR_TRY(auto wanted, issues_wanted(options));
  if (options.words.dry_run) return rehearse_issues(options, repository, api_url, wanted);
  if (wanted.empty()) {
    answer(options.words.common, words_of_issues({}));
    WEIR_CHECK(write_json(options.words.common, "[]\n"));
    return ExitCode::pass;
  }
  WEIR_TRY(const Secret token,
           token_of(options.words.token_file, files, "--dry-run posts nothing and needs none"));
  WEIR_TRY(const double time_limit, unit::parse_duration_seconds(options.words.time_limit));
  WEIR_TRY(const auto github,
           GithubAccess::make(api_url, token, time_limit, [&](const std::string& line) {
             talk(options.words.common, "weir: " + line);
           }));
  const Masker& masker = github->masker();
  for (publish::IssueWanted& one : wanted) {
    one.title = masker.mask(one.title);
    one.body = masker.mask(one.body);
  }
  sys::RealPause pause;
  const auto posted =
      publish::post_issues(github->api(), repository, wanted, options.issues,
                           [&](double seconds) { (void)pause.wait(seconds, github->stop()); });
  if (!posted) return tl::unexpected(posted.error());
  answer(options.words.common, masker.mask(text::printable(words_of_issues(*posted))));
  WEIR_CHECK(
      write_json(options.words.common, masker.mask(dump_json(json_of_issues(*posted), 1)) + "\n"));
  const bool failed = std::any_of(posted->begin(), posted->end(), [](const publish::Part& part) {
    return part.outcome == publish::Part::Outcome::failed;
  });
  return failed ? ExitCode::unmeasured : ExitCode::pass;
}

}  // namespace

void add_trend_notify(CLI::App& trend) {
  CLI::App* verb = trend.add_subcommand("notify", "One issue on GitHub a change that is news");
  auto options = std::make_shared<NotifyOptions>();
  add_store_options(*verb, options->store);
  add_filter_options(*verb, options->filter);
  add_repository_option(*verb, options->checkout);
  verb->add_option("--repo", options->words.repository, "Where to (default: GITHUB_REPOSITORY)")
      ->type_name("OWNER/NAME");
  verb->add_option("--newer", options->newer, "Only changes that began within DURATION")
      ->type_name("DURATION")
      ->capture_default_str();
  verb->add_option("--site-url", options->site_url, "Where the pages are, to link to")
      ->type_name("URL");
  verb->add_option("--label", options->issues.label, "Issues bear it, and are found by it")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--most", options->issues.most_new, "New issues at once")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--api", options->words.api_url,
                   "GitHub's API (default: GITHUB_API_URL, else https://api.github.com)")
      ->type_name("URL");
  verb->add_option("--token-file", options->words.token_file,
                   "Holds the token (default: WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN)")
      ->type_name("FILE");
  verb->add_option("--time-limit", options->words.time_limit, "For all that the API is asked")
      ->type_name("DURATION")
      ->capture_default_str();
  verb->add_flag("--dry-run", options->words.dry_run, "Show what would be sent, and send nothing");
  verb->add_option("--json", options->words.common.json,
                   "Write the result as JSON to FILE, or to standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->default_str("-");
  verb->add_flag("-q,--quiet", options->words.common.quiet, "Only the answer, no progress");
  verb->footer(
      "Examples:\n"
      "  weir trend notify --repo o/r --dry-run\n"
      "  weir trend notify --site-url https://o.github.io/r/    in a nightly job, issues: write\n"
      "An issue is edited while it is open; what people closed stays closed. A change that is\n"
      "acknowledged (weir trend ack) has none. Exit codes: 0, 2 usage, 3 not all could be said.");
  set_action(*verb, [options] { return notify(*options); });
}

}  // namespace weir::app
