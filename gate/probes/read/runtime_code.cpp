// Checks that a twin can run a program, and finds the files with its kernels.
#include "gate/probes/read/runtime_code.hpp"

#include <algorithm>
#include <memory>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/probes/read/python_environment.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_max_names_listed = 8;

// Opens a file whose parts are read as they are needed.
Result<PartialFile> open_file(const std::string& path, const sys::Files& files) {
  WEIR_TRY(const std::uint64_t bytes, files.size(path));
  WEIR_TRY(sys::FileReader opened, sys::FileReader::open(path));
  const auto reader = std::make_shared<const sys::FileReader>(std::move(opened));
  return PartialFile{bytes, [reader](std::uint64_t offset, std::uint64_t size) {
                       return reader->read_at(offset, size);
                     }};
}

// Reads the imported and exported functions of a library that may be the API's.
Result<ProgramFile> read_functions(const RuntimeApi& api, const std::string& path,
                                   const sys::Files& files) {
  WEIR_TRY(const PartialFile file, open_file(path, files));
  return read_program_file(file.read_at, api.prefixes);
}

// Fails if the twin (a simulated GPU) lacks a library or function of the API that `library` needs.
// `twin_library`: the twin's own library.
Result<void> check_twin_has_all(const RuntimeApi& api, const LoadedLibrary& library,
                                const ProgramFile& twin_library, const sys::Files& files) {
  std::vector<std::string> missing;
  for (const std::string& name : library.file.needed) {
    if (is_library_of(api, name) && !holds(api.names, name)) missing.push_back(name);
  }
  if (!missing.empty()) {
    return fail(Code::unavailable, "{} needs {}, which {} twins do not have (they stand in for {})",
                library.name, text::join(missing), api.title,
                text::join(std::vector<std::string>(api.names.begin(), api.names.end())));
  }
  WEIR_TRY(const ProgramFile functions, read_functions(api, library.path, files));
  for (const std::string& name : functions.imported) {
    if (api.is_function(name) && !twin_library.exports(name)) missing.push_back(name);
  }
  if (missing.empty()) return {};
  const std::size_t more = missing.size() - std::min(missing.size(), k_max_names_listed);
  missing.resize(missing.size() - more);
  return fail(Code::unavailable, "{} calls {}{}, which {} twins do not have yet", library.name,
              text::join(missing), more == 0 ? "" : fmt::format(" and {} more", more), api.title);
}

// Adds a file that has code.
Result<void> add_code(const std::string& path, const sys::Files& files, RuntimeCode& code) {
  WEIR_TRY(const std::string stamp, files.stamp(path));
  code.files.push_back(path);
  code.stamp += path + "\n" + stamp + "\n";
  return {};
}

bool needs_runtime(const RuntimeApi& api, const ProgramFile& file) {
  return std::ranges::any_of(
      file.needed, [&](const std::string& name) { return name.starts_with(api.runtime); });
}

// Returns true if a library has GPU code and the API's runtime linked into it.
Result<bool> holds_runtime(const RuntimeApi& api, const std::string& path, const ProgramFile& facts,
                           const sys::Files& files) {
  if (needs_runtime(api, facts)) return false;
  WEIR_TRY(const PartialFile file, open_file(path, files));
  return has_section(file, api.code_section);
}

tl::unexpected<Error> fail_with_runtime_inside(const RuntimeApi& api, const std::string& library) {
  return fail(Code::unavailable,
              "{} has {}'s runtime inside, which a {} twin cannot stand in for; link it "
              "dynamically ({})",
              library, api.title, api.title, api.link_advice);
}

