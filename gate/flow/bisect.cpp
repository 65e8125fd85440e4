// weir bisect: finds the first bad commit by measuring commits between a good and a bad one.
#include "gate/flow/bisect.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/bisect_journal.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/reports.hpp"
#include "gate/report/layout.hpp"
#include "gate/run/against.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

// The result of a bisection, as far as it went.
struct BisectResult {
  BisectRequest request;
  std::string folder;             // the journal's folder
  std::vector<BisectStep> steps;  // as tried
  // Commits that may be the first bad one, children before parents. A single one is the answer.
  std::vector<std::string> suspects;
  std::size_t commits = 0;  // contained in the bad one and not in the good one
  double seconds = 0;       // duration of this call
  // Subject and verdict of the first of `suspects`, the newest commit known to be bad, compared
  // with the good one. Not redacted.
  std::string bad_subject;
  std::optional<verdict::GateVerdict> verdict;
  config::Redactor redactor;
};

// Returns the step that tried `commit`; null if there is none.
const BisectStep* find_step(const BisectResult& result, const std::string& commit) {
  return find_first(result.steps, [&](const BisectStep& step) { return step.commit == commit; });
}

// Searches a history for its first bad commit, and journals each step so that it can be resumed.
class Bisector {
 public:
  Bisector(const Job& job, const BisectOptions& wanted) : job_(job), wanted_(wanted) {}

  // Runs the bisection to its end, or to an interruption that can be resumed.
  Result<BisectResult> run() {
    const double started = clock_.steady();
    WEIR_CHECK(begin());
    const auto searched = search();
    if (!searched && searched.error().code == Code::interrupted) {
      return fail(Code::interrupted,
                  "interrupted; what was tried is kept. Go on with: weir bisect --resume {}",
                  result_.folder);
    }
    WEIR_CHECK(searched);
    result_.seconds = clock_.steady() - started;
    return std::move(result_);
  }

 private:
  // --- the request

  // Loads the configuration. Fails if it changed since the bisection began.
  Result<LoadedConfig> load() {
    WEIR_TRY(LoadedConfig loaded, load_config(job_with_cells()));
    result_.redactor = loaded.configuration.redactor;
    const std::string hash = short_hash(loaded.text, 16);
    std::string& recorded_hash = result_.request.config_hash;
    if (recorded_hash.empty()) recorded_hash = hash;
    if (hash != recorded_hash) {
      return fail(Code::usage,
                  "{} changed since this bisection began: commits tried under other settings "
                  "cannot be compared. Begin a new one",
                  job_.selection.config);
    }
    return loaded;
  }

  // Begins or resumes a bisection: its journal, its commits and the history between them.
  Result<void> begin() {
    const std::string bisections = sys::join_path(job_.selection.runs_folder, "bisect");
    if (wanted_.resume) {
      result_.folder = *wanted_.resume;
      if (result_.folder.empty()) {
        const auto earlier = run::list_runs(files_, bisections, "bisect.jsonl");
        if (earlier.empty()) return fail(Code::usage, "{}: no bisection to go on with", bisections);
        result_.folder = earlier.back();
      }
      BisectState state;
      WEIR_TRY(journal_, resume_bisect(files_, result_.folder, state));
      result_.request = std::move(state.request);
      result_.steps = std::move(state.steps);
      if (wanted_.budget) {
        std::erase_if(result_.steps, [](const BisectStep& step) {
          return step.outcome == source::TrialOutcome::skipped;
        });
      }
    }
    WEIR_TRY(const LoadedConfig loaded, load());
    builds_ = engine_builds(loaded.cells);
    has_bounds_ = std::ranges::any_of(loaded.configuration.settings->limits,
                                      [](const auto& entry) { return entry.max || entry.min; });
    WEIR_TRY(cache_, source::default_cache_folder());
    config_folder_ = job_.folder();
    WEIR_TRY(const auto repository, Repository::open(job_.world, config_folder_));
    const source::Git& git = repository->git();
    own_roots_ = {source::top_as_named(git, config_folder_), git.top()};
    if (wanted_.resume) {
      // The names go to git, and a journal from elsewhere could hold anything.
      for (const std::string& name : {result_.request.good, result_.request.bad}) {
        WEIR_TRY(const std::string commit, find_commit(git, name));
        if (commit != name) return fail(Code::data, "{}: {} is no commit", result_.folder, name);
      }
    } else {
      WEIR_CHECK(resolve_commits(git));
      WEIR_TRY(result_.folder, run::make_run_folder(files_, bisections, clock_.now()));
      WEIR_TRY(journal_, begin_bisect(files_, result_.folder, result_.request));
    }
    WEIR_TRY(history_, git.history(result_.request.good, result_.request.bad));
    if (history_.empty()) {
      return fail(Code::data, "{}: nothing lies between its two commits", result_.folder);
    }
    result_.commits = history_.size();
    for (const std::string& note : result_.request.notes) say(note);
    return {};
  }

