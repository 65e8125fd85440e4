// Writes counts of profiles and baselines into tables.
#include "gate/report/count_tables.hpp"

#include <cmath>

#include "gate/report/document.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {

std::string value_text(const profile::Measurement& measured) {
  if (measured.exact && measured.metric.unit == unit::Unit::count) return show(*measured.exact);
  const auto value = measured.value();
  return value && std::isfinite(*value) ? unit::show(measured.metric, *value) : "";
}

void add_counts(TextTable& table, const profile::KernelSet& set, std::size_t max_columns) {
  for (const auto& [name, count] : set.counts) {
    table.rows.push_back({show(count), printable_line(name, max_columns)});
  }
}

}  // namespace weir::report
