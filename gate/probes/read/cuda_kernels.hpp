// What a program's kernels need of a multiprocessor, read from the machine code in it: registers,
// shared memory, threads. The stand-in libraries of a CUDA twin map it as it is
// (gate/probes/twin/cuda/blob.h).
//
// nvcc puts the code of all GPUs into the section .nv_fatbin, one container a source file: machine
// code (ELF), and PTX, which drivers compile. Nothing of that is documented; it was read from
// binaries of CUDA 12.4 to 13.1. Bytes are hostile. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::probes {

// To be raised when the same file gives another table: it is part of the names of kept ones.
inline constexpr int k_cuda_reader = 5;

struct CudaKernels {
  std::string table;        // weir_cuda_kernels
  std::size_t kernels = 0;  // in it
  // Of them: only PTX fits this GPU, so that registers are those of another GPU's machine code.
  std::size_t guessed = 0;
  std::size_t unread = 0;  // images that could not be unpacked
};

// Does the file hold CUDA code at all?
[[nodiscard]] bool holds_cuda_code(std::string_view elf);

// Of a GPU of compute capability `major`.`minor`, of all `elves` together; of a name that stands
// in several the first is taken. Code::data where a container contradicts itself.
[[nodiscard]] Result<CudaKernels> read_cuda_kernels(std::span<const std::string_view> elves,
                                                    int major, int minor);

}  // namespace weir::probes