  static Result<std::string> find_commit(const source::Git& git, const std::string& name) {
    std::optional<std::string> commit;
    if (!name.empty() && !name.starts_with('-') && name.find('\0') == std::string::npos)
      WEIR_TRY_SET(commit, git.resolve_commit(name));
    if (commit) return *commit;
    WEIR_TRY(const bool shallow, git.shallow());
    return fail(Code::config, "{}: no commit that is known here{}", text::printable(name),
                shallow ? "; history is cut off: fetch all of it (`git fetch --unshallow`)" : "");
  }

  // Resolves the good and the bad commit. If the good one is no ancestor, their merge-base stands
  // for it.
  Result<void> resolve_commits(const source::Git& git) {
    BisectRequest& request = result_.request;
    request.cells = job_.selection.cells;
    request.judges_by_times = wanted_.judges_by_times;
    request.budget = wanted_.budget;
    request.config_file = job_.selection.config;
    WEIR_TRY(const std::string good, find_commit(git, wanted_.good));
    WEIR_TRY(request.bad, find_commit(git, wanted_.bad));
    WEIR_TRY(request.bad_words, git.words(request.bad));
    WEIR_TRY(const auto bases, git.merge_bases(good, request.bad));
    WEIR_TRY(const std::string good_text, git.words(good));
    if (bases.empty()) {
      WEIR_TRY(const bool shallow, git.shallow());
      return fail(Code::config, "{} and {} have no common ancestor{}", good_text, request.bad_words,
                  shallow ? " that is known here; history is cut off: fetch all of it (`git fetch "
                            "--unshallow`)"
                          : "");
    }
    request.good = bases.front();
    if (request.good == request.bad) {
      return fail(Code::config, "nothing lies between: {} contains {}{}", good_text,
                  request.bad_words,
                  good == request.bad
                      ? ""
                      : "; the good commit comes first: weir bisect " +
                            text::short_commit(request.bad) + " " + text::short_commit(good));
    }
    WEIR_TRY(request.good_words, git.words(request.good));
    if (request.good != good) {
      request.notes.push_back(
          fmt::format("{} is no ancestor of {}: their merge-base, {}, stands for it", good_text,
                      request.bad_words, request.good_words));
    }
    return {};
  }

  // --- the search

  // Tries commits until the first bad one is found or only skipped ones are left.
  Result<void> search() {
    source::Bisection bisection(history_);
    WEIR_TRY(good_, make_tree(result_.request.good).map_error([&](Error error) {
      return add_prefix(result_.request.good_words, build_error(std::move(error)));
    }));
    WEIR_CHECK(try_ends());
    for (const BisectStep& step : result_.steps)
      bisection.record_outcome(step.commit, step.outcome);
    for (auto next = bisection.next(); next; next = bisection.next()) {
      say(fmt::format(
          "{} commits may be the first bad one, about {}{}", bisection.suspects().size(),
          text::plural(bisection.steps_left(), "more step"), time_left(bisection.steps_left())));
      WEIR_TRY(const BisectStep step, try_commit(*next, /*is_end=*/false));
      bisection.record_outcome(step.commit, step.outcome);
    }
    result_.suspects = bisection.suspects();
    return load_verdict();
  }

