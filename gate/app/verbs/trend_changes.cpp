// weir trend changes|ack|notify: lists, acknowledges and reports the change points of a history.
#include "gate/app/options.hpp"
#include "gate/flow/trend.hpp"

namespace weir::app {

// Adds `weir trend changes`, which lists the change points of a history.
void add_trend_changes(const Verb& trend) {
  const Verb verb = trend.subcommand("changes", "List change points, with their size");
  const auto options = verb.set_flow_with_new_options(flow::trend_changes);
  add_history_options(verb, *options);
  add_repository_option(verb, options->repository);
  verb.option("--newer", options->newer, "DURATION",
              "Only changes that began within DURATION, such as 336h");
  verb.flag("--all", options->all, "Include acknowledged changes");
  verb.range("--sensitivity", options->wanted.sensitivity, 0, 4,
             "Each step finds changes sooner, and about doubles the false ones");
  verb.option("--false-alarm", options->wanted.false_alarm, "SHARE",
              "Instead of --sensitivity: share of unchanged series that may show a change within a "
              "year")
      ->check(CLI::Range(1e-9, 0.5));
  verb.flag("--any-series", options->wanted.any_series,
            "Apply that share to all series together, not to each");
  verb.add_json_option();
  verb->footer(
      "Examples:\n"
      "  weir trend changes                    every night, after weir trend import\n"
      "  weir trend changes --cell '*/vulkan/*' --newer 336h\n"
      "  weir trend changes --json | jq '.[] | select(.worse)'\n\n"
      "Exit codes: 0 nothing new; 1 a change for the worse that nobody acknowledged\n"
      "(weir trend ack); 2 usage error; 3 no such series.");
}

// Adds `weir trend ack`, which acknowledges a change, so that it counts as known.
void add_trend_ack(const Verb& trend) {
  const Verb verb = trend.subcommand("ack", "Acknowledge a change");
  const auto options = verb.set_flow_with_new_options(flow::acknowledge_change);
  add_history_options(verb, *options);
  add_repository_option(verb, options->repository);
  verb.option("--commit", options->commit, "SHA",
              "Changes that begin at this commit (7 digits or more)")
      ->check([](const std::string& text) {
        return text.size() >= 7 ? std::string() : std::string("expected 7 digits or more");
      });
  verb.option("--at", options->at, "TIME",
              "Changes that begin at this time, such as 2026-11-04T02:17:00Z");
  verb.option("--reason", options->reason, "TEXT", "Reason, for those who read it later");
  verb.option("--who", options->who, "LOGIN",
              "Login of the person who knows (default: USER, or user.name of git)");
  verb->footer(
      "Examples:\n"
      "  weir trend ack --commit 1a2b3c4 --reason 'the new sampler, #812'\n"
      "  weir trend ack --commit 1a2b3c4 --cell '*/cpu/*' --reason known --who ada");
}

// Adds `weir trend notify`, which opens a GitHub issue for each new change.
void add_trend_notify(const Verb& trend) {
  const Verb verb = trend.subcommand("notify", "Open one GitHub issue per new change");
  const auto options = verb.set_flow_with_new_options(flow::notify_changes);
  add_history_options(verb, *options);
  add_repository_option(verb, options->checkout);
  verb.option("--repo", options->repository, "OWNER/NAME",
              "Repository (default: GITHUB_REPOSITORY)");
  verb.option_with_default("--newer", options->newer, "DURATION",
                           "Only changes that began within DURATION");
  verb.option("--site-url", options->site_url, "URL", "Home of the pages, to link to");
  verb.option_with_default("--label", options->issues.label, "NAME",
                           "Label of the issues, by which weir finds them");
  verb.option_with_default("--most", options->issues.max_new_issues, "N",
                           "Most new issues per call");
  add_github_options(verb, options->access);
  verb.option_with_default("--time-limit", options->access.time_limit, "DURATION",
                           "Time for all requests to the API");
  verb.flag("--dry-run", options->dry_run, "Print what would be sent, and send nothing");
  verb.add_json_option();
  verb.add_quiet_option();
  verb->footer(
      "weir edits an issue while it is open, and leaves closed ones alone. Acknowledged\n"
      "changes (weir trend ack) get none.\n\n"
      "Examples:\n"
      "  weir trend notify --repo o/r --dry-run\n"
      "  weir trend notify --site-url https://o.github.io/r/    in a nightly job\n\n"
      "Exit codes: 0 done, 2 usage error, 3 something could not be posted.");
}

}  // namespace weir::app
