// Causes over the cells of a gate, made of their findings: one change of an engine that broke many
// cells is one. Pure.
#pragma once

#include "gate/verdict/verdict.hpp"

namespace weir::explain {

// Fills causes and unexplained of `gate` from the findings of the cells that failed.
//
// Findings of several cells have one cause where they are of one kind, and the kernels and ops they
// name do the same work, whatever their types, sizes and numbers are. A finding makes a cause where
// it claims what failed and no finding before it did. What failed or is not decided and follows
// from no cause is unexplained.
void find_causes(verdict::GateVerdict& gate);

}  // namespace weir::explain
