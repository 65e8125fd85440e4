// The comparison of two profiles for people: ops that are new, gone, slower, or called more often.
// Judges nothing. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "gate/base/json.hpp"
#include "gate/explain/compare.hpp"

namespace weir::report {

struct CompareStyle {
  bool color = false;
  int width = 80;
  std::size_t max_rows = 10;  // in each section
};

// No line is wider than `width` (at least 60). Names from outside are made printable.
[[nodiscard]] std::string compare_text(std::span<const explain::Comparison> comparisons,
                                       const CompareStyle& style);

// The same as GitHub Markdown, inert as markdown.hpp has it, at most `limit` bytes.
[[nodiscard]] std::string compare_markdown(std::span<const explain::Comparison> comparisons,
                                           std::size_t max_rows, std::size_t limit);

// {"schema": "weir.comparison/1", "comparisons": [...]}
[[nodiscard]] Json compare_json(std::span<const explain::Comparison> comparisons);

}  // namespace weir::report
