// The questions that judge_cell() is made of, one file each. Used by this module alone.
//
//   counts.cpp   what a count did, exactly
//   works.cpp    single kernels and ops that limits name
//   work.cpp     kernels, placement, and whether both sides did the same work
//   times.cpp    what a time did, within what stored samples can tell
//   paired_times.cpp  what a time did beside a base program, with an error guarantee
//   confirm.cpp  what pairs say of a time that failed against stored samples
//   served.cpp   what times of servers stand on
//   reference.cpp  stored times on the machine as it is now
//   cell.cpp     a cell's verdict; gate.cpp: a gate's
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/verdict/judging.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

struct Question {
  const profile::Profile& candidate;
  const baseline::Choice& choice;
  std::span<const LimitEntry> limits;
  const Policy& policy;
  const profile::PairedRuns* pairs = nullptr;  // beside a base program

  // The baseline that may judge (same or nearest class); null otherwise.
  [[nodiscard]] const baseline::Baseline* judge() const;
  [[nodiscard]] bool nearest() const { return choice.match == baseline::Choice::Match::nearest; }
};

[[nodiscard]] Outcome worst(Outcome a, Outcome b);

// Turns a verdict into information where the limit's mode says so, and tells what it would be.
void show_only(const Limit& limit, Outcome& verdict, std::string& reason);

// What differs from a baseline of the nearest class is new (an error where an exact baseline is
// required), whatever it would be beside one of its own class: another driver may change it.
// Nothing happens beside a baseline of the same class.
void new_beside_nearest(const Question& question, bool exact, Outcome& verdict,
                        std::string& reason);

// Every count of the candidate, and those that the baseline has and the candidate lacks.
[[nodiscard]] std::vector<MetricVerdict> judge_counts(const Question& question);

// One count. `base` is null where nothing is held against it.
[[nodiscard]] MetricVerdict judge_count(const Question& question,
                                        const profile::Measurement& current,
                                        const profile::Measurement* base);

// Calls of the single kernels and ops that limits name. What could not be judged goes into
// `not_judged`, ready to show.
[[nodiscard]] std::vector<MetricVerdict> judge_works(const Question& question,
                                                     std::vector<std::string>& not_judged);

// Every time and memory, in the order of their names.
[[nodiscard]] std::vector<MetricVerdict> judge_times(const Question& question);

// A percentile of so few requests that it lies between the two largest, where a limit is on it.
[[nodiscard]] std::optional<std::string> percentile_doubt(const profile::Profile& candidate,
                                                          const MetricVerdict& metric);
// Of servers beside each other: how many starts the times are of, and what those do not cover.
[[nodiscard]] std::optional<std::string> starts_note(const Question& question);

// A time of pairs. Fills everything but limit, which it is given with.
void judge_pairs(const Question& question, const profile::PairedMetric& metric,
                 MetricVerdict& made);

// Fill kernels_* (after cell.metrics holds the counts) and placement_* of a cell.
void judge_kernels(const Question& question, CellVerdict& cell);
// Fills functions (after cell.metrics holds the counts).
void explain_instructions(const Question& question, CellVerdict& cell);
void judge_placement(const Question& question, CellVerdict& cell);

// The worst of what a cell's metrics, kernels, placement and errors say becomes its verdict; false,
// and nothing changed, where nothing was judged.
bool fold(CellVerdict& cell);

// Why the two sides did not do the same work; nothing when they did, or when one does not say.
[[nodiscard]] std::optional<std::string> other_work(const Question& question);
// The nearest class computed another output: a note, for another driver may round otherwise.
[[nodiscard]] std::optional<std::string> other_output(const Question& question);

// A relative change in words: "-3.1 %".
[[nodiscard]] std::string percent(double share);
// Exact or not, with its number in words: "133/2".
[[nodiscard]] std::string shown(const profile::Measurement& measured);
// What something changed by, relative to where it was; absent at 0.
[[nodiscard]] std::optional<double> relative(double from, double to);

// Placement shown on both sides, and no op has come to the CPU: only then fewer counts are an
// improvement.
[[nodiscard]] bool work_stayed(const Question& question);

// Samples of one metric, divided by what the reference workload did in the same round and brought
// to its median speed in this run.
struct Normalized {
  std::vector<std::vector<double>> sessions;
  std::vector<double> current;
};
// Absent, and the plain samples are compared, unless this run and every session have a rate of the
// same reference beside each sample.
[[nodiscard]] std::optional<Normalized> normalized(
    const profile::Profile& candidate, const profile::Measurement& current,
    const std::vector<const baseline::Session*>& sessions);

// "times are held to those of the reference workload …", or why they are not; nothing without one.
[[nodiscard]] std::optional<std::string> reference_note(const Question& question);

// The reference workload tells of the machine: its times are shown and never judged.
[[nodiscard]] bool is_reference(const profile::Profile& candidate);

}  // namespace weir::verdict
