// The edits of a pull request to the rules that judge it, which every report lists first. Plain
// text, through printable_line(). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gate/verdict/verdict.hpp"

namespace weir::report {

struct ProposalText {
  std::string head;  // "2 edits to the rules, judged by those of origin/main (1a2b3c4)"
  std::vector<std::string> lines;  // looser first; a last one counts what is left out
};
// Returns at most `max_lines` lines, and one that counts the others. Without edits both members are
// empty.
[[nodiscard]] ProposalText proposal_text(const verdict::GateVerdict& gate, std::size_t max_lines);

}  // namespace weir::report
