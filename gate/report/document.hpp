// A verdict, chosen, ordered and put in words once: what every format says of it.
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
// Which baseline judged, where that is not one of the same device class: "judged by: …"; else "".
[[nodiscard]] std::string judged_by(const verdict::CellVerdict& cell);
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
  Parts causes;                     // sections
  std::optional<Part> unexplained;  // a section
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

}  // namespace weir::report
