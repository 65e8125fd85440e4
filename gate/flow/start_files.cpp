// Lists files that programs load as they start.
#include "gate/flow/start_files.hpp"

#include <array>

#include "gate/base/text.hpp"
#include "gate/flow/repository.hpp"
#include "gate/sys/code_file.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::array<std::string_view, 21> k_home_files = {
    // shells
    ".profile", ".bash_profile", ".bash_login", ".bashrc", ".zshenv", ".zprofile", ".zshrc",
    ".zlogin",
    // interpreters
    ".Rprofile", ".Renviron", ".julia/config", ".node_modules", ".node_libraries", ".npmrc",
    ".perldb", ".rubyopenrc", ".valgrindrc", ".gdbinit",
    // drivers
    ".drirc", ".nv/nvidia-application-profiles-rc", ".nv/nvidia-application-profiles-rc.d"};
constexpr std::array<std::string_view, 5> k_config_files = {"vulkan", "fish/config.fish",
                                                            "fish/conf.d", "fish/functions", "uv"};
constexpr std::array<std::string_view, 9> k_system_files = {
    "/etc/ld.so.preload", "/etc/ld.so.cache",  "/etc/environment",
    "/etc/profile",       "/etc/profile.d",    "/etc/vulkan",
    "/etc/OpenCL",        "/usr/share/vulkan", "/usr/local/share/vulkan"};

// Seals the folders outside of the work tree in which programs, libraries and modules are looked
// up.
void seal_search_folders(const Job& job, source::Seal& seal) {
  const auto repository = Repository::containing(job.world, job.folder());
  const std::string top = sys::follow_links(repository ? (*repository)->git().top() : job.folder());
  const auto is_outside = [&](const std::string& folder) {
    return folder.starts_with('/') && !sys::is_within(sys::follow_links(folder), top);
  };
  for (const char* variable : {"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH"}) {
    for (const std::string& folder : text::split(job.variable(variable), ':')) {
      if (is_outside(folder)) seal.add_search_folder(job.files(), folder);
    }
  }
  // The last one is set by GitHub's setup-python.
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX", "pythonLocation"}) {
    const std::string environment = job.variable(variable);
    if (!is_outside(environment)) continue;
    const std::string packages = sys::join_path(environment, "lib");
    seal.add_start_place(job.files(), packages, packages, is_package_code);
  }
}

}  // namespace

bool is_package_code(std::string_view name) {
  return name.find("__pycache__/") == std::string_view::npos &&
         (sys::is_module(name) || name.ends_with(".pth"));
}

void seal_start_files(const Job& job, source::Seal& seal) {
  seal_search_folders(job, seal);
  const auto is_any = [](std::string_view) { return true; };
  for (const std::string_view path : k_system_files)
    seal.add_start_place(job.files(), std::string(path), std::string(path), is_any);
  const std::string home = job.variable("HOME");
  if (home.empty()) return;
  for (const std::string_view name : k_home_files) {
    seal.add_start_place(job.files(), sys::join_path(home, std::string(name)),
                         sys::join_path("~", std::string(name)), is_any);
  }
  const auto folder_of = [&](const char* variable, const char* name) {
    const std::string own = job.variable(variable);
    return own.empty() ? sys::join_path(home, name) : own;
  };
  const std::string config = folder_of("XDG_CONFIG_HOME", ".config"),
                    layers = folder_of("XDG_DATA_HOME", ".local/share") + "/vulkan",
                    python = folder_of("PYTHONUSERBASE", ".local") + "/lib",
                    python_of_macos = sys::join_path(home, "Library/Python");
  for (const std::string_view name : k_config_files) {
    const std::string path = sys::join_path(config, std::string(name));
    seal.add_start_place(job.files(), path, path, is_any);
  }
  seal.add_start_place(job.files(), layers, layers, is_any);
  for (const std::string& path : {python, python_of_macos})
    seal.add_start_place(job.files(), path, path, is_package_code);
}

}  // namespace weir::flow
