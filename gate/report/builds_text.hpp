// The text and JSON of `weir kernels OLD NEW`: what the kernels of two builds cost. Pure; symbols
// are made inert.
#pragma once

#include <functional>

#include "gate/base/json_fwd.hpp"
#include "gate/profile/build_changes.hpp"

namespace weir::report {

struct BuildComparison {
  std::string base, now;  // as they were named
  std::vector<profile::TargetChanges> targets;
  std::vector<profile::FigureLimit> limits;
  std::size_t unread_base = 0, unread_now = 0;  // pieces of code
  // Returns a symbol as people read it.
  std::function<std::string(const std::string&)> readable;
};

// Returns the number of kernels that break a limit.
[[nodiscard]] std::size_t count_broken(const BuildComparison& comparison);

[[nodiscard]] std::string builds_text(const BuildComparison& comparison, int width,
                                      std::size_t max_rows);
[[nodiscard]] Json builds_json(const BuildComparison& comparison);  // weir.kernels/1

}  // namespace weir::report
