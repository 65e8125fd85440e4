// Measured and explained changes from commit to commit: JSON lines (weir.changes/1,
// docs/how-to/trend-site.md). Pure. The input is hostile, and its texts are passed on as texts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/history/history.hpp"

namespace weir::site {

inline constexpr std::size_t k_largest_changes = std::size_t{128} << 20;
// Commits, pairs of these (each has a document, with all cells of its commit), cells and kernels.
inline constexpr std::size_t k_max_commits = 2'000, k_max_cells = 10'000, k_max_kernels = 20'000;
inline constexpr std::string_view k_changes_schema = "weir.changes/1";

// Names, numbered in the order in which they come.
struct NameList {
  std::vector<std::string> all;
  std::unordered_map<std::string, std::size_t> numbers;

  std::size_t number(const std::string& name);
};

struct ChangedValue {
  history::Metric metric;
  double before = 0, after = 0;
  std::string_view state;  // "worse", "better", or "changed", which no gate judges by default
};
struct ChangeFinding {
  std::string kind, text;  // as `weir explain --json` has them
};
struct ChangeCause {
  std::string text, sure;           // `sure`: how sure it is; "": unknown
  std::vector<std::int64_t> pulls;  // numbers of pull requests
};
struct ChangedCell {
  std::vector<ChangedValue> values;
  std::vector<ChangeFinding> findings;
  std::vector<ChangeCause> causes;
};

// A cell at a commit: its kernels, by number, with their counts per token (or prefill); or the last
// output of a cell that could not run.
struct CountedCell {
  std::optional<std::string> words;
  std::map<std::size_t, double> kernels;
};

struct CommitChanges {
  std::string repeat;                // a command with {commit} and {cell}, to be shown; "" for none
  NameList commits, cells, kernels;  // commits: the oldest first
  std::vector<std::map<std::size_t, CountedCell>> counted;  // by commit; then by cell
  std::map<std::pair<std::size_t, std::size_t>, std::map<std::size_t, ChangedCell>>
      changed;  // by commit and the one before it; then by cell
};

// Fails with Code::data naming the line.
[[nodiscard]] Result<CommitChanges> read_commit_changes(std::string_view text);

}  // namespace weir::site
