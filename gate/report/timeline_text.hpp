// A timeline as text: what `weir profile` shows. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "gate/base/json.hpp"
#include "gate/observed/observed.hpp"
#include "gate/observed/timeline.hpp"

namespace weir::report {

struct TimelineStyle {
  int width = 80;
  std::size_t most_rows = 20;                // of each table; what is left out is told
  std::string by = "kernel";                 // one of observed_groupings()
  const observed::Observed* peak = nullptr;  // what ops are compared with
};

// What ran where and how long, most time first; what the CPU waited for; doubts. Names are hostile.
[[nodiscard]] std::string timeline_text(const observed::Timeline& timeline,
                                        const TimelineStyle& style);

// The same for machines: weir.timeline/1. Times are seconds.
[[nodiscard]] Json timeline_json(const observed::Timeline& timeline);

}  // namespace weir::report
