// Documents that weir writes about a run, as what a history keeps: a verdict (weir.verdict/1), and
// the profiles of `weir run --json` (weir.profiles/1). Pure; documents are hostile.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/baseline/baseline.hpp"
#include "gate/history/history.hpp"
#include "gate/history/store.hpp"
#include "gate/profile/profile.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::history {

// What weir measured, as runs of a history: profiles of a run, a verdict, stored baselines. Pure.
//
// What comes in has aliases in place of private names already (flow/redacted.hpp): nothing here
// knows the true ones.

// Every metric that has a number, of cells whose other pass failed too. `facts` as they are; its
// id is the caller's.
[[nodiscard]] Run run_of(RunFacts facts, std::span<const profile::Profile> profiles);
// The same from a verdict alone: its numbers, without samples.
[[nodiscard]] Run run_of(RunFacts facts, const verdict::GateVerdict& verdict);
// A verdict as it is kept. `facts` are those of its run; `run` is its id, or "" where the verdict
// came alone.
[[nodiscard]] StoredVerdict stored_verdict(const RunFacts& facts, const std::string& run,
                                           const verdict::GateVerdict& verdict, double kept_at);

// Code::data where its text is no verdict.
[[nodiscard]] Result<verdict::GateVerdict> verdict_of(const StoredVerdict& stored);
// What a verdict judged: its cells, and "CELL: METRIC" (rules as well: "kernels"). Nothing of
// what was new, skipped, unmeasured or only shown, nor of a text that is no verdict.
[[nodiscard]] std::set<std::string> judged_parts(const StoredVerdict& verdict);
// Where it lacks some of what `before` judged it counts as not judged: an error, unless it fails.
// That in words; nothing where it has all.
[[nodiscard]] std::optional<std::string> miss_parts(const std::set<std::string>& before,
                                                    StoredVerdict& verdict);

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

// What whoever hands a document in says of it; it goes before what the document says.
struct GivenFacts {
  std::string project = "default";
  std::optional<std::string> machine, commit, branch;
  std::optional<double> time;  // when it was measured; seconds since the epoch
};

// What is known around it.
struct Around {
  double now = 0;  // StoredVerdict::kept_at
  // When it was measured, where neither document nor facts nor its commit say so.
  std::optional<double> otherwise{};
  // The time of a commit that a repository at hand knows.
  std::function<std::optional<double>(const std::string& commit)> time_of_commit{};
};

inline constexpr std::string_view k_profiles_schema = "weir.profiles/1";
inline constexpr std::string_view k_verdict_schema = "weir.verdict/1";
inline constexpr std::size_t k_most_profiles = 10'000;

// Profiles of a weir.profiles/1 document. Code::data where it is none.
[[nodiscard]] Result<std::vector<profile::Profile>> profiles_from_json(const Json& json);

// A verdict and its numbers, without samples. Code::usage where nothing says when it was measured.
[[nodiscard]] Result<Batch> batch_of(const verdict::GateVerdict& verdict, const GivenFacts& given,
                                     const Around& around);
// A run of these profiles. They say no time: without given.time it is the commit's or `otherwise`.
[[nodiscard]] Result<Batch> batch_of(const std::vector<profile::Profile>& profiles,
                                     const GivenFacts& given, const Around& around);

}  // namespace weir::history
