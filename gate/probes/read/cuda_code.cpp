// Checks that a CUDA twin can run a program, and finds the files with its kernels.
#include "gate/probes/read/cuda_code.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::uint64_t k_largest_library = std::uint64_t{4} << 30;
constexpr std::size_t k_max_names_listed = 8;

// Returns true for the driver's library and those of the CUDA toolkit.
bool is_cuda_library(std::string_view name) {
  constexpr std::array k_stems = {"libcuda.so", "libcudart.so", "libcublas",   "libnccl.so",
                                  "libcufft",   "libcusparse",  "libcusolver", "libcurand",
                                  "libcudnn",   "libnvrtc",     "libnvJitLink"};
  return std::ranges::any_of(k_stems,
                             [&](std::string_view stem) { return name.starts_with(stem); });
}

bool is_cuda_function(std::string_view name) {
  const bool is_driver_call =
      name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
  return is_driver_call || name.starts_with("cuda") || name.starts_with("__cuda") ||
         name.starts_with("cublas") || name.starts_with("nccl");
}

// Reads the imported and exported functions of a library that may be CUDA's.
Result<ProgramFile> read_cuda_functions(const std::string& path, const sys::Files& files) {
  constexpr std::array<std::string_view, 3> k_prefixes = {"cu", "__cuda", "nccl"};
  WEIR_TRY(const std::string bytes, files.read(path, k_largest_library));
  return read_program_file(bytes_of(bytes), k_prefixes);
}

// Fails if a CUDA twin lacks a library or function of CUDA's that `library` needs. `twin`: the
// twin's own library.
Result<void> check_twin_has_all(const LoadedLibrary& library, const ProgramFile& twin_library,
                                const sys::Files& files) {
  std::vector<std::string> missing;
  for (const std::string& name : library.file.needed) {
    if (is_cuda_library(name) && !holds(k_cuda_libraries, name)) missing.push_back(name);
  }
  if (!missing.empty()) {
    return fail(
        Code::unavailable, "{} needs {}, which CUDA twins do not have (they stand in for {})",
        library.name, text::join(missing),
        text::join(std::vector<std::string>(k_cuda_libraries.begin(), k_cuda_libraries.end())));
  }
  WEIR_TRY(const ProgramFile functions, read_cuda_functions(library.path, files));
  for (const std::string& name : functions.imported) {
    if (is_cuda_function(name) && !twin_library.exports(name)) missing.push_back(name);
  }
  if (missing.empty()) return {};
  const std::size_t more = missing.size() - std::min(missing.size(), k_max_names_listed);
  missing.resize(missing.size() - more);
  return fail(Code::unavailable, "{} calls {}{}, which CUDA twins do not have yet", library.name,
              text::join(missing), more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

// Finds the files with CUDA code among a program, its libraries and plug-ins. Fails where a CUDA
// twin cannot replace the CUDA libraries that one needs.
Result<CudaCode> find_cuda_code(const std::string& program, const std::string& libraries,
                                const sys::Files& files, const Lookup& environment) {
  CudaCode code;
  auto facts = read_program_facts(program, files, environment);
  // We cannot read what a script opens: that is seen when it runs.
  if (!facts || facts->file.kind != FileKind::elf) return code;
  WEIR_TRY(const ProgramFile twin_library,
           read_cuda_functions(sys::join_path(libraries, k_cuda_libraries.front()), files));
  std::vector<LoadedLibrary> candidates = std::move(facts->plug_ins);
  candidates.insert(candidates.end(), facts->libraries.begin(), facts->libraries.end());
  candidates.push_back({sys::file_name_of(facts->path), facts->path, "", facts->file});
  for (const LoadedLibrary& library : candidates) {
    if (is_cuda_library(library.name)) continue;  // the twin's own library replaces it
    const bool uses_cuda = std::ranges::any_of(library.file.needed, is_cuda_library);
    if (uses_cuda) WEIR_CHECK(check_twin_has_all(library, twin_library, files));
    const bool has_dynamic_runtime = std::ranges::any_of(
        library.file.needed,
        [](const std::string& name) { return name.starts_with("libcudart.so"); });
    if (!has_dynamic_runtime) {
      WEIR_TRY(const std::string bytes, files.read(library.path, k_largest_library));
      if (!holds_cuda_code(bytes)) continue;
      return fail(Code::unavailable,
                  "{} has CUDA's runtime inside, which a CUDA twin cannot stand in for; link it "
                  "dynamically (nvcc --cudart shared; CMake: CUDA_RUNTIME_LIBRARY Shared)",
                  library.name);
    }
    WEIR_TRY(const std::string stamp, files.stamp(library.path));
    code.files.push_back(library.path);
    code.stamp += library.path + "\n" + stamp + "\n";
  }
  return code;
}

Result<CudaKernels> read_cuda_kernels(const CudaCode& code, int major, int minor,
                                      const sys::Files& files) {
  std::vector<std::string> texts;
  for (const std::string& path : code.files) {
    WEIR_TRY(texts.emplace_back(), files.read(path, k_largest_library));
  }
  const std::vector<std::string_view> elves(texts.begin(), texts.end());
  return read_cuda_kernels(elves, major, minor);
}

}  // namespace weir::probes
