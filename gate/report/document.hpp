// What every format says of a verdict, and in which words.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gate/report/layout.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::Judgement;
using verdict::Outcome;

// How verdicts are put in words and numbers: one place for every format.
//
// All text here is plain: no escaping for a format, no wrapping. What came from outside (names,
// reasons) has been through one_line(). Pure.

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

// One metric, ready to be put in columns. A part that does not apply is "".
struct MetricWords {
  std::string label;     // "dispatches/token"
  std::string baseline;  // "65"; "" when there is nothing to compare with
  std::string current;   // "77"; "" when it was not measured
  std::string change;    // "+12"; "−2.4 % (−4.1 … −0.6)"; "" when nothing changed
  std::string evidence;  // "14 pairs", "10 runs, 3 sessions"
  std::string limit;     // "must not change", "may drop 5 %"
  bool differs = false;  // both sides are known and are shown as different numbers

  [[nodiscard]] std::string now() const { return current.empty() ? "not measured" : current; }
  // "65 → 77"; the current alone where there is nothing to compare with.
  [[nodiscard]] std::string from_to() const;
  // Those of change, evidence and limit that apply, with commas between them.
  [[nodiscard]] std::string parts() const;
};
// `to_keep`: what improved has to be accepted, as it is stored baselines that it is compared with.
[[nodiscard]] MetricWords words(const verdict::Judgement& metric, bool to_keep = true);

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

// "1 of 8 cells broke a limit, 1 could not be measured".
[[nodiscard]] std::string headline(const verdict::GateVerdict& gate);
// The limits in a few words: "counts exact, throughput may drop 5 %".
[[nodiscard]] std::string short_rule(const verdict::GateVerdict& gate);
// Which baseline judged, where that is not one of the same device class: "judged by: …"; else "".
[[nodiscard]] std::string judged_by(const verdict::CellVerdict& cell);
// Engine, model, backend and prompt of a cell's name, inert.
[[nodiscard]] std::array<std::string, 4> cell_parts(const profile::CellKey& cell);
// "llama.cpp / tiny-llama / vulkan / decode".
[[nodiscard]] std::string cell_title(const profile::CellKey& cell);

struct CellDocument;

// What has the same key together, in the order of the first of each.
template <class First, class Rest>
struct Grouped {
  std::vector<std::pair<First, Rest>> all;
  std::map<std::string, std::size_t> places;

  Rest& of(const std::string& key, const First& first) {
    const auto [found, fresh] = places.try_emplace(key, all.size());
    if (fresh) all.emplace_back(first, Rest());
    return all[found->second].second;
  }
};

// "a, b and 3 more".
[[nodiscard]] std::string listed(std::vector<std::string> names, std::size_t most);

// Equal for cells that could not be measured for the same reason, in however many of their runs.
// What the engines wrote last counts, without words that hold numbers.
[[nodiscard]] std::string error_key(const CellDocument& cell);
// The reason of cells of one key. Numbers of runs are left out where they differ.
[[nodiscard]] std::string shared_reason(const std::vector<const CellDocument*>& cells);

// What several cells say alike, listed once.
struct Shared {
  std::string text;
  std::vector<const CellDocument*> cells;  // in plan order
};
// Adds `text` and the cell; nothing where there is no text.
void share(std::vector<Shared>& list, std::string text, const CellDocument& cell);

// One judgement of a cell, with its words chosen.
struct MetricRow {
  const verdict::Judgement* of;
  MetricWords words;
  // Kernels whose count changed as well: its row says that something did, and they only what.
  bool follows = false;

  // A rule about no metric, which is broken and needs a row of its own.
  [[nodiscard]] bool broken_rule() const {
    return !of->is_metric() && of->verdict < Outcome::pass && !follows;
  }
};

struct CellDocument {
  const verdict::CellVerdict* of;
  std::string title;                          // cell_title()
  std::string reason;                         // its own, else the first of its metrics that has
                                              // its verdict; may be "", may be lines
  std::vector<MetricRow> rows;                // as judged
  std::vector<const MetricRow*> worst_first;  // the order people read them in
  std::vector<ChangedWords> kernels, functions, ops;
  std::size_t passed = 0;  // metrics that were judged and are fine
};

