// A timeline as the text that `weir profile` shows. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "gate/base/json.hpp"
#include "gate/observed/observed.hpp"
#include "gate/observed/timeline.hpp"

namespace weir::report {

struct TimelineStyle {
  int width = 80;
  std::size_t max_rows = 20;                 // in each table; a line counts the others
  std::string by = "kernel";                 // one of observed_groupings()
  const observed::Observed* peak = nullptr;  // measured peak that ops are compared with
};

// Writes device work and how long it took, most time first; what the CPU waited for; warnings.
// Names are hostile.
[[nodiscard]] std::string timeline_text(const observed::Timeline& timeline,
                                        const TimelineStyle& style);

// The same for machines: weir.timeline/1. Times are seconds.
[[nodiscard]] Json timeline_json(const observed::Timeline& timeline);

}  // namespace weir::report
