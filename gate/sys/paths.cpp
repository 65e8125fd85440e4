// Joins, splits and resolves paths.
#include "gate/sys/paths.hpp"

#include <cstdlib>
#include <filesystem>

#include "gate/base/text.hpp"

namespace weir::sys {

std::string join_path(std::string_view folder, std::string_view name) {
  if (folder.empty() || name.starts_with('/')) return std::string(name);
  std::string path(folder);
  if (!path.ends_with('/')) path += '/';
  return path.append(name);
}

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string file_name_of(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

std::string absolute(std::string_view path) {
  std::string full_path(path);
  if (!path.starts_with('/')) {
    std::error_code ignored;
    full_path = join_path(std::filesystem::current_path(ignored).string(), path);
  }
  std::string clean = std::filesystem::path(full_path).lexically_normal().string();
  if (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  return clean;
}

std::optional<std::string> relative_path(const std::string& path, const std::string& folder) {
  if (folder == "/") return path.substr(1);
  if (path == folder) return "";
  if (!path.starts_with(folder + "/")) return std::nullopt;
  return path.substr(folder.size() + 1);
}

bool is_within(std::string_view path, std::string_view outer) {
  if (outer.empty()) return true;
  if (!path.starts_with(outer)) return false;
  return path.size() == outer.size() || path[outer.size()] == '/';
}

std::optional<std::string> real_path(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return std::nullopt;
  std::string text = real;
  std::free(real);
  return text;
}

std::string follow_links(const std::string& path) {
  std::error_code error;
  const std::string followed = std::filesystem::weakly_canonical(path, error).string();
  return error ? path : followed;
}

// Returns the path of a program: a name with '/' is a path from `folder`, any other is looked up
// in PATH. Nothing if there is no executable file.
std::optional<std::string> find_program(const Files& files, std::string_view name,
                                        std::string_view folder, std::string_view path_variable) {
  const auto is_usable = [&](const std::string& path) {
    return files.kind(path) == Kind::file && files.executable(path);
  };
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string_view::npos) {
    std::string path = absolute(join_path(folder, name));
    return is_usable(path) ? std::optional(std::move(path)) : std::nullopt;
  }
  for (const std::string& place : text::split(path_variable, ':')) {
    // A shell takes an empty entry as the current folder. That weir's result depended on it would
    // be a surprise.
    if (place.empty()) continue;
    std::string path = absolute(join_path(place, name));
    if (is_usable(path)) return path;
  }
  return std::nullopt;
}

}  // namespace weir::sys
