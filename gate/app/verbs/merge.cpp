// weir merge: joins the runs of all shards into one.
#include "gate/app/options.hpp"
#include "gate/flow/shards.hpp"

namespace weir::app {

// Adds `weir merge`, which joins the runs of shards (parts of one plan) to one run.
void add_merge(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::merge);
  verb.option("RUN", options->runs, "", "Folders of runs, or their run.jsonl")->required();
  CLI::Option* out =
      verb.option_with_default("--out", verb.job().selection.runs_folder, "", "Folder of runs");
  verb.option("--into", options->into, "DIR",
              "Folder of the joined run, which must not exist (default: a new one in --out)")
      ->excludes(out);
  verb.flag("--partial", options->partial,
            "Accept missing shards: weir gate treats their cells as not measured");
  verb->footer(
      "Duplicate and missing cells are errors that name them.\n\n"
      "Examples:\n"
      "  weir merge shard-*/weir-out/*\n"
      "  weir merge --into joined shard-*/weir-out/* && weir gate --from joined");
}

}  // namespace weir::app
