// Names for kernels whose program gives them none: those of the shader files they were made of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/profile/counts.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// "_Z12rms_norm_f32ILi256ELb1EEvPKfPf" -> "rms_norm_f32<256, true>": a C++ symbol without what it
// returns, its parameters, and what a compiler numbers anew in each build. Of "DawnDbg=1;
// Dawn_ShaderModule_scale" the label. Others as they are.
[[nodiscard]] std::string kernel_of_symbol(const std::string& symbol);

struct ShaderFile {
  std::string name;  // "gemv_f32" of shaders/gemv_f32.spv: below what `pattern` begins with
  std::uint64_t hash = 0;
};

// The files that `pattern` fits ("/src/shaders/**/*.spv"; "*" also crosses folders), by name.
// Code::config where there are none, or more than can be looked at; Code::io, Code::data.
[[nodiscard]] Result<std::vector<ShaderFile>> find_shaders(const sys::Files& files,
                                                           const std::string& pattern);

// "main@9d548dcf01234567", as the Vulkan probe calls a pipeline without a name, becomes the name of
// its file, where it has one and no constants of its own. Named is a table whose kernels all are.
void name_kernels(std::span<const ShaderFile> shaders, profile::ProbeCounts& counts);

}  // namespace weir::probes