// Adds the files with GPU code of a Python environment's packages, and of the API's libraries that
// they need and the twin leaves real, such as cuRAND. Fails if only files with the runtime inside
// have code.
Result<void> add_packages(const RuntimeApi& api, const ProgramFacts& program,
                          const ProgramFile& twin_library, const sys::Files& files,
                          RuntimeCode& code) {
  std::set<std::string> needed(api.opened.begin(), api.opened.end());
  const auto add = [&](const LoadedLibrary& package) -> Result<void> {
    WEIR_TRY(const ProgramFile functions, read_functions(api, package.path, files));
    needed.insert(package.file.needed.begin(), package.file.needed.end());
    for (const std::string& name : functions.imported) {
      if (api.is_function(name) && !twin_library.exports(name)) code.missing.insert(name);
    }
    return add_code(package.path, files, code);
  };
  for (const LoadedLibrary& package : program.packages) {
    if (!is_library_of(api, package.name)) WEIR_CHECK(add(package));
  }
  for (const LoadedLibrary& package : program.packages) {
    const bool stays_real = is_library_of(api, package.name) && !holds(api.names, package.name);
    if (stays_real && needed.contains(package.name)) WEIR_CHECK(add(package));
  }
  if (code.files.empty()) {
    const std::vector<std::string> closed = find_static_runtimes(api, program, files);
    if (!closed.empty()) return fail_with_runtime_inside(api, closed.front());
  }
  if (code.files.empty()) return {};
  for (const char* name : api.names) {
    if (needed.contains(name)) code.preloads.emplace_back(name);
  }
  return {};
}

}  // namespace

std::vector<std::string> find_static_runtimes(const RuntimeApi& api, const ProgramFacts& program,
                                              const sys::Files& files) {
  std::vector<std::string> names;
  if (program.environment.empty()) return names;
  for (const std::string& path : libraries_of_environment(program.environment, files)) {
    const std::string name = sys::file_name_of(path);
    if (is_library_of(api, name)) continue;
    const auto functions = read_functions(api, path, files);
    if (!functions || !holds_runtime(api, path, *functions, files).value_or(false)) continue;
    // A library that leaves the runtime to others imports what registers its code.
    const bool imports_runtime =
        std::ranges::any_of(functions->imported, [](const std::string& function) {
          return function.find("RegisterFatBinary") != std::string::npos;
        });
    if (!imports_runtime) names.push_back(name);
  }
  return names;
}

// Finds the files with GPU code among a program, its libraries and plug-ins. Fails if a twin (a
// simulated GPU) cannot stand in for the libraries that they need.
Result<RuntimeCode> find_runtime_code(const RuntimeApi& api, const std::string& program,
                                      const std::string& libraries, const sys::Files& files,
                                      const Lookup& environment) {
  RuntimeCode code;
  auto facts = read_program_facts(program, files, environment);
  // A command of a package, as pip installs it, is a script for the Python beside it.
  const bool is_command = facts && facts->file.kind == FileKind::script &&
                          !python_environment_of(program, files).empty();
  if (is_command) {
    const std::string python = sys::join_path(sys::folder_of(program), "python");
    facts = read_program_facts(python, files, environment);
  }
  // We cannot read what a script opens: that is seen when it runs.
  if (!facts || facts->file.kind != FileKind::elf) return code;
  WEIR_TRY(const ProgramFile twin_library,
           read_functions(api, sys::join_path(libraries, api.names.front()), files));
  std::vector<LoadedLibrary> candidates = std::move(facts->plug_ins);
  candidates.insert(candidates.end(), facts->libraries.begin(), facts->libraries.end());
  candidates.push_back({sys::file_name_of(facts->path), facts->path, "", facts->file});
  for (const LoadedLibrary& library : candidates) {
    if (is_library_of(api, library.name)) continue;  // the twin's own library replaces it
    const bool uses_api = std::ranges::any_of(
        library.file.needed, [&](const std::string& name) { return is_library_of(api, name); });
    WEIR_TRY(const bool has_runtime, holds_runtime(api, library.path, library.file, files));
    if (has_runtime) return fail_with_runtime_inside(api, library.name);
    if (uses_api) WEIR_CHECK(check_twin_has_all(api, library, twin_library, files));
    if (!needs_runtime(api, library.file)) continue;
    WEIR_CHECK(add_code(library.path, files, code));
  }
  WEIR_CHECK(add_packages(api, *facts, twin_library, files, code));
  return code;
}

Result<RuntimeKernels> read_runtime_kernels(const RuntimeApi& api, const RuntimeCode& code,
                                            const CodeTarget& target, const sys::Files& files) {
  std::vector<PartialFile> parts;
  for (const std::string& path : code.files) {
    WEIR_TRY(parts.emplace_back(), open_file(path, files));
  }
  return api.read_kernels(parts, target);
}

}  // namespace weir::probes
