// weir trend import: runs, verdicts, baselines in git, foreign series and exports into a history.
#include <algorithm>

#include "gate/app/trend.hpp"
#include "gate/app/trend_sources.hpp"
#include "gate/base/text.hpp"
#include "gate/history/csv.hpp"
#include "gate/history/history.hpp"
#include "gate/history/json_lines.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {
namespace {

constexpr std::uint64_t k_largest_series = std::uint64_t{2} << 30;
// Small runs are kept together, for each transaction waits for the disk; none is ever cut in two.
constexpr std::size_t k_points_at_once = 20'000, k_runs_at_once = 2'000;

struct ImportOptions {
  StoreOptions store;
  TrendFacts facts;
  std::optional<std::string> time;
  std::vector<std::string> runs, csv, json_lines;
  std::optional<std::string> from_dir;
  std::string config;
  bool project_given = false, each = false;
  std::size_t batch = k_runs_at_once;  // runs in one transaction, at most
};

std::string so_many(std::size_t number, std::string_view one) {
  return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
}

// Keeps what is handed in, and says so when it is on the disk.
class Keeper {
 public:
  Keeper(history::Store& store, bool each, std::size_t batch)
      : store_(store), each_(each), batch_(batch) {}

  Result<void> keep(const TrendPart& part) {
    for (const std::string& warning : part.warnings) warn(warning);
    WEIR_TRY(const history::Added added, add(part.batch));
    std::string words = added.points > 0 || added.points_known == 0
                            ? so_many(added.points, "point") + " kept"
                            : std::string("known already");
    if (added.points > 0 && added.points_known > 0) {
      words += fmt::format(", {} known", added.points_known);
    }
    if (added.verdicts > 0) words += ", a verdict";
    say(fmt::format("{}: {}\n", part.from, words));
    return {};
  }

  // Runs and others of a file with many.
  Result<void> put(history::Run run) {
    points_ += run.points.size();
    waiting_.runs.push_back(std::move(run));
    return points_ >= k_points_at_once || waiting_.runs.size() >= batch_ ? flush() : Result<void>{};
  }
  Result<void> put(history::StoredVerdict verdict) {
    waiting_.verdicts.push_back(std::move(verdict));
    return waiting_.verdicts.size() >= 100 ? flush() : Result<void>{};
  }
  Result<void> put(history::Acknowledgement one) {
    waiting_.acknowledgements.push_back(std::move(one));
    return waiting_.acknowledgements.size() >= k_runs_at_once ? flush() : Result<void>{};
  }
  Result<void> put(history::Look look) {
    waiting_.looks.push_back(std::move(look));
    return waiting_.looks.size() >= k_runs_at_once ? flush() : Result<void>{};
  }
  Result<void> flush() {
    WEIR_TRY(const history::Added added, add(waiting_));
    (void)added;
    waiting_ = {};
    points_ = 0;
    return {};
  }

  void warn(const std::string& line) {
    print_error({Code::data, text::printable(line)});
    left_out_ = true;
  }

  [[nodiscard]] bool left_out() const { return left_out_; }
  [[nodiscard]] std::string words() const {
    std::string words = fmt::format("{}: {} and {} are new", store_.name(),
                                    so_many(all_.runs, "run"), so_many(all_.points, "point"));
    if (all_.verdicts > 0) words += fmt::format(", {}", so_many(all_.verdicts, "verdict"));
    if (all_.runs_known > 0) words += fmt::format("; {} known", so_many(all_.runs_known, "run"));
    words += "\n";
    if (all_.points_differ > 0) {
      words += fmt::format("{} of them {} another number than is kept, which stays:\n",
                           so_many(all_.points_differ, "point"),
                           all_.points_differ == 1 ? "has" : "have");
      for (const std::string& one : all_.differences) words += "  " + one + "\n";
    }
    return words;
  }

 private:
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
      say(kept);
    }
    return added;
  }

  history::Store& store_;
  bool each_;
  std::size_t batch_;
  history::Batch waiting_;
  std::size_t points_ = 0;
  history::Added all_;
  bool left_out_ = false;
};

Result<void> import_csv(const std::string& path, const ImportOptions& options,
                        const sys::Files& files, Keeper& keeper) {
  WEIR_TRY(const std::string text, files.read(path, k_largest_series));
  const auto in_file = [&](Error error) { return with_context(path, std::move(error)); };
  WEIR_TRY(const history::CsvTable table,
           history::CsvTable::parse(
               text, options.facts.project,
               options.facts.machine ? history::kept_name(*options.facts.machine) : std::string())
               .map_error(in_file));
  for (const std::string& warning : table.warnings()) {
    print_error({Code::data, fmt::format("{}: {}", path, warning)});
  }
  for (std::size_t i = 0; i < table.runs(); ++i) {
    history::Run run = table.run(i);
    if (options.facts.branch) run.facts.branch = history::kept_name(*options.facts.branch);
    WEIR_CHECK(keeper.put(std::move(run)));
  }
  return keeper.flush();
}

