// The examples of a page, out of its own text.
#pragma once

#include <string>
#include <string_view>

#include "gate/base/text.hpp"

namespace weir::tests {

// All blocks that begin with exactly ```LANGUAGE, one behind the other.
inline std::string code_blocks(std::string_view page, const std::string& language) {
  std::string out;
  bool inside = false;
  for (const std::string& line : text::lines(page)) {
    if (line == "```" + language) {
      inside = true;
    } else if (line.starts_with("```")) {
      inside = false;
    } else if (inside) {
      out += line + "\n";
    }
  }
  return out;
}

// "NAME=VALUE weir WORD 'SOME WORDS'": no shell, as the page quotes nothing else.
inline std::vector<std::string> split_command(const std::string& command) {
  std::vector<std::string> words;
  bool quoted = false, open = false;
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (c != '\'') words.back() += c;
  }
  return words;
}

}  // namespace weir::tests
