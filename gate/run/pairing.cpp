// Chooses the cell that runs the next pair, within the budget.
#include "gate/run/pairing.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace weir::run {

using stats::Decision;

namespace {

// Pairs at most that are spent to confirm an improvement: it is reported, but decides nothing.
constexpr double k_max_pairs_to_prove_improvement = 40;

}  // namespace

double Pairing::CellState::seconds_per_pair() const {
  return pairs == 0 ? cell.pair_seconds : seconds / static_cast<double>(pairs);
}

bool Pairing::CellState::is_open(std::size_t test) const {
  return !dropped[test] && tests[test].decision() == Decision::undecided;
}

bool Pairing::CellState::is_open() const {
  bool has_open = false;
  for (std::size_t i = 0; i < tests.size(); ++i) has_open = has_open || is_open(i);
  return has_open && !given_up;
}

// Estimates how many more pairs decide all open metrics of the cell.
double Pairing::CellState::more_pairs() const {
  double max_more_pairs = 0;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (!is_open(i)) continue;
    // If nothing points either way yet, assume as many pairs as there were so far.
    max_more_pairs =
        std::max(max_more_pairs, tests[i].more_pairs().value_or(static_cast<double>(pairs)));
  }
  return std::max(1.0, max_more_pairs);
}

// Estimates how many more pairs show an improvement. Nothing if none is in sight.
std::optional<double> Pairing::CellState::pairs_to_improved() const {
  std::optional<double> fewest_pairs;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (dropped[i]) continue;
    if (tests[i].decision() != Decision::pass) return std::nullopt;
    const auto more = stats::more_pairs_to_improved(tests[i].all(), cell.rules[i]);
    if (more && *more > 0 && (!fewest_pairs || *more < *fewest_pairs)) fewest_pairs = more;
  }
  return fewest_pairs;
}

// Takes over the cells, and rotates their order so that another one comes first each time.
Pairing::Pairing(std::vector<PairingCell> cells, double budget_seconds,
                 std::uint64_t order_rotation, std::size_t min_pairs)
    : budget_(budget_seconds), min_pairs_(min_pairs) {
  for (PairingCell& cell : cells) {
    CellState state;
    state.tests.reserve(cell.rules.size());
    for (const stats::PairedRule& rule : cell.rules) state.tests.emplace_back(rule);
    state.dropped.assign(state.tests.size(), false);
    state.cell = std::move(cell);
    order_.push_back(cells_.size());
    cells_.push_back(std::move(state));
  }
  if (!order_.empty()) {
    const auto first = static_cast<std::ptrdiff_t>(order_rotation % order_.size());
    std::rotate(order_.begin(), order_.begin() + first, order_.end());
    std::ranges::stable_partition(order_, [&](std::size_t i) { return !cells_[i].cell.is_added; });
  }
}

std::size_t Pairing::fewest(std::span<const stats::PairedRule> rules) {
  std::size_t pairs_needed = 0;
  for (const stats::PairedRule& rule : rules)
    pairs_needed = std::max(pairs_needed, stats::fewest_pairs(rule));
  return pairs_needed;
}

// Returns how many pairs the cell gets before any cell is preferred.
std::size_t Pairing::first_pairs_goal(const CellState& state) const {
  return std::max(min_pairs_, fewest(state.cell.rules));
}

// Plans which cells get their first pairs (a base and a candidate run together) with the rest of
// the budget, in seconds. Cells come in their order; one that does not fit is left out.
std::vector<Pairing::Share> Pairing::plan() const {
  std::vector<Share> shares(cells_.size());
  double budget_left = budget_ - spent_;
  for (const std::size_t i : order_) {
    const CellState& state = cells_[i];
    if (state.given_up || state.cell.rules.empty()) continue;
    const std::size_t goal = first_pairs_goal(state);
    const std::size_t missing = goal > state.pairs ? goal - state.pairs : 0;
    shares[i].seconds = static_cast<double>(missing) * state.seconds_per_pair();
    shares[i].now = shares[i].seconds <= budget_left;
    if (shares[i].now) budget_left -= shares[i].seconds;
  }
  return shares;
}

