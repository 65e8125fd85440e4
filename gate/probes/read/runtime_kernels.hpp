// Reads the resources that a program's kernels need from their machine code: registers, shared
// memory, threads. The stand-in libraries of a CUDA or HIP twin map the table as it is
// (gate/probes/twin/runtime/blob.h). Bytes are hostile. Pure: reads by functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"
#include "gate/probes/read/gpu_code.hpp"
#include "gate/probes/read/runtime_api.hpp"
#include "gate/probes/twin/runtime/blob.h"

namespace weir::probes {

struct RuntimeKernels {
  std::string table;        // weir_runtime_kernels
  std::size_t kernels = 0;  // in it
  // Kernels for which the GPU has only PTX: their numbers come from another GPU's machine code.
  std::size_t guessed = 0;
  std::size_t unread = 0;  // images or bundles that could not be unpacked
  // HIP: those that the files have code for, of any GPU.
  std::set<std::string> targets{};
};

// Entries by their keys, and the table of them.
using KernelEntries = std::map<std::uint64_t, weir_runtime_kernel>;
[[nodiscard]] std::string kernel_table(const KernelEntries& entries);
inline constexpr std::size_t k_empty_kernel_table = sizeof(weir_runtime_kernels);  // its bytes

// CUDA. nvcc puts the code for all GPUs into a section, one container a source file: machine code
// (ELF), and PTX, which drivers compile. The format is not documented; this one was derived from
// binaries of CUDA 12.4 to 13.1.

// Increase it when the same file gives another table: names of cached tables contain it.
inline constexpr int k_cuda_reader = 6;
inline constexpr std::string_view k_cuda_code_section = ".nv_fatbin";

// The kernels of all files together, for a GPU of compute capability `major`.`minor`. If several
// have the same name, the first counts. Fails with Code::data where a container contradicts itself.
[[nodiscard]] Result<RuntimeKernels> read_cuda_kernels(std::span<const std::string_view> elves,
                                                       int major, int minor);
[[nodiscard]] Result<RuntimeKernels> read_cuda_kernels(std::span<const PartialFile> files,
                                                       const CodeTarget& target);

// HIP. The compiler puts bundles into a section, one a source file (amd_code.hpp).

inline constexpr int k_hip_reader = 1;
inline constexpr std::string_view k_hip_code_section = ".hip_fatbin";

// The kernels of all files together for the target of a GPU; none if they have no code for it. If
// a bundle has several of one name that fit, the first counts. Fails with Code::data where code
// contradicts itself.
[[nodiscard]] Result<RuntimeKernels> read_hip_kernels(std::span<const PartialFile> files,
                                                      const CodeTarget& target);

}  // namespace weir::probes
