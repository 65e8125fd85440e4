// The document of a verdict: its texts, chosen and ordered once for every format.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/report/blocks.hpp"

namespace weir::report {

// "1 of 8 cells broke a limit, 1 could not be measured".
[[nodiscard]] std::string headline(const verdict::GateVerdict& gate);
// The limits in a few words: "counts exact, throughput may drop 5 %".
[[nodiscard]] std::string short_rule(const verdict::GateVerdict& gate);
// Returns "judged by: …" if the baseline is not one of the same device class; else "".
[[nodiscard]] std::string judged_by(const verdict::CellVerdict& cell);

// The texts of a verdict. A format renders it, and may leave parts out. It points to the verdict,
// which must outlive it.
struct Document {
  Document(const verdict::GateVerdict& verdict);  // NOLINT: any verdict is a document

  Document(const Document&) = delete;

  const verdict::GateVerdict& gate;
  std::string headline, rule;  // headline(), short_rule()
  // "throughput not decided in 31 of 40 cells, 12 cells new"; "" when all was judged. Stands in the
  // first line of every report.
  std::string not_judged;
  // The base of the comparison: "stored baselines in baselines, commit e4f5a6b". The commit is
  // named once.
  std::string base;
  // True if pairs judged some times: then every report says how sure that is.
  bool has_paired_times = false;
  std::vector<CellDocument> cells;  // in plan order
  // Cells that need a reader, the worst first, then in plan order: fail, error, inconclusive, new,
  // improved, waived.
  std::vector<const CellDocument*> to_read;
  // The same cells, grouped by equal results; the larger blocks of a verdict first.
  std::vector<Block> blocks;
  // Causes and unexplained changes, in the gate's order.
  Parts causes;                     // sections
  std::optional<Part> unexplained;  // a section
  // True if reports begin with causes and unexplained changes, and fold the blocks of their cells.
  bool cause_first = false;

  // Returns the headline, and what was not judged.
  [[nodiscard]] std::string first_line(std::string_view between = "; ") const;
  [[nodiscard]] std::size_t cells_with(verdict::Outcome outcome) const;
  // Returns warnings of cells and their metrics; with `filter` only of cells that it selects.
  [[nodiscard]] std::vector<Shared> warnings(
      const std::function<bool(const verdict::CellVerdict&)>& filter = {}) const;
  // Returns notes of all cells, their judged_by() lines, and the gate's notes.
  [[nodiscard]] std::vector<Shared> notes() const;
  // Returns kernels with other code or other numbers of groups: "flash_attn: occupancy 18 → 6".
  [[nodiscard]] std::vector<Shared> shared_kernel_changes() const;
  // Groups the cells of one outcome by their reason.
  [[nodiscard]] std::vector<Shared> by_reason(verdict::Outcome outcome) const;

 private:
  void find_causes();
};

}  // namespace weir::report
