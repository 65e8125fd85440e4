// A report as a tree of parts: composed once (compose.hpp), shown by every format.
//
// All text is plain: a format escapes and wraps it. Text from outside has been through one_line(),
// but for words of several lines and `text`, which is raw. Refers to judgements, which have to
// stay.
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

// Words within a line. Code: names of kernels, ops and cells.
struct Span {
  std::string text;
  bool code = false;
};
using Words = std::vector<Span>;
// Without marks.
[[nodiscard]] std::string plain_words(const Words& words);

struct Part;
using Parts = std::vector<Part>;

// A row of a table of numbers; a part that does not apply is "".
struct Number {
  std::string label;                          // "dispatches/token"
  std::string base, now, change;              // "65", "77", "+12"
  std::string evidence, limit, where;         // "14 pairs", "must not change", "in 20 of 40 cells"
  std::string why;                            // where numbers and limit do not say it all
  std::optional<verdict::Outcome> outcome{};  // absent of a cause's
  Readers readers = k_all;
  Parts below;  // kernels that add up to it, ratios of its pairs
};

// Else it has nothing but its reason.
[[nodiscard]] inline bool says_numbers(const Number& one) {
  return !one.base.empty() || !one.now.empty() || !one.change.empty() || !one.evidence.empty();
}

struct Part {
  enum class Kind {
    section,       // head, parts
    fold,          // a section that is shut but for the readers of `open`
    paragraph,     // head: words
    list,          // head, items
    changes,       // head: items, which are short: "+12 mul_f32"
    numbers,       // numbers, under the label `head`
    table,         // columns, of which those that begin with '#' are of numbers; rows
    preformatted,  // text, of which the last lines stay
    ratios,        // of the pairs of `judged`
    figure,        // data for gate/web
  };
  Kind kind = Kind::paragraph;
  Readers readers = k_all;
  std::optional<verdict::Outcome> outcome{};  // in a section's head
  std::string tag{};                          // at a terminal's margin, in the outcome's place
  Words head{};
  Readers titled = k_all;  // those who read the head
  Readers open = 0;
  std::string in{};  // cells that it holds for: "in 1 of 3 (tiny / vulkan)"; "" of all
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
  // Of parts, items or numbers: so many for a brief reader, and "and 3 more causes".
  std::size_t most = 0;  // 0: all
  std::string noun{};
  std::size_t cells = 0;  // that a section speaks of: counted where there is no room for it
  bool kept = false;      // has room in any case
};

}  // namespace weir::report
