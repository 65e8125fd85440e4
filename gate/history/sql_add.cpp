// Adding to a store: what is there already is found by its names and stays.
#include <array>
#include <map>

#include "gate/base/hash.hpp"
#include "gate/history/sql_store.hpp"

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

// -0 is 0: databases do not keep the difference.
double without_sign_of_zero(double value) { return value + 0.0; }

std::optional<double> without_sign_of_zero(std::optional<double> value) {
  return value ? std::optional(*value + 0.0) : std::nullopt;
}

std::string_view words_of(const std::optional<unit::Kind>& kind) {
  return kind ? unit::to_string(*kind) : std::string_view();
}
std::string_view words_of(const std::optional<unit::Unit>& unit) {
  return unit ? unit::to_string(*unit) : std::string_view();
}
std::string_view words_of(const std::optional<unit::Better>& better) {
  return better ? unit::to_string(*better) : std::string_view();
}

std::string shown_value(double value, const std::optional<std::string>& exact) {
  return exact ? *exact : fmt::format("{}", value);
}

}  // namespace

std::string samples_text(const std::vector<double>& samples) {
  std::string text;
  for (const double sample : samples) {
    if (!text.empty()) text += ' ';
    fmt::format_to(std::back_inserter(text), "{}", without_sign_of_zero(sample));
  }
  return text;
}

Result<std::int64_t> SqlStore::number(Numbered& known, const std::string& key, Statement select,
                                      Statement insert, Params params) {
  if (const auto found = known.find(key)) return *found;
  std::optional<std::int64_t> number;
  const auto take = [&](const Row& row) {
    number = row.integer(0);
    return Result<void>{};
  };
  WEIR_CHECK(database_->read(select, params, take));
  if (!number) {
    WEIR_CHECK(database_->change(insert, params));
    WEIR_CHECK(database_->read(select, params, take));
  }
  if (!number) return fail(Code::internal, "{}: what was written can not be found", name_);
  known.note(key, *number);
  return *number;
}

Result<std::int64_t> SqlStore::project_number(const std::string& name) {
  const std::array<Param, 1> params{name};
  return number(projects_, name, "SELECT id FROM weir_project WHERE name = $1",
                "INSERT INTO weir_project (name) VALUES ($1) ON CONFLICT DO NOTHING", params);
}

Result<std::int64_t> SqlStore::cell_number(const std::string& name) {
  const std::array<Param, 1> params{name};
  return number(cells_, name, "SELECT id FROM weir_cell WHERE name = $1",
                "INSERT INTO weir_cell (name) VALUES ($1) ON CONFLICT DO NOTHING", params);
}

Result<std::int64_t> SqlStore::metric_number(const Metric& metric) {
  const std::string_view kind = words_of(metric.kind), unit = words_of(metric.unit),
                         better = words_of(metric.better);
  const std::array<Param, 4> params{metric.name, kind, unit, better};
  return number(
      metrics_, joined({metric.name, kind, unit, better}),
      "SELECT id FROM weir_metric WHERE name = $1 AND kind = $2 AND unit = $3 AND better = $4",
      "INSERT INTO weir_metric (name, kind, unit, better) VALUES ($1, $2, $3, $4) "
      "ON CONFLICT DO NOTHING",
      params);
}

Result<std::int64_t> SqlStore::place_number(const Place& place) {
  const std::string key = joined({place.device_class, place.device_name, place.machine_class,
                                  place.machine_name, place.engine_build});
  if (const auto found = places_.find(key)) return *found;
  const std::string digest = hash_hex(key);
  const std::array<Param, 1> wanted{digest};
  const std::array<Param, 6> params{digest,
                                    place.device_class,
                                    place.device_name,
                                    place.machine_class,
                                    place.machine_name,
                                    place.engine_build};
  WEIR_CHECK(database_->change(
      "INSERT INTO weir_place (digest, device_class, device_name, machine_class, machine_name, "
      "engine_build) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
      params));
  return number(places_, key, "SELECT id FROM weir_place WHERE digest = $1",
                "SELECT id FROM weir_place WHERE digest = $1", wanted);
}

