#include "gate/probes/read/cuda_code.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::uint64_t k_largest_library = std::uint64_t{4} << 30;
constexpr std::size_t k_most_named = 8;

// Libraries of CUDA's, by their beginnings; the driver's own comes with the device.
bool is_cuda_library(std::string_view name) {
  constexpr std::array k_stems = {"libcuda.so", "libcudart.so", "libcublas",   "libnccl.so",
                                  "libcufft",   "libcusparse",  "libcusolver", "libcurand",
                                  "libcudnn",   "libnvrtc",     "libnvJitLink"};
  return std::ranges::any_of(k_stems,
                             [&](std::string_view stem) { return name.starts_with(stem); });
}

bool is_cuda_function(std::string_view name) {
  const bool driver = name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
  return driver || name.starts_with("cuda") || name.starts_with("__cuda") ||
         name.starts_with("cublas") || name.starts_with("nccl");
}

Result<ProgramFile> functions_of(const std::string& path, const sys::Files& files) {
  constexpr std::array<std::string_view, 3> k_prefixes = {"cu", "__cuda", "nccl"};
  WEIR_TRY(const std::string bytes, files.read(path, k_largest_library));
  return read_program_file(bytes_of(bytes), k_prefixes);
}

Result<void> check_names(const LoadedLibrary& of, const ProgramFile& twin,
                         const sys::Files& files) {
  std::vector<std::string> unknown;
  for (const std::string& name : of.file.needed) {
    if (is_cuda_library(name) && !holds(k_cuda_libraries, name)) unknown.push_back(name);
  }
  if (!unknown.empty()) {
    return fail(
        Code::unavailable, "{} needs {}, which CUDA twins do not have (they stand in for {})",
        of.name, text::join(unknown),
        text::join(std::vector<std::string>(k_cuda_libraries.begin(), k_cuda_libraries.end())));
  }
  WEIR_TRY(const ProgramFile functions, functions_of(of.path, files));
  for (const std::string& name : functions.imported) {
    if (is_cuda_function(name) && !twin.exports(name)) unknown.push_back(name);
  }
  if (unknown.empty()) return {};
  const std::size_t more = unknown.size() - std::min(unknown.size(), k_most_named);
  unknown.resize(unknown.size() - more);
  return fail(Code::unavailable, "{} calls {}{}, which CUDA twins do not have yet", of.name,
              text::join(unknown), more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

Result<CudaCode> find_cuda_code(const std::string& program, const std::string& libraries,
                                const sys::Files& files, const Lookup& environment) {
  CudaCode code;
  auto facts = look_at_program(program, files, environment);
  if (!facts || facts->file.kind != FileKind::elf)
    return code;  // a script: what it opens is seen later
  WEIR_TRY(const ProgramFile twin,
           functions_of(sys::join_path(libraries, k_cuda_libraries.front()), files));
  std::vector<LoadedLibrary> all = std::move(facts->plug_ins);
  all.insert(all.end(), facts->libraries.begin(), facts->libraries.end());
  all.push_back({sys::file_name_of(facts->path), facts->path, "", facts->file});
  for (const LoadedLibrary& one : all) {
    if (is_cuda_library(one.name)) continue;  // a real one, which the twin's stand in front of
    const bool uses = std::ranges::any_of(one.file.needed, is_cuda_library);
    if (uses) WEIR_CHECK(check_names(one, twin, files));
    const bool dynamic = std::ranges::any_of(
        one.file.needed, [](const std::string& name) { return name.starts_with("libcudart.so"); });
    if (!dynamic) {
      WEIR_TRY(const std::string bytes, files.read(one.path, k_largest_library));
      if (!holds_cuda_code(bytes)) continue;
      return fail(Code::unavailable,
                  "{} has CUDA's runtime inside, which a CUDA twin cannot stand in for; link it "
                  "dynamically (nvcc --cudart shared; CMake: CUDA_RUNTIME_LIBRARY Shared)",
                  one.name);
    }
    WEIR_TRY(const std::string stamp, files.stamp(one.path));
    code.files.push_back(one.path);
    code.stamp += one.path + "\n" + stamp + "\n";
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