Result<void> import_lines(const std::string& path, const sys::Files& files, Keeper& keeper) {
  WEIR_TRY(const std::string text, files.read(path, k_largest_series));
  const auto put = [&](auto value) { return keeper.put(std::move(value)); };
  auto done = history::read_lines(text, {put, put, put, put});
  // What stood before a line that is wrong is kept.
  WEIR_CHECK(keeper.flush());
  return done.map_error([&](Error error) { return with_context(path, std::move(error)); });
}

Result<void> check_wanted(ImportOptions& options) {
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
  options.facts.project = history::kept_name(options.facts.project);
  return {};
}

Result<ExitCode> import_all(ImportOptions options) {
  WEIR_CHECK(check_wanted(options));
  sys::RealFiles files;
  WEIR_TRY(const auto store, open_history(options.store, true));
  Keeper keeper(*store, options.each, options.batch);
  for (const std::string& run : options.runs) {
    auto part = trend_part_of(run, options.facts, files);
    if (!part && options.runs.size() == 1) return tl::unexpected(std::move(part).error());
    if (!part) {
      keeper.warn(fmt::format("{}: left out: {}", run, part.error().message));
      continue;
    }
    WEIR_CHECK(keeper.keep(*part));
  }
  if (options.from_dir) {
    WEIR_CHECK(trend_parts_below(
        {*options.from_dir, options.config}, options.facts, files,
        [&](const TrendPart& part) { return keeper.keep(part); },
        [&](const std::string& line) { keeper.warn(line); }));
  }
  for (const std::string& path : options.csv) {
    WEIR_CHECK(import_csv(path, options, files, keeper));
  }
  for (const std::string& path : options.json_lines) {
    WEIR_CHECK(import_lines(path, files, keeper));
  }
  say(keeper.words());
  return keeper.left_out() ? ExitCode::unmeasured : ExitCode::pass;
}

}  // namespace

void add_trend_import(CLI::App& trend) {
  CLI::App* verb = trend.add_subcommand("import", "Keep runs in a history");
  auto options = std::make_shared<ImportOptions>();
  verb->add_option("RUN", options->runs, "Folders of runs, their run.jsonl, or files of verdicts");
  verb->add_option("--from-dir", options->from_dir,
                   "All runs and verdicts below DIR, and the baselines that git\n"
                   "knows there, commit by commit")
      ->type_name("DIR");
  verb->add_option("--csv", options->csv, "Foreign series: cell,metric,commit,time,value,machine")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb->add_option("--jsonl", options->json_lines, "What weir trend export wrote")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_store_options(*verb, options->store);
  auto* project = verb->add_option("--project", options->facts.project, "Whose runs they are")
                      ->type_name("NAME")
                      ->capture_default_str();
  verb->add_option("--machine", options->facts.machine,
                   "The machine's name in its series (default: processor, cores, memory)")
      ->type_name("NAME");
  verb->add_option("--commit", options->facts.commit,
                   "The commit that was measured (default: as the run says)")
      ->type_name("SHA");
  verb->add_option("--branch", options->facts.branch, "Its branch (default: as the run says)")
      ->type_name("NAME");
  verb->add_option("--time", options->time, "When it was measured (default: as the run says)")
      ->type_name("TIME");
  verb->add_option("-c,--config", options->config,
                   "Of --from-dir: whose private names baselines may hold (default:\n"
                   "weir.yaml in DIR or above)")
      ->type_name("FILE");
  verb->add_flag("--each", options->each, "Say the id of each run when it is on the disk");
  verb->add_option("--batch", options->batch,
                   "Runs of --csv and --jsonl kept by one write to the disk, at most")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, k_runs_at_once))
      ->capture_default_str();
  verb->footer(
      "Examples:\n"
      "  weir trend import weir-out/*                 what weir run and weir gate measured\n"
      "  weir trend import --from-dir baselines       from git alone, without any server\n"
      "  weir trend import --csv old-numbers.csv --project engine\n"
      "  WEIR_DB=postgres://weir:…@db/weir weir trend import weir-out/20261120-0930\n"
      "Importing again changes nothing. Exit codes: 0 all is kept, 2 usage, 3 something was left "
      "out.");
  set_action(*verb, [options, project] {
    options->project_given = project->count() > 0;
    return import_all(*options);
  });
}

}  // namespace weir::app
