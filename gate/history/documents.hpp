// Turns documents that weir writes about a run into what a history stores: a verdict
// (weir.verdict/1), and the profiles of `weir run --json` (weir.profiles/1). Pure; documents are
// hostile.
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

// Turns measurements into runs of a history: profiles of a run, a verdict, stored baselines. Pure.
//
// The input has aliases in place of private names already (flow/redacted.hpp): nothing here knows
// the true ones.

// A run with every metric that has a number, also of cells whose other pass failed. `facts` are
// taken as they are; the caller makes the id.
[[nodiscard]] Run make_run(RunFacts facts, std::span<const profile::Profile> profiles);
// The same from a verdict alone: its numbers, without samples.
[[nodiscard]] Run make_run(RunFacts facts, const verdict::GateVerdict& verdict);
// A verdict as it is stored. `facts` are those of its run; `run` is its id, or "" if the verdict
// came alone.
[[nodiscard]] StoredVerdict stored_verdict(const RunFacts& facts, const std::string& run,
                                           const verdict::GateVerdict& verdict, double kept_at);

// Code::data if its text is no verdict.
[[nodiscard]] Result<verdict::GateVerdict> verdict_of(const StoredVerdict& stored);
// The parts that a verdict judged: its cells, and "CELL: METRIC" (rules as well: "kernels"). New,
// skipped, unmeasured and shown parts are left out; empty for a text that is no verdict.
[[nodiscard]] std::set<std::string> judged_parts(const StoredVerdict& verdict);
// If `verdict` lacks parts that are in `before`, makes it count as not judged: an error, unless it
// fails. Returns that in words; nothing if it has all.
[[nodiscard]] std::optional<std::string> note_missing_parts(const std::set<std::string>& before,
                                                            StoredVerdict& verdict);

// A commit's change of one stored baseline.
struct BaselineChange {
  std::optional<baseline::Baseline> before;  // none: it is new
  baseline::Baseline after;
};
// The runs that one commit's changes of baselines stand for: counts by device, and new timed
// sessions by machine class. `facts` are the commit's; ids and machines are made here. Unless
// `facts` names a machine, that of counts is the device without its driver version
// ("vulkan-10005-0"): another version is then an event on the series.
[[nodiscard]] std::vector<Run> make_baseline_runs(const RunFacts& facts,
                                                  std::span<const BaselineChange> changes);

// The name of a machine without its system, which changes with an image:
// "AMD EPYC 9654 96-Core Processor, 2 cores, 24 GiB, debian 12". Series are grouped by it.
[[nodiscard]] std::string series_machine(std::string_view machine_name);

// Facts that the sender of a document states. They override those in the document.
struct SenderFacts {
  std::string project = "default";
  std::optional<std::string> machine, commit, branch;
  std::optional<double> time;  // when it was measured; seconds since the epoch
};

// Facts from the surroundings.
struct TimeContext {
  double now = 0;  // StoredVerdict::kept_at
  // The time of measurement if neither document nor sender nor commit state it.
  std::optional<double> default_time{};
  // The time of a commit that a repository at hand knows.
  std::function<std::optional<double>(const std::string& commit)> time_of_commit{};
};

inline constexpr std::string_view k_profiles_schema = "weir.profiles/1";
inline constexpr std::string_view k_verdict_schema = "weir.verdict/1";
inline constexpr std::size_t k_max_profiles = 10'000;

// Reads a weir.profiles/1 document. Code::data if it is none.
[[nodiscard]] Result<std::vector<profile::Profile>> profiles_from_json(const Json& json);

// A verdict and its numbers, without samples. Code::usage if nothing states the time of
// measurement.
[[nodiscard]] Result<Batch> make_batch(const verdict::GateVerdict& verdict,
                                       const SenderFacts& sender, const TimeContext& time_context);
// A run of these profiles. They state no time: without sender.time it is the commit's or
// `otherwise`.
[[nodiscard]] Result<Batch> make_batch(const std::vector<profile::Profile>& profiles,
                                       const SenderFacts& sender, const TimeContext& time_context);

}  // namespace weir::history
