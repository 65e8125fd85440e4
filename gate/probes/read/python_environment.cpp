// Finds the libraries of a Python virtual environment.
#include "gate/probes/read/python_environment.hpp"

#include <cstddef>
#include <set>

#include "gate/sys/paths.hpp"
#include "gate/sys/python_environment.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_max_package_libraries = 4096;
constexpr int k_max_depth = 8;

using Paths = std::vector<std::string>;

Paths list(const std::string& folder, const sys::Files& files) {
  Paths paths;
  for (const std::string& name : files.list(folder).value_or(Paths())) {
    paths.push_back(sys::join_path(folder, name));
  }
  return paths;
}

bool is_library(const std::string& path) {
  const std::string name = sys::file_name_of(path);
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

void add_libraries(const std::string& folder, int depth, const sys::Files& files, Paths& out) {
  for (const std::string& path : list(folder, files)) {
    if (out.size() == k_max_package_libraries) return;
    if (is_library(path)) {
      out.push_back(path);
    } else if (depth < k_max_depth && files.kind(path) == sys::Kind::folder) {
      add_libraries(path, depth + 1, files, out);
    }
  }
}

}  // namespace

std::string python_environment_of(const std::string& program, const sys::Files& files) {
  std::string environment = sys::folder_of(sys::folder_of(program));
  return sys::is_python_environment(files, environment) ? environment : "";
}

Paths libraries_of_environment(const std::string& environment, const sys::Files& files) {
  Paths libraries;
  std::set<std::string> visited;  // without links
  for (const std::string& folder : sys::package_folders(files, environment)) {
    if (visited.insert(sys::follow_links(folder)).second) {
      add_libraries(folder, 0, files, libraries);
    }
  }
  return libraries;
}

}  // namespace weir::probes
