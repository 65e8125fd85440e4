// Ops in a row that engines compute as one kernel, by the names of ggml's graph. The one table of
// them: kernels are laid beside ops by it, and missing fusions found.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::unit {

struct Fusion {
  std::vector<std::string_view> ops;  // each takes the result of the one before; views left out
  std::string_view kernel;            // how ggml's kernels for it begin: "rms_norm_mul"
  bool of_a_vector = false;           // matrices by one vector alone: graphs of one row

  [[nodiscard]] std::string name() const;  // "RMS_NORM+MUL"
};

// Longer ones stand before those that they begin with.
[[nodiscard]] const std::vector<Fusion>& fusions();

// An op of a graph.
struct OpInRow {
  std::string_view op;
  bool follows = false;  // it takes the result of the op before it, on the same device
};

// How often each fusion's ops stand in a row, by its name. No op counts twice: the longest row
// wins. `one_row`: the graph computes one row, so that matrices are multiplied by a vector.
[[nodiscard]] std::map<std::string, std::int64_t> fusible_rows(std::span<const OpInRow> ops,
                                                               bool one_row);

}  // namespace weir::unit