  // Tries the good and the bad commit first, so that wrong ones are reported before other builds.
  // Times of the good one beside itself break no limit but an absolute one.
  Result<void> try_ends() {
    const BisectRequest& request = result_.request;
    const bool is_surely_good = request.judges_by_times && !has_bounds_;
    BisectStep good;
    good.outcome = source::TrialOutcome::good;
    if (!is_surely_good) WEIR_TRY_SET(good, find_or_try(request.good));
    if (good.outcome != source::TrialOutcome::good) {
      return fail(good.outcome == source::TrialOutcome::bad ? Code::config : Code::unavailable,
                  "{} is not good: beside itself, {}", request.good_words, good.reason);
    }
    WEIR_TRY(const BisectStep bad, find_or_try(request.bad));
    if (bad.outcome == source::TrialOutcome::good) {
      return fail(Code::config, "{} is not bad: beside {} it breaks no limit of {}",
                  request.bad_words, request.good_words,
                  request.judges_by_times ? "times" : "counts (--times looks at times)");
    }
    if (bad.outcome == source::TrialOutcome::bad) return {};
    return fail(Code::unavailable, "{} cannot be told to be bad: {}", request.bad_words,
                bad.reason);
  }
  Result<BisectStep> find_or_try(const std::string& commit) {
    const BisectStep* step = find_step(result_, commit);
    return step != nullptr ? Result<BisectStep>(*step) : try_commit(commit, /*is_end=*/true);
  }

  // Builds, measures and judges one commit, and journals the step. `is_end`: it is the good or the
  // bad commit of the request, where a failure is an error.
  Result<BisectStep> try_commit(const std::string& commit, bool is_end) {
    const double started = clock_.steady();
    BisectStep step;
    step.commit = commit;
    {
      WEIR_TRY(const auto repository, Repository::open(job_.world, config_folder_));
      WEIR_TRY(step.subject, repository->git().subject(commit));
    }
    say(fmt::format("  {} \"{}\"", text::short_commit(commit), step.subject));
    auto tree = make_tree(commit);
    // An end that does not build is an error: without it there is nothing to compare with.
    if (!tree && (is_end || tree.error().code != Code::unavailable)) {
      return tl::unexpected(add_prefix(text::short_commit(commit), build_error(tree.error())));
    }
    if (tree) {
      const bool is_good = commit == result_.request.good;  // its tree was made earlier
      step.built = !(is_good ? good_.from_cache : tree->from_cache);
      WEIR_CHECK(measure_and_judge(*tree, is_end, step));
    } else {
      // The first line suffices: git and compilers may have printed much more.
      step.reason = text::first_line(build_error(tree.error()).message);
    }
    step.seconds = clock_.steady() - started;
    WEIR_CHECK(journal_->append(dump_json(write_fields(step))));
    result_.steps.push_back(step);
    say(fmt::format("    {}{} ({})", name_of(source::k_trial_outcomes, step.outcome),
                    text::prefix_if_any(": ", step.reason), unit::show_duration(step.seconds)));
    return step;
  }

  // Rewrites the error of a failed build for a bisection, without private names.
  [[nodiscard]] Error build_error(Error error) const {
    constexpr std::string_view k_base = "the base could not be built: ";
    if (error.message.starts_with(k_base)) {
      error.message.replace(0, k_base.size(), "does not build: ");
    }
    return redacted(std::move(error), result_.redactor);
  }
  // Returns the job with the cells that the bisection began with.
  [[nodiscard]] Job job_with_cells() const {
    Job job = job_;
    if (!result_.request.good.empty()) job.selection.cells = result_.request.cells;
    return job;
  }

  Result<source::Tree> make_tree(const std::string& commit) {
    WEIR_TRY(const auto repository, Repository::open(job_.world, config_folder_));
    source::TreeWanted wanted{commit, builds_, cache_};
    wanted.reuse = job_.reuses_cache();
    return source::prepare_tree(repository->git(), wanted, repository->effects());
  }

  // --- measuring

