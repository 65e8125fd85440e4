// What the subcommands of weir trend share: which store, which project, which commits are known.
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

// The store those name. `create`: it may be new. A password on the command line is Code::usage:
// every user of the machine could read it.
[[nodiscard]] Result<std::unique_ptr<history::Store>> open_history(const Job& job,
                                                                   const StoreOptions& options,
                                                                   bool create);

// The same with what the service keeps beside it.
[[nodiscard]] Result<std::unique_ptr<history::ServiceStore>> open_service_history(
    const Job& job, const StoreOptions& options, bool create);

// --project, --cell, --metric, --machine, --branch, --since, --until.
struct FilterOptions {
  history::Filter filter;
  std::optional<std::string> since, until;
};
// Code::usage where a time is none.
[[nodiscard]] Result<history::Filter> filter_of(const FilterOptions& options);

// The order of all commits of the repository that `folder` lies in; where there is none, nothing
// is known, and everything goes by time.
[[nodiscard]] history::CommitOrder commit_order(const Job& job, const std::string& folder);

// Where runs of a history come from: folders of runs, verdicts, baselines in git.
// What the command line says of what is imported; it goes before what the files say.
using TrendFacts = history::GivenFacts;

// One thing to be kept, all of it or nothing.
struct TrendPart {
  std::string from;  // "weir-out/20261120-0930", for people
  history::Batch batch;
  std::vector<std::string> warnings;
};

// A run's folder, its run.jsonl, or a verdict's file: what is private in a run's configuration has
// aliases there. A run that was cut off is Code::usage: it can be gone on with.
[[nodiscard]] Result<TrendPart> trend_part_of(const Job& job, const std::string& path,
                                              const TrendFacts& facts);

// All runs, verdicts and (with git's history of them) baselines below `folder`, one after the
// other. `config` is the one whose private names baselines may hold; "" looks for weir.yaml in
// `folder` and above it, up to the top of the repository. Without any, baselines are Code::config.
struct TrendFolder {
  std::string folder, config;
};
using TakePart = std::function<Result<void>(TrendPart)>;
using Warn = std::function<void(const std::string&)>;
[[nodiscard]] Result<void> trend_parts_below(const Job& job, const TrendFolder& where,
                                             const TrendFacts& facts, const TakePart& take,
                                             const Warn& warn);

// Of trend_baselines.cpp: those that git knows below `folder`.
[[nodiscard]] Result<void> trend_parts_of_baselines(const Job& job, const TrendFolder& where,
                                                    const TrendFacts& facts, const TakePart& take,
                                                    const Warn& warn);

// Changes of a history, as verbs read and tell them.
using history::ChangedHistory, history::read_changes;

// Whether a nightly job has to say it: nobody has acknowledged it, and it is for the worse, or
// which way is worse is not known. Another device or machine class alone is no news of the engine.
[[nodiscard]] bool is_change_to_tell(const history::SeriesChange& change);

// What of a history a verb looks at.
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
  history::ChangesWanted wanted;
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
[[nodiscard]] Result<Answer> import_history(const Job& job, const TrendImportOptions& asked);

}  // namespace weir::flow
