// Lists files that programs load from outside of their checkout.
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

// Names by which programs look for code and settings in each folder above their own.
constexpr auto k_names_above = std::to_array<std::string_view>(
    {// Node, Bun, Deno
     "node_modules", "package.json", "tsconfig.json", "jsconfig.json", ".npmrc", "bunfig.toml",
     "deno.json", "deno.jsonc", ".pnp.cjs", ".pnp.loader.mjs", ".yarnrc.yml", ".babelrc",
     "babel.config.js", "babel.config.json", ".swcrc",
     // Python
     "pyvenv.cfg", "pyproject.toml", "setup.cfg", "uv.toml", "conftest.py", "pytest.ini", "tox.ini",
     ".env", ".venv/pyvenv.cfg",
     // builds that a program starts
     ".cargo/config", ".cargo/config.toml", "Cargo.toml", "rust-toolchain", "rust-toolchain.toml",
     "go.mod", "go.work", "Directory.Build.props", "Directory.Build.targets",
     "Directory.Packages.props", "global.json", "nuget.config", "NuGet.Config", "settings.gradle",
     "settings.gradle.kts", "gradle.properties", "pom.xml", ".mvn", "MODULE.bazel", "WORKSPACE",
     ".bazelrc", "Project.toml", "JuliaProject.toml", "LocalPreferences.toml", "Gemfile",
     // versions of interpreters
     ".python-version", ".node-version", ".nvmrc", ".ruby-version", ".tool-versions", ".mise.toml",
     "mise.toml"});

// Returns true for code in a folder of Node's modules. Other names that begin with a dot are
// caches.
bool is_node_module(std::string_view name) {
  const bool is_cache = name.starts_with('.') && !name.starts_with(".bin/");
  return !is_cache && (sys::is_module(name) || name.ends_with(".json") || name.ends_with(".node") ||
                       name.find('.', name.rfind('/') + 1) == std::string_view::npos);
}

// Has Python compile the modules below a folder. Modules of other versions stay as they are.
void compile_modules(const Job& job, const std::string& python, const std::string& folder,
                     const sys::Stop& stop) {
  if (!job.files().executable(python) || job.files().kind(folder) != sys::Kind::folder) return;
  constexpr double k_max_seconds = 900;
  job.log(
      fmt::format("having Python compile {}, so that it writes nothing there meanwhile", folder));
  sys::ProcessSpec spec;
  spec.argv = {python, "-I", "-S", "-m", "compileall", "-q", "-j", "0", folder};
  spec.timeout_seconds = k_max_seconds;
  spec.whole_output = false;
  (void)job.world.processes.run(spec, stop);
}

std::string python_of(const std::string& environment) {
  return sys::join_path(environment, "bin/python");
}

// Records the folders of packages that the user installed, one for each version of Python, to
// notice changes during the measurement.
void seal_user_packages(const Job& job, const std::string& folder, source::Seal& seal,
                        const sys::Stop& stop) {
  for (const std::string& version : job.files().list(folder).value_or(std::vector<std::string>())) {
    const auto python = sys::find_program(job.files(), version, ".", job.variable("PATH"));
    if (python && version.starts_with("python"))
      compile_modules(job, *python, sys::join_path(folder, version), stop);
  }
  seal.add_start_place(job.files(), folder, folder, is_python_file);
}

// Records the folders outside of the work tree in which programs, libraries and modules are looked
// up, to notice changes during the measurement.
void seal_search_folders(const Job& job, source::Seal& seal, const sys::Stop& stop) {
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
    prepare_environment(job, environment, seal, stop);
    seal.add_start_place(job.files(), packages, packages, is_python_file);
  }
}

}  // namespace

bool is_package_code(std::string_view name) {
  return name.find("__pycache__/") == std::string_view::npos &&
         (sys::is_module(name) || name.ends_with(".pth"));
}

bool is_python_file(std::string_view name) {
  const bool is_compiled =
      name.find("__pycache__/") != std::string_view::npos && name.ends_with(".pyc");
  return is_package_code(name) || is_compiled;
}

// Has Python compile the modules of an environment that both sides (base and candidate) share, so
// that it writes none meanwhile. Records the installation behind it.
void prepare_environment(const Job& job, const std::string& environment, source::Seal& seal,
                         const sys::Stop& stop) {
  constexpr std::uint64_t k_max_bytes = 65536;
  const std::string python = python_of(environment), libraries = sys::join_path(environment, "lib");
  compile_modules(job, python, libraries, stop);
  const auto settings = job.files().read(sys::join_path(environment, "pyvenv.cfg"), k_max_bytes);
  for (const std::string& line : text::lines(settings.value_or(""))) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos ||
        text::trim(std::string_view(line).substr(0, equals)) != "home")
      continue;
    const std::string programs(text::trim(std::string_view(line).substr(equals + 1)));
    const std::string installation = sys::folder_of(programs);
    // The system's own is root's.
    if (!installation.starts_with('/') || installation == "/" || installation == "/usr") continue;
    for (const std::string& version :
         job.files().list(libraries).value_or(std::vector<std::string>())) {
      const std::string modules = sys::join_path(installation, "lib/" + version);
      compile_modules(job, python, modules, stop);
      seal.add_start_place(job.files(), modules, modules, is_python_file);
    }
  }
}

// Records what programs in `folder` look for in the folders above it ("node_modules"), to notice
// later changes.
void seal_folders_above(const Job& job, const std::string& folder, source::Seal& seal) {
  for (std::string above = folder; above.size() > 1;) {
    above = sys::folder_of(above);
    for (const std::string_view name : k_names_above) {
      const std::string path = sys::join_path(above, std::string(name));
      const bool is_of_node = name == "node_modules";
      seal.add_start_place(job.files(), path, path, [is_of_node](std::string_view file) {
        return !is_of_node || is_node_module(file);
      });
    }
  }
}

// Records all files that shells, interpreters and drivers load before a program's code, to notice
// changes during the measurement.
void seal_start_files(const Job& job, source::Seal& seal, const sys::Stop& stop) {
  seal_search_folders(job, seal, stop);
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
    seal_user_packages(job, path, seal, stop);
}

}  // namespace weir::flow
