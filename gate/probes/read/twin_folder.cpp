// Finds and loads descriptions of GPUs in folders.
#include "gate/probes/read/twin_folder.hpp"

#include <map>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::probes {
namespace {

constexpr std::uint64_t k_max_bytes = std::uint64_t{8} << 20;
constexpr std::string_view k_suffix = ".json";

bool is_json_file(std::string_view name) {
  return name.size() > k_suffix.size() && name.ends_with(k_suffix);
}

// The file's name without ".json".
std::string file_stem(const std::string& path) {
  std::string name = sys::file_name_of(path);
  if (is_json_file(name)) name.resize(name.size() - k_suffix.size());
  return name;
}

Result<Twin> load_file(const sys::Files& files, const std::string& path) {
  WEIR_TRY(const std::string text, files.read(path, k_max_bytes));
  WEIR_TRY(Twin twin, read_twin(text).map_error(with_prefix(path)));
  if (const std::string name = file_stem(path); is_twin_name(name)) twin.name = name;
  return twin;
}

// Returns the paths of all descriptions of twins (simulated GPUs), by name. Of two with one name,
// that in the earlier folder counts.
Result<std::map<std::string, std::string>> find_paths(const sys::Files& files,
                                                      const std::vector<std::string>& folders) {
  std::map<std::string, std::string> paths;
  for (const std::string& folder : folders) {
    WEIR_TRY(const std::vector<std::string> names, files.list(folder));
    for (const std::string& file : names) {
      const std::string name = file_stem(file);
      if (is_json_file(file) && is_twin_name(name)) {
        paths.try_emplace(name, sys::join_path(folder, file));
      }
    }
  }
  return paths;
}

}  // namespace

// Returns the existing folders with descriptions of twins (simulated GPUs), in the order of
// search.
std::vector<std::string> twin_folders(const sys::Files& files, const std::string& home,
                                      const std::string& program) {
  const std::string program_folder = sys::folder_of(program);
  std::vector<std::string> out;
  for (const std::string& folder :
       {sys::join_path(home, "configs/devices"),
        sys::join_path(program_folder, "share/weir/devices"),
        sys::absolute(sys::join_path(program_folder, "../share/weir/devices"))}) {
    if (files.kind(folder) == sys::Kind::folder) out.push_back(folder);
  }
  return out;
}

std::vector<std::string> twin_folders(const sys::Files& files, const std::string& home) {
  return twin_folders(files, home, sys::own_program_path());
}

Result<std::vector<std::string>> twin_names(const sys::Files& files,
                                            const std::vector<std::string>& folders) {
  WEIR_TRY(const auto paths, find_paths(files, folders));
  return weir::collect<std::string>(paths, [](const auto& entry) { return entry.first; });
}

// Loads every description of a twin (a simulated GPU), sorted by name. One that is not valid has
// an error instead of its facts.
Result<std::vector<TwinEntry>> list_twins(const sys::Files& files,
                                          const std::vector<std::string>& folders) {
  WEIR_TRY(const auto paths, find_paths(files, folders));
  std::vector<TwinEntry> out;
  for (const auto& [name, path] : paths) {
    TwinEntry& row = out.emplace_back();
    row.name = name;
    row.path = path;
    if (const auto twin = load_file(files, path)) {
      row.title = twin->title;
      row.source = twin->source;
      row.apis = twin->apis();
    } else {
      row.error = twin.error().message;
    }
  }
  return out;
}

// Loads a twin (a simulated GPU) by its name or by its description's path. For unknown names it
// fails, with suggestions.
Result<Twin> load_twin(const sys::Files& files, const std::vector<std::string>& folders,
                       const std::string& name) {
  if (name.find('/') != std::string::npos || is_json_file(name)) return load_file(files, name);
  if (is_twin_name(name)) {
    for (const std::string& folder : folders) {
      const std::string path = sys::join_path(folder, name + std::string(k_suffix));
      if (files.kind(path) == sys::Kind::file) return load_file(files, path);
    }
  }
  const auto names = twin_names(files, folders).value_or(std::vector<std::string>());
  return fail(Code::config, "no device is called \"{}\"{}; weir device list shows those there are",
              text::printable(name), text::did_you_mean(name, names));
}

}  // namespace weir::probes
