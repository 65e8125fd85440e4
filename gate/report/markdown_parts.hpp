// What a report in Markdown is put together from: the first line, cells, what to do next, the foot.
// Used by markdown.cpp alone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gate/report/formats.hpp"

namespace weir::report {

inline constexpr std::size_t k_markdown_strip = 60;  // columns of a picture of ratios

// A link to the run, or `text` alone where there is no plain https address.
[[nodiscard]] std::string markdown_run_link(const MarkdownStyle& style, std::string_view text);

// "### ❌ weir: 1 of 8 cells broke a limit · …", shortened to about `most` bytes.
[[nodiscard]] std::string markdown_heading(const Document& document, const MarkdownStyle& style,
                                           std::size_t most);
// Commands, one a line; "" where there are none or they take more than `most` bytes.
[[nodiscard]] std::string markdown_next(const Document& document, const MarkdownStyle& style,
                                        std::size_t most);
// Commits, the base and where it came from, devices, the machine; at most `most` bytes, which
// shall be 300 or more.
[[nodiscard]] std::string markdown_foot(const Document& document, const MarkdownStyle& style,
                                        std::size_t most);

// How cells are named throughout one report: without the engine where all have the same.
struct CellNames {
  bool engine = true;
};
[[nodiscard]] CellNames cell_names(const Document& document);
// As code: "tiny-llama · vulkan · decode".
[[nodiscard]] std::string markdown_cell_name(const CellDocument& cell, CellNames names);

// The rows of a block; its cells stand in the first. "" where nothing needs a reader.
[[nodiscard]] std::string markdown_rows(const Block& block, const Document& document,
                                        CellNames names);

// What stands below the table: kernels, functions, ops, reasons that numbers do not tell, pictures
// of ratios. Cells of which the same is to be said share a paragraph.
struct Paragraph {
  std::string what;    // "Kernels per token": Markdown, without a mark at its end
  std::string text;    // Markdown within a line
  std::string behind;  // a block of code, or ""
  std::vector<const CellDocument*> cells;

  [[nodiscard]] bool says_as(const Paragraph& other) const {
    return what == other.what && text == other.text && behind == other.behind;
  }
};
[[nodiscard]] std::vector<Paragraph> markdown_paragraphs(const Block& block);

// The last words of a cell's engine, folded away under `title`; "" where there are none.
[[nodiscard]] std::string markdown_last_words(const CellDocument& cell, std::string_view title);

}  // namespace weir::report
