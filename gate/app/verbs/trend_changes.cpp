// weir trend changes|ack: where a history changed, and what is known of it.
#include "gate/app/options.hpp"
#include "gate/flow/trend.hpp"

namespace weir::app {

void add_trend_changes(const Verb& trend) {
  const Verb verb = trend.below("changes", "Where series changed, and by how much");
  auto options = std::make_shared<flow::TrendChangesOptions>();
  add_history_options(verb, *options);
  add_repository_option(verb, options->repository);
  verb.option("--newer", options->newer, "DURATION",
              "Only changes that began within DURATION: 336h");
  verb.flag("--all", options->all, "Also those that somebody acknowledged");
  verb.range("--sensitivity", options->wanted.sensitivity, 0, 4,
             "Each more finds changes sooner, and about doubles the false ones");
  verb.option("--false-alarm", options->wanted.false_alarm, "SHARE",
              "In its place: share of series without a change that may show one in a year")
      ->check(CLI::Range(1e-9, 0.5));
  verb.flag("--any-series", options->wanted.any_series,
            "That share is of any series at all, not of each");
  verb->add_flag("--once")->group("");  // taken and of no use: every night is a look
  verb.takes_json();
  verb->footer(
      "Examples:\n"
      "  weir trend changes                            every night, after weir trend import\n"
      "  weir trend changes --cell '*/vulkan/*' --newer 336h\n"
      "  weir trend changes --json | jq '.[] | select(.worse)'\n"
      "Exit codes: 0 nothing to look at; 1 a change for the worse that nobody has acknowledged\n"
      "(weir trend ack); 2 usage; 3 there is no such series.");
  verb.runs(options, flow::trend_changes);
}

void add_trend_ack(const Verb& trend) {
  const Verb verb = trend.below("ack", "Say that a change is known, and why");
  auto options = std::make_shared<flow::TrendAckOptions>();
  add_history_options(verb, *options);
  add_repository_option(verb, options->repository);
  verb.option("--commit", options->commit, "SHA", "Changes that begin at it (its first digits do)")
      ->check([](const std::string& text) {
        return text.size() >= 7 ? std::string() : std::string("7 digits at least");
      });
  verb.option("--at", options->at, "TIME", "Changes that begin at a time: 2026-11-04T02:17:00Z");
  verb.option("--reason", options->reason, "TEXT", "Why, for those who read it later");
  verb.option("--who", options->who, "LOGIN", "Who says so (default: USER's value)");
  verb->footer(
      "Examples:\n"
      "  weir trend ack --commit 1a2b3c4 --reason 'the new sampler, #812'\n"
      "  weir trend ack --commit 1a2b3c4 --cell '*/cpu/*' --reason 'known, to be mended' --who "
      "ada");
  verb.runs(options, flow::acknowledge_change);
}

void add_trend_notify(const Verb& trend) {
  const Verb verb = trend.below("notify", "One issue on GitHub a change that is news");
  auto options = std::make_shared<flow::TrendNotifyOptions>();
  add_history_options(verb, *options);
  add_repository_option(verb, options->checkout);
  verb.option("--repo", options->repository, "OWNER/NAME", "Where to (default: GITHUB_REPOSITORY)");
  verb.preset("--newer", options->newer, "DURATION", "Only changes that began within DURATION");
  verb.option("--site-url", options->site_url, "URL", "Where the pages are, to link to");
  verb.preset("--label", options->issues.label, "NAME", "Issues bear it, and are found by it");
  verb.preset("--most", options->issues.most_new, "N", "New issues at once");
  add_github_options(verb, options->access);
  verb.preset("--time-limit", options->access.time_limit, "DURATION",
              "For all that the API is asked");
  verb.flag("--dry-run", options->dry_run, "Show what would be sent, and send nothing");
  verb.takes_json();
  verb.takes_quiet();
  verb->footer(
      "Examples:\n"
      "  weir trend notify --repo o/r --dry-run\n"
      "  weir trend notify --site-url https://o.github.io/r/    in a nightly job, issues: write\n"
      "An issue is edited while it is open; what people closed stays closed. A change that is\n"
      "acknowledged (weir trend ack) has none. Exit codes: 0, 2 usage, 3 not all could be said.");
  verb.runs(options, flow::notify_changes);
}

}  // namespace weir::app
