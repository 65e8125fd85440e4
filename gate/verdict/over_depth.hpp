// The line over a prompt's list of depths: cells that differ in depth alone make one more cell,
// named by the prompt without suffix, with what a token takes at zero context and what each token
// of context adds to that.
//
// Counts: per token (per prefill where the prompt generates nothing), the exact line through all
// depths; where there is none, that is told, and each depth's own cell judges alone. Instructions
// only nearly repeat and are not fitted.
// Times: Theil and Sen's line through the seconds per token of the k-th process at each depth, so
// that one process of each makes one line. A token's context is the depth it began at: the tokens
// generated since are the same number at every depth, and a part of "zero context". Pure.
#pragma once

#include <cstddef>

#include "gate/baseline/baseline.hpp"
#include "gate/profile/paired.hpp"

namespace weir::verdict {

struct DepthGroup {
  profile::CellKey fit;              // without depth
  std::vector<std::size_t> members;  // places in what was grouped, by rising depth; two or more
  std::vector<std::int64_t> depths;  // of these
};
// In the order of their first members.
[[nodiscard]] std::vector<DepthGroup> depth_groups(std::span<const profile::CellKey> cells);

// `profiles`, `choices`, `runs`: of all cells that were grouped, in that order.
[[nodiscard]] profile::Profile fit_profile(const DepthGroup& group,
                                           std::span<const profile::Profile> profiles);
// What the fitted counts of `candidate` are held to: the line through what each depth is held to.
// None, with a reason, where some depth is held to nothing.
[[nodiscard]] baseline::Choice fit_choice(const DepthGroup& group,
                                          const profile::Profile& candidate,
                                          std::span<const baseline::Choice> choices);
// Pair k of the fit is made of pair k of every depth: the base's line and the candidate's. It is
// whole, and counts, once every depth has run it. Fair where every depth's order was a coin's, one
// for all or one for each: turning all coins of a round over swaps the two lines, and is as likely.
// For that the pairs of a round must be run, all of them, once its first one was.
[[nodiscard]] profile::PairedRuns fit_pairs(const DepthGroup& group,
                                            std::span<const profile::PairedRuns> runs);

// Every group's fit behind the last of its members.
[[nodiscard]] std::vector<profile::Profile> with_fits(std::vector<profile::Profile> profiles);

// A line for each list of threads: what changes from one number of threads to the next, and what a
// thread adds where that is always the same.
[[nodiscard]] std::vector<std::string> over_threads(std::span<const profile::Profile> profiles);

}  // namespace weir::verdict
