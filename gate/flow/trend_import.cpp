// weir trend import: puts runs, verdicts and tables of numbers into the store of a history.
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
constexpr std::size_t k_deepest = 8, k_max_entries = 200'000;

std::optional<std::string> stored_name_if_any(const std::optional<std::string>& text) {
  return text && !text->empty() ? std::optional(history::stored_name(*text)) : std::nullopt;
}

// Returns the time of a commit that the command line names; nothing if no repository here has it.
std::optional<double> commit_time(const Job& job, const std::string& commit) {
  const auto repository = Repository::containing(job.world, sys::absolute("."));
  if (!repository) return std::nullopt;
  return (*repository)->git().time_of(commit).value_or(std::nullopt);
}

// Sets the commit that a run measured. The command line comes first, then the run's base
// comparison, then the header of its journal.
void set_commit(const Job& job, const MeasuredRun& measured, const run::RunHeader& header,
                const TrendFacts& options, history::RunFacts& facts) {
  JsonReader extra(header.extra, "extra");
  if (extra.has("source")) {
    JsonReader source(extra.object("source"), "source");
    facts.commit = source.optional_string("commit");
    facts.commit_time = source.optional_number("time");
    facts.dirty = source.optional_boolean("dirty").value_or(false);
  }
  facts.branch = extra.optional_string("branch");
  if (measured.base_runs && measured.base_runs->facts.candidate_commit) {
    const BaseFacts& base_facts = measured.base_runs->facts;
    if (facts.commit != base_facts.candidate_commit) {
      facts.commit = base_facts.candidate_commit;
      facts.commit_time.reset();
    }
    facts.dirty = base_facts.candidate_dirty;
  }
  if (options.commit && options.commit != facts.commit) {
    facts.commit = options.commit;
    facts.commit_time.reset();
    facts.dirty = false;
  }
  if (options.branch) facts.branch = options.branch;
  facts.commit = stored_name_if_any(facts.commit);
  if (facts.branch) facts.branch = measured.configuration.redactor.text(*facts.branch);
  facts.branch = stored_name_if_any(facts.branch);
  if (facts.commit && !facts.commit_time) facts.commit_time = commit_time(job, *facts.commit);
}

Result<verdict::GateVerdict> read_verdict_file(const std::string& path, const sys::Files& files) {
  WEIR_TRY(const std::string text, files.read(path, history::k_largest_verdict));
  return parse_json(text).and_then(reading<verdict::GateVerdict>("verdict"));
}

// Reads a run's folder or journal as one part of a history, together with its verdict.
Result<TrendPart> read_run_part(const Job& job, const std::string& path,
                                const TrendFacts& options) {
  const sys::Files& files = job.files();
  const bool is_folder = files.kind(path) == sys::Kind::folder;
  const std::string home = is_folder ? path : sys::folder_of(path);
  const std::string journal = is_folder ? sys::join_path(path, run::k_journal_name) : path;
  WEIR_TRY(MeasuredRun measured, read_measured(Job{job.world}, home));
  if (!measured.interrupted.empty()) {
    return fail(Code::usage, "{}", measured.configuration.redactor.text(measured.interrupted));
  }
  WEIR_TRY(const run::RunFile file, run::read_run(files, home));
  history::RunFacts facts;
  facts.project = options.project;
  // The journal's first line stays the same, however often a run is resumed or judged.
  WEIR_TRY(const std::string head, files.read_prefix(journal, k_largest_header));
  facts.id = hash_hex("run\n" + head.substr(0, head.find('\n')));
  facts.source = history::Source::run;
  facts.time = options.time.value_or(file.header.started_at);
  facts.machine = options.machine ? history::stored_name(*options.machine)
                                  : history::series_machine(file.header.machine.name());
  facts.weir_version = stored_name_if_any(file.header.weir_version).value_or("");
  set_commit(job, measured, file.header, options, facts);
  redact_profiles(measured);

  TrendPart part{path, {}, {}};
  const std::string verdict_path = sys::join_path(home, run::k_verdict_name);
  if (files.kind(verdict_path) == sys::Kind::file) {
    auto verdict = read_verdict_file(verdict_path, files);
    if (verdict) {
      part.batch.verdicts.push_back(history::stored_verdict(
          facts, facts.id, redacted(*std::move(verdict), measured.configuration.redactor),
          job.world.clock.now()));
    } else {
      part.warnings.push_back(
          fmt::format("{}: left out: {}", verdict_path, verdict.error().message));
    }
  }
  part.batch.runs.push_back(history::make_run(std::move(facts), measured.profiles));
  if (part.batch.runs.front().points.empty()) {
    part.warnings.push_back(fmt::format("{}: nothing was measured in it", path));
  }
  return part;
}

