// weir trend: opens the store of a history, lists and exports it, and writes its pages.
#include "gate/flow/trend.hpp"

#include <cstdio>

#include "gate/base/text.hpp"
#include "gate/flow/repository.hpp"
#include "gate/history/history.hpp"
#include "gate/history/json_lines.hpp"
#include "gate/report/layout.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::flow {
namespace {

// Adds a .gitignore to the default folder of histories, so that nobody commits a database.
void ignore_in_git(sys::Files& files, const std::string& database) {
  const std::string folder = sys::folder_of(database);
  if (sys::file_name_of(folder) != ".weir") return;
  const std::string ignore = sys::join_path(folder, ".gitignore");
  if (files.kind(folder) == sys::Kind::folder && !files.exists(ignore)) {
    (void)files.write_atomic(ignore, "*\n");
  }
}

// Parses the time that an option gives; nothing without the option. Code::usage for a bad time.
Result<std::optional<double>> parse_time_option(const char* option,
                                                const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const auto time = history::parse_time(*text);
  if (time) return time;
  return fail(Code::usage, "{} {}: no time: 2026-11-20, 2026-11-20T09:30:15Z or Unix seconds",
              option, text::printable(*text));
}

// Opens the store that --db or WEIR_DB names, by `open` (open_store, open_service_store).
template <class Open>
auto open_store_with(const Open& open, const Job& job, const StoreOptions& options,
                     const history::OpenOptions& how)
    -> decltype(open(history::StoreAddress(), how)) {
  std::string address_text = options.db ? *options.db : job.variable("WEIR_DB");
  if (options.db && address_text.empty()) return fail(Code::usage, "--db needs a file or a URL");
  if (address_text.empty()) address_text = k_default_history;
  const history::StoreAddress address = history::parse_address(address_text);
  if (options.db && address.has_password()) {
    return fail(Code::usage,
                "--db {}: every user of this machine can read a password on a command line: put "
                "the URL into WEIR_DB, or the password into PGPASSWORD or ~/.pgpass",
                address.shown);
  }
  auto store = open(address, how);
  if (store && !address.postgres && how.create)
    ignore_in_git(job.files(), sys::absolute(address_text));
  return store;
}

}  // namespace

Result<std::unique_ptr<history::Store>> open_history(const Job& job, const StoreOptions& options,
                                                     bool create) {
  return open_store_with(history::open_store, job, options, {.create = create});
}

Result<std::unique_ptr<history::ServiceStore>> open_service_history(const Job& job,
                                                                    const StoreOptions& options,
                                                                    bool create) {
  constexpr std::int64_t k_cache_bytes = std::int64_t{2} << 20;  // the service has many of them
  return open_store_with(history::open_service_store, job, options,
                         {.create = create, .cache_bytes = k_cache_bytes});
}

Result<history::Filter> parse_filter(const FilterOptions& options) {
  history::Filter filter = options.filter;
  WEIR_TRY(filter.since, parse_time_option("--since", options.since));
  WEIR_TRY(filter.until, parse_time_option("--until", options.until));
  return filter;
}

history::CommitOrder commit_order(const Job& job, const std::string& folder) {
  const auto repository = Repository::containing(job.world, sys::absolute(folder));
  if (!repository) return {};
  auto commits = (*repository)->git().all_commits();
  return commits ? history::CommitOrder(*std::move(commits)) : history::CommitOrder();
}

namespace {

// Writes the history as JSON lines, one item at a time.
Result<void> write_history(history::Store& store, const history::Filter& filter,
                           const std::function<Result<void>(std::string)>& write) {
  WEIR_CHECK(write(history::first_line() + "\n"));
  history::EntryHandlers handlers;
  handlers.run = [&](const history::Run& run) { return write(history::line_of(run) + "\n"); };
  handlers.acknowledgement = [&](const history::Acknowledgement& acknowledgement) {
    return write(history::line_of(acknowledgement) + "\n");
  };
  // A verdict holds all cells of its gate, so it is left out of an export of some cells.
  if (filter.cells.empty() && filter.metrics.empty() && filter.machines.empty()) {
    handlers.verdict = [&](const history::StoredVerdict& stored_verdict) {
      return write(history::line_of(stored_verdict) + "\n");
    };
  }
  return store.all(filter, handlers);
}

}  // namespace

