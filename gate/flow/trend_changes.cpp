// weir trend changes, ack and notify: shows, acknowledges and reports changes in a history.
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/repository.hpp"
#include "gate/flow/trend.hpp"
#include "gate/publish/api.hpp"
#include "gate/stats/trend_rule.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/metric.hpp"

namespace weir::flow {
bool needs_report(const history::SeriesChange& change) {
  // A step at another machine or device class does not count, unless a clear step lies beside it.
  return !change.acknowledgement && change.worse.value_or(true) && !change.class_alone &&
         !change.is_unclear();
}

namespace {

// Series of times that have too few points to show a change.
struct ShortSeries {
  std::size_t number = 0;
  std::size_t points = 0;  // of the longest of them

  [[nodiscard]] std::string text() const {
    if (number == 0) return "";
    return fmt::format(
        "{} {} {} of {} runs: weir looks for a change of a time from the {}th run on\n",
        text::plural(number, "series", "series"), number == 1 ? "has" : "have at most", points,
        stats::TrendRule::k_min_points, stats::TrendRule::k_min_points);
  }
};

ShortSeries find_short_series(const std::vector<history::Series>& all) {
  ShortSeries shorter;
  for (const history::Series& series : all) {
    if (series.points.size() >= stats::TrendRule::k_min_points || history::has_exact_values(series))
      continue;
    ++shorter.number;
    shorter.points = std::max(shorter.points, series.points.size());
  }
  return shorter;
}

// Returns for each step to look at the commit that it begins at, and the command that finds the
// commit to blame between the runs around it. Empty without a checkout that has these commits.
std::string next_steps(const Job& job, const std::string& folder, const ChangedHistory& changed) {
  constexpr std::size_t k_most = 5;
  const auto repository = Repository::containing(job.world, sys::absolute(folder));
  if (!repository) return "";
  const source::Git& git = (*repository)->git();
  std::vector<std::string> lines;
  for (const history::SeriesChange& change : changed.changes) {
    if (!needs_report(change) || change.class_alone || lines.size() == k_most) continue;
    const history::Series& series = changed.history.series[change.series];
    const auto commit_at = [&](std::size_t point) -> std::string {
      const auto& commit = changed.history.run_of(series.points[point]).commit;
      if (!commit) return "";
      return git.resolve_commit(*commit).value_or(std::nullopt).value_or("");
    };
    const std::string good = commit_at(change.earliest - 1), bad = commit_at(change.latest);
    if (good.empty() || bad.empty() || good == bad) continue;
    const bool is_time = !history::has_exact_values(series);
    const std::string line = fmt::format(
        "{}  since {}\n  weir bisect {} {} --cell {}{}\n", series.cell,
        git.words(bad).value_or(text::short_commit(bad)), text::short_commit(good),
        text::short_commit(bad), text::shell_word(series.cell), is_time ? " --times" : "");
    if (!holds(lines, line)) lines.push_back(line);
  }
  if (lines.empty()) return "";
  return "\n" + text::join(lines, "") +
         "weir bisect needs the command that builds the engine in weir.yaml (build:).\n";
}

}  // namespace

// Lists the changes of a history. The answer fails if one of them still needs a look.
Result<Answer> trend_changes(const Job& job, const TrendChangesOptions& options) {
  WEIR_TRY(const history::Filter filter, parse_filter(options.filter));
  std::optional<double> since;
  if (!options.newer.empty()) {
    WEIR_TRY(const double seconds, unit::parse_duration_seconds(options.newer));
    since = job.world.clock.now() - seconds;
  }
  WEIR_TRY(const auto store, open_history(job, options.store, /*create=*/false));
  WEIR_TRY(ChangedHistory changed,
           read_changes(*store, filter, commit_order(job, options.repository), options.wanted));
  const std::size_t all_changes = changed.changes.size();
  std::erase_if(changed.changes, [&](const history::SeriesChange& change) {
    const history::Series& series = changed.history.series[change.series];
    return (since && changed.history.run_of(series.points[change.index]).time < *since) ||
           (!options.all && change.acknowledgement);
  });
  const auto new_changes = std::ranges::count_if(changed.changes, needs_report);
  Json json = Json::array();
  for (const history::SeriesChange& change : changed.changes) {
    json.push_back(history::change_json(changed.history, change));
  }
  const std::size_t series = changed.history.series.size();
  std::string text =
      fmt::format("weir trend changes  {} series of {}: ", series, text::printable(store->name()));
  const ShortSeries too_short = find_short_series(changed.history.series);
  if (!changed.changes.empty()) {
    text += text::plural(changed.changes.size(), "change");
  } else {
    text += series > 0 && too_short.number == series ? "too few runs" : "no change";
  }
  if (new_changes > 0) text += fmt::format(", {} to look at", new_changes);
  if (all_changes > changed.changes.size()) {
    text += fmt::format(" ({} more known or older)", all_changes - changed.changes.size());
  }
  text += "\n";
  if (!changed.changes.empty()) {
    text += "\n" + history::changes_text(changed.history, changed.changes,
                                         static_cast<std::size_t>(job.width()));
    text += text::printable(next_steps(job, options.repository, changed));
  }
  const stats::ChangePolicy policy = history::policy_of(options.wanted, series);
  text += fmt::format("{}Of series without a change {} % a year show one (--sensitivity {}).\n",
                      changed.changes.empty() ? "" : "\n",
                      fmt::format("{:.2g}", 100 * stats::yearly_false_alarms(policy.offset)),
                      options.wanted.sensitivity);
  text += too_short.text();
  if (series == 0) text += "nothing is kept of that: weir trend list\n";
  ExitCode code = new_changes > 0 ? ExitCode::fail : ExitCode::pass;
  if (series == 0) code = ExitCode::unmeasured;
  return Answer{text, json_document(json), code};
}

namespace {

// Returns who acknowledges: --who, else USER, else user.name of git; "" if all are silent.
std::string name_of_caller(const Job& job, const TrendAckOptions& options) {
  if (!options.who.empty()) return options.who;
  const std::string user = job.variable("USER");
  if (!user.empty()) return user;
  const auto repository = Repository::containing(job.world, sys::absolute(options.repository));
  return repository ? (*repository)->git().user_name().value_or("") : "";
}

}  // namespace

// Marks the changes at one commit or time as acknowledged, with a reason. Fails if none begins
// there.
Result<Answer> acknowledge_change(const Job& job, const TrendAckOptions& options) {
  WEIR_TRY(const history::Filter filter, parse_filter(options.filter));
  const std::string who = name_of_caller(job, options);
  std::vector<std::string> missing;
  if (options.commit.empty() == options.at.empty())
    missing.emplace_back("name the change by --commit SHA or, without commits, by --at TIME");
  if (options.reason.empty()) missing.emplace_back("--reason TEXT: why is it meant to be so?");
  if (who.empty())
    missing.emplace_back("--who LOGIN: who says so? (USER is not set, and git has no user.name)");
  if (!missing.empty()) return fail(Code::usage, "{}", text::join(missing, "\n  "));
  WEIR_TRY(const auto store, open_history(job, options.store, /*create=*/false));
  WEIR_TRY(const ChangedHistory changed,
           read_changes(*store, filter, commit_order(job, options.repository), {}));
  history::Batch batch;
  std::string text;
  for (const history::SeriesChange& change : changed.changes) {
    history::Acknowledgement acknowledgement =
        history::make_acknowledgement(changed.history, change);
    const bool is_meant =
        options.commit.empty()
            ? sys::time_of(acknowledgement.time).starts_with(options.at)
            : acknowledgement.commit && acknowledgement.commit->starts_with(options.commit);
    if (!is_meant || change.acknowledgement) continue;
    acknowledgement.reason = history::stored_name(options.reason);
    acknowledgement.who = history::stored_name(who);
    acknowledgement.acknowledged_at = job.world.clock.now();
    const history::Series& series = changed.history.series[change.series];
    text += fmt::format("{} {} on {}: {} at {}\n", acknowledgement.cell, acknowledgement.metric,
                        acknowledgement.machine, history::size_text(series.metric, change),
                        history::place_label(changed.history.run_of(series.points[change.index])));
    batch.acknowledgements.push_back(std::move(acknowledgement));
  }
  if (batch.acknowledgements.empty()) {
    return fail(Code::usage,
                "no change begins there that is not known already: weir trend changes");
  }
  WEIR_TRY(const history::Added added, store->add(batch));
  return Answer{text::printable(text + fmt::format("{} known now\n", added.acknowledgements))};
}

namespace {

// Returns the issues to open: one for each change that is new and not acknowledged.
Result<std::vector<publish::WantedIssue>> find_issues(const Job& job,
                                                      const TrendNotifyOptions& options) {
  WEIR_TRY(const history::Filter filter, parse_filter(options.filter));
  WEIR_TRY(const double newer, unit::parse_duration_seconds(options.newer));
  const double since = job.world.clock.now() - newer;
  WEIR_TRY(const auto store, open_history(job, options.store, /*create=*/false));
  WEIR_TRY(const ChangedHistory changed,
           read_changes(*store, filter, commit_order(job, options.checkout), {}));
  std::vector<publish::WantedIssue> issues;
  for (const history::SeriesChange& change : changed.changes) {
    const history::Series& series = changed.history.series[change.series];
    // A drift is found only after weeks, so its end decides if it is new.
    const std::size_t last =
        change.kind == stats::ChangeKind::drift ? change.end - 1 : change.index;
    if (!needs_report(change) || changed.history.run_of(series.points[last]).time < since) {
      continue;
    }
    history::ChangeIssue issue = history::make_issue(changed.history, change, options.site_url);
    issues.push_back({std::move(issue.series), std::move(issue.at), std::move(issue.near),
                      std::move(issue.title), std::move(issue.body)});
  }
  return issues;
}

// Returns the outcome of each issue as lines for people.
std::string issues_text(const std::vector<publish::Part>& parts) {
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

Json issues_json(const std::vector<publish::Part>& parts) {
  Json list = Json::array();
  for (const publish::Part& part : parts) {
    list.push_back({{"title", part.name},
                    {"outcome", publish::to_string(part.outcome)},
                    {"number", part.id > 0 ? Json(part.id) : Json(nullptr)},
                    {"url", part.url},
                    {"reason", part.reason}});
  }
  return list;
}

}  // namespace

// Opens an issue on GitHub for each new change, or shows with --dry-run what it would send.
Result<Answer> notify_changes(const Job& job, const TrendNotifyOptions& options) {
  publish::IssueOptions issues = options.issues;
  issues.app = options.access.app;
  const std::string& label = issues.label;
  const auto is_allowed = [](char c) {
    return text::is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
  };
  if (label.empty() || label.size() > 50 || !std::ranges::all_of(label, is_allowed))
    return fail(Code::usage, "--label {}: letters, digits, \"-_.\"", text::printable(label));
  WEIR_TRY(const std::string api_url, github_api_url(job, options.access.api_url));
  WEIR_TRY(const std::string repository, github_repository(job, options.repository));
  WEIR_TRY(auto wanted, find_issues(job, options));
  if (options.dry_run) {
    publish::Rehearsal rehearsal;
    WEIR_TRY(const auto parts,
             publish::post_issues(rehearsal, repository, wanted, issues, [](double) {}));
    return Answer{text::printable(issues_text(parts)),
                  json_document(publish::to_json(rehearsal.sent(), api_url))};
  }
  if (wanted.empty()) return Answer{issues_text({}), "[]\n"};
  WEIR_TRY(const auto github,
           Github::open(job, options.access, "--dry-run posts nothing and needs none"));
  const Masker& masker = github->masker();
  for (publish::WantedIssue& issue : wanted) {
    issue.title = masker.mask(issue.title);
    issue.body = masker.mask(issue.body);
  }
  WEIR_TRY(const auto posted,
           publish::post_issues(github->api(), repository, wanted, issues, github->wait()));
  const bool failed =
      std::ranges::count(posted, publish::Part::Outcome::failed, &publish::Part::outcome) > 0;
  return Answer{masker.mask(text::printable(issues_text(posted))),
                masker.mask(dump_json(issues_json(posted), 1)) + "\n",
                failed ? ExitCode::unmeasured : ExitCode::pass};
}

}  // namespace weir::flow
