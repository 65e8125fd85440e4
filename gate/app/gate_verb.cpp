// weir gate: run, compare, report; the exit code is the verdict.
#include <memory>

#include "gate/app/calibrations.hpp"
#include "gate/app/command_line.hpp"
#include "gate/app/confirming.hpp"
#include "gate/app/judging.hpp"
#include "gate/app/reaching.hpp"
#include "gate/app/session.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

struct GateOptions {
  CommonOptions common;
  ReportFiles files;
  bool require_baseline = false;
  std::optional<std::string> from, resume, against;
  RulesWanted rules;
  AllowedWanted allowed;
  std::optional<std::int64_t> runs;
  ConfirmOptions confirm;
  MeasureOptions wanted;  // of shards
};

Result<std::optional<AgainstWanted>> against_wanted(const GateOptions& options) {
  const std::vector<std::string>& words = words_behind();
  if (!options.against) {
    if (words.empty()) return std::nullopt;
    return fail(Code::usage, "words behind \"--\" are the base's command: --against -- COMMAND…");
  }
  if (options.confirm.ref) {
    return fail(Code::usage,
                "--confirm is for times held to stored samples: with --against all times are in "
                "pairs already");
  }
  if (options.runs) {
    return fail(Code::usage,
                "--runs is for stored baselines: beside a base, pairs of processes run "
                "until it is sure or gate.budget is spent");
  }
  if (options.against->empty() && words.empty()) {
    return fail(Code::usage,
                "--against needs what the candidate is held to: a REF, a DIR, or -- COMMAND…");
  }
  if (!options.against->empty() && !words.empty()) {
    return fail(Code::usage, "--against takes one base: a REF or DIR, or -- COMMAND…");
  }
  return AgainstWanted{*options.against, words};
}

Result<Measured> obtain(const GateOptions& options, sys::Files& files) {
  if (options.from && (options.common.counts_only || options.runs || options.against)) {
    return fail(Code::usage,
                "--from judges what RUN measured, which {} can not change: leave one of them out",
                options.against ? "--against"
                : options.runs  ? "--runs"
                                : "--counts-only");
  }
  if (options.from && options.confirm.ref) {
    return fail(Code::usage, "--from judges what RUN measured: leave --confirm out");
  }
  if (options.from && (options.rules.rules_from || options.rules.baselines_ref)) {
    return fail(Code::usage, "--from judges by the rules that RUN was measured under: leave {} out",
                options.rules.rules_from ? "--rules-from" : "--baselines-ref");
  }
  if (options.from) {
    WEIR_TRY(Measured measured, read_measured(options.common, *options.from, files));
    const std::string& config = options.common.config;
    if (options.common.config_given &&
        sys::absolute(config) != sys::absolute(measured.config_file)) {
      return fail(Code::usage,
                  "--from judges {} under the configuration it was measured with ({}): leave -c {} "
                  "out",
                  measured.folder, measured.config_file, config);
    }
    return measured;
  }
  MeasureOptions wanted = options.wanted;
  WEIR_TRY(wanted.against, against_wanted(options));
  wanted.plan.times = !options.common.counts_only;
  wanted.plan.runs = options.runs;
  wanted.resume = options.resume;
  for (const auto& place :
       {options.common.json, options.files.markdown, options.files.junit, options.files.html}) {
    if (place && *place != "-") wanted.output_places.push_back(*place);
  }
  return measure(options.common, wanted, files);
}

// Against stored baselines; what is slower there is looked at in pairs before it fails.
Result<verdict::GateVerdict> judge(const GateOptions& options, const Measured& measured,
                                   const StoredBaselines& stored, const verdict::Policy& policy,
                                   sys::Files& files) {
  WEIR_TRY(verdict::GateVerdict verdict, judge_stored(measured, stored, policy));
  ConfirmOptions confirm = options.confirm;
  confirm.read_only = options.from.has_value();
  WEIR_TRY(const Pairs pairs,
           pairs_of_suspected(options.common, confirm, measured, verdict, files));
  if (!pairs.why_not.empty()) verdict.notes.push_back("slower times: " + pairs.why_not);
  if (!pairs.measured) return verdict;
  return judge_stored(measured, stored, policy, &*pairs.measured);
}

