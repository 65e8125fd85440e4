// weir gate and weir run: measures, judges and reports; the main flow of weir.
#include "gate/flow/gate.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/base_check.hpp"
#include "gate/flow/calibrate.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/program.hpp"
#include "gate/flow/reach.hpp"
#include "gate/flow/repository.hpp"
#include "gate/flow/result_files.hpp"
#include "gate/profile/assemble.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/profile_text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

// Result of the paired runs of the suspected cells. If there are none, the reason on one line,
// which may be "".
struct SuspectedPairs {
  std::optional<MeasuredRun> measured{};
  std::string why_not{};
};

// Returns the commit to pair with: --confirm, else gate.confirm, else the pull request's base
// branch.
std::optional<std::string> find_base_ref(const ConfirmOptions& confirm,
                                         const MeasuredRun& stored_run, const sys::Files& files) {
  if (confirm.ref) return confirm.ref;
  if (stored_run.configuration.settings->gate.confirm)
    return stored_run.configuration.settings->gate.confirm;
  const source::PullRequest pull = source::read_pull_request(files);
  if (pull.base_branch.empty()) return std::nullopt;
  return "refs/remotes/origin/" + pull.base_branch;
}

// Leaves the suspected cells. A suspected line over depths stands for all of its depths.
std::vector<config::Cell> select_cells(std::vector<config::Cell> cells,
                                       const std::vector<profile::CellKey>& suspected) {
  std::set<std::string> names;
  for (const profile::CellKey& key : suspected) names.insert(key.str());
  std::erase_if(cells, [&](const config::Cell& cell) {
    return !names.contains(cell.key.str()) && !names.contains(cell.key.line().str());
  });
  return cells;
}

// Removes waivers and rules from a run of pairs: the gate as a whole applies them once. New names
// of cells stay, so that they are judged by their old ones.
MeasuredRun without_gate_rules(MeasuredRun pairs) {
  pairs.waived.reset();
  if (pairs.configuration.rules) {
    AppliedRules names;
    for (const verdict::BaseCell& required_cell : pairs.configuration.rules->required_cells) {
      if (!required_cell.current_name.empty())
        names.required_cells.push_back(
            {required_cell.cell, required_cell.shown, required_cell.current_name});
    }
    pairs.configuration.rules = std::move(names);
  }
  return pairs;
}

// Measures suspected cells of `first` in pairs with a base, for at most gate.budget. `verdict` is
// the verdict by stored runs. Fails with Code::interrupted alone: after any other failure the
// stored verdict stands, with the reason.
Result<SuspectedPairs> measure_suspected(const Job& job, const ConfirmOptions& confirm,
                                         const std::optional<std::string>& budget,
                                         const MeasuredRun& stored_run,
                                         const verdict::GateVerdict& verdict) {
  const std::vector<profile::CellKey> suspected = verdict::suspected(verdict.cells);
  if (suspected.empty() || confirm.off) return SuspectedPairs{};
  if (!confirm.ref && !stored_run.configuration.settings->gate.confirms) return SuspectedPairs{};
  Job pairs_job = job;
  pairs_job.selection.runs_folder = sys::join_path(stored_run.folder, "confirm");
  pairs_job.selection.cells.clear();
  const std::vector<std::string> earlier =
      run::list_runs(job.files(), pairs_job.selection.runs_folder);
  const auto without_pairs = [](std::string why) { return SuspectedPairs{{}, std::move(why)}; };
  constexpr const char* k_alone =
      "compared with stored runs alone; weir gate --confirm REF re-tests such drops in paired runs "
      "before they fail";
  if (confirm.read_only) {
    if (earlier.empty()) return without_pairs(k_alone);
    auto earlier_pairs = read_measured(pairs_job, earlier.back());
    if (!earlier_pairs) {
      return without_pairs("their pairs cannot be read: " +
                           text::first_line(earlier_pairs.error().message));
    }
    const auto base = check_base(pairs_job, *earlier_pairs);
    if (!base) return without_pairs(text::first_line(base.error().message));
    if (base->problem) return without_pairs(*base->problem);
    if (earlier_pairs->interrupted.empty())
      return SuspectedPairs{without_gate_rules(std::move(*earlier_pairs))};
    return without_pairs("their pairs were interrupted: weir gate --resume goes on with them");
  }
  if (stored_run.shard && stored_run.shard->index > 0) {
    return without_pairs("a shard is not confirmed by pairs of its own: gate the joined run");
  }
  const std::optional<std::string> ref = find_base_ref(confirm, stored_run, job.files());
  if (!ref) return without_pairs(k_alone);
  job.log(fmt::format(
      "{} slower than stored runs: re-testing in pairs with {}",
      suspected.size() == 1 ? "1 cell is" : fmt::format("{} cells are", suspected.size()), *ref));
  MeasureOptions wanted;
  wanted.plan.counts = false;
  wanted.budget = budget;
  wanted.against = BaseRequest{.spec = *ref, .command = {}, .own = false, .other_commit = true};
  config::Redactor redactor;
  // Interrupted pairs of the same cells are resumed.
  auto measured = measure_or_resume(
      [&]() -> Result<LoadedConfig> {
        WEIR_TRY(LoadedConfig loaded, load_config(job));
        loaded.cells = select_cells(std::move(loaded.cells), suspected);
        redactor = loaded.configuration.redactor;
        return loaded;
      },
      pairs_job, wanted);
  if (measured) {
    WEIR_TRY(const BaseCheck base, check_base(job, *measured));
    if (base.problem) return without_pairs(*base.problem);
    return SuspectedPairs{without_gate_rules(std::move(*measured))};
  }
  const Error error = redacted(std::move(measured).error(), redactor);
  if (error.code == Code::interrupted) {
    return fail(
        Code::interrupted,
        "interrupted in the pairs that were to confirm a drop; go on with: weir gate --resume "
        "{} and the same options",
        text::shell_word(stored_run.folder));
  }
  return without_pairs("could not be confirmed in paired runs: " + text::first_line(error.message));
}