// Writes the history as JSON lines to a file or to standard output.
Result<Answer> export_history(const Job& job, const TrendExportOptions& options) {
  WEIR_TRY(const history::Filter filter, parse_filter(options.filter));
  WEIR_TRY(const auto store, open_history(job, options.store, /*create=*/false));
  if (options.out && *options.out != "-") {
    WEIR_TRY(sys::FileWriter writer, sys::FileWriter::create(*options.out));
    WEIR_CHECK(
        write_history(*store, filter, [&](const std::string& line) { return writer.write(line); }));
    WEIR_CHECK(writer.finish());
    return Answer{};
  }
  WEIR_CHECK(write_history(*store, filter, [](const std::string& line) -> Result<void> {
    if (std::fwrite(line.data(), 1, line.size(), stdout) == line.size()) return {};
    return fail(Code::io, "standard output cannot be written to");
  }));
  if (std::fflush(stdout) != 0) return fail(Code::io, "standard output cannot be written to");
  return Answer{};
}

// Lists the series of the history: points, first and last day, machine.
Result<Answer> list_history(const Job& job, const HistoryOptions& options) {
  WEIR_TRY(const history::Filter filter, parse_filter(options.filter));
  WEIR_TRY(const auto store, open_history(job, options.store, /*create=*/false));
  WEIR_TRY(const auto series, store->summaries(filter));
  constexpr std::size_t k_one_line = 1 << 20;  // a series, however long its names
  report::TextTable table{
      .headings = {"PROJECT", "CELL", "METRIC", "POINTS", "FIRST", "LAST", "MACHINE"}};
  Json json = Json::array();
  for (const history::SeriesSummary& summary : series) {
    table.rows.push_back({summary.project, summary.cell, summary.metric.name,
                          fmt::format("{}", summary.points), sys::date_of(summary.first),
                          sys::date_of(summary.last), summary.machine});
    json.push_back({{"project", summary.project},
                    {"cell", summary.cell},
                    {"metric", summary.metric.name},
                    {"machine", summary.machine},
                    {"points", summary.points},
                    {"first", sys::time_of(summary.first)},
                    {"last", sys::time_of(summary.last)}});
  }
  if (!series.empty()) return Answer{table.str(0, k_one_line), json_document(json)};
  const char* which = filter.cells.empty() ? "" : " of such cells";
  return Answer{fmt::format("{}: nothing kept{}\n", store->name(), which), json_document(json)};
}

namespace {
// Returns the subjects (first message lines) of the commits that the runs name. Empty if no
// repository is here.
std::map<std::string, std::string> read_subjects(const Job& job, const history::History& history) {
  std::map<std::string, std::string> subjects, used;
  if (const auto repository = Repository::containing(job.world, sys::absolute("."))) {
    if (auto read = (*repository)->git().subjects()) subjects = *std::move(read);
  }
  for (const history::RunFacts& run : history.runs) {
    if (!run.commit || used.contains(*run.commit)) continue;
    // A commit may be named by its first digits.
    const auto subject = subjects.lower_bound(*run.commit);
    if (subject != subjects.end() && subject->first.starts_with(*run.commit))
      used.emplace(*run.commit, subject->second);
  }
  return used;
}

}  // namespace

// Writes the pages of the history as files, with its changes and the subjects of commits.
Result<Answer> write_trend_site(const Job& job, const TrendSiteOptions& options) {
  site::SiteModel model;
  model.title = options.title;
  if (options.repo)
    WEIR_TRY_SET(model.repo_url,
                 site::repo_url(*options.repo).map_error(with_prefix("--repo-url")));
  if (options.commit_changes) {
    WEIR_TRY(const std::string text,
             job.files().read(*options.commit_changes, site::k_largest_changes));
    WEIR_TRY_SET(model.commit_changes,
                 site::read_commit_changes(text).map_error(with_prefix(*options.commit_changes)));
  }
  WEIR_TRY(const std::string pages, site::find_pages(job.files(), sys::own_program_path()));
  WEIR_TRY(const history::Filter filter, parse_filter(options.filter));
  WEIR_TRY(const auto store, open_history(job, options.store, /*create=*/false));
  WEIR_TRY(ChangedHistory changed,
           read_changes(*store, filter, commit_order(job, sys::absolute(".")), {}));
  model.changes = site::site_changes(changed.history, changed.changes);
  model.history = std::move(changed.history);
  WEIR_TRY(model.verdicts, store->verdicts(filter));
  if (!options.no_subjects) model.subjects = read_subjects(job, model.history);
  const site::Site site(std::move(model));
  WEIR_TRY(const site::SiteWritten written,
           site::write_site(job.files(), pages, site, options.out));
  return Answer{text::printable(fmt::format("{}: {} files written, {} as they were, {} removed\n",
                                            sys::join_path(options.out, "index.html"),
                                            written.written, written.same, written.removed))};
}

}  // namespace weir::flow
