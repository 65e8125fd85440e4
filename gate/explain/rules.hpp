// What a team knows of its own engine: "when this kernel's count grows, say that". Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace weir::explain {

// All that is given must hold. Names are globs ('*' is any run of characters).
struct Rule {
  enum class Change { any, more, fewer, appeared, vanished, slower, faster };
  std::string kernel;  // of a kernel or op on the device; "" is not asked
  std::string op;      // of an op, wherever it ran
  std::string metric;  // full name: "syncs_per_token"
  std::string cell;    // of the cell's name
  Change change = Change::any;
  std::string say;  // one or more sentences; shown as it stands, made harmless

  friend bool operator==(const Rule&, const Rule&) = default;
};
[[nodiscard]] std::optional<Rule::Change> parse_change(const std::string& word);
[[nodiscard]] const std::vector<std::string>& change_words();

}  // namespace weir::explain