// Kernels, functions or ops that changed alike in these cells.
struct ChangedIn {
  std::vector<ChangedWords> changes;
  std::vector<const CellDocument*> cells;  // in plan order
};

// One cell, or several of which the same is to be said: the same changes broke or beat the same
// limits, whatever the counts were before. What only some of them have is told with these.
struct Block {
  // `all`: the gate's cells; one cell needs none.
  explicit Block(std::vector<const CellDocument*> of,
                 const std::vector<profile::CellKey>& all = {});
  Block(Block&&) = default;
  Block& operator=(Block&&) = default;

  std::vector<const CellDocument*> cells;  // in plan order, the first stands for all
  std::string title;  // of one its name; "3 of 12 cells: llama.cpp / * / vulkan / decode"
  std::map<const CellDocument*, std::string> names;  // of several: what tells them apart
  std::string reason;                  // their own, as shared_reason() has it; may be ""
  std::vector<const MetricRow*> rows;  // the worst first; of several those that are alike in all
  std::vector<ChangedIn> kernels, functions, ops;  // what more cells share first
  std::vector<Shared> why;                         // the best explanation of each
  bool folded = false;  // causes report it: its own numbers stand behind a fold, or are left out

  [[nodiscard]] const CellDocument& first() const { return *cells.front(); }
  [[nodiscard]] bool one() const { return cells.size() == 1; }
  [[nodiscard]] const verdict::CellVerdict& of() const { return *first().of; }
  // "tiny / vulkan, tiny / rx7900 and 3 more".
  [[nodiscard]] std::string list(const std::vector<const CellDocument*>& some,
                                 std::size_t most) const;
  // "in 1 of 3 (tiny / vulkan): "; "" of all.
  [[nodiscard]] std::string in(const std::vector<const CellDocument*>& some) const;

 private:
  std::vector<MetricRow> rows_;  // with "68 … 82" where cells differ
};
// How cells of which the same is to be said are named: "3 of 12 cells: llama.cpp / * / vulkan /
// decode", and each by what tells it apart. A star stands where it means no other of all cells;
// else where() words the title. One cell has its own title, and no names.
struct Together {
  std::string title;
  std::vector<std::string> names;
};
[[nodiscard]] Together together(const std::vector<profile::CellKey>& cells,
                                const std::vector<profile::CellKey>& all);

// Which of all cells these are, by the values of their dimensions: "all 40 cells: 2 models × 5
// backends × prefill, decode", "20 of 40 cells: tiny-llama × …". A dimension names its values where
// they are few and short, and an engine that all cells share is left out. Cells that are no full
// product are named by those that are missing or by their own names, "and 5 more" at the end. One
// cell has its title. `cells` are distinct, at least one, and among `all`.
[[nodiscard]] std::string where(const std::vector<profile::CellKey>& cells,
                                const std::vector<profile::CellKey>& all);

// A metric (or "kernels", "placement") over several cells.
struct NumberWords {
  std::string label;    // "syncs/token"
  std::string base;     // "14"; "" where nothing was compared
  std::string now;      // "22 … 30"
  std::string change;   // "+8 … +16"
  std::string where;    // "in 20 of 40 cells"; "" where it is in all cells of its cause
  std::string why;      // in place of numbers, of what is no metric

  // "14 → 22 … 30", or why.
  [[nodiscard]] std::string from_to() const;
};

// A cause over its cells, in words; a part that does not apply is "".
struct CauseWords {
  std::string headline;              // one sentence
  std::string where;                 // where()
  std::vector<NumberWords> numbers;  // those that carry it
  std::string follow;                // "9 more counts follow from it; beside it: More is copied"
  std::string cause, look_at;        // as in a finding
  std::size_t cells = 0;
};

// In the order of their first cells.
[[nodiscard]] std::vector<Block> blocks_of(const std::vector<const CellDocument*>& cells,
                                           const std::vector<profile::CellKey>& all);

