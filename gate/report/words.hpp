// Verdicts in words and numbers: one place for every format.
//
// All text is plain: no escaping for a format, no wrapping. Text from outside (names, reasons) has
// been through printable_line(). Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/report/layout.hpp"
#include "gate/report/part.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::Judgement;
using verdict::Outcome;

// How an outcome looks in each format.
struct OutcomeLook {
  std::string_view tag;      // the short word at the head of a line: "FAIL", "error", "open", …
  std::string_view color;    // SGR parameters: "1;31"
  std::string_view sign;     // in Markdown
  std::string_view level;    // in an annotation: "error", "warning", "notice"
  std::string_view element;  // in JUnit: "failure", "error", "skipped", "" for a pass
  // Text after "3 of 8 cells"; {are} becomes "is" or "are". "" for a pass.
  std::string_view headline;
  int code;  // in OpenMetrics: 0 if nobody has to do anything, so that an alert needs no table
};
[[nodiscard]] const OutcomeLook& outcome_look(verdict::Outcome outcome);

// Returns a judgement as a row: label, base, candidate, change, evidence and limit. `to_keep` asks
// readers to accept improvements, which makes sense if stored baselines judge.
[[nodiscard]] Number words(const verdict::Judgement& metric, bool to_keep = true);

// Returns true for a count that improved, whose limit reads "improved: accept to keep".
[[nodiscard]] bool limit_says_improved(const verdict::Judgement& metric);
// Returns true if the numbers and the limit alone say why, as with an exact count that grew.
[[nodiscard]] bool reason_is_plain(const verdict::Judgement& metric);
// Returns true for a metric at `mode: report` that changed: it isn't judged, but users asked to see
// it.
[[nodiscard]] bool has_observed_change(const verdict::Judgement& metric);
// Returns true for dispatches, barriers, syncs and throughput, which are shown even if fine.
[[nodiscard]] bool is_key_metric(const unit::Metric& metric);
// Returns true for the count that the cell's kernels add up to: dispatches, or ops on the CPU.
[[nodiscard]] bool is_kernel_total(const verdict::CellVerdict& cell, const unit::Metric& metric);

// Returns true if the metric is above its `max` or below its `min`, whatever the base was.
[[nodiscard]] bool breaks_plain_limit(const verdict::Judgement& judgement);

// Returns true if the cell has no numbers; one that could only not be compared has numbers.
[[nodiscard]] bool is_unmeasured(const verdict::CellVerdict& cell);

// Returns true if nothing of the cell was compared, so that its reason is all there is to say.
[[nodiscard]] bool reason_is_all(const verdict::CellVerdict& cell);

// Returns true for the count of instructions, if the cell knows which functions changed.
[[nodiscard]] bool explained_by_functions(const verdict::CellVerdict& cell,
                                          const unit::Metric& metric);

// Returns a count as "65", "66.5", or rounded with its exact value: "44.33 (133/3)".
[[nodiscard]] std::string show(const Rational& value);
// "+12", "−0.333".
[[nodiscard]] std::string show_change(const Rational& value);
// "+12", "−64.0 KiB".
[[nodiscard]] std::string show_change(const unit::Metric& metric, double change);

// A value and its text.
using ShownValue = std::pair<double, std::string>;
// Returns "68", or "68 … 82" if the values differ; "" without values.
[[nodiscard]] std::string value_range(const std::vector<ShownValue>& values);

// A kernel, op or function with its change.
struct NamedChange {
  std::string change;  // "+12", or "12 → 24" when the difference is no number
  std::string name;
};
// Returns the changes of kernels or ops, the largest first; what grew comes before what shrank.
[[nodiscard]] std::vector<NamedChange> named_changes(const std::vector<verdict::Changed>& changed);

// Returns the changes of functions, the largest first: "+312040 (+12.0 %)".
[[nodiscard]] std::vector<NamedChange> named_function_changes(
    const std::vector<verdict::Changed>& changed);

// Returns a table of counts and functions, the largest first: "2016340", "ggml_vec_dot_f16".
[[nodiscard]] TextTable functions_table(const profile::KernelSet& functions);

// Returns a metric that a server reported: "+4096" for a counter, "3.75" for others.
[[nodiscard]] std::string show(const profile::ServerFigure& figure);

// Returns engine, model, backend and prompt of a cell, each made inert.
[[nodiscard]] std::array<std::string, 4> cell_parts(const profile::CellKey& cell);
// "llama.cpp / tiny-llama / vulkan / decode".
[[nodiscard]] std::string cell_title(const profile::CellKey& cell);

}  // namespace weir::report
