// Reading from a store.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "gate/base/text.hpp"
#include "gate/history/sql_store.hpp"

namespace weir::history {

bool fits(const std::vector<std::string>& globs, std::string_view name) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return text::glob_match(glob, name);
         });
}

bool fits(const Filter& filter, const std::string& project,
          const std::optional<std::string>& branch, double time) {
  return (!filter.project || *filter.project == project) &&
         (!filter.branch || branch == filter.branch) && (!filter.since || time >= *filter.since) &&
         (!filter.until || time <= *filter.until);
}

Result<Named> read_names(Database& database, const Filter& filter) {
  Named named;
  WEIR_CHECK(database.read("SELECT id, name FROM weir_project", {}, [&](const Row& row) {
    named.projects.emplace(row.integer(0), row.text(1));
    return Result<void>{};
  }));
  WEIR_CHECK(database.read("SELECT id, name FROM weir_cell", {}, [&](const Row& row) {
    if (fits(filter.cells, row.text(1))) named.cells.emplace(row.integer(0), row.text(1));
    return Result<void>{};
  }));
  WEIR_CHECK(database.read(
      "SELECT id, name, kind, unit, better FROM weir_metric", {}, [&](const Row& row) {
        if (fits(filter.metrics, row.text(1))) {
          named.metrics.emplace(
              row.integer(0),
              Metric{std::string(row.text(1)), unit::parse_kind(row.text(2)),
                     unit::parse_unit(row.text(3)), unit::parse_better(row.text(4))});
        }
        return Result<void>{};
      }));
  WEIR_CHECK(database.read(
      "SELECT id, device_class, device_name, machine_class, machine_name, engine_build "
      "FROM weir_place",
      {}, [&](const Row& row) {
        named.places.emplace(
            row.integer(0),
            Place{std::string(row.text(1)), std::string(row.text(2)), std::string(row.text(3)),
                  std::string(row.text(4)), std::string(row.text(5))});
        return Result<void>{};
      }));
  return named;
}

Result<std::vector<NumberedRun>> read_runs(Database& database, const Filter& filter,
                                           const Named& named) {
  std::vector<NumberedRun> runs;
  // Those of one project, or of all: there is an index by project and time.
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  if (filter.project) {
    const auto one =
        std::find_if(named.projects.begin(), named.projects.end(),
                     [&](const auto& entry) { return entry.second == filter.project; });
    if (one == named.projects.end()) return runs;
    first = last = one->first;
  }
  const std::array<Param, 2> wanted{first, last};
  WEIR_CHECK(database.read(
      "SELECT id, project, name, source, commit_name, branch, commit_time, dirty, time, machine, "
      "weir_version FROM weir_run WHERE project BETWEEN $1 AND $2",
      wanted, [&](const Row& row) {
        const auto project = named.projects.find(row.integer(1));
        if (project == named.projects.end()) return Result<void>{};
        if (!fits(filter, project->second, row.optional_text(5), row.real(8)) ||
            !fits(filter.machines, row.text(9))) {
          return Result<void>{};
        }
        runs.push_back({row.integer(0),
                        {project->second, std::string(row.text(2)),
                         parse_source(row.text(3)).value_or(Source::run), row.optional_text(4),
                         row.optional_text(5), row.optional_real(6), row.integer(7) != 0,
                         row.real(8), std::string(row.text(9)), std::string(row.text(10))}});
        return Result<void>{};
      }));
  std::sort(runs.begin(), runs.end(), [](const NumberedRun& a, const NumberedRun& b) {
    return std::tie(a.facts.project, a.facts.time, a.facts.id) <
           std::tie(b.facts.project, b.facts.time, b.facts.id);
  });
  return runs;
}

