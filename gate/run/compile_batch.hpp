// Processes of weir-compile-vulkan: how one is started, and many pipelines over several of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/run/code_cache.hpp"
#include "gate/run/kernel_compiler.hpp"
#include "gate/sys/process.hpp"

namespace weir::run {

struct CompilerRun {
  sys::Finished finished;
  std::vector<Json> lines;  // objects that it printed
};
// `family`: as the driver calls it. `seconds`: of all that is to be compiled; a driver's start has
// time of its own. Code::interrupted on a stop.
[[nodiscard]] Result<CompilerRun> run_compiler(sys::Processes& processes,
                                               const CompilerPlaces& places,
                                               const std::string& family,
                                               std::vector<std::string> arguments, double seconds,
                                               const sys::Stop& stop);

// Why the process ended before it was through with a pipeline. Not `repeatable`: another time it
// may well be through with it.
struct CompileFailure {
  std::string words;
  bool repeatable = false;
};
[[nodiscard]] CompileFailure compile_failure(const sys::Finished& finished,
                                             const CompilerPlaces& places);

// One that is to be compiled.
struct CompileJob {
  std::size_t file = 0, pipeline = 0;
  std::size_t words = 0;  // size of its SPIR-V
  std::string identity;
  std::string cache_key;      // in the cache
  std::uint64_t threads = 0;  // per workgroup; 0: not known
};

struct CompileEffects {
  sys::Processes& processes;
  const CompilerPlaces& places;
  const std::string& family;
  std::span<const std::string> files;
  const sys::Stop& stop;
  CodeCache& cache;  // gets what would be the same another time
};
// Compiles all jobs. A crash, a hang or a lack of memory costs only the pipeline where it happens
// its figures. Fails with Code::unavailable if nothing can be compiled at all.
[[nodiscard]] Result<CodesByIdentity> compile_all(const CompileEffects& effects,
                                                  std::vector<CompileJob> jobs);

}  // namespace weir::run
