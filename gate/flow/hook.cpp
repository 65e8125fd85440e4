// The pre-push hook: installs and removes it, and judges what is pushed by counts.
#include "gate/flow/hook.hpp"

#include <filesystem>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/reach.hpp"
#include "gate/flow/reports.hpp"
#include "gate/flow/shards.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/metric.hpp"

namespace weir::flow {
namespace {

// The cells of one list of depths, judged together: their line over depths needs all of them.
struct CellGroup {
  std::string name;
  std::set<std::string> cells;
  std::optional<double> seconds;  // the counted pass's, if an earlier run measured it
};

constexpr std::string_view k_all_the_same =
    "to push it all the same: WEIR_SKIP=1 git push, or git push --no-verify";

// Judges pushed commits by counts, each compared with its merge-base, cheapest cells first.
class PushJudge {
 public:
  PushJudge(const Job& job, const HookRunOptions& options, double limit_seconds)
      : job_(job), options_(options), limit_seconds_(limit_seconds) {}

  // Judges each pushed commit. Fails the push if a limit is broken, or with --strict if something
  // was not judged.
  Result<ExitCode> run(const std::vector<source::Pushed>& pushed) {
    WEIR_TRY(const LoadedConfig loaded, load_config(job_));
    redactor_ = loaded.configuration.redactor;
    builds_ = engine_builds(loaded.cells);
    groups_ = group_cells(loaded.cells);
    config_folder_ = job_.folder();
    WEIR_TRY(cache_, source::default_cache_folder());
    std::set<std::string> judged_commits;
    for (const source::Pushed& pushed_ref : pushed) {
      if (pushed_ref.deletes()) continue;
      WEIR_TRY(const auto sides, find_sides(pushed_ref, loaded, judged_commits));
      if (sides) WEIR_CHECK(judge(*sides));
    }
    if (options_.strict && unjudged_ && !failed_) {
      say("kept back, for not all of it was judged (--strict); " + std::string(k_all_the_same));
    }
    return failed_ || (options_.strict && unjudged_) ? ExitCode::fail : ExitCode::pass;
  }

 private:
  struct Sides {
    std::shared_ptr<TwoCommits> commits;
    std::string words;              // describes the pushed commit
    std::vector<CellGroup> groups;  // may run the change, cheapest first
  };

  void say(const std::string& line) const { job_.answer("weir: " + redactor_.text(line) + "\n"); }
  // Prints in red that something was not judged: a push that passes anyway looks as if it were
  // good.
  std::nullopt_t warn(const std::string& line) {
    unjudged_ = true;
    const bool red = job_.colored();
    job_.answer(fmt::format("{}weir: {}{}\n", red ? "\x1B[31m" : "", redactor_.text(line),
                            red ? "\x1B[0m" : ""));
    return std::nullopt;
  }

