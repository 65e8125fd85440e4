// weir run: measures the matrix and writes a run; judges nothing.
#include "gate/app/options.hpp"
#include "gate/flow/gate.hpp"

namespace weir::app {

// Adds `weir run`, which measures all cells and judges nothing.
void add_run(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::run_matrix);
  verb.add_group(OptionGroup::measuring);
  verb.option("--against", options->against, "REF|DIR",
              "Measure the base of REF, or the folder DIR, as well; weir gate --from judges");
  add_measure_options(verb, options->wanted);
  verb.flag("--dry-run", options->dry_run, "Print the engine's command lines and start none");
  verb->footer(
      "Examples:\n"
      "  weir run --counts-only\n"
      "  weir run --cell '*/decode' --json -\n"
      "  weir run --dry-run\n"
      "  weir run --shard 3/16 --plan weir-plan.json    one part; weir merge joins them");
}

}  // namespace weir::app
