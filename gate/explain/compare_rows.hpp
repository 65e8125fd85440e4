// A profile's work as rows that can be matched. Used by this module alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/explain/compare.hpp"
#include "gate/explain/observed_rows.hpp"
#include "gate/explain/roles.hpp"

namespace weir::explain {

// Work of one name, type, shape and backend.
struct WorkRow {
  std::string kind;  // of a trace what is no work of a device: "wait"; else ""
  Role role;
  std::string name, type, shape, backend;
  std::optional<double> calls, seconds;  // per unit
};

struct WorkRows {
  ComparedSide side;
  std::string per;  // "token", "prefill", "" of all
  std::vector<WorkRow> rows;
  std::vector<MetricChange> metrics;  // with `a` filled in
  std::vector<std::string> doubts;
};

// Names go by kernel where both sides tell kernels, else by op.
enum class Naming { kernel, op };

[[nodiscard]] bool tells_kernels(const observed::Observed& observed);
[[nodiscard]] WorkRows work_rows(const observed::Observed& observed, const Shared& shared,
                                 Naming naming);
[[nodiscard]] WorkRows work_rows(const profile::Profile& profile);

}  // namespace weir::explain
