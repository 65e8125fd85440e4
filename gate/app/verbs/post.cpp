// weir post: posts a verdict to a pull request and its commit.
#include "gate/flow/post.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

namespace {

// Adds "--no-NAME", which excludes the option `with`.
void add_without(const Verb& verb, const std::string& name, bool& wanted, CLI::Option* with) {
  verb->add_flag_callback(
          "--no-" + name, [&wanted] { wanted = false; }, fmt::format("Leave the {} out", name))
      ->excludes(with);
}

// Adds "--NAME", which is the default, and "--no-NAME".
void add_part(const Verb& verb, const std::string& name, bool& wanted) {
  add_without(
      verb, name, wanted,
      verb->add_flag_callback(
          "--" + name, [&wanted] { wanted = true; }, fmt::format("Post the {} (default)", name)));
}

}  // namespace

void add_post(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::post);
  verb.option("RUN", options->run, "",
              "A run's folder, or a verdict.json (default: the newest run in --out)");
  verb.option("--repo", options->repository, "OWNER/NAME",
              "Repository (default: GITHUB_REPOSITORY)");
  verb.option("--pr", options->pull_request, "N", "Pull-request number");
  verb.option("--sha", options->sha, "SHA", "Commit that was measured")
      ->check([](const std::string& text) {
        return text.empty() ? std::string("expected a commit") : std::string();
      });
  verb.option("--event", options->event_file, "FILE",
              "GitHub's event, which names all three (default: GITHUB_EVENT_PATH)");
  verb.option("--name", options->name, "NAME",
              "Name of this gate, for pull requests with several: each has its own comment");
  add_github_options(verb, options->access);
  verb.option("--run-url", options->run_url, "URL", "Page to link to (default: the workflow run)");
  add_without(verb, "comment", options->parts.comment,
              verb.option("--comment", options->comment, "",
                          "When to make a comment (default: gate.comment of the weir.yaml that "
                          "judged, else changed)")
                  ->check(CLI::IsMember({"changed", "always", "never"})));
  add_part(verb, "check", options->parts.check);
  add_part(verb, "status", options->parts.status);
  verb.option("--missing-verdict", options->missing_verdict, "WHY",
              "If there is no verdict, post that nothing was measured, and WHY");
  verb.flag("--judged-here", options->judged_here,
            "This job made the verdict from a fork's records by the base's rules (weir gate --from "
            "RUN --rules-from BASE): a pass of it counts");
  verb.flag("--dry-run", options->dry_run,
            "Print what would be sent; needs no network and no token");
  verb.flag("--fail", options->fail, "Exit with 3 if something could not be posted");
  verb.option_with_default("--time-limit", options->access.time_limit, "DURATION",
                           "Time for all requests");
  verb.option_with_default("--settle", options->settle, "DURATION",
                           "Time to look for another poster's comment after posting one");
  verb.add_out_option();
  verb.add_json_option(
      "Write what was posted, or would be sent, as JSON (default FILE: standard output)");
  verb.add_quiet_option("Print the answer only");
  verb->footer(
      "Examples:\n"
      "  weir post                      on GitHub's runners: the event says where\n"
      "  weir post --repo o/r --pr 7 --sha $(git rev-parse HEAD) --dry-run\n"
      "  weir post artifact/verdict.json --name gpu     in a workflow_run workflow\n\n"
      "docs/how-to/post.md has tokens, permissions, forks and GitHub Enterprise.\n"
      "Exit codes: 0 also if something could not be posted, unless --fail is given\n"
      "(then 3); 2 usage error.");
}

}  // namespace weir::app