  // Returns the trees of a pushed commit and of its base. Returns nothing if there is nothing to
  // judge, or if a tree is missing, which it reports.
  Result<std::optional<Sides>> find_sides(const source::Pushed& pushed_ref,
                                          const LoadedConfig& loaded,
                                          std::set<std::string>& judged_commits) {
    WEIR_TRY(const auto repository, Repository::open(job_.world, config_folder_));
    const source::Git& git = repository->git();
    WEIR_TRY(const auto commit, git.resolve_commit(pushed_ref.commit));
    if (!commit || !judged_commits.insert(*commit).second) return std::nullopt;
    WEIR_TRY(const std::string commit_text, git.words(*commit));
    WEIR_TRY(const auto base, find_base(git, pushed_ref, *commit));
    if (!base) {
      return warn(
          fmt::format("{}: no base is known ({}), not judged", commit_text,
                      options_.against.empty()
                          ? "fetch the remote's branches, or install the hook with --against REF"
                          : options_.against));
    }
    if (*base == *commit) return std::nullopt;  // nothing that is not there already
    const std::vector<CellGroup> groups = groups_that_run_changes(git, *base, *commit, loaded);
    if (groups.empty()) {
      say(fmt::format("{}: no cell runs anything of what changed, nothing to judge", commit_text));
      return std::nullopt;
    }
    auto commits = std::make_shared<TwoCommits>();
    source::BaseTree& trees = commits->base;
    WEIR_TRY(const auto base_tree, find_or_build_tree(git, *base, repository->effects()));
    WEIR_TRY(const std::string base_words, git.words(*base));
    if (!base_tree) {
      return warn(
          fmt::format("{}: its merge-base {} is not built, not judged (weir gate --counts-only "
                      "--against {} builds it once)",
                      commit_text, base_words, text::short_commit(*base)));
    }
    WEIR_TRY(const bool is_checkout, is_built_checkout(git, *commit, loaded));
    trees.candidate_root = git.top();
    if (!is_checkout) {
      WEIR_TRY(const auto pushed_tree, find_or_build_tree(git, *commit, repository->effects()));
      if (!pushed_tree) return warn(fmt::format("{}: not built, not judged", commit_text));
      trees.candidate_root = pushed_tree->root;
      commits->candidate_checkout = pushed_tree->held;
    }
    trees.candidate_real_root = trees.candidate_root;
    trees.root = base_tree->root;
    trees.held = base_tree->held;
    trees.commit = *base;
    trees.candidate_commit = *commit;
    trees.built = !builds_.empty();
    trees.words = "merge-base " + base_words;
    commits->own_roots = {source::top_as_named(git, config_folder_), git.top()};
    commits->counts_folder = tree_counts_folder(cache_, base_tree->root);
    return Sides{commits, commit_text, groups};
  }

  // Returns the groups whose recorded code includes a change, and prints which ones it leaves out.
  std::vector<CellGroup> groups_that_run_changes(const source::Git& git, const std::string& base,
                                                 const std::string& commit,
                                                 const LoadedConfig& loaded) const {
    if (options_.all) return groups_;
    const ReachRecords stored(files_, job_.selection.runs_folder);
    const auto reach_change =
        reach_of_changes(git, base, commit, reach_cells(loaded.cells), stored);
    if (!reach_change) {
      say("what changed is not held to what cells run: " +
          text::first_line(reach_change.error().message));
      return groups_;
    }
    if (reach_change->recorded_cells == 0) return groups_;
    std::set<std::string> cells = cells_with_old_records(git, base, loaded, stored);
    for (const profile::ReachedCell& cell : reach_change->diff.cells) {
      if (!cell.changed_code_run.empty()) cells.insert(cell.cell);
    }
    std::vector<CellGroup> groups;
    std::vector<std::string> others;
    for (const CellGroup& group : groups_) {
      const bool sees = std::ranges::any_of(
          group.cells, [&](const std::string& cell) { return cells.contains(cell); });
      if (sees) groups.push_back(group);
      if (!sees) others.push_back(group.name);
    }
    if (!others.empty()) {
      say(fmt::format("not judged, for they run nothing of what changed: {}", shortened(others)));
    }
    const std::string unreached_text = profile::unreached_files_text(reach_change->diff);
    if (!unreached_text.empty()) say(unreached_text);
    return groups;
  }
  // Returns the cells whose record may not describe the base. Such a record is of a working tree,
  // of a commit that is not here, or older than a change to what the cell runs. These cells are
  // judged anyway.
  static std::set<std::string> cells_with_old_records(const source::Git& git,
                                                      const std::string& base,
                                                      const LoadedConfig& loaded,
                                                      const ReachRecords& stored) {
    std::set<std::string> cells;
    for (const ReachCell& cell : reach_cells(loaded.cells)) {
      const auto record = stored.find(cell.cell);
      if (!record || !*record) continue;  // never recorded: everything that is run reaches it
      bool is_current = false;
      if (!(*record)->dirty && !(*record)->commit.empty()) {
        const auto since = reach_of_changes(git, (*record)->commit, base, {&cell, 1}, stored);
        is_current = since && since->diff.cells.front().changed_code_run.empty();
      }
      if (!is_current) cells.insert(cell.cell);
    }
    return cells;
  }
  // Joins at most five names, and says how many more there are.
  static std::string shortened(const std::vector<std::string>& names) {
    constexpr std::size_t k_max_names = 5;
    if (names.size() <= k_max_names) return text::join(names);
    const std::vector<std::string> first(names.begin(), names.begin() + k_max_names);
    return fmt::format("{} (+{} more)", text::join(first), names.size() - k_max_names);
  }

