// Replays: what the paired rule would decide on a machine, from pairs that were measured there.
//
// A replay draws blocks of neighbouring pairs (stationary bootstrap: Politis and Romano, JASA 1994)
// so that drift and states keep their shape, and flips a fresh coin for each, as a gate would. It
// does not prove the error rates (the coin does: evidence.hpp). It shows how many pairs noise
// costs. Pure; the same seed draws the same replay on every system.
#pragma once

#include <cstdint>

#include "gate/stats/paired.hpp"

namespace weir::stats {

// Pairs of one cell: series[m] holds those of its m-th metric, all of the same runs in the order
// they ran, so all are equally long.
using CellPairs = std::vector<std::vector<Pair>>;

enum class ReplayAs {
  unchanged,  // both sides one program: their middle difference is taken out, a coin swaps them
  at_limit,   // the same, and then the candidate is slower by each rule's `limit`
  measured,   // sides as they were measured, whatever they differ by
};

struct CellReplay {
  std::size_t pairs = 0;   // until every metric's test had ended; `max_pairs` if some did not
  bool decided = true;     // every metric passed or failed (else: too few pairs, or sides unlike)
  bool failed = false;     // some metric failed
  bool all_failed = true;  // each metric failed
};

// rules[m] judges series[m]. Needs one series at least, as many rules, 2 pairs at least, most >= 1.
[[nodiscard]] CellReplay replay_cell(const CellPairs& series, std::span<const PairedRule> rules,
                                     ReplayAs as, std::uint64_t seed, std::size_t max_pairs);

// The mean length of a block in a series of so many pairs.
[[nodiscard]] double replay_block(std::size_t pairs);

// The noise of pairs: the standard deviation of candidate - base if it were normal. It is computed
// from the middle half (interquartile range / 1.349), so that outliers count as one each. Infinite
// if a quarter of the runs did not end. 0 without pairs.
[[nodiscard]] double pair_noise(std::span<const Pair> pairs);

// The largest chance that `hits` or fewer of `trials` does not reject at 1 - `confidence`
// (Clopper and Pearson, one-sided). 0 <= hits <= trials; 1 where hits == trials.
[[nodiscard]] double max_share(std::size_t hits, std::size_t trials, double confidence = 0.95);

}  // namespace weir::stats
