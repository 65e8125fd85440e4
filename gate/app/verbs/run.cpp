// weir run: measures the matrix and writes a run; judges nothing.
#include "gate/app/options.hpp"
#include "gate/flow/gate.hpp"

namespace weir::app {

void add_run(const Verb& verb) {
  auto options = std::make_shared<flow::RunOptions>();
  verb.takes(Takes::measuring);
  verb.optional("--resume", options->wanted.resume, "[RUN]",
                "Go on with an interrupted RUN (default: newest)");
  verb.option("--runs", options->wanted.plan.runs, "",
              "Timed processes a cell, in place of gate.runs")
      ->check(CLI::Range(1, 10'000));
  verb.option("--against", options->against, "REF|DIR",
              "Beside the base of REF, or the folder DIR: judged later, by weir gate --from");
  add_shard_options(verb, options->wanted);
  verb.flag("--dry-run", options->dry_run, "Print the engine's command lines, start none");
  verb->footer(
      "Examples:\n  weir run --counts-only\n  weir run --cell '*/decode' --json -\n  weir run "
      "--dry-run\n  weir run --shard 3/16 --plan weir-plan.json   a part; weir merge joins them");
  verb.runs(options, flow::run_matrix);
}

}  // namespace weir::app
