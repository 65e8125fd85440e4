// Plain text in columns: wrapping, padding, cutting. Pure.
//
// Widths are in terminal columns, one a code point (text::columns). Hostile text goes through
// text::printable() or printable_line() before it comes here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace weir::report {

inline constexpr std::string_view k_minus = "\u2212";
inline constexpr std::string_view k_arrow = " \u2192 ";
inline constexpr std::string_view k_ellipsis = "\u2026";
inline constexpr std::string_view k_no_break = "\u00a0";  // wrap() keeps it together, shows a space

// Hostile text as one line: printable, every run of white space one space, at most `max_columns`
// code points (then it ends in "…").
[[nodiscard]] std::string printable_line(std::string_view text, std::size_t max_columns = 1000);

// Returns the last `max_lines` lines of hostile text within its last `max_bytes`, printable.
// Earlier lines that give the reason stay, see text::keep_last_lines(). A line "(120 earlier lines
// left out)" counts the others.
[[nodiscard]] std::vector<std::string> last_lines(std::string_view text, std::size_t max_lines,
                                                  std::size_t max_bytes = 8192);

// At most `max_columns` code points; cut text ends in "…".
[[nodiscard]] std::string clip(std::string_view utf8, std::size_t max_columns);
// Returns at most `max_columns` code points; longer text is cut in the middle.
[[nodiscard]] std::string clip_middle(std::string_view utf8, std::size_t max_columns,
                                      std::string_view mark = k_ellipsis);

// Returns true for a letter, a digit or '_' of ASCII.
[[nodiscard]] bool is_word_char(char c);

// A phrase that wrap() does not break: its spaces are k_no_break.
[[nodiscard]] std::string without_breaks(std::string_view phrase);

[[nodiscard]] std::string pad_right(std::string_view utf8, std::size_t width);
[[nodiscard]] std::string pad_left(std::string_view utf8, std::size_t width);

// Breaks `text` at spaces into lines of at most `width` columns. The first line starts with
// `first`, which is kept as it is; every further one with `indent` spaces, also after each '\n' in
// `text`. A word wider than a line is broken. Spaces within a line stay.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t width,
                                            std::string_view first, std::size_t indent);

// Returns the first `max_columns` items, and "and 3 more" in place of the others.
[[nodiscard]] std::vector<std::string> shortened(std::vector<std::string> all,
                                                 std::size_t max_items);

// A time of at least 0 as tables show it: "1.47 ms", "81.2 us", "2.60 s".
[[nodiscard]] std::string brief_time(double seconds);

// A part of a total as tables show it: "12.3 %"; "" for a total of 0.
[[nodiscard]] std::string show_share(double part, double total, int decimals = 1);

// About two digits, never as a power of ten: "0.52", "3.4", "117".
[[nodiscard]] std::string about_two_digits(double value);

// Columns of text under headings, two spaces apart, the last one not padded.
struct TextTable {
  std::vector<std::string> headings{};  // empty: none
  std::vector<bool> right_aligned{};    // by column, as numbers are; missing ones: false
  std::vector<std::vector<std::string>> rows{};
  std::vector<std::size_t> min_widths{};  // by column; missing ones: 0
  [[nodiscard]] std::vector<std::size_t> widths() const;
  [[nodiscard]] std::string str(std::size_t indent, std::size_t width) const;
};

// Returns the width of a terminal, but at least `least`.
[[nodiscard]] inline std::size_t columns_of(int width, int min_columns = 40) {
  return static_cast<std::size_t>(width < min_columns ? min_columns : width);
}

// Collects lines of terminal text. Colour is put around whole pieces after they are laid out, so
// that it never counts as width. No line of words is a command to a CI system. Not thread-safe;
// owned by one report.
class Page {
 public:
  Page(bool color, std::size_t width) : color_(color), width_(width) {}
  explicit Page(std::size_t width) : Page(false, width) {}

  void add_blank_line() { out_ += '\n'; }
  // Adds a blank line, but none at the beginning.
  void start_part() { out_ += out_.empty() ? "" : "\n"; }
  // Adds wrapped text; its further lines are indented by two columns.
  void add_text(std::string_view words) { add_indented(0, words); }
  template <typename First, typename... More>
  void add_text(fmt::format_string<First, More...> form, First&& first, More&&... more) {
    add_text(fmt::format(form, std::forward<First>(first), std::forward<More>(more)...));
  }
  // The same, but all lines are indented by `columns` more.
  void add_indented(std::size_t columns, std::string_view words);
  template <typename First, typename... More>
  void add_indented(std::size_t columns, fmt::format_string<First, More...> form, First&& first,
                    More&&... more) {
    add_indented(columns,
                 fmt::format(form, std::forward<First>(first), std::forward<More>(more)...));
  }
  // Adds lines that are laid out already.
  void add_lines(std::string_view lines) { out_ += lines; }
  void add_table(const TextTable& table, std::size_t indent = 2) {
    out_ += table.str(indent, width_);
  }
  // Adds the first `max_rows` rows, indented by two columns, and how many more --top shows.
  void add_first_rows(TextTable table, std::size_t max_rows);
  // Adds `first` and then `body`, wrapped, each in its colour.
  void add_paragraph(std::string_view first, std::string_view body, std::size_t indent,
                     std::string_view first_color = "", std::string_view body_color = "");
  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::string finish() { return std::move(out_); }

 private:
  [[nodiscard]] std::string paint(std::string_view text, std::string_view color) const;

  bool color_;
  std::size_t width_;
  std::string out_;
};

// SGR parameters.
inline constexpr std::string_view k_dim = "2";
inline constexpr std::string_view k_bold = "1";
}  // namespace weir::report
