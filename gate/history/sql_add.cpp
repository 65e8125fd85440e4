// Adding to a store: what is there already is found by its names and stays.
#include <map>

#include "gate/base/hash.hpp"
#include "gate/history/database.hpp"

namespace weir::history {
namespace {

constexpr std::size_t k_differences_named = 5;
constexpr std::size_t k_point_columns = 9;

// Keys of what is named by several texts.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) {
    all += part;
    all += '\x1f';  // in no name
  }
  return all;
}

std::string shown_value(double value, const std::optional<std::string>& exact) {
  return exact ? *exact : fmt::format("{}", value);
}

// A list of numbers as one text: the shortest that are these numbers, with spaces between.
std::optional<std::string> samples_text(const std::vector<double>& samples) {
  if (samples.empty()) return std::nullopt;
  std::string text;
  for (const double sample : samples) {
    if (!text.empty()) text += ' ';
    fmt::format_to(std::back_inserter(text), "{}", sample + 0.0);
  }
  return text;
}

}  // namespace

Result<std::int64_t> Store::number(Numbered& known, const std::string& key, Statement select,
                                   Params wanted, Statement insert, Params values) {
  if (const auto found = known.find(key); found != known.end()) return found->second;
  std::optional<std::int64_t> number;
  const auto take = [&](const Row& row) { number = row.integer(0); };
  WEIR_CHECK(database_->read(select, wanted, take));
  if (!number) {
    WEIR_CHECK(database_->change(insert, values));
    WEIR_CHECK(database_->read(select, wanted, take));
  }
  if (!number) return fail(Code::internal, "{}: what was written cannot be found", name_);
  known.emplace(key, *number);
  return *number;
}

Result<std::int64_t> Store::project_number(const std::string& name) {
  return number(projects_, name, "SELECT id FROM weir_project WHERE name = $1", {name},
                "INSERT INTO weir_project (name) VALUES ($1) ON CONFLICT DO NOTHING", {name});
}

Result<std::int64_t> Store::cell_number(const std::string& name) {
  return number(cells_, name, "SELECT id FROM weir_cell WHERE name = $1", {name},
                "INSERT INTO weir_cell (name) VALUES ($1) ON CONFLICT DO NOTHING", {name});
}

Result<std::int64_t> Store::metric_number(const Metric& metric) {
  const std::vector<Param> values = bound(metric);
  return number(
      metrics_, joined({metric.name, values[1].text, values[2].text, values[3].text}),
      "SELECT id FROM weir_metric WHERE name = $1 AND kind = $2 AND unit = $3 AND better = $4",
      values,
      "INSERT INTO weir_metric (name, kind, unit, better) VALUES ($1, $2, $3, $4) "
      "ON CONFLICT DO NOTHING",
      values);
}

Result<std::int64_t> Store::place_number(const Place& place) {
  const std::string key = joined({place.device_class, place.device_name, place.machine_class,
                                  place.machine_name, place.engine_build});
  const std::string digest = hash_hex(key);
  return number(
      places_, key, "SELECT id FROM weir_place WHERE digest = $1", {digest},
      "INSERT INTO weir_place (digest, device_class, device_name, machine_class, machine_name, "
      "engine_build) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
      bound(place, digest));
}

Result<void> Store::add_row(Statement insert, Params values, std::size_t& added) {
  WEIR_TRY(const std::int64_t changed, database_->change(insert, values));
  if (changed > 0) ++added;
  return {};
}

Result<void> Store::add_run(const Run& run, Added& added) {
  const RunFacts& facts = run.facts;
  WEIR_TRY(const std::int64_t project, project_number(facts.project));
  WEIR_TRY(const std::int64_t fresh,
           database_->change("INSERT INTO weir_run (project, name, source, commit_name, branch, "
                             "commit_time, dirty, time, machine, weir_version) "
                             "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) "
                             "ON CONFLICT DO NOTHING",
                             bound(facts, project)));
  std::int64_t id = 0;
  WEIR_CHECK(database_->read("SELECT id FROM weir_run WHERE project = $1 AND name = $2",
                             {project, facts.id}, [&](const Row& row) { id = row.integer(0); }));
  if (fresh > 0) {
    ++added.runs;
  } else {
    ++added.runs_known;
  }

  // Texts that rows point into.
  std::vector<std::optional<std::string>> exact, samples;
  exact.reserve(run.points.size());
  samples.reserve(run.points.size());
  std::vector<Param> rows;
  rows.reserve(run.points.size() * k_point_columns);
  const std::string* last_cell = nullptr;  // points of one cell stand together, mostly
  const Place* last_place = nullptr;
  std::int64_t cell = 0, place = 0;
  for (const Point& point : run.points) {
    if (last_cell == nullptr || *last_cell != point.cell) {
      WEIR_TRY(cell, cell_number(point.cell));
      last_cell = &point.cell;
    }
    if (last_place == nullptr || *last_place != point.place) {
      WEIR_TRY(place, place_number(point.place));
      last_place = &point.place;
    }
    WEIR_TRY(const std::int64_t metric, metric_number(point.metric));
    exact.push_back(point.exact ? std::optional(point.exact->str()) : std::nullopt);
    samples.push_back(samples_text(point.samples));
    rows.insert(rows.end(), {cell, metric, id, place, point.nature, point.source, point.value,
                             exact.back(), samples.back()});
  }
  if (fresh == 0) WEIR_CHECK(leave_known(id, run, rows, added));
  added.points += rows.size() / k_point_columns;
  return database_->change_all(
      "INSERT INTO weir_point (cell, metric, run, place, nature, source, value, exact, samples) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
      "INSERT INTO weir_point (cell, metric, run, place, nature, source, value, exact, samples) "
      "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], "
      "$5::bigint[], $6::text[], $7::float8[], $8::text[], $9::text[])",
      k_point_columns, rows);
}

