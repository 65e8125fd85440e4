// Phrases that the forms of a comparison of profiles share. Used by report alone.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gate/explain/compare.hpp"

namespace weir::report {

struct CompareSection {
  explain::Shift change;
  std::string_view title;
};
// In the order in which they are told.
inline constexpr std::array k_compare_sections{
    CompareSection{explain::Shift::fresh, "new"},
    CompareSection{explain::Shift::gone, "gone"},
    CompareSection{explain::Shift::slower, "slower, each call"},
    CompareSection{explain::Shift::more_calls, "called more often"},
    CompareSection{explain::Shift::fewer_calls, "called less often"},
    CompareSection{explain::Shift::faster, "faster, each call"},
    CompareSection{explain::Shift::same, "same"},
};

// Columns that any row fills in; the others are left out.
struct CompareColumns {
  bool times = false, calls = false;
  bool backends = false;  // not all the work of both sides is on one
};
[[nodiscard]] CompareColumns compare_columns(const explain::Comparison& comparison);

// Time on A, on B, their ratio, calls on A, on B: those of `columns`; "" where absent.
[[nodiscard]] std::vector<std::string> compare_cells(const explain::OpChange& op,
                                                     const CompareColumns& columns);
[[nodiscard]] std::vector<std::string> compare_head(const CompareColumns& columns);

// "MUL_MAT (ffn) 256x256,256->256, q4_0 → q8_0, Vulkan0 → CPU"; hostile names made printable.
[[nodiscard]] std::string compare_what(const explain::OpChange& op, const CompareColumns& columns);

// "old.txt: llama.cpp · Vulkan (vk-perf-logger)".
[[nodiscard]] std::string compare_side(const explain::ComparedSide& side);
// "Decoding, a token (of 2 and 2). All ops: 44.9 ms → 43.2 ms, 0.96×."
[[nodiscard]] std::string compare_basis(const explain::Comparison& comparison);

[[nodiscard]] std::string ratio_words(double ratio);  // "0.96×"

struct MetricRow {
  std::string name, a, b, ratio;
};
// Those that both sides tell; where none is, those of either.
[[nodiscard]] std::vector<MetricRow> compare_metrics(const explain::Comparison& comparison);

}  // namespace weir::report
