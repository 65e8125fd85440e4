// weir hook: installs, removes and runs the pre-push check.
#include "gate/flow/hook.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

namespace {

// Adds the options that say which cells a push is judged by, and for how long.
void add_judging_options(const Verb& verb, flow::HookOptions& options) {
  verb.list_option("--cell", verb.job().selection.cells, "GLOB", "Only cells that match GLOB");
  verb.option_with_default("--time-limit", options.limit, "DURATION",
                           "Time for measuring, cheapest cells first");
  verb.option("--against", options.against, "REF",
              "Branch whose merge-base is the base (default: the main branch of the remote)");
  CLI::Option* build = verb.flag(
      "--build", options.build,
      "Build missing trees, however long it takes (default: for as long as --time-limit)");
  verb.flag("--no-build", options.no_build, "Judge only trees that are built")->excludes(build);
  verb.flag("--strict", options.strict, "Refuse a push whose cells could not all be judged");
  verb.flag("--all", options.all, "Include cells that run none of the changed code (weir reach)");
}

}  // namespace

// Adds `weir hook` with install, uninstall and run. Installing takes the options of running, which
// the hook then passes.
void add_hook(const Verb& verb) {
  verb->require_subcommand(1);
  auto options = std::make_shared<flow::HookOptions>();
  const Verb install = verb.subcommand("install", "Install the pre-push hook");
  const Verb uninstall = verb.subcommand("uninstall", "Remove the pre-push hook");
  const Verb run = verb.subcommand("run", "Judge what is pushed; git starts this");
  for (const Verb& subcommand : {install, uninstall, run}) subcommand.add_config_option();
  add_judging_options(install, *options);
  add_judging_options(run, *run.set_flow_with_new_options(flow::run_hook));
  run.add_out_option();
  install->footer(
      "A hook that is already there stays, and runs first. Only a broken limit stops a\n"
      "push; with --strict also a cell that could not be judged.\n"
      "To skip it once: WEIR_SKIP=1 git push, or git push --no-verify.\n\n"
      "Examples:\n"
      "  weir hook install\n"
      "  weir hook install --time-limit 20s --cell '*/decode' --against origin/main");
  install.set_flow(options, flow::install_hook);
  uninstall.set_flow(options, flow::uninstall_hook);
  verb->footer("Example:\n  weir hook install --time-limit 20s");
}

}  // namespace weir::app
