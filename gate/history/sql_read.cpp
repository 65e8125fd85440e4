// Reads runs, series, verdicts and acknowledgements from a store.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/history/database.hpp"

namespace weir::history {

namespace {

template <class Value>
using ById = std::unordered_map<std::int64_t, Value>;

constexpr std::size_t k_max_names_per_query = 5'000;  // by one call of cells()

bool matches(const Filter& filter, const std::string& project,
             const std::optional<std::string>& branch, double time) {
  return (!filter.project || *filter.project == project) &&
         (!filter.branch || branch == filter.branch) && (!filter.since || time >= *filter.since) &&
         (!filter.until || time <= *filter.until);
}

// The memory that a read may take, about.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) : max_bytes_(bytes) {}
  [[nodiscard]] Result<void> take(std::size_t bytes) {
    used_ += bytes;
    if (used_ <= max_bytes_) return {};
    return fail(Code::usage,
                "more than {} MiB match: ask for fewer cells, or for a shorter time (since, until)",
                max_bytes_ >> 20);
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::size_t max_bytes_, used_ = 0;
};

constexpr std::size_t k_entry_bytes = 96;  // of an entry of a container, beyond its texts

std::size_t bytes_of(const std::string& name) { return k_entry_bytes + name.size(); }
std::size_t bytes_of(const Metric& metric) { return sizeof(Metric) + bytes_of(metric.name); }
std::size_t bytes_of(const Place& place) {
  return sizeof(Place) + k_entry_bytes + place.device_class.size() + place.device_name.size() +
         place.machine_class.size() + place.machine_name.size() + place.engine_build.size();
}
std::size_t bytes_of(const RunFacts& run) {
  return sizeof(RunFacts) + k_entry_bytes + run.project.size() + run.id.size() +
         run.commit.value_or("").size() + run.branch.value_or("").size() + run.machine.size() +
         run.weir_version.size();
}
std::size_t bytes_of(const SeriesPoint& point) {
  constexpr std::size_t k_index = 32;  // of the point in what is made of a history
  return sizeof(SeriesPoint) + k_index +
         (point.samples.empty() ? 0 : 16 + sizeof(double) * point.samples.size());
}

// Names by the ids that the store gave them. Each is read when a row refers to it, so that names
// which nothing refers to cost nothing. Pointers stay valid.
class Names {
 public:
  Names(Database& database, const Filter& filter, MemoryBudget& memory)
      : database_(database), filter_(filter), memory_(memory) {}

  // Null for a name that the filter leaves out.
  Result<const std::string*> project(std::int64_t id) {
    return find(
        projects_, "SELECT name FROM weir_project WHERE id = $1", id,
        [&](const std::string& name) { return !filter_.project || *filter_.project == name; });
  }
  Result<const std::string*> cell(std::int64_t id) {
    return find(cells_, "SELECT name FROM weir_cell WHERE id = $1", id,
                [&](const std::string& name) {
                  if (!filter_.exact_cells.empty()) return holds(filter_.exact_cells, name);
                  return text::matches_any(filter_.cells, name);
                });
  }
  Result<const Metric*> metric(std::int64_t id) {
    return find(
        metrics_, "SELECT name, kind, unit, better FROM weir_metric WHERE id = $1", id,
        [&](const Metric& metric) { return text::matches_any(filter_.metrics, metric.name); });
  }
  Result<const Place*> place(std::int64_t id) {
    return find(places_,
                "SELECT device_class, device_name, machine_class, machine_name, engine_build "
                "FROM weir_place WHERE id = $1",
                id, [](const Place&) { return true; });
  }
  [[nodiscard]] const Filter& filter() const { return filter_; }
  [[nodiscard]] MemoryBudget& memory() { return memory_; }

 private:
  template <class Value>
  using Cache = ById<std::optional<Value>>;  // nothing: left out