  // Measures a commit beside the good one, and puts the verdict into `step`.
  Result<void> measure_and_judge(const source::Tree& tree, bool is_end, BisectStep& step) {
    auto commits = std::make_shared<TwoCommits>();
    source::BaseTree& base = commits->base;
    base.root = good_.root;
    base.held = good_.held;
    base.commit = result_.request.good;
    base.built = !builds_.empty();
    base.words = "good commit " + result_.request.good_words;
    base.candidate_root = tree.root;
    base.candidate_real_root = base.candidate_root;
    base.candidate_commit = step.commit;
    commits->candidate_checkout = tree.held;
    commits->own_roots = own_roots_;
    if (job_.reuses_cache()) commits->counts_folder = tree_counts_folder(cache_, good_.root);

    Job step_job = job_with_cells();
    step_job.selection.runs_folder = sys::join_path(result_.folder, "steps/" + step.commit);
    MeasureOptions wanted;
    wanted.plan.counts = !result_.request.judges_by_times;
    wanted.plan.times = result_.request.judges_by_times;
    wanted.against = BaseRequest{.spec = "", .command = {}, .commits = commits};
    wanted.times_option = "--times";
    wanted.budget = wanted_.budget ? wanted_.budget : result_.request.budget;
    // Measurements of this commit from a killed bisection are used again.
    const auto measured = measure_or_resume([this] { return load(); }, step_job, wanted);
    if (!measured) {
      // For instance a commit without the program. At an end this is a mistake of the
      // configuration.
      Error error = redacted(measured.error(), result_.redactor);
      if (wanted.budget) error = run::name_budget_option(std::move(error));
      if (is_end || error.code != Code::config) return tl::unexpected(error);
      step.reason = "cannot be run: " + text::first_line(error.message);
      return {};
    }
    step.run = measured->folder;
    WEIR_TRY(const verdict::GateVerdict verdict, judge(*measured));
    const StepVerdict judged = judge_step(verdict);
    if (is_end && judged.nothing) {
      return fail(Code::config, "{} can be judged in these cells{}",
                  result_.request.judges_by_times ? "no time" : "no count",
                  result_.request.judges_by_times ? "" : " (--times looks at the times)");
    }
    step.outcome = judged.outcome;
    step.reason = result_.redactor.text(judged.reason);
    return {};
  }

  // Judges by the good commit alone: stored baselines have no influence.
  Result<verdict::GateVerdict> judge(const MeasuredRun& measured) {
    const StoredBaselines no_baselines(files_, sys::join_path(result_.folder, "no-baselines"));
    return judge_against_base(measured, no_baselines,
                              gate_policy(measured, /*require_baseline=*/false), files_);
  }

  // Loads the verdict on the newest commit known to be bad: the first bad one, if it was found.
  Result<void> load_verdict() {
    const BisectStep* step = find_step(result_, result_.suspects.front());
    if (step == nullptr) return {};
    result_.bad_subject = step->subject;
    WEIR_TRY(const MeasuredRun measured, read_measured(job_with_cells(), step->run));
    WEIR_TRY(result_.verdict, judge(measured));
    return {};
  }

  // --- output

  void say(const std::string& line) const { job_.log(result_.redactor.text(line)); }
  // Estimates the time of `steps` more steps from the commits that were built so far.
  [[nodiscard]] std::string time_left(std::size_t steps) const {
    double seconds = 0, tried = 0;
    for (const BisectStep& step : result_.steps) {
      if (!step.built) continue;
      seconds += step.seconds;
      tried += 1;
    }
    if (tried == 0) return "";
    return ", " + run::show_time_left(seconds / tried * static_cast<double>(steps));
  }

  const Job& job_;
  const BisectOptions& wanted_;
  sys::Files& files_ = job_.files();
  const sys::Clock& clock_ = job_.world.clock;
  BisectResult result_;
  BisectJournal journal_;
  std::vector<source::Build> builds_;
  std::vector<source::HistoryCommit> history_;
  std::vector<std::string> own_roots_;
  bool has_bounds_ = false;            // a limit is absolute
  std::string cache_, config_folder_;  // builds run in the folder that corresponds to the config's
  source::Tree good_;
};

bool is_decided(const BisectResult& result) { return result.suspects.size() == 1; }

