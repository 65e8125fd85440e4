// Reading from a store.
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

bool fits(const std::vector<std::string>& globs, std::string_view name) {
  return globs.empty() || std::ranges::any_of(globs, [&](const std::string& glob) {
           return text::glob_match(glob, name);
         });
}

bool fits(const Filter& filter, const std::string& project,
          const std::optional<std::string>& branch, double time) {
  return (!filter.project || *filter.project == project) &&
         (!filter.branch || branch == filter.branch) && (!filter.since || time >= *filter.since) &&
         (!filter.until || time <= *filter.until);
}

// What the store numbers, as far as a filter wants it; the others are not there.
struct Named {
  ById<std::string> projects, cells;
  ById<Metric> metrics;
  ById<Place> places;
};

Result<Named> read_names(Database& database, const Filter& filter) {
  Named named;
  const auto read = [&](Statement select, auto& into, const std::vector<std::string>& globs) {
    return database.read(select, {}, [&](const Row& row) {
      if (fits(globs, row.text(1))) row.into(columns(into[row.integer(0)]), 1);
    });
  };
  WEIR_CHECK(read("SELECT id, name FROM weir_project", named.projects, {}));
  WEIR_CHECK(read("SELECT id, name FROM weir_cell", named.cells, filter.cells));
  WEIR_CHECK(
      read("SELECT id, name, kind, unit, better FROM weir_metric", named.metrics, filter.metrics));
  WEIR_CHECK(
      read("SELECT id, device_class, device_name, machine_class, machine_name, engine_build "
           "FROM weir_place",
           named.places, {}));
  return named;
}

struct NumberedRun {
  std::int64_t id = 0;
  RunFacts facts;
};

// By project, time, id.
Result<std::vector<NumberedRun>> read_runs(Database& database, const Filter& filter,
                                           const Named& named) {
  std::vector<NumberedRun> runs;
  // Those of one project, or of all: there is an index by project and time.
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  if (filter.project) {
    const auto one = std::ranges::find_if(
        named.projects, [&](const auto& entry) { return entry.second == filter.project; });
    if (one == named.projects.end()) return runs;
    first = last = one->first;
  }
  WEIR_CHECK(database.read(
      "SELECT id, project, name, source, commit_name, branch, commit_time, dirty, time, machine, "
      "weir_version FROM weir_run WHERE project BETWEEN $1 AND $2",
      {first, last}, [&](const Row& row) {
        const std::string* project = look_up(named.projects, row.integer(1));
        if (project == nullptr) return;
        NumberedRun run{row.integer(0), {}};
        run.facts.project = *project;
        row.into(columns(run.facts), 2);
        if (fits(filter, *project, run.facts.branch, run.facts.time) &&
            fits(filter.machines, run.facts.machine)) {
          runs.push_back(std::move(run));
        }
      }));
  std::ranges::sort(runs, {}, [](const NumberedRun& one) {
    return std::tie(one.facts.project, one.facts.time, one.facts.id);
  });
  return runs;
}

// The numbers of a point: columns nature, value, exact and samples from `column` on.
Result<SeriesPoint> numbers_of(const Row& row, int column) {
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

// What `ask` answers of the store as it is at one moment.
template <class Ask>
auto at_one_moment(Database& database, const Filter& filter, const Ask& ask)
    -> decltype(ask(Named())) {
  Transaction transaction(database);
  WEIR_CHECK(transaction.begin(Database::Access::read));
  WEIR_TRY(const Named named, read_names(database, filter));
  auto answer = ask(named);
  if (answer) WEIR_CHECK(transaction.commit());
  return answer;
}

// The series of one cell, by project, metric and machine, are put behind those in `history`.
Result<void> add_series(Database& database, const Named& named, std::int64_t cell,
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
        const Metric* metric = look_up(named.metrics, row.integer(0));
        const std::uint32_t* run = look_up(runs, row.integer(1));
        const Place* place = look_up(named.places, row.integer(2));
        if (metric == nullptr || run == nullptr || place == nullptr) return {};
        const RunFacts& facts = history.runs[*run];
        Series& one = series[{facts.project, metric, facts.machine}];
        if (one.points.empty()) one = {facts.project, name, *metric, facts.machine, {}};
        WEIR_TRY(SeriesPoint point, numbers_of(row, 3));
        const auto [at, fresh] =
            places.try_emplace(row.integer(2), static_cast<std::uint32_t>(history.places.size()));
        if (fresh) history.places.push_back(*place);
        point.run = *run;
        point.place = at->second;
        one.points.push_back(std::move(point));
        return {};
      }));
  for (auto& [key, one] : series) {
    std::ranges::sort(one.points, {}, &SeriesPoint::run);
    history.series.push_back(std::move(one));
  }
  return {};
}

