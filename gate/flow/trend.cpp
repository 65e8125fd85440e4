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

// The folder that histories lie in by default is nobody's to commit.
void keep_out_of_git(sys::Files& files, const std::string& database) {
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

// Opens what the options name by `open` (open_store, open_service_store).
template <class Open>
auto open_by(const Open& open, const Job& job, const StoreOptions& options, bool create)
    -> decltype(open(history::StoreAddress(), history::OpenOptions())) {
  std::string where = options.db ? *options.db : job.variable("WEIR_DB");
  if (options.db && where.empty()) return fail(Code::usage, "--db needs a file or a URL");
  if (where.empty()) where = k_default_history;
  const history::StoreAddress address = history::parse_address(where);
  if (options.db && address.has_password()) {
    return fail(Code::usage,
                "--db {}: every user of this machine can read a password on a command line: put "
                "the URL into WEIR_DB, or the password into PGPASSWORD or ~/.pgpass",
                address.shown);
  }
  auto store = open(address, history::OpenOptions{.create = create});
  if (store && !address.postgres && create) keep_out_of_git(job.files(), sys::absolute(where));
  return store;
}

}  // namespace

Result<std::unique_ptr<history::Store>> open_history(const Job& job, const StoreOptions& options,
                                                     bool create) {
  return open_by(history::open_store, job, options, create);
}

Result<std::unique_ptr<history::ServiceStore>> open_service_history(const Job& job,
                                                                    const StoreOptions& options,
                                                                    bool create) {
  return open_by(history::open_service_store, job, options, create);
}

Result<history::Filter> filter_of(const FilterOptions& options) {
  history::Filter filter = options.filter;
  WEIR_TRY(filter.since, time_given("--since", options.since));
  WEIR_TRY(filter.until, time_given("--until", options.until));
  return filter;
}

history::CommitOrder commit_order(const Job& job, const std::string& folder) {
  const auto repository = Repository::around(job.world, sys::absolute(folder));
  if (!repository) return {};
  auto commits = (*repository)->git().all_commits();
  return commits ? history::CommitOrder(*std::move(commits)) : history::CommitOrder();
}

namespace {

Result<void> write_all_of(history::Store& store, const history::Filter& filter,
                          const std::function<Result<void>(std::string)>& write) {
  WEIR_CHECK(write(history::first_line() + "\n"));
  history::Takes takes;
  takes.run = [&](const history::Run& run) { return write(history::line_of(run) + "\n"); };
  takes.acknowledgement = [&](const history::Acknowledgement& one) {
    return write(history::line_of(one) + "\n");
  };
  // A verdict holds all cells of its gate: it does not belong to a part of them.
  if (filter.cells.empty() && filter.metrics.empty() && filter.machines.empty()) {
    takes.verdict = [&](const history::StoredVerdict& one) {
      return write(history::line_of(one) + "\n");
    };
  }
  return store.all(filter, takes);
}

}  // namespace

Result<Answer> export_history(const Job& job, const TrendExportOptions& options) {
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  WEIR_TRY(const auto store, open_history(job, options.store, false));
  if (options.out && *options.out != "-") {
    WEIR_TRY(sys::FileWriter writer, sys::FileWriter::create(*options.out));
    WEIR_CHECK(
        write_all_of(*store, filter, [&](const std::string& line) { return writer.write(line); }));
    WEIR_CHECK(writer.finish());
    return Answer{};
  }
  WEIR_CHECK(write_all_of(*store, filter, [](const std::string& line) -> Result<void> {
    if (std::fwrite(line.data(), 1, line.size(), stdout) == line.size()) return {};
    return fail(Code::io, "standard output cannot be written to");
  }));
  if (std::fflush(stdout) != 0) return fail(Code::io, "standard output cannot be written to");
  return Answer{};
}

Result<Answer> list_history(const Job& job, const HistoryOptions& options) {
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  WEIR_TRY(const auto store, open_history(job, options.store, false));
  WEIR_TRY(const auto series, store->summaries(filter));
  constexpr std::size_t k_one_line = 1 << 20;  // a series, however long its names
  report::TextTable table{
      .head = {"PROJECT", "CELL", "METRIC", "POINTS", "FIRST", "LAST", "MACHINE"}};
  Json json = Json::array();
  for (const history::SeriesSummary& one : series) {
    table.rows.push_back({one.project, one.cell, one.metric.name, fmt::format("{}", one.points),
                          sys::date_of(one.first), sys::date_of(one.last), one.machine});
    json.push_back({{"project", one.project},
                    {"cell", one.cell},
                    {"metric", one.metric.name},
                    {"machine", one.machine},
                    {"points", one.points},
                    {"first", sys::time_of(one.first)},
                    {"last", sys::time_of(one.last)}});
  }
  return Answer{series.empty() ? fmt::format("{}: nothing kept{}\n", store->name(),
                                             filter.cells.empty() ? "" : " of such cells")
                               : table.str(0, k_one_line),
                document(json)};
}

namespace {
// Of the repository at hand, none is no fault: what the runs name, not all that it has.
std::map<std::string, std::string> subjects_of(const Job& job, const history::History& history) {
  std::map<std::string, std::string> all, some;
  if (const auto repository = Repository::around(job.world, sys::absolute("."))) {
    all = (*repository)->git().subjects().value_or(all);
  }
  for (const history::RunFacts& run : history.runs) {
    if (!run.commit || some.contains(*run.commit)) continue;
    // A commit may be named by its first digits.
    const auto at = all.lower_bound(*run.commit);
    if (at != all.end() && at->first.starts_with(*run.commit))
      some.emplace(*run.commit, at->second);
  }
  return some;
}

}  // namespace

Result<Answer> write_trend_site(const Job& job, const TrendSiteOptions& options) {
  site::SiteModel model;
  model.title = options.title;
  if (options.repo)
    WEIR_SET(model.repo_url, site::repo_url(*options.repo).map_error(in_context("--repo-url")));
  if (options.commit_changes) {
    WEIR_TRY(const std::string text,
             job.files().read(*options.commit_changes, site::k_largest_changes));
    WEIR_SET(model.commit_changes,
             site::read_commit_changes(text).map_error(in_context(*options.commit_changes)));
  }
  WEIR_TRY(const std::string pages, site::find_pages(job.files(), sys::own_program()));
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  WEIR_TRY(const auto store, open_history(job, options.store, false));
  WEIR_TRY(ChangedHistory read,
           read_changes(*store, filter, commit_order(job, sys::absolute(".")), {}));
  model.changes = site::site_changes(read.history, read.changes);
  model.history = std::move(read.history);
  WEIR_TRY(model.verdicts, store->verdicts(filter));
  if (!options.no_subjects) model.subjects = subjects_of(job, model.history);
  const site::Site site(std::move(model));
  WEIR_TRY(const site::SiteWritten written,
           site::write_site(job.files(), pages, site, options.out));
  return Answer{text::printable(fmt::format("{}: {} files written, {} as they were, {} removed\n",
                                            sys::join_path(options.out, "index.html"),
                                            written.written, written.same, written.removed))};
}

}  // namespace weir::flow