// Returns the base that --against asks for; nullopt without it. Fails if other options do not allow
// it.
Result<std::optional<BaseRequest>> base_request(const GateOptions& options) {
  const std::vector<std::string>& command = options.trailing_arguments;
  if (!options.against) {
    if (command.empty()) return std::nullopt;
    return fail(Code::usage, "words after \"--\" are the base's command: --against -- COMMAND…");
  }
  if (options.confirm.ref) {
    return fail(Code::usage,
                "--confirm is for times compared with stored runs: with --against all times are in "
                "pairs already");
  }
  if (options.wanted.plan.runs) {
    return fail(Code::usage,
                "--runs is for stored baselines: with --against, pairs run until the verdict is "
                "certain or gate.budget is spent");
  }
  const bool has_place = !options.against->empty(), has_command = !command.empty();
  if (has_place == has_command) {
    const char* problem = has_command ? "takes one base: a REF or DIR, or -- COMMAND…"
                                      : "needs a base: a REF, a DIR, or -- COMMAND…";
    return fail(Code::usage, "--against {}", problem);
  }
  return BaseRequest{.spec = *options.against, .command = command, .env = options.base_env};
}

// Measures, or reads the run of --from, which excludes the options that change a measurement.
Result<MeasuredRun> obtain_run(const Job& job, const GateOptions& options) {
  // A run by others may claim that it takes no times, so --counts-only decides what is judged of
  // it.
  const bool counts_only = job.selection.counts_only && !options.rules.rules_from;
  const char* measuring_option = nullptr;
  if (counts_only) measuring_option = "--counts-only";
  if (options.wanted.plan.runs) measuring_option = "--runs";
  if (options.against) measuring_option = "--against";
  if (options.from && measuring_option != nullptr) {
    return fail(Code::usage,
                "--from judges what RUN measured, which {} cannot change: leave one of them out",
                measuring_option);
  }
  if (options.from && options.confirm.ref) {
    return fail(Code::usage, "--from judges what RUN measured: leave --confirm out");
  }
  if (options.from && options.rules.baselines_ref && !options.rules.rules_from) {
    return fail(
        Code::usage,
        "--from judges by the rules that RUN was measured under: add --rules-from, or leave "
        "--baselines-ref out");
  }
  if (options.from) {
    WEIR_TRY(MeasuredRun measured, read_measured(job, *options.from));
    const std::string& config = job.selection.config;
    if (!measured.claimed && job.selection.config_is_set &&
        sys::absolute(config) != sys::absolute(measured.configuration.file)) {
      return fail(Code::usage,
                  "--from judges {} under the configuration it was measured with ({}): leave -c {} "
                  "out",
                  measured.folder, measured.configuration.file, config);
    }
    return measured;
  }
  MeasureOptions measure_options = options.wanted;
  measure_options.results = options.results;
  WEIR_TRY(measure_options.against, base_request(options));
  measure_options.plan.times = !job.selection.counts_only;
  WEIR_TRY(measure_options.output_places, report_places(job, options.files));
  return measure(job, measure_options);
}

