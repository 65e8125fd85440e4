// Makes printed text fit to be read by lines, and scans single lines.
#include "gate/adapters/printed.hpp"

#include <algorithm>

#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && text::is_digit(text[end])) ++end;
  return end - at;
}

// Returns the length of a log prefix such as "0.03.330.279 I " at `at`: minutes, seconds, ms, µs
// and a level. 0 if there is none.
std::size_t log_prefix_at(std::string_view text, std::size_t at) {
  const std::size_t minutes = digits_at(text, at);
  if (minutes == 0 || minutes > 6) return 0;
  const std::string_view rest = text.substr(at + minutes, 14);
  if (rest.size() < 14 || !text::has_form(rest.substr(0, 12), ".00.000.000 ")) return 0;
  if (std::string_view("DIWE").find(rest[12]) == std::string_view::npos || rest[13] != ' ')
    return 0;
  return minutes + rest.size();
}

// Returns the end of the ANSI sequence that begins at `at` with ESC.
std::size_t skip_escape(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  if (end >= text.size() || text[end] != '[') return end;
  ++end;
  while (end < text.size() && !(text[end] >= '@' && text[end] <= '~') && text[end] != '\n') ++end;
  return end < text.size() && text[end] != '\n' ? end + 1 : end;
}

// Returns `text` without ANSI sequences and log prefixes, and with "\n" at every line's end.
std::string clean_text(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  bool after_digit = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\x1B') {
      at = skip_escape(text, at);
      continue;
    }
    if (c == '\r') {
      const bool ends_line = at + 1 < text.size() && text[at + 1] == '\n';
      if (!ends_line) clean += '\n';
      ++at;
      continue;
    }
    if (text::is_digit(c) && !after_digit) {
      if (const std::size_t prefix = log_prefix_at(text, at); prefix > 0) {
        at += prefix;
        continue;
      }
    }
    after_digit = text::is_digit(c);
    clean += c;
    ++at;
  }
  return clean;
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

namespace {

constexpr std::size_t k_max_lines_bytes = std::size_t{64} << 20;

bool holds_at_ends(std::string_view text, std::string_view part) {
  constexpr std::size_t k_end = std::size_t{1} << 20;
  if (text.size() <= k_max_lines_bytes) return text.find(part) != std::string_view::npos;
  return text.substr(0, k_end).find(part) != std::string_view::npos ||
         text.substr(text.size() - k_end).find(part) != std::string_view::npos;
}

}  // namespace

Printed::Printed(const Document& document)
    : out_decoded_(text::decoded(document.out)),
      err_decoded_(text::decoded(document.err)),
      document_{out_decoded_ ? *out_decoded_ : document.out,
                err_decoded_ ? *err_decoded_ : document.err, document.name},
      out_text_(document_.out.size() > k_max_lines_bytes ? "" : clean_text(document_.out)),
      err_text_(clean_text(document_.err)),
      out_(split_lines(out_text_)),
      err_(split_lines(err_text_)),
      lines_(out_) {
  lines_.insert(lines_.end(), err_.begin(), err_.end());
  const std::string& last = out_text_.empty() ? err_text_ : out_text_;
  lacks_final_newline_ = !last.empty() && last.back() != '\n';
}

bool Printed::may_be_cut(std::string_view line) const {
  const auto& last = out_.empty() ? err_ : out_;
  return lacks_final_newline_ && !last.empty() && line.data() == last.back().data();
}

bool Printed::begins(std::string_view text) const {
  return std::ranges::any_of(
      lines_, [&](std::string_view line) { return LineScanner(line).skip_prefix(text); });
}

bool Printed::holds(std::string_view text) const {
  return holds_at_ends(document_.out, text) || holds_at_ends(document_.err, text);
}

