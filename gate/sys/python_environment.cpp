// The folders in which a virtual environment of Python keeps its packages.
#include "gate/sys/python_environment.hpp"

#include "gate/sys/paths.hpp"

namespace weir::sys {

bool is_python_environment(const Files& files, const std::string& folder) {
  return files.kind(join_path(folder, "pyvenv.cfg")) == Kind::file;
}

std::vector<std::string> package_folders(const Files& files, const std::string& environment) {
  std::vector<std::string> folders;
  for (const char* libraries : {"lib", "lib64"}) {
    const std::string folder = join_path(environment, libraries);
    for (const std::string& python : files.list(folder).value_or(std::vector<std::string>()))
      folders.push_back(join_path(join_path(folder, python), "site-packages"));
  }
  return folders;
}

}  // namespace weir::sys
