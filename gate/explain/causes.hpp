// Causes over the cells of a gate, made of their findings: one change of an engine that broke many
// cells is one. Pure.
#pragma once

#include "gate/verdict/verdict.hpp"

namespace weir::explain {

// What a finding is about, whatever types, sizes and numbers are in it.
struct Subject {
  std::string kind;
  std::string what;  // where the kind does not tell it: the memory, the system call, the rule
  // What its kernels and ops compute, the most telling first, each once; and how it spells them.
  std::vector<std::string> works, spelled;
  bool known = false;  // some of the works are ones that many engines have

  // Both may be the outcome of one change: the first of their works is the same, or half of all
  // are. Of work that moved between devices any op that both name is enough.
  [[nodiscard]] bool same_as(const Subject& other) const;
  friend bool operator==(const Subject&, const Subject&) = default;
};
[[nodiscard]] Subject subject_of(const verdict::Finding& finding);

// Fills causes and unexplained of `gate` from the findings of the cells that failed.
//
// Findings of several cells have one cause where they are of one kind, and the kernels and ops they
// name do the same work, whatever their types, sizes and numbers are. A finding makes a cause where
// it claims what failed and no finding before it did. What failed or is not decided and follows
// from no cause is unexplained.
void find_causes(verdict::GateVerdict& gate);

}  // namespace weir::explain
