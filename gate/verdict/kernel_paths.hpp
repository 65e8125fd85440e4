// Which kernels that changed do the work of others in their place. Used by this module alone.
//
// A total that falls says nothing of how: a lost tensor-core path may need fewer dispatches than
// the path itself did. What a kernel computes is read from its name (profile/kernel_name.hpp), what
// has to be computed from the engine's graph, where a probe saw it: an op that the graph asks for
// as often as before, and whose own kernels run less often, was fused into another kernel. As many
// small kernels as ops were fused, or are others in the graph, may be others than before; the rest
// of those that came for others of the same work are another path. Products and attention are never
// excused by what happened elsewhere. Pure.
#pragma once

#include "gate/verdict/judging.hpp"

namespace weir::verdict {

struct KernelPaths {
  // Work that other kernels do now -> how often: {"MUL_MAT": 25}.
  Numbers replaced;
  // Of fewer dispatches: kernels that came although the graph asks for no more of their work, or
  // for none such; products that it asks for, and no kernel computes by its name.
  std::vector<std::string> unexplained;
};

// `before` and `now`: ops that the graphs ask devices for; null where one of both is not known,
// which is taken as the same on both sides: then names alone tell a fusion. `fell`: there are fewer
// dispatches in all.
[[nodiscard]] KernelPaths paths_of(std::span<const Changed> kernels, const Numbers* before,
                                   const Numbers* now, bool fell);

// The same kernels, as an engine's releases name them (profile::lasting_name).
[[nodiscard]] bool only_renamed(std::span<const Changed> kernels);

}  // namespace weir::verdict