// Ids of cells, both included. Points lie by cell: those of one are read without the others.
struct Cells {
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};
constexpr std::size_t k_most_questions = 64;  // more are slower than one for all

std::vector<Cells> cells_of(const Named& named, const Filter& filter) {
  if (filter.cells.empty() || named.cells.size() > k_most_questions) return {Cells{}};
  std::vector<Cells> cells;
  for (const auto& [id, name] : named.cells) cells.push_back({id, id});
  return cells;
}

Result<void> each_run(Database& database, const Filter& filter, const Named& named,
                      const std::function<Result<void>(Run)>& take) {
  WEIR_TRY(const std::vector<NumberedRun> runs, read_runs(database, filter, named));
  for (const NumberedRun& numbered : runs) {
    Run run{numbered.facts, {}};
    WEIR_CHECK(database.read(
        "SELECT cell, metric, place, source, nature, value, exact, samples FROM weir_point "
        "WHERE run = $1",
        {numbered.id}, [&](const Row& row) -> Result<void> {
          const std::string* cell = look_up(named.cells, row.integer(0));
          const Metric* metric = look_up(named.metrics, row.integer(1));
          const Place* place = look_up(named.places, row.integer(2));
          if (cell == nullptr || metric == nullptr || place == nullptr) return {};
          WEIR_TRY(SeriesPoint numbers, numbers_of(row, 4));
          run.points.push_back({*cell, *metric, numbers.nature, std::string(row.text(3)),
                                numbers.value, numbers.exact, std::move(numbers.samples), *place});
          return {};
        }));
    const bool some = !filter.cells.empty() || !filter.metrics.empty();
    if (run.points.empty() && some) continue;
    std::ranges::sort(run.points, {},
                      [](const Point& one) { return std::tie(one.cell, one.metric); });
    WEIR_CHECK(take(std::move(run)));
  }
  return {};
}

struct NumberedVerdict {
  std::int64_t id = 0;
  StoredVerdict verdict;
};

// In order. Their texts are large: where they are left out, all() reads them one by one.
Result<std::vector<NumberedVerdict>> read_verdicts(Database& database, const Filter& filter,
                                                   const Named& named, bool with_texts) {
  std::vector<NumberedVerdict> verdicts;
  WEIR_CHECK(
      database.read("SELECT project, id, name, run, commit_name, branch, time, kept_at, outcome, "
                    "CASE WHEN $1 = 1 THEN content ELSE '' END FROM weir_verdict",
                    {with_texts}, [&](const Row& row) {
                      const std::string* project = look_up(named.projects, row.integer(0));
                      if (project == nullptr) return;
                      NumberedVerdict one{row.integer(1), {}};
                      one.verdict.project = *project;
                      row.into(columns(one.verdict), 2);
                      if (fits(filter, *project, one.verdict.branch, one.verdict.time)) {
                        verdicts.push_back(std::move(one));
                      }
                    }));
  std::ranges::sort(verdicts, {}, [](const NumberedVerdict& numbered) {
    const StoredVerdict& one = numbered.verdict;
    return std::tie(one.project, one.time, one.kept_at, one.id, one.run);
  });
  return verdicts;
}

Result<std::vector<Acknowledgement>> read_acknowledgements(Database& database, const Filter& filter,
                                                           const Named& named) {
  std::vector<Acknowledgement> all;
  WEIR_CHECK(
      database.read("SELECT project, cell, metric, machine, kind, commit_name, time, reason, who, "
                    "at FROM weir_acknowledgement",
                    {}, [&](const Row& row) {
                      const std::string* project = look_up(named.projects, row.integer(0));
                      if (project == nullptr || filter.project.value_or(*project) != *project) {
                        return;
                      }
                      Acknowledgement one;
                      one.project = *project;
                      row.into(columns(one), 1);
                      if (fits(filter.cells, one.cell) && fits(filter.metrics, one.metric) &&
                          fits(filter.machines, one.machine)) {
                        all.push_back(std::move(one));
                      }
                    }));
  std::ranges::sort(all, {}, [](const Acknowledgement& one) {
    return std::tie(one.project, one.cell, one.metric, one.machine, one.at, one.kind, one.commit,
                    one.time, one.reason, one.who);
  });
  return all;
}

}  // namespace