  template <class Value, class Accept>
  Result<const Value*> find(Cache<Value>& cache, Statement select, std::int64_t id,
                            const Accept& accept) {
    const auto [entry, is_new] = cache.try_emplace(id);
    std::optional<Value>& value = entry->second;
    if (is_new) {
      WEIR_CHECK(database_.read(select, {id},
                                [&](const Row& row) { row.into(columns(value.emplace())); }));
      if (value && !accept(*value)) value.reset();
      WEIR_CHECK(memory_.take(value ? bytes_of(*value) : k_entry_bytes));
    }
    return value ? &*value : nullptr;
  }

  Database& database_;
  const Filter& filter_;
  MemoryBudget& memory_;
  Cache<std::string> projects_, cells_;
  Cache<Metric> metrics_;
  Cache<Place> places_;
};

struct NumberedRun {
  std::int64_t id = 0;
  RunFacts facts;
};

Result<std::optional<std::int64_t>> find_project(Database& database, const std::string& name) {
  std::optional<std::int64_t> id;
  WEIR_CHECK(database.read("SELECT id FROM weir_project WHERE name = $1", {name},
                           [&](const Row& row) { id = row.integer(0); }));
  return id;
}

// Reads the runs that match the filter, without points, sorted by project, time and id. Fails if
// they need more memory than the filter allows.
Result<std::vector<NumberedRun>> read_runs(Database& database, Names& names) {
  const Filter& filter = names.filter();
  std::vector<NumberedRun> runs;
  // Runs of one project, or of all: there is an index by project and time.
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  if (filter.project) {
    WEIR_TRY(const auto project, find_project(database, *filter.project));
    if (!project) return runs;
    first = *project;
    last = first;
  }
  WEIR_CHECK(database.scan(
      "SELECT id, project, name, source, commit_name, branch, commit_time, dirty, time, machine, "
      "weir_version FROM weir_run WHERE project BETWEEN $1 AND $2 AND time BETWEEN $3 AND $4",
      {first, last, filter.since.value_or(-k_any_time), filter.until.value_or(k_any_time)},
      [&](const Row& row) -> Result<void> {
        WEIR_TRY(const std::string* project, names.project(row.integer(1)));
        if (project == nullptr) return {};
        NumberedRun run{row.integer(0), {}};
        run.facts.project = *project;
        row.into(columns(run.facts), 2);
        if (!matches(filter, *project, run.facts.branch, run.facts.time) ||
            !text::matches_any(filter.machines, run.facts.machine)) {
          return {};
        }
        WEIR_CHECK(names.memory().take(bytes_of(run.facts)));
        runs.push_back(std::move(run));
        return {};
      }));
  std::ranges::sort(runs, {}, [](const NumberedRun& run) {
    return std::tie(run.facts.project, run.facts.time, run.facts.id);
  });
  return runs;
}

// Reads the numbers of a point: columns nature, value, exact and samples from `column` on. Nature 0
// is exact, 1 nearly exact, others timed.
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
    -> decltype(query(std::declval<Names&>())) {
  Transaction transaction(database);
  WEIR_CHECK(transaction.begin(Database::Access::read));
  MemoryBudget memory(filter.max_bytes);
  Names names(database, filter, memory);
  auto answer = query(names);
  if (answer) WEIR_CHECK(transaction.commit());
  return answer;
}

// Sorts points into the series of a history. Its runs must be there already.
class SeriesBuilder {
 public:
  SeriesBuilder(Names& names, History& history) : names_(names), history_(history) {}

