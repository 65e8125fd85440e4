// What weir measured, as runs of a history: profiles of a run, a verdict, stored baselines. Pure.
//
// What comes in has aliases in place of private names already (app/veiled.hpp): nothing here knows
// the true ones.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/baseline/baseline.hpp"
#include "gate/history/history.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::history {

// Every metric that has a number, of cells whose other pass failed too. `facts` as they are; its
// id is the caller's.
[[nodiscard]] Run run_of(RunFacts facts, std::span<const profile::Profile> profiles);
// The same from a verdict alone: its numbers, without samples.
[[nodiscard]] Run run_of(RunFacts facts, const verdict::GateVerdict& verdict);
// A verdict as it is kept. `facts` are those of its run; `run` is its id, or "" where the verdict
// came alone.
[[nodiscard]] StoredVerdict stored_verdict(const RunFacts& facts, const std::string& run,
                                           const verdict::GateVerdict& verdict, double kept_at);

// What a commit changed in one stored baseline.
struct BaselineChange {
  std::optional<baseline::Baseline> before;  // none: it is new
  baseline::Baseline after;
};
// The runs that one commit's changes of baselines stand for: counts by device, and timed sessions
// that are new by machine class. `facts` are the commit's; ids and machines are made here. The
// machine of counts is the device without the version of its driver ("vulkan-10005-0"), so that
// another version is an event on the series, unless `facts` names one for all.
[[nodiscard]] std::vector<Run> runs_of(const RunFacts& facts,
                                       std::span<const BaselineChange> changes);

// "AMD EPYC 9654 96-Core Processor, 2 cores, 24 GiB, debian 12" without its system, which changes
// with an image: what a series goes by.
[[nodiscard]] std::string machine_of(std::string_view machine_name);

}  // namespace weir::history
