// Writes a plan of shards as a table, as GitHub's matrix and as a Slurm script.
#include "gate/report/shards_text.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {

// Returns the options of `weir run` that every shard needs.
static std::string options_text(const ShardsText& plan) {
  std::string options;
  if (plan.config != "weir.yaml") options += " -c " + text::shell_word(plan.config);
  for (const std::string& cell : plan.cells) options += " --cell " + text::shell_word(cell);
  if (plan.counts_only) options += " --counts-only";
  return options + " --plan " + text::shell_word(plan.plan_file);
}

// Lists shards (parts of a run, one a machine) with runner, cells and time, and says how even they
// are.
std::string shards_text(const ShardsText& plan, std::size_t width) {
  TextTable table{.headings = {"shard", "runner", "cells", "about", "first cell"},
                  .right_aligned = {true, false, true, true, false}};
  double longest_seconds = 0, total_seconds = 0;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    const ShardsText::Shard& shard = plan.shards[i];
    longest_seconds = std::max(longest_seconds, shard.seconds);
    total_seconds += shard.seconds;
    table.rows.push_back(
        {fmt::format("{}", i + 1),
         shard.runner.empty() ? "any" : printable_line(text::join(shard.runner, "+"), 40),
         fmt::format("{}", shard.cells.size()), unit::show_duration(shard.seconds),
         shard.cells.empty() ? "" : printable_line(shard.cells.front(), 60)});
  }
  Page page(width);
  page.add_table(table, 0);
  page.add_blank_line();
  page.add_text(
      "{} in {}; the longest takes about {} of {} in all. Times of {} of them are known "
      "from runs, the rest is a guess.",
      text::plural(plan.cells_in_all, "cell"), text::plural(plan.shards.size(), "shard"),
      unit::show_duration(longest_seconds), unit::show_duration(total_seconds),
      plan.cells_with_known_time);
  page.add_text("Each machine: weir run --shard I/{}{}", plan.shards.size(), options_text(plan));
  page.add_text("Then: weir merge --into RUN SHARD…, and weir gate --from RUN");
  return page.finish();
}

// Returns the shards as one line of JSON for strategy.matrix of a GitHub job.
std::string shards_for_github(const ShardsText& plan) {
  Json include = Json::array();
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    const ShardsText::Shard& shard = plan.shards[i];
    include.push_back({{"shard", fmt::format("{}/{}", i + 1, plan.shards.size())},
                       {"runner", shard.runner.empty() ? std::vector<std::string>{"ubuntu-latest"}
                                                       : shard.runner},
                       {"cells", shard.cells.size()},
                       {"minutes", std::ceil(shard.seconds / 60)}});
  }
  return dump_json({{"include", include}});
}

// Returns a script for sbatch: an array job with a task for each shard.
std::string shards_for_slurm(const ShardsText& plan) {
  const std::vector<std::string>& runner = plan.shards.front().runner;
  const bool same_runner =
      std::ranges::all_of(plan.shards, [&](const auto& shard) { return shard.runner == runner; });
  std::string script =
      "#!/bin/bash\n"
      "# Made by weir plan: one task a shard. A task that is requeued goes on with what it had.\n"
      "#SBATCH --job-name=weir\n";
  script += fmt::format("#SBATCH --array=1-{}\n", plan.shards.size());
  script +=
      "#SBATCH --ntasks=1\n"
      "#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n";
  if (same_runner && !runner.empty()) {
    script += fmt::format("#SBATCH --constraint={}\n", text::shell_word(text::join(runner, "&")));
  } else if (!same_runner) {
    script +=
        "# Shards need different runners, and one array has one constraint for all: plan each "
        "kind\n"
        "# with a --cell of its own, or choose nodes here.\n";
  }
  const std::string out = text::shell_word(plan.out + "/shards");
  script += fmt::format(
      "set -u\n"
      "cd \"${{SLURM_SUBMIT_DIR:-.}}\"\n"
      "out={}/\"$SLURM_ARRAY_TASK_ID\"\n"
      "resume=()\n"
      "if [ -n \"$(find \"$out\" -maxdepth 2 -name run.jsonl -print -quit 2>/dev/null)\" ]; then\n"
      "  resume=(--resume)\n"
      "fi\n"
      "exec weir run --shard \"$SLURM_ARRAY_TASK_ID/{}\"{} --out \"$out\" \"${{resume[@]}}\"\n"
      "# When all are done: weir merge --into RUN {}/*/*/ && weir gate --from RUN\n",
      out, plan.shards.size(), options_text(plan), out);
  return script;
}

}  // namespace weir::report