Result<History> Store::history(const Filter& filter) {
  return at_one_moment(*database_, filter, [&](const Named& named) -> Result<History> {
    WEIR_TRY(std::vector<NumberedRun> runs, read_runs(*database_, filter, named));
    History history;
    ById<std::uint32_t> run_places, place_places;
    for (NumberedRun& run : runs) {
      run_places.emplace(run.id, static_cast<std::uint32_t>(history.runs.size()));
      history.runs.push_back(std::move(run.facts));
    }
    std::map<std::string_view, std::int64_t> cells;  // by name
    for (const auto& [id, name] : named.cells) cells.emplace(name, id);
    for (const auto& [name, id] : cells) {
      WEIR_CHECK(
          add_series(*database_, named, id, std::string(name), run_places, place_places, history));
    }
    std::ranges::stable_sort(history.series, {}, &Series::project);
    return history;
  });
}

Result<std::vector<std::string>> Store::cells(const Filter& filter) {
  std::vector<std::string> names;
  WEIR_CHECK(database_->read("SELECT name FROM weir_cell", {}, [&](const Row& row) {
    if (fits(filter.cells, row.text(0))) names.emplace_back(row.text(0));
  }));
  std::ranges::sort(names);
  return names;
}

Result<std::vector<SeriesSummary>> Store::summaries(const Filter& filter) {
  using Summaries = std::vector<SeriesSummary>;
  return at_one_moment(*database_, filter, [&](const Named& named) -> Result<Summaries> {
    const std::string branch = filter.branch.value_or("");
    Summaries all;
    const auto take = [&](const Row& row) {
      const std::string* project = look_up(named.projects, row.integer(0));
      const std::string* cell = look_up(named.cells, row.integer(1));
      const Metric* metric = look_up(named.metrics, row.integer(2));
      if (project == nullptr || cell == nullptr || metric == nullptr ||
          !fits(filter.machines, row.text(3)) || (filter.project && *filter.project != *project)) {
        return;
      }
      all.push_back({*project, *cell, *metric, std::string(row.text(3)), row.integer(4),
                     row.real(5), row.real(6)});
    };
    for (const Cells& cells : cells_of(named, filter)) {
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
    std::ranges::sort(all, {}, [](const SeriesSummary& one) {
      return std::tie(one.project, one.cell, one.metric, one.machine);
    });
    return all;
  });
}

Result<std::vector<StoredVerdict>> Store::verdicts(const Filter& filter) {
  std::vector<StoredVerdict> verdicts;
  WEIR_CHECK(at_one_moment(*database_, filter, [&](const Named& named) {
    return read_verdicts(*database_, filter, named, true).map([&](auto numbered) {
      for (NumberedVerdict& one : numbered) verdicts.push_back(std::move(one.verdict));
    });
  }));
  return verdicts;
}

Result<std::vector<Acknowledgement>> Store::acknowledgements(const Filter& filter) {
  return at_one_moment(*database_, filter, [&](const Named& named) {
    return read_acknowledgements(*database_, filter, named);
  });
}

Result<void> Store::all(const Filter& filter, const Takes& take) {
  return at_one_moment(*database_, filter, [&](const Named& named) -> Result<void> {
    if (take.run) WEIR_CHECK(each_run(*database_, filter, named, take.run));
    if (take.verdict) {
      WEIR_TRY(std::vector<NumberedVerdict> all, read_verdicts(*database_, filter, named, false));
      for (NumberedVerdict& one : all) {
        WEIR_CHECK(database_->read("SELECT content FROM weir_verdict WHERE id = $1", {one.id},
                                   [&](const Row& row) { one.verdict.text = row.text(0); }));
        WEIR_CHECK(take.verdict(std::move(one.verdict)));
        one = {};
      }
    }
    if (take.acknowledgement) {
      WEIR_TRY(const auto all, read_acknowledgements(*database_, filter, named));
      for (const Acknowledgement& one : all) WEIR_CHECK(take.acknowledgement(one));
    }
    return {};
  });
}

}  // namespace weir::history
