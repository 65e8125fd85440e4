// What names and numbers of kernels say of work that left the device, or came back to it: told
// apart from work that other kernels do now. Used by this module alone.
#pragma once

#include <vector>

#include "gate/explain/patterns.hpp"

namespace weir::explain {

// `to_cpu`: the work left the device; else it came back, and all is the other way round.

// Many kinds of kernels run less often, products among them, and hardly one more often.
[[nodiscard]] bool broad_fall(const std::vector<Move>& kernels, bool to_cpu);

// The kernels that run less often, but for those that others took the place of.
[[nodiscard]] std::vector<const Move*> went_along(const std::vector<Move>& kernels, bool to_cpu);

// A kernel is gone altogether, no other kernel took its place, and hardly one came.
[[nodiscard]] bool plain_removal(const std::vector<Move>& kernels, bool to_cpu);

// Data crosses between the device and the CPU more often, and work is missing on the device.
//
// A step on the CPU is waited for; where memory is not shared, what it needs is copied down. A sum
// of dispatches tells little here, as fusions around the step come apart and others come about. So:
// fewer products and attentions, with hardly any new, whatever small kernels do beside them. Where
// these are as before, the small ones' own words have to fall with hardly one rising ("rope" moves
// from rope_set_rows to rope, "set" and "rows" are gone), and copies or many submissions have to be
// seen as well: a wait alone may be anyone's.
[[nodiscard]] bool step_in_between(const Differences& found, bool to_cpu);

}  // namespace weir::explain
