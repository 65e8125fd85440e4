#include "gate/run/pairing.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace weir::run {

using stats::Decision;

namespace {

// An improvement is told, not gated: so many pairs at most are spent on being sure of one.
constexpr double k_most_for_improved = 40;

}  // namespace

double Pairing::One::each() const {
  return pairs == 0 ? cell.pair_seconds : seconds / static_cast<double>(pairs);
}

bool Pairing::One::open(std::size_t test) const {
  return !dropped[test] && tests[test].decision() == Decision::undecided;
}

bool Pairing::One::open() const {
  bool any = false;
  for (std::size_t i = 0; i < tests.size(); ++i) any = any || open(i);
  return any && !given_up;
}

double Pairing::One::more_pairs() const {
  double most = 0;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (!open(i)) continue;
    // Where nothing points either way yet, as many again as there were is a fair guess.
    most = std::max(most, tests[i].more_pairs().value_or(static_cast<double>(pairs)));
  }
  return std::max(1.0, most);
}

std::optional<double> Pairing::One::more_to_improve() const {
  std::optional<double> least;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (dropped[i]) continue;
    if (tests[i].decision() != Decision::pass) return std::nullopt;
    const auto more = stats::more_pairs_to_improved(tests[i].all(), cell.rules[i]);
    if (more && *more > 0 && (!least || *more < *least)) least = more;
  }
  return least;
}

Pairing::Pairing(std::vector<PairingCell> cells, double budget_seconds, std::uint64_t rotation,
                 std::size_t least)
    : budget_(budget_seconds), least_(least) {
  for (PairingCell& cell : cells) {
    One one;
    one.tests.reserve(cell.rules.size());
    for (const stats::PairedRule& rule : cell.rules) one.tests.emplace_back(rule);
    one.dropped.assign(one.tests.size(), false);
    one.cell = std::move(cell);
    order_.push_back(cells_.size());
    cells_.push_back(std::move(one));
  }
  if (!order_.empty()) {
    const auto first = static_cast<std::ptrdiff_t>(rotation % order_.size());
    std::rotate(order_.begin(), order_.begin() + first, order_.end());
  }
}

std::size_t Pairing::fewest(std::span<const stats::PairedRule> rules) {
  std::size_t most = 0;
  for (const stats::PairedRule& rule : rules) most = std::max(most, stats::fewest_pairs(rule));
  return most;
}

std::size_t Pairing::first(const One& one) const {
  return std::max(least_, fewest(one.cell.rules));
}

std::vector<Pairing::Share> Pairing::plan() const {
  std::vector<Share> shares(cells_.size());
  double left = budget_ - spent_;
  for (const std::size_t i : order_) {
    const One& one = cells_[i];
    if (one.given_up || one.cell.rules.empty()) continue;
    const std::size_t wanted = first(one);
    const std::size_t open = wanted > one.pairs ? wanted - one.pairs : 0;
    shares[i].seconds = static_cast<double>(open) * one.each();
    shares[i].now = shares[i].seconds <= left;
    if (shares[i].now) left -= shares[i].seconds;
  }
  return shares;
}

double Pairing::seconds_for_one() const {
  double least = std::numeric_limits<double>::infinity();
  for (const One& one : cells_) {
    if (one.given_up || one.cell.rules.empty()) continue;
    least = std::min(least, static_cast<double>(first(one)) * one.each());
  }
  return least;
}

double Pairing::seconds_for_all() const {
  double sum = 0;
  for (const One& one : cells_) {
    if (one.given_up || one.cell.rules.empty()) continue;
    sum += static_cast<double>(first(one)) * one.each();
  }
  return sum;
}

template <class Rank>
std::optional<std::size_t> Pairing::least_of(const Rank& rank) const {
  std::optional<std::size_t> found;
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order_) {
    const std::optional<double> here = rank(i);
    if (!here || !(*here < least)) continue;
    least = *here;
    found = i;
  }
  return found;
}

std::optional<std::size_t> Pairing::first_pairs() const {
  const std::vector<Share> shares = plan();
  return least_of([&](std::size_t i) -> std::optional<double> {
    const One& one = cells_[i];
    // A decision ends a cell before its first pairs are run only where nothing more is asked for.
    if (!shares[i].now || one.pairs >= first(one) || !(least_ > 0 || one.open())) return {};
    return static_cast<double>(one.pairs);
  });
}

std::optional<std::size_t> Pairing::nearest_to_a_verdict() const {
  return least_of([&](std::size_t i) -> std::optional<double> {
    const One& one = cells_[i];
    if (!one.open() || one.pairs < fewest(one.cell.rules) || one.each() > left()) return {};
    const double seconds = one.more_pairs() * one.each();
    // What would not be decided with all that is left comes after everything that may be.
    return seconds > left() ? seconds + 1e9 : seconds;
  });
}

std::optional<std::size_t> Pairing::nearest_to_improved() const {
  return least_of([&](std::size_t i) -> std::optional<double> {
    const One& one = cells_[i];
    if (one.given_up || one.pairs == 0 || one.open()) return {};
    const auto more = one.more_to_improve();
    std::size_t decided = 0;
    for (const stats::PairedTest& test : one.tests)
      decided = std::max(decided, test.decided_after());
    const auto spent_on_it = static_cast<double>(one.pairs - decided);
    if (!more || *more + spent_on_it > k_most_for_improved || *more * one.each() > left())
      return {};
    return *more * one.each();
  });
}

std::optional<std::size_t> Pairing::next() const {
  if (auto cell = first_pairs()) return cell;
  if (auto cell = nearest_to_a_verdict()) return cell;
  return nearest_to_improved();
}

void Pairing::note(std::size_t cell, std::span<const stats::Pair> pairs, double seconds) {
  One& one = cells_[cell];
  ++one.pairs;
  one.seconds += seconds;
  spent_ += seconds;
  for (std::size_t i = 0; i < one.tests.size(); ++i) {
    if (!one.dropped[i]) one.tests[i].add(pairs[i]);
  }
}

void Pairing::give_up(std::size_t cell, std::span<const std::size_t> rules) {
  for (const std::size_t i : rules) cells_[cell].dropped[i] = true;
}

void Pairing::give_up(std::size_t cell) { cells_[cell].given_up = true; }

bool Pairing::decided(std::size_t cell) const {
  return !cells_[cell].given_up && !cells_[cell].open();
}

}  // namespace weir::run
