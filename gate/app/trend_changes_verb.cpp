// weir trend changes|ack: where a history changed, and what is known of it.
#include <algorithm>

#include <unistd.h>

#include "gate/app/trend_changes.hpp"
#include "gate/base/text.hpp"
#include "gate/history/changes.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/process.hpp"
#include "gate/unit/metric.hpp"

namespace weir::app {
namespace {

struct ChangesOptions {
  StoreOptions store;
  FilterOptions filter;
  CommonOptions common;
  std::string repository = ".";
  history::ChangesWanted wanted;
  bool once = false, all = false;
  std::string newer;
};

Result<ExitCode> changes(const ChangesOptions& options) {
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  std::optional<double> since;
  if (!options.newer.empty()) {
    WEIR_TRY(const double seconds, unit::parse_duration_seconds(options.newer));
    since = sys::RealClock().now() - seconds;
  }
  WEIR_TRY(const auto store, open_history(options.store, false));
  WEIR_TRY(ChangedHistory read,
           read_changes(*store, filter, commit_order(options.repository), options.wanted,
                        options.once ? Looks::once : Looks::noted));
  const std::size_t found = read.changes.size();
  std::erase_if(read.changes, [&](const history::SeriesChange& change) {
    const history::Series& series = read.history.series[change.series];
    return (since && read.history.run_of(series.points[change.index]).time < *since) ||
           (!options.all && change.known);
  });
  const auto news = std::count_if(read.changes.begin(), read.changes.end(), is_change_to_tell);
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
    text += "\n" + history::changes_text(
                       read.history, read.changes,
                       static_cast<std::size_t>(width_of(answer_stream(options.common))));
  }
  if (series == 0) text += "nothing is kept of that: weir trend list\n";
  answer(options.common, text);
  WEIR_CHECK(write_json(options.common, dump_json(json, 1) + "\n"));
  if (series == 0) return ExitCode::unmeasured;
  return news > 0 ? ExitCode::fail : ExitCode::pass;
}

struct AckOptions {
  StoreOptions store;
  FilterOptions filter;
  std::string repository = ".";
  std::string commit, at, reason, who;
};

Result<ExitCode> acknowledge(const AckOptions& options) {
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  if (options.reason.empty()) return fail(Code::usage, "--reason TEXT: why is it meant to be so?");
  if (options.commit.empty() == options.at.empty()) {
    return fail(Code::usage, "name the change by --commit SHA or, without commits, by --at TIME");
  }
  std::string who = options.who;
  if (who.empty()) who = sys::environment_value("USER").value_or("");
  if (who.empty()) return fail(Code::usage, "--who LOGIN: who says so?");
  WEIR_TRY(const auto store, open_history(options.store, false));
  WEIR_TRY(const ChangedHistory read,
           read_changes(*store, filter, commit_order(options.repository), {}, Looks::known));
  history::Batch batch;
  for (const history::SeriesChange& change : read.changes) {
    history::Acknowledgement one = history::acknowledgement_of(read.history, change);
    const bool meant = options.commit.empty()
                           ? sys::time_of(one.time).starts_with(options.at)
                           : one.commit && one.commit->starts_with(options.commit);
    if (!meant || change.known) continue;
    one.reason = history::kept_name(options.reason);
    one.who = history::kept_name(who);
    one.at = sys::RealClock().now();
    const history::Series& series = read.history.series[change.series];
    say(fmt::format("{} {} on {}: {} at {}\n", one.cell, one.metric, one.machine,
                    history::size_words(series.metric, change),
                    history::place_words(read.history.run_of(series.points[change.index]))));
    batch.acknowledgements.push_back(std::move(one));
  }
  if (batch.acknowledgements.empty()) {
    return fail(Code::usage,
                "no change begins there that is not known already: weir trend changes");
  }
  WEIR_TRY(const history::Added added, store->add(batch));
  say(fmt::format("{} known now\n", added.acknowledgements));
  return ExitCode::pass;
}

}  // namespace

void add_trend_changes(CLI::App& trend) {
  CLI::App* verb = trend.add_subcommand("changes", "Where series changed, and by how much");
  auto options = std::make_shared<ChangesOptions>();
  add_store_options(*verb, options->store);
  add_filter_options(*verb, options->filter);
  add_repository_option(*verb, options->repository);
  verb->add_option("--newer", options->newer, "Only changes that began within DURATION: 336h")
      ->type_name("DURATION");
  verb->add_flag("--all", options->all, "Also those that somebody acknowledged");
  verb->add_option("--false-alarm", options->wanted.false_alarm,
                   "Chance that a series without a change shows one, in a year of looks")
      ->check(CLI::Range(1e-9, 0.5))
      ->capture_default_str();
  verb->add_flag("--any-series", options->wanted.any_series,
                 "That chance is of any series at all, not of each");
  verb->add_flag("--once", options->once,
                 "Take this look for the only one ever: finds changes sooner, and errs\n"
                 "far more often than said where it is repeated");
  verb->add_option("--json", options->common.json,
                   "Write the result as JSON to FILE, or to standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->default_str("-");
  verb->footer(
      "Examples:\n"
      "  weir trend changes                            every night, after weir trend import\n"
      "  weir trend changes --cell '*/vulkan/*' --newer 336h\n"
      "  weir trend changes --json | jq '.[] | select(.worse)'\n"
      "Exit codes: 0 nothing to look at; 1 a change for the worse that nobody has acknowledged\n"
      "(weir trend ack); 2 usage; 3 there is no such series.");
  set_action(*verb, [options] { return changes(*options); });
}

void add_trend_ack(CLI::App& trend) {
  CLI::App* verb = trend.add_subcommand("ack", "Say that a change is known, and why");
  auto options = std::make_shared<AckOptions>();
  add_store_options(*verb, options->store);
  add_filter_options(*verb, options->filter);
  add_repository_option(*verb, options->repository);
  verb->add_option("--commit", options->commit, "Changes that begin at it (its first digits do)")
      ->type_name("SHA")
      ->check([](const std::string& text) {
        return text.size() >= 7 ? std::string() : std::string("7 digits at least");
      });
  verb->add_option("--at", options->at, "Changes that begin at a time: 2026-11-04T02:17:00Z")
      ->type_name("TIME");
  verb->add_option("--reason", options->reason, "Why, for those who read it later")
      ->type_name("TEXT");
  verb->add_option("--who", options->who, "Who says so (default: USER's value)")
      ->type_name("LOGIN");
  verb->footer(
      "Examples:\n"
      "  weir trend ack --commit 1a2b3c4 --reason 'the new sampler, #812'\n"
      "  weir trend ack --commit 1a2b3c4 --cell '*/cpu/*' --reason 'known, to be mended' --who "
      "ada");
  set_action(*verb, [options] { return acknowledge(*options); });
}

}  // namespace weir::app
