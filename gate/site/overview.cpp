// Makes the overview: a line for every cell, and the latest points of its metrics.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "gate/base/find.hpp"
#include "gate/site/parts.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::site {
namespace {

constexpr std::size_t k_spark_points = 40;
constexpr std::size_t k_columns = 6;  // shown until a reader chooses others

// States of a cell, the worst first.
constexpr std::array<std::string_view, 7> k_states{"worse",  "changed", "unclear", "place",
                                                   "better", "known",   "steady"};

std::size_t state_rank(std::string_view state) {
  return static_cast<std::size_t>(std::ranges::find(k_states, state) - k_states.begin());
}

// Returns the last 40 values for a sparkline.
Json spark_json(const history::Series& series) {
  Json json;
  const std::span<const history::SeriesPoint> all(series.points);
  for (const auto& point : all.last(std::min(all.size(), k_spark_points))) {
    json.push_back(with_digits(point.value, 4));  // a sparkline shows no more
  }
  return json;
}

// Ranks a metric, the most important first: throughput, work of the device, other counts of a
// token, times, counts of a prefill, the rest.
int importance(const history::Metric& metric) {
  if (metric.unit == unit::Unit::tokens_per_second) return 0;
  for (const char* first : {"dispatches_per_token", "barriers_per_token", "syncs_per_token",
                            "dispatches_per_prefill"}) {
    if (metric.name == first) return 1;
  }
  if (metric.name.ends_with("_per_token")) return 2;
  if (metric.kind == unit::Kind::time) return 3;
  if (metric.name.ends_with("_per_prefill")) return 4;
  return 5;
}

template <class Value>
std::size_t sorted_index(const std::vector<Value>& sorted, const Value& value) {
  return static_cast<std::size_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
}

// Chooses the metrics shown as columns: those that got worse in any cell, then the most important,
// then those of most cells. Returns their indices in the order of importance.
std::vector<std::size_t> choose_columns(const SiteIndex& index) {
  std::vector<std::int64_t> cell_counts(index.metrics.size());
  std::vector<bool> has_worse(index.metrics.size());
  const auto& all = index.model.history.series;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t metric_index = sorted_index(index.metrics, all[i].metric);
    if (metric_index == cell_counts.size() || index.metrics[metric_index] != all[i].metric)
      continue;
    ++cell_counts[metric_index];
    const auto& changes = index.series_changes(i);
    if (!changes.empty() && series_state(all[i], changes) == "worse")
      has_worse[metric_index] = true;
  }
  std::vector<std::size_t> order(index.metrics.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t metric) {
    return std::pair(importance(index.metrics[metric]), -cell_counts[metric]);
  });
  std::vector<std::size_t> columns = order;
  std::ranges::stable_partition(columns, [&](std::size_t metric) { return has_worse[metric]; });
  columns.resize(std::min(columns.size(), k_columns));
  std::erase_if(order, [&](std::size_t metric) { return !holds(columns, metric); });
  return order;
}

// Returns a cell's line of the overview: names, worst state, times of the newest point and change,
// last verdict.
Json cell_line(const SiteIndex& index, const SiteCell& cell) {
  std::string_view state = k_states.back();
  double newest_time = 0;
  std::optional<double> last_change;
  std::vector<std::size_t> metrics, machines;
  for (const std::size_t series_index : cell.series) {
    const history::Series& series = index.model.history.series[series_index];
    const auto& changes = index.series_changes(series_index);
    const std::string_view own_state = series_state(series, changes);
    if (state_rank(own_state) < state_rank(state)) state = own_state;
    for (const history::SeriesPoint& point : series.points) {
      newest_time = std::max(newest_time, index.model.history.run_of(point).time);
    }
    if (!changes.empty() && changes.back().index < series.points.size()) {
      const double time = index.model.history.run_of(series.points[changes.back().index]).time;
      last_change = std::max(last_change.value_or(time), time);
    }
    metrics.push_back(sorted_index(index.metrics, series.metric));
    machines.push_back(sorted_index(index.machines, series.machine));
  }
  for (auto* list : {&metrics, &machines}) {
    std::ranges::sort(*list);
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return {
      cell.id,
      cell.project,
      cell.name,
      state,
      std::round(newest_time),
      last_change ? Json(std::round(*last_change)) : Json(),
      cell.gate
          ? Json(to_string(index.verdicts[cell.gate->verdict].gate.cells[cell.gate->cell].verdict))
          : Json(),
      metrics,
      machines};
}

// Returns true if the median of the last three points is outside the band that holds 95 % of those
// before: the series has no change point yet, but it isn't steady either.
bool has_left_band(const history::Series& series) {
  constexpr std::size_t k_last = 3, k_min_points = 13;
  constexpr double k_outside = 0.025;  // on either side
  if (history::has_exact_values(series) || series.points.size() < k_min_points) return false;
  auto values = collect<double>(series.points, &history::SeriesPoint::value);
  const double level = *stats::median(std::span<const double>(values).last(k_last));
  values.resize(values.size() - k_last);
  std::ranges::sort(values);
  return level < stats::quantile_of_sorted(values, k_outside) ||
         level > stats::quantile_of_sorted(values, 1 - k_outside);
}

}  // namespace