Result<void> SqlStore::add_run(const Run& run, Added& added) {
  const RunFacts& facts = run.facts;
  WEIR_TRY(const std::int64_t project, project_number(facts.project));
  const std::array<Param, 10> values{project,
                                     facts.id,
                                     to_string(facts.source),
                                     facts.commit,
                                     facts.branch,
                                     without_sign_of_zero(facts.commit_time),
                                     std::int64_t{facts.dirty ? 1 : 0},
                                     without_sign_of_zero(facts.time),
                                     facts.machine,
                                     facts.weir_version};
  WEIR_TRY(const std::int64_t fresh,
           database_->change("INSERT INTO weir_run (project, name, source, commit_name, branch, "
                             "commit_time, dirty, time, machine, weir_version) "
                             "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) "
                             "ON CONFLICT DO NOTHING",
                             values));
  std::int64_t id = 0;
  const std::array<Param, 2> name{project, facts.id};
  WEIR_CHECK(database_->read("SELECT id FROM weir_run WHERE project = $1 AND name = $2", name,
                             [&](const Row& row) {
                               id = row.integer(0);
                               return Result<void>{};
                             }));
  ++(fresh > 0 ? added.runs : added.runs_known);

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
    samples.push_back(point.samples.empty() ? std::nullopt
                                            : std::optional(samples_text(point.samples)));
    rows.insert(rows.end(),
                {cell, metric, id, place, static_cast<std::int64_t>(point.nature), point.source,
                 without_sign_of_zero(point.value), exact.back(), samples.back()});
  }
  if (fresh == 0) {
    WEIR_CHECK(leave_known(id, run, rows, added));
  }
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
Result<void> SqlStore::leave_known(std::int64_t id, const Run& run, std::vector<Param>& rows,
                                   Added& added) {
  struct Kept {
    double value = 0;
    std::optional<std::string> exact, samples;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Kept> kept;
  const std::array<Param, 1> wanted{id};
  WEIR_CHECK(
      database_->read("SELECT cell, metric, value, exact, samples FROM weir_point WHERE run = $1",
                      wanted, [&](const Row& row) {
                        kept[{row.integer(0), row.integer(1)}] = {row.real(2), row.optional_text(3),
                                                                  row.optional_text(4)};
                        return Result<void>{};
                      }));
  const auto text_of = [](const Param& param) {
    return param.kind == Param::Kind::null ? std::nullopt : std::optional(std::string(param.text));
  };
  std::vector<Param> fresh;
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    const Params row = Params(rows).subspan(i * k_point_columns, k_point_columns);
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
    if (added.differences.size() < k_differences_named) {
      added.differences.push_back(fmt::format(
          "{} {}: {} is kept, {} was given", run.points[i].cell, run.points[i].metric.name,
          shown_value(old.value, old.exact), shown_value(row[6].real, exact)));
    }
  }
  rows = std::move(fresh);
  return {};
}

Result<void> SqlStore::add_verdict(const StoredVerdict& verdict, Added& added) {
  WEIR_TRY(const std::int64_t project, project_number(verdict.project));
  const std::array<Param, 9> values{project,
                                    verdict.id,
                                    verdict.run,
                                    verdict.commit,
                                    verdict.branch,
                                    without_sign_of_zero(verdict.time),
                                    without_sign_of_zero(verdict.kept_at),
                                    verdict.outcome,
                                    verdict.text};
  WEIR_TRY(const std::int64_t changed,
           database_->change("INSERT INTO weir_verdict (project, name, run, commit_name, branch, "
                             "time, kept_at, outcome, content) "
                             "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
                             values));
  if (changed > 0) ++added.verdicts;
  return {};
}

Result<void> SqlStore::add_acknowledgement(const Acknowledgement& one, Added& added) {
  WEIR_TRY(const std::int64_t project, project_number(one.project));
  const std::string digest = hash_hex(joined(
      {one.cell, one.metric, one.machine, one.kind, one.commit ? "1" : "0", one.commit.value_or(""),
       fmt::format("{}", one.time + 0.0), one.reason, one.who, fmt::format("{}", one.at + 0.0)}));
  const std::array<Param, 11> values{project,
                                     digest,
                                     one.cell,
                                     one.metric,
                                     one.machine,
                                     one.kind,
                                     one.commit,
                                     without_sign_of_zero(one.time),
                                     one.reason,
                                     one.who,
                                     without_sign_of_zero(one.at)};
  WEIR_TRY(
      const std::int64_t changed,
      database_->change("INSERT INTO weir_acknowledgement (project, digest, cell, metric, "
                        "machine, kind, commit_name, time, reason, who, at) VALUES "
                        "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
                        values));
  if (changed > 0) ++added.acknowledgements;
  return {};
}

Result<void> SqlStore::add_looks(const std::vector<Look>& looks, Added& added) {
  for (const Look& look : looks) {
    WEIR_TRY(const std::int64_t project, project_number(look.project));
    const std::array<Param, 5> values{project, look.cell, look.metric, look.machine, look.points};
    WEIR_TRY(const std::int64_t changed,
             database_->change("INSERT INTO weir_look (project, cell, metric, machine, points) "
                               "VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
                               values));
    if (changed > 0) ++added.looks;
  }
  return {};
}

Result<void> SqlStore::add_all(const Batch& batch, Added& added) {
  for (const Run& run : batch.runs) WEIR_CHECK(add_run(run, added));
  for (const StoredVerdict& verdict : batch.verdicts) WEIR_CHECK(add_verdict(verdict, added));
  for (const Acknowledgement& one : batch.acknowledgements) {
    WEIR_CHECK(add_acknowledgement(one, added));
  }
  return add_looks(batch.looks, added);
}

Result<void> check(const Batch& batch) {
  for (const Run& run : batch.runs) {
    WEIR_CHECK(check(run).map_error([&](Error error) {
      return with_context(fmt::format("run {}", run.facts.id.substr(0, k_longest_name)),
                          std::move(error));
    }));
  }
  for (const StoredVerdict& verdict : batch.verdicts) WEIR_CHECK(check(verdict));
  for (const Acknowledgement& one : batch.acknowledgements) WEIR_CHECK(check(one));
  for (const Look& look : batch.looks) WEIR_CHECK(check(look));
  return {};
}

Result<Added> SqlStore::add(const Batch& batch) {
  WEIR_CHECK(check(batch));
  Added added;
  Transaction transaction(*database_);
  WEIR_CHECK(transaction.begin(Database::Access::write));
  auto done = add_all(batch, added);
  if (done) done = transaction.commit();
  if (!done) {
    forget();
    return tl::unexpected(std::move(done).error());
  }
  return added;
}

}  // namespace weir::history
