// weir plan: splits the matrix into shards, for a CI system's own matrix or Slurm.
#include "gate/app/options.hpp"
#include "gate/flow/shards.hpp"

namespace weir::app {

// Adds `weir plan`, which divides the cells among shards, for several machines.
void add_plan(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::plan);
  verb.add_group(OptionGroup::cells);
  verb.flag("--counts-only", verb.job().selection.counts_only,
            "Plan for runs without timed passes");
  verb.option("--shards", options->shards, "", "Most shards")
      ->required()
      ->check(CLI::Range(1, 4096));
  verb.option_with_default("--format", options->format, "", "What to print")
      ->check(CLI::IsMember({"text", "json", "github", "slurm"}));
  verb.option_with_default("--plan", options->plan, "FILE",
                           "File to write, for --shard I/N --plan FILE");
  verb.option("--times-from", options->runs, "RUN",
              "Runs that show how long cells take (default: the newest)");
  verb.option("--rules-from", options->rules_from, "REF",
              "Refuse a runner that no backend of REF's commit has; needed on pull requests, which "
              "would else choose the machine");
  verb.flag("--guess", options->guess, "Use no run: the plan that --shard makes by itself");
  verb->footer(
      "Examples:\n"
      "  weir plan --shards 16                              what each shard measures\n"
      "  echo \"matrix=$(weir plan --shards 16 --format github)\" >> \"$GITHUB_OUTPUT\"\n"
      "  weir plan --shards 8 --format slurm > job.sh && sbatch job.sh\n"
      "  weir run --shard 3/16 --plan weir-plan.json        measure one of them\n"
      "  weir merge --into all shards/*/*/run.jsonl && weir gate --from all");
}

}  // namespace weir::app