std::string_view series_state(const history::Series& series,
                              const std::vector<history::SeriesChange>& changes) {
  if (changes.empty()) return has_left_band(series) ? "unclear" : "steady";
  const history::SeriesChange& last = changes.back();
  if (last.acknowledgement) return "known";
  if (last.new_class) return "place";
  if (!series.metric.better || last.after == last.before) return "changed";
  const bool more = last.after > last.before;
  return more == (*series.metric.better == unit::Better::higher) ? "better" : "worse";
}

Json site_metric_json(const history::Metric& metric) {
  const auto own_metric = unit::find_metric(metric.name);
  // A metric of the configuration may have the name of one of weir's, but another unit.
  const bool is_own = own_metric && metric.unit == own_metric->unit;
  return {{"name", metric.name},
          {"label", is_own ? unit::display_name(*own_metric) : metric.name},
          {"unit", metric.unit ? Json(unit::to_string(*metric.unit)) : Json()},
          {"better", metric.better ? Json(unit::to_string(*metric.better)) : Json()},
          {"kind", metric.kind ? Json(unit::to_string(*metric.kind)) : Json()}};
}

// Returns a change of a series: its position, its size with the interval, and if somebody
// acknowledged it.
Json site_change_json(const SiteIndex& index, const history::Series& series,
                      const history::SeriesChange& change) {
  // The kind "place" says that the device or machine changed.
  Json json{{"kind", change.new_class ? "place" : kind_name(change)},
            {"index", change.index},
            {"before", change.before},
            {"after", change.after},
            {"size", change.size},
            {"low", change.low},
            {"high", change.high},
            {"relative", change.relative}};
  if (change.kind == stats::ChangeKind::drift) json["end"] = change.end;
  if (change.new_class) {
    const history::ClassChange& place = *change.new_class;
    const bool is_device = place.device_class_before != place.device_class;
    json["from"] = is_device ? place.device_class_before : place.machine_class_before;
    json["to"] = is_device ? place.device_class : place.machine_class;
  }
  if (change.acknowledgement) {
    json["known"] = {{"reason", change.acknowledgement->reason},
                     {"who", change.acknowledgement->who},
                     {"at", std::round(change.acknowledgement->acknowledged_at)}};
  }
  if (change.index < series.points.size()) {
    const history::RunFacts& run = index.model.history.run_of(series.points[change.index]);
    json["commit"] = short_commit(run.commit);
    json["time"] = std::round(run.time);
  }
  return json;
}

// Returns the document of the first page: totals, metrics, machines, and a line for each cell.
Json overview_json(const SiteIndex& index) {
  const auto line = [&](const SiteCell& cell) { return cell_line(index, cell); };
  std::size_t points = 0, series = 0;
  for (const history::Series& stored_series : index.model.history.series) {
    points += stored_series.points.size();
    if (!stored_series.points.empty()) ++series;
  }
  Json json{{"format", 1},
            {"title", index.model.title},
            {"repo", index.model.repo_url},
            {"series", series},
            {"points", points},
            {"runs", index.model.history.runs.size()},
            {"verdicts", index.verdicts.size()},
            {"metrics", collect<Json>(index.metrics, site_metric_json)},
            {"columns", choose_columns(index)},
            {"machines", index.machines},
            {"commit_digits", index.commit_digits},
            {"has_commits", !index.commits.empty()},
            {"cells_a_file", k_cells_a_spark_file},
            {"cells", collect<Json>(index.cells, line)}};
  if (index.model.commit_changes)
    json["changes"] = {{"repeat", index.model.commit_changes->repeat}};
  return json;
}

// Returns the small charts of the cells in file number `file`: for each series its last value, its
// last change and its line.
Json sparks_json(const SiteIndex& index, std::size_t file) {
  Json cells = Json::array();
  const std::size_t end = std::min(index.cells.size(), (file + 1) * k_cells_a_spark_file);
  for (std::size_t cell_index = file * k_cells_a_spark_file; cell_index < end; ++cell_index) {
    Json lines = Json::array();
    for (const std::size_t series_index : index.cells[cell_index].series) {
      const history::Series& series = index.model.history.series[series_index];
      const auto& changes = index.series_changes(series_index);
      lines.push_back(
          {{"metric", sorted_index(index.metrics, series.metric)},
           {"machine", series.machine},
           {"state", series_state(series, changes)},
           {"last", series.points.back().value},
           {"time", std::round(index.model.history.run_of(series.points.back()).time)},
           {"points", series.points.size()},
           {"spark", spark_json(series)},
           {"change", changes.empty() ? Json() : site_change_json(index, series, changes.back())}});
    }
    cells.push_back(std::move(lines));
  }
  return cells;
}

}  // namespace weir::site
