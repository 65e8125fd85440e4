// weir plan: the matrix split into shards, for a CI system's own matrix or Slurm.
#include "gate/app/options.hpp"
#include "gate/flow/shards.hpp"

namespace weir::app {

void add_plan(const Verb& verb) {
  auto options = std::make_shared<flow::ShardPlanOptions>();
  verb.takes(Takes::cells);
  verb.flag("--counts-only", verb.job().asked.counts_only, "Shards without timed passes");
  verb.option("--shards", options->shards, "", "How many, at most")
      ->required()
      ->check(CLI::Range(1, 4096));
  verb.preset("--format", options->format, "", "What is printed")
      ->check(CLI::IsMember({"text", "json", "github", "slurm"}));
  verb.preset("--plan", options->plan, "FILE",
              "Where the plan is written, for --shard I/N --plan FILE");
  verb.option("--times", options->runs, "RUN",
              "Runs that know how long cells take (default: the newest here)");
  verb.flag("--guess", options->guess, "Know nothing: the plan that --shard makes by itself");
  verb->footer(
      "Examples:\n"
      "  weir plan --shards 16                                        what each would measure\n"
      "  echo \"matrix=$(weir plan --shards 16 --format github)\" >> \"$GITHUB_OUTPUT\"\n"
      "  weir plan --shards 8 --format slurm > job.sh && sbatch job.sh\n"
      "  weir run --shard 3/16 --plan weir-plan.json                  one of them\n"
      "  weir merge shards/*/run.jsonl && weir gate --from            the whole, judged");
  verb.runs(options, flow::plan);
}

}  // namespace weir::app
