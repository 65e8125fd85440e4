// Instructions of a cell's CPU work, and the functions that took them: processes of their own
// within the counted pass.
#include <set>

#include "gate/profile/marginal.hpp"
#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace {

constexpr const char* k_base = "instructions";

void add_functions(const CellFacts& facts, const std::string& source, const Records& counted,
                   Profile& profile) {
  std::set<std::string> names;
  std::set<std::int64_t> lengths;
  for (const RunRecord* record : counted) {
    for (const auto& [name, count] : find_probe(*record, source)->functions) names.insert(name);
    lengths.insert(length_of(*record, facts.sweep));
  }
  if (names.empty() || lengths.size() < 2) return;
  KernelSeries series;
  for (const std::string& name : names) {
    for (const RunRecord* record : counted) {
      const auto& functions = find_probe(*record, source)->functions;
      const auto found = functions.find(name);
      series[name].push_back(
          {length_of(*record, facts.sweep), found == functions.end() ? 0 : found->second});
    }
  }
  profile.functions = fit_functions(series, facts.sweep);
}

}  // namespace

void add_instructions(const CellFacts& facts, const Records& counted, Profile& profile) {
  const auto& first = counted.front()->probes;
  const std::string source = first.empty() ? "" : first.front().probe;
  CountSeries series{k_base, source, {}};
  for (const RunRecord* record : counted) {
    const ProbeCounts* probe = find_probe(*record, source);
    if (probe == nullptr) {
      profile.errors.push_back("instructions: not every process was counted, or not the same way");
      return;
    }
    for (const std::string& warning : probe->warnings) {
      add_once(profile.warnings, fmt::format("instructions: {}", warning));
    }
    series.points.push_back({length_of(*record, facts.sweep), count_of(*probe, k_base)});
  }
  Fit fit = fit_counts(series, facts.sweep);
  for (Measurement& measured : fit.metrics) {
    // An engine's own count of that name is another's: this one stands.
    profile.metrics.insert_or_assign(measured.metric.name, std::move(measured));
  }
  if (facts.sweep != Sweep::none) add_functions(facts, source, counted, profile);
}

}  // namespace weir::profile
