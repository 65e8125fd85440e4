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

// Depths of one list: their line needs all of them.
struct CellGroup {
  std::string name;
  std::set<std::string> cells;
  std::optional<double> seconds;  // of the counted pass, where some run knew
};

constexpr std::string_view k_all_the_same =
    "to push it all the same: WEIR_SKIP=1 git push, or git push --no-verify";

class PushJudge {
 public:
  PushJudge(const Job& job, const HookRunOptions& options, double limit_seconds)
      : job_(job), options_(options), limit_seconds_(limit_seconds) {}

  Result<ExitCode> run(const std::vector<source::Pushed>& pushed) {
    WEIR_TRY(const Loaded loaded, load_config(job_));
    redactor_ = loaded.known.redactor;
    builds_ = builds_of_cells(loaded.cells);
    groups_ = groups_of(loaded.cells);
    place_ = job_.folder();
    WEIR_TRY(cache_, source::default_cache_folder());
    std::set<std::string> told;
    for (const source::Pushed& one : pushed) {
      if (one.deletes()) continue;
      WEIR_TRY(const auto sides, sides_of(one, loaded, told));
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
    std::string words;              // of what is pushed
    std::vector<CellGroup> groups;  // that may see what changed, the cheapest first
  };

  void say(const std::string& line) const { job_.answer("weir: " + redactor_.text(line) + "\n"); }
  // What was not judged, in red: a push that passes all the same looks as if it were good.
  std::nullopt_t warn(const std::string& line) {
    unjudged_ = true;
    const bool red = job_.colored();
    job_.answer(fmt::format("{}weir: {}{}\n", red ? "\x1B[31m" : "", redactor_.text(line),
                            red ? "\x1B[0m" : ""));
    return std::nullopt;
  }

  // The trees of a pushed commit and its base; nothing, and said why, where one is not there.
  Result<std::optional<Sides>> sides_of(const source::Pushed& one, const Loaded& loaded,
                                        std::set<std::string>& told) {
    WEIR_TRY(const auto repository, Repository::open(job_.world, place_));
    const source::Git& git = repository->git();
    WEIR_TRY(const auto commit, git.commit(one.commit));
    if (!commit || !told.insert(*commit).second) return std::nullopt;
    WEIR_TRY(const std::string words, git.words(*commit));
    WEIR_TRY(const auto base, base_of(git, one, *commit));
    if (!base) {
      return warn(
          fmt::format("{}: no base is known ({}), not judged", words,
                      options_.against.empty()
                          ? "fetch the remote's branches, or install the hook with --against REF"
                          : options_.against));
    }
    if (*base == *commit) return std::nullopt;  // nothing that is not there already
    const std::vector<CellGroup> groups = reached(git, *base, *commit, loaded);
    if (groups.empty()) {
      say(fmt::format("{}: no cell runs anything of what changed, nothing to judge", words));
      return std::nullopt;
    }
    auto commits = std::make_shared<TwoCommits>();
    source::BaseTree& side = commits->base;
    WEIR_TRY(const auto base_tree, tree(git, *base, repository->effects()));
    WEIR_TRY(const std::string base_words, git.words(*base));
    if (!base_tree) {
      return warn(
          fmt::format("{}: its merge-base {} is not built, not judged (weir gate --counts-only "
                      "--against {} builds it once)",
                      words, base_words, source::short_commit(*base)));
    }
    WEIR_TRY(const bool own, is_own(git, *commit, loaded));
    side.candidate_root = git.top();
    if (!own) {
      WEIR_TRY(const auto pushed_tree, tree(git, *commit, repository->effects()));
      if (!pushed_tree) return warn(fmt::format("{}: not built, not judged", words));
      side.candidate_root = pushed_tree->root;
      commits->candidate_held = pushed_tree->held;
    }
    side.candidate_real_root = side.candidate_root;
    side.root = base_tree->root;
    side.held = base_tree->held;
    side.commit = *base;
    side.candidate_commit = *commit;
    side.built = !builds_.empty();
    side.words = "merge-base " + base_words;
    commits->own_roots = {source::top_as_named(git, place_), git.top()};
    commits->counts_folder = counts_of_tree(cache_, base_tree->root);
    return Sides{commits, words, groups};
  }

  // Without those that, by what they were recorded to run, cannot see the change. Says so, and
  // what no cell sees.
  std::vector<CellGroup> reached(const source::Git& git, const std::string& base,
                                 const std::string& commit, const Loaded& loaded) const {
    if (options_.all) return groups_;
    const StoredReach stored(files_, job_.asked.out);
    const auto between = reach_between(git, base, commit, reach_cells(loaded.cells), stored);
    if (!between) {
      say("what changed is not held to what cells run: " +
          text::first_line(between.error().message));
      return groups_;
    }
    if (between->recorded == 0) return groups_;
    std::set<std::string> cells = with_old_records(git, base, loaded, stored);
    for (const profile::ReachedCell& cell : between->diff.cells) {
      if (!cell.by.empty()) cells.insert(cell.cell);
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
    const std::string none = profile::words_of_none(between->diff);
    if (!none.empty()) say(none);
    return groups;
  }
  // Cells whose record may be of something else than the base: of a working tree, of a commit that
  // is not here, or before something changed that they run. Here it decides, so what is not known
  // counts as seen.
  static std::set<std::string> with_old_records(const source::Git& git, const std::string& base,
                                                const Loaded& loaded, const StoredReach& stored) {
    std::set<std::string> cells;
    for (const ReachCell& cell : reach_cells(loaded.cells)) {
      const auto record = stored.of(cell.cell);
      if (!record || !*record) continue;  // never recorded: everything that is run reaches it
      const auto since = (*record)->dirty || (*record)->commit.empty()
                             ? Result<ReachBetween>(fail(Code::data, "of no commit"))
                             : reach_between(git, (*record)->commit, base, {&cell, 1}, stored);
      if (!since || !since->diff.cells.front().by.empty()) cells.insert(cell.cell);
    }
    return cells;
  }
  static std::string shortened(const std::vector<std::string>& names) {
    constexpr std::size_t k_most = 5;
    if (names.size() <= k_most) return text::join(names);
    const std::vector<std::string> first(names.begin(), names.begin() + k_most);
    return fmt::format("{} (+{} more)", text::join(first), names.size() - k_most);
  }

  Result<std::optional<source::Tree>> tree(const source::Git& git, const std::string& commit,
                                           const source::Effects& effects) {
    source::TreeWanted asked{commit, builds_, cache_};
    const double build_left = limit_seconds_ - build_spent_;
    const bool checkout_does = builds_.empty();
    const bool makes = checkout_does || options_.build || (!options_.no_build && build_left > 0);
    WEIR_TRY(auto known, source::known_tree(git, asked, effects));
    if (known || !makes) return known;
    if (!checkout_does) {
      say(fmt::format("{}: building it", source::short_commit(commit)));
      if (!options_.build) asked.build_timeout_seconds = build_left;
    }
    const double begun = clock_.steady();
    auto made = source::prepare_tree(git, asked, effects);
    build_spent_ += clock_.steady() - begun;
    if (made) return std::optional<source::Tree>(*std::move(made));
    if (made.error().code != Code::unavailable) return tl::unexpected(made.error());
    say(made.error().message);
    return std::nullopt;
  }

  // What the pushed commit is held to: the merge-base with a branch of the remote, of which the
  // main one is the first to ask; else with what is being replaced.
  Result<std::optional<std::string>> base_of(const source::Git& git, const source::Pushed& one,
                                             const std::string& commit) {
    std::vector<std::string> names;
    if (!options_.against.empty()) {
      names = {options_.against};
    } else {
      const std::string remote =
          !options_.words.empty()
              ? options_.words.front()
              : job_.world.environment("PRE_COMMIT_REMOTE_NAME").value_or("origin");
      for (const char* branch : {"HEAD", "main", "master"}) {
        names.push_back(fmt::format("refs/remotes/{}/{}", remote, branch));
      }
      if (!one.is_new()) names.push_back(one.remote_commit);
    }
    for (const std::string& name : names) {
      WEIR_TRY(const auto meant, git.commit(name));
      if (!meant) continue;
      WEIR_TRY(const auto bases, git.merge_bases(commit, *meant));
      if (!bases.empty()) return bases.front();
    }
    return std::nullopt;
  }

  // The checkout holds the commit, nothing in it differs, and its programs were built from that: no
  // file that git knows is newer.
  Result<bool> is_own(const source::Git& git, const std::string& commit, const Loaded& loaded) {
    WEIR_TRY(const auto head, git.commit("HEAD"));
    if (head != commit) return false;
    WEIR_TRY(const bool dirty, git.dirty());
    if (dirty) return false;
    std::set<std::string> programs;
    for (const config::Cell& cell : loaded.cells) {
      if (cell.command.empty() || cell.engine == nullptr || cell.engine->build.empty()) continue;
      programs.insert(sys::join_path(place_, cell.command.front()));
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

  // --- measuring, the cheapest first

  std::vector<CellGroup> groups_of(const std::vector<config::Cell>& cells) const {
    const std::map<std::string, double> known = known_seconds();
    std::vector<CellGroup> groups;
    for (const config::Cell& cell : cells) {
      const std::string name = cell.key.line().str();
      auto group = std::ranges::find(groups, name, &CellGroup::name);
      if (group == groups.end()) group = groups.insert(groups.end(), CellGroup{name, {}, {}});
      group->cells.insert(cell.key.str());
      const double* seconds = look_up(known, cell.key.str());
      if (seconds != nullptr) group->seconds = group->seconds.value_or(0) + *seconds;
    }
    std::ranges::stable_sort(groups, [](const CellGroup& a, const CellGroup& b) {
      if (a.seconds.has_value() != b.seconds.has_value()) return a.seconds.has_value();
      return a.seconds < b.seconds;
    });
    return groups;
  }

  // What one counted process of a cell took in the newest runs here, three of which make a slope.
  [[nodiscard]] std::map<std::string, double> known_seconds() const {
    constexpr std::size_t k_most_runs = 64;
    std::map<std::string, double> known;
    for (const std::string& out : {job_.asked.out, folder_of_runs()}) {
      std::vector<std::string> runs = run::list_runs(files_, out);
      if (runs.size() > k_most_runs) runs.erase(runs.begin(), runs.end() - k_most_runs);
      for (const std::string& name : runs) {
        const auto run = run::read_run(files_, name);
        if (!run) continue;  // of another version, or none at all
        for (const auto& [cell, times] : known_times(*run)) {
          if (times.counted > 0) known[cell] = 3 * times.counted;
        }
      }
    }
    return known;
  }
  // Apart from the runs that `gate --from` and `baseline accept` look for.
  [[nodiscard]] std::string folder_of_runs() const { return job_.below("hook").asked.out; }

  [[nodiscard]] double left() const { return limit_seconds_ - spent_ - (clock_.steady() - since_); }

  Result<void> judge(const Sides& sides) {
    since_ = clock_.steady();  // builds have a limit of their own
    std::size_t passed = 0, broken = 0;
    std::vector<std::string> not_judged;
    for (const CellGroup& group : sides.groups) {
      if (left() <= 0 || group.seconds.value_or(0) > left()) {
        const std::string limit = unit::show_duration(limit_seconds_);
        not_judged.push_back(group.seconds
                                 ? fmt::format("{}: takes about {}, {} are left of {}", group.name,
                                               run::show_time_left(*group.seconds),
                                               run::show_time_left(std::max(0.0, left())), limit)
                                 : fmt::format("{}: the {} are over", group.name, limit));
        continue;
      }
      WEIR_TRY(const auto found, measure_group(group, sides, not_judged));
      if (!found) continue;
      const Judged judged = judged_step(found->verdict);
      if (judged.tried == source::Tried::skipped && !found->engine_broke) {
        not_judged.push_back(judged.nothing ? group.name + ": no count of it can be judged here"
                                            : judged.reason);
        continue;
      }
      const bool bad = judged.tried != source::Tried::good;
      if (bad) {
        ++broken;
      } else {
        ++passed;
      }
      if (bad) job_.answer(verdict_text(job_, redacted(found->verdict, redactor_)));
    }
    spent_ += clock_.steady() - since_;
    failed_ = failed_ || broken > 0;
    say(fmt::format("{} beside {}: {} of {} cells judged by counts, {}", sides.words,
                    sides.commits->base.words, passed + broken, sides.groups.size(),
                    broken == 0 ? "none broke a limit" : fmt::format("{} FAILED", broken)));
    for (const std::string& line : not_judged) warn("  not judged: " + line);
    if (broken > 0) say("  " + std::string(k_all_the_same));
    return {};
  }

  struct Found {
    verdict::GateVerdict verdict;
    bool engine_broke = false;  // what is pushed ended with an error, and its base did not
  };
  Result<std::optional<Found>> measure_group(const CellGroup& group, const Sides& sides,
                                             std::vector<std::string>& not_judged) {
    WEIR_TRY(Loaded loaded, load_config(job_));
    std::erase_if(loaded.cells,
                  [&](const config::Cell& cell) { return !group.cells.contains(cell.key.str()); });
    const Job inner = job_.below("hook");
    MeasureOptions wanted;
    wanted.plan.times = false;
    wanted.limit_seconds = left();  // whether it measures, hangs, or waits for a device
    wanted.against = BaseRequest{.spec = "", .command = {}, .commits = sides.commits};
    auto measured = measure_loaded(std::move(loaded), inner, wanted);
    if (!measured) {
      if (measured.error().code == Code::interrupted) return tl::unexpected(measured.error());
      not_judged.push_back(
          fmt::format("{}: {}", group.name, text::first_line(measured.error().message)));
      return std::nullopt;
    }
    const StoredBaselines none(files_, sys::join_path(measured->folder, "no-baselines"));
    WEIR_TRY(auto verdict, judge_beside(*measured, none, policy_of(*measured, false), files_));
    bool broke = false;
    for (std::size_t i = 0; i < measured->profiles.size(); ++i) {
      broke |= measured->profiles[i].engine_ended && !measured->beside->counts[i].base_failed;
    }
    return Found{std::move(verdict), broke};
  }

  const Job& job_;
  const HookRunOptions& options_;
  double limit_seconds_;
  sys::Files& files_ = job_.files();
  const sys::Clock& clock_ = job_.world.clock;
  double spent_ = 0, since_ = 0;
  // seconds of measuring before; when it began again
  double build_spent_ = 0;  // seconds
  config::Redactor redactor_;
  std::vector<source::Build> builds_;
  std::vector<CellGroup> groups_;
  std::string place_, cache_;
  bool failed_ = false, unjudged_ = false;
};

// What `weir hook run` gets of `weir hook install`: the config as it is named from the top, where
// git starts hooks, so that it is found in every work tree.
Result<std::vector<std::string>> words_for_run(const Job& job, const HookOptions& options,
                                               const source::Git& git) {
  const std::string& config = job.asked.config;
  if (!job.files().exists(config)) {
    return fail(Code::config, "{}: no such file; -c names another", config);
  }
  const std::string from_top = sys::join_path(git.place(), sys::file_name_of(config));
  std::vector<std::string> words{"-c", from_top, "--time-limit", options.limit};
  if (!options.against.empty()) words.insert(words.end(), {"--against", options.against});
  for (const auto& [given, word] : {std::pair{options.build, "--build"},
                                    {options.no_build, "--no-build"},
                                    {options.strict, "--strict"},
                                    {options.all, "--all"}}) {
    if (given) words.emplace_back(word);
  }
  for (const std::string& cell : job.asked.cells) words.insert(words.end(), {"--cell", cell});
  return words;
}

// The framework of .pre-commit-hooks.yaml hands no lines on, but variables.
std::optional<source::Pushed> from_pre_commit(const Job& job) {
  const auto to = job.world.environment("PRE_COMMIT_TO_REF");
  if (!to) return std::nullopt;
  const std::string branch = job.variable("PRE_COMMIT_REMOTE_BRANCH");
  const std::string from =
      job.world.environment("PRE_COMMIT_FROM_REF").value_or(std::string(40, '0'));
  return source::Pushed{branch, *to, branch, from};
}

// Where trees of bases come from.
std::string trees_text(const HookOptions& options, const std::vector<source::Build>& builds) {
  if (builds.empty()) {
    return "Bases are checked out and nothing is built, for no engine has a build command (build:)";
  }
  if (options.no_build) return "Only what is built already is judged";
  return fmt::format("What is not built is built within the push{}",
                     options.build ? "" : ", for up to " + options.limit);
}

}  // namespace

Result<Answer> install_hook(const Job& job, const HookOptions& options) {
  WEIR_CHECK(unit::parse_duration_seconds(options.limit));
  WEIR_TRY(const auto repository, Repository::open(job.world, job.folder()));
  const source::Git& git = repository->git();
  WEIR_TRY(const std::vector<std::string> words, words_for_run(job, options, git));
  WEIR_TRY(const std::string folder, git.hooks_folder());
  WEIR_TRY(const Loaded loaded, load_config(job));  // before anything is changed
  const std::string program = sys::own_program();
  WEIR_TRY(const bool beside,
           put_hook(job.files(), folder, hook_text(program.empty() ? "weir" : program, words)));
  const auto builds = builds_of_cells(loaded.cells);
  return Answer{text::printable(
      fmt::format("{}/pre-push: made{}\n{}.\n", folder,
                  beside ? "; the hook that was there runs first (pre-push.before-weir)" : "",
                  trees_text(options, builds)))};
}

Result<Answer> uninstall_hook(const Job& job, const HookOptions& /*options*/) {
  WEIR_TRY(const auto repository, Repository::open(job.world, job.folder()));
  WEIR_TRY(const std::string folder, repository->git().hooks_folder());
  WEIR_TRY(const bool was, take_hook_away(job.files(), folder));
  return Answer{text::printable(
      fmt::format("{}/pre-push: {}\n", folder, was ? "removed" : "none of weir's is there"))};
}

Result<Answer> run_hook(const Job& job, const HookRunOptions& options) {
  if (job.variable("WEIR_SKIP") == "1") {
    job.talk("weir: WEIR_SKIP=1, so nothing was judged");
    return Answer{};
  }
  // Only a broken limit keeps a push from going out, unless all has to be judged.
  const auto not_judged = [&](Error error) {
    print_error(job.world, with_context("nothing was judged", std::move(error)));
    return Answer{.code = options.strict ? ExitCode::fail : ExitCode::pass};
  };
  WEIR_TRY(const double limit_seconds, unit::parse_duration_seconds(options.limit));
  std::vector<source::Pushed> pushed;
  if (auto one = from_pre_commit(job)) {
    pushed.push_back(*std::move(one));
  } else if (job.world.terminal.columns(0)) {
    return fail(Code::usage,
                "weir hook run is started by git, when it pushes; it reads the lines "
                "of a pre-push hook");
  } else {
    auto lines = source::parse_pushed(job.world.terminal.read_input(std::size_t{16} << 20));
    if (!lines) return not_judged(lines.error());
    pushed = std::move(*lines);
  }
  if (pushed.empty()) job.talk("weir: nothing was pushed that can be judged");
  const auto judged = PushJudge(job, options, limit_seconds).run(pushed);
  if (judged) return Answer{.code = *judged};
  if (judged.error().code == Code::interrupted) return tl::unexpected(judged.error());
  return not_judged(judged.error());
}

}  // namespace weir::flow
