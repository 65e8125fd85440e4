// Sorts points by their commits, and finds changes of class.
#include "gate/history/order.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "gate/stats/quantile.hpp"

namespace weir::history {
namespace {

constexpr std::size_t k_shortest_commit = 7;

// A run's commit: its place in the list, or the time by which it is put among the listed ones.
struct CommitPlace {
  std::optional<std::size_t> listed;  // place in the list
  double time = 0;                    // the commit's, else its first run's
  std::string commit;                 // as the run has it; "" without one
};

// The key that all points sort by. Commits that are not listed come after the last listed one that
// is not younger.
struct OrderKey {
  std::size_t slot = 0;  // listed: place + 1; else the slot of the listed commit before it
  bool unlisted = false;
  double commit_time = 0;  // among unlisted ones
  std::string_view commit;
  double time = 0;
  std::string_view run;

  friend bool operator<(const OrderKey& a, const OrderKey& b) {
    return std::tie(a.slot, a.unlisted, a.commit_time, a.commit, a.time, a.run) <
           std::tie(b.slot, b.unlisted, b.commit_time, b.commit, b.time, b.run);
  }
};

// Finds the place of every run's commit in the order. Runs of one commit in one project get one
// time: the commit's own, else that of its first run.
std::vector<CommitPlace> find_commit_places(const History& history, const CommitOrder& order) {
  std::vector<CommitPlace> places;
  std::map<std::pair<std::string_view, std::string_view>, double> first_times;
  for (const RunFacts& run : history.runs) {
    CommitPlace place{std::nullopt, run.commit_time.value_or(run.time), run.commit.value_or("")};
    if (run.commit) {
      place.listed = order.place(*run.commit);
      const auto [first, is_new] = first_times.try_emplace({run.project, *run.commit}, place.time);
      if (!is_new) first->second = std::min(first->second, place.time);
    }
    places.push_back(std::move(place));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    const RunFacts& run = history.runs[i];
    if (run.commit) places[i].time = first_times.at({run.project, *run.commit});
  }
  return places;
}

// The times of listed commits that have runs, by place and never falling. So a clock that was wrong
// once does not move later commits.
class ListedCommitTimes {
 public:
  explicit ListedCommitTimes(const std::vector<CommitPlace>& places) {
    std::map<std::size_t, double> times;
    for (const CommitPlace& place : places) {
      if (!place.listed) continue;
      const auto [entry, is_new] = times.try_emplace(*place.listed, place.time);
      if (!is_new) entry->second = std::min(entry->second, place.time);
    }
    // From the end: no commit is taken to be younger than a later one.
    double lowest_rank = std::numeric_limits<double>::infinity();
    for (auto at = times.rbegin(); at != times.rend(); ++at) {
      lowest_rank = std::min(lowest_rank, at->second);
      rows_.emplace_back(lowest_rank, at->first + 1);
    }
    std::ranges::reverse(rows_);
  }
  // The slot of the last commit that is not younger than `time`; 0 before all of them.
  [[nodiscard]] std::size_t slot(double time) const {
    const auto after =
        std::upper_bound(rows_.begin(), rows_.end(), time,
                         [](double wanted, const auto& row) { return wanted < row.first; });
    return after == rows_.begin() ? 0 : std::prev(after)->second;
  }

 private:
  std::vector<std::pair<double, std::size_t>> rows_;  // time, slot
};

}  // namespace

CommitOrder::CommitOrder(std::vector<std::string> commits) : commits_(std::move(commits)) {
  by_name_.resize(commits_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::ranges::sort(by_name_,
                    [&](std::size_t a, std::size_t b) { return commits_[a] < commits_[b]; });
}

std::optional<std::size_t> CommitOrder::place(std::string_view commit) const {
  if (commit.size() < k_shortest_commit) return std::nullopt;
  const auto begins = std::lower_bound(
      by_name_.begin(), by_name_.end(), commit,
      [&](std::size_t place, std::string_view wanted) { return commits_[place] < wanted; });
  if (begins == by_name_.end() || !commits_[*begins].starts_with(commit)) return std::nullopt;
  const auto next = std::next(begins);
  if (next != by_name_.end() && commits_[*next].starts_with(commit)) return std::nullopt;
  return *begins;
}

// Sorts the points of every series by commit, then by time and run. A commit that is not in the
// list comes by its time between listed ones.
void put_in_order(History& history, const CommitOrder& order) {
  const std::vector<CommitPlace> places = find_commit_places(history, order);
  const ListedCommitTimes times(places);
  std::vector<OrderKey> keys;
  keys.reserve(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const CommitPlace& place = places[i];
    const RunFacts& run = history.runs[i];
    if (place.listed) {
      keys.push_back({*place.listed + 1, /*unlisted=*/false, 0, "", run.time, run.id});
    } else {
      keys.push_back(
          {times.slot(place.time), /*unlisted=*/true, place.time, place.commit, run.time, run.id});
    }
  }
  // Runs are few and points many: each run gets its rank once.
  std::vector<std::uint32_t> sorted_runs(keys.size()), run_rank(keys.size());
  std::iota(sorted_runs.begin(), sorted_runs.end(), 0U);
  std::ranges::stable_sort(sorted_runs,
                           [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  for (std::uint32_t i = 0; i < sorted_runs.size(); ++i) run_rank[sorted_runs[i]] = i;
  for (Series& series : history.series) {
    std::ranges::stable_sort(series.points, {},
                             [&](const SeriesPoint& point) { return run_rank[point.run]; });
  }
}

// Finds the points of an ordered series from which on the device or machine class is another one,
// with the medians before and after. Counts do not depend on the machine.
std::vector<ClassChange> class_changes(const History& history, const Series& series) {
  const bool is_count = series.metric.kind == unit::Kind::count;
  std::vector<ClassChange> changes;
  std::string device, machine;
  std::vector<double> values_since_change;  // values since the last change
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const Place& place = history.place_of(series.points[i]);
    // A class that is not known is taken for the last known one.
    const std::string& next_device = place.device_class.empty() ? device : place.device_class;
    const std::string& next_machine = place.machine_class.empty() ? machine : place.machine_class;
    const bool has_changed = (!device.empty() && next_device != device) ||
                             (!is_count && !machine.empty() && next_machine != machine);
    if (has_changed && !values_since_change.empty()) {
      const double median_before = *stats::median(values_since_change);
      if (!changes.empty()) changes.back().after = median_before;
      changes.push_back({.index = i,
                         .device_class_before = device,
                         .device_class = next_device,
                         .machine_class_before = machine,
                         .machine_class = next_machine,
                         .before = median_before});
      values_since_change.clear();
    }
    device = next_device;
    machine = next_machine;
    values_since_change.push_back(series.points[i].value);
  }
  if (!changes.empty()) changes.back().after = *stats::median(values_since_change);
  return changes;
}

}  // namespace weir::history
