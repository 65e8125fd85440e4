// The schema, as the steps that lead to it. A step that has been released is never changed: what
// comes later is a step of its own at the end.
#include <array>

#include "gate/history/database.hpp"
#include "gate/sys/clock.hpp"

namespace weir::history {
namespace {

struct Migration {
  int number;
  Statement script;
};

// Points lie by series, for these are what is read. Ids are the store's own and leave it nowhere.
constexpr std::array<Migration, 3> k_migrations{{
    {1, R"sql(
CREATE TABLE weir_schema (number $integer PRIMARY KEY, applied_at $real NOT NULL, program $text NOT NULL);
CREATE TABLE weir_project (id $id, name $text NOT NULL UNIQUE);
CREATE TABLE weir_cell (id $id, name $text NOT NULL UNIQUE);
CREATE TABLE weir_metric (id $id, name $text NOT NULL, kind $text NOT NULL, unit $text NOT NULL,
  better $text NOT NULL, UNIQUE (name, kind, unit, better));
CREATE TABLE weir_place (id $id, digest $text NOT NULL UNIQUE, device_class $text NOT NULL,
  device_name $text NOT NULL, machine_class $text NOT NULL, machine_name $text NOT NULL,
  engine_build $text NOT NULL);
CREATE TABLE weir_run (id $id, project $integer NOT NULL, name $text NOT NULL, source $text NOT NULL,
  commit_name $text, branch $text, commit_time $real, dirty $integer NOT NULL, time $real NOT NULL,
  machine $text NOT NULL, weir_version $text NOT NULL, UNIQUE (project, name));
CREATE INDEX weir_run_time ON weir_run (project, time);
CREATE TABLE weir_point (cell $integer NOT NULL, metric $integer NOT NULL, run $integer NOT NULL,
  place $integer NOT NULL, nature $integer NOT NULL, source $text NOT NULL, value $real NOT NULL,
  exact $text, samples $text, PRIMARY KEY (cell, metric, run)) $clustered;
CREATE INDEX weir_point_run ON weir_point (run);
CREATE TABLE weir_verdict (id $id, project $integer NOT NULL, name $text NOT NULL, run $text NOT NULL,
  commit_name $text, branch $text, time $real NOT NULL, kept_at $real NOT NULL, outcome $text NOT NULL,
  content $text NOT NULL, UNIQUE (project, name, run));
CREATE TABLE weir_acknowledgement (id $id, project $integer NOT NULL, digest $text NOT NULL,
  cell $text NOT NULL, metric $text NOT NULL, machine $text NOT NULL, kind $text NOT NULL,
  commit_name $text, time $real NOT NULL, reason $text NOT NULL, who $text NOT NULL, at $real NOT NULL,
  UNIQUE (project, digest));
)sql"},
    {2, R"sql(
CREATE TABLE weir_look (project $integer NOT NULL, cell $text NOT NULL, metric $text NOT NULL,
  machine $text NOT NULL, points $integer NOT NULL, PRIMARY KEY (project, cell, metric, machine));
)sql"},
    {3, R"sql(
CREATE TABLE weir_token (id $text PRIMARY KEY, hash $text NOT NULL, project $text NOT NULL,
  scopes $text NOT NULL, name $text NOT NULL, made_at $real NOT NULL, expires_at $real, revoked_at $real);
CREATE TABLE weir_upload (project $text NOT NULL, name $text NOT NULL, digest $text NOT NULL,
  answer $text NOT NULL, at $real NOT NULL, PRIMARY KEY (project, name));
CREATE INDEX weir_upload_at ON weir_upload (at);
CREATE INDEX weir_verdict_time ON weir_verdict (project, time);
)sql"},
}};

Result<int> schema_of(Database& database) {
  WEIR_TRY(const bool there, database.has_store());
  int number = 0;
  if (!there) return number;
  WEIR_CHECK(database.read("SELECT MAX(number) FROM weir_schema", {}, [&](const Row& row) {
    number = row.null(0) ? 0 : static_cast<int>(row.integer(0));
    return Result<void>{};
  }));
  return number;
}

}  // namespace

int newest_schema() { return k_migrations.back().number; }

Result<void> migrate(Database& database, const std::string& name, const OpenOptions& options) {
  const auto newer = [&](int found) {
    return fail(Code::config,
                "{} was written by a newer weir (its schema is {}, this weir knows {}): use that "
                "one, or another store",
                name, found, newest_schema());
  };
  WEIR_TRY(int found, schema_of(database));
  if (found > newest_schema()) return newer(found);
  if (found == newest_schema()) return {};
  Transaction transaction(database);
  WEIR_CHECK(transaction.begin(Database::Access::write));
  // Somebody else may have been faster.
  WEIR_TRY(found, schema_of(database));
  if (found > newest_schema()) return newer(found);
  const double now = sys::RealClock().now();
  for (const Migration& migration : k_migrations) {
    if (migration.number <= found) continue;
    WEIR_CHECK(database.script(migration.script));
    const std::array<Param, 3> values{std::int64_t{migration.number}, now, options.program};
    WEIR_CHECK(database.change(
        "INSERT INTO weir_schema (number, applied_at, program) VALUES ($1, $2, $3)", values));
  }
  return transaction.commit();
}

}  // namespace weir::history