// What a verdict says, chosen, ordered and put in words once; a format renders it, and may leave
// out. Refers to the verdict, which has to stay.
struct Document {
  Document(const verdict::GateVerdict& verdict);  // NOLINT: any verdict is a document

  Document(const Document&) = delete;

  const verdict::GateVerdict& gate;
  std::string headline, rule;  // headline(), short_rule()
  // "throughput not decided in 31 of 40 cells, 12 cells new"; "" when all was judged. Stands in the
  // first line of every report.
  std::string not_judged;
  // What the cells were compared with: "stored baselines in baselines, commit e4f5a6b"; the commit
  // stands once.
  std::string base;
  bool beside_base =
      false;  // some times were judged by pairs: every report says what that promises
  std::vector<CellDocument> cells;  // in plan order
  // Those that need a reader, the worst first, then in plan order: fail, error, inconclusive, new,
  // improved, accepted.
  std::vector<const CellDocument*> to_read;
  // The same, cells of which the same is to be said together; the larger blocks of a verdict first.
  std::vector<Block> blocks;
  // Of the gate, in its order.
  std::vector<CauseWords> causes;
  std::vector<NumberWords> unexplained;
  // Reports begin with causes and what none explains, in place of the blocks that they fold.
  bool cause_first = false;

  // The headline, and what was not judged.
  [[nodiscard]] std::string first_line(std::string_view between = "; ") const;
  [[nodiscard]] std::size_t cells_with(verdict::Outcome outcome) const;
  // Warnings of cells and their metrics, of all cells or of some.
  [[nodiscard]] std::vector<Shared> warnings(
      const std::function<bool(const verdict::CellVerdict&)>& of = {}) const;
  // Notes of all cells, what judged them where that is not the same device class, and the gate's.
  [[nodiscard]] std::vector<Shared> notes() const;
  // Kernels with other code or other numbers of groups: "flash_attn: occupancy 18 → 6".
  [[nodiscard]] std::vector<Shared> other_code() const;
  // Cells of one outcome by their reason.
  [[nodiscard]] std::vector<Shared> by_reason(verdict::Outcome outcome) const;

 private:
  void find_causes();
};

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
// and "._-/@", and a character outside of these is written as the glob '*'; options of the gate and
// what stood behind --against are quoted. A command that would not work without an option that
// cannot be shown is left out. Pure.

// "explain", "doctor", "baseline accept", "gate --counts-only": commands of this build that help
// with this verdict; "baseline accept --reason" says that the option exists. A report names no
// other. Leave "baseline accept" out where the base is not a stored baseline. "/weir accept": there
// is a robot that reads comments, and this text becomes one.
using Verbs = std::vector<std::string>;

struct Hint {
  std::string what;  // "why", "look", "again", "allow", "comment", "accept", "store"
  // {"weir", "baseline accept", "--cell 'a/b/*'"}; lines break between these. Of "allow" no
  // command but allowed_ops().
  std::vector<std::string> words;
};
// `most` is the longest one word may be, in columns; longer cell names are shortened to globs.
[[nodiscard]] std::vector<Hint> hints(const verdict::GateVerdict& gate, const Verbs& verbs,
                                      std::size_t most = 60);

// Backends on which an op is to be allowed, by engine and op.
using OpsByEngine = std::map<std::string, std::map<std::string, std::set<std::string>>>;
// Entry of the configuration that lets ops run on the CPU, as one line of YAML:
// `engines: {llama.cpp: {cpu_ops_allowed: {SWIGLU: {match: {backend: gpu}, why: "…"}}}}`, of more
// than one backend without a match; "" where it cannot be shown.
[[nodiscard]] std::string allowed_ops(const OpsByEngine& ops);

// Patterns for --cell that match the cells `wanted` and no others among `all`: their names up to
// three, else globs. `all` is empty where others may exist: names alone. Nothing where it takes
// more than a dozen.
[[nodiscard]] std::vector<std::string> cell_patterns(const std::vector<std::string>& wanted,
                                                     const std::vector<std::string>& all,
                                                     std::size_t most);

}  // namespace weir::report
