// A gate's verdict as people read it in a terminal or a log.
//
// What is wrong comes first and alone; what is fine is one line. No line is wider than `width`
// columns (at least 40), except the words of a command to paste. Text from engines and configs is
// made printable first: no escape sequence but weir's own colours comes out. Pure.
#pragma once

#include <string>

#include "gate/report/document.hpp"
#include "gate/report/hints.hpp"

namespace weir::report {

struct TerminalStyle {
  bool color = false;
  int width = 80;
  bool verbose = false;  // every cell with all its metrics, and nothing cut short
  Verbs verbs{};         // commands this build has; no other is named
};

[[nodiscard]] std::string terminal(const Document& document, const TerminalStyle& style);

}  // namespace weir::report
