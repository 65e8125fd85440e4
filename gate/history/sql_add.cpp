// Adds runs, verdicts and acknowledgements to a store. Rows that are there already stay.
#include <algorithm>

#include "gate/base/hash.hpp"
#include "gate/history/database.hpp"

namespace weir::history {
namespace {

constexpr std::size_t k_differences_named = 5;
constexpr std::size_t k_point_columns = 9;
constexpr std::size_t k_points_at_once = 4096;  // rows of these are in memory together
constexpr std::size_t k_max_cached_ids = 2000;  // names of a kind whose ids are in memory

// Bytes that a row takes beyond its texts: numbers, header and its entries in indexes, in the
// database that needs more of them.
constexpr std::int64_t k_row = 192, k_indexed_row = 320;

// Bytes that a row takes with so many bytes of texts. Pages are not full, and a long text has pages
// of its own.
std::int64_t row_bytes(std::int64_t overhead, std::int64_t texts) {
  constexpr std::int64_t k_long = 1000, k_page = 4096;
  return overhead + texts + texts / 8 + (texts > k_long ? k_page : 0);
}

// Bytes of the texts of a row.
std::int64_t text_bytes(Params values) {
  std::int64_t sum = 0;
  for (const Param& value : values) sum += static_cast<std::int64_t>(value.text.size());
  return sum;
}

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

// Returns a list of numbers as one text: the shortest that are these numbers, with spaces between.
std::optional<std::string> samples_text(const std::vector<double>& samples) {
  if (samples.empty()) return std::nullopt;
  std::string text;
  for (const double sample : samples) {
    if (!text.empty()) text += ' ';
    fmt::format_to(std::back_inserter(text), "{}", sample + 0.0);
  }
  return text;
}

// A digest of a point's numbers, as they are stored.
std::size_t number_digest(double value, std::string_view exact, std::string_view samples) {
  return std::hash<std::string>()(fmt::format("{}\n{}\n{}", value, exact, samples));
}

}  // namespace

// Returns the id of a name: from memory, from the store, or newly added. A new name counts twice in
// `added`, since it is in an index too.
Result<std::int64_t> Store::find_or_add_id(IdsByName& ids, const std::string& key, Statement select,
                                           Params select_params, Statement insert,
                                           Params insert_params, Added& added) {
  if (const auto entry = ids.find(key); entry != ids.end()) return entry->second;
  std::optional<std::int64_t> id;
  const auto keep_id = [&](const Row& row) { id = row.integer(0); };
  WEIR_CHECK(database_->read(select, select_params, keep_id));
  if (!id) {
    WEIR_CHECK(database_->change(insert, insert_params));
    WEIR_CHECK(database_->read(select, select_params, keep_id));
    added.name_bytes += row_bytes(k_indexed_row, 2 * text_bytes(insert_params));
  }
  if (!id) return fail(Code::internal, "{}: what was written cannot be found", name_);
  if (ids.size() >= k_max_cached_ids) ids.clear();
  ids.emplace(key, *id);
  return *id;
}

void Store::forget_ids() {
  for (IdsByName* ids : {&projects_, &cells_, &metrics_, &places_}) ids->clear();
}

Result<std::int64_t> Store::project_id(const std::string& name, Added& added) {
  return find_or_add_id(projects_, name, "SELECT id FROM weir_project WHERE name = $1", {name},
                        "INSERT INTO weir_project (name) VALUES ($1) ON CONFLICT DO NOTHING",
                        {name}, added);
}

Result<std::int64_t> Store::cell_id(const std::string& name, Added& added) {
  return find_or_add_id(cells_, name, "SELECT id FROM weir_cell WHERE name = $1", {name},
                        "INSERT INTO weir_cell (name) VALUES ($1) ON CONFLICT DO NOTHING", {name},
                        added);
}

Result<std::int64_t> Store::metric_id(const Metric& metric, Added& added) {
  const std::vector<Param> values = make_params(metric);
  return find_or_add_id(
      metrics_, join_key({metric.name, values[1].text, values[2].text, values[3].text}),
      "SELECT id FROM weir_metric WHERE name = $1 AND kind = $2 AND unit = $3 AND better = $4",
      values,
      "INSERT INTO weir_metric (name, kind, unit, better) VALUES ($1, $2, $3, $4) "
      "ON CONFLICT DO NOTHING",
      values, added);
}

Result<std::int64_t> Store::place_id(const Place& place, Added& added) {
  const std::string key = join_key({place.device_class, place.device_name, place.machine_class,
                                    place.machine_name, place.engine_build});
  const std::string digest = hash_hex(key);
  return find_or_add_id(
      places_, key, "SELECT id FROM weir_place WHERE digest = $1", {digest},
      "INSERT INTO weir_place (digest, device_class, device_name, machine_class, machine_name, "
      "engine_build) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
      make_params(place, digest), added);
}

Result<void> Store::add_row(Statement insert, Params values, std::int64_t bytes, std::size_t& count,
                            Added& added) {
  WEIR_TRY(const std::int64_t changed, database_->change(insert, values));
  if (changed == 0) return {};
  ++count;
  added.bytes += bytes;
  return {};
}

// Adds a run and its points, or only the points that a known run lacks. Counts what is new in
// `added`.
Result<void> Store::add_run(const Run& run, Added& added) {
  const RunFacts& facts = run.facts;
  WEIR_TRY(const std::int64_t project, project_id(facts.project, added));
  const std::vector<Param> values = make_params(facts, project);
  const std::size_t runs_before = added.runs;
  WEIR_CHECK(add_row(
      "INSERT INTO weir_run (project, name, source, commit_name, branch, "
      "commit_time, dirty, time, machine, weir_version) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING",
      values,
      row_bytes(k_indexed_row, text_bytes(values) + static_cast<std::int64_t>(facts.id.size())),
      added.runs, added));
  const bool is_new = added.runs > runs_before;
  if (!is_new) ++added.runs_known;
  std::int64_t id = 0;
  WEIR_CHECK(database_->read("SELECT id FROM weir_run WHERE project = $1 AND name = $2",
                             {project, facts.id}, [&](const Row& row) { id = row.integer(0); }));
  PointDigests stored;
  if (!is_new) WEIR_TRY_SET(stored, read_digests(id));
  for (std::size_t from = 0; from < run.points.size(); from += k_points_at_once) {
    const std::size_t count = std::min(k_points_at_once, run.points.size() - from);
    WEIR_CHECK(add_points(id, std::span(run.points).subspan(from, count), stored, added));
  }
  return {};
}

// Adds points of the run with this id, except those whose digests are in `stored`. Cells, places
// and metrics are stored once; a point refers to their ids, which are added first if they are new.
Result<void> Store::add_points(std::int64_t run_id, std::span<const Point> points,
                               const PointDigests& stored, Added& added) {
  // Rows hold views of these texts, which therefore never move: their room is reserved.
  std::vector<std::optional<std::string>> exact, samples;
  exact.reserve(points.size());
  samples.reserve(points.size());
  std::vector<Param> rows;
  rows.reserve(points.size() * k_point_columns);
  const std::string* last_cell = nullptr;  // most points of one cell are neighbours
  const Place* last_place = nullptr;
  std::int64_t cell = 0, place = 0;
  for (const Point& point : points) {
    if (last_cell == nullptr || *last_cell != point.cell) {
      WEIR_TRY(cell, cell_id(point.cell, added));
      last_cell = &point.cell;
    }
    if (last_place == nullptr || *last_place != point.place) {
      WEIR_TRY(place, place_id(point.place, added));
      last_place = &point.place;
    }
    WEIR_TRY(const std::int64_t metric, metric_id(point.metric, added));
    exact.push_back(point.exact ? std::optional(point.exact->str()) : std::nullopt);
    samples.push_back(samples_text(point.samples));
    rows.insert(rows.end(), {cell, metric, run_id, place, point.nature, point.source, point.value,
                             exact.back(), samples.back()});
  }
  if (!stored.empty()) WEIR_CHECK(remove_stored_rows(stored, points, rows, added));
  const std::size_t count = rows.size() / k_point_columns;
  added.points += count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = std::span(rows).subspan(i * k_point_columns, k_point_columns);
    added.bytes += row_bytes(k_row, text_bytes(row));
  }
  // One statement a row; databases with arrays take the second, which adds all rows at once.
  return database_->change_rows(
      "INSERT INTO weir_point (cell, metric, run, place, nature, source, value, exact, samples) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
      "INSERT INTO weir_point (cell, metric, run, place, nature, source, value, exact, samples) "
      "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], "
      "$5::bigint[], $6::text[], $7::float8[], $8::text[], $9::text[])",
      k_point_columns, rows);
}

