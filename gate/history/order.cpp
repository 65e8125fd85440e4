#include "gate/history/order.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace weir::history {
namespace {

constexpr std::size_t k_shortest_commit = 7;

// Where a run stands: commits that are known have `known`, others are put among them by `time`.
struct Standing {
  std::optional<std::size_t> known;
  double time = 0;     // of the commit, as far as it is known
  std::string commit;  // as it was given; "" without one
};

// Key by which all points sort. Known commits have whole places; what is not known stands behind
// the last of them that is not younger.
struct OrderKey {
  std::size_t slot = 0;  // known: place + 1; else that of the commit it stands behind
  bool unknown = false;
  double commit_time = 0;  // among unknown ones
  std::string_view commit;
  double time = 0;
  std::string_view run;

  friend bool operator<(const OrderKey& a, const OrderKey& b) {
    return std::tie(a.slot, a.unknown, a.commit_time, a.commit, a.time, a.run) <
           std::tie(b.slot, b.unknown, b.commit_time, b.commit, b.time, b.run);
  }
};

// Of each commit that is not known, by project: its own time, else that of its first run.
std::vector<Standing> standings(const History& history, const CommitOrder& order) {
  std::vector<Standing> all;
  std::map<std::pair<std::string_view, std::string_view>, double> first;
  for (const RunFacts& run : history.runs) {
    Standing one{std::nullopt, run.commit_time.value_or(run.time), run.commit.value_or("")};
    if (run.commit) {
      one.known = order.place(*run.commit);
      const auto [at, fresh] = first.try_emplace({run.project, *run.commit}, one.time);
      if (!fresh) at->second = std::min(at->second, one.time);
    }
    all.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const RunFacts& run = history.runs[i];
    if (run.commit) all[i].time = first.at({run.project, *run.commit});
  }
  return all;
}

// Times of the known commits that have runs, by place, and never falling: a clock that was wrong
// once does not take what follows out of its place.
class KnownTimes {
 public:
  explicit KnownTimes(const std::vector<Standing>& standings) {
    std::map<std::size_t, double> times;
    for (const Standing& one : standings) {
      if (!one.known) continue;
      const auto [at, fresh] = times.try_emplace(*one.known, one.time);
      if (!fresh) at->second = std::min(at->second, one.time);
    }
    // From the end: nothing is taken to be younger than what came after it.
    double least = std::numeric_limits<double>::infinity();
    for (auto at = times.rbegin(); at != times.rend(); ++at) {
      least = std::min(least, at->second);
      rows_.emplace_back(least, at->first + 1);
    }
    std::ranges::reverse(rows_);
  }
  // The slot of the last one that is not younger than `time`; 0 before all of them.
  [[nodiscard]] std::size_t slot(double time) const {
    const auto behind =
        std::upper_bound(rows_.begin(), rows_.end(), time,
                         [](double wanted, const auto& row) { return wanted < row.first; });
    return behind == rows_.begin() ? 0 : std::prev(behind)->second;
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

void put_in_order(History& history, const CommitOrder& order) {
  const std::vector<Standing> standing = standings(history, order);
  const KnownTimes times(standing);
  std::vector<OrderKey> keys;
  keys.reserve(standing.size());
  for (std::size_t i = 0; i < standing.size(); ++i) {
    const Standing& one = standing[i];
    const RunFacts& run = history.runs[i];
    if (one.known) {
      keys.push_back({*one.known + 1, false, 0, "", run.time, run.id});
    } else {
      keys.push_back({times.slot(one.time), true, one.time, one.commit, run.time, run.id});
    }
  }
  // Runs are few and points many: each run gets its rank once.
  std::vector<std::uint32_t> by_key(keys.size()), rank(keys.size());
  std::iota(by_key.begin(), by_key.end(), 0U);
  std::ranges::stable_sort(by_key,
                           [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  for (std::uint32_t i = 0; i < by_key.size(); ++i) rank[by_key[i]] = i;
  for (Series& series : history.series) {
    std::ranges::stable_sort(series.points, {},
                             [&](const SeriesPoint& one) { return rank[one.run]; });
  }
}

std::vector<ClassChange> class_changes(const History& history, const Series& series) {
  const bool count = series.metric.kind == unit::Kind::count;
  std::vector<ClassChange> changes;
  std::string device, machine;
  std::vector<double> values;  // of the class that holds
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const Place& place = history.place_of(series.points[i]);
    // A class that is not known is taken for the last one that was.
    const std::string& next_device = place.device_class.empty() ? device : place.device_class;
    const std::string& next_machine = place.machine_class.empty() ? machine : place.machine_class;
    const bool other = (!device.empty() && next_device != device) ||
                       (!count && !machine.empty() && next_machine != machine);
    if (other && !values.empty()) {
      const double middle = middle_of(values);
      if (!changes.empty()) changes.back().after = middle;
      changes.push_back({i, device, next_device, machine, next_machine, middle, 0});
      values.clear();
    }
    device = next_device;
    machine = next_machine;
    values.push_back(series.points[i].value);
  }
  if (!changes.empty()) changes.back().after = middle_of(values);
  return changes;
}

}  // namespace weir::history
