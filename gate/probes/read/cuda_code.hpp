// Finds the files of a program that contain CUDA code, and checks that a CUDA twin has all the
// libraries and functions that they need. Reads files; nothing is run.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/read/cuda_kernels.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// The library of a CUDA twin, and the names under which programs load it.
inline constexpr const char* k_cuda_twin_library = "libweir_twin_cuda.so";
inline constexpr std::array k_cuda_libraries = {"libcudart.so.12", "libcudart.so.13",
                                                "libcublas.so.12", "libcublas.so.13",
                                                "libcuda.so.1",    "libnccl.so.2"};

struct CudaCode {
  std::vector<std::string> files;  // files with code; empty if the program opens them at run time
  std::string stamp;               // changes when one of them is rebuilt
};

// Searches a program, its libraries and plug-ins. Fails with Code::unavailable if one of them needs
// a library or function that the twin (in the folder `libraries`) lacks, or is linked statically
// with CUDA's runtime.
[[nodiscard]] Result<CudaCode> find_cuda_code(const std::string& program,
                                              const std::string& libraries, const sys::Files& files,
                                              const Lookup& environment);

[[nodiscard]] Result<CudaKernels> read_cuda_kernels(const CudaCode& code, int major, int minor,
                                                    const sys::Files& files);

}  // namespace weir::probes
