// weir gate: measures, compares and reports; the exit code is the verdict.
#include "gate/flow/gate.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

void add_gate(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::gate);
  verb.add_group(OptionGroup::measuring);
  verb.flag("--require-baseline", options->require_baseline,
            "Fail with exit code 3 where an exact baseline is missing");
  verb.option("--rules-from", options->rules.rules_from, "REF",
              "Judge by the limits, gate settings, cpu_ops_allowed and baselines of REF's commit; "
              "list the working tree's edits of them as proposals");
  verb.option(
      "--baselines-ref", options->rules.baselines_ref, "REF[:PATH]",
      "Read baselines from this branch or commit (default PATH: its folder baselines, or its top)");
  verb.option("--waivers-ref", options->waived.ref, "REF",
              "Read this pull request's waivers (weir waive) from this branch");
  verb.option("--pr", options->waived.pull_request, "N",
              "Pull-request number (default: from the workflow's event)")
      ->check(CLI::PositiveNumber);
  verb.option("--base", options->waived.base, "BRANCH",
              "Branch that the pull request targets (default: from the workflow's event)");
  verb.list_option("--merged-pr", options->waived.merged, "N@COMMIT",
                   "The waivers of this pull request, whose head was COMMIT, hold as well: what is "
                   "judged has it merged (--base: into which branch); repeatable");
  verb.list_option("--base-pr", options->waived.in_base, "N@COMMIT",
                   "The same of one that the base has merged too: they hold beside a stored "
                   "baseline that lacks its level");
  verb.optional("--against", options->against, "REF|DIR",
                "Compare with a base build, counts and times in pairs: a REF or DIR, or -- "
                "COMMAND… at the end of the line");
  verb.optional("--from", options->from, "[RUN]",
                "Judge RUN again without measuring (default: the newest)");
  verb.option("--processes", options->wanted.plan.counted_processes, "N",
              "Processes that count each cell, and the base as often (default: 1, more where a "
              "count varies)")
      ->excludes("--from")
      ->check(CLI::Range(1, 1000));
  verb.option("--budget", options->wanted.budget, "DURATION",
              "Time for all pairs of --against and --confirm (default: gate.budget)")
      ->excludes("--from");
  CLI::Option* results =
      verb.list_option("--results", options->results, "PATH",
                       "Judge the result of AIPerf, guidellm, vllm bench serve, SGLang or another "
                       "tool as a run of its cell, or all results of a folder; repeatable, a run "
                       "each");
  CLI::Option* confirm =
      verb.option("--confirm", options->confirm.ref, "REF",
                  "Re-test suspected slowdowns in paired runs with the base of REF (default: "
                  "gate.confirm, or the branch that a pull request targets)");
  verb.flag("--no-confirm", options->confirm.off, "Judge times by stored samples alone")
      ->excludes(confirm);
  add_measure_options(verb, options->wanted);
  verb->get_option("--resume")->excludes("--from");
  for (const char* other : {"--against", "--from", "--confirm", "--resume", "--runs", "--shard",
                            "--profiling-cost", "--counts-only"}) {
    results->excludes(other);
  }
  add_report_files(verb, options->files);
  verb->footer(
      "Examples:\n"
      "  weir gate                              everything\n"
      "  weir gate --counts-only                counts, kernels, placement: exact\n"
      "  weir gate --cell '*/vulkan/decode'     some cells\n"
      "  weir gate --against origin/main        compare with the merge-base, in pairs\n"
      "  weir gate --against -- ../old/llama-bench -m '{model}' …    another program\n"
      "  weir gate --rules-from refs/remotes/origin/main    by the rules of that branch\n"
      "  weir gate --baselines-ref refs/remotes/origin/perf-baselines    on a branch\n"
      "  weir gate --from --html report.html    judge the newest run again\n"
      "  weir gate --from RUN --rules-from main    a fork's run, by main's rules\n"
      "  weir gate --results profile_export_aiperf.json    another tool's result\n\n"
      "Exit codes: 0 pass, 1 a limit is broken, 2 usage or configuration error,\n"
      "3 something could not be measured, 4 inconclusive (if gate.on_inconclusive is\n"
      "fail), 130 interrupted.");
}

}  // namespace weir::app
