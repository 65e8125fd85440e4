// weir waive: waives a change for one pull request, by hand on a local branch, or for a comment
// through GitHub's API.
#include "gate/app/options.hpp"
#include "gate/flow/waivers.hpp"

namespace weir::app {

// Adds `weir waive`, which permits named changes for one pull request.
void add_waive(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::waive);
  verb.option("VERDICT", options->verdict, "",
              "A verdict.json or a run's folder: waive all its fails. With --event it must match "
              "the check run");
  verb.option("--pr", options->pull_request, "N", "Pull-request number")
      ->check(CLI::PositiveNumber);
  verb.option("--sha", options->sha, "SHA",
              "Commit of the pull request; a later push voids the waiver");
  verb.option("--base", options->base, "BRANCH",
              "Branch that the pull request is for; another one voids the waiver");
  verb.option("--cell", options->cell, "CELL", "Benchmark cell, as reports name it");
  verb.option("--metric", options->metric, "METRIC", "Metric to waive");
  verb.option("--base-value", options->from, "VALUE",
              "Exact value of the base: 65, 133/2; \"0 %\" for a time");
  verb.option("--waived-value", options->to, "VALUE",
              "Exact value that is waived; for a time the worst change, \"-12 %\"");
  verb.option("--reason", options->reason, "TEXT", "Reason, for those who read it later");
  verb.option("--who", options->who, "LOGIN", "Login of the person who waives it");
  verb.option("--until", options->until, "DATE", "Last day of the waiver (default: in 30 days)");
  verb.option_with_default("--waivers-ref", options->branch, "BRANCH", "Branch to write it to");
  verb.option("--event", options->event_file, "FILE",
              "Carry out the comment of this issue_comment event, if its author has write access: "
              "/weir waive CODE REASON, /weir run SHA");
  verb.option("--name", options->gate, "NAME", "Name of the gate, as given to weir post");
  add_github_options(verb, options->access);
  verb.option_with_default("--time-limit", options->access.time_limit, "DURATION",
                           "Time for all requests to the API");
  verb.add_group(OptionGroup::config);
  verb->footer(
      "Examples:\n"
      "  weir waive weir-out/RUN --pr 12 --sha $(git rev-parse HEAD) --who ada \\\n"
      "    --reason 'new fusion'\n"
      "  weir waive --pr 12 --cell llama.cpp/tiny/vulkan/decode \\\n"
      "    --metric dispatches_per_token --base-value 65 --waived-value 77 \\\n"
      "    --who ada --reason 'new fusion' --until 2026-12-31\n"
      "  weir waive --event \"$GITHUB_EVENT_PATH\"     in an issue_comment workflow\n\n"
      "By hand, the waiver becomes a commit on a local branch for you to push.\n"
      "docs/explanation/rules.md says who may waive what.\n"
      "Exit codes: 0 done, or nothing was asked for; 1 refused; 2 usage error.");
}

}  // namespace weir::app
