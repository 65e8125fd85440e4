#include "gate/adapters/documents.hpp"

#include <algorithm>

namespace weir::adapters {
namespace {

constexpr std::size_t k_largest = std::size_t{1} << 20;
constexpr std::string_view k_blank = " \t\r\n";

// Past the bracket that closes the one at `from`; npos when it is not closed within `limit` bytes.
std::size_t closing(std::string_view text, std::size_t from, std::size_t limit) {
  const std::size_t end = std::min(text.size(), from + limit);
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = from; i < end; ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// What follows the bracket tells JSON from a log line's "[info]" or "{model}".
bool looks_like_json(std::string_view text, std::size_t at) {
  const std::size_t next = text.find_first_not_of(k_blank, at + 1);
  if (next == std::string_view::npos) return true;  // cut off right behind the bracket
  return text[next] == '{' || text[next] == '"';
}

}  // namespace

DocumentsFound for_each_document(std::string_view text,
                                 const std::function<bool(const Json& document)>& take) {
  DocumentsFound found;
  const auto broken = [&](std::string why) {
    if (!found.broken) found.broken = std::move(why);
  };
  // A line that opens a bracket and never closes it makes the search look ahead in vain. All such
  // looks together may cost a few times the text, so that a hostile one does not cost its square.
  std::size_t budget = 8 * text.size() + k_largest;
  std::size_t line = 0;
  while (line < text.size()) {
    const std::size_t line_end = std::min(text.find('\n', line), text.size());
    const std::size_t at = text.find_first_not_of(" \t\r", line);
    const std::size_t from = line;
    line = line_end + 1;
    if (at == std::string_view::npos || at >= line_end || (text[at] != '{' && text[at] != '[')) {
      continue;
    }
    const std::size_t end = closing(text, at, std::min(k_largest, budget));
    const std::size_t looked = (end == std::string_view::npos ? text.size() : end) - from;
    budget -= std::min(budget, std::min(looked, k_largest));
    if (budget == 0) {
      broken("too much of it looks like JSON that never ends");
      return found;
    }
    if (end == std::string_view::npos) {
      if (looks_like_json(text, at)) broken("it stops in the middle (a bracket is not closed)");
      continue;
    }
    auto document = parse_json(text.substr(at, end - at), {k_largest, 64});
    if (!document) {
      if (looks_like_json(text, at)) broken(document.error().message);
      continue;
    }
    ++found.documents;
    if (!take(*document)) return found;
    // More may follow on the same line; a line is the smallest step, so only a newline counts.
    line = std::min(text.find('\n', end), text.size());
    if (line < text.size()) ++line;
  }
  return found;
}

}  // namespace weir::adapters