double Pairing::seconds_for_one() const {
  double min_seconds = std::numeric_limits<double>::infinity();
  for (const CellState& state : cells_) {
    if (state.given_up || state.cell.rules.empty()) continue;
    min_seconds = std::min(min_seconds,
                           static_cast<double>(first_pairs_goal(state)) * state.seconds_per_pair());
  }
  return min_seconds;
}

double Pairing::seconds_for_all() const {
  double sum = 0;
  for (const CellState& state : cells_) {
    if (state.given_up || state.cell.rules.empty()) continue;
    sum += static_cast<double>(first_pairs_goal(state)) * state.seconds_per_pair();
  }
  return sum;
}

// Returns the cell with the lowest rank, or nothing if none has a rank.
template <class Rank>
std::optional<std::size_t> Pairing::lowest_ranked(const Rank& rank) const {
  std::optional<std::size_t> lowest;
  double best_rank = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order_) {
    const std::optional<double> rank_here = rank(i);
    if (!rank_here || !(*rank_here < best_rank)) continue;
    best_rank = *rank_here;
    lowest = i;
  }
  return lowest;
}

// Returns the cell that has run fewest of its first pairs.
std::optional<std::size_t> Pairing::next_first_pairs(bool of_added) const {
  const std::vector<Share> shares = plan();
  return lowest_ranked([&](std::size_t i) -> std::optional<double> {
    const CellState& state = cells_[i];
    // A decision ends a cell's first pairs early only if no minimum number is asked for.
    if (state.cell.is_added != of_added || !shares[i].now ||
        state.pairs >= first_pairs_goal(state) || !(min_pairs_ > 0 || state.is_open()))
      return {};
    return static_cast<double>(state.pairs);
  });
}

// Returns the open cell that needs the least time to be decided.
std::optional<std::size_t> Pairing::nearest_to_a_verdict(bool of_added) const {
  return lowest_ranked([&](std::size_t i) -> std::optional<double> {
    const CellState& state = cells_[i];
    if (state.cell.is_added != of_added || !state.is_open() ||
        state.pairs < fewest(state.cell.rules) || state.seconds_per_pair() > seconds_left())
      return {};
    const double seconds = state.more_pairs() * state.seconds_per_pair();
    // A cell that the rest of the budget cannot decide comes after all others.
    return seconds > seconds_left() ? seconds + 1e9 : seconds;
  });
}

// Returns the index of the passed cell that needs the least time to show an improvement. Nullopt if
// none can within the budget.
std::optional<std::size_t> Pairing::nearest_to_improved() const {
  return lowest_ranked([&](std::size_t i) -> std::optional<double> {
    const CellState& state = cells_[i];
    if (state.given_up || state.pairs == 0 || state.is_open()) return {};
    const auto more = state.pairs_to_improved();
    std::size_t decided = 0;
    for (const stats::PairedTest& test : state.tests)
      decided = std::max(decided, test.decided_after());
    const auto pairs_spent = static_cast<double>(state.pairs - decided);
    if (!more || *more + pairs_spent > k_max_pairs_to_prove_improvement ||
        *more * state.seconds_per_pair() > seconds_left())
      return {};
    return *more * state.seconds_per_pair();
  });
}

std::optional<std::size_t> Pairing::next() const {
  for (const bool of_added : {false, true}) {
    if (auto cell = next_first_pairs(of_added)) return cell;
    if (auto cell = nearest_to_a_verdict(of_added)) return cell;
  }
  return nearest_to_improved();
}

void Pairing::note(std::size_t cell, std::span<const stats::Pair> pairs, double seconds) {
  CellState& state = cells_[cell];
  ++state.pairs;
  state.seconds += seconds;
  spent_ += seconds;
  for (std::size_t i = 0; i < state.tests.size(); ++i) {
    if (!state.dropped[i]) state.tests[i].add(pairs[i]);
  }
}

void Pairing::give_up(std::size_t cell, std::span<const std::size_t> rules) {
  for (const std::size_t i : rules) cells_[cell].dropped[i] = true;
}

void Pairing::give_up(std::size_t cell) { cells_[cell].given_up = true; }

bool Pairing::decided(std::size_t cell) const {
  return !cells_[cell].given_up && !cells_[cell].is_open();
}

}  // namespace weir::run