// Returns the result as text for the terminal, without private names: the first bad commit, or the
// suspects that are left.
std::string result_text(const BisectResult& result, std::size_t width) {
  std::string text;
  const auto add_wrapped = [&](std::string_view first, const std::string& text_to_add,
                               std::size_t indent) {
    const std::string redacted_text =
        result.redactor.text(text_to_add);  // no line's end parts a private name
    for (const std::string& line : report::wrap(redacted_text, width, first, indent))
      text += line + "\n";
  };
  if (is_decided(result)) {
    text = fmt::format("weir bisect: the first bad commit is\n  {}\n", result.suspects[0]);
    add_wrapped("  ", fmt::format("\"{}\"", result.bad_subject), 2);
  } else {
    add_wrapped(
        "",
        fmt::format(
            "weir bisect: could not be decided: the first bad commit is one of these {}, of "
            "which only the first is known to be bad:",
            result.suspects.size()),
        2);
    for (const std::string& commit : result.suspects) {
      const BisectStep* step = find_step(result, commit);
      if (step == nullptr) continue;
      add_wrapped("  ", fmt::format("{} \"{}\"", commit, step->subject), 4);
      if (step->outcome == source::TrialOutcome::skipped) add_wrapped("    ", step->reason, 4);
    }
    if (result.request.judges_by_times)
      text += "weir bisect --resume --budget 10m  measures the skipped ones again, longer\n";
  }
  const auto built = std::ranges::count(result.steps, true, &BisectStep::built);
  const auto skipped =
      std::ranges::count(result.steps, source::TrialOutcome::skipped, &BisectStep::outcome);
  text += fmt::format("({} of {} commits tried, {} skipped, {} built, {})\n", result.steps.size(),
                      result.commits + 1, skipped, built, unit::show_duration(result.seconds));
  text += result.folder + "\n";  // whole, to be copied
  for (const std::string& note : result.request.notes) add_wrapped("note: ", note, 2);
  return result.redactor.text(text);
}

// Returns the result as a weir.bisect/1 document. `shown` is the redacted verdict on the bad
// commit.
Json result_json(const BisectResult& result, const verdict::GateVerdict& shown) {
  Json steps = Json::array(), suspects = Json::array();
  for (const BisectStep& step : result.steps) {
    Json json = write_fields(step);
    json["subject"] = result.redactor.text(step.subject);
    steps.push_back(std::move(json));
  }
  for (const std::string& commit : result.suspects) {
    const BisectStep* step = find_step(result, commit);
    suspects.push_back(
        {{"commit", commit},
         {"subject", result.redactor.text(step == nullptr ? "" : step->subject)},
         {"tried",
          step == nullptr ? "skipped" : name_of(source::k_trial_outcomes, step->outcome)}});
  }
  Json json = {{"schema", "weir.bisect/1"},
               {"result", is_decided(result) ? "found" : "undecided"},
               {"good", result.request.good},
               {"bad", result.request.bad},
               {"times", result.request.judges_by_times},
               {"commits", result.commits},
               {"suspects", std::move(suspects)},
               {"steps", std::move(steps)},
               {"notes", result.request.notes},
               {"folder", result.folder},
               {"seconds", result.seconds},
               {"verdict", write_fields(shown)}};
  json["first_bad"] = is_decided(result) ? Json(result.suspects.front()) : Json();
  return json;
}

}  // namespace

// Checks the options of weir bisect, runs it, and shows the first bad commit with its verdict.
Result<Answer> bisect(const Job& job, const BisectOptions& options) {
  if (options.resume && !options.good.empty()) {
    return fail(Code::usage,
                "--resume goes on between the commits that it was begun with: give none");
  }
  if (options.resume && (options.judges_by_times || !job.selection.cells.empty())) {
    return fail(Code::usage,
                "--resume goes on with the cells and the judge that it was begun with");
  }
  if (!options.resume && options.good.empty()) {
    return fail(Code::usage, "weir bisect GOOD BAD: a commit that is good, and one that is bad");
  }
  WEIR_TRY(const BisectResult result, Bisector(job, options).run());
  const verdict::GateVerdict redacted_verdict = redacted(*result.verdict, result.redactor);
  return Answer{result_text(result, static_cast<std::size_t>(job.width())) + "\n" +
                    verdict_text(job, redacted_verdict),
                json_document(result_json(result, redacted_verdict)),
                is_decided(result) ? ExitCode::pass : ExitCode::unmeasured};
}

}  // namespace weir::flow
