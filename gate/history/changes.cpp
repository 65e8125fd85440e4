#include "gate/history/changes.hpp"

#include <algorithm>

#include "gate/base/find.hpp"

namespace weir::history {

namespace {

// A step of a time so near to where the class changed is told as that; of a count, one at the
// place.
constexpr std::size_t k_same_place = 2;
// An acknowledgement holds for the change that more points have moved by so many places. Those of
// counts stay where they are.
constexpr std::size_t k_moved = 3;

class SeriesReader {
 public:
  SeriesReader(const History& history, std::size_t series, const stats::ChangePolicy& policy)
      : history_(history), series_(history.series[series]), at_(series), policy_(policy) {}

  Result<std::vector<SeriesChange>> read() {
    std::vector<SeriesChange> found;
    const auto values = collect<double>(series_.points, &SeriesPoint::value);
    WEIR_TRY(const stats::Changes changes, is_exact(series_)
                                               ? stats::count_changes(values)
                                               : stats::find_changes(values, policy_));
    for (const stats::Change& change : changes.changes) found.push_back({change, at_});
    for (const ClassChange& change : class_changes(history_, series_)) put_class(change, found);
    std::ranges::sort(found, {}, &SeriesChange::index);
    for (SeriesChange& change : found) change.worse = is_worse(change);
    return found;
  }

 private:
  void put_class(const ClassChange& change, std::vector<SeriesChange>& found) const {
    const auto near = std::ranges::find_if(found, [&](const SeriesChange& one) {
      const std::size_t apart =
          one.index > change.index ? one.index - change.index : change.index - one.index;
      return one.kind == stats::ChangeKind::step && !one.new_class &&
             apart <= (is_exact(series_) ? 0 : k_same_place);
    });
    if (near != found.end()) {
      near->new_class = change;
      return;
    }
    SeriesChange made;
    made.series = at_;
    made.index = made.end = change.index;
    made.before = change.before;
    made.after = change.after;
    made.relative = change.before != 0;
    made.size = made.relative ? change.after / change.before - 1 : change.after - change.before;
    made.low = made.high = made.size;
    made.settled = made.class_alone = true;
    made.new_class = change;
    found.push_back(std::move(made));
  }

  std::optional<bool> is_worse(const SeriesChange& change) const {
    if (!series_.metric.better || change.after == change.before) return std::nullopt;
    return (change.after > change.before) == (*series_.metric.better == unit::Better::lower);
  }

  const History& history_;
  const Series& series_;
  std::size_t at_;
  stats::ChangePolicy policy_;
};

// The latest word on a change at that place, or where it stood before more points came in.
std::optional<Acknowledgement> word_on(const History& history, const SeriesChange& change,
                                       std::span<const Acknowledgement> acknowledged) {
  const Series& series = history.series[change.series];
  const Acknowledgement here = acknowledgement_of(history, change);
  std::optional<Acknowledgement> found;
  for (const Acknowledgement& one : acknowledged) {
    // A step may be corrected to a drift, and a drift to a step; another class is something else.
    const bool same_kind = one.kind == here.kind || (one.kind != "class" && here.kind != "class");
    if (one.project != here.project || one.cell != here.cell || one.metric != here.metric ||
        one.machine != here.machine || !same_kind) {
      continue;
    }
    const std::size_t moved = is_exact(series) ? 0 : k_moved;
    const std::size_t begin = change.index > moved ? change.index - moved : 0;
    const std::size_t end = std::min(series.points.size(), change.index + moved + 1);
    const auto is_there = [&](std::size_t place) {
      const RunFacts& run = history.run_of(series.points[place]);
      return one.commit ? run.commit == one.commit : !run.commit && run.time == one.time;
    };
    for (std::size_t place = begin; place < end; ++place) {
      if (is_there(place) && (!found || found->at < one.at)) found = one;
    }
  }
  return found;
}

}  // namespace

bool is_exact(const Series& series) {
  return std::ranges::all_of(series.points, [](const SeriesPoint& point) {
    return point.nature == profile::Nature::exact;
  });
}

std::string_view kind_name(const SeriesChange& change) {
  if (change.new_class) return "class";
  return change.kind == stats::ChangeKind::drift ? "drift" : "step";
}

stats::ChangePolicy policy_of(const ChangesWanted& wanted, std::size_t series) {
  double offset = stats::k_offset_of_sensitivity * wanted.sensitivity;
  if (wanted.false_alarm || wanted.any_series) {
    const double share = wanted.false_alarm.value_or(stats::yearly_false_alarms(offset));
    const double many =
        wanted.any_series ? static_cast<double>(std::max<std::size_t>(1, series)) : 1;
    offset = std::clamp(stats::offset_for(share / many), -2.0, 4.0);
  }
  return {.offset = offset};
}

Result<std::vector<SeriesChange>> changes_of(const History& history,
                                             std::span<const Acknowledgement> acknowledged,
                                             const ChangesWanted& wanted) {
  const stats::ChangePolicy policy = policy_of(wanted, history.series.size());
  std::vector<SeriesChange> all;
  for (std::size_t i = 0; i < history.series.size(); ++i) {
    WEIR_TRY(std::vector<SeriesChange> found, SeriesReader(history, i, policy).read());
    for (SeriesChange& change : found) {
      change.known = word_on(history, change, acknowledged);
      all.push_back(std::move(change));
    }
  }
  return all;
}

Acknowledgement acknowledgement_of(const History& history, const SeriesChange& change) {
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
                                    const ChangesWanted& wanted) {
  ChangedHistory read;
  WEIR_TRY(read.history, store.history(filter));
  put_in_order(read.history, order);
  WEIR_TRY(const auto acknowledged, store.acknowledgements(filter));
  WEIR_TRY(read.changes, changes_of(read.history, acknowledged, wanted));
  return read;
}

}  // namespace weir::history
