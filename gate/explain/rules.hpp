// Rules of a team about its own engine: "when this kernel's count grows, say that". Also the usual
// counts per token on a GPU, as hints: neither limits nor verdicts. Pure.
#pragma once

#include <map>
#include <string>

#include "gate/base/names.hpp"

namespace weir::explain {

// All that is given must hold. Names are globs ('*' is any run of characters).
struct Rule {
  enum class Change { any, more, fewer, appeared, vanished, slower, faster };
  std::string kernel;  // name of a kernel or op on the device; "": any
  std::string op;      // name of an op, wherever it ran
  std::string metric;  // full name: "syncs_per_token"
  std::string cell;    // name of the cell
  Change change = Change::any;
  std::string say;  // one or more sentences; shown as it stands, made harmless

  friend bool operator==(const Rule&, const Rule&) = default;
};
inline constexpr auto k_changes = names_in_order<Rule::Change>("any", "more", "fewer", "appeared",
                                                               "vanished", "slower", "faster");

// Limits for a count; an absent one is not checked.
struct Band {
  std::optional<double> low;  // less than this is unusual
  std::optional<double> good_from, good_to;
  std::optional<double> high;  // more than this is unusual

  friend bool operator==(const Band&, const Band&) = default;
};
using Bands = std::map<std::string, Band>;  // by full metric name
// Bands that Agave's handbook gives for decoding on Metal.
[[nodiscard]] const Bands& default_bands();

}  // namespace weir::explain
