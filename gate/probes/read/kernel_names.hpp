// Gives kernels readable names: from C++ symbols, and from shader files where the program has none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/profile/counts.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// "_Z12rms_norm_f32ILi256ELb1EEvPKfPf" -> "rms_norm_f32<256, true>": a C++ symbol without return
// type, parameters, and scopes that differ between builds. "DawnDbg=1;Dawn_ShaderModule_scale" ->
// "scale". Other names stay as they are.
[[nodiscard]] std::string readable_kernel_name(const std::string& symbol);

struct ShaderFile {
  std::string name;  // "gemv_f32" of shaders/gemv_f32.spv; relative to the pattern's folder
  std::uint64_t hash = 0;
};

// The files that match `pattern` ("/src/shaders/**/*.spv"; "*" also crosses folders), by name.
// Fails with Code::config where there are none or too many, with Code::io or Code::data on one that
// cannot be read.
[[nodiscard]] Result<std::vector<ShaderFile>> find_shaders(const sys::Files& files,
                                                           const std::string& pattern);

// Renames kernels like "main@9d548dcf01234567", the Vulkan probe's name for a pipeline without one,
// to their shader's name. Pipelines with specialization constants keep theirs. Sets
// `counts.kernels_named` if all kernels have names now.
void name_kernels(std::span<const ShaderFile> shaders, profile::ProbeCounts& counts);

}  // namespace weir::probes