// Reads a digest of each stored point of a run. Nobody else writes meanwhile.
Result<Store::PointDigests> Store::read_digests(std::int64_t run) {
  PointDigests digests;
  WEIR_CHECK(
      database_->scan("SELECT cell, metric, value, exact, samples FROM weir_point WHERE run = $1",
                      {run}, [&](const Row& row) -> Result<void> {
                        digests[{row.integer(0), row.integer(1)}] =
                            number_digest(row.real(2), row.text(3), row.text(4));
                        return {};
                      }));
  return digests;
}

// Removes the rows of points that are stored already from `rows`, where each of `points` has one.
// Names those with another value in `added.differences`.
Result<void> Store::remove_stored_rows(const PointDigests& stored, std::span<const Point> points,
                                       std::vector<Param>& rows, Added& added) {
  std::vector<Param> new_rows;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto row = std::span(rows).subspan(i * k_point_columns, k_point_columns);
    const auto entry = stored.find({row[0].integer, row[1].integer});
    if (entry == stored.end()) {
      new_rows.insert(new_rows.end(), row.begin(), row.end());
      continue;
    }
    ++added.points_known;
    if (entry->second == number_digest(row[6].real, row[7].text, row[8].text)) continue;
    ++added.points_differ;
    if (added.differences.size() >= k_differences_named) continue;
    double value = 0;
    std::optional<std::string> exact;
    WEIR_CHECK(
        database_->read("SELECT value, exact FROM weir_point "
                        "WHERE cell = $1 AND metric = $2 AND run = $3",
                        row.first(3), [&](const Row& kept) { kept.into(std::tie(value, exact)); }));
    const std::optional<std::string> given =
        points[i].exact ? std::optional(points[i].exact->str()) : std::nullopt;
    added.differences.push_back(fmt::format("{} {}: {} is kept, {} was given", points[i].cell,
                                            points[i].metric.name, value_text(value, exact),
                                            value_text(row[6].real, given)));
  }
  rows = std::move(new_rows);
  return {};
}

