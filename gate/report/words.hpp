// Verdicts in words and numbers: one place for every format.
//
// All text is plain: no escaping for a format, no wrapping. Text from outside (names, reasons) has
// been through one_line(). Pure.
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
  std::string_view level;    // of an annotation: "error", "warning", "notice"
  std::string_view element;  // of JUnit: "failure", "error", "skipped", "" where it passed
  std::string_view
      headline;  // what so many of all cells did; {are} is "is" or "are"; "": as it should be
  int code;  // of OpenMetrics: 0 where nobody has to do anything, so that an alert needs no table
};
[[nodiscard]] const OutcomeLook& look_of(verdict::Outcome outcome);

// A judgement as a row: label, both sides, change, evidence and limit. `to_keep`: what improved has
// to be accepted, as it is stored baselines that it is compared with.
[[nodiscard]] Number words(const verdict::Judgement& metric, bool to_keep = true);

// A count for the better: its limit reads "improved: accept to keep".
[[nodiscard]] bool limit_says_improved(const verdict::Judgement& metric);
// True when the numbers and the limit alone say why: an exact count that grew, say.
[[nodiscard]] bool reason_is_plain(const verdict::Judgement& metric);
// A metric at `mode: report` whose numbers moved: nothing is judged, yet somebody asked to see it.
[[nodiscard]] bool observed_change(const verdict::Judgement& metric);
// dispatches, barriers, syncs and throughput: shown beside what is wrong also when fine.
[[nodiscard]] bool key_metric(const unit::Metric& metric);
// The count that the cell's kernels add up to, beside which they are shown: dispatches, on the CPU
// ops.
[[nodiscard]] bool adds_up_kernels(const verdict::CellVerdict& cell, const unit::Metric& metric);

// The cell has no numbers; one that could not be compared has.
[[nodiscard]] bool unmeasured(const verdict::CellVerdict& cell);

// Nothing of the cell was compared, and nothing else is wrong with it.
[[nodiscard]] bool reason_says_all(const verdict::CellVerdict& cell);

// The count of instructions that the cell's changed functions are part of.
[[nodiscard]] bool explained_by_functions(const verdict::CellVerdict& cell,
                                          const unit::Metric& metric);

// "65", "66.5", "44.33 (133/3)".
[[nodiscard]] std::string show(const Rational& value);
// "+12", "−0.333".
[[nodiscard]] std::string signed_show(const Rational& value);
// "+12", "−64.0 KiB".
[[nodiscard]] std::string signed_show(const unit::Metric& metric, double change);
// 0.0123 -> "+1.2 %"; -0.024 -> "−2.4 %".
[[nodiscard]] std::string percent(double ratio);

// Numbers with their words: "68", or "68 … 82" where they differ; "" of none.
using ValueWords = std::pair<double, std::string>;
[[nodiscard]] std::string range_words(const std::vector<ValueWords>& values);

// A kernel or op with its change, the largest first, what came before what went.
struct ChangedWords {
  std::string change;  // "+12", or "12 → 24" when the difference is no number
  std::string name;
};
[[nodiscard]] std::vector<ChangedWords> changed_words(const std::vector<verdict::Changed>& changed);

// Functions that changed, those with the largest change first: "+312040 (+12.0 %)".
[[nodiscard]] std::vector<ChangedWords> function_words(
    const std::vector<verdict::Changed>& changed);

// The largest first, as the two columns of a table: "2016340", "ggml_vec_dot_f16".
[[nodiscard]] TextTable functions_table(const profile::KernelSet& functions);

// What a server's own metrics said: "+4096" of a counter, "3.75" of the others.
[[nodiscard]] std::string show(const profile::ServerFigure& figure);

// Engine, model, backend and prompt of a cell's name, inert.
[[nodiscard]] std::array<std::string, 4> cell_parts(const profile::CellKey& cell);
// "llama.cpp / tiny-llama / vulkan / decode".
[[nodiscard]] std::string cell_title(const profile::CellKey& cell);

}  // namespace weir::report