  // Adds a point of a run, unless the filter leaves it out. Its columns: cell, metric, place,
  // nature, value, exact, samples, from `column` on.
  Result<void> add(std::uint32_t run, const Row& row, int column) {
    WEIR_TRY(const std::string* cell, names_.cell(row.integer(column)));
    if (cell == nullptr) return {};
    WEIR_TRY(const Metric* metric, names_.metric(row.integer(column + 1)));
    if (metric == nullptr) return {};
    const std::int64_t place_id = row.integer(column + 2);
    WEIR_TRY(const Place* place, names_.place(place_id));
    if (place == nullptr) return {};
    WEIR_TRY(SeriesPoint point, read_numbers(row, column + 3));
    WEIR_CHECK(names_.memory().take(bytes_of(point)));
    const RunFacts& facts = history_.runs[run];
    const auto [entry, is_new_series] =
        series_.try_emplace(Key{facts.project, *cell, metric, facts.machine});
    if (is_new_series) {
      entry->second = {facts.project, *cell, *metric, facts.machine, {}};
      WEIR_CHECK(names_.memory().take(sizeof(Series) + sizeof(Key) + bytes_of(facts.project) +
                                      bytes_of(*cell) + bytes_of(*metric) +
                                      2 * bytes_of(facts.machine)));
    }
    const auto [numbered_place, is_new_place] =
        places_.try_emplace(place_id, static_cast<std::uint32_t>(history_.places.size()));
    if (is_new_place) history_.places.push_back(*place);
    point.run = run;
    point.place = numbered_place->second;
    entry->second.points.push_back(std::move(point));
    return {};
  }

  // Moves the series into the history, by project, cell, metric and machine.
  void finish() {
    for (auto& [key, series] : series_) history_.series.push_back(std::move(series));
    series_.clear();
  }

 private:
  struct Key {
    std::string project, cell;
    const Metric* metric;
    std::string machine;

    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.project, a.cell, *a.metric, a.machine) <
             std::tie(b.project, b.cell, *b.metric, b.machine);
    }
  };

  Names& names_;
  History& history_;
  std::map<Key, Series> series_;
  ById<std::uint32_t> places_;
};

using CellIds = std::map<std::string, std::int64_t>;

// Returns the ids of the cells that match the filter, by name. Counts their bytes against the
// memory budget.
Result<CellIds> find_cells(Database& database, const Filter& filter, MemoryBudget& memory) {
  CellIds cells;
  const auto add_cell = [&](const Row& row) -> Result<void> {
    if (filter.exact_cells.empty() && !text::matches_any(filter.cells, row.text(1))) return {};
    std::string name(row.text(1));
    WEIR_CHECK(memory.take(bytes_of(name)));
    cells.emplace(std::move(name), row.integer(0));
    return {};
  };
  if (filter.exact_cells.empty()) {
    WEIR_CHECK(database.scan("SELECT id, name FROM weir_cell", {}, add_cell));
  }
  for (const std::string& name : filter.exact_cells) {
    WEIR_CHECK(database.read("SELECT id, name FROM weir_cell WHERE name = $1", {name}, add_cell));
  }
  return cells;
}

