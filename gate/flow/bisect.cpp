#include "gate/flow/bisect.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/bisect_journal.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/reports.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

struct Bisected {
  BisectAsked asked;
  std::string folder;             // of its journal
  std::vector<BisectStep> steps;  // as tried
  // Those that may be the first bad commit, children before parents; one alone is it.
  std::vector<std::string> suspects;
  std::size_t commits = 0;  // that the bad one contains and the good one does not
  double seconds = 0;       // of this call
  // The newest known bad commit, of `suspects` the first, beside the good one; not redacted.
  std::string bad_subject;
  std::optional<verdict::GateVerdict> verdict;
  config::Redactor redactor;
};

// Null where it was not tried.
const BisectStep* step_of(const Bisected& made, const std::string& commit) {
  return first_of(made.steps, [&](const BisectStep& step) { return step.commit == commit; });
}

class Bisector {
 public:
  Bisector(const Job& job, const BisectWanted& wanted) : job_(job), wanted_(wanted) {}

  Result<Bisected> run() {
    const double started = clock_.steady();
    WEIR_CHECK(begin());
    const auto found = search();
    if (!found && found.error().code == Code::interrupted) {
      return fail(Code::interrupted,
                  "interrupted; what was tried is kept. Go on with: weir bisect --resume {}",
                  made_.folder);
    }
    WEIR_CHECK(found);
    made_.seconds = clock_.steady() - started;
    return std::move(made_);
  }

 private:
  // --- what is asked for

  Result<Loaded> load() {
    WEIR_TRY(Loaded loaded, load_config(with_cells()));
    made_.redactor = loaded.known.redactor;
    const std::string hash = short_hash(loaded.text, 16);
    std::string& begun = made_.asked.config_hash;
    if (begun.empty()) begun = hash;
    if (hash != begun) {
      return fail(Code::usage,
                  "{} changed since this bisection began: commits tried under other settings "
                  "cannot be compared. Begin a new one",
                  job_.asked.config);
    }
    return loaded;
  }

  Result<void> begin() {
    const std::string all = sys::join_path(job_.asked.out, "bisect");
    if (wanted_.resume) {
      made_.folder = *wanted_.resume;
      if (made_.folder.empty()) {
        const auto begun = run::list_runs(files_, all, "bisect.jsonl");
        if (begun.empty()) return fail(Code::usage, "{}: no bisection to go on with", all);
        made_.folder = begun.back();
      }
      BisectState state;
      WEIR_TRY(journal_, resume_bisect(files_, made_.folder, state));
      made_.asked = std::move(state.asked);
      made_.steps = std::move(state.steps);
    }
    WEIR_TRY(const Loaded loaded, load());
    builds_ = builds_of_cells(loaded.cells);
    WEIR_TRY(cache_, source::default_cache_folder());
    place_ = job_.folder();
    WEIR_TRY(const auto repository, Repository::open(job_.world, place_));
    const source::Git& git = repository->git();
    own_roots_ = {source::top_as_named(git, place_), git.top()};
    if (wanted_.resume) {
      // Its names go to git: a journal from elsewhere could hold anything.
      for (const std::string& name : {made_.asked.good, made_.asked.bad}) {
        WEIR_TRY(const std::string commit, commit_of(git, name));
        if (commit != name) return fail(Code::data, "{}: {} is no commit", made_.folder, name);
      }
    } else {
      WEIR_CHECK(ask(git));
      WEIR_TRY(made_.folder, run::make_run_folder(files_, all, clock_.now()));
      WEIR_TRY(journal_, begin_bisect(files_, made_.folder, made_.asked));
    }
    WEIR_TRY(history_, git.history(made_.asked.good, made_.asked.bad));
    if (history_.empty()) {
      return fail(Code::config,
                  "{} is contained in {}: nothing lies between them; are they in "
                  "the other order?",
                  made_.asked.bad_words, made_.asked.good_words);
    }
    made_.commits = history_.size();
    for (const std::string& note : made_.asked.notes) say(note);
    return {};
  }

  static Result<std::string> commit_of(const source::Git& git, const std::string& name) {
    std::optional<std::string> commit;
    if (!name.empty() && !name.starts_with('-') && name.find('\0') == std::string::npos)
      WEIR_SET(commit, git.commit(name));
    if (commit) return *commit;
    WEIR_TRY(const bool shallow, git.shallow());
    return fail(Code::config, "{}: no commit that is known here{}", text::printable(name),
                shallow ? "; history is cut off: fetch all of it (`git fetch --unshallow`)" : "");
  }

