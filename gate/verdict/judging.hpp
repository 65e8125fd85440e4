// The parts that judge_cell() is made of, one file each. Used by this module alone, but for
// is_judged().
//
//   counts.cpp       how an exact count changed
//   kernel_code.cpp  the code behind the names of kernels; kernel_costs.cpp what it costs
//   kernels.cpp      kernels, placement, single kernels and ops that limits name, and the work done
//   times.cpp        how a time changed, as far as stored samples show; the reference workload
//   paired_rule.cpp  how a time changed in pairs beside a base program, with an error guarantee
//   cell.cpp         a cell's verdict; gate.cpp: a gate's
#pragma once

#include <cmath>
#include <span>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

using baseline::Baseline;
using profile::Measurement;
using profile::Profile;

// The kinds of counts that a side has.
struct CountKinds {
  CountKinds() = default;
  explicit CountKinds(const std::map<std::string, Measurement>& counts);

  std::set<std::string> sources;
  std::set<std::string> counts_at_lengths;  // counts that lie on no line, by their name "…_fixed"
  std::set<std::pair<unit::Scope, std::optional<std::int64_t>>> marks;  // of an engine's own marks
  bool has_buffers = false;                                             // command buffers by label
};

// A candidate, what it is compared with, and the rules that it is judged by.
struct Comparison {
  Comparison(const Profile& profile, const Base& compared, const LimitTable& table,
             const Policy& rules);

  const Profile& candidate;
  const baseline::BaselineChoice& baseline_choice;
  const LimitTable& limits;
  const EntrySet fitting_limits;  // of this cell
  const Policy& policy;
  const profile::PairedRuns* pairs;  // beside a base program; may be null
  const std::map<std::string_view, const profile::PairedMetric*> paired_metrics;
  const Baseline* base;  // the baseline that may judge (same or nearest class); else null
  const CountKinds base_kinds;

  [[nodiscard]] bool is_other_device() const {
    return baseline_choice.match == baseline::BaselineChoice::Match::nearest;
  }
  // A judgement with the metric, nature, source and limit of `measured`, and no verdict yet.
  [[nodiscard]] Judgement start_judgement(const Measurement& measured) const;
  // The limit on one of k_non_metrics.
  [[nodiscard]] Limit non_metric_limit(std::string_view name) const {
    return limits.resolve_non_metric(fitting_limits, name);
  }
  // The ruling on a number that nothing judges, for the reason `why`: new, or an error where an
  // exact baseline is required.
  [[nodiscard]] Ruling ruling_without_base(bool exact, const std::string& why) const;
};

[[nodiscard]] Outcome worst(Outcome a, Outcome b);
// False for new, skipped, unmeasured and without a limit.
[[nodiscard]] bool is_judged(Outcome outcome);
// Replaces `ruling` by `other` if that is worse; the first of equal ones stays. If both fail, the
// reason names both limits.
void keep_worse(std::optional<Ruling>& ruling, Ruling other);

// Turns a verdict into information if the limit's mode says so; its reason says what it would be.
void apply_limit_mode(const Limit& limit, Ruling& ruling);

// Turns a ruling into a new one (an error where an exact baseline is required) if the baseline is
// of the nearest class only: the class may have changed the number. Else does nothing.
void make_new_if_other_device(const Comparison& comparison, bool exact, Ruling& ruling);

// Every count of the candidate, and those that the baseline has and the candidate lacks.
[[nodiscard]] std::vector<Judgement> judge_counts(const Comparison& comparison);

// Judges one count. `base` is absent where it is compared with nothing.
[[nodiscard]] Judgement judge_count(const Comparison& comparison, const Measurement& current,
                                    const std::optional<Measurement>& base);

// Judges a count that the baseline holds and the candidate lacks. With a limit that is an error: a
// count that can no longer be measured must not pass in silence. `own`: the engine's own word for
// it, where a probe counted the baseline's; null if there is none.
[[nodiscard]] std::optional<Judgement> judge_missing(const Comparison& comparison,
                                                     const Measurement& base,
                                                     const Measurement* own = nullptr);

// Judges the calls of single kernels and ops that limits name. Patterns that could not be judged go
// into `not_judged`, ready to show.
[[nodiscard]] std::vector<Judgement> judge_kernel_calls(const Comparison& comparison,
                                                        std::vector<std::string>& not_judged);

// Judges how far the likely tokens of the output are from the base's. Empty if no limit asks for
// it.
[[nodiscard]] std::vector<Judgement> judge_likely_tokens(const Comparison& comparison);

