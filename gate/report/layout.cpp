// Lays out plain text in columns: wraps, pads, cuts and colours it.
#include "gate/report/layout.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/ending.hpp"
#include "gate/base/text.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {

namespace {

// Returns the byte at which code point number `count` starts, or the size.
std::size_t byte_offset(std::string_view utf8, std::size_t count) {
  std::size_t at = 0;
  while (at < utf8.size() && count > 0) {
    ++at;
    while (at < utf8.size() && (static_cast<unsigned char>(utf8[at]) & 0xC0U) == 0x80U) ++at;
    --count;
  }
  return at;
}

std::string_view without_trailing_spaces(std::string_view line) {
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

// Fills the lines of a paragraph word by word.
class Filler {
 public:
  Filler(std::size_t width, std::string_view first, std::size_t indent)
      : width_(width), indent_(indent), line_(first), start_(first.size()) {}

  // Adds a word after `spaces`, on a new line if it doesn't fit; a word wider than a line is
  // broken.
  void word(std::string_view spaces, std::string_view word) {
    const bool at_start = line_.size() == start_;
    const std::size_t gap = at_start ? 0 : spaces.size();
    if (text::columns(line_) + gap + text::columns(word) > width_ && !blank()) end_line();
    if (line_.size() != start_) line_ += spaces;
    while (text::columns(line_) + text::columns(word) > width_) {
      const std::size_t room = width_ - std::min(width_ - 1, text::columns(line_));
      const std::size_t cut = byte_offset(word, room);
      line_ += word.substr(0, cut);
      word.remove_prefix(cut);
      end_line();
    }
    line_ += word;
  }
  void end_line() {
    done_.emplace_back(without_trailing_spaces(line_));
    line_.assign(indent_, ' ');
    start_ = line_.size();
  }
  std::vector<std::string> finish() {
    done_.emplace_back(without_trailing_spaces(line_));
    for (std::string& line : done_) replace_no_breaks(line);
    return std::move(done_);
  }

 private:
  [[nodiscard]] bool blank() const { return without_trailing_spaces(line_).empty(); }
  // Replaces each k_no_break, which held words together while lines were filled, by a space.
  static void replace_no_breaks(std::string& line) {
    for (std::size_t at = line.find(k_no_break); at != std::string::npos;
         at = line.find(k_no_break, at + 1)) {
      line.replace(at, k_no_break.size(), " ");
    }
  }

  std::size_t width_, indent_;
  std::string line_;
  std::size_t start_;  // index of the first word of this line
  std::vector<std::string> done_;
};

}  // namespace

std::string clip(std::string_view utf8, std::size_t max_columns) {
  if (text::columns(utf8) <= max_columns) return std::string(utf8);
  if (max_columns == 0) return "";
  return std::string(utf8.substr(0, byte_offset(utf8, max_columns - 1))) + std::string(k_ellipsis);
}

std::string clip_middle(std::string_view utf8, std::size_t max_columns, std::string_view mark) {
  const std::size_t size = text::columns(utf8);
  if (size <= max_columns || max_columns < 3) return std::string(utf8);
  const std::size_t head = (max_columns - 1) / 2;
  const std::size_t tail = max_columns - 1 - head;
  return fmt::format("{}{}{}", utf8.substr(0, byte_offset(utf8, head)), mark,
                     utf8.substr(byte_offset(utf8, size - tail)));
}

// Returns hostile text as one printable line of at most `max_columns` characters, with "…" if it
// was cut.
std::string printable_line(std::string_view text, std::size_t max_columns) {
  // Cut bytes first: an engine may write megabytes, and only `most` code points are shown.
  const std::string clean =
      text::printable(text.substr(0, std::min(text.size(), max_columns * 8 + 8)));
  std::string line;
  for (const char c : clean) {
    if (c == '\n' || c == '\t' || c == ' ') {
      if (!line.empty() && line.back() != ' ') line += ' ';
    } else {
      line += c;
    }
  }
  return clip(without_trailing_spaces(line), max_columns);
}

// Returns the last `max_lines` lines of hostile text, printable, with earlier ones that seem to
// give a reason.
std::vector<std::string> last_lines(std::string_view text, std::size_t max_lines,
                                    std::size_t max_bytes) {
  std::string_view tail = text;
  if (tail.size() > max_bytes) tail = tail.substr(tail.size() - max_bytes);
  std::vector<std::string> lines = text::lines(text::printable(tail));
  for (std::string& line : lines) std::ranges::replace(line, '\t', ' ');
  while (!lines.empty() && text::trim(lines.back()).empty()) lines.pop_back();
  const std::size_t line_count = lines.size();
  const std::size_t reason_count = text::keep_last_lines(lines, max_lines);
  const auto lines_before =
      std::count(text.begin(), text.end() - static_cast<std::ptrdiff_t>(tail.size()), '\n');
  const std::size_t left_out = line_count - lines.size() + static_cast<std::size_t>(lines_before);
  if (left_out > 0) {
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(reason_count),
                 fmt::format("({} left out)", text::plural(left_out, "earlier line")));
  }
  return lines;
}

