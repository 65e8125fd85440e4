// Edits of a pull request to the rules that judge it, in words: first in every report. Plain text,
// through one_line(). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gate/verdict/verdict.hpp"

namespace weir::report {

struct ProposalWords {
  std::string head;  // "2 edits to the rules, judged by those of origin/main (1a2b3c4)"
  std::vector<std::string> lines;  // looser first; a last one counts what is left out
};
// `most` lines. Nothing to say: both empty.
[[nodiscard]] ProposalWords proposal_words(const verdict::GateVerdict& gate, std::size_t most);

}  // namespace weir::report