// Reads a verdict's file as one part of a history, without the run that it judges.
Result<TrendPart> read_verdict_part(const Job& job, const std::string& path,
                                    const TrendFacts& options) {
  const sys::Files& files = job.files();
  WEIR_TRY(const verdict::GateVerdict verdict, read_verdict_file(path, files));
  history::TimeContext context;
  context.now = job.world.clock.now();
  context.time_of_commit = [&](const std::string& commit) { return commit_time(job, commit); };
  TrendPart part{path, {}, {}};
  WEIR_TRY(part.batch, history::make_batch(verdict, options, context).map_error([&](Error error) {
    return error.code == Code::usage ? add_prefix(path, std::move(error)) : error;
  }));
  return part;
}

bool is_run_folder(const std::string& folder, const sys::Files& files) {
  return files.kind(sys::join_path(folder, run::k_journal_name)) == sys::Kind::file;
}

bool looks_like_verdict(const std::string& path, const sys::Files& files) {
  constexpr std::uint64_t k_whole = std::uint64_t{16} << 20;
  if (!path.ends_with(".json")) return false;
  const auto text = files.read(path, k_whole);
  return text && text->find("\"weir.verdict/1\"") != std::string::npos;
}

// Adds runs and verdicts below a folder to `paths`, in the order of their names. Counts files in
// `entries`; fails if there are too many.
Result<void> find_artefacts(const std::string& folder, std::size_t depth, const sys::Files& files,
                            std::vector<std::string>& paths, std::size_t& entries) {
  if (is_run_folder(folder, files)) {
    paths.push_back(folder);
    return {};
  }
  if (depth == k_deepest) return {};
  WEIR_TRY(const std::vector<std::string> names, files.list(folder));
  // The Action puts the run's folder beside its verdict: the verdict in that folder counts already.
  const bool beside_run = is_run_folder(sys::join_path(folder, "run"), files);
  for (const std::string& name : names) {
    ++entries;
    if (entries > k_max_entries) {
      return fail(Code::data, "{}: more than {} files; name a smaller folder", folder,
                  k_max_entries);
    }
    if (name == ".git" || name == ".weir") continue;
    const std::string path = sys::join_path(folder, name);
    const sys::Kind kind = files.kind(path);
    if (kind == sys::Kind::folder) {
      WEIR_CHECK(find_artefacts(path, depth + 1, files, paths, entries));
    } else if (kind == sys::Kind::file && looks_like_verdict(path, files) && !beside_run) {
      paths.push_back(path);
    }
  }
  return {};
}

}  // namespace

// Reads a run's folder, its journal, or a verdict's file. Fails with Code::usage if it is none of
// these.
Result<TrendPart> read_trend_part(const Job& job, const std::string& path,
                                  const TrendFacts& facts) {
  const sys::Files& files = job.files();
  const sys::Kind kind = files.kind(path);
  if (kind == sys::Kind::absent) return fail(Code::usage, "{}: no such run", path);
  if (kind == sys::Kind::folder && !is_run_folder(path, files)) {
    return fail(Code::usage, "{}: no run (it has no {}); --from-dir looks below a folder", path,
                run::k_journal_name);
  }
  if (kind == sys::Kind::folder || sys::file_name_of(path) == run::k_journal_name) {
    return read_run_part(job, path, facts);
  }
  return read_verdict_part(job, path, facts).map_error([&](Error error) {
    if (error.code != Code::data) return error;
    return add_prefix(path + ": neither a run nor a verdict", std::move(error));
  });
}