  // Returns the checked-out and built tree of a commit, from the cache or made within the time for
  // builds; nothing if it cannot be built.
  Result<std::optional<source::Tree>> find_or_build_tree(const source::Git& git,
                                                         const std::string& commit,
                                                         const source::Effects& effects) {
    source::TreeWanted request{commit, builds_, cache_};
    const double build_left = limit_seconds_ - build_spent_;
    const bool needs_no_build = builds_.empty();
    const bool may_prepare =
        needs_no_build || options_.build || (!options_.no_build && build_left > 0);
    WEIR_TRY(auto cached, source::find_tree(git, request, effects));
    if (cached || !may_prepare) return cached;
    if (!needs_no_build) {
      say(fmt::format("{}: building it", text::short_commit(commit)));
      if (!options_.build) request.build_timeout_seconds = build_left;
    }
    const double started = clock_.steady();
    auto built = source::prepare_tree(git, request, effects);
    build_spent_ += clock_.steady() - started;
    if (built) return std::optional<source::Tree>(*std::move(built));
    if (built.error().code != Code::unavailable) return tl::unexpected(built.error());
    say(built.error().message);
    return std::nullopt;
  }

  // Returns the merge-base with --against or a branch of the remote, tried in order: HEAD, main,
  // master. The commit that the push replaces comes last.
  Result<std::optional<std::string>> find_base(const source::Git& git,
                                               const source::Pushed& pushed_ref,
                                               const std::string& commit) {
    std::vector<std::string> names;
    if (!options_.against.empty()) {
      names = {options_.against};
    } else {
      const std::string remote =
          !options_.trailing_arguments.empty()
              ? options_.trailing_arguments.front()
              : job_.world.environment("PRE_COMMIT_REMOTE_NAME").value_or("origin");
      for (const char* branch : {"HEAD", "main", "master"}) {
        names.push_back(fmt::format("refs/remotes/{}/{}", remote, branch));
      }
      if (!pushed_ref.is_new()) names.push_back(pushed_ref.remote_commit);
    }
    for (const std::string& name : names) {
      WEIR_TRY(const auto branch_commit, git.resolve_commit(name));
      if (!branch_commit) continue;
      WEIR_TRY(const auto bases, git.merge_bases(commit, *branch_commit));
      if (!bases.empty()) return bases.front();
    }
    return std::nullopt;
  }

  // Returns true if the checkout holds the commit unchanged, and no tracked file is newer than its
  // built programs.
  Result<bool> is_built_checkout(const source::Git& git, const std::string& commit,
                                 const LoadedConfig& loaded) {
    WEIR_TRY(const auto head, git.resolve_commit("HEAD"));
    if (head != commit) return false;
    WEIR_TRY(const bool dirty, git.dirty());
    if (dirty) return false;
    std::set<std::string> programs;
    for (const config::Cell& cell : loaded.cells) {
      if (cell.command.empty() || cell.engine == nullptr || cell.engine->build.empty()) continue;
      programs.insert(sys::join_path(config_folder_, cell.command.front()));
    }
    if (programs.empty()) return true;
    namespace fs = std::filesystem;
    std::optional<fs::file_time_type> oldest;
    std::error_code error;
    for (const std::string& program : programs) {
      const auto time = fs::last_write_time(program, error);
      if (error) return false;
      if (!oldest || time < *oldest) oldest = time;
    }
    WEIR_TRY(const auto tracked, git.tracked_files());
    return std::ranges::none_of(tracked, [&](const std::string& name) {
      const auto time = fs::last_write_time(sys::join_path(git.top(), name), error);
      return !error && time > *oldest;
    });
  }

  // --- measures the cheapest groups first

