// GateVerdict -> weir.verdict/1. Every key is always there; what is absent is null.
#include "gate/profile/metric_json.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::verdict {
namespace {

using profile::number_to_json;
using profile::optional_to_json;

Json amount_to_json(const Amount& amount) {
  return amount.relative ? Json(show(amount)) : number_to_json(amount.value);
}

Json change_to_json(const MaxChange& change) {
  return {{"amount", amount_to_json(change.amount)},
          {"value", change.amount.value},
          {"relative", change.amount.relative},
          {"tolerate", change.tolerate.value},
          {"tolerate_relative", change.tolerate.relative}};
}

// Only the kinds that are set: {"exact": true}. null where nothing holds.
Json limit_to_json(const Limit& limit) {
  if (!limit.any() && limit.mode == Mode::gate) return {};
  Json json = Json::object();
  if (limit.exact) json["exact"] = true;
  if (limit.repeats_within) json["repeats_within"] = *limit.repeats_within;
  if (limit.max_drop) json["max_drop"] = change_to_json(*limit.max_drop);
  if (limit.max_increase) json["max_increase"] = change_to_json(*limit.max_increase);
  if (limit.max_decrease) json["max_decrease"] = change_to_json(*limit.max_decrease);
  if (limit.max) json["max"] = amount_to_json(*limit.max);
  if (limit.min) json["min"] = amount_to_json(*limit.min);
  if (limit.mode != Mode::gate) json["mode"] = to_string(limit.mode);
  if (limit.reason) json["reason"] = *limit.reason;
  return json;
}

Json ratios_to_json(const std::vector<std::optional<double>>& ratios) {
  Json list = Json::array();
  for (const auto& ratio : ratios) list.push_back(optional_to_json(ratio));
  return list;
}

Json runs_to_json(const std::optional<RunsLie>& runs) {
  if (!runs) return {};
  return {{"fast", number_to_json(runs->fast)},
          {"median", number_to_json(runs->median)},
          {"mean", number_to_json(runs->mean)},
          {"slow", number_to_json(runs->slow)}};
}

Json metric_to_json(const MetricVerdict& verdict) {
  return {{"metric", verdict.metric.name},
          {"label", unit::label(verdict.metric)},
          {"kind", unit::to_string(verdict.metric.kind)},
          {"unit", unit::to_string(verdict.metric.unit)},
          {"better", unit::to_string(verdict.metric.better)},
          {"nature", profile::to_string(verdict.nature)},
          {"source", verdict.source},
          {"verdict", to_string(verdict.verdict)},
          {"baseline", optional_to_json(verdict.baseline)},
          {"current", optional_to_json(verdict.current)},
          {"baseline_text", optional_to_json(verdict.baseline_text)},
          {"current_text", optional_to_json(verdict.current_text)},
          {"change", optional_to_json(verdict.change)},
          {"low", optional_to_json(verdict.low)},
          {"high", optional_to_json(verdict.high)},
          {"samples", optional_to_json(verdict.samples)},
          {"baseline_sessions", optional_to_json(verdict.baseline_sessions)},
          {"pairs", optional_to_json(verdict.pairs)},
          {"more_pairs", optional_to_json(verdict.more_pairs)},
          {"more_seconds", optional_to_json(verdict.more_seconds)},
          {"ratios", ratios_to_json(verdict.ratios)},
          {"baseline_runs", runs_to_json(verdict.baseline_runs)},
          {"current_runs", runs_to_json(verdict.current_runs)},
          {"spread_ratio", optional_to_json(verdict.spread_ratio)},
          {"limit", limit_to_json(verdict.limit)},
          {"limit_words", verdict.limit.words()},
          {"reason", verdict.reason},
          {"warnings", verdict.warnings}};
}

Json against_to_json(const std::optional<Against>& against) {
  if (!against) return {};
  if (!against->command.empty()) return {{"command", against->command}};
  return {{"spec", against->spec.empty() ? Json() : Json(against->spec)}};
}

Json changed_to_json(const std::vector<Changed>& changed) {
  Json list = Json::array();
  for (const Changed& one : changed) {
    list.push_back({{"name", one.name},
                    {"baseline", one.baseline ? profile::rational_to_json(*one.baseline) : Json()},
                    {"current", one.current ? profile::rational_to_json(*one.current) : Json()}});
  }
  return list;
}

Json differs_to_json(const std::vector<TwinDiffers>& differences) {
  const auto number = [](const std::optional<Rational>& one) {
    return one ? profile::rational_to_json(*one) : Json();
  };
  Json list = Json::array();
  for (const TwinDiffers& one : differences) {
    list.push_back({{"name", one.name}, {"twin", number(one.twin)}, {"real", number(one.real)}});
  }
  return list;
}

Json twin_check_to_json(const TwinCheck& check) {
  return {{"twin", check.twin},
          {"device", check.device},
          {"against", check.against.str()},
          {"about", check.about},
          {"equal", check.equal()},
          {"compared", check.compared},
          {"kernels_compared", check.kernels_compared},
          {"differences", differs_to_json(check.differences)},
          {"kernels", differs_to_json(check.kernels)}};
}

Json findings_to_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) list.push_back(to_json(finding));
  return list;
}

