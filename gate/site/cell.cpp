// A cell's page: all its series, in columns.
#include <algorithm>
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/site/parts.hpp"

namespace weir::site {
namespace {

constexpr std::size_t k_least_samples = 6;  // for the middle's interval: 1 - 2 / 2^6 = 0.97

struct Band {
  double low = 0, high = 0;
};
// Where the median lies, whatever the distribution: between the k-th smallest and the k-th largest
// sample, with the largest k of which P(Binomial(n, 1/2) < k) <= 2.5 %. Fewer than six do not
// suffice for that: from the smallest to the largest.
std::optional<Band> band_of(std::vector<double> samples) {
  if (samples.size() < 2) return std::nullopt;
  std::ranges::sort(samples);
  const std::size_t n = samples.size();
  std::size_t k = 1;
  if (n >= k_least_samples && n <= 1000) {
    double chance = std::pow(0.5, static_cast<double>(n)), below = chance;  // of 0, of fewer than 1
    while (true) {
      chance *= static_cast<double>(n - k + 1) / static_cast<double>(k);
      below += chance;  // of fewer than k + 1
      if (below > 0.025) break;
      ++k;
    }
  } else if (n > 1000) {
    k = static_cast<std::size_t>(static_cast<double>(n) / 2 -
                                 0.98 * std::sqrt(static_cast<double>(n)));
  }
  return Band{samples[k - 1], samples[n - k]};
}

// Runs and places that a cell's points name, numbered in the order they come. Those with the same
// key are one.
template <class Key>
struct Numbered {
  std::map<Key, std::size_t> numbers;
  std::vector<std::size_t> all;

  std::size_t of(const Key& key, std::size_t one) {
    const auto [at, fresh] = numbers.try_emplace(key, all.size());
    if (fresh) all.push_back(one);
    return at->second;
  }
};
using NumberedRuns = Numbered<std::size_t>;
// What is measured on, whichever build it was: that is another with every commit.
using NumberedPlaces = Numbered<history::Place>;

Json series_json(const SiteIndex& index, std::size_t at, NumberedRuns& runs,
                 NumberedPlaces& places) {
  const history::Series& series = index.model.history.series[at];
  Json run, place, value, low, high, exact = Json::array(), changes = Json::array();
  bool banded = false;
  std::size_t most = 0;
  std::optional<std::uint32_t> before_place;
  std::optional<std::size_t> before_number;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const history::SeriesPoint& point = series.points[i];
    run.push_back(runs.of(point.run, point.run));
    value.push_back(point.exact ? point.value : with_digits(point.value, 9));
    if (std::exchange(before_place, point.place) != point.place) {
      history::Place here = index.model.history.place_of(point);
      here.engine_build.clear();
      const std::size_t number = places.of(here, point.place);
      if (std::exchange(before_number, number) != number) place.push_back({i, number});
    }
    const auto band = band_of(point.samples);
    most = std::max(most, point.samples.size());
    banded = banded || band.has_value();
    low.push_back(band ? Json(with_digits(band->low, 5)) : Json());
    high.push_back(band ? Json(with_digits(band->high, 5)) : Json());
    if (point.exact && !point.exact->whole()) exact.push_back({i, point.exact->str()});
  }
  for (const history::SeriesChange& change : index.changes_of(at)) {
    if (change.index > 0 && change.index < series.points.size()) {
      changes.push_back(site_change_json(index, series, change));
    }
  }
  Json json{{"metric", site_metric_json(series.metric)},
            {"machine", series.machine},
            {"state", series_state(series, index.changes_of(at))},
            {"nature", profile::to_string(series.points.back().nature)},
            {"samples", most},
            {"run", std::move(run)},
            {"place", std::move(place)},
            {"value", std::move(value)},
            {"exact", std::move(exact)},
            {"changes", std::move(changes)}};
  if (banded) {
    json["low"] = std::move(low);
    json["high"] = std::move(high);
  }
  return json;
}

Json runs_json(const SiteIndex& index, const NumberedRuns& runs) {
  Json id, commit, time, branch, branches, dirty = Json::array();
  std::map<std::string, std::size_t> branch_at;
  for (std::size_t i = 0; i < runs.all.size(); ++i) {
    const history::RunFacts& run = index.model.history.runs[runs.all[i]];
    const auto* page = look_up(index.run_id, runs.all[i]);
    id.push_back(page == nullptr ? Json(0) : Json(*page));
    commit.push_back(short_commit(run.commit));
    time.push_back(std::round(run.time));
    const auto [at, fresh] = branch_at.try_emplace(run.branch.value_or(""), branches.size());
    if (fresh) branches.push_back(run.branch.value_or(""));
    branch.push_back(at->second);
    if (run.dirty) dirty.push_back(i);
  }
  return {{"id", std::move(id)},       {"commit", std::move(commit)},
          {"time", std::move(time)},   {"branch", std::move(branch)},
          {"dirty", std::move(dirty)}, {"branches", std::move(branches)}};
}

Json gate_json(const SiteIndex& index, const SiteCell& cell) {
  if (!cell.gate) return {};
  const SiteVerdict& verdict = index.verdicts[cell.gate->verdict];
  const verdict::CellVerdict& said = verdict.gate.cells[cell.gate->cell];
  return {{"verdict", to_string(said.verdict)},
          {"reason", said.reason},
          {"time", std::round(verdict.stored->time)},
          {"commit", short_commit(verdict.stored->commit)},
          {"run", index.verdict_page[cell.gate->verdict]}};
}

}  // namespace

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