// Adds a verdict, whose run is stored already if it has one. Some of its texts are in indexes too,
// so their bytes count again.
Result<void> Store::add_verdict(const StoredVerdict& verdict, Added& added) {
  WEIR_TRY(const std::int64_t project, project_id(verdict.project, added));
  std::string machine;
  WEIR_CHECK(database_->read("SELECT machine FROM weir_run WHERE project = $1 AND name = $2",
                             {project, verdict.run},
                             [&](const Row& row) { machine = row.text(0); }));
  std::vector<Param> values = make_params(verdict, project);
  values.insert(values.end(), {verdict.partial, verdict.judged_here, machine});
  const std::size_t indexed = verdict.id.size() + verdict.run.size() + machine.size() +
                              2 * verdict.branch.value_or("").size();
  return add_row(
      "INSERT INTO weir_verdict (project, name, run, commit_name, branch, time, "
      "kept_at, outcome, content, partial, judged_here, machine) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) "
      "ON CONFLICT DO NOTHING",
      Params(values),
      row_bytes(2 * k_indexed_row, text_bytes(values) + static_cast<std::int64_t>(indexed)),
      added.verdicts, added);
}

// Adds an acknowledgement of a change, unless the same one is stored. Its digest covers all fields.
Result<void> Store::add_acknowledgement(const Acknowledgement& entry, Added& added) {
  WEIR_TRY(const std::int64_t project, project_id(entry.project, added));
  const std::string digest = hash_hex(
      join_key({entry.cell, entry.metric, entry.machine, entry.kind, entry.commit ? "1" : "0",
                entry.commit.value_or(""), fmt::format("{}", entry.time + 0.0), entry.reason,
                entry.who, fmt::format("{}", entry.acknowledged_at + 0.0)}));
  const std::vector<Param> values = make_params(entry, project, digest);
  return add_row(
      "INSERT INTO weir_acknowledgement (project, digest, cell, metric, machine, "
      "kind, commit_name, time, reason, who, at) VALUES "
      "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
      values, row_bytes(k_indexed_row, text_bytes(values)), added.acknowledgements, added);
}

Result<void> check(const Batch& batch) {
  for (const Run& run : batch.runs) {
    WEIR_CHECK(check(run).map_error(with_prefix("run " + run.facts.id.substr(0, k_longest_name))));
  }
  for (const StoredVerdict& verdict : batch.verdicts) WEIR_CHECK(check(verdict));
  for (const Acknowledgement& entry : batch.acknowledgements) WEIR_CHECK(check(entry));
  return {};
}

// Adds runs, verdicts and acknowledgements in one transaction: all of them, or none. Returns how
// much was new.
Result<Added> Store::add(const Batch& batch) {
  WEIR_CHECK(check(batch));
  return write([&]() -> Result<Added> {
    Added added;
    for (const Run& run : batch.runs) WEIR_CHECK(add_run(run, added));  // verdicts refer to them
    for (const StoredVerdict& verdict : batch.verdicts) WEIR_CHECK(add_verdict(verdict, added));
    for (const Acknowledgement& entry : batch.acknowledgements) {
      WEIR_CHECK(add_acknowledgement(entry, added));
    }
    return added;
  });
}

}  // namespace weir::history
