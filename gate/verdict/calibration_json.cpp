// weir.calibration/1, and weir.calibrated_cell/1 as it is stored.
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "gate/profile/metric_json.hpp"
#include "gate/verdict/calibration.hpp"

namespace weir::verdict {
namespace {

using profile::number_to_json;
using stats::Decision;

constexpr std::array<std::pair<Decision, std::string_view>, 4> k_decisions{
    {{Decision::undecided, "inconclusive"},
     {Decision::pass, "pass"},
     {Decision::fail, "fail"},
     {Decision::unlike, "unlike"}}};

// What JSON can not hold is null.
Json finite(double value) { return std::isfinite(value) ? number_to_json(value) : Json(); }

Json needed_to_json(const PairsNeeded& needed) {
  return {{"mean", needed.mean}, {"p95", needed.p95}, {"decided", needed.decided}};
}

PairsNeeded needed_from_json(JsonReader& read, const char* key) {
  JsonReader inner(read.object(key), key);
  PairsNeeded needed{inner.number("mean"), inner.number("p95"), inner.number("decided")};
  if (auto problem = inner.problem()) read.complain(problem->message);
  if (needed.mean < 0 || needed.p95 < 0) read.complain("pairs can not be fewer than none");
  return needed;
}

Json lie_to_json(const std::optional<RunsLie>& runs) {
  if (!runs) return {};
  return {{"fast", finite(runs->fast)},
          {"median", finite(runs->median)},
          {"mean", finite(runs->mean)},
          {"slow", finite(runs->slow)}};
}

Json calibrated_to_json(const CalibratedMetric& metric) {
  std::string_view decision;
  for (const auto& [one, name] : k_decisions) {
    if (one == metric.decision) decision = name;
  }
  return {{"metric", profile::metric_to_json(metric.metric)},
          {"limit", metric.limit},
          {"amount", metric.amount},
          {"tolerate", metric.tolerated},
          {"noise", finite(metric.noise)},
          {"base_runs", lie_to_json(metric.base)},
          {"candidate_runs", lie_to_json(metric.candidate)},
          {"verdict", decision},
          {"decided_after", metric.decided_after},
          {"log_evidence",
           {{"slower", finite(metric.log_slower)},
            {"beyond", finite(metric.log_beyond)},
            {"within", finite(metric.log_within)}}}};
}

// What a later gate asks of a stored one: which metrics, limits and how loud.
Result<CalibratedMetric> calibrated_from_json(const Json& json) {
  JsonReader read(json, "metrics");
  CalibratedMetric metric;
  const auto known = read.has("metric") ? profile::metric_from_json(json["metric"]) : std::nullopt;
  if (!known) return fail(Code::data, "metrics: \"metric\" should be a metric");
  metric.metric = *known;
  metric.limit = read.string("limit");
  metric.amount = read.string("amount");
  metric.tolerated = read.string("tolerate");
  metric.noise = read.optional_number("noise").value_or(std::numeric_limits<double>::infinity());
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  return metric;
}

Json seconds_to_json(const GateSeconds& seconds) {
  return {{"mean", seconds.mean}, {"p95", seconds.p95}};
}

}  // namespace

Json to_json(const CalibratedCell& cell) {
  Json json = {{"schema", "weir.calibrated_cell/1"},
               {"cell", cell.cell.str()},
               {"fingerprint", cell.fingerprint},
               {"machine_class", cell.machine_class},
               {"machine_name", cell.machine_name},
               {"date", cell.date},
               {"pairs", cell.pairs}};
  if (cell.error) {
    json["error"] = *cell.error;
    return json;
  }
  json["pair_seconds"] = cell.pair_seconds;
  json["pairs_needed"] = {{"unchanged", needed_to_json(cell.unchanged)},
                          {"at_limit", needed_to_json(cell.at_limit)}};
  json["most_pairs"] = cell.most_pairs;
  json["holds"] = cell.holds;
  json["metrics"] = Json::array();
  for (const CalibratedMetric& metric : cell.metrics) {
    json["metrics"].push_back(calibrated_to_json(metric));
  }
  return json;
}

Json to_json(const Calibration& calibration) {
  Json cells = Json::array();
  for (const CalibratedCell& cell : calibration.cells) cells.push_back(to_json(cell));
  Json json = {{"schema", "weir.calibration/1"},
               {"weir", calibration.weir_version},
               {"date", calibration.date},
               {"config", calibration.config},
               {"base", calibration.base},
               {"two_builds", calibration.two_builds},
               {"budget_seconds", calibration.budget_seconds},
               {"false_alarm", calibration.false_alarm},
               {"timed_metrics", calibration.timed_metrics},
               {"cells", cells},
               {"replays", calibration.replays},
               {"failed", calibration.failed},
               {"failed_at_most", calibration.failed_at_most},
               {"seconds_needed",
                {{"unchanged", seconds_to_json(calibration.unchanged)},
                 {"at_limit", seconds_to_json(calibration.at_limit)}}},
               {"holds", calibration.holds},
               {"answer", calibration.answer},
               {"notes", calibration.notes}};
  if (calibration.two_builds) json["seen_failed"] = calibration.seen_failed;
  return json;
}

Result<CalibratedCell> calibrated_cell_from_json(const Json& json) {
  JsonReader read(json, "calibration");
  if (read.string("schema") != "weir.calibrated_cell/1") {
    return fail(Code::data, "calibration: \"schema\" should be \"weir.calibrated_cell/1\"");
  }
  CalibratedCell cell;
  WEIR_TRY(cell.cell, profile::CellKey::parse(read.string("cell")));
  cell.fingerprint = read.string("fingerprint");
  cell.machine_class = read.string("machine_class");
  cell.machine_name = read.string("machine_name");
  cell.date = read.string("date");
  cell.pairs = read.integer("pairs");
  cell.error = read.optional_string("error");
  if (!cell.error) {
    cell.pair_seconds = read.number("pair_seconds");
    if (cell.pair_seconds < 0) read.complain("\"pair_seconds\" can not be negative");
    JsonReader needed(read.object("pairs_needed"), "pairs_needed");
    cell.unchanged = needed_from_json(needed, "unchanged");
    cell.at_limit = needed_from_json(needed, "at_limit");
    if (auto problem = needed.problem()) read.complain(problem->message);
    cell.holds = read.boolean("holds");
    for (const Json& metric : read.array("metrics")) {
      WEIR_TRY(CalibratedMetric one, calibrated_from_json(metric));
      cell.metrics.push_back(std::move(one));
    }
  }
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  return cell;
}

}  // namespace weir::verdict
