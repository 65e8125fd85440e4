// An edit that a pull request makes to the rules that judge it: listed first in every report.
//
// Limits, allow-lists, gate settings and baselines are read where the pull request is to be merged
// (weir gate --rules-from REF), so its own edits to them are proposals until then. An edit of how
// cells are measured (commands, probes) takes effect at once, so these cells are not judged. Pure.
#pragma once

#include "gate/baseline/baseline.hpp"

namespace weir::verdict {

struct Proposal {
  // In the order in which they are listed.
  enum class Effect { looser, changed, tighter };
  std::string what;      // "max_drop of decode_tokens_per_second"
  std::string from, to;  // as shown; "" on a side where there is nothing
  Effect effect = Effect::changed;
  // Already for this verdict. With `changed`: what it is about is not judged.
  bool is_in_force = false;
  // The cells it concerns, k_max_cells_listed at most, and their number; empty: none in particular.
  std::vector<std::string> cells{};
  std::int64_t cells_in_all = 0;

  // "max_drop of decode_tokens_per_second: 5 % → 20 %: looser, in 12 cells"
  [[nodiscard]] std::string words() const;
  void about(std::vector<std::string> all_cells);
  friend bool operator==(const Proposal&, const Proposal&) = default;
};
inline constexpr std::size_t k_max_cells_listed = 100;
[[nodiscard]] std::string_view to_string(Proposal::Effect effect);

// Sorts edits of what is not judged first, then looser ones, and among these those that hold
// already; else they keep their order. At most k_max_proposals: a last one says how many more
// there are.
inline constexpr std::size_t k_max_proposals = 500;
[[nodiscard]] std::vector<Proposal> in_order(std::vector<Proposal> proposals);

// "a, b, c and 2 more".
[[nodiscard]] std::string list_some(const std::vector<std::string>& names,
                                    std::size_t max_names = 3);

// How the pull request's edit of one stored file would change the baseline. `base` or `head` is
// null where the file is not there.
[[nodiscard]] std::vector<Proposal> compare_baselines(const baseline::Baseline* base,
                                                      const baseline::Baseline* head);

void fields(Fields& io, Proposal& proposal);

// The place that a gate's rules came from.
struct RulesFrom {
  std::string ref;          // as typed
  std::string commit;       // its commit
  std::string text_hash{};  // SHA-256 of its weir.yaml; "": it has none
  bool waive_own = false;   // whoever wrote a pull request may waive what it changes
};
void fields(Fields& io, RulesFrom& rules);
// Returns true if the commit that the rules come from has no weir.yaml: the pull request brings the
// rules along.
[[nodiscard]] inline bool brings_rules(const std::optional<RulesFrom>& rules) {
  return rules && rules->text_hash.empty();
}

}  // namespace weir::verdict
