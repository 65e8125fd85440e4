
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/trend.hpp"
#include "gate/history/csv.hpp"
#include "gate/history/history.hpp"
#include "gate/history/json_lines.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::uint64_t k_largest_header = std::uint64_t{16} << 20;
constexpr std::size_t k_deepest = 8, k_most_entries = 200'000;

std::optional<std::string> name_or_nothing(const std::optional<std::string>& text) {
  return text && !text->empty() ? std::optional(history::stored_name(*text)) : std::nullopt;
}

// Of the commit that the command line names, where a repository here knows it.
std::optional<double> time_of_commit(const Job& job, const std::string& commit) {
  const auto repository = Repository::around(job.world, sys::absolute("."));
  if (!repository) return std::nullopt;
  return (*repository)->git().time_of(commit).value_or(std::nullopt);
}

// Which commit a run measured: what the command line says, what it ran beside a base as, what its
// header says of the checkout.
void take_commit(const Job& job, const Measured& measured, const run::RunHeader& header,
                 const TrendFacts& given, history::RunFacts& facts) {
  JsonReader extra(header.extra, "extra");
  if (extra.has("source")) {
    JsonReader source(extra.object("source"), "source");
    facts.commit = source.optional_string("commit");
    facts.commit_time = source.optional_number("time");
    facts.dirty = source.optional_boolean("dirty").value_or(false);
  }
  facts.branch = extra.optional_string("branch");
  if (measured.beside && measured.beside->facts.candidate_commit) {
    const BaseFacts& beside = measured.beside->facts;
    if (facts.commit != beside.candidate_commit) {
      facts.commit = beside.candidate_commit;
      facts.commit_time.reset();
    }
    facts.dirty = beside.candidate_dirty;
  }
  if (given.commit && given.commit != facts.commit) {
    facts.commit = given.commit;
    facts.commit_time.reset();
    facts.dirty = false;
  }
  if (given.branch) facts.branch = given.branch;
  facts.commit = name_or_nothing(facts.commit);
  if (facts.branch) facts.branch = measured.known.redactor.text(*facts.branch);
  facts.branch = name_or_nothing(facts.branch);
  if (facts.commit && !facts.commit_time) facts.commit_time = time_of_commit(job, *facts.commit);
}

Result<verdict::GateVerdict> verdict_in_file(const std::string& path, const sys::Files& files) {
  WEIR_TRY(const std::string text, files.read(path, history::k_largest_verdict));
  return parse_json(text).and_then(reading<verdict::GateVerdict>("verdict"));
}

Result<TrendPart> part_of_run(const Job& job, const std::string& path, const TrendFacts& given) {
  const sys::Files& files = job.files();
  const bool folder = files.kind(path) == sys::Kind::folder;
  const std::string home = folder ? path : sys::folder_of(path);
  const std::string journal = folder ? sys::join_path(path, run::k_journal_name) : path;
  WEIR_TRY(Measured measured, read_measured(Job{job.world}, home));
  if (!measured.interrupted.empty()) {
    return fail(Code::usage, "{}", measured.known.redactor.text(measured.interrupted));
  }
  WEIR_TRY(const run::RunFile file, run::read_run(files, home));
  history::RunFacts facts;
  facts.project = given.project;
  // What stays the same however often a run is gone on with or judged: the line its journal begins
  // with.
  WEIR_TRY(const std::string head, files.read_prefix(journal, k_largest_header));
  facts.id = hash_hex("run\n" + head.substr(0, head.find('\n')));
  facts.source = history::Source::run;
  facts.time = given.time.value_or(file.header.started_at);
  facts.machine = given.machine ? history::stored_name(*given.machine)
                                : history::machine_of(file.header.machine.name());
  facts.weir_version = name_or_nothing(file.header.weir_version).value_or("");
  take_commit(job, measured, file.header, given, facts);
  redact_profiles(measured);

  TrendPart part{path, {}, {}};
  const std::string verdict_path = sys::join_path(home, run::k_verdict_name);
  if (files.kind(verdict_path) == sys::Kind::file) {
    auto verdict = verdict_in_file(verdict_path, files);
    if (verdict) {
      part.batch.verdicts.push_back(history::stored_verdict(
          facts, facts.id, redacted(*std::move(verdict), measured.known.redactor),
          job.world.clock.now()));
    } else {
      part.warnings.push_back(
          fmt::format("{}: left out: {}", verdict_path, verdict.error().message));
    }
  }
  part.batch.runs.push_back(history::run_of(std::move(facts), measured.profiles));
  if (part.batch.runs.front().points.empty()) {
    part.warnings.push_back(fmt::format("{}: nothing was measured in it", path));
  }
  return part;
}