namespace {

constexpr double k_any_time = 1e300;  // later than any

profile::Nature nature_of(std::int64_t number) {
  return number == 0   ? profile::Nature::exact
         : number == 1 ? profile::Nature::nearly_exact
                       : profile::Nature::sampled;
}

// The numbers of a point, from columns of one order.
struct Numbers {
  double value = 0;
  std::optional<Rational> exact;
  std::vector<double> samples;
};
Result<Numbers> numbers_of(const Row& row, int value, int exact, int samples) {
  Numbers numbers{row.real(value), {}, {}};
  if (!row.null(exact)) {
    numbers.exact = Rational::parse(row.text(exact));
    if (!numbers.exact) {
      return fail(Code::data, "no exact number: \"{}\"", text::printable(row.text(exact)));
    }
  }
  if (!row.null(samples)) {
    WEIR_TRY(numbers.samples, samples_of(row.text(samples)));
  }
  return numbers;
}

}  // namespace

Result<std::vector<double>> samples_of(std::string_view text) {
  std::vector<double> samples;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(' ', from), text.size());
    const auto value = text::to_double(text.substr(from, to - from));
    if (!value) return fail(Code::data, "a list of samples that is none");
    samples.push_back(*value);
    from = to + 1;
  }
  return samples;
}

Result<History> SqlStore::history(const Filter& filter) {
  Transaction transaction(*database_);
  WEIR_CHECK(transaction.begin(Database::Access::read));
  WEIR_TRY(const Named named, read_names(*database_, filter));
  WEIR_TRY(std::vector<NumberedRun> runs, read_runs(*database_, filter, named));
  History history;
  ById<std::uint32_t> run_places, place_places;
  for (NumberedRun& run : runs) {
    run_places.emplace(run.id, static_cast<std::uint32_t>(history.runs.size()));
    history.runs.push_back(std::move(run.facts));
  }
  std::map<std::string_view, std::int64_t> cells;  // by name
  for (const auto& [id, name] : named.cells) cells.emplace(name, id);
  for (const auto& [cell, id] : cells) {
    using Key = std::tuple<std::string_view, const Metric*, std::string_view>;
    const auto before = [](const Key& a, const Key& b) {
      return std::tie(std::get<0>(a), *std::get<1>(a), std::get<2>(a)) <
             std::tie(std::get<0>(b), *std::get<1>(b), std::get<2>(b));
    };
    std::map<Key, Series, decltype(before)> series(before);
    const std::array<Param, 1> wanted{id};
    WEIR_CHECK(database_->read(
        "SELECT metric, run, place, nature, value, exact, samples FROM weir_point WHERE cell = $1",
        wanted, [&, name = cell](const Row& row) -> Result<void> {
          const auto metric = named.metrics.find(row.integer(0));
          const auto run = run_places.find(row.integer(1));
          const auto place = named.places.find(row.integer(2));
          if (metric == named.metrics.end() || run == run_places.end() ||
              place == named.places.end()) {
            return {};
          }
          const RunFacts& facts = history.runs[run->second];
          Series& one = series[{facts.project, &metric->second, facts.machine}];
          if (one.points.empty()) {
            one.project = facts.project;
            one.cell = std::string(name);
            one.metric = metric->second;
            one.machine = facts.machine;
          }
          WEIR_TRY(Numbers numbers, numbers_of(row, 4, 5, 6));
          const auto [at, fresh] = place_places.try_emplace(
              place->first, static_cast<std::uint32_t>(history.places.size()));
          if (fresh) history.places.push_back(place->second);
          one.points.push_back({numbers.value, numbers.exact, std::move(numbers.samples),
                                nature_of(row.integer(3)), run->second, at->second});
          return {};
        }));
    for (auto& [key, one] : series) history.series.push_back(std::move(one));
  }
  for (Series& one : history.series) {
    std::sort(one.points.begin(), one.points.end(),
              [](const SeriesPoint& a, const SeriesPoint& b) { return a.run < b.run; });
  }
  std::stable_sort(history.series.begin(), history.series.end(),
                   [](const Series& a, const Series& b) { return a.project < b.project; });
  WEIR_CHECK(transaction.commit());
  return history;
}