// Reads all runs, verdicts and baselines below a folder and passes each to `take`. Warns about
// those that cannot be read.
Result<void> read_trend_parts(const Job& job, const TrendFolder& folder_options,
                              const TrendFacts& facts, const TakePart& take, const Warn& warn) {
  if (job.files().kind(folder_options.folder) != sys::Kind::folder) {
    return fail(Code::usage, "--from-dir {}: no such folder", folder_options.folder);
  }
  std::vector<std::string> paths;
  std::size_t entries = 0;
  WEIR_CHECK(find_artefacts(folder_options.folder, 0, job.files(), paths, entries));
  for (const std::string& path : paths) {
    auto part = read_trend_part(job, path, facts);
    if (!part && part.error().code == Code::interrupted) {
      return tl::unexpected(std::move(part).error());
    }
    if (!part) {
      warn(fmt::format("{}: left out: {}", path, part.error().message));
      continue;
    }
    WEIR_CHECK(take(*std::move(part)));
  }
  return read_baseline_parts(job, folder_options, facts, take, warn);
}

namespace {

constexpr std::uint64_t k_largest_series = std::uint64_t{2} << 30;
// Small runs share a transaction, since each waits for the disk. No run is split.
constexpr std::size_t k_points_at_once = 20'000, k_runs_at_once = 2'000;

// Puts parts into the store in batches, and prints what was added once it is on the disk.
class Importer {
 public:
  Importer(const Job& job, history::Store& store, const TrendImportOptions& options)
      : job_(job), store_(store), each_(options.each), batch_(options.batch) {}

  // Adds one part at once, and prints how many of its points were new.
  Result<void> import_part(const TrendPart& part) {
    for (const std::string& warning : part.warnings) warn(warning);
    WEIR_TRY(const history::Added added, store_batch(part.batch));
    std::string text = added.points > 0 || added.points_known == 0
                           ? text::plural(added.points, "point") + " kept"
                           : std::string("known already");
    if (added.points > 0 && added.points_known > 0) {
      text += fmt::format(", {} known", added.points_known);
    }
    if (added.verdicts > 0) text += ", a verdict";
    job_.answer_printable(fmt::format("{}: {}\n", part.from, text));
    return {};
  }

  // These add one item of a file that holds many; flush() after the last.
  Result<void> add(history::Run run) {
    points_ += run.points.size();
    return add(std::move(run), batch_in_progress_.runs, points_ >= k_points_at_once ? 1 : batch_);
  }
  Result<void> add(history::StoredVerdict verdict) {
    return add(std::move(verdict), batch_in_progress_.verdicts, 100);
  }
  Result<void> add(history::Acknowledgement acknowledgement) {
    return add(std::move(acknowledgement), batch_in_progress_.acknowledgements, k_runs_at_once);
  }
  Result<void> flush() {
    WEIR_CHECK(store_batch(batch_in_progress_));
    batch_in_progress_ = {};
    points_ = 0;
    return {};
  }

  void warn(const std::string& line) {
    print_error(job_.world, {Code::data, text::printable(line)});
    left_out_ = true;
  }

  [[nodiscard]] bool left_out() const { return left_out_; }
  // Sums up all that was imported.
  [[nodiscard]] std::string summary() const {
    std::string text =
        fmt::format("{}: {} and {} are new", store_.name(), text::plural(totals_.runs, "run"),
                    text::plural(totals_.points, "point"));
    if (totals_.verdicts > 0)
      text += fmt::format(", {}", text::plural(totals_.verdicts, "verdict"));
    if (totals_.runs_known > 0)
      text += fmt::format("; {} known", text::plural(totals_.runs_known, "run"));
    text += "\n";
    if (totals_.points_differ > 0) {
      text += fmt::format("{} of them {} another number than is kept, which stays:\n",
                          text::plural(totals_.points_differ, "point"),
                          totals_.points_differ == 1 ? "has" : "have");
      for (const std::string& difference : totals_.differences) text += "  " + difference + "\n";
    }
    return text;
  }

