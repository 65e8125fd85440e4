// A report as a tree of parts: composed once (compose.hpp), shown by every format.
//
// All text is plain: a format escapes and wraps it. Text from outside has been through
// printable_line(), except words of several lines and `text`, which is raw. Parts point to
// judgements, which must outlive them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

// Readers of a part, one bit each: of a terminal, of a terminal with --verbose, of a comment, of a
// page.
using Readers = unsigned;
inline constexpr Readers k_brief = 1, k_verbose = 2, k_comment = 4, k_page = 8;
inline constexpr Readers k_terminal = k_brief | k_verbose;
inline constexpr Readers k_long = k_verbose | k_page;
inline constexpr Readers k_all = k_terminal | k_comment | k_page;

// Words within a line. `code` marks names of kernels, ops and cells.
struct Span {
  std::string text;
  bool code = false;
};
using Words = std::vector<Span>;
// Returns the text of all spans.
[[nodiscard]] std::string plain_text(const Words& words);

struct Part;
using Parts = std::vector<Part>;

// A row of a table of numbers; a part that does not apply is "".
struct Number {
  std::string label{};      // "dispatches/token"
  std::string base{};       // "65"; "" when there is nothing to compare with
  std::string candidate{};  // "77"; "" when it was not measured
  std::string change{};     // "+12"; "−2.4 % (−4.1 … −0.6)"; "" when nothing changed
  std::string evidence{};   // "14 pairs", "10 runs, 3 stored runs"
  std::string limit{};      // "must not change", "may drop 5 %"
  std::string where{};      // "in 20 of 40 cells"
  std::string why{};        // reason that numbers and limit do not show
  std::optional<verdict::Outcome> outcome{};  // absent in the table of a cause
  Readers readers = k_all;
  Parts below;  // kernels that add up to it, ratios of its pairs

  // True if base and candidate are both there and are shown as different numbers.
  [[nodiscard]] bool differs() const;
  // "65 → 77", "65 → not measured"; the candidate alone where there is nothing to compare with.
  [[nodiscard]] std::string from_to() const;
  // Joins change, evidence, limit and where with commas.
  [[nodiscard]] std::string parts() const;
};
// Returns false if the row has nothing but a reason and cells.
[[nodiscard]] bool has_numbers(const Number& number);

struct Part {
  enum class Kind {
    section,       // head, parts
    fold,          // a section that only the readers in `open` see opened
    paragraph,     // head: words
    list,          // head, items
    changes,       // head: items, which are short: "+12 mul_f32"
    numbers,       // numbers, under the label `head`
    table,         // columns and rows; a column title that begins with '#' is of numbers
    preformatted,  // text; the last lines are shown
    ratios,        // ratios of the pairs of `judged`
    figure,        // data for gate/web
  };
  Kind kind = Kind::paragraph;
  Readers readers = k_all;
  std::optional<verdict::Outcome> outcome{};  // in a section's head
  std::string tag{};                          // at a terminal's margin, in the outcome's place
  Words head{};
  Readers titled = k_all;  // readers of the head
  Readers open = 0;
  std::string in{};  // the cells it holds for: "in 1 of 3 (tiny / vulkan)"; "" for all
  Words words{};
  bool soft = false;
  Parts parts{};
  std::vector<Words> items{};
  std::vector<Number> numbers{};
  std::vector<std::string> columns{};
  std::vector<std::vector<Words>> rows{};
  std::string text{};
  const verdict::Judgement* judged = nullptr;
  Json data{};
  // The most parts, items or numbers that a brief reader gets; 0: all. The rest is counted with
  // `noun`: "and 3 more causes".
  std::size_t max_shown = 0;
  std::string noun{};
  std::size_t cell_count =
      0;                  // number of cells in a section: counted where there is no room for it
  bool has_room = false;  // room is reserved for it before other parts
};

// Returns `text` as one span that is no code.
[[nodiscard]] Words plain(std::string text);
// A head of "" is none. `soft` text is dimmed.
[[nodiscard]] Part paragraph(std::string head, std::string words, bool soft = false);
[[nodiscard]] Part section(Words head, Parts parts = {});
[[nodiscard]] Part fold(Words head, Parts parts, Readers open = 0);
[[nodiscard]] Part list(std::string head, const std::vector<std::string>& lines);
[[nodiscard]] Part number_table(std::string label, std::vector<Number> numbers,
                                std::size_t max_shown = 0);
[[nodiscard]] Part shown_to(Readers readers, Part part);

}  // namespace weir::report
