// Reads runs, series, verdicts and acknowledgements from a store.
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/history/database.hpp"

namespace weir::history {

namespace {

template <class Value>
using ById = std::unordered_map<std::int64_t, Value>;

bool matches(const Filter& filter, const std::string& project,
             const std::optional<std::string>& branch, double time) {
  return (!filter.project || *filter.project == project) &&
         (!filter.branch || branch == filter.branch) && (!filter.since || time >= *filter.since) &&
         (!filter.until || time <= *filter.until);
}

// The names that match a filter, by the ids that the store gave them.
struct NamesById {
  ById<std::string> projects, cells;
  ById<Metric> metrics;
  ById<Place> places;
};

// Reads all names; those of cells and metrics that the filter leaves out are missing.
Result<NamesById> read_names(Database& database, const Filter& filter) {
  NamesById names;
  const auto read = [&](Statement select, auto& into, const std::vector<std::string>& globs) {
    return database.read(select, {}, [&](const Row& row) {
      if (text::matches_any(globs, row.text(1))) row.into(columns(into[row.integer(0)]), 1);
    });
  };
  WEIR_CHECK(read("SELECT id, name FROM weir_project", names.projects, {}));
  WEIR_CHECK(read("SELECT id, name FROM weir_cell", names.cells, filter.cells));
  WEIR_CHECK(
      read("SELECT id, name, kind, unit, better FROM weir_metric", names.metrics, filter.metrics));
  WEIR_CHECK(
      read("SELECT id, device_class, device_name, machine_class, machine_name, engine_build "
           "FROM weir_place",
           names.places, {}));
  return names;
}

struct NumberedRun {
  std::int64_t id = 0;
  RunFacts facts;
};

// Reads the runs that match, sorted by project, time and id.
Result<std::vector<NumberedRun>> read_runs(Database& database, const Filter& filter,
                                           const NamesById& names) {
  std::vector<NumberedRun> runs;
  // Runs of one project, or of all: there is an index by project and time.
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  if (filter.project) {
    const auto project = std::ranges::find_if(
        names.projects, [&](const auto& entry) { return entry.second == filter.project; });
    if (project == names.projects.end()) return runs;
    first = last = project->first;
  }
  WEIR_CHECK(database.read(
      "SELECT id, project, name, source, commit_name, branch, commit_time, dirty, time, machine, "
      "weir_version FROM weir_run WHERE project BETWEEN $1 AND $2",
      {first, last}, [&](const Row& row) {
        const std::string* project = look_up(names.projects, row.integer(1));
        if (project == nullptr) return;
        NumberedRun run{row.integer(0), {}};
        run.facts.project = *project;
        row.into(columns(run.facts), 2);
        if (matches(filter, *project, run.facts.branch, run.facts.time) &&
            text::matches_any(filter.machines, run.facts.machine)) {
          runs.push_back(std::move(run));
        }
      }));
  std::ranges::sort(runs, {}, [](const NumberedRun& run) {
    return std::tie(run.facts.project, run.facts.time, run.facts.id);
  });
  return runs;
}

// Reads the numbers of a point: columns nature, value, exact and samples from `column` on.
Result<SeriesPoint> read_numbers(const Row& row, int column) {
  SeriesPoint numbers;
  const std::int64_t nature = row.integer(column);
  if (nature == 0) numbers.nature = profile::Nature::exact;
  if (nature == 1) numbers.nature = profile::Nature::nearly_exact;
  numbers.value = row.real(column + 1);
  if (!row.null(column + 2)) {
    numbers.exact = Rational::parse(row.text(column + 2));
    if (!numbers.exact) {
      return fail(Code::data, "no exact number: \"{}\"", text::printable(row.text(column + 2)));
    }
  }
  if (row.null(column + 3)) return numbers;
  for (const std::string& word : text::split(row.text(column + 3), ' ')) {
    const auto value = text::to_double(word);
    if (!value) return fail(Code::data, "a list of samples that is none");
    numbers.samples.push_back(*value);
  }
  return numbers;
}

// Returns the result of `query`, which sees the store as it is at one moment.
template <class Query>
auto read_snapshot(Database& database, const Filter& filter, const Query& query)
    -> decltype(query(NamesById())) {
  Transaction transaction(database);
  WEIR_CHECK(transaction.begin(Database::Access::read));
  WEIR_TRY(const NamesById names, read_names(database, filter));
  auto answer = query(names);
  if (answer) WEIR_CHECK(transaction.commit());
  return answer;
}

// Adds the series of one cell to `history`, sorted by project, metric and machine.
Result<void> add_series(Database& database, const NamesById& names, std::int64_t cell,
                        const std::string& name, const ById<std::uint32_t>& runs,
                        ById<std::uint32_t>& places, History& history) {
  using Key = std::tuple<std::string_view, const Metric*, std::string_view>;
  const auto before = [](const Key& a, const Key& b) {
    return std::tie(std::get<0>(a), *std::get<1>(a), std::get<2>(a)) <
           std::tie(std::get<0>(b), *std::get<1>(b), std::get<2>(b));
  };
  std::map<Key, Series, decltype(before)> series(before);
  WEIR_CHECK(database.read(
      "SELECT metric, run, place, nature, value, exact, samples FROM weir_point WHERE cell = $1",
      {cell}, [&](const Row& row) -> Result<void> {
        const Metric* metric = look_up(names.metrics, row.integer(0));
        const std::uint32_t* run = look_up(runs, row.integer(1));
        const Place* place = look_up(names.places, row.integer(2));
        if (metric == nullptr || run == nullptr || place == nullptr) return {};
        const RunFacts& facts = history.runs[*run];
        Series& entry = series[{facts.project, metric, facts.machine}];
        if (entry.points.empty()) entry = {facts.project, name, *metric, facts.machine, {}};
        WEIR_TRY(SeriesPoint point, read_numbers(row, 3));
        const auto [known_place, is_new] =
            places.try_emplace(row.integer(2), static_cast<std::uint32_t>(history.places.size()));
        if (is_new) history.places.push_back(*place);
        point.run = *run;
        point.place = known_place->second;
        entry.points.push_back(std::move(point));
        return {};
      }));
  for (auto& [key, entry] : series) {
    std::ranges::sort(entry.points, {}, &SeriesPoint::run);
    history.series.push_back(std::move(entry));
  }
  return {};
}

// A range of cell ids, both ends included. Points are stored by cell, so that a range is read
// alone.
struct IdRange {
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};
constexpr std::size_t k_most_cell_queries = 64;  // more are slower than one query for all

// The ranges to query: one for each cell that the filter names, or one for all.
std::vector<IdRange> cell_ranges(const NamesById& names, const Filter& filter) {
  if (filter.cells.empty() || names.cells.size() > k_most_cell_queries) return {IdRange{}};
  std::vector<IdRange> cells;
  for (const auto& [id, name] : names.cells) cells.push_back({id, id});
  return cells;
}

// Hands each run to `take`, with its points that match. A run without any is left out if the filter
// names cells or metrics.
Result<void> each_run(Database& database, const Filter& filter, const NamesById& names,
                      const std::function<Result<void>(Run)>& take) {
  WEIR_TRY(const std::vector<NumberedRun> runs, read_runs(database, filter, names));
  for (const NumberedRun& numbered : runs) {
    Run run{numbered.facts, {}};
    WEIR_CHECK(database.read(
        "SELECT cell, metric, place, source, nature, value, exact, samples FROM weir_point "
        "WHERE run = $1",
        {numbered.id}, [&](const Row& row) -> Result<void> {
          const std::string* cell = look_up(names.cells, row.integer(0));
          const Metric* metric = look_up(names.metrics, row.integer(1));
          const Place* place = look_up(names.places, row.integer(2));
          if (cell == nullptr || metric == nullptr || place == nullptr) return {};
          WEIR_TRY(SeriesPoint numbers, read_numbers(row, 4));
          run.points.push_back({*cell, *metric, numbers.nature, std::string(row.text(3)),
                                numbers.value, numbers.exact, std::move(numbers.samples), *place});
          return {};
        }));
    const bool is_partial = !filter.cells.empty() || !filter.metrics.empty();
    if (run.points.empty() && is_partial) continue;
    std::ranges::sort(run.points, {},
                      [](const Point& point) { return std::tie(point.cell, point.metric); });
    WEIR_CHECK(take(std::move(run)));
  }
  return {};
}

struct NumberedVerdict {
  std::int64_t id = 0;
  StoredVerdict verdict;
};

// Reads the verdicts that match, sorted. Their texts are large: without them, all() reads each one
// when it is needed.
Result<std::vector<NumberedVerdict>> read_verdicts(Database& database, const Filter& filter,
                                                   const NamesById& names, bool with_texts) {
  std::vector<NumberedVerdict> verdicts;
  WEIR_CHECK(
      database.read("SELECT project, id, name, run, commit_name, branch, time, kept_at, outcome, "
                    "CASE WHEN $1 = 1 THEN content ELSE '' END FROM weir_verdict",
                    {with_texts}, [&](const Row& row) {
                      const std::string* project = look_up(names.projects, row.integer(0));
                      if (project == nullptr) return;
                      NumberedVerdict numbered{row.integer(1), {}};
                      StoredVerdict& verdict = numbered.verdict;
                      verdict.project = *project;
                      row.into(columns(verdict), 2);
                      if (matches(filter, *project, verdict.branch, verdict.time)) {
                        verdicts.push_back(std::move(numbered));
                      }
                    }));
  std::ranges::sort(verdicts, {}, [](const NumberedVerdict& numbered) {
    const StoredVerdict& verdict = numbered.verdict;
    return std::tie(verdict.project, verdict.time, verdict.kept_at, verdict.id, verdict.run);
  });
  return verdicts;
}

// Reads the acknowledgements that match, sorted.
Result<std::vector<Acknowledgement>> read_acknowledgements(Database& database, const Filter& filter,
                                                           const NamesById& names) {
  std::vector<Acknowledgement> all;
  WEIR_CHECK(
      database.read("SELECT project, cell, metric, machine, kind, commit_name, time, reason, who, "
                    "at FROM weir_acknowledgement",
                    {}, [&](const Row& row) {
                      const std::string* project = look_up(names.projects, row.integer(0));
                      if (project == nullptr || filter.project.value_or(*project) != *project) {
                        return;
                      }
                      Acknowledgement entry;
                      entry.project = *project;
                      row.into(columns(entry), 1);
                      if (text::matches_any(filter.cells, entry.cell) &&
                          text::matches_any(filter.metrics, entry.metric) &&
                          text::matches_any(filter.machines, entry.machine)) {
                        all.push_back(std::move(entry));
                      }
                    }));
  std::ranges::sort(all, {}, [](const Acknowledgement& entry) {
    return std::tie(entry.project, entry.cell, entry.metric, entry.machine, entry.at, entry.kind,
                    entry.commit, entry.time, entry.reason, entry.who);
  });
  return all;
}

}  // namespace

// Reads all series that match, with their runs and places.
Result<History> Store::history(const Filter& filter) {
  return read_snapshot(*database_, filter, [&](const NamesById& names) -> Result<History> {
    WEIR_TRY(std::vector<NumberedRun> runs, read_runs(*database_, filter, names));
    History history;
    ById<std::uint32_t> run_places, place_places;
    for (NumberedRun& run : runs) {
      run_places.emplace(run.id, static_cast<std::uint32_t>(history.runs.size()));
      history.runs.push_back(std::move(run.facts));
    }
    std::map<std::string_view, std::int64_t> cells;  // by name
    for (const auto& [id, name] : names.cells) cells.emplace(name, id);
    for (const auto& [name, id] : cells) {
      WEIR_CHECK(
          add_series(*database_, names, id, std::string(name), run_places, place_places, history));
    }
    std::ranges::stable_sort(history.series, {}, &Series::project);
    return history;
  });
}

Result<std::vector<std::string>> Store::cells(const Filter& filter) {
  std::vector<std::string> names;
  WEIR_CHECK(database_->read("SELECT name FROM weir_cell", {}, [&](const Row& row) {
    if (text::matches_any(filter.cells, row.text(0))) names.emplace_back(row.text(0));
  }));
  std::ranges::sort(names);
  return names;
}

// Counts the points of each series that matches, with the times of the first and the last.
Result<std::vector<SeriesSummary>> Store::summaries(const Filter& filter) {
  using Summaries = std::vector<SeriesSummary>;
  return read_snapshot(*database_, filter, [&](const NamesById& names) -> Result<Summaries> {
    const std::string branch = filter.branch.value_or("");
    Summaries all;
    const auto take = [&](const Row& row) {
      const std::string* project = look_up(names.projects, row.integer(0));
      const std::string* cell = look_up(names.cells, row.integer(1));
      const Metric* metric = look_up(names.metrics, row.integer(2));
      if (project == nullptr || cell == nullptr || metric == nullptr ||
          !text::matches_any(filter.machines, row.text(3)) ||
          (filter.project && *filter.project != *project)) {
        return;
      }
      all.push_back({*project, *cell, *metric, std::string(row.text(3)), row.integer(4),
                     row.real(5), row.real(6)});
    };
    for (const IdRange& cells : cell_ranges(names, filter)) {
      WEIR_CHECK(database_->read(
          "SELECT r.project, p.cell, p.metric, r.machine, COUNT(*), MIN(r.time), MAX(r.time) "
          "FROM weir_point p CROSS JOIN weir_run r WHERE r.id = p.run "
          "AND p.cell BETWEEN $5 AND $6 "
          "AND r.time >= $1 AND r.time <= $2 AND ($3 = 0 OR r.branch = $4) "
          "GROUP BY r.project, p.cell, p.metric, r.machine",
          {filter.since.value_or(-k_any_time), filter.until.value_or(k_any_time),
           filter.branch.has_value(), branch, cells.first, cells.last},
          take));
    }
    std::ranges::sort(all, {}, [](const SeriesSummary& summary) {
      return std::tie(summary.project, summary.cell, summary.metric, summary.machine);
    });
    return all;
  });
}

Result<std::vector<StoredVerdict>> Store::verdicts(const Filter& filter) {
  std::vector<StoredVerdict> verdicts;
  WEIR_CHECK(read_snapshot(*database_, filter, [&](const NamesById& names) {
    return read_verdicts(*database_, filter, names, /*with_texts=*/true).map([&](auto numbered) {
      for (NumberedVerdict& entry : numbered) verdicts.push_back(std::move(entry.verdict));
    });
  }));
  return verdicts;
}

Result<std::vector<Acknowledgement>> Store::acknowledgements(const Filter& filter) {
  return read_snapshot(*database_, filter, [&](const NamesById& names) {
    return read_acknowledgements(*database_, filter, names);
  });
}

// Hands out runs, verdicts and acknowledgements one at a time, so that a store of any size fits
// into memory.
Result<void> Store::all(const Filter& filter, const EntryHandlers& take) {
  return read_snapshot(*database_, filter, [&](const NamesById& names) -> Result<void> {
    if (take.run) WEIR_CHECK(each_run(*database_, filter, names, take.run));
    if (take.verdict) {
      WEIR_TRY(std::vector<NumberedVerdict> verdicts,
               read_verdicts(*database_, filter, names, /*with_texts=*/false));
      for (NumberedVerdict& entry : verdicts) {
        WEIR_CHECK(database_->read("SELECT content FROM weir_verdict WHERE id = $1", {entry.id},
                                   [&](const Row& row) { entry.verdict.text = row.text(0); }));
        WEIR_CHECK(take.verdict(std::move(entry.verdict)));
        entry = {};  // its text is not kept in memory
      }
    }
    if (take.acknowledgement) {
      WEIR_TRY(const auto all, read_acknowledgements(*database_, filter, names));
      for (const Acknowledgement& entry : all) WEIR_CHECK(take.acknowledgement(entry));
    }
    return {};
  });
}

}  // namespace weir::history
