// weir gate: run, compare, report; the exit code is the verdict.
#include "gate/flow/gate.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

void add_gate(const Verb& verb) {
  auto options = std::make_shared<flow::GateOptions>();
  verb.takes(Takes::measuring);
  verb.flag("--require-baseline", options->require_baseline,
            "A missing exact baseline is an error (exit 3)");
  verb.option("--rules-from", options->rules.rules_from, "REF",
              "Limits, gate settings, cpu_ops_allowed and baselines are those of REF's\n"
              "commit; the working tree's edits to them are told first, as proposals");
  verb.option("--baselines-ref", options->rules.baselines_ref, "REF[:PATH]",
              "Baselines are those of this branch or commit (in PATH there; default:\n"
              "its folder baselines, or its top)");
  verb.option("--allowances-ref", options->allowed.ref, "REF",
              "What was allowed this pull request (weir allow) is read from this branch");
  verb.option("--pr", options->allowed.pull_request, "N",
              "Its number (default: of the event that a workflow runs for)")
      ->check(CLI::PositiveNumber);
  verb.optional("--against", options->against, "REF|DIR",
                "Hold the candidate to a base program beside it: its counts, and its\n"
                "times in pairs: a REF or DIR, or -- COMMAND… at the end of the line");
  verb.optional("--from", options->from, "[RUN]",
                "Judge RUN again instead of measuring (default: newest)");
  verb.optional("--resume", options->wanted.resume, "[RUN]",
                "Go on with an interrupted RUN (default: newest)")
      ->excludes("--from");
  CLI::Option* confirm =
      verb.option("--confirm", options->confirm.ref, "REF",
                  "What is slower than stored samples is looked at in pairs beside\n"
                  "REF's base before it fails (default: gate.confirm, or the branch\n"
                  "that a pull request is to be merged into)");
  verb.flag("--no-confirm", options->confirm.off, "Stored samples alone judge times")
      ->excludes(confirm);
  verb.option("--runs", options->wanted.plan.runs, "",
              "Timed processes a cell, in place of gate.runs")
      ->check(CLI::Range(1, 10'000));
  add_shard_options(verb, options->wanted);
  add_report_files(verb, options->files);
  verb->footer(
      "Examples:\n"
      "  weir gate                              everything\n"
      "  weir gate --counts-only                counts, kernels and placement: one run is exact\n"
      "  weir gate --cell '*/vulkan/decode'     some cells\n"
      "  weir gate --against origin/main        beside the merge-base: built, counted, timed in "
      "pairs\n"
      "  weir gate --against -- ../old/llama-bench -m '{model}' …   beside another program\n"
      "  weir gate --rules-from origin/main     by the rules of the branch it is merged into\n"
      "  weir gate --baselines-ref origin/perf-baselines   baselines on a branch of their own\n"
      "  weir gate --allowances-ref origin/perf-baselines --pr 12   with what 12 was allowed\n"
      "  weir gate --from --html report.html    judge the newest run again, without measuring\n\n"
      "Exit codes: 0 pass, 1 a limit is broken, 2 usage or configuration, 3 something could not\n"
      "be measured, 4 inconclusive (under on_inconclusive: fail), 130 interrupted.");
  verb.runs_with_words(options, flow::gate);
}

}  // namespace weir::app
