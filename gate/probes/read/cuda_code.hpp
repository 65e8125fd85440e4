// Which files of a program hold CUDA code, and whether a CUDA twin can stand in for the libraries
// that they ask for. Reads files; nothing is run.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/read/cuda_kernels.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// The one library of a CUDA twin, and the names that programs know it by.
inline constexpr const char* k_cuda_twin_library = "libweir_twin_cuda.so";
inline constexpr std::array k_cuda_libraries = {"libcudart.so.12", "libcudart.so.13",
                                                "libcublas.so.12", "libcublas.so.13",
                                                "libcuda.so.1",    "libnccl.so.2"};

struct CudaCode {
  std::vector<std::string> files;  // that hold code; none where the program opens them by itself
  std::string stamp;               // differs when one of them was built again
};

// Of a program, its libraries and plug-ins. Code::unavailable where one of them needs a library or
// a function that the twin's (in the folder `libraries`) do not have, with its name, or has CUDA's
// runtime inside.
[[nodiscard]] Result<CudaCode> find_cuda_code(const std::string& program,
                                              const std::string& libraries, const sys::Files& files,
                                              const Lookup& environment);

[[nodiscard]] Result<CudaKernels> read_cuda_kernels(const CudaCode& code, int major, int minor,
                                                    const sys::Files& files);

}  // namespace weir::probes
