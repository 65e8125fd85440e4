// Makes the pages of runs, the list of runs, the ages of baselines and the tally.
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/report/figures.hpp"
#include "gate/site/parts.hpp"

namespace weir::site {
namespace {

using verdict::Outcome;

// Returns the name of a cell's file; "" if it has none.
std::string cell_id(const SiteIndex& index, const std::string& project, const std::string& cell) {
  const std::size_t* at = look_up(index.cell_index_by_name, std::pair(project, cell));
  return at == nullptr ? "" : index.cells[*at].id;
}

Json changed_json(const std::vector<verdict::Changed>& changed) {
  const auto number = [](const std::optional<Rational>& value) {
    return value ? Json(value->str()) : Json();
  };
  return collect<Json>(changed, [&](const verdict::Changed& change) {
    return Json{change.name, number(change.baseline), number(change.current)};
  });
}

bool is_unremarkable(Outcome outcome) {
  return outcome == Outcome::pass || outcome == Outcome::info || outcome == Outcome::skipped;
}

// Returns the judgement of one metric as JSON. Absent values and numbers that are not finite become
// null.
Json judgement_json(const verdict::Judgement& judgement) {
  Json metric = site_metric_json(history::metric_of(judgement.metric));
  metric["label"] = unit::display_name(judgement.metric);
  return {{"metric", std::move(metric)},
          {"verdict", to_string(judgement.verdict)},
          {"baseline", optional_to_json(judgement.baseline)},
          {"current", optional_to_json(judgement.current)},
          {"baseline_text", optional_to_json(judgement.baseline_text)},
          {"current_text", optional_to_json(judgement.current_text)},
          {"change", optional_to_json(judgement.change)},
          {"low", optional_to_json(judgement.low)},
          {"high", optional_to_json(judgement.high)},
          {"reason", judgement.reason},
          {"changed", changed_json(judgement.changed)}};
}

// Lists the judgements of a cell that a reader should see, and counts the metrics that passed
// without a change ("fine").
Json cell_verdict_json(const SiteIndex& index, const std::string& project,
                       const verdict::CellVerdict& cell_verdict) {
  Json judgements = Json::array();
  std::int64_t passed_metrics = 0;
  for (const verdict::Judgement& judgement : cell_verdict.judgements) {
    if (!is_unremarkable(judgement.verdict) || !judgement.changed.empty()) {
      judgements.push_back(judgement_json(judgement));
    } else if (judgement.is_metric() && judgement.verdict == Outcome::pass) {
      ++passed_metrics;
    }
  }
  return {{"cell", cell_verdict.cell.str()},
          {"id", cell_id(index, project, cell_verdict.cell.str())},
          {"verdict", to_string(cell_verdict.verdict)},
          {"reason", cell_verdict.reason},
          {"judgements", std::move(judgements)},
          {"fine", passed_metrics},
          {"functions", changed_json(cell_verdict.functions)}};
}

// Returns a verdict with its cells. `verdict_index` is its place in the index.
Json verdict_json(const SiteIndex& index, std::size_t verdict_index) {
  const SiteVerdict& site_verdict = index.verdicts[verdict_index];
  const auto cell_json = [&](const verdict::CellVerdict& cell) {
    return cell_verdict_json(index, site_verdict.stored->project, cell);
  };
  std::vector<std::string> not_judged = site_verdict.gate.not_judged;
  if (site_verdict.gate.nothing_judged_reason)
    not_judged.insert(not_judged.begin(), *site_verdict.gate.nothing_judged_reason);
  return {{"verdict", to_string(site_verdict.gate.verdict)},
          {"base_commit", short_commit(site_verdict.gate.base_commit)},
          {"base", site_verdict.gate.base_origin},
          {"weir_version", site_verdict.gate.weir_version},
          {"not_judged", std::move(not_judged)},
          {"metrics_judged", site_verdict.gate.metrics_judged},
          {"totals", site_verdict.gate.totals},
          {"cells", collect<Json>(site_verdict.gate.cells, cell_json)}};
}

// Returns the newest verdict on a run; null without one.
Json run_outcome(const SiteIndex& index, std::size_t run) {
  const auto* verdicts = look_up(index.verdicts_by_run, run);
  if (verdicts == nullptr) return {};
  return to_string(index.verdicts[verdicts->front()].gate.verdict);  // newest first
}

// Returns the facts of a run: commit, branch, time, machine and outcome. `run` is its index in the
// history.
Json facts_json(const SiteIndex& index, std::size_t run) {
  const history::RunFacts& facts = index.model.history.runs[run];
  const auto* points = look_up(index.points_by_run, run);
  return {{"id", index.page_id_by_run.at(run)},
          {"project", facts.project},
          {"commit", facts.commit.value_or("")},
          {"branch", facts.branch.value_or("")},
          {"time", std::round(facts.time)},
          {"dirty", facts.dirty},
          {"machine", facts.machine},
          {"source", history::to_string(facts.source)},
          {"verdict", run_outcome(index, run)},
          {"points", points == nullptr ? 0 : points->size()}};
}

}  // namespace

Json site_runs_json(const SiteIndex& index) {
  const auto facts = [&](std::size_t run) { return facts_json(index, run); };
  return {{"format", 1},
          {"all", index.model.history.runs.size()},
          {"runs", collect<Json>(index.runs_with_pages, facts)}};
}

Json site_run_json(const SiteIndex& index, std::size_t run) {
  const history::History& history = index.model.history;
  Json verdicts = Json::array(), metrics = Json::array(), points = Json::array(),
       places = Json::array();
  for (const std::size_t verdict_index :
       look_up(index.verdicts_by_run, run, std::vector<std::size_t>())) {
    verdicts.push_back(verdict_json(index, verdict_index));
  }
  std::map<history::Metric, std::size_t> metric_at;
  std::vector<std::uint32_t> run_places;
  if (const auto* points_by_run = look_up(index.points_by_run, run)) {
    for (const auto& [s, p] : *points_by_run) {
      const history::Series& series = history.series[s];
      const history::SeriesPoint& point = series.points[p];
      const auto [at, is_new] = metric_at.try_emplace(series.metric, metrics.size());
      if (is_new) metrics.push_back(site_metric_json(series.metric));
      Json line{cell_id(index, series.project, series.cell), series.cell, at->second, point.value};
      if (point.exact && !point.exact->is_integer()) line.push_back(point.exact->str());
      points.push_back(std::move(line));
      if (!holds(run_places, point.place)) run_places.push_back(point.place);
    }
  }
  // Data for the figures of inference servers, from the newest verdict on the run.
  Json bases = Json::array(), served = Json::array();
  const auto* judged = look_up(index.verdicts_by_run, run);
  if (judged != nullptr) {
    for (const verdict::CellVerdict& cell : index.verdicts[judged->front()].gate.cells) {
      if (auto figures = report::served_figures(cell); !figures.empty()) {
        served.push_back({{"cell", cell.cell.str()}, {"figures", std::move(figures)}});
      }
      for (const verdict::Judgement& judgement : cell.metrics()) {
        const auto at = metric_at.find(history::metric_of(judgement.metric));
        if (!cell.cell.concurrency || !judgement.baseline || at == metric_at.end()) continue;
        bases.push_back({cell.cell.str(), at->second, *judgement.baseline});
      }
    }
  }
  for (const std::uint32_t at : run_places) {
    const history::Place& place = history.places[at];
    places.push_back(site_place_json(place));
    places.back()["build"] = place.engine_build;
  }
  const history::RunFacts& facts = history.runs[run];
  return {{"format", 1},
          {"run", facts_json(index, run)},
          {"name", facts.id},
          {"weir_version", facts.weir_version},
          {"places", std::move(places)},
          {"verdicts", std::move(verdicts)},
          {"metrics", std::move(metrics)},
          {"points", std::move(points)},
          {"bases", std::move(bases)},
          {"served", std::move(served)}};
}

// Returns the newest stored baseline of each cell, for each device class, machine class or machine
// ("on").
Json site_baselines_json(const SiteIndex& index) {
  struct Newest {
    double time = 0;
    std::size_t run = 0;
  };
  const history::History& history = index.model.history;
  Json lines = Json::array();
  for (const SiteCell& cell : index.cells) {
    std::map<std::string, Newest> newest_by_class;
    for (const std::size_t series_index : cell.series) {
      for (const history::SeriesPoint& point : history.series[series_index].points) {
        const history::RunFacts& run = history.run_of(point);
        if (run.source != history::Source::baseline) continue;
        const history::Place& place = history.place_of(point);
        std::string class_name = run.machine;
        if (!place.machine_class.empty()) class_name = place.machine_class;
        if (!place.device_class.empty()) class_name = place.device_class;
        Newest& newest = newest_by_class[class_name];
        const double time = run.commit_time.value_or(run.time);
        if (time >= newest.time) newest = {time, point.run};
      }
    }
    for (const auto& [class_name, newest] : newest_by_class) {
      const history::RunFacts& run = history.runs[newest.run];
      lines.push_back({{"id", cell.id},
                       {"project", cell.project},
                       {"cell", cell.name},
                       {"on", class_name},
                       {"time", std::round(newest.time)},
                       {"commit", short_commit(run.commit)}});
    }
  }
  return {{"format", 1}, {"baselines", std::move(lines)}};
}

// Returns how many verdicts were red, and each red metric with its fate: accepted, reverted,
// disputed or open.
Json site_tally_json(const SiteIndex& index) {
  const Tally tallied = tally(index.verdicts);
  std::map<std::string, std::int64_t> fates;
  for (const char* fate : {"accepted", "reverted", "disputed", "open"}) fates[fate] = 0;
  Json reds = Json::array();
  for (const Red& red : tallied.reds) {
    ++fates[std::string(to_string(red.fate))];
    const SiteVerdict& verdict = index.verdicts[red.verdict];
    const std::string cell = verdict.gate.cells[red.cell].cell.str();
    reds.push_back({{"cell", cell},
                    {"id", cell_id(index, verdict.stored->project, cell)},
                    {"metric", red.metric},
                    {"fate", to_string(red.fate)},
                    {"commit", short_commit(verdict.stored->commit)},
                    {"branch", verdict.stored->branch.value_or("")},
                    {"time", std::round(verdict.stored->time)},
                    {"run", index.page_id_by_verdict[red.verdict]}});
  }
  return {{"format", 1},
          {"verdicts", tallied.verdicts},
          {"red_gates", tallied.red_gates},
          {"errors", tallied.errors},
          {"judged", tallied.judged},
          {"undecided", tallied.undecided},
          {"fates", fates},
          {"reds", std::move(reds)}};
}

}  // namespace weir::site