  // Groups cells by their line over depths, those with a known time first, fastest first.
  std::vector<CellGroup> group_cells(const std::vector<config::Cell>& cells) const {
    const std::map<std::string, double> seconds_by_cell = recorded_seconds();
    std::vector<CellGroup> groups;
    for (const config::Cell& cell : cells) {
      const std::string name = cell.key.line().str();
      auto group = std::ranges::find(groups, name, &CellGroup::name);
      if (group == groups.end()) group = groups.insert(groups.end(), CellGroup{name, {}, {}});
      group->cells.insert(cell.key.str());
      const double* seconds = look_up(seconds_by_cell, cell.key.str());
      if (seconds != nullptr) group->seconds = group->seconds.value_or(0) + *seconds;
    }
    std::ranges::stable_sort(groups, [](const CellGroup& a, const CellGroup& b) {
      if (a.seconds.has_value() != b.seconds.has_value()) return a.seconds.has_value();
      return a.seconds < b.seconds;
    });
    return groups;
  }

  // Returns the seconds of three counted processes, which make a slope, for each cell that the
  // newest runs measured.
  [[nodiscard]] std::map<std::string, double> recorded_seconds() const {
    constexpr std::size_t k_max_runs = 64;
    std::map<std::string, double> seconds_by_cell;
    for (const std::string& folder : {job_.selection.runs_folder, runs_folder()}) {
      std::vector<std::string> runs = run::list_runs(files_, folder);
      if (runs.size() > k_max_runs) runs.erase(runs.begin(), runs.end() - k_max_runs);
      for (const std::string& name : runs) {
        const auto run = run::read_run(files_, name);
        if (!run) continue;  // another version, or no run
        for (const auto& [cell, times] : process_times(*run)) {
          if (times.counted > 0) seconds_by_cell[cell] = 3 * times.counted;
        }
      }
    }
    return seconds_by_cell;
  }
  // The hook's runs stay apart from those that `gate --from` and `baseline accept` look for.
  [[nodiscard]] std::string runs_folder() const { return job_.below("hook").selection.runs_folder; }

  [[nodiscard]] double seconds_left() const {
    return limit_seconds_ - spent_ - (clock_.steady() - started_);
  }

  // Measures and judges each group that fits into the time left, and prints the result.
  Result<void> judge(const Sides& sides) {
    started_ = clock_.steady();  // builds have a limit of their own
    std::size_t passed = 0, broken = 0;
    std::vector<std::string> not_judged;
    for (const CellGroup& group : sides.groups) {
      if (seconds_left() <= 0 || group.seconds.value_or(0) > seconds_left()) {
        const std::string limit = unit::show_duration(limit_seconds_);
        not_judged.push_back(
            group.seconds ? fmt::format("{}: takes about {}, {} are left of {}", group.name,
                                        run::show_time_left(*group.seconds),
                                        run::show_time_left(std::max(0.0, seconds_left())), limit)
                          : fmt::format("{}: the {} are over", group.name, limit));
        continue;
      }
      WEIR_TRY(const auto group_verdict, measure_group(group, sides, not_judged));
      if (!group_verdict) continue;
      const StepVerdict judged = judge_step(group_verdict->verdict);
      if (judged.outcome == source::TrialOutcome::skipped && !group_verdict->engine_broke) {
        not_judged.push_back(judged.nothing ? group.name + ": no count of it can be judged here"
                                            : judged.reason);
        continue;
      }
      const bool bad = judged.outcome != source::TrialOutcome::good;
      if (bad) {
        ++broken;
      } else {
        ++passed;
      }
      if (bad) WEIR_CHECK(report_failure(group_verdict->verdict));
    }
    spent_ += clock_.steady() - started_;
    failed_ = failed_ || broken > 0;
    std::string summary = "nothing was judged";
    if (passed + broken > 0) {
      summary = fmt::format("{} of {} cells judged by counts, {}; times: not judged",
                            passed + broken, sides.groups.size(),
                            broken == 0 ? "none broke a limit" : fmt::format("{} FAILED", broken));
    }
    say(fmt::format("{} beside {}: {}", sides.words, sides.commits->base.words, summary));
    for (const std::string& line : not_judged) warn("  not judged: " + line);
    if (broken > 0) say("  " + std::string(k_all_the_same));
    return {};
  }

  // Stores a verdict beside its run and prints it, with the command that explains it.
  Result<void> report_failure(verdict::GateVerdict judged) {
    verdict::GateVerdict shown = redacted(std::move(judged), redactor_);
    WEIR_CHECK(store_verdict(job_, shown, verdict::to_text(shown)));
    shown.options["--out"] = runs_folder();  // so that the command names the run
    job_.answer(verdict_text(job_, shown, {"explain"}));
    return {};
  }