// Names a branch that may hold the baselines where the folder is missing; "" without one.
std::string describe_baselines_branch(const Job& job) {
  const std::string& folder = job.selection.baselines;
  if (job.files().exists(folder)) return "";
  const auto repository = Repository::containing(job.world, job.folder());
  if (!repository) return "";
  for (const char* branch : {"perf-baselines", "origin/perf-baselines"}) {
    const auto commit = (*repository)->git().resolve_commit(branch);
    if (!commit || !*commit) continue;
    return fmt::format("there is no folder {}, but the branch {}: --baselines-ref {} judges by it",
                       text::printable(folder), branch, branch);
  }
  return "";
}

// Judges by stored baselines, after re-testing suspected slowdowns in paired runs of base and
// candidate.
Result<verdict::GateVerdict> judge(const Job& job, const GateOptions& options,
                                   const MeasuredRun& measured, const StoredBaselines& stored,
                                   const verdict::Policy& policy) {
  WEIR_TRY(verdict::GateVerdict verdict, judge_stored(measured, stored, policy, job.files()));
  ConfirmOptions confirm = options.confirm;
  confirm.off = confirm.off || !options.results.empty();  // nothing can be started again
  confirm.read_only = options.from.has_value();
  WEIR_TRY(const SuspectedPairs pairs,
           measure_suspected(job, confirm, options.wanted.budget, measured, verdict));
  if (!pairs.why_not.empty()) verdict.notes.push_back("slower times: " + pairs.why_not);
  if (!options.rules.baselines_ref && !options.rules.rules_from) {
    const std::string branch = describe_baselines_branch(job);
    if (!branch.empty()) verdict.notes.push_back(branch);
  }
  if (!pairs.measured) return verdict;
  return judge_stored(measured, stored, policy, job.files(), &*pairs.measured);
}

// Adds a note if the configuration was edited since the run: its own text judges it.
void add_changed_config_note(const MeasuredRun& measured, const Job& job,
                             verdict::GateVerdict& verdict) {
  const std::string& file = measured.configuration.file;
  const auto text = job.files().read(file, std::uint64_t{1} << 22);
  if (!text || *text == measured.config_text) return;
  verdict.notes.push_back(
      fmt::format("{} was edited after this run, which is judged by the limits that it was "
                  "measured under: run weir gate without --from to judge by the new ones",
                  sys::file_name_of(file)));
}

// Returns the baselines that judge. A run that was measured under a commit's rules keeps its own.
StoredBaselines choose_baselines(const Job& job, const GateOptions& options,
                                 const MeasuredRun& measured) {
  if (options.from && !measured.claimed && measured.configuration.rules &&
      !measured.configuration.rules->baselines_words.empty()) {
    return {job.files(), baselines_in_run(measured.folder),
            measured.configuration.rules->baselines_words};
  }
  return stored_baselines(job);
}

// Returns the options that differ from their defaults, for GateVerdict::options.
std::map<std::string, std::string> changed_options(const Job& job, const GateOptions& options) {
  const Selection defaults;
  std::map<std::string, std::string> changed;
  if (job.selection.baselines != defaults.baselines)
    changed["--baselines"] = job.selection.baselines;
  if (job.selection.runs_folder != defaults.runs_folder)
    changed["--out"] = job.selection.runs_folder;
  if (const auto& ref = options.rules.rules_from) changed["--rules-from"] = *ref;
  if (const auto& ref = options.rules.baselines_ref) changed["--baselines-ref"] = *ref;
  if (options.from && !options.from->empty()) changed["--from"] = *options.from;
  const WaiverOptions& waived = options.waived;
  if (waived.ref) changed["--waivers-ref"] = *waived.ref;
  // In CI they come from the event, which nobody has elsewhere.
  if (job.waived && job.waived->pull_request)
    changed["--pr"] = std::to_string(*job.waived->pull_request);
  if (job.waived && !job.waived->base.empty()) changed["--base"] = job.waived->base;
  if (!waived.merged.empty()) changed["--merged-pr"] = text::join(waived.merged, " ");
  if (!waived.in_base.empty()) changed["--base-pr"] = text::join(waived.in_base, " ");
  return changed;
}

