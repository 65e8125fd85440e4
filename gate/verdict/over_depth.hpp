// The line over a prompt's list of depths. Cells that differ in depth alone make one more cell,
// named by the prompt without suffix: what a token takes at zero context, and what each token of
// context adds to that.
//
// Counts: per token (per prefill if the prompt generates nothing), the exact line through all
// depths. If there is none, a note says so, and each depth's own cell judges alone. Instructions
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
  std::vector<std::int64_t> depths;  // their depths, in the same order
};
// In the order of their first members.
[[nodiscard]] std::vector<DepthGroup> depth_groups(std::span<const profile::CellKey> cells);

// `profiles`, `choices`, `runs`: of all cells that were grouped, in that order.
[[nodiscard]] profile::Profile fit_profile(const DepthGroup& group,
                                           std::span<const profile::Profile> profiles);
// The base of the fitted counts of `candidate`: the line through the bases of all depths. Without a
// baseline, and with a reason, if some depth has none.
[[nodiscard]] baseline::BaselineChoice fit_baseline(
    const DepthGroup& group, const profile::Profile& candidate,
    std::span<const baseline::BaselineChoice> choices);
// Pair k of the fit is made of pair k of every depth: the base's line and the candidate's. It
// counts once every depth has run it. It is fair if a coin decides the order at every depth, one
// for all or one for each: turning all coins of a round swaps the two lines, and is as likely. For
// that, once the first pair of a round was run, all of its pairs must be run.
[[nodiscard]] profile::PairedRuns fit_pairs(const DepthGroup& group,
                                            std::span<const profile::PairedRuns> runs);

// Adds every group's fit after the last of its members.
[[nodiscard]] std::vector<profile::Profile> add_depth_fits(std::vector<profile::Profile> profiles);

// A line for each list of threads: what changes from one number of threads to the next, and what a
// thread adds where that is always the same.
[[nodiscard]] std::vector<std::string> describe_thread_scaling(
    std::span<const profile::Profile> profiles);

}  // namespace weir::verdict
