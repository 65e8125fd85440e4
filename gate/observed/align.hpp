// Which op of the engine's graph each dispatch computes: the dispatches that one computation of a
// graph sent are laid beside the graph's nodes, in order. Pure.
//
// A kernel is known by what ggml's backends call it ("mul_mat_vec_f16_f32_f32" computes MUL_MAT,
// perhaps with the ADD behind it); some are part of another one's op ("fa_split_k_reduce"), and one
// that is called like an op ("scale_f32") computes it. Among all ways to lay the two sequences
// beside each other the one that leaves the fewest over is taken; what is left over is told, never
// forced.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gate/observed/timeline.hpp"

namespace weir::observed {

struct Aligned {
  // For each kernel the op it computes ("MUL_MAT_ADD", as ggml's maintainers name fusions), or "";
  // and the first of its nodes, or -1.
  std::vector<std::string> ops;
  std::vector<std::int64_t> nodes;
  std::vector<std::size_t> kernels_left;  // indices of those that belong to no node
  std::vector<std::size_t> nodes_left;
};

[[nodiscard]] Aligned align_sequences(const std::vector<std::string>& kernels,
                                      const std::vector<std::string>& ops);

// Sets `op` and `node` of every dispatch that can be told, and Timeline::alignment.
void align(Timeline& timeline);

}  // namespace weir::observed
