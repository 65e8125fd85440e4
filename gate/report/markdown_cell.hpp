// One cell in Markdown: its name, its rows in the table, what stands below that. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gate/verdict/verdict.hpp"

namespace weir::report {

inline constexpr std::size_t k_markdown_strip = 60;  // columns of a picture of ratios

// How cells are named throughout one report: without the engine where all have the same.
struct CellNames {
  bool engine = true;
};
[[nodiscard]] CellNames cell_names(const verdict::GateVerdict& gate);
// As code: "tiny-llama · vulkan · decode".
[[nodiscard]] std::string markdown_cell_name(const verdict::CellVerdict& cell, CellNames names);

// The rows of one cell; its name stands in the first. "" where nothing needs a reader.
[[nodiscard]] std::string markdown_rows(const verdict::CellVerdict& cell, CellNames names);

// What stands below the table for one cell: kernels, functions, ops, reasons that numbers do not
// tell, pictures of ratios. Cells of which the same is to be said share a paragraph.
struct Paragraph {
  std::string what;    // "Kernels per token": Markdown, without a mark at its end
  std::string text;    // Markdown within a line
  std::string behind;  // a block of code, or ""
};
[[nodiscard]] std::vector<Paragraph> markdown_paragraphs(const verdict::CellVerdict& cell);

// The last words of a cell's engine, folded away under `title`; "" where there are none.
[[nodiscard]] std::string markdown_last_words(const verdict::CellVerdict& cell,
                                              std::string_view title);

}  // namespace weir::report
