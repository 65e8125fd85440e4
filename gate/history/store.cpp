// Opens a store: parses its address, keeps passwords out of messages, and creates its tables.
#include <algorithm>
#include <array>

#include "gate/base/text.hpp"
#include "gate/history/database.hpp"

namespace weir::history {

namespace {

constexpr std::array<std::string_view, 2> k_schemes{"postgres://", "postgresql://"};

// "user:word@host/name" -> "user@host/name"; the last '@' ends what may be a password.
void extract_password(std::string& authority, std::vector<Secret>& passwords) {
  const std::size_t at = authority.rfind('@');
  if (at == std::string::npos) return;
  const std::size_t colon = authority.find(':');
  if (colon == std::string::npos || colon > at) return;
  passwords.emplace_back(authority.substr(colon + 1, at - colon - 1));
  authority.erase(colon, at - colon);
}

// Moves parameters that may hold a password from the URL's query to `passwords`: "a=1&password=x"
// becomes "a=1".
void extract_query_passwords(std::string& query, std::vector<Secret>& passwords) {
  std::vector<std::string> shown_parameters;
  for (std::string& parameter : text::split(query, '&')) {
    // libpq decodes names, too: a parameter whose name is encoded is not shown either.
    const std::size_t equals = std::min(parameter.find('='), parameter.size());
    const std::string name = text::lower(parameter.substr(0, equals));
    if (name.find("pass") != std::string::npos || name.find('%') != std::string::npos) {
      passwords.emplace_back(parameter.substr(std::min(equals + 1, parameter.size())));
    } else {
      shown_parameters.push_back(std::move(parameter));
    }
  }
  query = text::join(shown_parameters, "&");
}

constexpr std::int64_t k_schema = 1;

// Points are stored by series, as they are read. Ids are the store's own and never leave it. A
// verdict is `partial` if it lacks parts that the one before it judged. Use is counted by day (0:
// all that is stored).
constexpr Statement k_tables(R"sql(
CREATE TABLE weir_schema (number $integer PRIMARY KEY);
CREATE TABLE weir_project (id $id, name $text NOT NULL UNIQUE);
CREATE TABLE weir_cell (id $id, name $text NOT NULL UNIQUE);
CREATE TABLE weir_metric (id $id, name $text NOT NULL, kind $text NOT NULL, unit $text NOT NULL,
  better $text NOT NULL, UNIQUE (name, kind, unit, better));
CREATE TABLE weir_place (id $id, digest $text NOT NULL UNIQUE, device_class $text NOT NULL,
  device_name $text NOT NULL, machine_class $text NOT NULL, machine_name $text NOT NULL,
  engine_build $text NOT NULL);
CREATE TABLE weir_run (id $id, project $integer NOT NULL, name $text NOT NULL, source $text NOT NULL,
  commit_name $text, branch $text, commit_time $real, dirty $integer NOT NULL, time $real NOT NULL,
  machine $text NOT NULL, weir_version $text NOT NULL, bytes $integer NOT NULL DEFAULT 0,
  UNIQUE (project, name));
CREATE INDEX weir_run_time ON weir_run (project, time);
CREATE TABLE weir_point (cell $integer NOT NULL, metric $integer NOT NULL, run $integer NOT NULL,
  place $integer NOT NULL, nature $integer NOT NULL, source $text NOT NULL, value $real NOT NULL,
  exact $text, samples $text, PRIMARY KEY (cell, metric, run)) $clustered;
CREATE INDEX weir_point_run ON weir_point (run);
CREATE TABLE weir_verdict (id $id, project $integer NOT NULL, name $text NOT NULL, run $text NOT NULL,
  commit_name $text, branch $text, time $real NOT NULL, kept_at $real NOT NULL, outcome $text NOT NULL,
  content $text NOT NULL, partial $integer NOT NULL, judged_here $integer NOT NULL,
  machine $text NOT NULL, UNIQUE (project, name, run));
CREATE INDEX weir_verdict_time ON weir_verdict (project, time);
CREATE INDEX weir_verdict_last ON weir_verdict
  (project, partial, machine, (COALESCE(branch, '')), time, judged_here, branch);
CREATE TABLE weir_acknowledgement (id $id, project $integer NOT NULL, digest $text NOT NULL,
  cell $text NOT NULL, metric $text NOT NULL, machine $text NOT NULL, kind $text NOT NULL,
  commit_name $text, time $real NOT NULL, reason $text NOT NULL, who $text NOT NULL, at $real NOT NULL,
  UNIQUE (project, digest));
CREATE TABLE weir_token (id $text PRIMARY KEY, hash $text NOT NULL, project $text NOT NULL,
  scopes $text NOT NULL, name $text NOT NULL, made_at $real NOT NULL, expires_at $real, revoked_at $real);
CREATE TABLE weir_upload (project $text NOT NULL, name $text NOT NULL, digest $text NOT NULL,
  answer $text NOT NULL, at $real NOT NULL, PRIMARY KEY (project, name));
CREATE INDEX weir_upload_at ON weir_upload (at);
CREATE TABLE weir_use (name $text NOT NULL, day $integer NOT NULL, bytes $integer NOT NULL,
  runs $integer NOT NULL, PRIMARY KEY (name, day));
CREATE TABLE weir_removed (project $text NOT NULL, name $text NOT NULL, who $text NOT NULL, at $real NOT NULL);
)sql");

// Returns true if the store's tables are there, false if it is empty. Fails with Code::config if
// they are of another schema.
Result<bool> check_schema(Database& database, const std::string& name) {
  WEIR_TRY(const bool has_store, database.has_store());
  if (!has_store) return false;
  std::int64_t number = 0;
  WEIR_CHECK(database.read("SELECT MAX(number) FROM weir_schema", {},
                           [&](const Row& row) { number = row.null(0) ? 0 : row.integer(0); }));
  if (number == k_schema) {
    WEIR_CHECK(database.check_tables(k_tables));
    return true;
  }
  return fail(Code::config,
              "{}: schema {} is not known: made by another version of weir. Name another store",
              name, number);
}

// Creates the tables of an empty store; does nothing if they are there.
Result<void> create_tables(Database& database, const std::string& name) {
  WEIR_TRY(bool has_schema, check_schema(database, name));
  if (has_schema) return {};
  Transaction transaction(database);
  WEIR_CHECK(transaction.begin(Database::Access::write));
  WEIR_TRY(has_schema, check_schema(database, name));  // somebody else may have been faster
  if (!has_schema) {
    WEIR_CHECK(database.script(k_tables));
    WEIR_CHECK(database.change("INSERT INTO weir_schema (number) VALUES ($1)", {k_schema}));
  }
  return transaction.commit();
}

}  // namespace

// Parses a file name or a PostgreSQL URL. Passwords are taken out of `shown`, the text for
// messages.
StoreAddress parse_address(const std::string& text) {
  StoreAddress address;
  address.target = Secret(text);
  for (const std::string_view scheme : k_schemes) {
    if (!text.starts_with(scheme)) continue;
    address.postgres = true;
    const std::string rest = text.substr(scheme.size());
    // A badly encoded password may contain a '?': look for it after the last '@'.
    const std::size_t at = rest.rfind('@');
    const std::size_t query_mark = rest.find('?', at == std::string::npos ? 0 : at);
    std::string authority = rest.substr(0, query_mark);
    extract_password(authority, address.passwords);
    address.shown = std::string(scheme) + authority;
    if (query_mark != std::string::npos) {
      std::string query = rest.substr(query_mark + 1);
      extract_query_passwords(query, address.passwords);
      if (!query.empty()) address.shown += "?" + query;
    }
    address.shown = text::printable(address.shown);
    return address;
  }
  address.shown = text::printable(text);
  return address;
}

// Replaces the placeholders of a script, such as $text, by a database's own types.
std::string expand_types(Statement script, const std::array<std::string_view, 5>& types) {
  constexpr std::array<std::string_view, 5> k_placeholders{"$id", "$text", "$real", "$integer",
                                                           "$clustered"};
  std::string text(script.text);
  for (std::size_t i = 0; i < k_placeholders.size(); ++i) {
    auto position = text.find(k_placeholders[i]);
    while (position != std::string::npos) {
      text.replace(position, k_placeholders[i].size(), types[i]);
      position = text.find(k_placeholders[i], position + types[i].size());
    }
  }
  return text;
}

Store::Store(std::unique_ptr<Database> database, std::string name)
    : database_(std::move(database)), name_(std::move(name)) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> open_store(const StoreAddress& address, const OpenOptions& options) {
  std::unique_ptr<Database> database;
  if (address.postgres) {
    WEIR_TRY(database, open_postgres(address, options));
  } else {
    WEIR_TRY(database, open_sqlite(address.target.reveal(), options));
  }
  WEIR_CHECK(create_tables(*database, address.shown));
  return std::make_unique<Store>(std::move(database), address.shown);
}

}  // namespace weir::history