Result<TrendPart> part_of_verdict(const Job& job, const std::string& path,
                                  const TrendFacts& given) {
  const sys::Files& files = job.files();
  WEIR_TRY(const verdict::GateVerdict verdict, verdict_in_file(path, files));
  history::Around around;
  around.now = job.world.clock.now();
  around.time_of_commit = [&](const std::string& commit) { return time_of_commit(job, commit); };
  TrendPart part{path, {}, {}};
  WEIR_TRY(part.batch, history::batch_of(verdict, given, around).map_error([&](Error error) {
    return error.code == Code::usage ? with_context(path, std::move(error)) : error;
  }));
  return part;
}

bool is_run(const std::string& folder, const sys::Files& files) {
  return files.kind(sys::join_path(folder, run::k_journal_name)) == sys::Kind::file;
}

bool looks_like_verdict(const std::string& path, const sys::Files& files) {
  constexpr std::uint64_t k_whole = std::uint64_t{16} << 20;
  if (!path.ends_with(".json")) return false;
  const auto text = files.read(path, k_whole);
  return text && text->find("\"weir.verdict/1\"") != std::string::npos;
}

// Runs and verdicts below a folder, in the order of their names.
Result<void> find_artefacts(const std::string& folder, std::size_t depth, const sys::Files& files,
                            std::vector<std::string>& found, std::size_t& entries) {
  if (is_run(folder, files)) {
    found.push_back(folder);
    return {};
  }
  if (depth == k_deepest) return {};
  WEIR_TRY(const std::vector<std::string> names, files.list(folder));
  // As the Action leaves them: the run has its verdict within, and would count twice.
  const bool beside_run = is_run(sys::join_path(folder, "run"), files);
  for (const std::string& name : names) {
    if (++entries > k_most_entries) {
      return fail(Code::data, "{}: more than {} files; name a smaller folder", folder,
                  k_most_entries);
    }
    if (name == ".git" || name == ".weir") continue;
    const std::string path = sys::join_path(folder, name);
    const sys::Kind kind = files.kind(path);
    if (kind == sys::Kind::folder) {
      WEIR_CHECK(find_artefacts(path, depth + 1, files, found, entries));
    } else if (kind == sys::Kind::file && looks_like_verdict(path, files) && !beside_run) {
      found.push_back(path);
    }
  }
  return {};
}

}  // namespace

Result<TrendPart> trend_part_of(const Job& job, const std::string& path, const TrendFacts& facts) {
  const sys::Files& files = job.files();
  const sys::Kind kind = files.kind(path);
  if (kind == sys::Kind::absent) return fail(Code::usage, "{}: no such run", path);
  if (kind == sys::Kind::folder && !is_run(path, files)) {
    return fail(Code::usage, "{}: no run (it has no {}); --from-dir looks below a folder", path,
                run::k_journal_name);
  }
  if (kind == sys::Kind::folder || sys::file_name_of(path) == run::k_journal_name) {
    return part_of_run(job, path, facts);
  }
  return part_of_verdict(job, path, facts).map_error([&](Error error) {
    if (error.code != Code::data) return error;
    return with_context(path + ": neither a run nor a verdict", std::move(error));
  });
}