// Where the baselines are that judge: a run that was measured under a commit's keeps them.
StoredBaselines baselines_for(const GateOptions& options, const Measured& measured,
                              sys::Files& files) {
  if (options.from && measured.rules && !measured.rules->baselines_words.empty()) {
    return {files, baselines_in_run(measured.folder), measured.rules->baselines_words};
  }
  return baselines_of(options.common, files);
}

Result<ExitCode> gate(GateOptions options) {
  sys::RealFiles files;
  if (!options.from) {
    WEIR_TRY(options.common.rules, read_rules(options.rules, options.common, files));
  }
  WEIR_TRY(options.common.allowed, read_allowed(options.allowed, options.common, files));
  WEIR_TRY(Measured measured, obtain(options, files));
  if (options.common.allowed) measured.allowed = *options.common.allowed;
  const StoredBaselines stored = baselines_for(options, measured, files);
  const verdict::Policy policy = policy_of(measured, options.require_baseline);
  WEIR_TRY(verdict::GateVerdict verdict, measured.beside
                                             ? judge_beside(measured, stored, policy)
                                             : judge(options, measured, stored, policy, files));
  tell_reach(measured, options.common, verdict, files);
  tell_calibration(measured, Calibrations(files), verdict);
  return publish(options.common, options.files, verdict, measured.veil, files);
}

}  // namespace

void add_gate(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("gate", "Measure, compare with baselines, report");
  auto options = std::make_shared<GateOptions>();
  add_common(*verb, options->common, Takes::measuring);
  verb->add_flag("--require-baseline", options->require_baseline,
                 "A missing exact baseline is an error (exit 3)");
  verb->add_option("--rules-from", options->rules.rules_from,
                   "Limits, gate settings, cpu_ops_allowed and baselines are those of REF's\n"
                   "commit; the working tree's edits to them are told first, as proposals")
      ->type_name("REF");
  verb->add_option("--baselines-ref", options->rules.baselines_ref,
                   "Baselines are those of this branch or commit (in PATH there; default:\n"
                   "its folder baselines, or its top)")
      ->type_name("REF[:PATH]");
  verb->add_option("--allowances-ref", options->allowed.ref,
                   "What was allowed this pull request (weir allow) is read from this branch")
      ->type_name("REF");
  verb->add_option("--pr", options->allowed.pull_request,
                   "Its number (default: of the event that a workflow runs for)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb->add_option("--against", options->against,
                   "Hold the candidate to a base program beside it: its counts, and its\n"
                   "times in pairs: a REF or DIR, or -- COMMAND… at the end of the line")
      ->type_name("REF|DIR")
      ->expected(0, 1)
      ->default_str("");
  verb->add_option("--from", options->from,
                   "Judge RUN again instead of measuring (default: newest)")
      ->type_name("[RUN]")
      ->expected(0, 1)
      ->default_str("");
  verb->add_option("--resume", options->resume, "Go on with an interrupted RUN (default: newest)")
      ->type_name("[RUN]")
      ->expected(0, 1)
      ->default_str("")
      ->excludes("--from");
  CLI::Option* confirm =
      verb->add_option("--confirm", options->confirm.ref,
                       "What is slower than stored samples is looked at in pairs beside\n"
                       "REF's base before it fails (default: gate.confirm, or the branch\n"
                       "that a pull request is to be merged into)")
          ->type_name("REF");
  verb->add_flag("--no-confirm", options->confirm.off, "Stored samples alone judge times")
      ->excludes(confirm);
  verb->add_option("--runs", options->runs, "Timed processes a cell, in place of gate.runs")
      ->check(CLI::Range(1, 10'000));
  add_shard_options(*verb, options->wanted);
  add_report_files(*verb, options->files);
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
  set_action_with_words(*verb, [options] { return gate(*options); });
}

}  // namespace weir::app