// Returns true if a cell's profile lacks times that its engine prints. These are those that its
// configuration names (output: generic), or all of another format.
bool lacks_times(const config::Cell& cell, const profile::Profile& profile) {
  const auto is_measured = [&](const std::string& metric) {
    const profile::Measurement* measured = look_up(profile.metrics, metric);
    return measured != nullptr && !measured->samples.empty();
  };
  if (cell.engine != nullptr && cell.engine->output == "generic") {
    return std::ranges::any_of(cell.engine->generic.values, [&](const config::ValueRule& rule) {
      const auto metric = rule.find_metric();
      return metric && metric->kind != unit::Kind::count && !is_measured(metric->name);
    });
  }
  return std::ranges::none_of(profile.metrics, [&](const auto& item) {
    const unit::Kind kind = item.second.metric.kind;  // memory and usage are weir's own readings
    return (kind == unit::Kind::time || kind == unit::Kind::quality) &&
           !item.second.samples.empty();
  });
}

// Returns which times are missing from an untrusted run that is to be judged by its times; nullopt
// if it has all.
Result<std::optional<std::string>> find_missing_times(const Job& job, const MeasuredRun& measured) {
  if (!measured.claimed || job.selection.counts_only) return std::nullopt;
  if (measured.counts_only) return "the run has no times";
  if (!measured.interrupted.empty()) return "the run was interrupted, and times may be missing";
  WEIR_TRY(const config::Matrix matrix, config::expand(*measured.configuration.settings));
  std::map<std::string, const profile::PairedRuns*> pairs_by_cell;
  if (measured.base_runs) {
    for (std::size_t i = 0; i < measured.base_runs->pairs.size(); ++i) {
      pairs_by_cell[measured.base_runs->cells.at(i).cell.str()] = &measured.base_runs->pairs[i];
    }
  }
  std::size_t without_pairs = 0, without_times = 0;
  for (const profile::Profile& profile : measured.profiles) {
    const config::Cell* cell = find_first(
        matrix.cells, [&](const config::Cell& candidate) { return candidate.key == profile.cell; });
    const auto* paired_runs = look_up(pairs_by_cell, profile.cell.str(), nullptr);
    // Twins have no times, and pairs that failed are reported as an error.
    if (cell == nullptr || cell->twin || (paired_runs != nullptr && paired_runs->error)) continue;
    if (paired_runs != nullptr && paired_runs->pairs == 0) {
      ++without_pairs;
    } else if (profile.errors.empty() && lacks_times(*cell, profile)) {
      ++without_times;
    }
  }
  std::vector<std::string> missing;
  const auto add_missing = [&](std::size_t cells, std::string_view what) {
    if (cells == 0) return;
    missing.push_back(fmt::format("{} of the run without {}", text::plural(cells, "cell"), what));
  };
  add_missing(without_pairs, "a pair");
  add_missing(without_times, "times that its engine prints");
  return missing.empty() ? std::nullopt : std::optional(text::join(missing, "; "));
}

}  // namespace

// Measures or reads a run, judges it by the base or by stored baselines, and publishes the verdict.
Result<Answer> gate(const Job& given_job, const GateOptions& given_options) {
  Job job = given_job;
  GateOptions options = given_options;
  WEIR_TRY_SET(options.results, list_results(options.results, job));
  if (options.rules.rules_from || job.is_in_ci()) WEIR_CHECK(check_own(options.results, job));
  if (!options.results.empty() && !job.selection.config_is_set &&
      !job.files().exists(job.selection.config))
    WEIR_TRY_SET(job.selection.config_text, make_results_config(options.results.front(), job));
  if (!options.from || options.rules.rules_from)
    WEIR_TRY_SET(job.rules, read_rules(options.rules, job));
  WEIR_TRY(job.waived, load_waivers(options.waived, job));
  WEIR_TRY(MeasuredRun measured, obtain_run(job, options));
  if (job.waived) measured.waived = *job.waived;
  const StoredBaselines stored = choose_baselines(job, options, measured);
  verdict::Policy policy = gate_policy(measured, options.require_baseline);
  policy.require_times = measured.claimed && !job.selection.counts_only;
  WEIR_TRY(verdict::GateVerdict verdict,
           measured.base_runs ? judge_against_base(measured, stored, policy, job.files())
                              : judge(job, options, measured, stored, policy));
  WEIR_TRY(const std::optional<std::string> missing_times, find_missing_times(job, measured));
  if (missing_times) {
    verdict::mark_unjudged(verdict,
                           *missing_times +
                               ": pass --counts-only (ci/post: counts-only: true) to judge "
                               "counts alone");
  }
  WEIR_TRY(const BaseCheck base, check_base(job, measured));
  if (base.problem) verdict::mark_unjudged(verdict, *base.problem);
  verdict.notes.insert(verdict.notes.end(), base.notes.begin(), base.notes.end());
  // These read files of this machine by names in the run, so not for a run by others.
  if (!measured.claimed) add_reach_note(measured, job, verdict);
  if (options.from && !measured.claimed) add_changed_config_note(measured, job, verdict);
  if (!measured.claimed && !job.selection.config_text)
    add_calibration_notes(measured, Calibrations(job.files()), verdict);
  verdict.options = changed_options(job, options);
  measured.profiles = {};  // reports are made of the verdict alone
  measured.base_runs.reset();
  return publish_verdict(job, options.files, std::move(verdict), measured.configuration.redactor);
}