namespace {

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

}  // namespace

Result<std::vector<std::string>> SqlStore::cells(const Filter& filter) {
  Transaction transaction(*database_);
  WEIR_CHECK(transaction.begin(Database::Access::read));
  std::vector<std::string> names;
  WEIR_CHECK(database_->read("SELECT name FROM weir_cell", {}, [&](const Row& row) {
    if (fits(filter.cells, row.text(0))) names.emplace_back(row.text(0));
    return Result<void>{};
  }));
  std::sort(names.begin(), names.end());
  WEIR_CHECK(transaction.commit());
  return names;
}

Result<std::vector<SeriesSummary>> SqlStore::summaries(const Filter& filter) {
  Transaction transaction(*database_);
  WEIR_CHECK(transaction.begin(Database::Access::read));
  WEIR_TRY(const Named named, read_names(*database_, filter));
  const std::string branch = filter.branch.value_or("");
  std::map<std::tuple<std::string, std::string, Metric, std::string>, SeriesSummary> found;
  const auto take = [&](const Row& row) {
    const auto project = named.projects.find(row.integer(0));
    const auto cell = named.cells.find(row.integer(1));
    const auto metric = named.metrics.find(row.integer(2));
    const std::string machine(row.text(3));
    if (project == named.projects.end() || cell == named.cells.end() ||
        metric == named.metrics.end() || !fits(filter.machines, machine) ||
        (filter.project && *filter.project != project->second)) {
      return Result<void>{};
    }
    found[{project->second, cell->second, metric->second, machine}] = {
        project->second, cell->second, metric->second, machine,
        row.integer(4),  row.real(5),  row.real(6)};
    return Result<void>{};
  };
  for (const Cells& cells : cells_of(named, filter)) {
    const std::array<Param, 6> wanted{filter.since.value_or(-k_any_time),
                                      filter.until.value_or(k_any_time),
                                      std::int64_t{filter.branch ? 1 : 0},
                                      branch,
                                      cells.first,
                                      cells.last};
    WEIR_CHECK(database_->read(
        "SELECT r.project, p.cell, p.metric, r.machine, COUNT(*), MIN(r.time), MAX(r.time) "
        "FROM weir_point p CROSS JOIN weir_run r WHERE r.id = p.run AND p.cell BETWEEN $5 AND $6 "
        "AND r.time >= $1 AND r.time <= $2 AND ($3 = 0 OR r.branch = $4) "
        "GROUP BY r.project, p.cell, p.metric, r.machine",
        wanted, take));
  }
  std::vector<SeriesSummary> all;
  for (auto& [key, one] : found) all.push_back(std::move(one));
  WEIR_CHECK(transaction.commit());
  return all;
}

