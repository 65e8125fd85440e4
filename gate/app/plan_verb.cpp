// weir plan: the matrix split into shards, for a CI system's own matrix or Slurm.
#include <memory>

#include "gate/app/command_line.hpp"
#include "gate/app/shards.hpp"
#include "gate/report/texts.hpp"

namespace weir::app {
namespace {

struct PlanVerbOptions {
  CommonOptions common;
  std::size_t shards = 1;
  std::string format = "text";
  std::string plan = "weir-plan.json";
  std::vector<std::string> runs;
  bool guess = false;
};

// Of several runs the last named knows best.
Result<std::map<std::string, KnownTimes>> known(const PlanVerbOptions& options,
                                                const sys::Files& files) {
  std::map<std::string, KnownTimes> all;
  if (options.guess) return all;
  std::vector<std::string> runs = options.runs;
  if (runs.empty()) {
    const std::vector<std::string> here = run::list_runs(files, options.common.out);
    if (!here.empty()) runs.push_back(here.back());
  }
  for (const std::string& name : runs) {
    WEIR_TRY(const run::RunFile run, run::read_run(files, name));
    for (const auto& [cell, times] : known_times(run)) {
      KnownTimes& one = all[cell];
      if (times.counted > 0) one.counted = times.counted;
      if (times.timed > 0) one.timed = times.timed;
    }
  }
  return all;
}

report::ShardsText text_of(const ShardPlan& plan, const PlanVerbOptions& options,
                           const config::Veil& veil) {
  report::ShardsText text;
  text.plan_file = options.plan;
  text.config = options.common.config;
  text.out = options.common.out;
  text.cells = options.common.cells;
  text.counts_only = options.common.counts_only;
  text.cells_in_all = plan.facts.cells.size();
  text.known = plan.known;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    std::vector<std::string> cells;
    for (const std::string& cell : plan.facts.cells_of(i + 1))
      cells.push_back(veil.cell_name(cell));
    text.shards.push_back({plan.shards[i].runner, std::move(cells), plan.shards[i].seconds});
  }
  return text;
}

Result<ExitCode> plan(const PlanVerbOptions& options) {
  sys::RealFiles files;
  WEIR_TRY(const Loaded loaded, load_config(options.common, files));
  WEIR_TRY(const auto times, known(options, files));
  WEIR_TRY(const ShardPlan made,
           plan_shards(loaded, options.shards, !options.common.counts_only, times));
  const Json json = to_json(made);
  WEIR_CHECK(files.write_atomic(options.plan, dump_json(json, 1) + "\n"));
  const report::ShardsText text = text_of(made, options, loaded.veil);
  if (options.format == "json") {
    say(dump_json(json, 1) + "\n");
  } else if (options.format == "github") {
    say(report::shards_for_github(text) + "\n");
  } else if (options.format == "slurm") {
    say(report::shards_for_slurm(text));
  } else {
    say(report::shards_text(text, width_of(1)));
  }
  return ExitCode::pass;
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("plan", "Split the matrix into shards for several machines");
  auto options = std::make_shared<PlanVerbOptions>();
  add_common(*verb, options->common, Takes::cells);
  verb->add_flag("--counts-only", options->common.counts_only, "Shards without timed passes");
  verb->add_option("--shards", options->shards, "How many, at most")
      ->required()
      ->check(CLI::Range(1, 4096));
  verb->add_option("--format", options->format, "What is printed")
      ->check(CLI::IsMember({"text", "json", "github", "slurm"}))
      ->capture_default_str();
  verb->add_option("--plan", options->plan,
                   "Where the plan is written, for --shard I/N --plan FILE")
      ->type_name("FILE")
      ->capture_default_str();
  verb->add_option("--times", options->runs,
                   "Runs that know how long cells take (default: the newest here)")
      ->type_name("RUN");
  verb->add_flag("--guess", options->guess, "Know nothing: the plan that --shard makes by itself");
  verb->footer(
      "Examples:\n"
      "  weir plan --shards 16                                        what each would measure\n"
      "  echo \"matrix=$(weir plan --shards 16 --format github)\" >> \"$GITHUB_OUTPUT\"\n"
      "  weir plan --shards 8 --format slurm > job.sh && sbatch job.sh\n"
      "  weir run --shard 3/16 --plan weir-plan.json                  one of them\n"
      "  weir merge shards/*/run.jsonl && weir gate --from            the whole, judged");
  set_action(*verb, [options] { return plan(*options); });
}

}  // namespace weir::app
