// Finds the parts of a command line's words that may be paths.
#include "gate/config/word_paths.hpp"

#include <algorithm>
#include <cctype>

#include "gate/base/text.hpp"

namespace weir::config {
namespace {

constexpr std::string_view k_separators = " \t\r\n\"'`;&|<>()[]$,:=@";

// Returns true for "-Ifolder" and "-mfile": an option of one letter with its value.
bool has_attached_value(std::string_view part) {
  return part.size() > 2 && part[0] == '-' &&
         std::isalpha(static_cast<unsigned char>(part[1])) != 0;
}

}  // namespace

std::vector<std::string> split_at_any(std::string_view text, std::string_view separators) {
  std::string joined(text);
  std::ranges::replace_if(
      joined, [&](char c) { return separators.find(c) != std::string_view::npos; }, '\0');
  return text::split(joined, '\0');
}

// Returns a word with its paths replaced: the whole word, parts between separators, or the rest of
// "-Ifolder". `replace` returns nothing for text that is no path.
std::string replace_paths(const std::string& word, const ReplacePath& replace) {
  if (auto path = replace(word)) return *std::move(path);
  std::string replaced;
  std::size_t begin = 0;
  while (begin < word.size()) {
    const std::size_t end = std::min(word.find_first_of(k_separators, begin), word.size());
    const std::string part = word.substr(begin, end - begin);
    const bool is_whole = part.size() == word.size();
    std::optional<std::string> path = part.empty() || is_whole ? std::nullopt : replace(part);
    if (!path && has_attached_value(part)) {
      path = replace(part.substr(2));
      if (path) path->insert(0, part, 0, 2);
    }
    replaced += path.value_or(part);
    if (end < word.size()) replaced += word[end];
    begin = end + 1;
  }
  return replaced;
}

}  // namespace weir::config