  Result<void> ask(const source::Git& git) {
    BisectAsked& asked = made_.asked;
    asked.cells = job_.asked.cells;
    asked.times = wanted_.times;
    asked.config_file = job_.asked.config;
    WEIR_TRY(const std::string good, commit_of(git, wanted_.good));
    WEIR_TRY(asked.bad, commit_of(git, wanted_.bad));
    WEIR_TRY(asked.bad_words, git.words(asked.bad));
    WEIR_TRY(const auto bases, git.merge_bases(good, asked.bad));
    WEIR_TRY(const std::string words, git.words(good));
    if (bases.empty()) {
      WEIR_TRY(const bool shallow, git.shallow());
      return fail(Code::config, "{} and {} have no common ancestor{}", words, asked.bad_words,
                  shallow ? " that is known here; history is cut off: fetch all of it (`git fetch "
                            "--unshallow`)"
                          : "");
    }
    asked.good = bases.front();
    WEIR_TRY(asked.good_words, git.words(asked.good));
    if (asked.good != good) {
      asked.notes.push_back(
          fmt::format("{} is no ancestor of {}: their merge-base, {}, stands for it", words,
                      asked.bad_words, asked.good_words));
    }
    return {};
  }

  // --- one commit after the other

  Result<void> search() {
    source::Bisection bisection(history_);
    WEIR_TRY(good_, tree_of(made_.asked.good).map_error([&](Error error) {
      return with_context(made_.asked.good_words, of_commit(std::move(error)));
    }));
    WEIR_CHECK(try_ends());
    for (const BisectStep& step : made_.steps) bisection.tell(step.commit, step.tried);
    for (auto next = bisection.next(); next; next = bisection.next()) {
      say(fmt::format("{} commits may be the first bad one, about {} more step{}{}",
                      bisection.suspects().size(), bisection.steps_left(),
                      bisection.steps_left() == 1 ? "" : "s", time_left(bisection.steps_left())));
      WEIR_TRY(const BisectStep step, try_commit(*next, false));
      bisection.tell(step.commit, step.tried);
    }
    made_.suspects = bisection.suspects();
    return take_verdict();
  }

  // Said at once, before anything else is built.
  Result<void> try_ends() {
    const BisectAsked& asked = made_.asked;
    WEIR_TRY(const BisectStep good, try_or_known(asked.good));
    if (good.tried != source::Tried::good) {
      return fail(good.tried == source::Tried::bad ? Code::config : Code::unavailable,
                  "{} is not good: beside itself, {}", asked.good_words, good.reason);
    }
    WEIR_TRY(const BisectStep bad, try_or_known(asked.bad));
    if (bad.tried == source::Tried::good) {
      return fail(Code::config, "{} is not bad: beside {} it breaks no limit of {}",
                  asked.bad_words, asked.good_words,
                  asked.times ? "times" : "counts (--times looks at times)");
    }
    if (bad.tried == source::Tried::bad) return {};
    return fail(Code::unavailable, "{} cannot be told to be bad: {}", asked.bad_words, bad.reason);
  }
  Result<BisectStep> try_or_known(const std::string& commit) {
    const BisectStep* known = step_of(made_, commit);
    return known != nullptr ? Result<BisectStep>(*known) : try_commit(commit, true);
  }

  Result<BisectStep> try_commit(const std::string& commit, bool end) {
    const double started = clock_.steady();
    BisectStep step;
    step.commit = commit;
    {
      WEIR_TRY(const auto repository, Repository::open(job_.world, place_));
      WEIR_TRY(step.subject, repository->git().subject(commit));
    }
    say(fmt::format("  {} \"{}\"", source::short_commit(commit), step.subject));
    auto tree = tree_of(commit);
    // An end that does not build is an answer of its own: there is nothing to go on with.
    if (!tree && (end || tree.error().code != Code::unavailable)) {
      return tl::unexpected(with_context(source::short_commit(commit), of_commit(tree.error())));
    }
    if (tree) {
      const bool is_good = commit == made_.asked.good;  // its tree was made before
      step.built = !(is_good ? good_.from_cache : tree->from_cache);
      WEIR_CHECK(measure_and_judge(*tree, end, step));
    } else {
      // Its first line; git and compilers may have said much more.
      step.reason = text::first_line(of_commit(tree.error()).message);
    }
    step.seconds = clock_.steady() - started;
    WEIR_CHECK(journal_->append(dump_json(write_fields(step))));
    made_.steps.push_back(step);
    say(fmt::format("    {}{}{} ({})", name_of(source::k_tried, step.tried),
                    step.reason.empty() ? "" : ": ", step.reason,
                    unit::show_duration(step.seconds)));
    return step;
  }

