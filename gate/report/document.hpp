// What every format says of a verdict, and in which words.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gate/report/layout.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

// How verdicts are put in words and numbers: one place for every format.
//
// All text here is plain: no escaping for a format, no wrapping. What came from outside (names,
// reasons) has been through one_line(). Pure.

// The short word at the head of a line: "FAIL", "error", "open", "new", "improved", "accepted",
// "pass", "skip", "info".
[[nodiscard]] std::string tag(verdict::Outcome outcome);
// The same for whole sentences: "FAIL", "ERROR", "OPEN", "NEW", …
[[nodiscard]] std::string upper_tag(verdict::Outcome outcome);

// One metric, ready to be put in columns. A part that does not apply is "".
struct MetricWords {
  std::string label;     // "dispatches/token"
  std::string baseline;  // "65"; "" when there is nothing to compare with
  std::string current;   // "77"; "" when it was not measured
  std::string change;    // "+12"; "−2.4 % (−4.1 … −0.6)"; "" when nothing changed
  std::string evidence;  // "14 pairs", "10 runs, 3 sessions"
  std::string limit;     // "must not change", "may drop 5 %"
  bool differs = false;  // both sides are known and are shown as different numbers
};
[[nodiscard]] MetricWords words(const verdict::MetricVerdict& metric);

// True when the numbers and the limit alone say why: an exact count that grew, say.
[[nodiscard]] bool reason_is_plain(const verdict::MetricVerdict& metric);
// A metric at `mode: report` whose numbers moved: nothing is judged, yet somebody asked to see it.
[[nodiscard]] bool observed_change(const verdict::MetricVerdict& metric);
// dispatches, barriers, syncs and throughput: shown beside what is wrong also when fine.
[[nodiscard]] bool key_metric(const unit::Metric& metric);
// The count that the cell's kernels add up to, beside which they are shown: dispatches, on the CPU
// ops.
[[nodiscard]] bool adds_up_kernels(const verdict::CellVerdict& cell, const unit::Metric& metric);

// The count of instructions that the cell's changed functions are part of.
[[nodiscard]] bool explained_by_functions(const verdict::CellVerdict& cell,
                                          const unit::Metric& metric);

// "65", "66.5", "133/3".
[[nodiscard]] std::string show(const Rational& value);
// "+12", "−1/3".
[[nodiscard]] std::string signed_show(const Rational& value);
// 0.0123 -> "+1.2 %"; -0.024 -> "−2.4 %".
[[nodiscard]] std::string percent(double ratio);

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

// How many cells came out as `outcome`.
[[nodiscard]] std::size_t cells_with(const verdict::GateVerdict& gate, verdict::Outcome outcome);
// Metrics of a cell that were judged and are fine.
[[nodiscard]] std::size_t passed_metrics(const verdict::CellVerdict& cell);
// "1 of 8 cells broke a limit, 1 could not be measured".
[[nodiscard]] std::string headline(const verdict::GateVerdict& gate);
// not_judged in one line: "throughput not decided in 31 of 40 cells, 12 cells new"; "" when all
// was judged. Stands in the first line of every report.
[[nodiscard]] std::string not_judged_line(const verdict::GateVerdict& gate);
// The limits in a few words: "counts exact, throughput may drop 5 %".
[[nodiscard]] std::string short_rule(const verdict::GateVerdict& gate);
// What the cells were compared with: "stored baselines in baselines, commit e4f5a6b"; the commit
// stands once.
[[nodiscard]] std::string base_words(const verdict::GateVerdict& gate);
// "llama.cpp / tiny-llama / vulkan / decode".
[[nodiscard]] std::string cell_title(const profile::CellKey& cell);

// What several cells say alike, told once.
struct Shared {
  std::string text;
  std::vector<std::string> cells;  // names, in plan order
};
// Warnings of all cells and their metrics.
[[nodiscard]] std::vector<Shared> shared_warnings(const verdict::GateVerdict& gate);
// Notes of all cells, and what judged them where that is not the same device class.
[[nodiscard]] std::vector<Shared> shared_notes(const verdict::GateVerdict& gate);
// Cells of one outcome by their reason.
[[nodiscard]] std::vector<Shared> by_reason(const verdict::GateVerdict& gate,
                                            verdict::Outcome outcome);
// The cell's own reason, else the first of its metrics that has its verdict; may be "".
[[nodiscard]] std::string reason_of(const verdict::CellVerdict& cell);

// The order people read metrics in: those with the worst verdict first, else as judged.
[[nodiscard]] std::vector<const verdict::MetricVerdict*> worst_first(
    const verdict::CellVerdict& cell);
// Cells that need a reader, the worst first, then in plan order: fail, error, inconclusive, new,
// improved, accepted.
[[nodiscard]] std::vector<const verdict::CellVerdict*> cells_to_read(
    const verdict::GateVerdict& gate);

// Edits of a pull request to the rules that judge it, in words: first in every report. Plain text,
// through one_line(). Pure.

struct ProposalWords {
  std::string head;  // "2 edits to the rules, judged by those of origin/main (1a2b3c4)"
  std::vector<std::string> lines;  // looser first; a last one counts what is left out
};
// `most` lines. Nothing to say: both empty.
[[nodiscard]] ProposalWords proposal_words(const verdict::GateVerdict& gate, std::size_t most);

// Commands a reader may type next. Only those that the caller says this build has.
//
// Every command can be pasted into a shell as it stands: cell names in it keep to letters, digits
// and "._-/@", and a character outside of these is written as the glob '*'; what stood behind
// --against is quoted. Pure.

// "explain", "doctor", "baseline accept", "gate --counts-only": commands of this build that help
// with this verdict; "baseline accept --reason" says that the option exists. A report names no
// other. Leave "baseline accept" out where the base is not a stored baseline. "/weir accept": there
// is a robot that reads comments, and this text becomes one.
using Verbs = std::vector<std::string>;

struct Hint {
  std::string what;                // "why", "look", "again", "comment", "accept"
  std::vector<std::string> words;  // {"weir", "baseline accept", "--cell 'a/b/*'"}; lines break
                                   // between these
};
// `most` is the longest one word may be, in columns; longer cell names are shortened to globs.
[[nodiscard]] std::vector<Hint> hints(const verdict::GateVerdict& gate, const Verbs& verbs,
                                      std::size_t most = 60);

// Patterns for --cell that match the given cells: their names up to three, else what they share.
[[nodiscard]] std::vector<std::string> cell_patterns(const std::vector<std::string>& cells,
                                                     std::size_t most);

}  // namespace weir::report
