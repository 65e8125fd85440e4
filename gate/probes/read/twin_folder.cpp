#include "gate/probes/read/twin_folder.hpp"

#include <map>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::probes {
namespace {

constexpr std::uint64_t k_most_bytes = std::uint64_t{8} << 20;
constexpr std::string_view k_end = ".json";

bool is_file_name(std::string_view name) {
  return name.size() > k_end.size() && name.ends_with(k_end);
}

std::string stem_of(const std::string& path) {
  std::string name = sys::file_name_of(path);
  if (is_file_name(name)) name.resize(name.size() - k_end.size());
  return name;
}

Result<Twin> load_file(const sys::Files& files, const std::string& path) {
  WEIR_TRY(const std::string text, files.read(path, k_most_bytes));
  WEIR_TRY(Twin twin, read_twin(text).map_error(in_context(path)));
  if (const std::string name = stem_of(path); is_twin_name(name)) twin.name = name;
  return twin;
}

// The nearer of two that have the same name.
Result<std::map<std::string, std::string>> paths_by_name(const sys::Files& files,
                                                         const std::vector<std::string>& folders) {
  std::map<std::string, std::string> paths;
  for (const std::string& folder : folders) {
    WEIR_TRY(const std::vector<std::string> names, files.list(folder));
    for (const std::string& file : names) {
      const std::string name = stem_of(file);
      if (is_file_name(file) && is_twin_name(name)) {
        paths.try_emplace(name, sys::join_path(folder, file));
      }
    }
  }
  return paths;
}

}  // namespace

std::vector<std::string> twin_folders(const sys::Files& files, const std::string& home,
                                      const std::string& program) {
  const std::string beside = sys::folder_of(program);
  std::vector<std::string> out;
  for (const std::string& folder :
       {sys::join_path(home, "configs/devices"), sys::join_path(beside, "share/weir/devices"),
        sys::absolute(sys::join_path(beside, "../share/weir/devices"))}) {
    if (files.kind(folder) == sys::Kind::folder) out.push_back(folder);
  }
  return out;
}

std::vector<std::string> twin_folders(const sys::Files& files, const std::string& home) {
  return twin_folders(files, home, sys::own_program());
}

Result<std::vector<std::string>> twin_names(const sys::Files& files,
                                            const std::vector<std::string>& folders) {
  WEIR_TRY(const auto paths, paths_by_name(files, folders));
  return weir::collect<std::string>(paths, [](const auto& one) { return one.first; });
}

Result<std::vector<FoundTwin>> list_twins(const sys::Files& files,
                                          const std::vector<std::string>& folders) {
  WEIR_TRY(const auto paths, paths_by_name(files, folders));
  std::vector<FoundTwin> out;
  for (const auto& [name, path] : paths) {
    FoundTwin& one = out.emplace_back();
    one.name = name;
    one.path = path;
    if (const auto twin = load_file(files, path)) {
      one.title = twin->title;
      one.source = twin->source;
      one.vulkan = twin->has_vulkan();
      one.cuda = twin->cuda.is_object();
    } else {
      one.error = twin.error().message;
    }
  }
  return out;
}

Result<Twin> load_twin(const sys::Files& files, const std::vector<std::string>& folders,
                       const std::string& name) {
  if (name.find('/') != std::string::npos || is_file_name(name)) return load_file(files, name);
  if (is_twin_name(name)) {
    for (const std::string& folder : folders) {
      const std::string path = sys::join_path(folder, name + std::string(k_end));
      if (files.kind(path) == sys::Kind::file) return load_file(files, path);
    }
  }
  const auto known = twin_names(files, folders).value_or(std::vector<std::string>());
  return fail(Code::config, "no device is called \"{}\"{}; weir device list shows those there are",
              text::printable(name), text::did_you_mean(name, known));
}

}  // namespace weir::probes
