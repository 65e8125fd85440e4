// weir trend: its subcommands, and what they share: the store, filters, the order of commits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/flow/post.hpp"
#include "gate/history/changes.hpp"
#include "gate/history/documents.hpp"
#include "gate/history/order.hpp"
#include "gate/history/store.hpp"
#include "gate/publish/issues.hpp"

namespace weir::flow {
inline constexpr const char* k_default_history = ".weir/history.db";

struct StoreOptions {
  // A file or a URL; absent: WEIR_DB's value, else k_default_history.
  std::optional<std::string> db;
};

// Opens the store that the options name; with `create` it may be new. A password on the command
// line is Code::usage, as every user of the machine could read it.
[[nodiscard]] Result<std::unique_ptr<history::Store>> open_history(const Job& job,
                                                                   const StoreOptions& options,
                                                                   bool create);

// Opens the store together with the service's own tables.
[[nodiscard]] Result<std::unique_ptr<history::ServiceStore>> open_service_history(
    const Job& job, const StoreOptions& options, bool create);

// --project, --cell, --metric, --machine, --branch, --since, --until.
struct FilterOptions {
  history::Filter filter;
  std::optional<std::string> since, until;
};
// Parses the times of a filter; Code::usage for a bad one.
[[nodiscard]] Result<history::Filter> parse_filter(const FilterOptions& options);

// Returns the order of all commits in the repository around `folder`. Without a repository it is
// empty, and times decide.
[[nodiscard]] history::CommitOrder commit_order(const Job& job, const std::string& folder);

// Facts on the command line about imported runs. They override those in the files.
using TrendFacts = history::SenderFacts;

// One part of an import, stored as a whole or not at all.
struct TrendPart {
  std::string from;  // "weir-out/20261120-0930", for people
  history::Batch batch;
  std::vector<std::string> warnings;
};

// Reads a run's folder, its run.jsonl, or a verdict's file, with private names hidden. Code::usage
// for an interrupted run, as it can be resumed.
[[nodiscard]] Result<TrendPart> read_trend_part(const Job& job, const std::string& path,
                                                const TrendFacts& facts);

// A folder to import from. `config` lists the private names that baselines may contain; "" looks
// for weir.yaml in `folder` and above it, up to the top of the repository. Baselines without any
// are Code::config.
struct TrendFolder {
  std::string folder, config;
};
using TakePart = std::function<Result<void>(TrendPart)>;
using Warn = std::function<void(const std::string&)>;
// Reads all runs, verdicts and baselines below a folder, and passes each to `take`.
[[nodiscard]] Result<void> read_trend_parts(const Job& job, const TrendFolder& where,
                                            const TrendFacts& facts, const TakePart& take,
                                            const Warn& warn);

// Reads the baselines below `folder` from git's history. In trend_baselines.cpp.
[[nodiscard]] Result<void> read_baseline_parts(const Job& job, const TrendFolder& where,
                                               const TrendFacts& facts, const TakePart& take,
                                               const Warn& warn);

// Changes of a history.
using history::ChangedHistory, history::read_changes;

// Returns true if a nightly job has to report the change: not acknowledged, and for the worse or of
// unknown direction. A change of device or machine class alone says nothing about the engine.
[[nodiscard]] bool needs_report(const history::SeriesChange& change);

// The part of a history that a verb reads.
struct HistoryOptions {
  StoreOptions store;
  FilterOptions filter;
};

struct TrendExportOptions : HistoryOptions {
  std::optional<std::string> out;
};

struct TrendSiteOptions : HistoryOptions {
  std::string out, title;
  std::optional<std::string> repo, commit_changes;
  bool no_subjects = false;
};

struct TrendChangesOptions : HistoryOptions {
  std::string repository = ".";
  history::ChangeQuery wanted;
  bool all = false;
  std::string newer;
};

struct TrendAckOptions : HistoryOptions {
  std::string repository = ".";
  std::string commit, at, reason, who;
};

struct TrendNotifyOptions : HistoryOptions {
  std::string repository;  // "OWNER/NAME"; "": GITHUB_REPOSITORY
  GithubOptions access;
  bool dry_run = false;
  std::string checkout = ".", site_url, newer = "1440h";
  publish::IssueOptions issues;
};

struct TrendImportOptions {
  StoreOptions store;
  TrendFacts facts;
  std::optional<std::string> time;
  std::vector<std::string> runs, csv, json_lines;
  std::optional<std::string> from_dir;
  std::string config;
  bool project_given = false, each = false;
  std::size_t batch = 2000;  // runs in one transaction, at most
};

[[nodiscard]] Result<Answer> export_history(const Job& job, const TrendExportOptions& options);
[[nodiscard]] Result<Answer> list_history(const Job& job, const HistoryOptions& options);
[[nodiscard]] Result<Answer> write_trend_site(const Job& job, const TrendSiteOptions& options);
[[nodiscard]] Result<Answer> trend_changes(const Job& job, const TrendChangesOptions& options);
[[nodiscard]] Result<Answer> acknowledge_change(const Job& job, const TrendAckOptions& options);
// One issue on GitHub for each change that nobody has acknowledged.
[[nodiscard]] Result<Answer> notify_changes(const Job& job, const TrendNotifyOptions& options);
[[nodiscard]] Result<Answer> import_history(const Job& job, const TrendImportOptions& options);

}  // namespace weir::flow
