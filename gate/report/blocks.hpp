// Cells of a verdict with their texts, grouped into blocks with the same results. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "gate/base/find.hpp"
#include "gate/report/words.hpp"

namespace weir::report {

// "a, b and 3 more".
[[nodiscard]] std::string list_names(std::vector<std::string> names, std::size_t max_names);

struct CellDocument;

// Returns a key that is equal for cells that could not be measured for the same reason. It has the
// last line that the engine wrote, without words that hold numbers, and no number of runs.
[[nodiscard]] std::string error_key(const CellDocument& cell);
// Returns the reason of cells with one key, without numbers of runs if these differ.
[[nodiscard]] std::string shared_reason(const std::vector<const CellDocument*>& cells);

// A text and the cells that share it.
struct Shared {
  std::string text;
  std::vector<const CellDocument*> cells;  // in plan order
};
// Texts in the order in which they first come, each with the cells that share it.
class SharedTexts {
 public:
  // Adds the cell to the entry with `text`, which is made if it isn't there; no text adds nothing.
  void add(const std::string& text, const CellDocument& cell);
  [[nodiscard]] std::vector<Shared> take() &&;

 private:
  Grouped<std::string, std::vector<const CellDocument*>> texts_;
};

// One judgement of a cell, and its texts.
struct MetricRow {
  const verdict::Judgement* judgement;
  Number number;
  // True for kernels whose count changed as well: its row says that something changed, and the
  // kernels say what.
  bool follows = false;

  // Returns true for a broken rule about no metric, which needs a row of its own.
  [[nodiscard]] bool is_broken_rule() const {
    return !judgement->is_metric() && judgement->verdict < Outcome::pass && !follows;
  }
};

struct CellDocument {
  const verdict::CellVerdict* cell_verdict;
  std::string title;                          // cell_title()
  std::string reason;                         // its own, else that of the first metric with the
                                              // cell's verdict; may be "", may be lines
  std::vector<MetricRow> rows;                // as judged
  std::vector<const MetricRow*> worst_first;  // in reading order
  std::vector<NamedChange> kernels, functions, ops;
  std::size_t passed = 0;  // metrics that were judged and are fine
  // The first row of each metric and of each label.
  std::map<std::string_view, const MetricRow*> by_metric, by_label;
};

// Kernels, functions or ops that changed alike in these cells.
struct ChangedIn {
  std::vector<NamedChange> changes;
  std::vector<const CellDocument*> cells;  // in plan order
};

// One cell, or several with the same results: the same changes broke or beat the same limits,
// whatever the counts were before. Changes that only some have are listed with these cells.
struct Block {
  // `all`: the gate's cells; one cell needs none.
  explicit Block(std::vector<const CellDocument*> members,
                 const std::vector<profile::CellKey>& all = {});
  Block(Block&&) = default;
  Block& operator=(Block&&) = default;

  std::vector<const CellDocument*> cells;            // in plan order, the first stands for all
  std::string title;                                 // as describe_cells() has it
  std::map<const CellDocument*, std::string> names;  // short names within the block
  std::string reason;                  // their own, as shared_reason() has it; may be ""
  std::vector<const MetricRow*> rows;  // the worst first; rows that are the same in all cells
  std::vector<ChangedIn> kernels, functions, ops;  // changes of more cells first
  std::vector<Shared> why;                         // the best explanation of each cell
  bool folded = false;  // causes report it: its own numbers are in a fold, or left out

  [[nodiscard]] const CellDocument& first() const { return *cells.front(); }
  [[nodiscard]] bool is_single() const { return cells.size() == 1; }
  [[nodiscard]] const verdict::CellVerdict& first_verdict() const { return *first().cell_verdict; }
  // "tiny / vulkan, tiny / rx7900 and 3 more".
  [[nodiscard]] std::string list_cells(const std::vector<const CellDocument*>& some,
                                       std::size_t max_names) const;
  // "in 1 of 3 (tiny / vulkan): "; "" for all cells.
  [[nodiscard]] std::string in_cells(const std::vector<const CellDocument*>& some) const;

 private:
  std::vector<MetricRow> rows_;  // with "68 … 82" where cells differ
};
// Names for a group of cells: a title as describe_cells() writes it, and for each cell the parts in
// which it differs. A single cell has its own title, and no names.
struct GroupNames {
  std::string title;
  std::vector<std::string> names;
};
[[nodiscard]] GroupNames name_group(const std::vector<profile::CellKey>& cells,
                                    const std::vector<profile::CellKey>& all);

// Describes which of all cells these are, by the values of their dimensions: "all 40 cells: 2
// models × 5 backends × prefill, decode", "20 of 40 cells: tiny-llama × …". A dimension names its
// values if they are few and short. An engine that all cells share is left out.
//
// Cells that are no full product are named by those that are missing or by their own names, with
// "and 5 more" at the end. One cell has its title. `cells` are distinct, at least one, and in
// `all`.
[[nodiscard]] std::string describe_cells(const std::vector<profile::CellKey>& cells,
                                         const std::vector<profile::CellKey>& all);

// Groups cells with equal results, in the order of their first cells.
[[nodiscard]] std::vector<Block> make_blocks(const std::vector<const CellDocument*>& cells,
                                             const std::vector<profile::CellKey>& all);

}  // namespace weir::report
