// weir merge: the runs of all shards joined into one.
#include "gate/app/options.hpp"
#include "gate/flow/shards.hpp"

namespace weir::app {

void add_merge(const Verb& verb) {
  auto options = std::make_shared<flow::MergeOptions>();
  verb.option("RUN", options->runs, "", "Folders of runs, or their run.jsonl")->required();
  verb.preset("--out", verb.job().asked.out, "", "Where runs go");
  verb.flag("--partial", options->partial,
            "Shards may be missing: their cells could not be measured (exit 3 when judged)");
  verb->footer(
      "Examples:\n"
      "  weir merge shard-*/weir-out/*        duplicates and holes are errors that name the cells\n"
      "  weir gate --from                     judges the joined run");
  verb.runs(options, flow::merge);
}

}  // namespace weir::app
