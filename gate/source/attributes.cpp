// Reads .gitattributes.
#include "gate/source/attributes.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::source {
namespace {

// An unknown attribute may be a macro that stands for one that changes contents.
bool changes_content(std::string_view attribute) {
  constexpr std::string_view k_harmless[] = {
      "conflict-marker-size", "delta",    "diff",  "encoding",  "export-ignore",
      "export-subst",         "lockable", "merge", "whitespace"};
  constexpr std::string_view k_harmless_beginnings[] = {"linguist-", "gitlab-"};
  if (attribute.starts_with('-') || attribute.starts_with('!')) attribute.remove_prefix(1);
  const std::string_view name = attribute.substr(0, attribute.find('='));
  return !holds(k_harmless, name) &&
         std::ranges::none_of(k_harmless_beginnings, [&](std::string_view beginning) {
           return name.starts_with(beginning);
         });
}

}  // namespace

std::vector<std::string> content_attributes(std::string_view text) {
  std::vector<std::string> lines;
  for (std::string line : text::lines(text)) {
    std::ranges::replace_if(
        line, [](char c) { return c == '\t' || c == '\r'; }, ' ');
    std::vector<std::string> words = text::split(line, ' ');
    std::erase(words, "");
    if (words.empty() || words[0].starts_with('#')) continue;
    const bool is_macro = words[0].starts_with("[attr]");
    if (is_macro || std::any_of(words.begin() + 1, words.end(), changes_content))
      lines.push_back(text::join(words, " "));
  }
  return lines;
}

}  // namespace weir::source
