// Times that pairs of processes judge: the ratios as a line of text, and as the data of a picture
// that gate/web draws (figures.hpp).
//
// The axis is the relative change of the metric (candidate / base - 1, so a drop is to the left).
// Bars count pairs. The marks are: no change, the tolerated change, the limit. Bars end at marks,
// so each lies on one side. Pairs far out are counted in the outermost bars. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gate/report/document.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

// Returns true if pairs judge the metric, or watch it at `mode: report`, and one ended on both
// sides.
[[nodiscard]] bool has_picture(const verdict::Judgement& metric);

// Returns true if pairs judged some times: then every report says how sure that is.
[[nodiscard]] bool has_paired_times(const verdict::GateVerdict& gate);
// Returns the cell's metrics that have a picture of ratios, the worst first.
[[nodiscard]] std::vector<const MetricRow*> rows_with_picture(const CellDocument& cell);

struct Histogram {
  struct Bar {
    double from = 0, to = 0;  // relative changes
    std::size_t pairs = 0;
  };
  std::vector<Bar> bars;  // from left to right, without gaps
  // Relative changes, at ends of bars: -0.05 for a rate that may drop 5 %.
  std::optional<double> tolerated, limit;
  std::size_t pairs = 0;                          // pairs that ended on both sides
  std::size_t below = 0, above = 0;               // pairs beyond the ends of the axis
  std::size_t not_ended = 0;                      // not among `pairs`
  [[nodiscard]] std::size_t highest_bar() const;  // pairs in the highest bar
};
// Makes about `bars` bars, some more or less; none without a pair that ended.
[[nodiscard]] Histogram histogram(const verdict::Judgement& metric, std::size_t bars);

// "−12.0 % ▂▆█▃_┃__╎__│__ +3.0 %", without spaces in the middle; `columns` at most, which shall be
// 40 or more. "" without a picture.
[[nodiscard]] std::string ratio_strip(const verdict::Judgement& metric, std::size_t columns);
// Returns the legend of its marks: "┃ limit −5 %   ╎ tolerated −2.5 %   │ no change".
[[nodiscard]] std::string strip_legend(const verdict::Judgement& metric);

// Describes the picture: "8 pairs from −14.2 % to −9.8 %; 8 beyond the limit of −5 %".
[[nodiscard]] std::string picture_text(const verdict::Judgement& metric);

// Describes how the runs of base and candidate spread, a line each, if they differ; else nothing.
[[nodiscard]] std::vector<std::string> spread_lines(const verdict::Judgement& metric);

}  // namespace weir::report
