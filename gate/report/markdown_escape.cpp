#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/markdown.hpp"

namespace weir::report {
namespace {

// GitHub finds mentions, issues and bare links in the finished text, where a backslash is gone
// already. A space of no width between their parts is the only thing that stops them.
constexpr std::string_view k_zero_width = "\u200b";

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

bool starts_with_any_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && text::lower(text.substr(0, lower.size())) == lower;
}

}  // namespace

std::string markdown_text(std::string_view text, std::size_t most) {
  const std::string line = one_line(text, most);
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const std::string_view rest = std::string_view(line).substr(i);
    // "://" and "www." start a link, "GH-1" names an issue.
    if (c == ':' && rest.starts_with("://")) {
      out += fmt::format(":{}", k_zero_width);
    } else if (starts_with_any_case(rest, "www.")) {
      out += fmt::format("{}{}", rest.substr(0, 3), k_zero_width);
      i += 2;
    } else if (starts_with_any_case(rest, "gh-")) {
      out += fmt::format("{}{}", rest.substr(0, 2), k_zero_width);
      i += 1;
    } else if (c == '@' || c == '#') {
      out += fmt::format("\\{}{}", c, k_zero_width);
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (std::string_view("\\`*_[]|~^$!{}").find(c) != std::string_view::npos) {
      out += fmt::format("\\{}", c);
    } else if (i == 0 && (c == '-' || c == '+' || c == '=')) {
      out += fmt::format("\\{}", c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string markdown_code(std::string_view text, std::size_t most) {
  const std::string line = one_line(text, most);
  if (line.empty()) return "";
  // Within backticks everything but these is literal.
  if (line.find_first_of("`|\\") == std::string::npos) return fmt::format("`{}`", line);
  std::string out = "<code>";
  for (const char c : line) {
    if (is_punctuation(c)) {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "</code>";
}

}  // namespace weir::report
