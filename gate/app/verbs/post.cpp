// weir post: a verdict to a pull request and its commit.
#include "gate/flow/post.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

namespace {

// "--check" and "--no-check", of which the first is what goes without saying.
void add_part(const Verb& verb, const std::string& name, bool& wanted) {
  CLI::Option* with = verb->add_flag_callback(
      "--" + name, [&wanted] { wanted = true; }, fmt::format("Post the {} (default)", name));
  verb->add_flag_callback(
          "--no-" + name, [&wanted] { wanted = false; }, fmt::format("Leave the {} out", name))
      ->excludes(with);
}

void add_where(const Verb& verb, flow::PostOptions& words) {
  verb.option("--repo", words.repository, "OWNER/NAME", "Where to (default: GITHUB_REPOSITORY)");
  verb.option("--pr", words.pull_request, "N", "The pull request that is commented on");
  verb.option("--sha", words.sha, "SHA", "The commit that was measured")
      ->check([](const std::string& text) {
        return text.empty() ? std::string("a commit is meant") : std::string();
      });
  verb.option("--event", words.event_file, "FILE",
              "GitHub's event, which says all three (default: GITHUB_EVENT_PATH)");
  verb.option("--name", words.name, "NAME",
              "Of this gate, where a pull request has several: each has a comment of its own");
  add_github_options(verb, words.access);
  verb.option("--run-url", words.run_url, "URL", "The page that is linked (default: GitHub's run)");
}

}  // namespace

void add_post(const Verb& verb) {
  auto words = std::make_shared<flow::PostOptions>();
  verb.option("RUN", words->run, "",
              "A run's folder, or a verdict.json (default: the newest run below --out)")
      ->type_name("");
  add_where(verb, *words);
  add_part(verb, "comment", words->parts.comment);
  add_part(verb, "check", words->parts.check);
  add_part(verb, "status", words->parts.status);
  verb.option("--missing-verdict", words->missing_verdict, "WHY",
              "Where there is no verdict, post that nothing was measured, and why");
  verb.flag("--dry-run", words->dry_run,
            "Print what would be sent where nothing was posted yet; no network, no token");
  verb.flag("--fail", words->fail, "Exit 3 where a part could not be posted");
  verb.preset("--time-limit", words->access.time_limit, "DURATION", "For all of it");
  verb.preset("--settle", words->settle, "DURATION",
              "How long to look for another poster's comment after making one");
  verb.takes_out();
  verb.takes_json("Write what was posted, or would be sent, as JSON to FILE or standard output");
  verb.takes_quiet("Only the answer");
  verb->footer(
      "Examples:\n"
      "  weir post                                    on GitHub's runners: the event says where\n"
      "  weir post --repo o/r --pr 7 --sha $(git rev-parse HEAD) --dry-run\n"
      "  weir post artifact/verdict.json --name gpu   in a workflow_run workflow\n\n"
      "What can not be posted is told; the exit code stays 0 unless --fail is given (then 3). 2 "
      "is\n"
      "a usage error. docs/how-to/post.md has tokens, permissions, forks and GitHub Enterprise.");
  verb.runs(words, flow::post);
}

}  // namespace weir::app
