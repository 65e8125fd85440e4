#include "gate/verdict/calibration_words.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "gate/base/text.hpp"

namespace weir::verdict {
namespace {

std::string limits_of(const std::vector<CalibratedMetric>& metrics) {
  std::set<std::string> amounts;
  for (const CalibratedMetric& metric : metrics) amounts.insert(metric.amount);
  return text::join(std::vector<std::string>(amounts.begin(), amounts.end()), " and ");
}

bool too_loud(const CalibratedCell& cell) {
  return std::min(cell.unchanged.decided, cell.at_limit.decided) < 0.95;
}

// "a, b and 3 more".
std::string some(const std::vector<std::string>& names) {
  constexpr std::size_t k_shown = 3;
  if (names.size() <= k_shown) return text::join(names, ", ");
  return fmt::format(
      "{} and {} more",
      text::join(std::vector<std::string>(names.begin(), names.begin() + k_shown), ", "),
      names.size() - k_shown);
}

// A budget that would do, as people write one.
std::string budget_of(double seconds) {
  const double rounded = seconds < 60 ? std::ceil(seconds) : 60 * std::ceil(seconds / 60);
  return unit::show_duration(std::max(10.0, rounded));
}

}  // namespace

std::string words(const CalibratedCell& cell) {
  return fmt::format("calibrated {} on this machine: {} takes about {:.0f} pairs, {}", cell.date,
                     limits_of(cell.metrics), std::ceil(cell.typical_pairs()),
                     unit::show_duration(cell.typical_pairs() * cell.pair_seconds));
}

std::vector<std::string> surprises(const Calibration& calibration) {
  std::vector<std::string> notes;
  for (const CalibratedCell& cell : calibration.cells) {
    for (const CalibratedMetric& metric : cell.metrics) {
      if (metric.decision != stats::Decision::fail) continue;
      const std::string what = fmt::format("{} of {}", unit::label(metric.metric), cell.cell.str());
      notes.push_back(
          calibration.two_builds
              ? fmt::format("two builds of one source differ: {} fails beside the other build",
                            what)
              : fmt::format("{} failed beside itself, which chance does in at most {:.2g} % of "
                            "gates: calibrate again, and ask weir doctor",
                            what, 100 * calibration.false_alarm));
    }
  }
  return notes;
}

std::string answer_words(const Calibration& calibration) {
  const std::string budget = unit::show_duration(calibration.budget_seconds);
  if (calibration.cells.empty()) return "No timed limit gates here: there is nothing to hold.";
  std::vector<std::string> unmeasured, loud, alone;
  for (const CalibratedCell& cell : calibration.cells) {
    if (cell.error) {
      unmeasured.push_back(cell.cell.str());
    } else if (too_loud(cell)) {
      loud.push_back(fmt::format("{} after {} pairs", cell.cell.str(), cell.most_pairs));
    } else if (!cell.holds) {
      alone.push_back(cell.cell.str());
    }
  }
  if (unmeasured.size() == calibration.cells.size()) {
    return "Nothing can be said: no cell could be measured.";
  }
  std::string said;
  const std::string these =
      calibration.cells.size() == 1 ? limits_of(calibration.cells.front().metrics) : "these limits";
  const double most = std::max(calibration.unchanged.p95, calibration.at_limit.p95);
  if (calibration.holds) {
    return fmt::format(
        "This machine can hold {} within gate.budget ({}): verdicts take {} when nothing changed, "
        "{} when all is as slow as its limit, and in 95 of 100 gates no more than {}.",
        these, budget, unit::show_duration(calibration.unchanged.mean),
        unit::show_duration(calibration.at_limit.mean), unit::show_duration(most));
  }
  if (!loud.empty()) {
    said = fmt::format(
        "This machine is too noisy for {}: in more than 5 of 100 gates there is no verdict on {}. "
        "A "
        "looser limit, longer prompts, more repeats or a quieter machine (weir doctor) help.",
        these, some(loud));
  } else if (most > calibration.budget_seconds || !alone.empty()) {
    said = fmt::format(
        "This machine can not hold {} within gate.budget ({}): 95 of 100 gates take up to {}; "
        "gate.budget: {} would do.",
        these, budget, unit::show_duration(most), budget_of(1.1 * most));
    if (!alone.empty()) said += fmt::format(" Too long even alone: {}.", some(alone));
  }
  if (!unmeasured.empty()) {
    said += fmt::format("{}Nothing can be said of {}.", said.empty() ? "" : " ", some(unmeasured));
  }
  return said;
}

}  // namespace weir::verdict
