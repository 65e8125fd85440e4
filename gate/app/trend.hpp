// What the subcommands of weir trend share: which store, which project, which commits are known.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/app/command_line.hpp"
#include "gate/app/repository.hpp"
#include "gate/history/order.hpp"
#include "gate/history/store.hpp"

namespace weir::app {

inline constexpr const char* k_default_history = ".weir/history.db";

struct StoreOptions {
  // A file or a URL; absent: WEIR_DB's value, else k_default_history.
  std::optional<std::string> db;
};
void add_store_options(CLI::App& verb, StoreOptions& options);

// The store those name. `create`: it may be new. A password on the command line is Code::usage:
// every user of the machine could read it.
[[nodiscard]] Result<std::unique_ptr<history::Store>> open_history(const StoreOptions& options,
                                                                   bool create);

// The same with what the service keeps beside it.
[[nodiscard]] Result<std::unique_ptr<history::ServiceStore>> open_service_history(
    const StoreOptions& options, bool create);

// --project, --cell, --metric, --machine, --branch, --since, --until.
struct FilterOptions {
  history::Filter filter;
  std::optional<std::string> since, until;
};
void add_filter_options(CLI::App& verb, FilterOptions& options);
// Code::usage where a time is none.
[[nodiscard]] Result<history::Filter> filter_of(const FilterOptions& options);

// The order of all commits of the repository that `folder` lies in; where there is none, nothing
// is known, and everything goes by time.
[[nodiscard]] history::CommitOrder commit_order(const std::string& folder);

// One function a subcommand.
void add_trend_import(CLI::App& trend);
void add_trend_export(CLI::App& trend);
void add_trend_list(CLI::App& trend);
void add_trend_changes(CLI::App& trend);
void add_trend_ack(CLI::App& trend);
void add_trend_notify(CLI::App& trend);
void add_trend_site(CLI::App& trend);

}  // namespace weir::app
