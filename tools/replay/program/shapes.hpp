// Do a node's shapes fit its op? Kernels trust that they do: one that is told otherwise reads and
// writes beyond its tensors. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gate/profile/replay.hpp"

namespace weir::replay {

// Of a type of ggml's: bytes of a block, elements in it. 0, 0: there is no such type.
struct TypeSize {
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
};

// Where a tensor ends in its root, counted from the root's begin; nothing where that is no number
// within bounds, or where the tensor is empty, has no whole blocks, or holds more than 16 times
// what its bytes are.
[[nodiscard]] std::optional<std::int64_t> end_of(const profile::ReplayTensor& tensor,
                                                 const TypeSize& type);

// "" where kernels of the op may trust the strides: numbers lie apart, and rows of a result lie
// behind each other, since some kernels write it as one run of bytes.
[[nodiscard]] std::string layout_problem(const std::string& op, const profile::ReplayTensor& tensor,
                                         const TypeSize& type);

// "" where they fit, else why they do not: "weir has no rule for the shapes of SSM_SCAN".
[[nodiscard]] std::string shape_problem(const profile::ReplayNode& node);
// Is there a rule for the op?
[[nodiscard]] bool has_rule(const std::string& op);

}  // namespace weir::replay
