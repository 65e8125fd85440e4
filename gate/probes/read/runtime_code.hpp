// Finds the files of a program that contain code for a GPU, and checks that a CUDA or HIP twin has
// all the libraries and functions that they need. Reads files; nothing is run.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/read/fit.hpp"
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
// with the API's runtime. A Python environment's packages fail only if all that have GPU code have
// the runtime inside: a program may use a part of them.
[[nodiscard]] Result<RuntimeCode> find_runtime_code(const RuntimeApi& api,
                                                    const std::string& program,
                                                    const std::string& libraries,
                                                    const sys::Files& files,
                                                    const Lookup& environment);

// Returns the names of a Python environment's libraries that have GPU code and the API's runtime
// linked into them, which no twin can stand in for. Files that cannot be read are left out.
[[nodiscard]] std::vector<std::string> find_static_runtimes(const RuntimeApi& api,
                                                            const ProgramFacts& program,
                                                            const sys::Files& files);

[[nodiscard]] Result<RuntimeKernels> read_runtime_kernels(const RuntimeApi& api,
                                                          const RuntimeCode& code,
                                                          const CodeTarget& target,
                                                          const sys::Files& files);

}  // namespace weir::probes