namespace {

Result<void> each_run(Database& database, const Filter& filter, const Named& named,
                      const std::function<Result<void>(const Run&)>& take) {
  WEIR_TRY(const std::vector<NumberedRun> runs, read_runs(database, filter, named));
  for (const NumberedRun& numbered : runs) {
    Run run{numbered.facts, {}};
    const std::array<Param, 1> wanted{numbered.id};
    WEIR_CHECK(database.read(
        "SELECT cell, metric, place, nature, source, value, exact, samples FROM weir_point "
        "WHERE run = $1",
        wanted, [&](const Row& row) -> Result<void> {
          const auto cell = named.cells.find(row.integer(0));
          const auto metric = named.metrics.find(row.integer(1));
          const auto place = named.places.find(row.integer(2));
          if (cell == named.cells.end() || metric == named.metrics.end() ||
              place == named.places.end()) {
            return {};
          }
          WEIR_TRY(Numbers numbers, numbers_of(row, 5, 6, 7));
          run.points.push_back({cell->second, metric->second, nature_of(row.integer(3)),
                                std::string(row.text(4)), numbers.value, numbers.exact,
                                std::move(numbers.samples), place->second});
          return {};
        }));
    const bool some = !filter.cells.empty() || !filter.metrics.empty();
    if (run.points.empty() && some) continue;
    std::sort(run.points.begin(), run.points.end(), [](const Point& a, const Point& b) {
      return std::tie(a.cell, a.metric) < std::tie(b.cell, b.metric);
    });
    WEIR_CHECK(take(run));
  }
  return {};
}

struct NumberedVerdict {
  std::int64_t id = 0;
  StoredVerdict verdict;
};

// In order. Their texts are large: where they are left out, text_of() reads them one by one.
Result<std::vector<NumberedVerdict>> read_verdicts(Database& database, const Filter& filter,
                                                   const Named& named, bool with_texts) {
  std::vector<NumberedVerdict> verdicts;
  const std::array<Param, 1> wanted{std::int64_t{with_texts ? 1 : 0}};
  WEIR_CHECK(database.read(
      "SELECT project, name, run, commit_name, branch, time, kept_at, outcome, id, "
      "CASE WHEN $1 = 1 THEN content ELSE '' END FROM weir_verdict",
      wanted, [&](const Row& row) {
        const auto project = named.projects.find(row.integer(0));
        if (project == named.projects.end() ||
            !fits(filter, project->second, row.optional_text(4), row.real(5))) {
          return Result<void>{};
        }
        verdicts.push_back({row.integer(8),
                            {project->second, std::string(row.text(1)), std::string(row.text(2)),
                             row.optional_text(3), row.optional_text(4), row.real(5), row.real(6),
                             std::string(row.text(7)), std::string(row.text(9))}});
        return Result<void>{};
      }));
  std::sort(verdicts.begin(), verdicts.end(),
            [](const NumberedVerdict& left, const NumberedVerdict& right) {
              const StoredVerdict &a = left.verdict, &b = right.verdict;
              return std::tie(a.project, a.time, a.kept_at, a.id, a.run) <
                     std::tie(b.project, b.time, b.kept_at, b.id, b.run);
            });
  return verdicts;
}

Result<std::string> text_of(Database& database, std::int64_t id) {
  std::string text;
  const std::array<Param, 1> wanted{id};
  WEIR_CHECK(
      database.read("SELECT content FROM weir_verdict WHERE id = $1", wanted, [&](const Row& row) {
        text = row.text(0);
        return Result<void>{};
      }));
  return text;
}

Result<std::vector<Acknowledgement>> read_acknowledgements(Database& database, const Filter& filter,
                                                           const Named& named) {
  std::vector<Acknowledgement> all;
  WEIR_CHECK(database.read(
      "SELECT project, cell, metric, machine, kind, commit_name, time, reason, who, at "
      "FROM weir_acknowledgement",
      {}, [&](const Row& row) {
        const auto project = named.projects.find(row.integer(0));
        if (project == named.projects.end() ||
            (filter.project && *filter.project != project->second) ||
            !fits(filter.cells, row.text(1)) || !fits(filter.metrics, row.text(2)) ||
            !fits(filter.machines, row.text(3))) {
          return Result<void>{};
        }
        all.push_back({project->second, std::string(row.text(1)), std::string(row.text(2)),
                       std::string(row.text(3)), std::string(row.text(4)), row.optional_text(5),
                       row.real(6), std::string(row.text(7)), std::string(row.text(8)),
                       row.real(9)});
        return Result<void>{};
      }));
  std::sort(all.begin(), all.end(), [](const Acknowledgement& a, const Acknowledgement& b) {
    const auto key = [](const Acknowledgement& one) {
      return std::tie(one.project, one.cell, one.metric, one.machine, one.at, one.kind, one.commit,
                      one.time, one.reason, one.who);
    };
    return key(a) < key(b);
  });
  return all;
}

Result<std::vector<Look>> read_looks(Database& database, const Filter& filter, const Named& named) {
  std::vector<Look> all;
  WEIR_CHECK(database.read(
      "SELECT project, cell, metric, machine, points FROM weir_look", {}, [&](const Row& row) {
        const auto project = named.projects.find(row.integer(0));
        if (project == named.projects.end() ||
            (filter.project && *filter.project != project->second) ||
            !fits(filter.cells, row.text(1)) || !fits(filter.metrics, row.text(2)) ||
            !fits(filter.machines, row.text(3))) {
          return Result<void>{};
        }
        all.push_back({project->second, std::string(row.text(1)), std::string(row.text(2)),
                       std::string(row.text(3)), row.integer(4)});
        return Result<void>{};
      }));
  std::sort(all.begin(), all.end(), [](const Look& a, const Look& b) {
    return std::tie(a.project, a.cell, a.metric, a.machine) <
           std::tie(b.project, b.cell, b.metric, b.machine);
  });
  return all;
}

}  // namespace

