// Commands a reader may type next. Only those that the caller says this build has.
//
// Every command can be pasted into a shell as it stands: cell names in it keep to letters, digits
// and "._-/@", and a character outside of these is written as the glob '*'; options of the gate and
// what stood behind --against are quoted. A command that would not work without an option that
// cannot be shown is left out. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <set>
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
  std::string what;  // "why", "look", "again", "allow", "comment", "accept", "store"
  // {"weir", "baseline accept", "--cell 'a/b/*'"}; lines break between these. Of "allow" no
  // command but allowed_ops().
  std::vector<std::string> words;
};
// `most` is the longest one word may be, in columns; longer cell names are shortened to globs.
[[nodiscard]] std::vector<Hint> hints(const verdict::GateVerdict& gate, const Verbs& verbs,
                                      std::size_t most = 60);

// Backends on which an op is to be allowed, by engine and op.
using OpsByEngine = std::map<std::string, std::map<std::string, std::set<std::string>>>;
// Entry of the configuration that lets ops run on the CPU, as one line of YAML:
// `engines: {llama.cpp: {cpu_ops_allowed: {SWIGLU: {match: {backend: gpu}, why: "…"}}}}`, of more
// than one backend without a match; "" where it cannot be shown.
[[nodiscard]] std::string allowed_ops(const OpsByEngine& ops);

// Patterns for --cell that match the cells `wanted` and no others among `all`: their names up to
// three, else globs. `all` is empty where others may exist: names alone. Nothing where it takes
// more than a dozen.
[[nodiscard]] std::vector<std::string> cell_patterns(const std::vector<std::string>& wanted,
                                                     const std::vector<std::string>& all,
                                                     std::size_t most);

}  // namespace weir::report
