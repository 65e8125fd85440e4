// weir baseline accept|list|show|prune: what is stored.
#include "gate/app/options.hpp"
#include "gate/flow/accept.hpp"
#include "gate/flow/stored_baselines.hpp"

namespace weir::app {

namespace {

void add_accept(const Verb& baseline) {
  const Verb verb = baseline.below("accept", "Make what was measured the new baseline");
  auto options = std::make_shared<flow::AcceptOptions>();
  verb.option("RUN", options->run, "", "The run whose times are taken (default: the newest)");
  verb.takes(Takes::measuring);
  verb.option("--baselines-ref", options->baselines_ref, "BRANCH[:PATH]",
              "Onto this local branch (in PATH there) as a commit, in place of --baselines;\n"
              "no work tree is touched, and git push is yours");
  verb.option("--from-artifact", options->artifact, "RUN",
              "Store the counts of this downloaded run as its journal has them; nothing is\n"
              "counted here");
  verb.option("--allowances", options->allowances, "N",
              "Store what pull request N was allowed, once it is merged: the exact values")
      ->check(CLI::PositiveNumber);
  verb.preset("--allowances-ref", options->allowances_ref, "REF",
              "The branch that holds allowances");
  verb.repeated("--metric", options->metrics, "GLOB",
                "Only these metrics (globs); may be repeated");
  verb->footer(
      "Each exact count is taken in three fresh processes first; only if they agree is it exact.\n"
      "Instructions are taken ten times: how far they lie apart is what later counts may vary by.\n"
      "Times come from RUN; with --counts-only, or where no run is kept, nothing older is used.\n\n"
      "Examples:\n  weir baseline accept --counts-only\n"
      "  weir baseline accept --cell 'llama.cpp/*/vulkan/*' --metric 'dispatches*'\n"
      "  weir baseline accept --counts-only --baselines-ref perf-baselines\n"
      "  weir baseline accept --from-artifact downloaded/run\n"
      "  weir baseline accept --allowances 12 --baselines-ref perf-baselines");
  verb.runs(options, flow::accept);
}

}  // namespace

void add_baseline(const Verb& verb) {
  verb->require_subcommand(1);
  add_accept(verb);

  struct Shows {
    const char *name, *what, *example;
    bool whole;
  };
  for (const Shows& one : {Shows{"list", "One line a stored baseline", "list '*/vulkan/*'", false},
                           Shows{"show", "Everything stored of some cells",
                                 "show llama.cpp/tiny-llama/vulkan/decode", true}}) {
    const Verb shows = verb.below(one.name, one.what);
    auto options = std::make_shared<flow::BaselineListOptions>();
    options->whole = one.whole;
    shows.option("CELL", shows.job().asked.cells, "", "Cells, as names or globs");
    shows->footer(fmt::format("Example:\n  weir baseline {}", one.example));
    shows.takes_baselines();
    shows.takes_json();
    shows.runs(options, flow::list_baselines);
  }
  const Verb prune =
      verb.below("prune", "Remove the baselines of cells that the config no longer has");
  auto options = std::make_shared<flow::BaselinePruneOptions>();
  prune.takes_baselines();
  prune.takes_config();
  prune.flag("-n,--dry-run", options->dry, "Only say what would be removed");
  prune.runs(options, flow::prune_baselines);
}

}  // namespace weir::app