Result<std::vector<Look>> SqlStore::looks(const Filter& filter) {
  Transaction transaction(*database_);
  WEIR_CHECK(transaction.begin(Database::Access::read));
  WEIR_TRY(const Named named, read_names(*database_, filter));
  return read_looks(*database_, filter, named);
}

Result<std::vector<StoredVerdict>> SqlStore::verdicts(const Filter& filter) {
  Transaction transaction(*database_);
  WEIR_CHECK(transaction.begin(Database::Access::read));
  WEIR_TRY(const Named named, read_names(*database_, filter));
  WEIR_TRY(std::vector<NumberedVerdict> numbered, read_verdicts(*database_, filter, named, true));
  std::vector<StoredVerdict> verdicts;
  verdicts.reserve(numbered.size());
  for (NumberedVerdict& one : numbered) verdicts.push_back(std::move(one.verdict));
  return verdicts;
}

Result<std::vector<Acknowledgement>> SqlStore::acknowledgements(const Filter& filter) {
  Transaction transaction(*database_);
  WEIR_CHECK(transaction.begin(Database::Access::read));
  WEIR_TRY(const Named named, read_names(*database_, filter));
  return read_acknowledgements(*database_, filter, named);
}

Result<void> SqlStore::all(const Filter& filter, const Takes& take) {
  Transaction transaction(*database_);
  WEIR_CHECK(transaction.begin(Database::Access::read));
  WEIR_TRY(const Named named, read_names(*database_, filter));
  if (take.run) WEIR_CHECK(each_run(*database_, filter, named, take.run));
  if (take.verdict) {
    WEIR_TRY(std::vector<NumberedVerdict> all, read_verdicts(*database_, filter, named, false));
    for (NumberedVerdict& one : all) {
      WEIR_TRY(one.verdict.text, text_of(*database_, one.id));
      WEIR_CHECK(take.verdict(one.verdict));
      one = {};
    }
  }
  if (take.acknowledgement) {
    WEIR_TRY(const auto all, read_acknowledgements(*database_, filter, named));
    for (const Acknowledgement& one : all) WEIR_CHECK(take.acknowledgement(one));
  }
  if (take.look) {
    WEIR_TRY(const auto all, read_looks(*database_, filter, named));
    for (const Look& one : all) WEIR_CHECK(take.look(one));
  }
  return transaction.commit();
}

Result<std::unique_ptr<SqlStore>> open_sql_store(const StoreAddress& address,
                                                 const OpenOptions& options) {
  std::unique_ptr<Database> database;
  if (address.postgres) {
    WEIR_TRY(database, open_postgres(address, options));
  } else {
    WEIR_TRY(database, open_sqlite(address.target.reveal(), options));
  }
  WEIR_CHECK(migrate(*database, address.shown, options));
  return std::make_unique<SqlStore>(std::move(database), address.shown);
}

Result<std::unique_ptr<Store>> open_store(const StoreAddress& address, const OpenOptions& options) {
  WEIR_TRY(auto store, open_sql_store(address, options));
  return store;
}

}  // namespace weir::history
