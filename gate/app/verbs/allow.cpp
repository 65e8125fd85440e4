// weir allow: a change is accepted for one pull request. By hand onto a local branch, or, asked for
// by a comment, through GitHub's API.
#include "gate/app/options.hpp"
#include "gate/flow/allowances.hpp"

namespace weir::app {

void add_allow(const Verb& verb) {
  auto words = std::make_shared<flow::AllowOptions>();
  verb.option("VERDICT", words->verdict, "",
              "A verdict.json or a run's folder: all its fails. With --event it must say what\n"
              "the check run shows")
      ->type_name("");
  verb.option("--pr", words->pull_request, "N", "For this pull request alone")
      ->check(CLI::PositiveNumber);
  verb.option("--sha", words->sha, "SHA", "And this commit of it: void after a later push");
  verb.option("--cell", words->cell, "CELL", "Its name as reports show it");
  verb.option("--metric", words->metric, "METRIC", "A count's or a time's name");
  verb.option("--from", words->from, "VALUE",
              "The exact value before: 65, 133/2; of a time \"0 %\"");
  verb.option("--to", words->to, "VALUE",
              "The exact value that is allowed; of a time the worst change: \"-12 %\"");
  verb.option("--reason", words->reason, "TEXT", "Why, for those who read it later");
  verb.option("--who", words->who, "LOGIN", "Who allows it");
  verb.option("--until", words->until, "DATE", "The last day that it holds (default: in 30 days)");
  verb.preset("--allowances-ref", words->branch, "BRANCH", "The branch that it is written to");
  verb.option("--event", words->event_file, "FILE",
              "Do what the comment of this issue_comment event asks for, if its author may\n"
              "write here: /weir accept REASON, /weir run");
  verb.option("--name", words->gate, "NAME", "Of the gate, as weir post was told");
  verb.preset("--app", words->app, "SLUG", "The app that weir posts check runs as");
  add_github_options(verb, words->access);
  verb.preset("--time-limit", words->access.time_limit, "DURATION",
              "For all that the API is asked");
  verb.takes(Takes::config);
  verb->footer(
      "Examples:\n"
      "  weir allow weir-out/RUN --pr 12 --sha $(git rev-parse HEAD) --who ada --reason 'new "
      "fusion'\n"
      "  weir allow --pr 12 --cell llama.cpp/tiny/vulkan/decode --metric dispatches_per_token \\\n"
      "    --from 65 --to 77 --who ada --reason 'new fusion' --until 2026-12-31\n"
      "  weir allow --event \"$GITHUB_EVENT_PATH\"     in an issue_comment workflow\n\n"
      "By hand it becomes a commit on a local branch; git push is yours. Exit codes: 0 done, or\n"
      "nothing was asked for; 1 refused; 2 usage. docs/explanation/rules.md says who may, and what "
      "is void.");
  verb.runs(words, flow::allow);
}

}  // namespace weir::app