// Passes each matching run to `handle`, with its points that match. Leaves out a run without any if
// the filter names cells or metrics.
Result<void> pass_runs(Database& database, Names& names,
                       const std::function<Result<void>(Run)>& handle) {
  const Filter& filter = names.filter();
  WEIR_TRY(const std::vector<NumberedRun> runs, read_runs(database, names));
  for (const NumberedRun& numbered : runs) {
    Run run{numbered.facts, {}};
    WEIR_CHECK(database.read(
        "SELECT cell, metric, place, source, nature, value, exact, samples FROM weir_point "
        "WHERE run = $1",
        {numbered.id}, [&](const Row& row) -> Result<void> {
          WEIR_TRY(const std::string* cell, names.cell(row.integer(0)));
          WEIR_TRY(const Metric* metric, names.metric(row.integer(1)));
          WEIR_TRY(const Place* place, names.place(row.integer(2)));
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
    WEIR_CHECK(handle(std::move(run)));
  }
  return {};
}

struct NumberedVerdict {
  std::int64_t id = 0;
  StoredVerdict verdict;
};

// Reads the verdicts that match, sorted. Their texts are large: `with_texts` is false where each is
// read when it is needed.
Result<std::vector<NumberedVerdict>> read_verdicts(Database& database, Names& names,
                                                   bool with_texts) {
  std::vector<NumberedVerdict> verdicts;
  WEIR_CHECK(
      database.scan("SELECT project, id, name, run, commit_name, branch, time, kept_at, outcome, "
                    "CASE WHEN $1 = 1 THEN content ELSE '' END FROM weir_verdict",
                    {with_texts}, [&](const Row& row) -> Result<void> {
                      WEIR_TRY(const std::string* project, names.project(row.integer(0)));
                      if (project == nullptr) return {};
                      NumberedVerdict numbered{row.integer(1), {}};
                      StoredVerdict& verdict = numbered.verdict;
                      verdict.project = *project;
                      row.into(columns(verdict), 2);
                      if (matches(names.filter(), *project, verdict.branch, verdict.time)) {
                        verdicts.push_back(std::move(numbered));
                      }
                      return {};
                    }));
  std::ranges::sort(verdicts, {}, [](const NumberedVerdict& numbered) {
    const StoredVerdict& verdict = numbered.verdict;
    return std::tie(verdict.project, verdict.time, verdict.kept_at, verdict.id, verdict.run);
  });
  return verdicts;
}

// Reads the acknowledgements that match, sorted. Fails if they need more memory than the filter
// allows.
Result<std::vector<Acknowledgement>> read_acknowledgements(Database& database, Names& names) {
  const Filter& filter = names.filter();
  std::vector<Acknowledgement> all;
  WEIR_CHECK(database.scan(
      "SELECT project, cell, metric, machine, kind, commit_name, time, reason, who, "
      "at FROM weir_acknowledgement",
      {}, [&](const Row& row) -> Result<void> {
        WEIR_TRY(const std::string* project, names.project(row.integer(0)));
        if (project == nullptr) return {};
        Acknowledgement entry;
        entry.project = *project;
        row.into(columns(entry), 1);
        if (!text::matches_any(filter.cells, entry.cell) ||
            !text::matches_any(filter.metrics, entry.metric) ||
            !text::matches_any(filter.machines, entry.machine)) {
          return {};
        }
        WEIR_CHECK(names.memory().take(sizeof entry + bytes_of(entry.cell) + entry.reason.size() +
                                       entry.metric.size() + entry.machine.size()));
        all.push_back(std::move(entry));
        return {};
      }));
  std::ranges::sort(all, {}, [](const Acknowledgement& entry) {
    return std::tie(entry.project, entry.cell, entry.metric, entry.machine, entry.acknowledged_at,
                    entry.kind, entry.commit, entry.time, entry.reason, entry.who);
  });
  return all;
}

}  // namespace

// Reads all series that match, with their runs and places. Points are in the order of runs.
Result<History> Store::history(const Filter& filter) {
  return read_snapshot(*database_, filter, [&](Names& names) -> Result<History> {
    WEIR_TRY(std::vector<NumberedRun> runs, read_runs(*database_, names));
    History history;
    ById<std::uint32_t> run_numbers;
    for (NumberedRun& run : runs) {
      run_numbers.emplace(run.id, static_cast<std::uint32_t>(history.runs.size()));
      history.runs.push_back(std::move(run.facts));
    }
    if (history.runs.empty()) return history;
    SeriesBuilder series(names, history);
    WEIR_TRY(const CellIds cells, find_cells(*database_, filter, names.memory()));
    for (const auto& [name, id] : cells) {
      WEIR_CHECK(
          database_->scan("SELECT run, cell, metric, place, nature, value, exact, "
                          "CASE WHEN $2 = 1 THEN samples END FROM weir_point WHERE cell = $1",
                          {id, filter.samples}, [&](const Row& row) -> Result<void> {
                            const std::uint32_t* run = look_up(run_numbers, row.integer(0));
                            return run == nullptr ? Result<void>{} : series.add(*run, row, 1);
                          }));
    }
    series.finish();
    for (Series& entry : history.series) std::ranges::sort(entry.points, {}, &SeriesPoint::run);
    return history;
  });
}

// Returns a page of sorted names of cells that match, from the name `from` on. Examines a limited
// number of names; `next_name` begins the next page.
Result<CellPage> Store::cells(const Filter& filter, const std::string& from,
                              std::size_t page_size) {
  CellPage page;
  std::size_t examined = 0;
  std::string last_examined;
  WEIR_CHECK(database_->read(
      "SELECT name FROM weir_cell WHERE name >= $1 ORDER BY name LIMIT $2",
      {from, static_cast<std::int64_t>(k_max_names_per_query)}, [&](const Row& row) {
        ++examined;
        last_examined = row.text(0);
        if (page.next_name || !text::matches_any(filter.cells, last_examined)) return;
        if (page.names.size() < page_size) {
          page.names.push_back(last_examined);
        } else {
          page.next_name = last_examined;
        }
      }));
  // With the query's limit reached, the next page begins with the last name that we examined.
  if (!page.next_name && examined == k_max_names_per_query) page.next_name = last_examined;
  if (page.next_name && !page.names.empty() && page.names.back() == *page.next_name)
    page.names.pop_back();
  return page;
}

// Counts the points of each series that matches, with the times of the first and the last.
Result<void> Store::each_summary(const Filter& filter,
                                 const std::function<Result<void>(SeriesSummary)>& take) {
  return read_snapshot(*database_, filter, [&](Names& names) -> Result<void> {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // ids of cells, both included
    if (filter.exact_cells.empty() && filter.cells.empty()) {
      ranges.emplace_back(std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max());
    } else {
      WEIR_TRY(const CellIds cells, find_cells(*database_, filter, names.memory()));
      for (const auto& [name, id] : cells) ranges.emplace_back(id, id);
    }
    // The series of one cell.
    std::map<std::tuple<const std::string*, const Metric*, std::string>, SeriesSummary> series;
    std::int64_t last_cell = 0;
    const auto hand_out = [&]() -> Result<void> {
      for (auto& [key, summary] : series) WEIR_CHECK(take(std::move(summary)));
      series.clear();
      return {};
    };
    const auto take_point = [&](const Row& row) -> Result<void> {
      if (row.integer(0) != last_cell) WEIR_CHECK(hand_out());
      last_cell = row.integer(0);
      WEIR_TRY(const std::string* cell, names.cell(row.integer(0)));
      WEIR_TRY(const Metric* metric, names.metric(row.integer(1)));
      WEIR_TRY(const std::string* project, names.project(row.integer(2)));
      if (cell == nullptr || metric == nullptr || project == nullptr ||
          !text::matches_any(filter.machines, row.text(3))) {
        return {};
      }
      const double time = row.real(4);
      const auto [entry, is_new] = series.try_emplace({project, metric, std::string(row.text(3))});
      SeriesSummary& summary = entry->second;
      if (is_new) {
        summary = {*project, *cell, *metric, std::string(row.text(3)), 0, time, time};
        WEIR_CHECK(names.memory().take(sizeof summary + bytes_of(*cell) + bytes_of(*project) +
                                       2 * bytes_of(summary.machine)));
      }
      ++summary.points;
      summary.first = std::min(summary.first, time);
      summary.last = std::max(summary.last, time);
      return {};
    };
    const std::string branch = filter.branch.value_or("");
    for (const auto& [first, last] : ranges) {
      WEIR_CHECK(database_->scan(
          "SELECT p.cell, p.metric, r.project, r.machine, r.time "
          "FROM weir_point p CROSS JOIN weir_run r WHERE r.id = p.run "
          "AND p.cell BETWEEN $5 AND $6 "
          "AND r.time >= $1 AND r.time <= $2 AND ($3 = 0 OR r.branch = $4) ORDER BY p.cell",
          {filter.since.value_or(-k_any_time), filter.until.value_or(k_any_time),
           filter.branch.has_value(), branch, first, last},
          take_point));
      WEIR_CHECK(hand_out());
    }
    return {};
  });
}

Result<std::vector<SeriesSummary>> Store::summaries(const Filter& filter) {
  std::vector<SeriesSummary> all;
  WEIR_CHECK(each_summary(filter, [&](SeriesSummary summary) -> Result<void> {
    all.push_back(std::move(summary));
    return {};
  }));
  std::ranges::sort(all, {}, [](const SeriesSummary& summary) {
    return std::tie(summary.project, summary.cell, summary.metric, summary.machine);
  });
  return all;
}

namespace {

constexpr std::int64_t k_entries_at_once = 32;
constexpr std::int64_t k_any_id = std::numeric_limits<std::int64_t>::max();

// The memory that all projects share. Each has an even part of what is left when its turn comes.
class Shares {
 public:
  Shares(std::size_t bytes, std::size_t projects) : left_(bytes), projects_(projects) {}

  // Goes on to the next project.
  void next() {
    share_ = left_ / std::max<std::size_t>(projects_, 1);
    if (projects_ > 0) --projects_;
  }
  // Returns false if the project's share is too small for so many more bytes.
  bool take(std::size_t bytes) {
    if (bytes > share_) return false;
    spend(bytes);
    return true;
  }
  // Takes bytes that are used already, even beyond the share.
  void spend(std::size_t bytes) {
    share_ -= std::min(bytes, share_);
    left_ -= std::min(bytes, left_);
  }

 private:
  std::size_t left_, projects_, share_ = 0;
};

struct ProjectCount {
  std::int64_t id = 0, entries = 0;
};

// Counts the entries of each project, those with few first: what they leave is the others'.
Result<std::vector<ProjectCount>> count_entries(Database& database, Statement select) {
  std::vector<ProjectCount> projects;
  WEIR_CHECK(database.scan(select, {}, [&](const Row& row) -> Result<void> {
    projects.push_back({row.integer(0), row.integer(1)});
    return {};
  }));
  std::ranges::sort(projects, {}, [](const ProjectCount& project) {
    return std::tie(project.entries, project.id);
  });
  return projects;
}

// Reads the newest runs of each project, with their points.
class NewestRuns {
 public:
  NewestRuns(Database& database, Names& names, NewestHistory& newest)
      : database_(database), names_(names), newest_(newest), series_(names, newest.history) {}

  Result<void> read(std::size_t max_bytes) {
    WEIR_TRY(const auto projects,
             count_entries(database_, "SELECT project, COUNT(*) FROM weir_run GROUP BY project"));
    Shares shares(max_bytes, projects.size());
    for (const ProjectCount& project : projects) {
      shares.next();
      WEIR_TRY(const std::size_t count, read_project(project.id, shares));
      newest_.runs_left_out += static_cast<std::size_t>(project.entries) - count;
    }
    series_.finish();
    sort_runs();
    return {};
  }

 private:
  // Returns how many of the project's runs there is room for.
  Result<std::size_t> read_project(std::int64_t project, Shares& shares) {
    std::size_t count = 0;
    double time = k_any_time;
    std::int64_t id = k_any_id;
    while (true) {
      std::vector<NumberedRun> runs;
      WEIR_CHECK(database_.read(
          "SELECT id, name, source, commit_name, branch, commit_time, dirty, time, machine, "
          "weir_version FROM weir_run WHERE project = $1 AND (time, id) < ($2, $3) "
          "ORDER BY time DESC, id DESC LIMIT $4",
          {project, time, id, k_entries_at_once}, [&](const Row& row) -> Result<void> {
            WEIR_TRY(const std::string* name, names_.project(project));
            if (name == nullptr) return {};
            NumberedRun& run = runs.emplace_back();
            run.id = row.integer(0);
            run.facts.project = *name;
            row.into(columns(run.facts), 1);
            return {};
          }));
      for (NumberedRun& run : runs) {
        time = run.facts.time;
        id = run.id;
        WEIR_TRY(const bool fits, read_run(std::move(run), shares));
        if (!fits) return count;
        ++count;
      }
      if (runs.size() < static_cast<std::size_t>(k_entries_at_once)) return count;
    }
  }

  // Returns false, and reads nothing, if there is no room for the run.
  Result<bool> read_run(NumberedRun run, Shares& shares) {
    std::size_t bytes = bytes_of(run.facts);
    WEIR_CHECK(
        database_.read("SELECT COUNT(*), COUNT(samples), COALESCE(SUM(LENGTH(samples) - "
                       "LENGTH(REPLACE(samples, ' ', '')) + 1), 0) FROM weir_point WHERE run = $1",
                       {run.id}, [&](const Row& row) {
                         SeriesPoint empty;
                         bytes += static_cast<std::size_t>(row.integer(0)) * bytes_of(empty) +
                                  static_cast<std::size_t>(row.integer(1)) * 16 +
                                  static_cast<std::size_t>(row.integer(2)) * sizeof(double);
                       }));
    if (!shares.take(bytes)) return false;
    const auto number = static_cast<std::uint32_t>(newest_.history.runs.size());
    newest_.history.runs.push_back(std::move(run.facts));
    const std::size_t used_before = names_.memory().used();
    WEIR_CHECK(
        database_.scan("SELECT cell, metric, place, nature, value, exact, samples "
                       "FROM weir_point WHERE run = $1",
                       {run.id}, [&](const Row& row) { return series_.add(number, row, 0); }));
    // The rest is names and series that nobody had before.
    const std::size_t used =
        bytes_of(newest_.history.runs.back()) + names_.memory().used() - used_before;
    shares.spend(used - std::min(used, bytes));
    return true;
  }

  // Puts the runs into the order of Store::history(), and the points into that of their runs.
  void sort_runs() {
    std::vector<RunFacts>& runs = newest_.history.runs;
    std::vector<std::uint32_t> order(runs.size()), number(runs.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, {}, [&](std::uint32_t run) {
      return std::tie(runs[run].project, runs[run].time, runs[run].id);
    });
    std::vector<RunFacts> sorted;
    sorted.reserve(runs.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      number[order[i]] = i;
      sorted.push_back(std::move(runs[order[i]]));
    }
    runs = std::move(sorted);
    for (Series& series : newest_.history.series) {
      for (SeriesPoint& point : series.points) point.run = number[point.run];
      std::ranges::sort(series.points, {}, &SeriesPoint::run);
    }
  }

  Database& database_;
  Names& names_;
  NewestHistory& newest_;
  SeriesBuilder series_;
};

// Reads the newest verdicts of a project, as many as its share of the memory takes. Returns their
// number.
Result<std::size_t> read_newest_verdicts(Database& database, Names& names, std::int64_t project,
                                         Shares& shares, NewestHistory& newest) {
  std::size_t verdict_count = 0;
  double last_time = k_any_time;
  std::int64_t last_id = k_any_id;
  while (true) {
    std::vector<NumberedVerdict> verdicts;
    WEIR_CHECK(database.read(
        "SELECT id, name, run, commit_name, branch, time, kept_at, outcome, '' FROM weir_verdict "
        "WHERE project = $1 AND (time, id) < ($2, $3) ORDER BY time DESC, id DESC LIMIT $4",
        {project, last_time, last_id, k_entries_at_once}, [&](const Row& row) -> Result<void> {
          WEIR_TRY(const std::string* name, names.project(project));
          if (name == nullptr) return {};
          NumberedVerdict& numbered = verdicts.emplace_back();
          numbered.id = row.integer(0);
          numbered.verdict.project = *name;
          row.into(columns(numbered.verdict), 1);
          return {};
        }));
    for (NumberedVerdict& numbered : verdicts) {
      last_time = numbered.verdict.time;
      last_id = numbered.id;
      std::size_t bytes = sizeof(StoredVerdict);
      WEIR_CHECK(database.read(
          "SELECT LENGTH(content) FROM weir_verdict WHERE id = $1", {numbered.id},
          [&](const Row& row) { bytes += static_cast<std::size_t>(row.integer(0)); }));
      if (!shares.take(bytes)) return verdict_count;
      WEIR_CHECK(database.read("SELECT content FROM weir_verdict WHERE id = $1", {numbered.id},
                               [&](const Row& row) { numbered.verdict.text = row.text(0); }));
      const std::size_t used = sizeof(StoredVerdict) + numbered.verdict.text.size();
      shares.spend(used - std::min(used, bytes));  // a character may be several bytes
      newest.verdicts.push_back(std::move(numbered.verdict));
      ++verdict_count;
    }
    if (verdicts.size() < static_cast<std::size_t>(k_entries_at_once)) return verdict_count;
  }
}

}  // namespace

// Reads the newest runs and verdicts within these sizes in bytes, and counts those that are left
// out. Each project gets its share of memory.
Result<NewestHistory> Store::newest(std::size_t max_bytes, std::size_t max_verdict_bytes) {
  return read_snapshot(*database_, {}, [&](Names& names) -> Result<NewestHistory> {
    NewestHistory newest;
    WEIR_CHECK(NewestRuns(*database_, names, newest).read(max_bytes));
    WEIR_TRY(
        const auto projects,
        count_entries(*database_, "SELECT project, COUNT(*) FROM weir_verdict GROUP BY project"));
    Shares shares(max_verdict_bytes, projects.size());
    for (const ProjectCount& project : projects) {
      shares.next();
      WEIR_TRY(const std::size_t count,
               read_newest_verdicts(*database_, names, project.id, shares, newest));
      newest.verdicts_left_out += static_cast<std::size_t>(project.entries) - count;
    }
    std::ranges::sort(newest.verdicts, {}, [](const StoredVerdict& verdict) {
      return std::tie(verdict.project, verdict.time, verdict.kept_at, verdict.id, verdict.run);
    });
    return newest;
  });
}

Result<std::vector<StoredVerdict>> Store::verdicts(const Filter& filter) {
  std::vector<StoredVerdict> verdicts;
  WEIR_CHECK(read_snapshot(*database_, filter, [&](Names& names) {
    return read_verdicts(*database_, names, /*with_texts=*/true).map([&](auto numbered) {
      for (NumberedVerdict& entry : numbered) verdicts.push_back(std::move(entry.verdict));
    });
  }));
  return verdicts;
}

Result<std::vector<Acknowledgement>> Store::acknowledgements(const Filter& filter) {
  return read_snapshot(*database_, filter,
                       [&](Names& names) { return read_acknowledgements(*database_, names); });
}

// Passes runs, verdicts and acknowledgements one at a time to their handlers, so that a store of
// any size fits into memory. A null handler leaves its type out.
Result<void> Store::all(const Filter& filter, const EntryHandlers& handlers) {
  return read_snapshot(*database_, filter, [&](Names& names) -> Result<void> {
    if (handlers.run) WEIR_CHECK(pass_runs(*database_, names, handlers.run));
    if (handlers.verdict) {
      WEIR_TRY(std::vector<NumberedVerdict> verdicts,
               read_verdicts(*database_, names, /*with_texts=*/false));
      for (NumberedVerdict& entry : verdicts) {
        WEIR_CHECK(database_->read("SELECT content FROM weir_verdict WHERE id = $1", {entry.id},
                                   [&](const Row& row) { entry.verdict.text = row.text(0); }));
        WEIR_CHECK(handlers.verdict(std::move(entry.verdict)));
        entry = {};  // its text is not kept in memory
      }
    }
    if (handlers.acknowledgement) {
      WEIR_TRY(const auto all, read_acknowledgements(*database_, names));
      for (const Acknowledgement& entry : all) WEIR_CHECK(handlers.acknowledgement(entry));
    }
    return {};
  });
}

}  // namespace weir::history
