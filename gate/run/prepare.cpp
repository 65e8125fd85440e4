// Describes cells: facts about their models and what identifies them.
#include "gate/run/prepare.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/model/gguf.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

constexpr std::uint64_t k_prefix_bytes = std::uint64_t{1} << 20;

// Returns the names of a folder's files. Hidden ones are the downloader's, not the model's.
Result<std::vector<std::string>> list_file_names(const sys::Files& files, const std::string& path) {
  WEIR_TRY(std::vector<std::string> names, files.list(path));
  std::erase_if(names, [&](const std::string& name) {
    return name.starts_with('.') || files.kind(sys::join_path(path, name)) != sys::Kind::file;
  });
  return names;
}

// Returns the name of a part of a model with its number left out: "m-#-of-00003.gguf"; "" of a name
// that is none.
std::string name_without_part_number(const std::string& name) {
  constexpr std::size_t k_digits = 5;
  const std::size_t end = name.rfind("-of-");
  if (end == std::string::npos || end < k_digits + 1 || name[end - k_digits - 1] != '-') return "";
  const std::string_view number = std::string_view(name).substr(end - k_digits, k_digits);
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return "";
  return name.substr(0, end - k_digits) + "#" + name.substr(end);
}

// Identifies a model that is a folder by the hash of its files' names and sizes, and of the
// beginning of config.json. Fails if the folder has no files.
Result<ModelFacts> read_folder_facts(const sys::Files& files, const std::string& path) {
  WEIR_TRY(const std::vector<std::string> names, list_file_names(files, path));
  ModelFacts facts;
  std::string description;
  for (const std::string& name : names) {
    const std::string file = sys::join_path(path, name);
    WEIR_TRY(const std::uint64_t bytes, files.size(file));
    facts.bytes += bytes;
    description += fmt::format("{} {}\n", name, bytes);
    if (name == "config.json") {
      WEIR_TRY(const std::string text, files.read_prefix(file, k_prefix_bytes));
      description += text;
    }
  }
  if (facts.bytes == 0) return fail(Code::data, "{}: no model: the folder has no files", path);
  facts.header_hash = hash_hex(description);
  return facts;
}

}  // namespace

// Reads a model's size in bytes and a hash of the beginning of its file (of a GGUF file: its
// header). Both are empty for /dev/null, with which engines load no model.
Result<ModelFacts> read_model_facts(const sys::Files& files, const std::string& path) {
  if (files.kind(path) == sys::Kind::folder) return read_folder_facts(files, path);
  ModelFacts facts;
  // The engine loads no model, or keeps its models itself.
  if (path == "/dev/null") return facts;
  WEIR_TRY(facts.bytes, files.size(path));
  if (text::lower(path).ends_with(".gguf")) {
    const auto read = [&](std::uint64_t bytes) { return files.read_prefix(path, bytes); };
    WEIR_TRY(const auto header, model::load_gguf(read).map_error(with_prefix(path)));
    facts.header_hash = header.hash;
    return facts;
  }
  WEIR_TRY(const std::string text, files.read_prefix(path, k_prefix_bytes));
  facts.header_hash = hash_hex(text);
  return facts;
}

// Returns the files of a model: its file, all parts of a split one ("m-00001-of-00003.gguf"), or
// the files of a folder. Empty if the engine loads no model.
std::vector<std::string> model_files(const sys::Files& files, const std::string& path) {
  if (path.empty()) return {};
  const sys::Kind kind = files.kind(path);
  const bool is_folder = kind == sys::Kind::folder;
  const std::string shared_name = name_without_part_number(sys::file_name_of(path));
  if (!is_folder && shared_name.empty()) {
    return kind == sys::Kind::file ? std::vector{path} : std::vector<std::string>();
  }
  const std::string folder = is_folder ? path : sys::folder_of(path);
  std::vector<std::string> paths;
  for (const std::string& name :
       list_file_names(files, folder).value_or(std::vector<std::string>())) {
    const bool is_wanted = is_folder || name_without_part_number(name) == shared_name;
    if (is_wanted) paths.push_back(sys::join_path(folder, name));
  }
  return paths;
}

// Copies the settings that describe the cell to the facts, and the ops that may run on the CPU. A
// results cell has no engine and allows none.
void describe(const config::Cell& cell, profile::CellFacts& facts) {
  facts.cell = cell.key;
  facts.device = cell.device;
  facts.sweep = cell.sweep;
  facts.engine_source = cell.adapter;
  facts.cpu_ops_allowed.clear();
  facts.cpu_ops_when.clear();
  if (cell.engine == nullptr) return;
  facts.provenance.preset = cell.engine->preset;
  for (const config::CpuOp& cpu_op : cell.engine->cpu_ops_in(cell.key)) {
    facts.cpu_ops_allowed.try_emplace(cpu_op.op, cpu_op.why);
    facts.cpu_ops_when[cpu_op.op].push_back(cpu_op.when);
  }
  // If one entry allows an op without a condition, the others don't matter.
  std::erase_if(facts.cpu_ops_when,
                [](const auto& op) { return std::ranges::find(op.second, "") != op.second.end(); });
}

// Returns short hashes of what identifies the cell, by part: runs with other parts are not
// compared. Private cells have no hashes of variables.
std::map<std::string, std::string> fingerprint_parts(const config::Cell& cell,
                                                     const ModelFacts& model,
                                                     std::string_view prompt_text) {
  std::map<std::string, std::string> parts;
  for (const auto& [name, text] : cell.identity) parts[name] = short_hash(text);
  parts["model header"] = short_hash(model.header_hash);
  parts["model size"] = short_hash(std::to_string(model.bytes));
  if (cell.prompt_file) parts["prompt file"] = short_hash(prompt_text);
  parts[k_counting_rules_part] = short_hash(k_counting_rules);
  if (cell.is_private) return parts;  // hashes of its variables may reveal too much
  std::map<std::string, std::string> variables;
  for (const auto* environment : {&cell.env, &cell.counted_run_env}) {
    for (const auto& [name, value] : *environment) variables[name] += "\n" + value;
  }
  for (auto& [name, value] : variables) value = name + "=" + short_hash(name + value);
  parts[profile::k_variables] = text::join(
      collect<std::string>(variables, [](const auto& word) { return word.second; }), " ");
  return parts;
}

std::string combine_fingerprint(const std::map<std::string, std::string>& parts) {
  std::string text;
  for (const auto& [name, hash] : parts) {
    if (name != profile::k_variables) text += name + "=" + hash + "\n";
  }
  return short_hash(text, 16);
}

}  // namespace weir::run
