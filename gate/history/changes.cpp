// Finds the changes of series, and their acknowledgements.
#include "gate/history/changes.hpp"

#include <algorithm>

#include "gate/base/find.hpp"

namespace weir::history {

namespace {

// A step this close to a change of class is reported as that change; a count's step must be at the
// same place.
constexpr std::size_t k_same_place = 2;
// Later points may move a change by this many places, and its acknowledgement still holds. Changes
// of counts do not move.
constexpr std::size_t k_max_moved_points = 3;

// Finds the changes of one series.
class SeriesReader {
 public:
  SeriesReader(const History& history, std::size_t series, const stats::ChangePolicy& policy)
      : history_(history), series_(history.series[series]), at_(series), policy_(policy) {}

  // Finds the changes of numbers and of classes, by index.
  Result<std::vector<SeriesChange>> read() {
    std::vector<SeriesChange> result;
    const auto values = collect<double>(series_.points, &SeriesPoint::value);
    WEIR_TRY(const stats::Changes changes, has_exact_values(series_)
                                               ? stats::count_changes(values)
                                               : stats::find_changes(values, policy_));
    for (const stats::Change& change : changes.changes) result.push_back({change, at_});
    for (const ClassChange& change : class_changes(history_, series_)) {
      add_class_change(change, result);
    }
    std::ranges::sort(result, {}, &SeriesChange::index);
    for (SeriesChange& change : result) change.worse = is_worse(change);
    return result;
  }

 private:
  // Adds a change of class to the step that it explains, or as a change of its own.
  void add_class_change(const ClassChange& class_change, std::vector<SeriesChange>& changes) const {
    const auto near = std::ranges::find_if(changes, [&](const SeriesChange& change) {
      const auto [first, last] = std::minmax(change.index, class_change.index);
      const std::size_t distance = last - first;
      return change.kind == stats::ChangeKind::step && !change.new_class &&
             distance <= (has_exact_values(series_) ? 0 : k_same_place);
    });
    if (near != changes.end()) {
      near->new_class = class_change;
      return;
    }
    SeriesChange change;
    change.series = at_;
    change.index = class_change.index;
    change.end = class_change.index;
    change.earliest = class_change.index;
    change.latest = class_change.index;
    change.before = class_change.before;
    change.after = class_change.after;
    const double difference = change.after - change.before;
    change.relative = change.before != 0;
    change.size = change.relative ? change.after / change.before - 1 : difference;
    change.low = change.size;
    change.high = change.size;
    change.settled = true;
    change.class_alone = true;
    change.new_class = class_change;
    changes.push_back(std::move(change));
  }

  // True if the change is for the worse; nothing if the metric has no direction.
  std::optional<bool> is_worse(const SeriesChange& change) const {
    if (!series_.metric.better || change.after == change.before) return std::nullopt;
    return unit::got_worse(*series_.metric.better, /*rose=*/change.after > change.before);
  }

  const History& history_;
  const Series& series_;
  std::size_t at_;
  stats::ChangePolicy policy_;
};

// Returns the latest acknowledgement of a change at its place, or a few points from it: more points
// may have moved it since. Nullopt if there is none.
std::optional<Acknowledgement> find_acknowledgement(const History& history,
                                                    const SeriesChange& change,
                                                    std::span<const Acknowledgement> all) {
  const Series& series = history.series[change.series];
  const Acknowledgement wanted = make_acknowledgement(history, change);
  const std::size_t max_distance = has_exact_values(series) ? 0 : k_max_moved_points;
  const std::size_t begin = change.index > max_distance ? change.index - max_distance : 0;
  const std::size_t end = std::min(series.points.size(), change.index + max_distance + 1);
  std::optional<Acknowledgement> latest;
  for (const Acknowledgement& entry : all) {
    // A step may be corrected to a drift, and a drift to a step; another class is something else.
    const bool same_kind =
        entry.kind == wanted.kind || (entry.kind != "class" && wanted.kind != "class");
    if (entry.project != wanted.project || entry.cell != wanted.cell ||
        entry.metric != wanted.metric || entry.machine != wanted.machine || !same_kind) {
      continue;
    }
    const auto is_at = [&](std::size_t place) {
      const RunFacts& run = history.run_of(series.points[place]);
      return entry.commit ? run.commit == entry.commit : !run.commit && run.time == entry.time;
    };
    for (std::size_t place = begin; place < end; ++place) {
      if (is_at(place) && (!latest || latest->acknowledged_at < entry.acknowledged_at))
        latest = entry;
    }
  }
  return latest;
}

}  // namespace

bool has_exact_values(const Series& series) {
  return std::ranges::all_of(series.points, [](const SeriesPoint& point) {
    return point.nature == profile::Nature::exact;
  });
}

std::string_view kind_name(const SeriesChange& change) {
  if (change.new_class) return "class";
  return change.kind == stats::ChangeKind::drift ? "drift" : "step";
}

stats::ChangePolicy policy_of(const ChangeQuery& wanted, std::size_t series) {
  double offset = stats::k_offset_of_sensitivity * wanted.sensitivity;
  if (wanted.false_alarm || wanted.any_series) {
    const double share = wanted.false_alarm.value_or(stats::yearly_false_alarms(offset));
    const double many =
        wanted.any_series ? static_cast<double>(std::max<std::size_t>(1, series)) : 1;
    offset = std::clamp(stats::offset_for(share / many), -2.0, 4.0);
  }
  return {.offset = offset};
}

// Finds the changes (steps, drifts, new device classes) in all series of the history, each with its
// acknowledgement.
Result<std::vector<SeriesChange>> find_changes(const History& history,
                                               std::span<const Acknowledgement> acknowledged,
                                               const ChangeQuery& query) {
  const stats::ChangePolicy policy = policy_of(query, history.series.size());
  std::vector<SeriesChange> all;
  for (std::size_t i = 0; i < history.series.size(); ++i) {
    WEIR_TRY(std::vector<SeriesChange> changes, SeriesReader(history, i, policy).read());
    for (SeriesChange& change : changes) {
      change.acknowledgement = find_acknowledgement(history, change, acknowledged);
      all.push_back(std::move(change));
    }
  }
  return all;
}

// Returns an acknowledgement that fits this change, with neither reason nor name.
Acknowledgement make_acknowledgement(const History& history, const SeriesChange& change) {
  const Series& series = history.series[change.series];
  const RunFacts& run = history.run_of(series.points[change.index]);
  return {series.project,
          series.cell,
          series.metric.name,
          series.machine,
          std::string(kind_name(change)),
          run.commit,
          run.time,
          "",
          ""};
}

Result<ChangedHistory> read_changes(Store& store, const Filter& filter, const CommitOrder& order,
                                    const ChangeQuery& wanted) {
  ChangedHistory read;
  WEIR_TRY(read.history, store.history(filter));
  put_in_order(read.history, order);
  WEIR_TRY(const auto acknowledged, store.acknowledgements(filter));
  WEIR_TRY(read.changes, find_changes(read.history, acknowledged, wanted));
  return read;
}

}  // namespace weir::history
