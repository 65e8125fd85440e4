// Ops in a row that engines compute as one kernel: did they, in one profile?
#pragma once

#include "gate/profile/profile.hpp"

namespace weir::explain {

// By the names of kernels and how often each ran. Nothing is called apart that its kernels do not
// show: what ran alone may be an op that stands in no such row.
struct Fusible {
  struct Row {
    std::string ops;  // "RMS_NORM+MUL"
    Rational times;   // a unit
  };
  // Most often first.
  std::vector<Row> separate;  // at least so often
  Rational saved;             // dispatches a unit, at least, if those were one kernel each
  std::vector<Row> joined;    // all of them
  std::vector<Row> unclear;   // names do not show it
  std::string unknown;        // why nothing is known, one line; "" where something is
};

[[nodiscard]] Fusible find_fusible(const profile::Profile& profile);

}  // namespace weir::explain
