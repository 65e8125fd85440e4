// The questions that judge_cell() is made of, one file each. Used by this module alone, but for
// judges().
//
//   counts.cpp       what a count did, exactly
//   kernel_code.cpp  the code behind the names of kernels; kernel_costs.cpp what it costs
//   kernels.cpp      kernels, placement, single kernels and ops that limits name, and whether both
//                    sides did the same work
//   times.cpp        what a time did, within what stored samples can tell, on the machine as it is
//                    now; what times of servers stand on
//   paired_rule.cpp  what a time did beside a base program, with an error guarantee
//   cell.cpp         a cell's verdict; gate.cpp: a gate's
#pragma once

#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

using baseline::Baseline;
using profile::Measurement;
using profile::Profile;

struct Question {
  Question(const Profile& profile, const Base& compared, std::span<const LimitEntry> entries,
           const Policy& rules);

  const Profile& candidate;
  const baseline::Choice& choice;
  std::span<const LimitEntry> limits;
  const Policy& policy;
  const profile::PairedRuns* pairs;  // beside a base program; may be null
  const Baseline* base;  // the one that may judge (same or nearest class); null otherwise

  [[nodiscard]] bool nearest() const { return choice.match == baseline::Choice::Match::nearest; }
  // Whose metric, nature, source and limit are those of `measured`; nothing is judged yet.
  [[nodiscard]] Judgement about(const Measurement& measured) const;
  // Nothing judges it, for this reason: new, or an error where an exact baseline is required.
  [[nodiscard]] Ruling fresh(bool exact, const std::string& why) const;
};

[[nodiscard]] Outcome worst(Outcome a, Outcome b);
// Not new, skipped, unmeasured or without a limit.
[[nodiscard]] bool judges(Outcome outcome);
// Keeps the worse of both; the first of equal ones.
void take_worse(std::optional<Ruling>& ruling, Ruling other);

// Turns a verdict into information where the limit's mode says so, and tells what it would be.
void show_only(const Limit& limit, Ruling& ruling);

// What differs from a baseline of the nearest class is new (an error where an exact baseline is
// required), whatever it would be beside one of its own class: the class may have changed it.
// Nothing happens beside a baseline of the same class.
void new_beside_nearest(const Question& question, bool exact, Ruling& ruling);

// Every count of the candidate, and those that the baseline has and the candidate lacks.
[[nodiscard]] std::vector<Judgement> judge_counts(const Question& question);

// One count. `base` is absent where nothing is held against it.
[[nodiscard]] Judgement judge_count(const Question& question, const Measurement& current,
                                    const std::optional<Measurement>& base);

// What the baseline holds and the candidate lacks. With a limit that is an error: a count that can
// no longer be measured must not pass in silence.
[[nodiscard]] std::optional<Judgement> judge_missing(const Question& question,
                                                     const Measurement& base);

// Calls of the single kernels and ops that limits name. What could not be judged goes into
// `not_judged`, ready to show.
[[nodiscard]] std::vector<Judgement> judge_works(const Question& question,
                                                 std::vector<std::string>& not_judged);

// How far the likely tokens of the output are from the base's; none where nobody asked for them.
[[nodiscard]] std::vector<Judgement> judge_likely_tokens(const Question& question);

// Costs of single kernels that limits name, on either side ("registers:NAME"); the worst code of
// each name. kernel_costs.cpp.
using Costs = std::map<std::string, Measurement>;
[[nodiscard]] Costs costs_of(const std::optional<profile::KernelSet>& codes,
                             const std::map<std::string, profile::CodeFacts>& facts,
                             const std::string& compiler);
[[nodiscard]] std::vector<Judgement> judge_kernel_costs(const Question& question,
                                                        std::vector<std::string>& not_judged);

// Every time and memory, in the order of their names.
[[nodiscard]] std::vector<Judgement> judge_times(const Question& question);
// What the baseline of this machine held as a time and this run lacks, although it was timed.
[[nodiscard]] std::vector<Judgement> missing_times(const Question& question);

// Of servers beside each other: how many starts the times are of, and what those do not cover.
[[nodiscard]] std::optional<std::string> starts_note(const Question& question);

// A time of pairs. Fills everything but limit, which it is given with.
void judge_pairs(const Question& question, const profile::PairedMetric& metric, Judgement& made);

// Counted over the same: then their numbers can be compared.
[[nodiscard]] bool alike(const profile::KernelSet& a, const profile::KernelSet& b);
// Those of a cell whose metrics were judged, and what its notes have to say of them.
[[nodiscard]] Judgement judge_kernels(const Question& question, CellVerdict& cell);
[[nodiscard]] Judgement judge_kernel_code(const Question& question, CellVerdict& cell);
[[nodiscard]] Judgement judge_placement(const Question& question, CellVerdict& cell);
// Kernels of the same code that are called as often, by another name: the name before -> now.
[[nodiscard]] std::map<std::string, std::string> renamed_kernels(const Question& question,
                                                                 std::span<const Changed> kernels);
// Fills functions (after the metrics of the cell were judged).
void explain_instructions(const Question& question, CellVerdict& cell);

// The worst of what a cell's judgements and errors say becomes its verdict; false,
// and nothing changed, where nothing was judged.
bool fold(CellVerdict& cell);

// Something of it was compared, with a base or a plain limit.
[[nodiscard]] bool is_compared(const CellVerdict& cell);

// Why the two sides did not do the same work; nothing when they did, or when one does not say.
[[nodiscard]] std::optional<std::string> other_work(const Question& question);
// The nearest class computed another output: a note, for another class may round otherwise.
[[nodiscard]] std::optional<std::string> other_output(const Question& question);

// "times are held to those of the reference workload …", or why they are not; nothing without one.
[[nodiscard]] std::optional<std::string> reference_note(const Question& question);

// The one of a metric, in a list of what has one; null where there is none.
template <class List>
[[nodiscard]] auto* of_metric(List& list, std::string_view name) {
  return first_of(list, [&](const auto& one) { return one.metric.name == name; });
}

// "3 cells", "1 pair".
[[nodiscard]] std::string plural(std::size_t number, std::string_view what);
// A relative change in words: "-3.1 %".
[[nodiscard]] std::string percent(double share);
// Exact or not, with its number in words: "133/2".
[[nodiscard]] std::string shown(const Measurement& measured);

// Patterns in the limits of the question's cell that begin with one of these.
[[nodiscard]] std::vector<std::string> patterns_of(const Question& question,
                                                   std::span<const std::string> prefixes);

// Placement shown on both sides, and no op has come to the CPU: only then fewer counts are an
// improvement.
[[nodiscard]] bool work_stayed(const Question& question);

}  // namespace weir::verdict
