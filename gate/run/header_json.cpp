// The first line of a journal, to JSON and back.

#include "gate/base/text.hpp"
#include "gate/run/journal.hpp"

namespace weir::sys {

static void fields(Fields& io, Machine& machine) {
  io("cpu_model", machine.cpu_model);
  io("physical_cores", machine.physical_cores);
  io("logical_cores", machine.logical_cores);
  io("usable_cores", machine.usable_cores);
  io("memory_bytes", machine.memory_bytes);
  io("os_release", machine.os_release);
  io("cpu_class", machine.cpu_class);
}

}  // namespace weir::sys

namespace weir::run {
namespace {

constexpr std::string_view k_schema = "weir.run/1";

// A list in the order of the fields.
struct GivenNumbers {
  profile::Asked& value;
  void put(Json& slot) const {
    slot = {value.prompt_tokens, value.tokens, value.repeats, value.depth};
  }
  void take(const Json& json, Fields& io, const char* key) const {
    std::vector<std::int64_t> numbers;
    io.take(json, key, numbers);
    if (numbers.size() != 4) return io.complain("should ask for 4 numbers");
    value = {numbers[0], numbers[1], numbers[2], numbers[3]};
  }
};

}  // namespace

static void fields(Fields& io, Step& step) {
  auto cell = static_cast<std::int64_t>(step.cell);
  io("cell", cell);
  io.check(cell >= 0, "names no cell");
  if (io.reads()) step.cell = static_cast<std::size_t>(cell);
  io("pass", profile::pass_field(step.pass, "names no pass"));
  io("asked", GivenNumbers{step.asked});
  io.sparse("instructions", step.instructions);
  io.sparse("twin_fill", step.twin_fill);
  io.unless("side", profile::side_field(step.side, "names no side"), profile::Side::candidate);
  io.sparse("pair", step.pair);
  io.check(!step.pair || *step.pair >= 0, "names no pair");
  io.sparse("probed", step.probed);
}

static void plan_fields(Fields& io, RunHeader& header) {
  io("config_file", header.config_file);
  io("config_text", header.config_text);
  io("unavailable", header.unavailable);
  io("identity", header.identity);
  io.always("notes", header.notes);
  io("extra", header.extra);
  io("machine", header.machine);
  io("cells", header.cells, "cell");
  io.sparse("base_cells", header.base_cells, "cell");
  if (io.reads() && !header.base_cells.empty() && header.base_cells.size() != header.cells.size()) {
    io.refuse({Code::data, "base_cells are not as many as cells"});
  }
  io("steps", header.steps, "steps[]");
  if (!io.reads()) return;
  for (std::size_t i = 0; i < header.steps.size(); ++i) {
    header.steps[i].order = static_cast<std::int64_t>(i);
    if (header.steps[i].cell < header.cells.size()) continue;
    io.refuse({Code::data, fmt::format("steps[{}] names no cell", i)});
  }
}

static void fields(Fields& io, RunHeader& header) {
  io.derived("schema", k_schema);
  io("weir_version", header.weir_version);
  io("started_at", header.started_at);
  io.object("plan", [&](Fields& plan) { plan_fields(plan, header); });
}

Json to_json(const Step& step) { return write_fields(step); }

Result<Step> step_from_json(const Json& json, std::size_t cells, std::int64_t order) {
  const std::string path = fmt::format("steps[{}]", order);
  WEIR_TRY(Step step, read_fields<Step>(json, path));
  if (step.cell >= cells) return fail(Code::data, "{} names no cell", path);
  step.order = order;
  return step;
}

Json to_json(const sys::Machine& machine) { return write_fields(machine); }

Json to_json(const RunHeader& header) { return write_fields(header); }

Result<RunHeader> header_from_json(const Json& json) {
  JsonReader read(json, "run");
  const std::string schema = read.string("schema");
  if (read.problem()) return tl::unexpected(*read.problem());
  if (schema != k_schema) {
    return fail(Code::data, "schema \"{}\", not \"{}\": made by another version of weir",
                text::printable(schema), k_schema);
  }
  return read_fields<RunHeader>(json, "run");
}

}  // namespace weir::run
