#include "gate/run/prepare.hpp"

#include <utility>

#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/model/gguf.hpp"
#include "gate/sys/paths.hpp"

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

namespace {

constexpr std::uint64_t k_beginning = std::uint64_t{1} << 20;

Result<ModelFacts> look_at_folder(const sys::Files& files, const std::string& path) {
  WEIR_TRY(const std::vector<std::string> names, files.list(path));
  ModelFacts facts;
  std::string all;
  for (const std::string& name : names) {
    const std::string file = sys::join_path(path, name);
    // Hidden files are what downloaders leave for themselves.
    if (name.starts_with('.') || files.kind(file) != sys::Kind::file) continue;
    WEIR_TRY(const std::uint64_t bytes, files.size(file));
    facts.bytes += bytes;
    all += fmt::format("{} {}\n", name, bytes);
    if (name == "config.json") {
      WEIR_TRY(const std::string text, files.read_prefix(file, k_beginning));
      all += text;
    }
  }
  if (facts.bytes == 0) return fail(Code::data, "{}: no model: the folder has no files", path);
  facts.header_hash = hash_hex(all);
  return facts;
}

}  // namespace

Result<ModelFacts> look_at_model(const sys::Files& files, const std::string& path) {
  if (files.kind(path) == sys::Kind::folder) return look_at_folder(files, path);
  ModelFacts facts;
  WEIR_TRY(facts.bytes, files.size(path));
  if (text::lower(path).ends_with(".gguf")) {
    auto header =
        model::load_gguf([&](std::uint64_t bytes) { return files.read_prefix(path, bytes); });
    if (!header) return tl::unexpected(with_context(path, std::move(header).error()));
    facts.header_hash = header->hash;
    return facts;
  }
  WEIR_TRY(const std::string text, files.read_prefix(path, k_beginning));
  facts.header_hash = hash_hex(text);
  return facts;
}

std::map<std::string, std::string> fingerprint_parts(const config::Cell& cell,
                                                     const ModelFacts& model,
                                                     std::string_view prompt_text) {
  std::map<std::string, std::string> parts;
  for (const auto& [name, text] : cell.identity) parts[name] = short_hash(text);
  parts["model header"] = short_hash(model.header_hash);
  parts["model size"] = short_hash(std::to_string(model.bytes));
  if (cell.prompt_file) parts["prompt file"] = short_hash(prompt_text);
  parts["counting rules"] = short_hash(k_counting_rules);
  return parts;
}

std::string fingerprint_of(const std::map<std::string, std::string>& parts) {
  std::string all;
  for (const auto& [name, hash] : parts) all += name + "=" + hash + "\n";
  return short_hash(all, 16);
}

}  // namespace weir::run
