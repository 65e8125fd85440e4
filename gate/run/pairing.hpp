// Which cell runs the next pair, and when there are enough: the budget goes where it decides most.
//
// Every cell first gets as many pairs as any decision needs, then the one that is nearest to a
// verdict goes on. Looking at all past pairs to choose is fine: the coin of the next
// one is still fair. Cells that the budget cannot give so many rotate: which of them come first
// depends on the commit. Cells that a pull request adds come after all others. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/stats/paired.hpp"

namespace weir::run {

struct PairingCell {
  std::string name;
  double pair_seconds = 0;               // cost of a pair, as its warm-up shows
  std::vector<stats::PairedRule> rules;  // one a metric with a limit; none: nothing to decide
  bool is_added = false;                 // gets no pair while another cell may need one
};

class Pairing {
 public:
  // `order_rotation`: any number that differs from commit to commit. `least`: pairs that a cell
  // gets first, decided or not; one that the budget cannot give so many waits for a later commit.
  Pairing(std::vector<PairingCell> cells, double budget_seconds, std::uint64_t order_rotation,
          std::size_t min_pairs = 0);

  // Pairs without which nothing can pass: 8 at `missed` 0.01.
  [[nodiscard]] static std::size_t fewest(std::span<const stats::PairedRule> rules);

  // The planned use of the budget, by cell in the given order.
  struct Share {
    bool now = false;    // gets its first pairs with this budget
    double seconds = 0;  // for these first pairs
  };
  [[nodiscard]] std::vector<Share> plan() const;
  // The smallest budget with which some cell could be decided, and all could.
  [[nodiscard]] double seconds_for_one() const;
  [[nodiscard]] double seconds_for_all() const;

  // The cell of the next pair; nothing when all is decided or the budget is spent.
  [[nodiscard]] std::optional<std::size_t> next() const;
  // A pair of `cell` has ended after `seconds`; `pairs` holds one for each of its rules.
  void note(std::size_t cell, std::span<const stats::Pair> pairs, double seconds);
  void give_up(std::size_t cell);
  // Gives up those rules of a combined cell that cannot be decided any more. `pairs` of note()
  // still has a place for each; the other rules go on.
  void give_up(std::size_t cell, std::span<const std::size_t> rules);

  [[nodiscard]] double spent() const { return spent_; }
  [[nodiscard]] double seconds_left() const { return budget_ - spent_; }
  [[nodiscard]] bool decided(std::size_t cell) const;

 private:
  struct CellState {
    PairingCell cell;
    std::vector<stats::PairedTest> tests;
    std::vector<bool> dropped;  // by test
    double seconds = 0;         // spent on its pairs
    std::size_t pairs = 0;
    bool given_up = false;
    [[nodiscard]] double seconds_per_pair() const;
    [[nodiscard]] bool is_open() const;  // has something to decide
    [[nodiscard]] bool is_open(std::size_t test) const;
    // Pairs until all its metrics are decided, as far as can be told.
    [[nodiscard]] double more_pairs() const;
    // Pairs until a cell that passed is seen to be better; nothing when it does not look like it.
    [[nodiscard]] std::optional<double> pairs_to_improved() const;
  };
  // Pairs that the cell gets before any cell is preferred.
  [[nodiscard]] std::size_t first_pairs_goal(const CellState& state) const;
  // The first of those whose rank(cell) is least; nothing where none has a rank.
  template <class Rank>
  [[nodiscard]] std::optional<std::size_t> lowest_ranked(const Rank& rank) const;
  [[nodiscard]] std::optional<std::size_t> next_first_pairs(bool of_added) const;
  [[nodiscard]] std::optional<std::size_t> nearest_to_a_verdict(bool of_added) const;
  [[nodiscard]] std::optional<std::size_t> nearest_to_improved() const;

  std::vector<CellState> cells_;
  std::vector<std::size_t> order_;  // rotated, added cells last
  double budget_, spent_ = 0;
  std::size_t min_pairs_;
};

}  // namespace weir::run
