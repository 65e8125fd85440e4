// One cell in Markdown: its name, its rows in the table, what stands below that. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "gate/verdict/verdict.hpp"

namespace weir::report {

inline constexpr std::size_t k_markdown_strip = 60;  // columns of a picture of ratios

// As code: "llama.cpp · tiny-llama · vulkan · decode".
[[nodiscard]] std::string markdown_cell_name(const verdict::CellVerdict& cell);
// The rows of one cell; its name stands in the first. "" where nothing needs a reader.
[[nodiscard]] std::string markdown_rows(const verdict::CellVerdict& cell);
// What stands below the table for one cell: kernels, functions, ops, reasons that numbers do not
// tell, pictures of ratios. `named`: each says which cell it is of.
[[nodiscard]] std::string markdown_below(const verdict::CellVerdict& cell, bool named);
// A cell that could not be measured, with its last words.
[[nodiscard]] std::string markdown_error(const verdict::CellVerdict& cell);

}  // namespace weir::report