namespace {

// Prints the commands that a run would start, with private names hidden.
Result<Answer> dry_run(const Job& job, const MeasureOptions& wanted) {
  WEIR_TRY(LoadedConfig loaded, load_config(job));
  const config::Redactor redactor = loaded.configuration.redactor;
  for (const std::string& note : loaded.configuration.notes)
    job.log("note: " + redactor.text(note));
  WEIR_TRY(const PlannedCommands planned,
           planned_commands(std::move(loaded), job, wanted, {job.selection.runs_folder, ""}));
  Json commands = Json::array();
  // The lines without those that were before, and how often each is run.
  std::vector<std::string> lines;
  std::map<std::string, int> runs;
  std::vector<std::string> passed_names;
  for (const PlannedCommand& command : planned.commands) {
    passed_names.insert(passed_names.end(), command.spec.passed_variables.begin(),
                        command.spec.passed_variables.end());
    Json env = Json::object();
    std::vector<std::string> words;
    for (const auto& [name, value] : command.spec.env) {
      env[name] = value;
      words.push_back(fmt::format("{}={}", name, text::shell_word(redactor.text(value))));
    }
    for (const std::string& word : command.spec.argv) {
      words.push_back(text::shell_word(redactor.text(word)));
    }
    for (std::string& word : words) word = text::printable(word);
    commands.push_back({{"cell", command.cell},
                        {"pass", profile::to_string(command.pass)},
                        {"argv", command.spec.argv},
                        {"env", std::move(env)},
                        {"passed", command.spec.passed_variables}});
    std::string line = fmt::format("{}  # {}", text::join(words, " "),
                                   text::printable(redactor.cell_name(command.cell)));
    if (++runs[line] == 1) lines.push_back(std::move(line));
  }
  std::string shown;
  Json unavailable = Json::object();
  for (const auto& [cell, reason] : planned.unavailable) {
    const std::string why = redactor.text(reason);
    unavailable[redactor.cell_name(cell)] = why;
    shown += fmt::format("# {} cannot run here: {}\n", text::printable(redactor.cell_name(cell)),
                         text::printable(text::first_line(why)));
  }
  for (const std::string& line : lines) {
    const int times = runs[line];
    shown += times == 1 ? line + "\n" : fmt::format("{}, {} times\n", line, times);
  }
  if (const std::string names = sys::withheld_names(passed_names); !names.empty()) {
    job.log(fmt::format("withheld from engines: {} ({})", names, k_pass_through));
  }
  return Answer{shown, json_document({{"schema", "weir.commands/1"},
                                      {"commands", std::move(commands)},
                                      {"unavailable", std::move(unavailable)}})};
}

}  // namespace

// Measures all selected cells without judging them, or prints their commands (--dry-run).
Result<Answer> run_matrix(const Job& job, const RunOptions& options) {
  MeasureOptions measure_options = options.wanted;
  measure_options.plan.times = !job.selection.counts_only;
  if (options.against)
    measure_options.against = BaseRequest{.spec = *options.against, .command = {}};
  WEIR_TRY(measure_options.output_places, report_places(job));
  if (options.dry_run) return dry_run(job, measure_options);
  WEIR_TRY(MeasuredRun measured, measure(job, measure_options));
  redact_profiles(measured);
  report::Page notes(static_cast<std::size_t>(job.width()));
  std::vector<std::string> all_notes = measured.configuration.notes;
  for (std::string& note : profile::missing_kernel_costs(measured.profiles))
    all_notes.push_back(std::move(note));
  for (const std::string& note : all_notes)
    notes.add_paragraph("note: ", measured.configuration.redactor.text(note), 2);
  return profiles_answer(report::profiles_text(measured.profiles, {.width = job.width()}) +
                             notes.finish() + fmt::format("run {}\n", measured.folder),
                         measured.profiles);
}

}  // namespace weir::flow
