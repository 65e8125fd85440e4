// Reads .gitattributes.
#include "gate/source/attributes.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::source {
namespace {

// Returns false for git attributes known not to change the contents of files. An unknown one may be
// a macro for one that does.
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

// Returns the pattern with '*' for all that may stand for more than itself; '*' also stands for
// '/'. So it matches at least what git's pattern does.
std::string widen_pattern(std::string_view pattern) {
  std::string loose = text::lower(pattern);  // core.ignoreCase
  const std::size_t bracket = loose.find_first_of("[\\");
  if (bracket != std::string::npos) loose = loose.substr(0, bracket) + "*";
  std::ranges::replace(loose, '?', '*');
  // "a/**/b" matches "a/b" as well.
  for (std::size_t at = loose.find("**/"); at != std::string::npos; at = loose.find("**/"))
    loose.replace(at, 3, "*");
  return loose;
}

}  // namespace

// Returns false only if the pattern of a line of .gitattributes can match none of `paths`. `folder`
// is where that file lies.
bool may_concern(std::string_view line, const std::string& folder,
                 std::span<const std::string> paths) {
  if (line.starts_with("[attr]") || line.starts_with('"')) return true;
  std::string_view pattern = line.substr(0, line.find(' '));
  const bool matches_file_names = pattern.find('/') == std::string_view::npos;
  if (pattern.starts_with('/')) pattern.remove_prefix(1);
  const std::string wide_pattern = widen_pattern(pattern),
                    folder_prefix = folder.empty() ? "" : folder + "/";
  return std::ranges::any_of(paths, [&](const std::string& path) {
    if (!path.starts_with(folder_prefix)) return false;
    const std::string inner = text::lower(path.substr(folder_prefix.size()));
    const std::string name = inner.substr(inner.rfind('/') + 1);
    return text::glob_match(wide_pattern, matches_file_names ? name : inner);
  });
}

// Returns the lines of a .gitattributes that can change the contents of files in the work tree,
// with single spaces.
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
