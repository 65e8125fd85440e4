// What explains a cell's differences, as a verdict carries it: made by explain, shown by reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gate/base/json_fwd.hpp"
#include "gate/base/rational.hpp"
#include "gate/base/result.hpp"

namespace weir::verdict {

// Names in it (of ops, kernels, tensors) come from engines and models: hostile until escaped.
struct Finding {
  std::string kind;                       // "fusion_lost": see docs/explain.md
  std::string metric;                     // full name; "" where it is about none
  std::optional<Rational> delta;          // of that metric, where it is a count
  std::optional<std::int64_t> per_layer;  // delta = per_layer x layers, where that fits
  std::vector<std::int64_t> layers;       // from 0
  std::vector<std::string> tensors;       // patterns that tell these layers apart; empty: none do
  std::vector<std::string> ops;           // ops and kernels that it is about, the largest first
  std::string headline;                   // one sentence
  std::vector<std::string> lines;         // the arithmetic, a line each
  std::string cause, look_at;             // "" where there is nothing to add
  bool also = false;                      // another reading of what a finding before it explains
  double score = 0;                       // 0 to 1: share of all differences that it explains

  [[nodiscard]] std::string text() const;  // headline and lines

  friend bool operator==(const Finding&, const Finding&) = default;
};

void fields(Fields& io, Finding& finding);

}  // namespace weir::verdict
