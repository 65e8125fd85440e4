// Finds the range of a count that varied between runs of one program.
#include "gate/profile/variation.hpp"

#include <cmath>

namespace weir::profile {

std::string Variation::range() const { return range_text(low, high); }

std::string range_text(double low, double high) {
  return low == high ? fmt::format("{:.10g}", low) : fmt::format("{:.10g} to {:.10g}", low, high);
}

std::string Variation::str() const {
  return low == high ? fmt::format("{} in {} runs", range(), runs)
                     : fmt::format("{}, {} of {} runs", range(), others, runs);
}

// Returns the range of a count of whole numbers that is stored as nearly exact. Nothing for other
// counts: those of a fit, of instructions, and of requests that overlap.
std::optional<Variation> find_variation(const Measurement& measured) {
  const unit::Metric& metric = measured.metric;
  const bool is_fitted = metric.scope == unit::Scope::fixed || metric.base == "instructions";
  if (measured.nature != Nature::nearly_exact || measured.exact || measured.samples.size() < 2 ||
      metric.kind != unit::Kind::count || is_fitted) {
    return std::nullopt;
  }
  std::map<double, std::size_t> runs_of_value;
  std::size_t most = 0;
  for (const double value : measured.samples) {
    if (value != std::round(value)) return std::nullopt;
    most = std::max(most, ++runs_of_value[value]);
  }
  const double low = runs_of_value.begin()->first, high = runs_of_value.rbegin()->first;
  // Requests that overlap have another spread than their values, see marginal.cpp.
  const double middle = *measured.value(), scale = middle == 0 ? 1 : std::fabs(middle);
  const double spread = (high - low) / scale;
  if (std::fabs(measured.relative_spread.value_or(spread) - spread) > 1e-9) return std::nullopt;
  return Variation{low, high, measured.samples.size(), measured.samples.size() - most};
}

std::size_t count_processes(const Profile& profile) {
  const std::size_t lengths = std::max<std::size_t>(1, profile.provenance.lengths.size());
  return std::max<std::size_t>(1, static_cast<std::size_t>(profile.counted_runs) / lengths);
}

}  // namespace weir::profile