bool is_word_char(char c) { return text::is_alphanumeric(c) || c == '_'; }

std::string without_breaks(std::string_view phrase) {
  std::string out;
  for (const char c : phrase) out += c == ' ' ? k_no_break : std::string_view(&c, 1);
  return out;
}

std::string pad_right(std::string_view utf8, std::size_t width) {
  const std::size_t size = text::columns(utf8);
  return std::string(utf8) + std::string(size < width ? width - size : 0, ' ');
}

std::string pad_left(std::string_view utf8, std::size_t width) {
  const std::size_t size = text::columns(utf8);
  return std::string(size < width ? width - size : 0, ' ') + std::string(utf8);
}

// Breaks text at spaces into lines of at most `width` columns. The first line begins with `first`,
// later ones with `indent` spaces.
std::vector<std::string> wrap(std::string_view text, std::size_t width, std::string_view first,
                              std::size_t indent) {
  width = std::max<std::size_t>(width, indent + 10);
  Filler filler(width, first, indent);
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '\n') {
      filler.end_line();
      ++at;
      continue;
    }
    const std::size_t begin = std::min(text.find_first_not_of(' ', at), text.size());
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    if (begin < end) filler.word(text.substr(at, begin - at), text.substr(begin, end - begin));
    at = end;
  }
  return filler.finish();
}

std::vector<std::string> shortened(std::vector<std::string> all, std::size_t max_items) {
  if (all.size() > max_items) {
    all[max_items] = fmt::format("and {} more", all.size() - max_items);
    all.resize(max_items + 1);
  }
  return all;
}

std::string about_two_digits(double value) {
  return std::fabs(value) < 10 ? fmt::format("{:.2g}", value) : fmt::format("{:.0f}", value);
}

std::string show_share(double part, double total, int decimals) {
  return total > 0 ? unit::percent(part / total, decimals) : "";
}

std::string brief_time(double seconds) {
  if (!(seconds < 1e6)) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> out = min_widths;
  const auto widen = [&](const std::vector<std::string>& row) {
    out.resize(std::max(out.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) out[i] = std::max(out[i], text::columns(row[i]));
  };
  widen(headings);
  for (const std::vector<std::string>& row : rows) widen(row);
  return out;
}

// Returns the table with aligned columns: numbers to the right, all else to the left. The last
// column wraps at `width`.
std::string TextTable::str(std::size_t indent, std::size_t width) const {
  const std::vector<std::size_t> column_widths = widths();
  std::string out;
  const auto add_row = [&](const std::vector<std::string>& row) {
    std::string other_columns(indent, ' ');
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const bool is_number = i < right_aligned.size() && right_aligned[i];
      other_columns +=
          is_number ? pad_left(row[i], column_widths[i]) : pad_right(row[i], column_widths[i]);
      other_columns += "  ";
    }
    // The last column wraps below the others.
    for (const std::string& line :
         wrap(row.empty() ? "" : row.back(), width, other_columns, indent + 4)) {
      out += line + "\n";
    }
  };
  if (!headings.empty()) add_row(headings);
  for (const auto& row : rows) add_row(row);
  return out;
}

void Page::add_indented(std::size_t columns, std::string_view words) {
  add_paragraph(std::string(columns, ' '), words, columns + 2);
}

void Page::add_first_rows(TextTable all, std::size_t max_rows) {
  const std::size_t number = all.rows.size();
  all.rows.resize(std::min(number, max_rows));
  add_table(all);
  if (number > max_rows)
    add_indented(2, "and {} more (--top {} shows them)", number - max_rows, number);
}

// Adds `first` and then `body`, wrapped, each in its colour.
void Page::add_paragraph(std::string_view first, std::string_view body, std::size_t indent,
                         std::string_view first_color, std::string_view body_color) {
  bool is_first_line = true;
  for (std::string& line : wrap(body, width_, first, indent)) {
    line = text::neutralize_ci_commands(line);  // the text may come from an engine
    const std::size_t first_length = is_first_line ? std::min(first.size(), line.size()) : 0;
    out_ += paint(std::string_view(line).substr(0, first_length), first_color);
    out_ += paint(std::string_view(line).substr(first_length), body_color);
    out_ += '\n';
    is_first_line = false;
  }
}

std::string Page::paint(std::string_view text, std::string_view color) const {
  if (!color_ || color.empty()) return std::string(text);
  // Leave spaces at both ends uncoloured: a theme may underline or invert coloured text.
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::string(text);
  const std::size_t end = text.find_last_not_of(' ') + 1;
  return fmt::format("{}\x1b[{}m{}\x1b[0m{}", text.substr(0, begin), color,
                     text.substr(begin, end - begin), text.substr(end));
}

}  // namespace weir::report