Result<void> trend_parts_below(const Job& job, const TrendFolder& where, const TrendFacts& facts,
                               const TakePart& take, const Warn& warn) {
  if (job.files().kind(where.folder) != sys::Kind::folder) {
    return fail(Code::usage, "--from-dir {}: no such folder", where.folder);
  }
  std::vector<std::string> found;
  std::size_t entries = 0;
  WEIR_CHECK(find_artefacts(where.folder, 0, job.files(), found, entries));
  for (const std::string& path : found) {
    auto part = trend_part_of(job, path, facts);
    if (!part && part.error().code == Code::interrupted) {
      return tl::unexpected(std::move(part).error());
    }
    if (!part) {
      warn(fmt::format("{}: left out: {}", path, part.error().message));
      continue;
    }
    WEIR_CHECK(take(*std::move(part)));
  }
  return trend_parts_of_baselines(job, where, facts, take, warn);
}

namespace {

constexpr std::uint64_t k_largest_series = std::uint64_t{2} << 30;
// Small runs are kept together, for each transaction waits for the disk; none is ever cut in two.
constexpr std::size_t k_points_at_once = 20'000, k_runs_at_once = 2'000;

// Keeps what is handed in, and says so when it is on the disk.
class Keeper {
 public:
  Keeper(const Job& job, history::Store& store, const TrendImportOptions& options)
      : job_(job), store_(store), each_(options.each), batch_(options.batch) {}

  Result<void> keep(const TrendPart& part) {
    for (const std::string& warning : part.warnings) warn(warning);
    WEIR_TRY(const history::Added added, add(part.batch));
    std::string words = added.points > 0 || added.points_known == 0
                            ? report::plural(added.points, "point") + " kept"
                            : std::string("known already");
    if (added.points > 0 && added.points_known > 0) {
      words += fmt::format(", {} known", added.points_known);
    }
    if (added.verdicts > 0) words += ", a verdict";
    job_.say(fmt::format("{}: {}\n", part.from, words));
    return {};
  }

  // Runs and others of a file with many.
  Result<void> put(history::Run run) {
    points_ += run.points.size();
    return put(std::move(run), waiting_.runs, points_ >= k_points_at_once ? 1 : batch_);
  }
  Result<void> put(history::StoredVerdict verdict) {
    return put(std::move(verdict), waiting_.verdicts, 100);
  }
  Result<void> put(history::Acknowledgement one) {
    return put(std::move(one), waiting_.acknowledgements, k_runs_at_once);
  }
  Result<void> flush() {
    WEIR_CHECK(add(waiting_));
    waiting_ = {};
    points_ = 0;
    return {};
  }

  void warn(const std::string& line) {
    print_error(job_.world, {Code::data, text::printable(line)});
    left_out_ = true;
  }

  [[nodiscard]] bool left_out() const { return left_out_; }
  [[nodiscard]] std::string words() const {
    std::string words =
        fmt::format("{}: {} and {} are new", store_.name(), report::plural(all_.runs, "run"),
                    report::plural(all_.points, "point"));
    if (all_.verdicts > 0) words += fmt::format(", {}", report::plural(all_.verdicts, "verdict"));
    if (all_.runs_known > 0)
      words += fmt::format("; {} known", report::plural(all_.runs_known, "run"));
    words += "\n";
    if (all_.points_differ > 0) {
      words += fmt::format("{} of them {} another number than is kept, which stays:\n",
                           report::plural(all_.points_differ, "point"),
                           all_.points_differ == 1 ? "has" : "have");
      for (const std::string& one : all_.differences) words += "  " + one + "\n";
    }
    return words;
  }

 private:
  template <class One>
  Result<void> put(One one, std::vector<One>& waiting, std::size_t most) {
    waiting.push_back(std::move(one));
    return waiting.size() >= most ? flush() : Result<void>{};
  }
  Result<history::Added> add(const history::Batch& batch) {
    WEIR_TRY(history::Added added, store_.add(batch));
    all_.runs += added.runs;
    all_.runs_known += added.runs_known;
    all_.points += added.points;
    all_.points_differ += added.points_differ;
    all_.verdicts += added.verdicts;
    for (const std::string& one : added.differences) {
      if (all_.differences.size() < 5) all_.differences.push_back(one);
    }
    if (each_) {
      std::string kept;
      for (const history::Run& run : batch.runs) kept += "kept " + run.facts.id + "\n";
      job_.say(kept);
    }
    return added;
  }

