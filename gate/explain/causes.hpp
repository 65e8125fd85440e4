// Causes over the cells of a gate, made from their findings: one change of an engine that broke
// many cells is one cause. Pure.
#pragma once

#include "gate/verdict/verdict.hpp"

namespace weir::explain {

// The subject of a finding, regardless of types, sizes and numbers.
struct Subject {
  std::string kind;
  std::string what;  // the memory, system call or rule, if the kind does not say it; else ""
  // The work of its kernels and ops, the most telling first, each once; and how the finding spells
  // it.
  std::vector<std::string> works, spelled;
  bool is_known = false;  // some of the works are known ones that many engines have

  // Returns true if both may be the outcome of one change: their first work is the same, or half of
  // all are. For work that moved between devices one op that both name is enough.
  [[nodiscard]] bool same_as(const Subject& other) const;
  friend bool operator==(const Subject&, const Subject&) = default;
};
[[nodiscard]] Subject finding_subject(const verdict::Finding& finding);

// Fills causes and unexplained of `gate` from the findings of the cells that failed.
// Findings of several cells have one cause if they are of one kind and their kernels and ops do the
// same work, regardless of types, sizes and numbers. A finding makes a cause if it claims a failure
// that no finding before it claims. Judgements that failed or are inconclusive and follow from no
// cause are unexplained.
// from no cause is unexplained.
void find_causes(verdict::GateVerdict& gate);

}  // namespace weir::explain
