// A run beside a base program: after the candidate's counts, the base's; where they differ, both
// again until each side has three fresh processes; then pairs of timed processes, in the order that
// a coin decides, until every limit is decided or the budget is spent.
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
#include "gate/profile/paired.hpp"
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
  // What was counted of this cell, if anything; baseline::choose says whether it may judge.
  [[nodiscard]] virtual std::vector<baseline::Baseline> of(const profile::CellKey& cell) const = 0;
};

struct AgainstOptions {
  std::vector<verdict::LimitEntry> limits;
  verdict::Policy policy;  // timed_metrics is found out here
  config::GateSettings gate;
  bool counts = true, times = true;
  std::uint64_t rotation = 0;   // see Pairing
  std::size_t least_pairs = 0;  // the same
  // By cell name: pairs that its limits take on this machine, where that was measured.
  std::map<std::string, double> calibrated_pairs = {};
};

// A line of the plan that is shown before the first pair.
struct PlannedPairs {
  std::string cell;
  double pair_seconds = 0;
  std::size_t metrics = 0;
  std::size_t fewest = 0;                           // pairs
  bool now = false;                                 // else the budget leaves it to a later commit
  std::optional<double> calibrated = std::nullopt;  // pairs that its limits typically take here
};
struct PairsPlan {
  std::vector<PlannedPairs> cells;
  double budget_seconds = 0, seconds_for_all = 0;
};

class Against final : public Sequel {
 public:
  // `plan` has base_cells, and must outlive this. `show_plan` is called once, after the warm-ups.
  Against(const Plan& plan, AgainstOptions options, const KnownCounts& known, sys::Coin& coin,
          std::function<void(const PairsPlan&)> show_plan);

  // Fails with Code::config when the budget can decide no cell at all, and there is nothing but
  // limits on times: with the budget that would do.
  [[nodiscard]] Result<Next> next(std::span<const profile::RunRecord> fresh) override;

 private:
  struct CellRecords {
    std::vector<profile::RunRecord> counted, paired;
    bool fresh = false;  // some are not noted yet
    bool out = false;    // runs no pairs, or no more of them
  };
  // What runs its pairs together: one cell, or the depths of a list.
  struct Round {
    std::vector<std::size_t> cells;           // by rising depth
    std::optional<verdict::DepthGroup> line;  // over `cells`, as places in it
    std::int64_t noted = 0;                   // rounds that the scheduler knows of
    double noted_seconds = 0;                 // of all their processes
    // What each rule judges: a place in `cells`, or behind it the line; and of its metrics which.
    struct Judged {
      std::size_t of = 0, metric = 0;
    };
    std::vector<Judged> judged;
  };
  [[nodiscard]] std::vector<Step> counts_again(std::size_t cell, profile::Side side,
                                               std::int64_t rounds) const;
  [[nodiscard]] std::int64_t rounds(std::size_t cell, profile::Side side) const;
  [[nodiscard]] bool counts_differ(std::size_t cell) const;
  [[nodiscard]] std::vector<Step> base_counts() const;
  [[nodiscard]] std::vector<Step> counts_to_confirm() const;
  [[nodiscard]] std::vector<Step> warm_ups() const;
  // That the processes of its warm-ups took, or of its pairs.
  [[nodiscard]] double seconds_of(std::size_t cell, bool warm_ups) const;
  [[nodiscard]] Step timed(std::size_t cell, std::int64_t pair, profile::Side side) const;
  [[nodiscard]] std::vector<Round> make_rounds() const;
  [[nodiscard]] std::vector<profile::PairedRuns> runs_of(const Round& round) const;
  [[nodiscard]] PairingCell rules_of(Round& round) const;
  [[nodiscard]] Result<void> begin_pairs();
  [[nodiscard]] Result<void> plan_pairs(const std::vector<PairingCell>& cells);
  [[nodiscard]] std::vector<Step> next_round(const Round& round);
  void leave_out(std::size_t place, const std::vector<profile::PairedRuns>& runs);
  void note_pairs(std::size_t place);
  [[nodiscard]] bool timed_cell(std::size_t cell) const;

  const Plan& plan_;
  AgainstOptions options_;
  const KnownCounts& known_;
  sys::Coin& coin_;
  std::function<void(const PairsPlan&)> show_plan_;
  std::vector<CellRecords> records_;
  std::map<std::string, std::size_t> cell_by_name_;
  std::vector<Round> rounds_;
  std::unique_ptr<Pairing> pairing_;  // a cell there is a round here
};

// Was the base program counted in this cell, well or not?
[[nodiscard]] bool base_was_counted(const profile::CellKey& cell,
                                    std::span<const profile::RunRecord> records);

// What a cell's counts are held to: the base program's own, else those known from before. None
// with a reason where neither is there.
[[nodiscard]] baseline::Choice base_counts_of(const profile::Profile& candidate,
                                              const profile::CellFacts& base_facts,
                                              std::span<const profile::RunRecord> records,
                                              std::span<const baseline::Baseline> known);

}  // namespace weir::run
