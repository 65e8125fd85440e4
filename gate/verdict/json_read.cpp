// weir.verdict/1 -> GateVerdict: for reports made later from a finished gate.
#include <array>
#include <limits>

#include "gate/base/text.hpp"
#include "gate/profile/metric_json.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::verdict {
namespace {

Outcome outcome_of(JsonReader& read, const char* key) {
  const auto outcome = parse_outcome(read.string(key));
  if (!outcome) read.complain(fmt::format("\"{}\" should be a verdict", key));
  return outcome.value_or(Outcome::info);
}

// A plain number, or "5 %" as amounts are written.
std::optional<Amount> amount_of(JsonReader& read, const Json& json, const char* key) {
  if (!read.has(key)) return std::nullopt;
  const Json& value = json[key];
  if (value.is_number()) return Amount{value.get<double>(), false};
  if (value.is_string()) {
    const std::string& written = value.get_ref<const std::string&>();
    const std::size_t sign = written.find(" %");
    if (const auto number = text::to_double(written.substr(0, sign));
        number && sign != std::string::npos) {
      return Amount{*number / 100, true};
    }
  }
  read.complain(fmt::format("\"{}\" should be an amount", key));
  return std::nullopt;
}

std::optional<MaxChange> read_change(JsonReader& read, const char* key) {
  if (!read.has(key)) return std::nullopt;
  JsonReader change(read.object(key), fmt::format("limit {}", key));
  MaxChange made;
  made.amount = {change.number("value"), change.boolean("relative")};
  made.tolerate = {change.number("tolerate"), change.boolean("tolerate_relative")};
  if (auto problem = change.problem()) read.complain(problem->message);
  return made;
}

Result<Limit> limit_of(const Json& json) {
  Limit limit;
  JsonReader read(json, "limit");
  limit.exact = read.optional_boolean("exact").value_or(false);
  limit.repeats_within = read.optional_number("repeats_within");
  limit.max_drop = read_change(read, "max_drop");
  limit.max_increase = read_change(read, "max_increase");
  limit.max_decrease = read_change(read, "max_decrease");
  limit.max = amount_of(read, json, "max");
  limit.min = amount_of(read, json, "min");
  limit.reason = read.optional_string("reason");
  const std::string mode = read.optional_string("mode").value_or("gate");
  bool known = false;
  for (const Mode one : {Mode::gate, Mode::report, Mode::off}) {
    if (mode == to_string(one)) {
      limit.mode = one;
      known = true;
    }
  }
  if (!known) read.complain("has a mode that is not known");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return limit;
}

// Numbers that are not finite were written as null: those runs did not end.
std::optional<RunsLie> runs_of(JsonReader& read, const char* key) {
  if (!read.has(key)) return std::nullopt;
  JsonReader runs(read.object(key), key);
  const auto number = [&](const char* name) {
    return runs.optional_number(name).value_or(std::numeric_limits<double>::infinity());
  };
  return RunsLie{number("fast"), number("median"), number("mean"), number("slow")};
}

Result<MetricVerdict> metric_of(const Json& json) {
  MetricVerdict made;
  JsonReader read(json, "metrics");
  const std::string name = read.string("metric");
  if (const auto known = unit::find_metric(name)) {
    made.metric = *known;
  } else {
    const auto declared = profile::metric_from_json({{"name", name},
                                                     {"kind", read.string("kind")},
                                                     {"unit", read.string("unit")},
                                                     {"better", read.string("better")}});
    if (!declared) read.complain("holds a metric that says too little of itself");
    made.metric = declared.value_or(unit::Metric{});
  }
  const auto nature = profile::parse_nature(read.string("nature"));
  if (!nature) read.complain("holds one whose nature is not known");
  made.nature = nature.value_or(profile::Nature::sampled);
  made.source = read.optional_string("source").value_or("");
  made.verdict = outcome_of(read, "verdict");
  made.baseline = read.optional_number("baseline");
  made.current = read.optional_number("current");
  made.baseline_text = read.optional_string("baseline_text");
  made.current_text = read.optional_string("current_text");
  made.change = read.optional_number("change");
  made.low = read.optional_number("low");
  made.high = read.optional_number("high");
  made.samples = read.optional_integer("samples");
  made.baseline_sessions = read.optional_integer("baseline_sessions");
  made.pairs = read.optional_integer("pairs");
  made.more_pairs = read.optional_integer("more_pairs");
  made.more_seconds = read.optional_number("more_seconds");
  if (read.has("ratios")) {
    for (const Json& ratio : read.array("ratios")) {
      made.ratios.push_back(ratio.is_number() ? std::optional(ratio.get<double>()) : std::nullopt);
    }
  }
  made.baseline_runs = runs_of(read, "baseline_runs");
  made.current_runs = runs_of(read, "current_runs");
  made.spread_ratio = read.optional_number("spread_ratio");
  if (read.has("limit")) {
    WEIR_TRY(made.limit, limit_of(read.object("limit")));
  }
  made.reason = read.optional_string("reason").value_or("");
  made.warnings = read.strings("warnings");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return made;
}

std::vector<Changed> changed_of(JsonReader& read, const char* key) {
  std::vector<Changed> list;
  for (const Json& item : read.array(key)) {
    JsonReader one(item, read.path());
    Changed changed{one.string("name"), {}, {}};
    if (one.has("baseline")) changed.baseline = profile::rational_from_json(item["baseline"]);
    if (one.has("current")) changed.current = profile::rational_from_json(item["current"]);
    if (auto problem = one.problem()) read.complain(problem->message);
    list.push_back(std::move(changed));
  }
  return list;
}

std::vector<TwinDiffers> differs_of(JsonReader& read, const char* key) {
  std::vector<TwinDiffers> list;
  for (const Json& item : read.array(key)) {
    JsonReader one(item, read.path());
    TwinDiffers differs{one.string("name"), {}, {}};
    if (one.has("twin")) differs.twin = profile::rational_from_json(item["twin"]);
    if (one.has("real")) differs.real = profile::rational_from_json(item["real"]);
    if (auto problem = one.problem()) read.complain(problem->message);
    list.push_back(std::move(differs));
  }
  return list;
}

Result<TwinCheck> twin_check_of(const Json& json) {
  TwinCheck check;
  JsonReader read(json, "twin_check");
  check.twin = read.string("twin");
  check.device = read.string("device");
  WEIR_TRY(check.against, profile::CellKey::parse(read.string("against")));
  check.about = read.strings("about");
  check.compared = read.integer("compared");
  check.kernels_compared = read.boolean("kernels_compared");
  check.differences = differs_of(read, "differences");
  check.kernels = differs_of(read, "kernels");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return check;
}

Result<CellVerdict> cell_of(const Json& json) {
  CellVerdict cell;
  JsonReader read(json, "cells");
  WEIR_TRY(cell.cell, profile::CellKey::parse(read.string("cell")));
  cell.device = read.optional_string("device").value_or("");
  cell.verdict = outcome_of(read, "verdict");
  cell.reason = read.optional_string("reason").value_or("");
  cell.device_class = read.optional_string("device_class").value_or("");
  cell.device_name = read.optional_string("device_name").value_or("");
  cell.machine_class = read.optional_string("machine_class").value_or("");
  cell.machine_name = read.optional_string("machine_name").value_or("");
  cell.base = read.optional_string("base");
  for (const Json& item : read.array("metrics")) {
    WEIR_TRY(auto metric, metric_of(item));
    cell.metrics.push_back(std::move(metric));
  }
  JsonReader kernels(read.object("kernels"), "kernels");
  cell.kernels_verdict = outcome_of(kernels, "verdict");
  cell.kernels_reason = kernels.optional_string("reason").value_or("");
  cell.kernels = changed_of(kernels, "changed");
  JsonReader placement(read.object("placement"), "placement");
  cell.placement_verdict = outcome_of(placement, "verdict");
  cell.placement_reason = placement.optional_string("reason").value_or("");
  cell.ops = changed_of(placement, "ops");
  cell.stderr_tail = read.optional_string("stderr_tail").value_or("");
  cell.warnings = read.strings("warnings");
  cell.notes = read.strings("notes");
  if (read.has("twin_check")) {
    WEIR_TRY(cell.twin_check, twin_check_of(read.object("twin_check")));
  }
  if (read.has("findings")) {
    for (const Json& item : read.array("findings")) {
      WEIR_TRY(Finding finding, finding_from_json(item));
      cell.findings.push_back(std::move(finding));
    }
  }
  if (read.has("server_metrics")) {
    WEIR_TRY(cell.server, profile::server_figures_from_json(read.array("server_metrics")));
  }
  if (read.has("functions")) cell.functions = changed_of(read, "functions");
  cell.instructions_skipped = read.optional_string("instructions_skipped");
  cell.counts_skipped = read.optional_string("counts_skipped");
  cell.profiling_cost = read.optional_number("profiling_cost");
  for (JsonReader* part : {&read, &kernels, &placement}) {
    if (auto problem = part->problem()) {
      return tl::unexpected(with_context(cell.cell.str(), std::move(*problem)));
    }
  }
  return cell;
}

}  // namespace

