// Adds runs, verdicts and acknowledgements to a store. Rows that are there already stay.
#include <map>

#include "gate/base/hash.hpp"
#include "gate/history/database.hpp"

namespace weir::history {
namespace {

constexpr std::size_t k_differences_named = 5;
constexpr std::size_t k_point_columns = 9;

// Joins the texts that identify something into one key.
std::string join_key(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) {
    all += part;
    all += '\x1f';  // in no name
  }
  return all;
}

// A number as people see it: exact where it is.
std::string value_text(double value, const std::optional<std::string>& exact) {
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

// Returns the id of a name: from memory, from the store, or newly added.
Result<std::int64_t> Store::find_or_add_id(IdsByName& ids, const std::string& key, Statement select,
                                           Params wanted, Statement insert, Params values) {
  if (const auto entry = ids.find(key); entry != ids.end()) return entry->second;
  std::optional<std::int64_t> id;
  const auto take = [&](const Row& row) { id = row.integer(0); };
  WEIR_CHECK(database_->read(select, wanted, take));
  if (!id) {
    WEIR_CHECK(database_->change(insert, values));
    WEIR_CHECK(database_->read(select, wanted, take));
  }
  if (!id) return fail(Code::internal, "{}: what was written cannot be found", name_);
  ids.emplace(key, *id);
  return *id;
}

Result<std::int64_t> Store::project_id(const std::string& name) {
  return find_or_add_id(projects_, name, "SELECT id FROM weir_project WHERE name = $1", {name},
                        "INSERT INTO weir_project (name) VALUES ($1) ON CONFLICT DO NOTHING",
                        {name});
}

Result<std::int64_t> Store::cell_id(const std::string& name) {
  return find_or_add_id(cells_, name, "SELECT id FROM weir_cell WHERE name = $1", {name},
                        "INSERT INTO weir_cell (name) VALUES ($1) ON CONFLICT DO NOTHING", {name});
}

Result<std::int64_t> Store::metric_id(const Metric& metric) {
  const std::vector<Param> values = make_params(metric);
  return find_or_add_id(
      metrics_, join_key({metric.name, values[1].text, values[2].text, values[3].text}),
      "SELECT id FROM weir_metric WHERE name = $1 AND kind = $2 AND unit = $3 AND better = $4",
      values,
      "INSERT INTO weir_metric (name, kind, unit, better) VALUES ($1, $2, $3, $4) "
      "ON CONFLICT DO NOTHING",
      values);
}

Result<std::int64_t> Store::place_id(const Place& place) {
  const std::string key = join_key({place.device_class, place.device_name, place.machine_class,
                                    place.machine_name, place.engine_build});
  const std::string digest = hash_hex(key);
  return find_or_add_id(
      places_, key, "SELECT id FROM weir_place WHERE digest = $1", {digest},
      "INSERT INTO weir_place (digest, device_class, device_name, machine_class, machine_name, "
      "engine_build) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
      make_params(place, digest));
}

Result<void> Store::add_row(Statement insert, Params values, std::size_t& added) {
  WEIR_TRY(const std::int64_t changed, database_->change(insert, values));
  if (changed > 0) ++added;
  return {};
}

Result<void> Store::add_run(const Run& run, Added& added) {
  const RunFacts& facts = run.facts;
  WEIR_TRY(const std::int64_t project, project_id(facts.project));
  WEIR_TRY(const std::int64_t inserted,
           database_->change("INSERT INTO weir_run (project, name, source, commit_name, branch, "
                             "commit_time, dirty, time, machine, weir_version) "
                             "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) "
                             "ON CONFLICT DO NOTHING",
                             make_params(facts, project)));
  std::int64_t id = 0;
  WEIR_CHECK(database_->read("SELECT id FROM weir_run WHERE project = $1 AND name = $2",
                             {project, facts.id}, [&](const Row& row) { id = row.integer(0); }));
  if (inserted > 0) {
    ++added.runs;
  } else {
    ++added.runs_known;
  }

  // The texts that rows refer to.
  std::vector<std::optional<std::string>> exact, samples;
  exact.reserve(run.points.size());
  samples.reserve(run.points.size());
  std::vector<Param> rows;
  rows.reserve(run.points.size() * k_point_columns);
  const std::string* last_cell = nullptr;  // most points of one cell are neighbours
  const Place* last_place = nullptr;
  std::int64_t cell = 0, place = 0;
  for (const Point& point : run.points) {
    if (last_cell == nullptr || *last_cell != point.cell) {
      WEIR_TRY(cell, cell_id(point.cell));
      last_cell = &point.cell;
    }
    if (last_place == nullptr || *last_place != point.place) {
      WEIR_TRY(place, place_id(point.place));
      last_place = &point.place;
    }
    WEIR_TRY(const std::int64_t metric, metric_id(point.metric));
    exact.push_back(point.exact ? std::optional(point.exact->str()) : std::nullopt);
    samples.push_back(samples_text(point.samples));
    rows.insert(rows.end(), {cell, metric, id, place, point.nature, point.source, point.value,
                             exact.back(), samples.back()});
  }
  if (inserted == 0) WEIR_CHECK(remove_stored_rows(id, run, rows, added));
  added.points += rows.size() / k_point_columns;
  return database_->change_rows(
      "INSERT INTO weir_point (cell, metric, run, place, nature, source, value, exact, samples) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
      "INSERT INTO weir_point (cell, metric, run, place, nature, source, value, exact, samples) "
      "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], "
      "$5::bigint[], $6::text[], $7::float8[], $8::text[], $9::text[])",
      k_point_columns, rows);
}

// Takes the rows out of `rows` (one for each point of `run`) that are stored already. Nobody else
// writes meanwhile.
Result<void> Store::remove_stored_rows(std::int64_t id, const Run& run, std::vector<Param>& rows,
                                       Added& added) {
  struct StoredPoint {
    double value = 0;
    std::optional<std::string> exact, samples;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, StoredPoint> stored;  // by cell and metric
  WEIR_CHECK(
      database_->read("SELECT cell, metric, value, exact, samples FROM weir_point WHERE run = $1",
                      {id}, [&](const Row& row) {
                        StoredPoint& point = stored[{row.integer(0), row.integer(1)}];
                        row.into(std::tie(point.value, point.exact, point.samples), 2);
                      }));
  const auto text_or_null = [](const Param& param) {
    return param.kind == Param::Kind::null ? std::nullopt : std::optional(std::string(param.text));
  };
  std::vector<Param> new_rows;
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    const auto row = std::span(rows).subspan(i * k_point_columns, k_point_columns);
    const auto entry = stored.find({row[0].integer, row[1].integer});
    if (entry == stored.end()) {
      new_rows.insert(new_rows.end(), row.begin(), row.end());
      continue;
    }
    ++added.points_known;
    const StoredPoint& old = entry->second;
    const double value = row[6].real;
    const std::optional<std::string> exact = text_or_null(row[7]), samples = text_or_null(row[8]);
    if (old.value == value && old.exact == exact && old.samples == samples) continue;
    ++added.points_differ;
    if (added.differences.size() < most_differences_) {
      added.differences.push_back(fmt::format(
          "{} {}: {} is kept, {} was given", run.points[i].cell, run.points[i].metric.name,
          value_text(old.value, old.exact), value_text(value, exact)));
    }
  }
  rows = std::move(new_rows);
  return {};
}

// Adds a batch within one transaction: runs first, since verdicts refer to them.
Result<void> Store::add_all(const Batch& batch, Added& added) {
  most_differences_ = added.differences.size() + k_differences_named;
  for (const Run& run : batch.runs) WEIR_CHECK(add_run(run, added));
  for (const StoredVerdict& verdict : batch.verdicts) {
    WEIR_TRY(const std::int64_t project, project_id(verdict.project));
    std::vector<Param> values = make_params(verdict, project);
    values.emplace_back(verdict.partial);
    values.emplace_back(verdict.judged_here);
    WEIR_CHECK(
        add_row("INSERT INTO weir_verdict (project, name, run, commit_name, branch, time, "
                "kept_at, outcome, content, partial, judged_here, machine) "
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, COALESCE((SELECT machine "
                "FROM weir_run WHERE project = $1 AND name = $3), '')) ON CONFLICT DO NOTHING",
                Params(values), added.verdicts));
  }
  for (const Acknowledgement& entry : batch.acknowledgements) {
    WEIR_TRY(const std::int64_t project, project_id(entry.project));
    const std::string digest = hash_hex(
        join_key({entry.cell, entry.metric, entry.machine, entry.kind, entry.commit ? "1" : "0",
                  entry.commit.value_or(""), fmt::format("{}", entry.time + 0.0), entry.reason,
                  entry.who, fmt::format("{}", entry.at + 0.0)}));
    WEIR_CHECK(
        add_row("INSERT INTO weir_acknowledgement (project, digest, cell, metric, machine, "
                "kind, commit_name, time, reason, who, at) VALUES "
                "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
                make_params(entry, project, digest), added.acknowledgements));
  }
  return {};
}

Result<void> check(const Batch& batch) {
  for (const Run& run : batch.runs) {
    WEIR_CHECK(check(run).map_error(in_context("run " + run.facts.id.substr(0, k_longest_name))));
  }
  for (const StoredVerdict& verdict : batch.verdicts) WEIR_CHECK(check(verdict));
  for (const Acknowledgement& entry : batch.acknowledgements) WEIR_CHECK(check(entry));
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
