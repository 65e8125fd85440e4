// Cells of a verdict with their words, and those of which the same is to be said together. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "gate/report/words.hpp"

namespace weir::report {

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

struct CellDocument;

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
  Number words;
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

  std::vector<const CellDocument*> cells;            // in plan order, the first stands for all
  std::string title;                                 // as where() has it
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
// How cells of which the same is to be said are named: together as where() has it, and each by
// what tells it apart. One cell has its own title, and no names.
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

// In the order of their first cells.
[[nodiscard]] std::vector<Block> blocks_of(const std::vector<const CellDocument*>& cells,
                                           const std::vector<profile::CellKey>& all);

}  // namespace weir::report