  // The verdict on one group of cells.
  struct GroupVerdict {
    verdict::GateVerdict verdict;
    bool engine_broke = false;  // the pushed engine ended with an error, its base did not
  };
  // Counts the cells of one group on both sides. Returns nothing, and adds the reason to
  // `not_judged`, if they cannot be measured.
  Result<std::optional<GroupVerdict>> measure_group(const CellGroup& group, const Sides& sides,
                                                    std::vector<std::string>& not_judged) {
    WEIR_TRY(LoadedConfig loaded, load_config(job_));
    std::erase_if(loaded.cells,
                  [&](const config::Cell& cell) { return !group.cells.contains(cell.key.str()); });
    const Job inner = job_.below("hook");
    MeasureOptions wanted;
    wanted.plan.times = false;
    wanted.limit_seconds = seconds_left();  // also ends a wait for a device
    wanted.against = BaseRequest{.spec = "", .command = {}, .commits = sides.commits};
    auto measured = measure_loaded(std::move(loaded), inner, wanted);
    if (!measured) {
      if (measured.error().code == Code::interrupted) return tl::unexpected(measured.error());
      not_judged.push_back(
          fmt::format("{}: {}", group.name, text::first_line(measured.error().message)));
      return std::nullopt;
    }
    const StoredBaselines no_baselines(files_, sys::join_path(measured->folder, "no-baselines"));
    WEIR_TRY(auto verdict,
             judge_against_base(*measured, no_baselines,
                                gate_policy(*measured, /*require_baseline=*/false), files_));
    bool broke = false;
    for (std::size_t i = 0; i < measured->profiles.size(); ++i) {
      const bool only_candidate_failed =
          measured->profiles[i].engine_ended && !measured->base_runs->counts[i].base_failed;
      broke = broke || only_candidate_failed;
    }
    return GroupVerdict{std::move(verdict), broke};
  }

