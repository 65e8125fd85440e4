// weir hook: the pre-push check, put in place, taken away, and what git starts.
#include "gate/flow/hook.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

namespace {

void add_judging(const Verb& verb, flow::HookOptions& options) {
  verb.repeated("--cell", verb.job().asked.cells, "GLOB", "Only cells whose name matches GLOB");
  verb.preset("--limit", options.limit, "DURATION",
              "Time for measuring; the cheapest cells come first");
  verb.option("--against", options.against, "REF",
              "The branch whose merge-base is the base (default: the main one of the\n"
              "remote that is pushed to)");
  CLI::Option* build = verb.flag("--build", options.build,
                                 "Build what is not built, however long it takes (default: for as\n"
                                 "long as --limit)");
  verb.flag("--no-build", options.no_build, "Judge only what is built")->excludes(build);
  verb.flag("--strict", options.strict, "Keep a push back whose cells could not all be judged");
  verb.flag("--all", options.all,
            "Also cells that run nothing of what changed, by their record (weir reach)");
}

}  // namespace

void add_hook(const Verb& verb) {
  verb->require_subcommand(1);
  auto options = std::make_shared<flow::HookOptions>();
  const Verb install = verb.below("install", "Put the pre-push hook in place");
  const Verb uninstall = verb.below("uninstall", "Take it away again");
  const Verb run = verb.below("run", "What git starts: judges what is pushed");
  for (const Verb& one : {install, uninstall, run}) one.takes_config();
  for (const Verb& one : {install, run}) add_judging(one, *options);
  run.takes_out();
  install->footer(
      "Examples:\n"
      "  weir hook install                          beside a hook that is there, which runs first\n"
      "  weir hook install --limit 20s --cell '*/decode' --against origin/main\n\n"
      "A push is kept back by a broken limit alone, with --strict also by what was not judged.\n"
      "Not now: WEIR_SKIP=1 git push, or git push --no-verify.");
  install.runs(options, flow::install_hook);
  uninstall.runs(options, flow::uninstall_hook);
  run.runs_with_words(options, flow::run_hook);
}

}  // namespace weir::app
