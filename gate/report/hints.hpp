// Commands a reader may type next. Only those that the caller says this build has.
//
// Every command can be pasted into a shell as it stands: cell names in it keep to letters, digits
// and "._-/@", and a character outside of these is written as the glob '*'; what stood behind
// --against is quoted. Pure.
#pragma once

#include <string>
#include <vector>

#include "gate/verdict/verdict.hpp"

namespace weir::report {

// "explain", "doctor", "baseline accept", "gate --counts-only": commands of this build that help
// with this verdict; "baseline accept --reason" says that the option exists. A report names no
// other. Leave "baseline accept" out where the base is not a stored baseline. "/weir accept": there
// is a robot that reads comments, and this text becomes one.
using Verbs = std::vector<std::string>;

struct Hint {
  std::string what;                // "why", "look", "again", "comment", "accept"
  std::vector<std::string> words;  // {"weir", "baseline accept", "--cell 'a/b/*'"}; lines break
                                   // between these
};
// `most` is the longest one word may be, in columns; longer cell names are shortened to globs.
[[nodiscard]] std::vector<Hint> hints(const verdict::GateVerdict& gate, const Verbs& verbs,
                                      std::size_t most = 60);

// Patterns for --cell that match the given cells: their names up to three, else what they share.
[[nodiscard]] std::vector<std::string> cell_patterns(const std::vector<std::string>& cells,
                                                     std::size_t most);

}  // namespace weir::report