  const Job& job_;
  const HookRunOptions& options_;
  double limit_seconds_;
  sys::Files& files_ = job_.files();
  const sys::Clock& clock_ = job_.world.clock;
  double spent_ = 0, started_ = 0;  // seconds of measuring before; when the present measuring began
  double build_spent_ = 0;          // seconds of building
  config::Redactor redactor_;
  std::vector<source::Build> builds_;
  std::vector<CellGroup> groups_;
  std::string config_folder_, cache_;
  bool failed_ = false, unjudged_ = false;
};

// Returns the arguments of `weir hook run` for an installed hook. The config's path counts from the
// repository's top, where git starts hooks, so that every work tree finds its own.
Result<std::vector<std::string>> hook_arguments(const Job& job, const HookOptions& options,
                                                const source::Git& git) {
  const std::string& config = job.selection.config;
  if (!job.files().exists(config)) {
    return fail(Code::config, "{}: no such file; -c names another", config);
  }
  const std::string from_top = sys::join_path(git.place(), sys::file_name_of(config));
  std::vector<std::string> arguments{"-c", from_top, "--time-limit", options.limit};
  if (!options.against.empty()) arguments.insert(arguments.end(), {"--against", options.against});
  for (const auto& [is_set, word] : {std::pair{options.build, "--build"},
                                     {options.no_build, "--no-build"},
                                     {options.strict, "--strict"},
                                     {options.all, "--all"}}) {
    if (is_set) arguments.emplace_back(word);
  }
  for (const std::string& cell : job.selection.cells)
    arguments.insert(arguments.end(), {"--cell", cell});
  return arguments;
}

// Returns what the pre-commit framework pushes: it sets variables in place of git's lines.
std::optional<source::Pushed> read_pre_commit(const Job& job) {
  const auto pushed_commit = job.world.environment("PRE_COMMIT_TO_REF");
  if (!pushed_commit) return std::nullopt;
  const std::string branch = job.variable("PRE_COMMIT_REMOTE_BRANCH");
  const std::string from =
      job.world.environment("PRE_COMMIT_FROM_REF").value_or(std::string(40, '0'));
  return source::Pushed{branch, *pushed_commit, branch, from};
}

// Returns a warning if no cell has a count to judge; "" if one may have.
std::string uncounted_warning(const std::vector<config::Cell>& cells, const std::string& config) {
  const bool is_counted = std::ranges::any_of(cells, [](const config::Cell& cell) {
    return cell.engine != nullptr &&
           (!cell.engine->probes.empty() || cell.engine->reports_counts());
  });
  if (is_counted) return "";
  return fmt::format(
      "No cell of {} can be counted, and the hook takes no times: it judges nothing here. "
      "weir gate --against REF judges times.\n",
      config);
}

// Describes how the hook gets the trees of base commits.
std::string trees_text(const HookOptions& options, const std::vector<source::Build>& builds) {
  if (builds.empty()) {
    return "Bases are checked out and nothing is built, for no engine has a build command (build:)";
  }
  if (options.no_build) return "Only what is built already is judged";
  return fmt::format("What is not built is built within the push{}",
                     options.build ? "" : ", for up to " + options.limit);
}

}  // namespace

// Installs the pre-push hook with the options that it will run with.
Result<Answer> install_hook(const Job& job, const HookOptions& options) {
  WEIR_CHECK(unit::parse_duration_seconds(options.limit));
  WEIR_TRY(const auto repository, Repository::open(job.world, job.folder()));
  const source::Git& git = repository->git();
  WEIR_TRY(const std::vector<std::string> arguments, hook_arguments(job, options, git));
  WEIR_TRY(const std::string folder, git.hooks_folder());
  WEIR_TRY(const LoadedConfig loaded, load_config(job));  // before anything is changed
  const std::string program = sys::own_program_path();
  WEIR_TRY(
      const bool had_other_hook,
      write_hook(job.files(), folder, hook_text(program.empty() ? "weir" : program, arguments)));
  const auto builds = engine_builds(loaded.cells);
  return Answer{text::printable(fmt::format(
      "{}/pre-push: made{}\n{}.\n{}", folder,
      had_other_hook ? "; the hook that was there runs first (pre-push.before-weir)" : "",
      trees_text(options, builds), uncounted_warning(loaded.cells, job.selection.config)))};
}

Result<Answer> uninstall_hook(const Job& job, const HookOptions& /*options*/) {
  WEIR_TRY(const auto repository, Repository::open(job.world, job.folder()));
  WEIR_TRY(const std::string folder, repository->git().hooks_folder());
  WEIR_TRY(const bool removed, remove_hook(job.files(), folder));
  return Answer{text::printable(
      fmt::format("{}/pre-push: {}\n", folder, removed ? "removed" : "none of weir's is there"))};
}

// Judges what git is about to push. Errors of the check itself stop the push only with --strict.
Result<Answer> run_hook(const Job& job, const HookRunOptions& options) {
  if (job.variable("WEIR_SKIP") == "1") {
    job.log("weir: WEIR_SKIP=1, so nothing was judged");
    return Answer{};
  }
  // Without --strict only a broken limit stops a push, so an error here is only printed.
  const auto report_not_judged = [&](Error error) {
    print_error(job.world, add_prefix("nothing was judged", std::move(error)));
    return Answer{.code = options.strict ? ExitCode::fail : ExitCode::pass};
  };
  WEIR_TRY(const double limit_seconds, unit::parse_duration_seconds(options.limit));
  std::vector<source::Pushed> pushed;
  if (auto pushed_ref = read_pre_commit(job)) {
    pushed.push_back(*std::move(pushed_ref));
  } else if (job.world.terminal.columns(0)) {
    return fail(Code::usage,
                "weir hook run is started by git, when it pushes; it reads the lines "
                "of a pre-push hook");
  } else {
    auto lines = source::parse_pushed(job.world.terminal.read_input(std::size_t{16} << 20));
    if (!lines) return report_not_judged(lines.error());
    pushed = std::move(*lines);
  }
  if (pushed.empty()) job.log("weir: nothing was pushed that can be judged");
  const auto judged = PushJudge(job, options, limit_seconds).run(pushed);
  if (judged) return Answer{.code = *judged};
  if (judged.error().code == Code::interrupted) return tl::unexpected(judged.error());
  return report_not_judged(judged.error());
}

}  // namespace weir::flow
