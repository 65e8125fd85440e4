// Which commit to try next, and which may be the first bad one: the arithmetic of a bisection.
//
// All that is reachable from a good commit is taken for good, and the first bad commit for one that
// the newest known bad one contains, as git bisect does; merges are followed on all sides. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gate/base/names.hpp"
#include "gate/source/git.hpp"

namespace weir::source {

enum class TrialOutcome { good, bad, skipped };
inline constexpr auto k_trial_outcomes = names_in_order<TrialOutcome>("good", "bad", "skipped");

class Bisection {
 public:
  // `history` as Git::history() gives it, not empty: its first commit is known to be bad, and all
  // parents that are not in it are good.
  explicit Bisection(const std::vector<HistoryCommit>& history);

  // Narrows the suspects by the result of trying `commit`; no effect if it is no suspect (any
  // more).
  void record_outcome(const std::string& commit, TrialOutcome outcome);

  // The untried suspect that halves the rest best. Where some were skipped, those near a skipped
  // one, and those between two, are worth less: they are likely to be skipped too.
  // Nothing when all suspects but the bad one are tried.
  [[nodiscard]] std::optional<std::string> next() const;

  // Commits that may be the first bad one, children before parents. The first of them is known to
  // be bad; if it stands alone, it is the first bad one.
  [[nodiscard]] std::vector<std::string> suspects() const;
  // About how many more have to be tried.
  [[nodiscard]] std::size_t steps_left() const;

 private:
  struct Node {
    std::string name;
    std::vector<std::size_t> parents;  // indices of parents in the history, which come later
    bool suspect = true;
    bool skipped = false;
  };
  [[nodiscard]] std::vector<bool> ancestors_of(std::size_t commit) const;  // itself too
  [[nodiscard]] std::size_t count_suspects(std::size_t commit) const;      // itself too

  std::vector<Node> nodes_;
  std::map<std::string, std::size_t> places_;
};

}  // namespace weir::source