  const Job& job_;
  history::Store& store_;
  bool each_;
  std::size_t batch_;
  history::Batch waiting_;
  std::size_t points_ = 0;
  history::Added all_;
  bool left_out_ = false;
};

Result<void> import_csv(const Job& job, const std::string& path, const TrendImportOptions& options,
                        Keeper& keeper) {
  WEIR_TRY(const std::string text, job.files().read(path, k_largest_series));
  const auto& machine = options.facts.machine;
  WEIR_TRY(const history::CsvTable table,
           history::CsvTable::parse(text, options.facts.project,
                                    machine ? history::stored_name(*machine) : std::string())
               .map_error(in_context(path)));
  for (const std::string& warning : table.warnings()) {
    print_error(job.world, {Code::data, fmt::format("{}: {}", path, warning)});
  }
  for (std::size_t i = 0; i < table.runs(); ++i) {
    history::Run run = table.run(i);
    if (options.facts.branch) run.facts.branch = history::stored_name(*options.facts.branch);
    WEIR_CHECK(keeper.put(std::move(run)));
  }
  return keeper.flush();
}

Result<void> import_lines(const std::string& path, const sys::Files& files, Keeper& keeper) {
  WEIR_TRY(const std::string text, files.read(path, k_largest_series));
  const auto put = [&](auto value) { return keeper.put(std::move(value)); };
  auto done = history::read_lines(text, {put, put, put});
  // What stood before a line that is wrong is kept.
  WEIR_CHECK(keeper.flush());
  return done.map_error(in_context(path));
}

Result<void> check_wanted(TrendImportOptions& options) {
  if (options.runs.empty() && options.csv.empty() && options.json_lines.empty() &&
      !options.from_dir) {
    return fail(Code::usage,
                "nothing to import: name RUNs, --from-dir DIR, --csv FILE or --jsonl FILE");
  }
  if (!options.json_lines.empty() && options.project_given) {
    return fail(Code::usage, "--jsonl brings its projects along: leave --project out");
  }
  if (!options.csv.empty() && (options.facts.commit || options.time)) {
    return fail(Code::usage,
                "--csv brings its commits and times along: leave --commit, --time out");
  }
  if (options.time) {
    options.facts.time = history::parse_time(*options.time);
    if (!options.facts.time) {
      return fail(Code::usage, "--time {}: no time: 2026-11-20T09:30:15Z or Unix seconds",
                  text::printable(*options.time));
    }
  }
  options.facts.project = history::stored_name(options.facts.project);
  return {};
}

}  // namespace

Result<Answer> import_history(const Job& job, const TrendImportOptions& asked) {
  TrendImportOptions options = asked;
  WEIR_CHECK(check_wanted(options));
  WEIR_TRY(const auto store, open_history(job, options.store, true));
  Keeper keeper(job, *store, options);
  for (const std::string& run : options.runs) {
    auto part = trend_part_of(job, run, options.facts);
    if (!part && options.runs.size() == 1) return tl::unexpected(std::move(part).error());
    if (!part) {
      keeper.warn(fmt::format("{}: left out: {}", run, part.error().message));
      continue;
    }
    WEIR_CHECK(keeper.keep(*part));
  }
  if (options.from_dir) {
    WEIR_CHECK(trend_parts_below(
        job, {*options.from_dir, options.config}, options.facts,
        [&](const TrendPart& part) { return keeper.keep(part); },
        [&](const std::string& line) { keeper.warn(line); }));
  }
  for (const std::string& path : options.csv) WEIR_CHECK(import_csv(job, path, options, keeper));
  for (const std::string& path : options.json_lines) {
    WEIR_CHECK(import_lines(path, job.files(), keeper));
  }
  return Answer{text::printable(keeper.words()), "",
                keeper.left_out() ? ExitCode::unmeasured : ExitCode::pass};
}

}  // namespace weir::flow
