// What the store numbers, read under a filter: shared by what reads a store. Used by this module
// alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gate/history/database.hpp"
#include "gate/history/store.hpp"

namespace weir::history {

template <class Value>
using ById = std::unordered_map<std::int64_t, Value>;

[[nodiscard]] bool fits(const std::vector<std::string>& globs, std::string_view name);
[[nodiscard]] bool fits(const Filter& filter, const std::string& project,
                        const std::optional<std::string>& branch, double time);

// As far as a filter wants it.
struct Named {
  ById<std::string> projects, cells;
  ById<Metric> metrics;
  ById<Place> places;
};
[[nodiscard]] Result<Named> read_names(Database& database, const Filter& filter);

struct NumberedRun {
  std::int64_t id = 0;
  RunFacts facts;
};
// By project, time, id.
[[nodiscard]] Result<std::vector<NumberedRun>> read_runs(Database& database, const Filter& filter,
                                                         const Named& named);

}  // namespace weir::history