Json cell_to_json(const CellVerdict& cell) {
  Json metrics = Json::array();
  for (const MetricVerdict& metric : cell.metrics) metrics.push_back(metric_to_json(metric));
  return {{"cell", cell.cell.str()},
          {"engine", cell.cell.engine},
          {"variant", cell.cell.variant},
          {"model", cell.cell.model},
          {"backend", cell.cell.backend},
          {"prompt", cell.cell.prompt},
          {"depth", optional_to_json(cell.cell.depth)},
          {"concurrency", optional_to_json(cell.cell.concurrency)},
          {"device", cell.device},
          {"verdict", to_string(cell.verdict)},
          {"reason", cell.reason},
          {"device_class", cell.device_class},
          {"device_name", cell.device_name},
          {"machine_class", cell.machine_class},
          {"machine_name", cell.machine_name},
          {"base", optional_to_json(cell.base)},
          {"metrics", std::move(metrics)},
          {"kernels",
           {{"verdict", to_string(cell.kernels_verdict)},
            {"reason", cell.kernels_reason},
            {"changed", changed_to_json(cell.kernels)}}},
          {"placement",
           {{"verdict", to_string(cell.placement_verdict)},
            {"reason", cell.placement_reason},
            {"ops", changed_to_json(cell.ops)}}},
          {"functions", changed_to_json(cell.functions)},
          {"server_metrics", profile::to_json(cell.server)},
          {"stderr_tail", cell.stderr_tail},
          {"warnings", cell.warnings},
          {"notes", cell.notes},
          {"findings", findings_to_json(cell.findings)},
          {"twin_check", cell.twin_check ? twin_check_to_json(*cell.twin_check) : Json()},
          {"counts_skipped", optional_to_json(cell.counts_skipped)},
          {"instructions_skipped", optional_to_json(cell.instructions_skipped)},
          {"profiling_cost", optional_to_json(cell.profiling_cost)}};
}

}  // namespace

Json to_json(const GateVerdict& gate) {
  Json cells = Json::array(), proposals = Json::array();
  for (const Proposal& proposal : gate.proposals) proposals.push_back(to_json(proposal));
  for (const CellVerdict& cell : gate.cells) cells.push_back(cell_to_json(cell));
  return {{"schema", "weir.verdict/1"},
          {"verdict", to_string(gate.verdict)},
          {"exit_code", static_cast<int>(gate.exit_code)},
          {"weir_version", gate.weir_version},
          {"config", gate.config},
          {"some_cells", gate.some_cells},
          {"commit", optional_to_json(gate.commit)},
          {"base_commit", optional_to_json(gate.base_commit)},
          {"base_source", gate.base_source},
          {"against", against_to_json(gate.against)},
          {"rules",
           gate.rules ? Json{{"ref", gate.rules->ref}, {"commit", gate.rules->commit}} : Json()},
          {"proposals", std::move(proposals)},
          {"cells", std::move(cells)},
          {"totals", gate.totals},
          {"metrics_judged", gate.metrics_judged},
          {"fail_on_inconclusive", gate.fail_on_inconclusive},
          {"not_judged", gate.not_judged},
          {"notes", gate.notes},
          {"decision_rule", gate.decision_rule},
          {"seconds", optional_to_json(gate.seconds)},
          {"budget_seconds", optional_to_json(gate.budget_seconds)},
          {"profiling_cost", optional_to_json(gate.profiling_cost)},
          {"run", optional_to_json(gate.run)}};
}

}  // namespace weir::verdict