// Takes the rows out of `rows` (one a point of `run`) that are there already. Nobody else writes
// meanwhile.
Result<void> Store::leave_known(std::int64_t id, const Run& run, std::vector<Param>& rows,
                                Added& added) {
  struct Kept {
    double value = 0;
    std::optional<std::string> exact, samples;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Kept> kept;
  WEIR_CHECK(
      database_->read("SELECT cell, metric, value, exact, samples FROM weir_point WHERE run = $1",
                      {id}, [&](const Row& row) {
                        Kept& one = kept[{row.integer(0), row.integer(1)}];
                        row.into(std::tie(one.value, one.exact, one.samples), 2);
                      }));
  const auto text_of = [](const Param& param) {
    return param.kind == Param::Kind::null ? std::nullopt : std::optional(std::string(param.text));
  };
  std::vector<Param> fresh;
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    const auto row = std::span(rows).subspan(i * k_point_columns, k_point_columns);
    const auto known = kept.find({row[0].integer, row[1].integer});
    if (known == kept.end()) {
      fresh.insert(fresh.end(), row.begin(), row.end());
      continue;
    }
    ++added.points_known;
    const Kept& old = known->second;
    const std::optional<std::string> exact = text_of(row[7]);
    if (old.value == row[6].real && old.exact == exact && old.samples == text_of(row[8])) continue;
    ++added.points_differ;
    if (added.differences.size() < most_differences_) {
      added.differences.push_back(fmt::format(
          "{} {}: {} is kept, {} was given", run.points[i].cell, run.points[i].metric.name,
          shown_value(old.value, old.exact), shown_value(row[6].real, exact)));
    }
  }
  rows = std::move(fresh);
  return {};
}

Result<void> Store::add_all(const Batch& batch, Added& added) {
  most_differences_ = added.differences.size() + k_differences_named;
  for (const Run& run : batch.runs) WEIR_CHECK(add_run(run, added));
  for (const StoredVerdict& verdict : batch.verdicts) {
    WEIR_TRY(const std::int64_t project, project_number(verdict.project));
    std::vector<Param> values = bound(verdict, project);
    values.emplace_back(verdict.partial);
    values.emplace_back(verdict.judged_here);
    WEIR_CHECK(
        add_row("INSERT INTO weir_verdict (project, name, run, commit_name, branch, time, "
                "kept_at, outcome, content, partial, judged_here, machine) "
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, COALESCE((SELECT machine "
                "FROM weir_run WHERE project = $1 AND name = $3), '')) ON CONFLICT DO NOTHING",
                Params(values), added.verdicts));
  }
  for (const Acknowledgement& one : batch.acknowledgements) {
    WEIR_TRY(const std::int64_t project, project_number(one.project));
    const std::string digest =
        hash_hex(joined({one.cell, one.metric, one.machine, one.kind, one.commit ? "1" : "0",
                         one.commit.value_or(""), fmt::format("{}", one.time + 0.0), one.reason,
                         one.who, fmt::format("{}", one.at + 0.0)}));
    WEIR_CHECK(
        add_row("INSERT INTO weir_acknowledgement (project, digest, cell, metric, machine, "
                "kind, commit_name, time, reason, who, at) VALUES "
                "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
                bound(one, project, digest), added.acknowledgements));
  }
  return {};
}

Result<void> check(const Batch& batch) {
  for (const Run& run : batch.runs) {
    WEIR_CHECK(check(run).map_error(in_context("run " + run.facts.id.substr(0, k_longest_name))));
  }
  for (const StoredVerdict& verdict : batch.verdicts) WEIR_CHECK(check(verdict));
  for (const Acknowledgement& one : batch.acknowledgements) WEIR_CHECK(check(one));
  return {};
}

Result<Added> Store::add(const Batch& batch) {
  WEIR_CHECK(check(batch));
  return write([&]() -> Result<Added> {
    Added added;
    WEIR_CHECK(add_all(batch, added));
    return added;
  });
}

}  // namespace weir::history