  // A failed build in the words of a bisection, and without private names.
  [[nodiscard]] Error of_commit(Error error) const {
    constexpr std::string_view k_base = "the base could not be built: ";
    if (error.message.starts_with(k_base)) {
      error.message.replace(0, k_base.size(), "does not build: ");
    }
    return redacted(std::move(error), made_.redactor);
  }
  // The job with the cells that the bisection was begun with.
  [[nodiscard]] Job with_cells() const {
    Job job = job_;
    if (!made_.asked.good.empty()) job.asked.cells = made_.asked.cells;
    return job;
  }

  Result<source::Tree> tree_of(const std::string& commit) {
    WEIR_TRY(const auto repository, Repository::open(job_.world, place_));
    return source::prepare_tree(repository->git(), {commit, builds_, cache_},
                                repository->effects());
  }

  // --- measuring

  Result<void> measure_and_judge(const source::Tree& tree, bool end, BisectStep& step) {
    auto commits = std::make_shared<TwoCommits>();
    source::BaseTree& base = commits->base;
    base.root = good_.root;
    base.held = good_.held;
    base.commit = made_.asked.good;
    base.built = !builds_.empty();
    base.words = "good commit " + made_.asked.good_words;
    base.candidate_root = base.candidate_real_root = tree.root;
    base.candidate_commit = step.commit;
    commits->candidate_held = tree.held;
    commits->own_roots = own_roots_;
    commits->counts_folder = counts_of_tree(cache_, good_.root);

    Job inner = with_cells();
    inner.asked.out = sys::join_path(made_.folder, "steps/" + step.commit);
    MeasureOptions wanted;
    wanted.plan.counts = !made_.asked.times;
    wanted.plan.times = made_.asked.times;
    wanted.against = BaseRequest{.spec = "", .command = {}, .commits = commits};
    // What a killed bisection had measured of this commit is not measured again.
    const auto measured = measure_or_resume([this] { return load(); }, inner, wanted);
    if (!measured) {
      // A commit without the program, say. Of an end that is a mistake of the configuration.
      const Error error = redacted(measured.error(), made_.redactor);
      if (end || error.code != Code::config) return tl::unexpected(error);
      step.reason = "cannot be run: " + text::first_line(error.message);
      return {};
    }
    step.run = measured->folder;
    WEIR_TRY(const verdict::GateVerdict verdict, judge(*measured));
    const Judged judged = judged_step(verdict);
    if (end && judged.nothing) {
      return fail(Code::config, "{} can be judged in these cells{}",
                  made_.asked.times ? "no time" : "no count",
                  made_.asked.times ? "" : " (--times looks at the times)");
    }
    step.tried = judged.tried;
    step.reason = made_.redactor.text(judged.reason);
    return {};
  }

  // By the good commit alone: nothing that is stored has a say.
  Result<verdict::GateVerdict> judge(const Measured& measured) {
    const StoredBaselines none(files_, sys::join_path(made_.folder, "no-baselines"));
    return judge_beside(measured, none, policy_of(measured, false), files_);
  }

  // Of the newest known bad commit: the first one, where it was found.
  Result<void> take_verdict() {
    const BisectStep* step = step_of(made_, made_.suspects.front());
    if (step == nullptr) return {};
    made_.bad_subject = step->subject;
    WEIR_TRY(const Measured measured, read_measured(with_cells(), step->run));
    WEIR_TRY(made_.verdict, judge(measured));
    return {};
  }

  // --- telling

  void say(const std::string& line) const { job_.talk(made_.redactor.text(line)); }
  [[nodiscard]] std::string time_left(std::size_t steps) const {
    double seconds = 0, tried = 0;
    for (const BisectStep& step : made_.steps) {
      if (!step.built) continue;
      seconds += step.seconds;
      tried += 1;
    }
    if (tried == 0) return "";
    return ", " + run::show_time_left(seconds / tried * static_cast<double>(steps));
  }

