// Times that pairs of processes judge: a small picture of the ratios as one line of text, and what
// gate/web draws one of (figures.hpp).
//
// The axis is the relative change of the metric (now / base - 1, so a drop is to the left), the
// bars count pairs. Bars end where a mark stands, so each lies on one side of it: no change, what
// is tolerated, the limit. Pairs far out are counted in the outermost bars. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gate/report/document.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

// Judged (or watched, at `mode: report`) by pairs of which at least one ended on both sides.
[[nodiscard]] bool has_picture(const verdict::Judgement& metric);

// Some times were judged by pairs: then every report says in words what that promises.
[[nodiscard]] bool beside_base(const verdict::GateVerdict& gate);
// The cell's metrics that have a picture of ratios, the worst first.
[[nodiscard]] std::vector<const MetricRow*> pictured(const CellDocument& cell);

struct Histogram {
  struct Bar {
    double from = 0, to = 0;  // relative changes
    std::size_t pairs = 0;
  };
  std::vector<Bar> bars;  // from left to right, without gaps
  // Relative changes, at ends of bars: -0.05 for a rate that may drop 5 %.
  std::optional<double> tolerated, limit;
  std::size_t pairs = 0;                   // that ended on both sides
  std::size_t below = 0, above = 0;        // of these, beyond the ends of the axis
  std::size_t not_ended = 0;               // not among `pairs`
  [[nodiscard]] std::size_t most() const;  // pairs in the highest bar
};
// About `bars` bars, some more or less; none without a pair that ended.
[[nodiscard]] Histogram histogram(const verdict::Judgement& metric, std::size_t bars);

// "−12.0 % ▂▆█▃_┃__╎__│__ +3.0 %", without spaces in the middle; `columns` at most, which shall be
// 40 or more. "" without a picture.
[[nodiscard]] std::string ratio_strip(const verdict::Judgement& metric, std::size_t columns);
// What its marks mean: "┃ limit −5 %   ╎ tolerated −2.5 %   │ no change".
[[nodiscard]] std::string strip_legend(const verdict::Judgement& metric);

// The picture in words: "8 pairs from −14.2 % to −9.8 %; 8 of them beyond the limit of −5 %".
[[nodiscard]] std::string picture_words(const verdict::Judgement& metric);

// Where the runs of both sides lie, a line each, where they spread unlike each other; else nothing.
[[nodiscard]] std::vector<std::string> spread_words(const verdict::Judgement& metric);

}  // namespace weir::report
