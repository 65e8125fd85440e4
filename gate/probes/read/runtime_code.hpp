// Finds the files of a program that contain code for a GPU, and checks that a CUDA or HIP twin has
// all the libraries and functions that they need. Reads files; nothing is run.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/probes/read/runtime_api.hpp"
#include "gate/probes/read/runtime_kernels.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

struct RuntimeCode {
  std::vector<std::string> files;  // files with code; empty if the program opens them at run time
  std::string stamp;               // changes when one of them is rebuilt
  // A Python environment's libraries name folders where the real ones may lie: the names under which
  // the twin has to be loaded before them, and the functions that it lacks.
  std::vector<std::string> preloads;
  std::set<std::string> missing;
};

// Searches a program, its libraries and plug-ins. Fails with Code::unavailable if one of them needs
// a library or function that the twin (in the folder `libraries`) lacks, or is linked statically
// with the API's runtime. A Python environment's packages do not fail: a program may use a part of
// them.
[[nodiscard]] Result<RuntimeCode> find_runtime_code(const RuntimeApi& api,
                                                    const std::string& program,
                                                    const std::string& libraries,
                                                    const sys::Files& files,
                                                    const Lookup& environment);

[[nodiscard]] Result<RuntimeKernels> read_runtime_kernels(const RuntimeApi& api,
                                                          const RuntimeCode& code,
                                                          const CodeTarget& target,
                                                          const sys::Files& files);

}  // namespace weir::probes
