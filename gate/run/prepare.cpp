#include "gate/run/prepare.hpp"

#include <utility>

namespace weir::run {
namespace {

using profile::Sweep;

std::string_view sweep_name(Sweep sweep) {
  switch (sweep) {
    case Sweep::tokens:
      return "tokens";
    case Sweep::repeats:
      return "repeats";
    case Sweep::overlapping:
      return "overlapping";
    case Sweep::none:
      break;
  }
  return "none";
}

Json json_of(const profile::Provenance& from) {
  Json json = {{"fingerprint", from.fingerprint},
               {"fingerprint_parts", from.fingerprint_parts},
               {"device_class", from.device_class},
               {"device_name", from.device_name},
               {"machine_class", from.machine_class},
               {"machine_name", from.machine_name},
               {"lengths", from.lengths}};
  if (from.engine_build) json["engine_build"] = *from.engine_build;
  return json;
}

std::map<std::string, std::string> texts(JsonReader& read, const char* key) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : read.object(key).items()) {
    if (!text.is_string()) {
      read.complain(fmt::format("{}.{}: not all are text", read.path(), key));
      break;
    }
    texts[name] = text.get<std::string>();
  }
  return texts;
}

profile::Provenance provenance(JsonReader& read) {
  profile::Provenance from;
  from.fingerprint = read.string("fingerprint");
  from.fingerprint_parts = texts(read, "fingerprint_parts");
  from.device_class = read.string("device_class");
  from.device_name = read.string("device_name");
  from.machine_class = read.string("machine_class");
  from.machine_name = read.string("machine_name");
  for (const Json& length : read.array("lengths")) {
    if (!length.is_number_integer()) {
      read.complain(read.path() + ".lengths: not all are whole numbers");
      break;
    }
    from.lengths.push_back(length.get<std::int64_t>());
  }
  from.engine_build = read.optional_string("engine_build");
  return from;
}

}  // namespace

Json to_json(const profile::CellFacts& facts) {
  Json json = {{"cell", facts.cell.str()},
               {"device", facts.device},
               {"sweep", sweep_name(facts.sweep)},
               {"counts_reported_per_token", facts.counts_reported_per_token},
               {"kernels_gated", facts.kernels_gated},
               {"times_source", facts.times_source},
               {"cpu_ops_allowed", facts.cpu_ops_allowed},
               {"provenance", json_of(facts.provenance)}};
  if (facts.counts_skipped) json["counts_skipped"] = *facts.counts_skipped;
  if (facts.instructions_skipped) json["instructions_skipped"] = *facts.instructions_skipped;
  if (facts.counted_alone) json["counted_alone"] = true;
  if (facts.twin) json["twin"] = *facts.twin;
  if (facts.device_present) json["device_present"] = *facts.device_present;
  return json;
}

Result<profile::CellFacts> facts_from_json(const Json& json) {
  JsonReader read(json, "cell");
  profile::CellFacts facts;
  const std::string name = read.string("cell");
  facts.device = read.string("device");
  const std::string sweep = read.string("sweep");
  facts.counts_reported_per_token = read.boolean("counts_reported_per_token");
  facts.kernels_gated = read.boolean("kernels_gated");
  facts.times_source = read.string("times_source");
  facts.counts_skipped = read.optional_string("counts_skipped");
  facts.instructions_skipped = read.optional_string("instructions_skipped");
  facts.counted_alone = read.optional_boolean("counted_alone").value_or(false);
  facts.device_present = read.optional_string("device_present");
  facts.twin = read.optional_string("twin");
  if (read.has("cpu_ops_allowed")) facts.cpu_ops_allowed = texts(read, "cpu_ops_allowed");
  const Json& from = read.object("provenance");
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  JsonReader read_from(from, name);
  facts.provenance = provenance(read_from);
  if (auto problem = read_from.problem()) return tl::unexpected(std::move(*problem));
  WEIR_TRY(facts.cell, profile::CellKey::parse(name));
  for (const Sweep known : {Sweep::tokens, Sweep::repeats, Sweep::none, Sweep::overlapping}) {
    if (sweep_name(known) != sweep) continue;
    facts.sweep = known;
    return facts;
  }
  return fail(Code::data, "{}: no sweep \"{}\"", name, sweep);
}

}  // namespace weir::run
