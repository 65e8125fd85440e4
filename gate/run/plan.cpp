#include "gate/run/plan.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

namespace weir::run {
namespace {

constexpr std::int64_t k_other_fill = 0xa5;  // neither 0, nor small, nor a sign

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

// What an engine's output is read for: its values and facts are the metrics that it can have.
Json reading_json(const config::EngineSettings& engine) {
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

std::map<std::string, std::string> identity_of(const Plan& plan, const config::Settings& settings,
                                               const PlanOptions& options) {
  Json cells = Json::array(), programs = Json::array(), models = Json::array(),
       metrics = Json::array(), limits = Json::array();
  for (const PreparedCell& cell : plan.cells) {
    Json identity(cell.cell.identity);
    identity["cell"] = cell.cell.key.str();
    identity["device"] = cell.cell.device;
    identity["fingerprint"] = cell.facts.provenance.fingerprint;
    cells.push_back(std::move(identity));
    programs.push_back({cell.program, cell.program_stamp});
    models.push_back({cell.model, cell.model_bytes});
    metrics.push_back({cell.probes,
                       cell.instructions ? Json(static_cast<int>(*cell.instructions)) : Json(),
                       cell.cell.engine == nullptr ? Json() : reading_json(*cell.cell.engine)});
  }
  for (const PreparedCell& cell : plan.base_cells) {
    programs.push_back({"base", cell.program, cell.program_stamp});
  }
  for (const verdict::LimitEntry& entry : settings.limits) limits.push_back(limit_json(entry));
  const config::GateSettings& gate = settings.gate;
  // The budget is left out: a run may be given more time.
  limits.push_back(
      {gate.false_alarm, gate.missed, gate.strict, gate.stored_level, gate.fail_on_inconclusive});
  Json steps = Json::array();
  for (const Step& step : plan.steps) {
    steps.push_back({step.cell, static_cast<int>(step.pass), step.asked.prompt_tokens,
                     step.asked.tokens, step.asked.repeats, step.asked.depth, step.instructions,
                     step.twin_fill});
    if (step.probed) steps.back().push_back(*step.probed);
    if (step.host) steps.back().push_back("host");
  }
  return {{"cells", digest(cells)},
          {"programs", digest(programs)},
          {"models", digest(models)},
          {"metrics", digest(metrics)},
          {"limits", digest(limits)},
          {"number and order of runs", digest({steps, options.counts, options.times, options.pairs,
                                               options.pairs ? gate.repeats : 0})}};
}

// Where nothing counts, what the engine reports of its backend may still show that the work ran
// elsewhere.
bool says_where(const PreparedCell& cell) {
  const config::EngineSettings* engine = cell.cell.engine;
  return cell.cell.device != "cpu" && !cell.cell.twin && engine != nullptr && !engine->server &&
         engine->output != "generic";
}

}  // namespace

std::string Plan::id() const { return fingerprint_of(identity); }

Plan make_plan(std::vector<PreparedCell> cells, const config::Settings& settings,
               const PlanOptions& options, std::vector<PreparedCell> base_cells) {
  Plan plan;
  plan.cells = std::move(cells);
  plan.base_cells = std::move(base_cells);
  plan.overlapping_processes = options.overlapping_processes;
  const auto add = [&](std::size_t cell, profile::Pass pass, const profile::Asked& asked) -> Step& {
    const auto order = static_cast<std::int64_t>(plan.steps.size());
    return plan.steps.emplace_back(
        Step{.cell = cell, .pass = pass, .asked = asked, .order = order});
  };
  for (std::size_t i = 0; options.counts && i < plan.cells.size(); ++i) {
    PreparedCell& cell = plan.cells[i];
    if (cell.unavailable) continue;
    if (cell.facts.counts_skipped) {
      if (!options.times && says_where(cell)) {
        add(i, profile::Pass::counted, config::counted_asked(cell.cell, {}).front());
      }
      continue;
    }
    const std::int64_t rounds = cell.instructions ? options.instruction_processes : 0;
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (const profile::Asked& asked : config::instructions_asked(cell.cell)) {
        add(i, profile::Pass::counted, asked).instructions = true;
      }
    }
    if (!cell.counts_work && !cell.host) continue;
    const auto* kept = look_up(options.lengths, cell.cell.key.str());
    const auto points =
        config::counted_asked(cell.cell, kept == nullptr ? std::span<const std::int64_t>() : *kept);
    auto& lengths = cell.facts.provenance.lengths;
    lengths.clear();
    for (const profile::Asked& asked : points) {
      lengths.push_back(cell.facts.sweep == profile::Sweep::repeats ? asked.repeats : asked.tokens);
    }
    const bool overlapping = cell.facts.sweep == profile::Sweep::overlapping;
    const auto processes = std::max<std::int64_t>(
        1, overlapping ? options.overlapping_processes : options.counted_processes);
    for (std::int64_t process = 0; process < processes; ++process) {
      for (const profile::Asked& asked : points) {
        if (cell.counts_work) add(i, profile::Pass::counted, asked);
        if (cell.host) add(i, profile::Pass::counted, asked).host = true;
      }
    }
    // Does the engine look at what a device computes? Then a twin cannot stand in for one.
    if (cell.cell.twin && cell.counts_work) {
      add(i, profile::Pass::counted, points.front()).twin_fill = k_other_fill;
    }
  }
  const std::int64_t rounds =
      options.times && !options.pairs ? options.runs.value_or(settings.gate.runs) : 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < plan.cells.size(); ++i) {
      // A twin's numbers are counts: what it computes, and how fast, means nothing.
      if (plan.cells[i].unavailable || plan.cells[i].cell.twin) continue;
      if (round > 0 && plan.cells[i].cell.runs_long()) continue;  // one that goes on for long
      add(i, profile::Pass::timed, config::timed_asked(plan.cells[i].cell, settings.gate));
    }
  }
  for (std::int64_t round = 0; round < options.cost_pairs; ++round) {
    for (std::size_t i = 0; i < plan.cells.size(); ++i) {
      const PreparedCell& cell = plan.cells[i];
      const bool serves = cell.cell.engine != nullptr && cell.cell.engine->server;
      if (cell.unavailable || cell.cell.twin || serves || !cell.counts_work) continue;
      // Whatever makes the second process of a pair slower meets both.
      for (const bool second : {false, true}) {
        add(i, profile::Pass::timed, config::timed_asked(cell.cell, settings.gate)).probed =
            second == (round % 2 == 0);
      }
    }
  }
  plan.identity = identity_of(plan, settings, options);
  return plan;
}

Result<void> check_same_plan(const std::map<std::string, std::string>& begun,
                             const std::map<std::string, std::string>& wanted) {
  std::vector<std::pair<std::string, std::string>> differ;
  std::ranges::set_symmetric_difference(begun, wanted, std::back_inserter(differ));
  if (differ.empty()) return {};
  std::set<std::string> names;
  for (const auto& [what, hash] : differ) names.insert(what);
  return fail(Code::usage,
              "this run was begun with other {}: it cannot go on with them\n"
              "  put back what it was begun with, or start a new run without --resume",
              fmt::join(names, ", "));
}

}  // namespace weir::run
