// A run's page, the list of runs, the ages of baselines and the tally.
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/report/figures.hpp"
#include "gate/site/parts.hpp"

namespace weir::site {
namespace {

using verdict::Outcome;

// What is not finite is written as null.
std::string cell_id(const SiteIndex& index, const std::string& project, const std::string& cell) {
  const std::size_t* at = look_up(index.cell_at, std::pair(project, cell));
  return at == nullptr ? "" : index.cells[*at].id;
}

Json changed_json(const std::vector<verdict::Changed>& changed) {
  const auto number = [](const std::optional<Rational>& one) {
    return one ? Json(one->str()) : Json();
  };
  return collect<Json>(changed, [&](const verdict::Changed& one) {
    return Json{one.name, number(one.baseline), number(one.current)};
  });
}

bool quiet(Outcome outcome) {
  return outcome == Outcome::pass || outcome == Outcome::info || outcome == Outcome::skipped;
}

Json judgement_json(const verdict::Judgement& said) {
  Json metric = site_metric_json(history::metric_of(said.metric));
  metric["label"] = unit::label(said.metric);
  return {{"metric", std::move(metric)},
          {"verdict", to_string(said.verdict)},
          {"baseline", optional_to_json(said.baseline)},
          {"current", optional_to_json(said.current)},
          {"baseline_text", optional_to_json(said.baseline_text)},
          {"current_text", optional_to_json(said.current_text)},
          {"change", optional_to_json(said.change)},
          {"low", optional_to_json(said.low)},
          {"high", optional_to_json(said.high)},
          {"reason", said.reason},
          {"changed", changed_json(said.changed)}};
}

// What is fine is counted, not listed.
Json cell_verdict_json(const SiteIndex& index, const std::string& project,
                       const verdict::CellVerdict& said) {
  Json judgements = Json::array();
  std::int64_t fine = 0;
  for (const verdict::Judgement& one : said.judgements) {
    if (!quiet(one.verdict) || !one.changed.empty()) {
      judgements.push_back(judgement_json(one));
    } else if (one.is_metric() && one.verdict == Outcome::pass) {
      ++fine;
    }
  }
  return {{"cell", said.cell.str()},
          {"id", cell_id(index, project, said.cell.str())},
          {"verdict", to_string(said.verdict)},
          {"reason", said.reason},
          {"judgements", std::move(judgements)},
          {"fine", fine},
          {"functions", changed_json(said.functions)}};
}

Json verdict_json(const SiteIndex& index, std::size_t at) {
  const SiteVerdict& one = index.verdicts[at];
  const auto cell_json = [&](const verdict::CellVerdict& cell) {
    return cell_verdict_json(index, one.stored->project, cell);
  };
  std::vector<std::string> not_judged = one.gate.not_judged;
  if (one.gate.unjudged) not_judged.insert(not_judged.begin(), *one.gate.unjudged);
  return {{"verdict", to_string(one.gate.verdict)},
          {"base_commit", short_commit(one.gate.base_commit)},
          {"base", one.gate.base_source},
          {"weir_version", one.gate.weir_version},
          {"not_judged", std::move(not_judged)},
          {"metrics_judged", one.gate.metrics_judged},
          {"totals", one.gate.totals},
          {"cells", collect<Json>(one.gate.cells, cell_json)}};
}

// The last word on a run.
Json outcome_of(const SiteIndex& index, std::size_t run) {
  const auto* verdicts = look_up(index.run_verdicts, run);
  if (verdicts == nullptr) return {};
  return to_string(index.verdicts[verdicts->front()].gate.verdict);  // newest first
}

Json facts_json(const SiteIndex& index, std::size_t run) {
  const history::RunFacts& facts = index.model.history.runs[run];
  const auto* points = look_up(index.run_points, run);
  return {{"id", index.run_id.at(run)},
          {"project", facts.project},
          {"commit", facts.commit.value_or("")},
          {"branch", facts.branch.value_or("")},
          {"time", std::round(facts.time)},
          {"dirty", facts.dirty},
          {"machine", facts.machine},
          {"source", history::to_string(facts.source)},
          {"verdict", outcome_of(index, run)},
          {"points", points == nullptr ? 0 : points->size()}};
}

}  // namespace

Json site_runs_json(const SiteIndex& index) {
  const auto facts = [&](std::size_t run) { return facts_json(index, run); };
  return {{"format", 1},
          {"all", index.model.history.runs.size()},
          {"runs", collect<Json>(index.run_pages, facts)}};
}

Json site_run_json(const SiteIndex& index, std::size_t run) {
  const history::History& history = index.model.history;
  Json verdicts = Json::array(), metrics = Json::array(), points = Json::array(),
       places = Json::array();
  for (const std::size_t at : look_up(index.run_verdicts, run, std::vector<std::size_t>())) {
    verdicts.push_back(verdict_json(index, at));
  }
  std::map<history::Metric, std::size_t> metric_at;
  std::vector<std::uint32_t> seen;
  if (const auto* found = look_up(index.run_points, run)) {
    for (const auto& [s, p] : *found) {
      const history::Series& series = history.series[s];
      const history::SeriesPoint& point = series.points[p];
      const auto [at, fresh] = metric_at.try_emplace(series.metric, metrics.size());
      if (fresh) metrics.push_back(site_metric_json(series.metric));
      Json line{cell_id(index, series.project, series.cell), series.cell, at->second, point.value};
      if (point.exact && !point.exact->whole()) line.push_back(point.exact->str());
      points.push_back(std::move(line));
      if (!holds(seen, point.place)) seen.push_back(point.place);
    }
  }
  // What pictures of servers are drawn with, from the last word on the run.
  Json bases = Json::array(), served = Json::array();
  const auto* judged = look_up(index.run_verdicts, run);
  if (judged != nullptr) {
    for (const verdict::CellVerdict& cell : index.verdicts[judged->front()].gate.cells) {
      if (auto figures = report::served_figures(cell); !figures.empty()) {
        served.push_back({{"cell", cell.cell.str()}, {"figures", std::move(figures)}});
      }
      for (const verdict::Judgement& one : cell.metrics()) {
        const auto at = metric_at.find(history::metric_of(one.metric));
        if (!cell.cell.concurrency || !one.baseline || at == metric_at.end()) continue;
        bases.push_back({cell.cell.str(), at->second, *one.baseline});
      }
    }
  }
  for (const std::uint32_t at : seen) {
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

Json site_baselines_json(const SiteIndex& index) {
  const history::History& history = index.model.history;
  Json lines = Json::array();
  for (const SiteCell& cell : index.cells) {
    // What was measured on, and when it was last put into the repository.
    std::map<std::string, std::pair<double, std::size_t>> newest;
    for (const std::size_t at : cell.series) {
      for (const history::SeriesPoint& point : history.series[at].points) {
        const history::RunFacts& run = history.run_of(point);
        if (run.source != history::Source::baseline) continue;
        const history::Place& place = history.place_of(point);
        const std::string& on = !place.device_class.empty()    ? place.device_class
                                : !place.machine_class.empty() ? place.machine_class
                                                               : run.machine;
        auto& known = newest[on];
        const double when = run.commit_time.value_or(run.time);
        if (when >= known.first) known = {when, point.run};
      }
    }
    for (const auto& [on, what] : newest) {
      const history::RunFacts& run = history.runs[what.second];
      lines.push_back({{"id", cell.id},
                       {"project", cell.project},
                       {"cell", cell.name},
                       {"on", on},
                       {"time", std::round(what.first)},
                       {"commit", short_commit(run.commit)}});
    }
  }
  return {{"format", 1}, {"baselines", std::move(lines)}};
}

Json site_tally_json(const SiteIndex& index) {
  const Tally made = tally(index.verdicts);
  std::map<std::string, std::int64_t> fates;
  for (const char* fate : {"accepted", "reverted", "disputed", "open"}) fates[fate] = 0;
  Json reds = Json::array();
  for (const Red& red : made.reds) {
    ++fates[std::string(to_string(red.fate))];
    const SiteVerdict& one = index.verdicts[red.verdict];
    const std::string cell = one.gate.cells[red.cell].cell.str();
    reds.push_back({{"cell", cell},
                    {"id", cell_id(index, one.stored->project, cell)},
                    {"metric", red.metric},
                    {"fate", to_string(red.fate)},
                    {"commit", short_commit(one.stored->commit)},
                    {"branch", one.stored->branch.value_or("")},
                    {"time", std::round(one.stored->time)},
                    {"run", index.verdict_page[red.verdict]}});
  }
  return {{"format", 1},           {"verdicts", made.verdicts}, {"red_gates", made.red_gates},
          {"errors", made.errors}, {"judged", made.judged},     {"undecided", made.undecided},
          {"fates", fates},        {"reds", std::move(reds)}};
}

}  // namespace weir::site
