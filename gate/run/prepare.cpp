#include "gate/run/prepare.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/model/gguf.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
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
  // Of an engine that loads none, or keeps its models by itself.
  if (path == "/dev/null") return facts;
  WEIR_TRY(facts.bytes, files.size(path));
  if (text::lower(path).ends_with(".gguf")) {
    const auto read = [&](std::uint64_t bytes) { return files.read_prefix(path, bytes); };
    WEIR_TRY(const auto header, model::load_gguf(read).map_error(in_context(path)));
    facts.header_hash = header.hash;
    return facts;
  }
  WEIR_TRY(const std::string text, files.read_prefix(path, k_beginning));
  facts.header_hash = hash_hex(text);
  return facts;
}

void describe(const config::Cell& cell, profile::CellFacts& facts) {
  facts.cell = cell.key;
  facts.device = cell.device;
  facts.sweep = cell.sweep;
  facts.times_source = cell.adapter;
  facts.cpu_ops_allowed.clear();
  facts.cpu_ops_when.clear();
  if (cell.engine == nullptr) return;
  facts.provenance.preset = cell.engine->preset;
  for (const config::CpuOp& one : cell.engine->cpu_ops_in(cell.key)) {
    facts.cpu_ops_allowed.try_emplace(one.op, one.why);
    facts.cpu_ops_when[one.op].push_back(one.when);
  }
  // An op that one of its entries allows as it is needs no condition.
  std::erase_if(facts.cpu_ops_when,
                [](const auto& op) { return std::ranges::find(op.second, "") != op.second.end(); });
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
  if (cell.is_private) return parts;  // what it sets may say too much
  std::map<std::string, std::string> words;
  for (const auto* set : {&cell.env, &cell.counted_env}) {
    for (const auto& [name, value] : *set) words[name] += "\n" + value;
  }
  for (auto& [name, value] : words) value = name + "=" + short_hash(name + value);
  parts[profile::k_variables] =
      text::join(collect<std::string>(words, [](const auto& word) { return word.second; }), " ");
  return parts;
}

std::string fingerprint_of(const std::map<std::string, std::string>& parts) {
  std::string all;
  for (const auto& [name, hash] : parts) {
    if (name != profile::k_variables) all += name + "=" + hash + "\n";
  }
  return short_hash(all, 16);
}

}  // namespace weir::run
