#include "gate/app/trend.hpp"

#include "gate/app/version.hpp"
#include "gate/base/text.hpp"
#include "gate/history/history.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {
namespace {

// The folder that histories lie in by default is nobody's to commit.
void keep_out_of_git(const std::string& database) {
  sys::RealFiles files;
  const std::string folder = sys::folder_of(database);
  if (sys::file_name_of(folder) != ".weir") return;
  const std::string ignore = sys::join_path(folder, ".gitignore");
  if (files.kind(folder) == sys::Kind::folder && !files.exists(ignore)) {
    (void)files.write_atomic(ignore, "*\n");
  }
}

Result<std::optional<double>> time_given(const char* option,
                                         const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const auto time = history::parse_time(*text);
  if (time) return time;
  return fail(Code::usage, "{} {}: no time: 2026-11-20, 2026-11-20T09:30:15Z or Unix seconds",
              option, text::printable(*text));
}

}  // namespace

void add_store_options(CLI::App& verb, StoreOptions& options) {
  verb.add_option("--db", options.db,
                  fmt::format("The history: a file, or a URL of PostgreSQL (default: WEIR_DB's\n"
                              "value, else {}). A password belongs into WEIR_DB,\n"
                              "PGPASSWORD or ~/.pgpass, not here",
                              k_default_history))
      ->type_name("FILE|URL");
}

namespace {

// Opens what the options name by `open` (open_store, open_service_store).
template <class Open>
auto open_by(const Open& open, const StoreOptions& options, bool create)
    -> decltype(open(history::StoreAddress(), history::OpenOptions())) {
  std::string where = options.db.value_or("");
  if (options.db && where.empty()) return fail(Code::usage, "--db needs a file or a URL");
  if (!options.db) {
    where = sys::environment_value("WEIR_DB").value_or("");
    if (where.empty()) where = k_default_history;
  }
  const history::StoreAddress address = history::parse_address(where);
  if (options.db && address.has_password()) {
    return fail(Code::usage,
                "--db {}: every user of this machine can read a password on a command line: put "
                "the URL into WEIR_DB, or the password into PGPASSWORD or ~/.pgpass",
                address.shown);
  }
  auto store = open(address, history::OpenOptions{.create = create,
                                                  .wait_seconds = 30,
                                                  .program = fmt::format("weir {}", k_version)});
  if (store && !address.postgres && create) keep_out_of_git(sys::absolute(where));
  return store;
}

}  // namespace

Result<std::unique_ptr<history::Store>> open_history(const StoreOptions& options, bool create) {
  return open_by(history::open_store, options, create);
}

Result<std::unique_ptr<history::ServiceStore>> open_service_history(const StoreOptions& options,
                                                                    bool create) {
  return open_by(history::open_service_store, options, create);
}

void add_filter_options(CLI::App& verb, FilterOptions& options) {
  history::Filter& filter = options.filter;
  verb.add_option("--project", filter.project, "Of this project alone")->type_name("NAME");
  const auto globs = [&](const char* name, std::vector<std::string>& into, const char* what) {
    verb.add_option(name, into, what)->type_name("GLOB")->allow_extra_args(false);
  };
  globs("--cell", filter.cells, "Cells that match ('*' crosses '/'); repeatable");
  globs("--metric", filter.metrics, "Metrics that match; repeatable");
  globs("--machine", filter.machines, "Machines that match; repeatable");
  verb.add_option("--branch", filter.branch, "Runs of this branch")->type_name("NAME");
  verb.add_option("--since", options.since, "Runs measured then or later")->type_name("TIME");
  verb.add_option("--until", options.until, "Runs measured then or before")->type_name("TIME");
}

Result<history::Filter> filter_of(const FilterOptions& options) {
  history::Filter filter = options.filter;
  WEIR_TRY(filter.since, time_given("--since", options.since));
  WEIR_TRY(filter.until, time_given("--until", options.until));
  return filter;
}

history::CommitOrder commit_order(const std::string& folder) {
  const auto repository = Repository::around(sys::absolute(folder));
  if (!repository) return {};
  auto commits = (*repository)->git().all_commits();
  return commits ? history::CommitOrder(*std::move(commits)) : history::CommitOrder();
}

}  // namespace weir::app
