// The first line of a journal, to JSON and back.
#include <utility>

#include "gate/base/text.hpp"
#include "gate/run/journal.hpp"

namespace weir::run {
namespace {

constexpr std::string_view k_schema = "weir.run/1";

// An object of texts.
std::map<std::string, std::string> texts(JsonReader& read, const char* key) {
  std::map<std::string, std::string> all;
  for (const auto& [name, value] : read.object(key).items()) {
    if (!value.is_string()) {
      read.complain(fmt::format("\"{}\" should hold texts", key));
      break;
    }
    all[name] = value.get<std::string>();
  }
  return all;
}

}  // namespace

Json to_json(const Step& step) {
  const profile::Asked& asked = step.asked;
  Json json = {{"cell", step.cell},
               {"pass", profile::to_string(step.pass)},
               {"asked", {asked.prompt_tokens, asked.tokens, asked.repeats, asked.depth}}};
  if (step.instructions) json["instructions"] = true;
  if (step.twin_fill != 0) json["twin_fill"] = step.twin_fill;
  if (step.side != profile::Side::candidate) json["side"] = profile::to_string(step.side);
  if (step.pair) json["pair"] = *step.pair;
  return json;
}

Result<Step> step_from_json(const Json& json, std::size_t cells, std::int64_t order) {
  JsonReader read(json, fmt::format("steps[{}]", order));
  Step step;
  step.order = order;
  const std::int64_t cell = read.integer("cell");
  const std::string pass = read.string("pass");
  const Json& asked = read.array("asked");
  if (cell < 0 || static_cast<std::uint64_t>(cell) >= cells) read.complain("names no cell");
  if (pass != to_string(profile::Pass::timed) && pass != to_string(profile::Pass::counted)) {
    read.complain("names no pass");
  }
  if (asked.size() != 4) read.complain("should ask for 4 numbers");
  for (const Json& number : asked) {
    if (!number.is_number_integer()) read.complain("should ask for whole numbers");
  }
  step.instructions = read.optional_boolean("instructions").value_or(false);
  step.twin_fill = read.optional_integer("twin_fill").value_or(0);
  const std::string side = read.optional_string("side").value_or("candidate");
  if (side == to_string(profile::Side::base)) {
    step.side = profile::Side::base;
  } else if (side != to_string(profile::Side::candidate)) {
    read.complain("names no side");
  }
  step.pair = read.optional_integer("pair");
  if (step.pair && *step.pair < 0) read.complain("names no pair");
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  step.cell = static_cast<std::size_t>(cell);
  step.pass =
      pass == to_string(profile::Pass::timed) ? profile::Pass::timed : profile::Pass::counted;
  step.asked = {asked[0].get<std::int64_t>(), asked[1].get<std::int64_t>(),
                asked[2].get<std::int64_t>(), asked[3].get<std::int64_t>()};
  return step;
}

Json to_json(const sys::Machine& machine) {
  return {{"cpu_model", machine.cpu_model},         {"physical_cores", machine.physical_cores},
          {"logical_cores", machine.logical_cores}, {"usable_cores", machine.usable_cores},
          {"memory_bytes", machine.memory_bytes},   {"os_release", machine.os_release},
          {"cpu_class", machine.cpu_class}};
}

Result<sys::Machine> machine_from_json(const Json& json) {
  JsonReader read(json, "machine");
  sys::Machine machine;
  machine.cpu_model = read.string("cpu_model");
  machine.physical_cores = read.integer("physical_cores");
  machine.logical_cores = read.integer("logical_cores");
  machine.usable_cores = read.integer("usable_cores");
  machine.memory_bytes = read.integer("memory_bytes");
  machine.os_release = read.string("os_release");
  machine.cpu_class = read.string("cpu_class");
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  return machine;
}

Json to_json(const RunHeader& header) {
  Json plan = {{"config_file", header.config_file},
               {"config_text", header.config_text},
               {"machine", to_json(header.machine)},
               {"cells", Json::array()},
               {"steps", Json::array()},
               {"unavailable", header.unavailable},
               {"identity", header.identity},
               {"notes", header.notes},
               {"extra", header.extra}};
  for (const profile::CellFacts& facts : header.base_cells) {
    plan["base_cells"].push_back(to_json(facts));
  }
  for (const profile::CellFacts& facts : header.cells) plan["cells"].push_back(to_json(facts));
  for (const Step& step : header.steps) plan["steps"].push_back(to_json(step));
  return {{"schema", k_schema},
          {"weir_version", header.weir_version},
          {"started_at", header.started_at},
          {"plan", std::move(plan)}};
}

Result<RunHeader> header_from_json(const Json& json) {
  JsonReader read(json, "run");
  const std::string schema = read.string("schema");
  if (!read.problem() && schema != k_schema) {
    return fail(Code::data, "schema \"{}\", not \"{}\": made by another version of weir",
                text::printable(schema), k_schema);
  }
  RunHeader header;
  header.weir_version = read.string("weir_version");
  header.started_at = read.number("started_at");
  const Json& plan = read.object("plan");
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));

  JsonReader in_plan(plan, "plan");
  header.config_file = in_plan.string("config_file");
  header.config_text = in_plan.string("config_text");
  header.unavailable = texts(in_plan, "unavailable");
  header.identity = texts(in_plan, "identity");
  header.notes = in_plan.strings("notes");
  header.extra = in_plan.object("extra");
  const Json& machine = in_plan.object("machine");
  const Json& cells = in_plan.array("cells");
  const Json& steps = in_plan.array("steps");
  static const Json k_none = Json::array();
  const Json& base_cells = in_plan.has("base_cells") ? in_plan.array("base_cells") : k_none;
  if (auto problem = in_plan.problem()) return tl::unexpected(std::move(*problem));
  WEIR_TRY(header.machine, machine_from_json(machine));
  for (const Json& cell : cells) {
    WEIR_TRY(profile::CellFacts facts, facts_from_json(cell));
    header.cells.push_back(std::move(facts));
  }
  for (const Json& cell : base_cells) {
    WEIR_TRY(profile::CellFacts facts, facts_from_json(cell));
    header.base_cells.push_back(std::move(facts));
  }
  if (!header.base_cells.empty() && header.base_cells.size() != header.cells.size()) {
    return fail(Code::data, "base_cells are not as many as cells");
  }
  for (const Json& step : steps) {
    WEIR_TRY(Step one, step_from_json(step, header.cells.size(),
                                      static_cast<std::int64_t>(header.steps.size())));
    header.steps.push_back(one);
  }
  return header;
}

}  // namespace weir::run
