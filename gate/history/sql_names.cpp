#include "gate/history/sql_names.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "gate/base/text.hpp"

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

}  // namespace weir::history
