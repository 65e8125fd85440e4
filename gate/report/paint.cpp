#include "gate/report/paint.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {

using verdict::Outcome;

void Page::paragraph(std::string_view first, std::string_view body, std::size_t indent,
                     std::string_view first_color, std::string_view body_color) {
  bool on_first = true;
  for (std::string& line : wrap(body, width_, first, indent)) {
    line = text::disarm(line);  // an engine's words may stand here
    const std::size_t head = on_first ? std::min(first.size(), line.size()) : 0;
    out_ += paint(std::string_view(line).substr(0, head), first_color);
    out_ += paint(std::string_view(line).substr(head), body_color);
    out_ += '\n';
    on_first = false;
  }
}

std::string Page::paint(std::string_view text, std::string_view color) const {
  if (!color_ || color.empty()) return std::string(text);
  // Spaces stay outside, so that nothing but letters is ever underlined or inverted by a theme.
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::string(text);
  const std::size_t end = text.find_last_not_of(' ') + 1;
  return fmt::format("{}\x1b[{}m{}\x1b[0m{}", text.substr(0, begin), color,
                     text.substr(begin, end - begin), text.substr(end));
}

std::string_view color_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::fail:
      return "1;31";
    case Outcome::error:
      return "1;35";
    case Outcome::inconclusive:
      return "1;33";
    case Outcome::fresh:
      return "1;36";
    case Outcome::improved:
    case Outcome::accepted:
      return "1;32";
    case Outcome::pass:
      return "32";
    case Outcome::skipped:
    case Outcome::info:
      return "2";
  }
  return "";
}

}  // namespace weir::report
