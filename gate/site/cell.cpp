// Makes the page of a cell: all its series, in columns.
#include <algorithm>
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/site/parts.hpp"

namespace weir::site {
namespace {

constexpr std::size_t k_min_samples = 6;  // for the median's interval: 1 - 2 / 2^6 = 0.97

struct Band {
  double low = 0, high = 0;
};
// Returns a 95 % interval for the median of any distribution: from the k-th smallest to the k-th
// largest sample. k is the largest with P(Binomial(n, 1/2) < k) <= 2.5 %. Fewer than six samples
// give the smallest and the largest; fewer than two give nullopt.
std::optional<Band> median_band(std::vector<double> samples) {
  if (samples.size() < 2) return std::nullopt;
  std::ranges::sort(samples);
  const std::size_t n = samples.size();
  std::size_t k = 1;
  if (n >= k_min_samples && n <= 1000) {
    double probability = std::pow(0.5, static_cast<double>(n));  // P(Binomial = 0)
    double probability_below = probability;                      // P(Binomial < 1)
    while (true) {
      probability *= static_cast<double>(n - k + 1) / static_cast<double>(k);  // P(Binomial = k)
      probability_below += probability;  // P(Binomial < k + 1)
      if (probability_below > 0.025) break;
      ++k;
    }
  } else if (n > 1000) {
    // The normal approximation: n / 2 - 1.96 * sqrt(n) / 2.
    k = static_cast<std::size_t>(static_cast<double>(n) / 2 -
                                 0.98 * std::sqrt(static_cast<double>(n)));
  }
  return Band{samples[k - 1], samples[n - k]};
}

// Runs or places of a cell's points, numbered in the order in which they come. Items with the same
// key have one number.
template <class Key>
struct Numbered {
  std::map<Key, std::size_t> numbers;
  std::vector<std::size_t> all;

  std::size_t number(const Key& key, std::size_t item) {
    const auto [entry, is_new] = numbers.try_emplace(key, all.size());
    if (is_new) all.push_back(item);
    return entry->second;
  }
};
using NumberedRuns = Numbered<std::size_t>;
// Places without their engine's build, which differs with every commit.
using NumberedPlaces = Numbered<history::Place>;

// Returns a series in columns: a run, value and band for each point, a place where it changes.
Json series_json(const SiteIndex& index, std::size_t at, NumberedRuns& runs,
                 NumberedPlaces& places) {
  const history::Series& series = index.model.history.series[at];
  Json run, place, value, low, high, exact = Json::array(), changes = Json::array();
  bool has_bands = false;
  std::size_t max_samples = 0;
  std::optional<std::uint32_t> last_place;
  std::optional<std::size_t> last_number;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const history::SeriesPoint& point = series.points[i];
    run.push_back(runs.number(point.run, point.run));
    value.push_back(point.exact ? point.value : with_digits(point.value, 9));
    if (last_place != point.place) {
      last_place = point.place;
      history::Place point_place = index.model.history.place_of(point);
      point_place.engine_build.clear();
      const std::size_t number = places.number(point_place, point.place);
      if (last_number != number) place.push_back({i, number});
      last_number = number;
    }
    const auto band = median_band(point.samples);
    max_samples = std::max(max_samples, point.samples.size());
    if (band) has_bands = true;
    low.push_back(band ? Json(with_digits(band->low, 5)) : Json());
    high.push_back(band ? Json(with_digits(band->high, 5)) : Json());
    if (point.exact && !point.exact->is_integer()) exact.push_back({i, point.exact->str()});
  }
  for (const history::SeriesChange& change : index.series_changes(at)) {
    if (change.index > 0 && change.index < series.points.size()) {
      changes.push_back(site_change_json(index, series, change));
    }
  }
  Json json{{"metric", site_metric_json(series.metric)},
            {"machine", series.machine},
            {"state", series_state(series, index.series_changes(at))},
            {"nature", profile::to_string(series.points.back().nature)},
            {"samples", max_samples},
            {"run", std::move(run)},
            {"place", std::move(place)},
            {"value", std::move(value)},
            {"exact", std::move(exact)},
            {"changes", std::move(changes)}};
  if (has_bands) {
    json["low"] = std::move(low);
    json["high"] = std::move(high);
  }
  return json;
}

// Returns the runs of a cell as columns, one entry a run. Branches are numbered; `id` is 0 for a
// run without a page.
Json runs_json(const SiteIndex& index, const NumberedRuns& runs) {
  Json id, commit, time, branch, branches, dirty = Json::array();
  std::map<std::string, std::size_t> branch_numbers;
  for (std::size_t i = 0; i < runs.all.size(); ++i) {
    const history::RunFacts& run = index.model.history.runs[runs.all[i]];
    const auto* page_id = look_up(index.page_id_by_run, runs.all[i]);
    id.push_back(page_id == nullptr ? Json(0) : Json(*page_id));
    commit.push_back(short_commit(run.commit));
    time.push_back(std::round(run.time));
    const auto [entry, is_new] =
        branch_numbers.try_emplace(run.branch.value_or(""), branches.size());
    if (is_new) branches.push_back(run.branch.value_or(""));
    branch.push_back(entry->second);
    if (run.dirty) dirty.push_back(i);
  }
  return {{"id", std::move(id)},       {"commit", std::move(commit)},
          {"time", std::move(time)},   {"branch", std::move(branch)},
          {"dirty", std::move(dirty)}, {"branches", std::move(branches)}};
}

Json gate_json(const SiteIndex& index, const SiteCell& cell) {
  if (!cell.gate) return {};
  const SiteVerdict& verdict = index.verdicts[cell.gate->verdict];
  const verdict::CellVerdict& cell_verdict = verdict.gate.cells[cell.gate->cell];
  return {{"verdict", to_string(cell_verdict.verdict)},
          {"reason", cell_verdict.reason},
          {"time", std::round(verdict.stored->time)},
          {"commit", short_commit(verdict.stored->commit)},
          {"run", index.page_id_by_verdict[cell.gate->verdict]}};
}

}  // namespace

// Returns the document of one cell: its series, and the runs and places (device, machine) to which
// they refer by number.
Json site_cell_json(const SiteIndex& index, const SiteCell& cell) {
  NumberedRuns runs;
  NumberedPlaces places;
  Json series = Json::array(), shown = Json::array();
  for (const std::size_t at : cell.series) {
    series.push_back(series_json(index, at, runs, places));
  }
  for (const std::size_t at : places.all) {
    shown.push_back(site_place_json(index.model.history.places[at]));
  }
  return {{"format", 1},
          {"id", cell.id},
          {"project", cell.project},
          {"cell", cell.name},
          {"gate", gate_json(index, cell)},
          {"places", std::move(shown)},
          {"runs", runs_json(index, runs)},
          {"series", std::move(series)}};
}

}  // namespace weir::site
