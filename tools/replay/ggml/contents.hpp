// What the tensors of a recorded node hold when it is computed again: random weights that ggml
// itself quantizes, places that are there, masks as open as the recorded ones were.
#pragma once

#include <string>

#include "gate/profile/replay.hpp"

#include "tools/replay/ggml/ggml.hpp"

namespace weir::replay {

// Places and masks have values of their own: in bytes that another tensor looks at they would be
// whatever that one holds. "" where they have, else what is wrong.
[[nodiscard]] std::string places_problem(const profile::ReplayNode& node,
                                         const profile::ReplayTensor& tensor);

// The bytes of a root that are there: from `begin` to `end`, counted from where it begins itself.
struct RootMemory {
  char* at;
  std::int64_t begin, end;
};
// Writes what the first source holds that looks at the root; what is only written stays as it is.
// REQUIRES: tensors that lie within it.
[[nodiscard]] Result<void> fill(const Engine& ggml, const profile::ReplayNode& node,
                                std::size_t root, double mask_open, const RootMemory& memory);

}  // namespace weir::replay
