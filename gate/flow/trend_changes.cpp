

#include "gate/base/text.hpp"
#include "gate/flow/trend.hpp"
#include "gate/publish/api.hpp"
#include "gate/sys/clock.hpp"
#include "gate/unit/metric.hpp"

namespace weir::flow {
bool is_change_to_tell(const history::SeriesChange& change) {
  // Another class alone is none; where a step is clear besides, somebody has to look at it.
  return !change.known && change.worse.value_or(true) && !change.class_alone;
}

Result<Answer> trend_changes(const Job& job, const TrendChangesOptions& options) {
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  std::optional<double> since;
  if (!options.newer.empty()) {
    WEIR_TRY(const double seconds, unit::parse_duration_seconds(options.newer));
    since = job.world.clock.now() - seconds;
  }
  WEIR_TRY(const auto store, open_history(job, options.store, false));
  WEIR_TRY(ChangedHistory read,
           read_changes(*store, filter, commit_order(job, options.repository), options.wanted));
  const std::size_t found = read.changes.size();
  std::erase_if(read.changes, [&](const history::SeriesChange& change) {
    const history::Series& series = read.history.series[change.series];
    return (since && read.history.run_of(series.points[change.index]).time < *since) ||
           (!options.all && change.known);
  });
  const auto news = std::ranges::count_if(read.changes, is_change_to_tell);
  Json json = Json::array();
  for (const history::SeriesChange& change : read.changes) {
    json.push_back(history::change_json(read.history, change));
  }
  const std::size_t series = read.history.series.size();
  std::string text =
      fmt::format("weir trend changes  {} series of {}: ", series, text::printable(store->name()));
  text += read.changes.empty() ? "no change" : fmt::format("{} changes", read.changes.size());
  if (read.changes.size() == 1) text.pop_back();
  if (news > 0) text += fmt::format(", {} to look at", news);
  if (found > read.changes.size()) {
    text += fmt::format(" ({} more known or older)", found - read.changes.size());
  }
  text += "\n";
  if (!read.changes.empty()) {
    text += "\n" + history::changes_text(read.history, read.changes,
                                         static_cast<std::size_t>(job.width()));
  }
  const stats::ChangePolicy policy = history::policy_of(options.wanted, series);
  text += fmt::format("{}Of series without a change {} % a year show one (--sensitivity {}).\n",
                      read.changes.empty() ? "" : "\n",
                      fmt::format("{:.2g}", 100 * stats::yearly_false_alarms(policy.offset)),
                      options.wanted.sensitivity);
  if (series == 0) text += "nothing is kept of that: weir trend list\n";
  return Answer{text, document(json),
                series == 0 ? ExitCode::unmeasured
                : news > 0  ? ExitCode::fail
                            : ExitCode::pass};
}

Result<Answer> acknowledge_change(const Job& job, const TrendAckOptions& options) {
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  if (options.reason.empty()) return fail(Code::usage, "--reason TEXT: why is it meant to be so?");
  if (options.commit.empty() == options.at.empty()) {
    return fail(Code::usage, "name the change by --commit SHA or, without commits, by --at TIME");
  }
  const std::string who = options.who.empty() ? job.variable("USER") : options.who;
  if (who.empty()) return fail(Code::usage, "--who LOGIN: who says so?");
  WEIR_TRY(const auto store, open_history(job, options.store, false));
  WEIR_TRY(const ChangedHistory read,
           read_changes(*store, filter, commit_order(job, options.repository), {}));
  history::Batch batch;
  std::string text;
  for (const history::SeriesChange& change : read.changes) {
    history::Acknowledgement one = history::acknowledgement_of(read.history, change);
    const bool meant = options.commit.empty()
                           ? sys::time_of(one.time).starts_with(options.at)
                           : one.commit && one.commit->starts_with(options.commit);
    if (!meant || change.known) continue;
    one.reason = history::stored_name(options.reason);
    one.who = history::stored_name(who);
    one.at = job.world.clock.now();
    const history::Series& series = read.history.series[change.series];
    text += fmt::format("{} {} on {}: {} at {}\n", one.cell, one.metric, one.machine,
                        history::size_words(series.metric, change),
                        history::place_words(read.history.run_of(series.points[change.index])));
    batch.acknowledgements.push_back(std::move(one));
  }
  if (batch.acknowledgements.empty()) {
    return fail(Code::usage,
                "no change begins there that is not known already: weir trend changes");
  }
  WEIR_TRY(const history::Added added, store->add(batch));
  return Answer{text::printable(text + fmt::format("{} known now\n", added.acknowledgements))};
}

namespace {

Result<std::vector<publish::IssueWanted>> issues_wanted(const Job& job,
                                                        const TrendNotifyOptions& options) {
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  WEIR_TRY(const double newer, unit::parse_duration_seconds(options.newer));
  const double since = job.world.clock.now() - newer;
  WEIR_TRY(const auto store, open_history(job, options.store, false));
  WEIR_TRY(const ChangedHistory read,
           read_changes(*store, filter, commit_order(job, options.checkout), {}));
  std::vector<publish::IssueWanted> wanted;
  for (const history::SeriesChange& change : read.changes) {
    const history::Series& series = read.history.series[change.series];
    // A drift is told when it has gone on for weeks: its end says whether it is news.
    const std::size_t last =
        change.kind == stats::ChangeKind::drift ? change.end - 1 : change.index;
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

}  // namespace

Result<Answer> notify_changes(const Job& job, const TrendNotifyOptions& options) {
  publish::IssueOptions issues = options.issues;
  issues.app = options.access.app;
  const std::string& label = issues.label;
  const auto plain = [](char c) {
    return text::is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
  };
  if (label.empty() || label.size() > 50 || !std::ranges::all_of(label, plain))
    return fail(Code::usage, "--label {}: letters, digits, \"-_.\"", text::printable(label));
  WEIR_TRY(const std::string api_url, api_url_of(job, options.access.api_url));
  WEIR_TRY(const std::string repository, repository_of(job, options.repository));
  WEIR_TRY(auto wanted, issues_wanted(job, options));
  if (options.dry_run) {
    publish::Rehearsal rehearsal;
    WEIR_TRY(const auto parts,
             publish::post_issues(rehearsal, repository, wanted, issues, [](double) {}));
    return Answer{text::printable(words_of_issues(parts)),
                  document(publish::to_json(rehearsal.sent(), api_url))};
  }
  if (wanted.empty()) return Answer{words_of_issues({}), "[]\n"};
  WEIR_TRY(const auto github,
           Github::open(job, options.access, "--dry-run posts nothing and needs none"));
  const Masker& masker = github->masker();
  for (publish::IssueWanted& one : wanted) {
    one.title = masker.mask(one.title);
    one.body = masker.mask(one.body);
  }
  WEIR_TRY(const auto posted,
           publish::post_issues(github->api(), repository, wanted, issues, github->wait()));
  const bool failed =
      std::ranges::count(posted, publish::Part::Outcome::failed, &publish::Part::outcome) > 0;
  return Answer{masker.mask(text::printable(words_of_issues(posted))),
                masker.mask(dump_json(json_of_issues(posted), 1)) + "\n",
                failed ? ExitCode::unmeasured : ExitCode::pass};
}

}  // namespace weir::flow
