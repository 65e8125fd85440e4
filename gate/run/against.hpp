// A run beside a base program: after the candidate's counts, the base's; where they differ, both
// again until each side has four fresh processes, or five where a count varies; then pairs of timed
// processes, in the order that a coin decides, until every limit is decided or the budget is spent.
// The first pairs of a cell cost the budget no more than the base's processes do, however slow the
// candidate is.
//
// The depths of one list run their pairs in rounds: one pair of each, in the order of one coin, and
// no round is left unfinished, so that a round is a pair of lines over them as well
// (verdict/over_depth.hpp). They go on until all of them and the line are decided.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/baseline/baseline.hpp"
#include "gate/run/pairing.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/runner.hpp"
#include "gate/sys/clock.hpp"
#include "gate/verdict/over_depth.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::run {

// Counts of the base program that are known from before ("cached by commit").
class KnownCounts {
 public:
  virtual ~KnownCounts() = default;
  // Returns the stored counts of this cell, if any; baseline::choose says whether they may judge.
  [[nodiscard]] virtual std::vector<baseline::Baseline> find_counts(
      const profile::CellKey& cell) const = 0;
};

struct AgainstOptions {
  std::vector<verdict::LimitEntry> limits;
  verdict::Policy policy;  // timed_metrics is found out here
  config::GateSettings gate;
  bool counts = true, times = true;
  std::uint64_t order_rotation = 0;  // see Pairing
  std::size_t min_pairs = 0;         // the same
  // Names of cells that the base's rules do not know: the others get their pairs first.
  std::set<std::string> added_cells = {};
  // By cell name: pairs that its limits take on this machine, where that was measured.
  std::map<std::string, double> calibrated_pairs = {};
};

// A line of the plan that is shown before the first pair.
struct PlannedPairs {
  std::string cell;
  double pair_seconds = 0;  // both processes of its warm-up
  std::size_t metrics = 0;
  std::size_t fewest = 0;                           // pairs
  bool now = false;                                 // else the budget leaves it to a later commit
  std::optional<double> calibrated = std::nullopt;  // pairs that its limits typically take here
};
struct PairsPlan {
  std::vector<PlannedPairs> cells;
  double budget_seconds = 0, seconds_for_all = 0;
  std::vector<std::string> failed_cells{};  // whose counts broke a limit before any pair
};

// `plan` has base_cells, and outlives it as the others do. `show_plan` is called once, after the
// warm-ups. It fails with Code::config when the budget can decide no cell at all, and there is
// nothing but limits on times: with the budget that would do.
[[nodiscard]] std::unique_ptr<Sequel> make_against(const Plan& plan, AgainstOptions options,
                                                   const KnownCounts& known_counts, sys::Coin& coin,
                                                   std::function<void(const PairsPlan&)> show_plan);

// Returns true for the error of a budget that can decide nothing.
[[nodiscard]] bool is_about_budget(const Error& error);
// Returns such an error with the option --budget in place of the setting that it names; any other
// one as it is.
[[nodiscard]] Error name_budget_option(Error error);

// Returns true if the base program was counted in this cell, even if that failed.
[[nodiscard]] bool base_was_counted(const profile::CellKey& cell,
                                    std::span<const profile::RunRecord> records);

// Returns the counts that a cell is compared with: those of the base program, else stored ones.
// Has no match, and a reason, if there are neither.
[[nodiscard]] baseline::BaselineChoice choose_base_counts(
    const profile::Profile& candidate, const profile::CellFacts& base_facts,
    std::span<const profile::RunRecord> records, std::span<const baseline::Baseline> stored);

}  // namespace weir::run
