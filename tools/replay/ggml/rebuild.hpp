// A recorded node as a graph of the engine's ggml, with data of its own.
#pragma once

#include <memory>

#include "tools/replay/ggml/ggml.hpp"
#include "tools/replay/program/program.hpp"

namespace weir::replay {

// The node as often in one graph as copies_of() says. Its copies have weights of their own and
// share everything else, which in a step was written just before. Code::unavailable with why it is
// left out. `engine` outlives it.
[[nodiscard]] Result<std::unique_ptr<Work>> rebuilt(const Engine& engine,
                                                    const profile::ReplayNode& node,
                                                    const Wish& wish);

}  // namespace weir::replay