  const Job& job_;
  const BisectWanted& wanted_;
  sys::Files& files_ = job_.files();
  const sys::Clock& clock_ = job_.world.clock;
  Bisected made_;
  BisectJournal journal_;
  std::vector<source::Build> builds_;
  std::vector<source::HistoryCommit> history_;
  std::vector<std::string> own_roots_;
  std::string cache_, place_;  // the latter: of the config; builds run in its counterpart
  source::Tree good_;
};

bool was_found(const Bisected& made) { return made.suspects.size() == 1; }

std::string text_of(const Bisected& made, std::size_t width) {
  std::string text;
  const auto add = [&](std::string_view first, const std::string& words, std::size_t indent) {
    const std::string shown = made.redactor.text(words);  // no line's end parts a private name
    for (const std::string& line : report::wrap(shown, width, first, indent)) text += line + "\n";
  };
  if (was_found(made)) {
    text = fmt::format("weir bisect: the first bad commit is\n  {}\n", made.suspects[0]);
    add("  ", fmt::format("\"{}\"", made.bad_subject), 2);
  } else {
    add("",
        fmt::format(
            "weir bisect: could not be decided: the first bad commit is one of these {}, of "
            "which only the first is known to be bad:",
            made.suspects.size()),
        2);
    for (const std::string& commit : made.suspects) {
      const BisectStep* step = step_of(made, commit);
      if (step == nullptr) continue;
      add("  ", fmt::format("{} \"{}\"", commit, step->subject), 4);
      if (step->tried == source::Tried::skipped) add("    ", step->reason, 4);
    }
  }
  const auto built = std::ranges::count(made.steps, true, &BisectStep::built);
  const auto skipped = std::ranges::count(made.steps, source::Tried::skipped, &BisectStep::tried);
  text += fmt::format("({} of {} commits tried, {} skipped, {} built, {})\n", made.steps.size(),
                      made.commits + 1, skipped, built, unit::show_duration(made.seconds));
  text += made.folder + "\n";  // whole, to be copied
  for (const std::string& note : made.asked.notes) add("note: ", note, 2);
  return made.redactor.text(text);
}

Json json_of(const Bisected& made, const verdict::GateVerdict& shown) {
  Json steps = Json::array(), suspects = Json::array();
  for (const BisectStep& step : made.steps) {
    Json json = write_fields(step);
    json["subject"] = made.redactor.text(step.subject);
    steps.push_back(std::move(json));
  }
  for (const std::string& commit : made.suspects) {
    const BisectStep* step = step_of(made, commit);
    suspects.push_back(
        {{"commit", commit},
         {"subject", made.redactor.text(step == nullptr ? "" : step->subject)},
         {"tried", step == nullptr ? "skipped" : name_of(source::k_tried, step->tried)}});
  }
  Json json = {
      {"schema", "weir.bisect/1"},       {"result", was_found(made) ? "found" : "undecided"},
      {"good", made.asked.good},         {"bad", made.asked.bad},
      {"times", made.asked.times},       {"commits", made.commits},
      {"suspects", std::move(suspects)}, {"steps", std::move(steps)},
      {"notes", made.asked.notes},       {"folder", made.folder},
      {"seconds", made.seconds},         {"verdict", write_fields(shown)}};
  json["first_bad"] = was_found(made) ? Json(made.suspects.front()) : Json();
  return json;
}

}  // namespace

Result<Answer> bisect(const Job& job, const BisectWanted& wanted) {
  if (wanted.resume && !wanted.good.empty()) {
    return fail(Code::usage,
                "--resume goes on between the commits that it was begun with: give none");
  }
  if (wanted.resume && (wanted.times || !job.asked.cells.empty())) {
    return fail(Code::usage,
                "--resume goes on with the cells and the judge that it was begun with");
  }
  if (!wanted.resume && wanted.good.empty()) {
    return fail(Code::usage, "weir bisect GOOD BAD: a commit that is good, and one that is bad");
  }
  WEIR_TRY(const Bisected made, Bisector(job, wanted).run());
  const verdict::GateVerdict shown = redacted(*made.verdict, made.redactor);
  return Answer{
      text_of(made, static_cast<std::size_t>(job.width())) + "\n" + verdict_text(job, shown),
      document(json_of(made, shown)), was_found(made) ? ExitCode::pass : ExitCode::unmeasured};
}

}  // namespace weir::flow