// Costs of single kernels that limits name, on either side ("registers:NAME"); the worst code of
// each name. kernel_costs.cpp.
using Costs = std::map<std::string, Measurement>;
[[nodiscard]] Costs worst_costs(const std::optional<profile::KernelSet>& codes,
                                const std::map<std::string, profile::CodeFacts>& facts,
                                const std::string& compiler);
[[nodiscard]] std::vector<Judgement> judge_kernel_costs(const Comparison& comparison,
                                                        std::vector<std::string>& not_judged);

// Every time and memory, in the order of their names.
[[nodiscard]] std::vector<Judgement> judge_times(const Comparison& comparison);
// Judges the times that the baseline of this machine holds and this run lacks, although it was
// timed.
[[nodiscard]] std::vector<Judgement> judge_missing_times(const Comparison& comparison);

// For servers in pairs: how many starts their times stand on, and what so few starts cannot show.
[[nodiscard]] std::optional<std::string> describe_starts(const Comparison& comparison);

// Judges a time by pairs. Fills all of `judgement` but its limit, which must be set.
void judge_pairs(const Comparison& comparison, const profile::PairedMetric& metric,
                 Judgement& judgement);

// True if both were counted over the same unit of work, so that their numbers can be compared.
[[nodiscard]] bool same_counting_scope(const profile::KernelSet& a, const profile::KernelSet& b);
// Returns true if what was the same in all runs of one length of the base varies now. Requests that
// overlap meet in other batches each time, so theirs may.
[[nodiscard]] bool varies_only_now(const Comparison& comparison, const profile::KernelSet& base,
                                   const profile::KernelSet& now);
// Returns the outcome of that: a fail, but open beside a base that a few processes of this run
// counted, where it may be chance. The counts that vary decide there.
[[nodiscard]] Outcome outcome_of_new_variation(const Comparison& comparison);
// These three judge a cell whose metrics were judged already, and may add notes to it.
[[nodiscard]] Judgement judge_kernels(const Comparison& comparison, CellVerdict& cell);
[[nodiscard]] Judgement judge_kernel_code(const Comparison& comparison, CellVerdict& cell);
[[nodiscard]] Judgement judge_placement(const Comparison& comparison, CellVerdict& cell);
// Kernels with the same code and as many calls under another name: the old name -> the new one.
[[nodiscard]] std::map<std::string, std::string> find_renamed_kernels(
    const Comparison& comparison, std::span<const Changed> kernels);
// Fills CellVerdict::functions. The metrics of the cell must be judged already.
void list_changed_functions(const Comparison& comparison, CellVerdict& cell);

// Returns the worst outcome of a cell's judgements; `info` if nothing was judged.
[[nodiscard]] Outcome fold(std::span<const Judgement> judgements);
// Makes the worst of a cell's judgements and errors its verdict. Returns false, and changes
// nothing, if nothing was judged.
bool fold_judgements(CellVerdict& cell);

// True if some part of the cell was compared, with a base or a plain limit.
[[nodiscard]] bool is_compared(const CellVerdict& cell);

// Says how the work of the two sides differs, also in what the base alone reports of it; nothing if
// it does not.
[[nodiscard]] std::optional<std::string> work_difference(const Comparison& comparison);
// Says how the output differs where that is no error: the nearest class may round otherwise.
[[nodiscard]] std::optional<std::string> output_difference(const Comparison& comparison);

// Says how the reference workload was used to compare times, or why it was not; nothing without
// one.
[[nodiscard]] std::optional<std::string> describe_reference_use(const Comparison& comparison);

// The item of `list` with the metric `name`; null if there is none.
template <class List>
[[nodiscard]] auto* find_by_metric(List& list, std::string_view name) {
  return find_first(list, [&](const auto& item) { return item.metric.name == name; });
}

// The number, exact where it is: "133/2", "0.25"; "nothing" if there is none.
[[nodiscard]] std::string value_text(const Measurement& measured);

// The patterns in the limits of the cell that begin with one of `prefixes`, by their places in the
// table, in the order of the entries.
struct WantedPatterns {
  std::vector<std::size_t> places;
  PatternSet set;
};
[[nodiscard]] WantedPatterns patterns_starting_with(const Comparison& comparison,
                                                    std::span<const std::string> prefixes);

// True if placement is shown on both sides and no op moved to the CPU or a third device. Only then
// a lower count is an improvement.
[[nodiscard]] bool has_no_moved_ops(const Comparison& comparison);

// Says which ops of the graph run less often than in the base, where no output shows that both
// sides did the same work; "" if none does, or the ops are not known.
[[nodiscard]] std::string describe_dropped_ops(const Comparison& comparison);

}  // namespace weir::verdict
