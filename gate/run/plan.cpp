// Makes the plan of a run: which steps, in which order.
#include "gate/run/plan.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

namespace weir::run {
namespace {

constexpr std::int64_t k_other_fill = 0xa5;  // not zero, not small, and no sign

// Returns a limit as JSON, for the hash by which a resumed run recognises its plan. An absent value
// is null.
Json limit_json(const verdict::LimitEntry& entry) {
  const auto amount = [](const std::optional<verdict::Amount>& value) {
    return value ? Json{value->value, value->relative} : Json();
  };
  const verdict::Match& match = entry.match;
  return {{"match", {match.engine, match.model, match.backend, match.prompt, match.variant}},
          {"metrics", entry.metrics},
          {"exact", entry.exact ? Json(*entry.exact) : Json()},
          {"max_drop", amount(entry.max_drop)},
          {"max_increase", amount(entry.max_increase)},
          {"max_decrease", amount(entry.max_decrease)},
          {"tolerate", amount(entry.tolerate)},
          {"max", amount(entry.max)},
          {"min", amount(entry.min)},
          {"mode", entry.mode ? Json(verdict::to_string(*entry.mode)) : Json()}};
}

// Returns as JSON what an engine's output is read for: format, probes, rules, objectives. It
// decides which metrics the engine has.
Json engine_outputs_json(const config::EngineSettings& engine) {
  Json json = {{"output", engine.output}, {"probes", engine.probes}};
  for (const auto* rules : {&engine.generic.values, &engine.generic.facts}) {
    for (const config::ValueRule& rule : *rules) {
      json["rules"].push_back({rule.metric, rule.regex, rule.pointer, static_cast<int>(rule.stream),
                               rule.pick ? static_cast<int>(*rule.pick) : -1});
    }
  }
  if (engine.server) {
    const profile::ServedObjectives& slo = engine.server->objectives;
    json["slo"] = {optional_to_json(slo.first_token_seconds),
                   optional_to_json(slo.per_token_seconds),
                   optional_to_json(slo.end_to_end_seconds)};
  }
  return json;
}

std::string digest(const Json& json) { return short_hash(dump_json(json)); }

// Returns a hash of each part of the plan that must not change when a run is resumed, by the part's
// name as people read it: the message that refuses to resume names the parts that changed.
std::map<std::string, std::string> plan_identity(const Plan& plan, const config::Settings& settings,
                                                 const PlanOptions& options) {
  Json cells = Json::array(), programs = Json::array(), models = Json::array(),
       metrics = Json::array(), limits = Json::array();
  for (const PreparedCell& cell : plan.cells) {
    Json cell_identity(cell.cell.identity);
    cell_identity["cell"] = cell.cell.key.str();
    cell_identity["device"] = cell.cell.device;
    cell_identity["fingerprint"] = cell.facts.provenance.fingerprint;
    cells.push_back(std::move(cell_identity));
    programs.push_back({cell.program, cell.program_stamp});
    models.push_back({cell.model, cell.model_bytes});
    metrics.push_back(
        {cell.probes, cell.instructions ? Json(static_cast<int>(*cell.instructions)) : Json(),
         cell.cell.engine == nullptr ? Json() : engine_outputs_json(*cell.cell.engine)});
  }
  for (const PreparedCell& cell : plan.base_cells) {
    programs.push_back({"base", cell.program, cell.program_stamp});
  }
  for (const verdict::LimitEntry& entry : settings.limits) limits.push_back(limit_json(entry));
  const config::GateSettings& gate = settings.gate;
  // The budget is left out: a resumed run may be given more time.
  limits.push_back(
      {gate.false_alarm, gate.missed, gate.strict, gate.stored_level, gate.fail_on_inconclusive});
  Json steps = Json::array();
  for (const Step& step : plan.steps) {
    steps.push_back({step.cell, static_cast<int>(step.pass), step.parameters.prompt_tokens,
                     step.parameters.tokens, step.parameters.repeats, step.parameters.depth,
                     static_cast<int>(step.counts), step.twin_fill});
    if (step.with_probes) steps.back().push_back(*step.with_probes);
  }
  return {{"cells", digest(cells)},
          {"programs", digest(programs)},
          {"models", digest(models)},
          {"metrics", digest(metrics)},
          {"limits", digest(limits)},
          {"number and order of runs", digest({steps, options.counts, options.times, options.pairs,
                                               options.pairs ? gate.repeats : 0})}};
}

// Returns true if the engine reports its backend. Even without counts, that can show that the work
// ran on another device.
bool reports_placement(const PreparedCell& cell) {
  const config::EngineSettings* engine = cell.cell.engine;
  return cell.cell.device != "cpu" && !cell.cell.twin && engine != nullptr && !engine->server &&
         engine->output != "generic";
}

}  // namespace

std::string Plan::id() const { return combine_fingerprint(identity); }

// Lists the steps: counted ones cell by cell, then timed ones in rounds over the cells, then pairs
// that measure the cost of probes.
Plan make_plan(std::vector<PreparedCell> cells, const config::Settings& settings,
               const PlanOptions& options, std::vector<PreparedCell> base_cells) {
  Plan plan;
  plan.cells = std::move(cells);
  plan.base_cells = std::move(base_cells);
  plan.overlapping_processes = options.overlapping_processes;
  const auto add = [&](std::size_t cell, profile::Pass pass,
                       const profile::RunParameters& parameters) -> Step& {
    const auto order = static_cast<std::int64_t>(plan.steps.size());
    return plan.steps.emplace_back(
        Step{.cell = cell, .pass = pass, .parameters = parameters, .order = order});
  };
  for (std::size_t i = 0; options.counts && i < plan.cells.size(); ++i) {
    PreparedCell& cell = plan.cells[i];
    if (cell.unavailable) continue;
    if (cell.facts.counts_skip_reason) {
      if (!options.times && reports_placement(cell)) {
        add(i, profile::Pass::counted, config::counted_requests(cell.cell, {}).front());
      }
      continue;
    }
    const std::int64_t rounds = cell.instructions ? options.instruction_processes : 0;
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (const profile::RunParameters& parameters : config::instruction_requests(cell.cell)) {
        add(i, profile::Pass::counted, parameters).counts = profile::Counts::instructions;
      }
    }
    if (!cell.counts_work && !cell.host && !cell.python) continue;
    const auto* stored_lengths = look_up(options.lengths, cell.cell.key.str());
    const auto points = config::counted_requests(
        cell.cell, stored_lengths == nullptr ? std::span<const std::int64_t>() : *stored_lengths);
    auto& lengths = cell.facts.provenance.lengths;
    lengths.clear();
    for (const profile::RunParameters& parameters : points) {
      lengths.push_back(cell.facts.sweep == profile::Sweep::repeats ? parameters.repeats
                                                                    : parameters.tokens);
    }
    const bool is_overlapping = cell.facts.sweep == profile::Sweep::overlapping;
    const std::int64_t* varying = look_up(options.varying_cells, cell.cell.key.str());
    const std::int64_t counted_processes =
        options.counted_processes.value_or(varying == nullptr ? 1 : *varying);
    const auto processes = std::max<std::int64_t>(
        1, is_overlapping ? options.overlapping_processes : counted_processes);
    for (std::int64_t process = 0; process < processes; ++process) {
      for (const profile::RunParameters& parameters : points) {
        if (cell.counts_work) add(i, profile::Pass::counted, parameters);
        if (cell.host) {
          add(i, profile::Pass::counted, parameters).counts = profile::Counts::system_calls;
        }
        if (cell.python) {
          add(i, profile::Pass::counted, parameters).counts = profile::Counts::python;
        }
      }
    }
    // Run once with other memory contents: if counts change, a twin cannot replace the device.
    if (cell.cell.twin && cell.counts_work) {
      Step& step = add(i, profile::Pass::counted, points.front());
      step.twin_fill = k_other_fill;
    }
  }
  const std::int64_t rounds =
      options.times && !options.pairs ? options.runs.value_or(settings.gate.runs) : 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < plan.cells.size(); ++i) {
      // Times on a device twin mean nothing: only its counts do.
      if (plan.cells[i].unavailable || plan.cells[i].cell.twin) continue;
      if (round > 0 && plan.cells[i].cell.runs_long()) continue;  // a soak runs once
      const auto result = static_cast<std::size_t>(round);
      const std::size_t results = plan.cells[i].cell.results.size();
      if (results > 0 && result >= results) continue;
      Step& step =
          add(i, profile::Pass::timed, config::timed_request(plan.cells[i].cell, settings.gate));
      if (results > 0) step.result = result;
    }
  }
  for (std::int64_t round = 0; round < options.cost_pairs; ++round) {
    for (std::size_t i = 0; i < plan.cells.size(); ++i) {
      const PreparedCell& cell = plan.cells[i];
      const bool is_server = cell.cell.engine != nullptr && cell.cell.engine->server;
      if (cell.unavailable || cell.cell.twin || is_server || !cell.counts_work) continue;
      // Alternate the order, so that an effect of being second affects both alike.
      const bool probes_first = round % 2 == 1;
      for (const bool with_probes : {probes_first, !probes_first}) {
        Step& step = add(i, profile::Pass::timed, config::timed_request(cell.cell, settings.gate));
        step.with_probes = with_probes;
      }
    }
  }
  plan.identity = plan_identity(plan, settings, options);
  return plan;
}

// Fails and names the differing parts if the plan is not the one that the run was begun with.
Result<void> check_same_plan(const std::map<std::string, std::string>& begun,
                             const std::map<std::string, std::string>& current) {
  std::vector<std::pair<std::string, std::string>> differences;
  std::ranges::set_symmetric_difference(begun, current, std::back_inserter(differences));
  if (differences.empty()) return {};
  std::set<std::string> names;
  for (const auto& [what, hash] : differences) names.insert(what);
  return fail(Code::usage,
              "this run was begun with other {}: it cannot go on with them\n"
              "  put back what it was begun with, or start a new run without --resume",
              fmt::join(names, ", "));
}

}  // namespace weir::run