// Reads a number whose '.' and ',' are decimal marks or separate thousands: "1234.5", "1.234,5",
// "1,234,567".
std::optional<double> printed_number(std::string_view text) {
  if (text.empty() || text.size() > 64) return std::nullopt;
  const std::size_t last_mark = text.find_last_of(".,");
  if (last_mark == std::string_view::npos) return text::to_double(text);
  const char mark = text[last_mark];
  const bool is_separator = text.find(mark) != last_mark;  // "1,234,567": thousands
  const char other_mark = mark == '.' ? ',' : '.';
  if (is_separator && text.find(other_mark) != std::string_view::npos) return std::nullopt;
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '.' && text[i] != ',') {
      plain += text[i];
    } else if (i == last_mark && !is_separator) {
      plain += '.';
    } else if (digits_at(text, i + 1) != 3) {
      return std::nullopt;  // a separator of thousands has three digits after it
    }
  }
  return text::to_double(plain);
}

std::string display_text(std::string_view text, std::size_t most) {
  std::string shown = text::printable(text.substr(0, most));
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  std::replace(shown.begin(), shown.end(), '\t', ' ');
  return std::string(text::trim(shown));
}

bool is_op_name(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || text::is_digit(c) || c == '_';
  });
}

std::string_view LineScanner::skip_blanks() const {
  return rest_.substr(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
}

// Takes the text of `form` up to its next "{}", and removes both from `form`.
bool LineScanner::match_text(std::string_view& form) {
  const std::size_t value = std::min(form.find("{}"), form.size());
  std::string_view text = text::trim(form.substr(0, value));
  form.remove_prefix(std::min(value + 2, form.size()));
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("  "), text.size());
    if (!skip_prefix(text.substr(0, end))) return false;
    text = text::trim(text.substr(end));
  }
  return true;
}

bool LineScanner::parse_value(std::string_view& form, double& value) {
  const auto parsed = match_text(form) ? number() : std::nullopt;
  value = parsed.value_or(0);
  return parsed.has_value();
}

bool LineScanner::parse_value(std::string_view& form, std::int64_t& value) {
  const auto parsed = match_text(form) ? integer() : std::nullopt;
  value = parsed.value_or(0);
  return parsed.has_value();
}

bool LineScanner::parse_value(std::string_view& form, std::string_view& value) {
  if (!match_text(form)) return false;
  const bool to_blank = form.empty() || form.front() == ' ';
  const std::size_t end = std::min({form.find("  "), form.find("{}"), form.size()});
  const auto text = to_blank ? word() : read_until(form.substr(0, end));
  if (!to_blank) form.remove_prefix(end);
  value = text.value_or("");
  return text.has_value();
}

bool LineScanner::skip_prefix(std::string_view literal) {
  const std::string_view text = skip_blanks();
  const bool fits = text.starts_with(literal);
  if (fits) rest_ = text.substr(literal.size());
  return fits;
}

// Reads a number like "-1.5", "1,234" or "2e+06" after blanks, and moves on behind it.
std::optional<double> LineScanner::number() {
  const std::string_view text = skip_blanks();
  std::size_t end = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  while (end < text.size() && (text::is_digit(text[end]) || text[end] == '.' || text[end] == ','))
    ++end;
  if (end > 0 && end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    std::size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    if (const std::size_t width = digits_at(text, exponent); width > 0) end = exponent + width;
  }
  // A mark at the end belongs to the sentence.
  while (end > 0 && (text[end - 1] == ',' || text[end - 1] == '.')) --end;
  const auto value = printed_number(text.substr(0, end));
  if (value) rest_ = text.substr(end);
  return value;
}

std::optional<std::int64_t> LineScanner::integer() {
  const std::string_view text = skip_blanks();
  const std::size_t width = digits_at(text, 0);
  const auto value = text::to_int(text.substr(0, width));
  if (value) rest_ = text.substr(width);
  return value;
}

std::optional<std::string_view> LineScanner::word() {
  const std::string_view text = skip_blanks();
  if (text.empty()) return std::nullopt;
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  rest_ = text.substr(word.size());
  return word;
}

std::optional<std::string_view> LineScanner::read_up_to(std::size_t at, std::string_view mark) {
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = rest_.substr(0, at);
  rest_.remove_prefix(at + mark.size());
  return text::trim(before);
}

std::string_view LineScanner::rest() const { return text::trim(rest_); }

}  // namespace weir::adapters