 private:
  template <class Item>
  Result<void> add(Item item, std::vector<Item>& items, std::size_t batch_size) {
    items.push_back(std::move(item));
    return items.size() >= batch_size ? flush() : Result<void>{};
  }
  // Puts a batch into the store, and adds up what was new.
  Result<history::Added> store_batch(const history::Batch& batch) {
    WEIR_TRY(history::Added added, store_.add(batch));
    totals_.runs += added.runs;
    totals_.runs_known += added.runs_known;
    totals_.points += added.points;
    totals_.points_differ += added.points_differ;
    totals_.verdicts += added.verdicts;
    for (const std::string& difference : added.differences) {
      if (totals_.differences.size() < 5) totals_.differences.push_back(difference);
    }
    if (each_) {
      std::string lines;
      for (const history::Run& run : batch.runs) lines += "kept " + run.facts.id + "\n";
      job_.answer_printable(lines);
    }
    return added;
  }

  const Job& job_;
  history::Store& store_;
  bool each_;
  std::size_t batch_;
  history::Batch batch_in_progress_;
  std::size_t points_ = 0;
  history::Added totals_;
  bool left_out_ = false;
};

// Imports a table of CSV, one run at a time.
Result<void> import_csv(const Job& job, const std::string& path, const TrendImportOptions& options,
                        Importer& importer) {
  WEIR_TRY(std::string text, job.files().read(path, k_largest_series));
  if (auto utf8 = text::decoded(text)) text = std::move(*utf8);
  const auto& machine = options.facts.machine;
  WEIR_TRY(const history::CsvTable table,
           history::CsvTable::parse(text, options.facts.project,
                                    machine ? history::stored_name(*machine) : std::string())
               .map_error(with_prefix(path)));
  for (const std::string& warning : table.warnings()) {
    print_error(job.world, {Code::data, fmt::format("{}: {}", path, warning)});
  }
  for (std::size_t i = 0; i < table.runs(); ++i) {
    history::Run run = table.run(i);
    if (options.facts.branch) run.facts.branch = history::stored_name(*options.facts.branch);
    WEIR_CHECK(importer.add(std::move(run)));
  }
  return importer.flush();
}

// Imports the lines of `weir trend export`.
Result<void> import_lines(const std::string& path, const sys::Files& files, Importer& importer) {
  WEIR_TRY(std::string text, files.read(path, k_largest_series));
  if (auto utf8 = text::decoded(text)) text = std::move(*utf8);
  const auto add = [&](auto value) { return importer.add(std::move(value)); };
  auto result = history::read_lines(text, {add, add, add});
  // Lines before a wrong one are imported.
  WEIR_CHECK(importer.flush());
  return result.map_error(with_prefix(path));
}

// Checks the options against each other, and parses --time.
Result<void> check_options(TrendImportOptions& options) {
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

// Imports runs, folders, tables and exported lines into the store of a history.
Result<Answer> import_history(const Job& job, const TrendImportOptions& given_options) {
  TrendImportOptions options = given_options;
  WEIR_CHECK(check_options(options));
  WEIR_TRY(const auto store, open_history(job, options.store, /*create=*/true));
  Importer importer(job, *store, options);
  for (const std::string& run : options.runs) {
    auto part = read_trend_part(job, run, options.facts);
    if (!part && options.runs.size() == 1) return tl::unexpected(std::move(part).error());
    if (!part) {
      importer.warn(fmt::format("{}: left out: {}", run, part.error().message));
      continue;
    }
    WEIR_CHECK(importer.import_part(*part));
  }
  if (options.from_dir) {
    WEIR_CHECK(read_trend_parts(
        job, {*options.from_dir, options.config}, options.facts,
        [&](const TrendPart& part) { return importer.import_part(part); },
        [&](const std::string& line) { importer.warn(line); }));
  }
  for (const std::string& path : options.csv) WEIR_CHECK(import_csv(job, path, options, importer));
  for (const std::string& path : options.json_lines) {
    WEIR_CHECK(import_lines(path, job.files(), importer));
  }
  return Answer{text::printable(importer.summary()), "",
                importer.left_out() ? ExitCode::unmeasured : ExitCode::pass};
}

}  // namespace weir::flow
