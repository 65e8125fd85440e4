// Commands that a reader may type next, of those that this build has.
//
// Every command can be pasted into a shell. Cell names in it have only letters, digits and "._-/@";
// other characters become the glob '*'. Options of the gate and the words after --against are
// quoted. A command is left out if it needs an option that can't be shown. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gate/verdict/verdict.hpp"

namespace weir::report {

// Commands of this build that help with the verdict: "explain", "doctor", "baseline accept", "gate
// --counts-only". A report names no other.
//
// "baseline accept --reason" says that the option exists. Leave "baseline accept" out if the base
// is not a stored baseline. "/weir waive" says that this text becomes a comment, and a robot reads
// it.
using Verbs = std::vector<std::string>;

struct Hint {
  // "why", "numbers", "look", "again", "allow", "comment", "accept", "store",
  // "compare"
  std::string what;
  // {"weir", "baseline accept", "--cell 'a/b/*'"}; lines break between these. "allow" has no
  // command but the line of allowed_ops().
  std::vector<std::string> words;
};
// `max_columns` is the longest one word may be, in columns; longer cell names are shortened to
// globs.
[[nodiscard]] std::vector<Hint> hints(const verdict::GateVerdict& gate, const Verbs& verbs,
                                      std::size_t max_columns = 60);

// Backends on which an op is to be allowed, by engine and op.
using OpsByEngine = std::map<std::string, std::map<std::string, std::set<std::string>>>;
// Returns the entry of the configuration that lets ops run on the CPU, as one line of YAML:
// `engines: {llama.cpp: {cpu_ops_allowed: {SWIGLU: {match: {backend: gpu}, why: "…"}}}}`. An op of
// several backends has no match; ops of one entry share it by a YAML anchor. "" if it can't be
// shown.
[[nodiscard]] std::string allowed_ops(const OpsByEngine& ops);

// Returns patterns for --cell that match the cells `wanted` and no others in `all`: names for up to
// three cells, else globs. If `all` is empty, unknown cells may exist, so only names are used.
// Returns nothing if more than a dozen patterns are needed.
[[nodiscard]] std::vector<std::string> cell_patterns(const std::vector<std::string>& wanted,
                                                     const std::vector<std::string>& all,
                                                     std::size_t max_columns);

}  // namespace weir::report
