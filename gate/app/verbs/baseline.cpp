// weir baseline accept|list|show|prune: manages stored baselines.
#include "gate/app/options.hpp"
#include "gate/flow/accept.hpp"
#include "gate/flow/stored_baselines.hpp"

namespace weir::app {

namespace {

// Adds `weir baseline accept`, which stores what was measured as the new baseline.
void add_accept(const Verb& baseline) {
  const Verb verb = baseline.subcommand("accept", "Store what was measured as the new baseline");
  const auto options = verb.set_flow_with_new_options(flow::accept);
  verb.option("RUN", options->run, "", "Run whose times are stored (default: the newest)");
  verb.add_group(OptionGroup::measuring);
  verb.option("--baselines-ref", options->baselines_ref, "BRANCH[:PATH]",
              "Commit to this local branch (below PATH) instead of --baselines; no work tree is "
              "touched, and you push");
  verb.option("--from-artifact", options->artifact, "RUN",
              "Store the counts of this downloaded run; count nothing here");
  verb.option("--waivers", options->waivers, "N",
              "Store the exact values that were waived for pull request N, once it is merged")
      ->check(CLI::PositiveNumber);
  verb.option_with_default("--waivers-ref", options->waivers_ref, "REF",
                           "Branch that holds the waivers");
  verb.list_option("--metric", options->metrics, "GLOB",
                   "Only metrics that match GLOB; repeatable");
  verb.option("--processes", options->processes, "N",
              "Processes that count each cell (default 3): more of them see more of what varies")
      ->check(CLI::Range(1, 1000));
  verb.option("--reason", options->reason, "TEXT", "Reason, kept with what changes");
  verb->footer(
      "weir takes each count in three fresh processes. A count is exact if they agree;\n"
      "else their values are stored, and a gate compares its own with them by rank.\n"
      "It counts instructions ten times: their spread is what later counts may vary by.\n"
      "Times come from RUN. With --counts-only, or without a run, no time is stored.\n\n"
      "Examples:\n"
      "  weir baseline accept --counts-only\n"
      "  weir baseline accept --cell 'llama.cpp/*/vulkan/*' --reason 'new sampler'\n"
      "  weir baseline accept --counts-only --baselines-ref perf-baselines\n"
      "  weir baseline accept --from-artifact downloaded/run\n"
      "  weir baseline accept --waivers 12 --baselines-ref perf-baselines");
}

}  // namespace

// Adds `weir baseline` with accept, list, show and prune. List and show share one flow: show prints
// baselines in full.
void add_baseline(const Verb& verb) {
  verb->require_subcommand(1);
  add_accept(verb);

  struct Mode {
    const char *name, *what, *example;
    bool in_full;
  };
  for (const Mode& mode :
       {Mode{"list", "List stored baselines, one a line", "list '*/vulkan/*'", false},
        Mode{"show", "Show everything stored for some cells",
             "show llama.cpp/tiny-llama/vulkan/decode", true}}) {
    const Verb subcommand = verb.subcommand(mode.name, mode.what);
    subcommand.set_flow_with_new_options(flow::list_baselines)->in_full = mode.in_full;
    subcommand.option("CELL", subcommand.job().selection.cells, "", "Cells, by name or glob");
    subcommand->footer(fmt::format("Example:\n  weir baseline {}", mode.example));
    subcommand.add_baselines_option();
    subcommand.add_json_option();
  }
  const Verb prune =
      verb.subcommand("prune", "Remove baselines of cells that weir.yaml no longer has");
  const auto options = prune.set_flow_with_new_options(flow::prune_baselines);
  prune.add_baselines_option();
  prune.add_config_option();
  prune.flag("-n,--dry-run", options->dry, "Only list what would be removed");
  prune->footer("Example:\n  weir baseline prune --dry-run");
  verb->footer(  // after the subcommands, which would inherit it
      "Examples:\n"
      "  weir baseline accept --counts-only\n"
      "  weir baseline list '*/vulkan/*'\n"
      "  weir baseline show llama.cpp/tiny-llama/vulkan/decode\n"
      "  weir baseline prune --dry-run");
}

}  // namespace weir::app
