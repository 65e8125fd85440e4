// Says how counts and rates change from one number of threads to the next.
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::verdict {
namespace {

using profile::Measurement;
using profile::Profile;

std::string threads_text(const Profile* profile) {
  const std::int64_t threads = *profile->cell.threads;
  return threads == 0 ? "all" : std::to_string(threads);
}

// Returns true for rates, and for counts of a token or a prefill.
bool is_shown(const unit::Metric& metric) {
  if (metric.kind != unit::Kind::count) return metric.better == unit::Better::higher;
  return metric.scope == unit::Scope::per_token || metric.scope == unit::Scope::per_prefill;
}

// Returns " (+29 a thread)" for an exact count that lies on a line over the numbers of threads;
// else "". "all" threads (0) are left out: their number depends on the machine.
std::string per_thread_text(const std::vector<const Profile*>& group, const std::string& name) {
  std::vector<profile::ExactPoint> points;
  for (const Profile* profile : group) {
    const Measurement& measured = profile->metrics.at(name);
    if (*profile->cell.threads > 0 && measured.exact) {
      points.push_back({*profile->cell.threads, *measured.exact});
    }
  }
  const auto line = points.size() < 2 ? std::nullopt : profile::line_through(points);
  if (!line || line->slope == Rational(0)) return "";
  return fmt::format(" ({}{} a thread)", line->slope > Rational(0) ? "+" : "", line->slope.str());
}

// Returns a metric's values by rising number of threads: "futex waits/token 0.1, 37". "" if all
// are equal or one is missing. Names a lock if waits grow more than fourfold.
std::string changes_over_threads(const std::vector<const Profile*>& group,
                                 const std::string& name) {
  constexpr double k_waits_growth = 4;
  std::vector<std::string> shown_values;
  std::vector<double> values;
  for (const Profile* profile : group) {
    const Measurement* measurement = look_up(profile->metrics, name);
    const auto value = measurement == nullptr ? std::nullopt : measurement->value();
    if (!value) return "";
    values.push_back(*value);
    shown_values.push_back(unit::show(measurement->metric, *value));
  }
  const bool are_all_equal = std::ranges::all_of(
      shown_values, [&](const auto& word) { return word == shown_values.front(); });
  if (are_all_equal) return "";
  const unit::Metric& metric = group.front()->metrics.at(name).metric;
  const double waits_of_most_threads = values.back();
  const bool serialises = metric.base == "futex_waits" && waits_of_most_threads >= 1 &&
                          waits_of_most_threads > k_waits_growth * values.front();
  return fmt::format("{} {}{}{}", unit::display_name(metric), text::join(shown_values),
                     per_thread_text(group, name),
                     serialises ? ", so that threads wait for each other: a lock serialises" : "");
}

}  // namespace

// Returns a line for each list of cells that differ in threads alone, if a metric changes with the
// threads. 0 threads means all of the machine's, and comes last.
std::vector<std::string> describe_thread_scaling(std::span<const Profile> profiles) {
  std::map<std::string, std::vector<const Profile*>> groups;
  for (const Profile& profile : profiles) {
    if (!profile.cell.threads) continue;
    profile::CellKey key = profile.cell;
    key.threads.reset();
    groups[key.str()].push_back(&profile);
  }
  std::vector<std::string> lines;
  for (auto& [name_without_threads, group] : groups) {
    std::ranges::stable_sort(group, {}, [](const Profile* member) {
      return std::pair(*member->cell.threads == 0, *member->cell.threads);
    });
    std::vector<std::string> changes;
    for (const auto& [metric, measured] : group.front()->metrics) {
      if (!is_shown(measured.metric)) continue;
      std::string change = changes_over_threads(group, metric);
      if (!change.empty()) changes.push_back(std::move(change));
    }
    if (group.size() < 2 || changes.empty()) continue;
    const auto threads = collect<std::string>(group, threads_text);
    lines.push_back(fmt::format("{} over {} threads: {}", name_without_threads, text::join(threads),
                                text::join(changes, "; ")));
  }
  return lines;
}

}  // namespace weir::verdict