Result<GateVerdict> verdict_from_json(const Json& json) {
  GateVerdict gate;
  JsonReader read(json, "verdict");
  if (const std::string schema = read.string("schema"); schema != "weir.verdict/1") {
    return fail(Code::data, "not a verdict: schema is \"{}\", should be \"weir.verdict/1\"",
                text::printable(schema.substr(0, 60)));
  }
  gate.verdict = outcome_of(read, "verdict");
  const std::int64_t code = read.integer("exit_code");
  bool known = false;
  for (const ExitCode one : {ExitCode::pass, ExitCode::fail, ExitCode::usage, ExitCode::unmeasured,
                             ExitCode::inconclusive, ExitCode::interrupted}) {
    if (code == static_cast<std::int64_t>(one)) {
      gate.exit_code = one;
      known = true;
    }
  }
  if (!known) read.complain("has an exit code that weir does not use");
  gate.weir_version = read.optional_string("weir_version").value_or("");
  gate.config = read.optional_string("config").value_or("");
  gate.some_cells = read.optional_boolean("some_cells").value_or(false);
  gate.commit = read.optional_string("commit");
  gate.base_commit = read.optional_string("base_commit");
  gate.base_source = read.optional_string("base_source").value_or("");
  if (read.has("against")) {
    JsonReader against(read.object("against"), "against");
    gate.against = Against{against.optional_string("spec").value_or(""), {}};
    if (against.has("command")) gate.against->command = against.strings("command");
    if (auto problem = against.problem()) return tl::unexpected(*problem);
  }
  if (read.has("rules")) {
    JsonReader rules(read.object("rules"), "rules");
    gate.rules = RulesFrom{rules.string("ref"), rules.string("commit")};
    if (auto problem = rules.problem()) return tl::unexpected(*problem);
  }
  if (read.has("proposals")) {
    for (const Json& item : read.array("proposals")) {
      WEIR_TRY(Proposal proposal, proposal_from_json(item));
      if (gate.proposals.size() < k_most_proposals) gate.proposals.push_back(std::move(proposal));
    }
  }
  for (const Json& item : read.array("cells")) {
    WEIR_TRY(auto cell, cell_of(item));
    gate.cells.push_back(std::move(cell));
  }
  gate.totals = profile::counts_from_json(read, "totals");
  gate.metrics_judged = read.optional_integer("metrics_judged").value_or(0);
  gate.fail_on_inconclusive = read.optional_boolean("fail_on_inconclusive").value_or(false);
  gate.not_judged = read.strings("not_judged");
  gate.notes = read.strings("notes");
  gate.decision_rule = read.optional_string("decision_rule").value_or("");
  gate.seconds = read.optional_number("seconds");
  gate.budget_seconds = read.optional_number("budget_seconds");
  gate.profiling_cost = read.optional_number("profiling_cost");
  gate.run = read.optional_string("run");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return gate;
}

}  // namespace weir::verdict
