// What an engine or a profiler wrote, as text: what it is of, its times and counts, and a table of
// its ops. Judges nothing. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "gate/profile/observed.hpp"
#include "gate/profile/observed_totals.hpp"

namespace weir::report {

struct ObservedStyle {
  std::size_t width = 80;
  std::size_t most_rows = 20;  // of each table
  profile::GroupBy by = profile::GroupBy::kernel;
};

[[nodiscard]] std::string observed_text(const profile::Observed& observed,
                                        const ObservedStyle& style);

}  // namespace weir::report
