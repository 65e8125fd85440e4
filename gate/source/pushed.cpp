#include "gate/source/pushed.hpp"

#include "gate/base/text.hpp"

namespace weir::source {
namespace {

bool is_id(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Result<std::vector<Pushed>> parse_pushed(std::string_view text) {
  std::vector<Pushed> all;
  for (const std::string& line : text::lines(text)) {
    if (text::trim(line).empty()) continue;
    // What stands first is what was typed, "HEAD@{2 days ago}", say: it may hold blanks.
    std::vector<std::string> words = text::split(line, ' ');
    while (words.size() > 4) {
      words[0] += " " + words[1];
      words.erase(words.begin() + 1);
    }
    if (words.size() != 4 || !is_id(words[1]) || !is_id(words[3])) {
      return fail(Code::data, "no line of a pre-push hook: \"{}\"",
                  text::printable(line.substr(0, 200)));
    }
    all.push_back({words[0], words[1], words[2], words[3]});
  }
  return all;
}

}  // namespace weir::source
