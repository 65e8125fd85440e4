// Finds changed kernels that do the work of others in their place. Used by this module alone.
//
// A total that falls does not say why: a lost tensor-core path may need fewer dispatches than the
// path itself did. The name of a kernel says what it computes (profile/kernel_name.hpp). The
// engine's graph, where a probe saw it, says what has to be computed. An op that the graph asks for
// as often as before, and whose own kernels run less often, was fused into another kernel.
//
// As many small kernels may be others than before as ops were fused or are others in the graph. All
// further kernels that came for others of the same work are another path. Matrix multiplications
// and attention are never excused by what happened elsewhere. Pure.
#pragma once

#include "gate/verdict/judging.hpp"

namespace weir::verdict {

struct KernelPaths {
  // Work that other kernels do now -> how often: {"MUL_MAT": 25}.
  Numbers replaced;
  // Only with fewer dispatches: kernels that came although the graph asks for no more of their
  // work; matrix multiplications that it asks for, and no kernel computes by its name.
  std::vector<std::string> unexplained;
};

// `before` and `now`: the ops that the graphs ask devices for. Null if one of them is not known:
// then the graph is taken as unchanged, and names alone show a fusion. `fell`: there are fewer
// dispatches in all.
[[nodiscard]] KernelPaths find_kernel_paths(std::span<const Changed> kernels, const Numbers* before,
                                            const Numbers* now, bool fell);

// Returns true if the kernels are the same under an engine's new names (profile::lasting_name).
[[nodiscard]] bool only_renamed(std::span<const Changed> kernels);

}  // namespace weir::verdict
