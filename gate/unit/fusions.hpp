// Sequences of ops that engines compute as one kernel, by the names of ggml's graph. Kernels are
// matched with ops by this table, and missing fusions found.
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
  bool needs_vector = false;          // only for matrix times vector: graphs of one row

  [[nodiscard]] std::string name() const;  // "RMS_NORM+MUL"
};

// Longer ones stand before those that they begin with.
[[nodiscard]] const std::vector<Fusion>& fusions();

// An op of a graph.
struct OpInRow {
  std::string_view op;
  bool follows = false;  // it takes the result of the op before it, on the same device
};

// Returns how often each fusion's ops follow each other, by its name. No op counts twice: the
// longest fusion wins. `one_row`: the graph computes one row, so that matrices are multiplied by a
// vector.
[[nodiscard]] std::map<std::string, std::int64_t> count_fusible_rows(std::span<const OpInRow> ops,
                                                                     bool one_row);

}  // namespace weir::unit
