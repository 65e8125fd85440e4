#include "gate/app/bisect_judging.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"

namespace weir::app {
namespace {

using verdict::CellVerdict;
using verdict::Outcome;

// What engines say is in it.
std::string headline(const std::string& text) { return text::printable(text::first_line(text)); }

std::string why_failed(const CellVerdict& cell) {
  std::string why;
  for (const verdict::MetricVerdict& metric : cell.metrics) {
    if (metric.verdict != Outcome::fail) continue;
    const report::MetricWords said = report::words(metric);
    why += fmt::format("{}{} {}{}{}", why.empty() ? "" : ", ", said.label, said.baseline,
                       said.baseline.empty() ? "" : " → ", said.current);
  }
  if (cell.kernels_verdict == Outcome::fail) why += (why.empty() ? "" : ", ") + cell.kernels_reason;
  if (cell.placement_verdict == Outcome::fail) {
    why += (why.empty() ? "" : ", ") + cell.placement_reason;
  }
  return fmt::format("{}: {}", cell.cell.str(), headline(why));
}

const CellVerdict* first_with(const verdict::GateVerdict& verdict, Outcome outcome) {
  const auto found = std::find_if(verdict.cells.begin(), verdict.cells.end(),
                                  [&](const CellVerdict& cell) { return cell.verdict == outcome; });
  return found == verdict.cells.end() ? nullptr : &*found;
}

}  // namespace

Judged judged_step(const verdict::GateVerdict& verdict) {
  using source::Tried;
  if (const CellVerdict* cell = first_with(verdict, Outcome::fail)) {
    return {Tried::bad, why_failed(*cell)};
  }
  if (const CellVerdict* cell = first_with(verdict, Outcome::error)) {
    return {Tried::skipped,
            fmt::format("{} could not be measured: {}", cell->cell.str(), headline(cell->reason))};
  }
  if (const CellVerdict* cell = first_with(verdict, Outcome::inconclusive)) {
    return {Tried::skipped, fmt::format("{} is not decided", cell->cell.str())};
  }
  const bool judged =
      std::any_of(verdict.cells.begin(), verdict.cells.end(), [](const CellVerdict& cell) {
        return cell.verdict == Outcome::pass || cell.verdict == Outcome::improved ||
               cell.verdict == Outcome::accepted;
      });
  if (!judged) return {Tried::skipped, "nothing could be judged", true};
  return {Tried::good, ""};
}

}  // namespace weir::app
