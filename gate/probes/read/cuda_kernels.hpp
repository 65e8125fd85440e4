// Reads the resources that a program's kernels need from their machine code: registers, shared
// memory, threads. The stand-in libraries of a CUDA twin map the table as it is
// (gate/probes/twin/runtime/blob.h).
//
// nvcc puts the code for all GPUs into the section .nv_fatbin, one container a source file: machine
// code (ELF), and PTX, which drivers compile. The format is not documented; this one was derived
// from binaries of CUDA 12.4 to 13.1. Bytes are hostile. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::probes {

// Increase it when the same file gives another table: names of cached tables contain it.
inline constexpr int k_cuda_reader = 6;

struct CudaKernels {
  std::string table;        // weir_runtime_kernels
  std::size_t kernels = 0;  // in it
  // Kernels for which the GPU has only PTX: their numbers come from another GPU's machine code.
  std::size_t guessed = 0;
  std::size_t unread = 0;  // images that could not be unpacked
};

// True if the file contains CUDA code.
[[nodiscard]] bool holds_cuda_code(std::string_view elf);

// The kernels of all files together, for a GPU of compute capability `major`.`minor`. If several
// have the same name, the first counts. Fails with Code::data where a container contradicts itself.
[[nodiscard]] Result<CudaKernels> read_cuda_kernels(std::span<const std::string_view> elves,
                                                    int major, int minor);

}  // namespace weir::probes
