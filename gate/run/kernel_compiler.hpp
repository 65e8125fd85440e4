// Compiles recorded kernels for a GPU that need not be there: Mesa's RADV compiles for a given
// family, in processes of weir-compile-vulkan.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/probes/read/read_kernels.hpp"
#include "gate/profile/counts.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/process.hpp"

namespace weir::run {

struct CompiledCode {
  // "radv-navi31, Mesa 25.0.7-2~bpo12+1": figures of another one are not to be compared with these.
  std::string compiler;
  std::map<std::string, profile::CodeFacts> codes;  // by probes::pipeline_hash()
  std::vector<std::string> warnings;
};

struct CompilerPlaces {
  std::string program;    // weir-compile-vulkan
  std::string driver;     // the manifest of a Vulkan driver: …/icd.d/radeon_icd.json
  std::string libraries;  // a folder of what that driver needs; "": the system has it
  std::string cache;      // a folder for figures; "": none are kept
  double seconds = 30;    // limit for one pipeline
  std::uint64_t memory_mib = 4096;
  std::size_t processes = 0;  // at once; 0: as many as there are cores
};
// By the variable WEIR_MESA (a folder with icd.d/ and, where the driver needs more than the system
// has, lib/), else the Mesa that ci/mesa left in weir's cache, else the system's. `cache_folder`:
// source::default_cache_folder(). Code::unavailable with what to do.
[[nodiscard]] Result<CompilerPlaces> find_compiler(const sys::Files& files,
                                                   const probes::Places& probes,
                                                   const std::string& cache_folder,
                                                   const probes::Lookup& environment);

// Thread-safe.
class KernelCompiler {
 public:
  KernelCompiler(sys::Files& files, sys::Processes& processes, CompilerPlaces places)
      : files_(files), processes_(processes), places_(std::move(places)) {}

  // Code::config for no target, Code::unavailable where the driver does not start for it.
  [[nodiscard]] Result<void> check(const std::string& target, const sys::Stop& stop) {
    return find_driver(target, stop).map([](const Driver&) {});
  }
  // Facts of each pipeline in those files of recorded kernels, as `target` ("radv-navi31") compiles
  // it. One that cannot be compiled has the reason in place of costs, and costs no other one its
  // figures. Code::config for no target, Code::unavailable where the driver does not start.
  [[nodiscard]] Result<CompiledCode> compile(const std::string& target,
                                             std::span<const std::string> files,
                                             const sys::Stop& stop);
  // The machine code of one of them, as text.
  [[nodiscard]] Result<std::string> assembly(const std::string& target, const std::string& file,
                                             const std::string& identity, const sys::Stop& stop);

 private:
  struct Driver {
    std::string family;   // as this driver calls it
    std::string version;  // "Mesa 25.0.7-2~bpo12+1"
  };
  // Asked once for each target.
  [[nodiscard]] Result<Driver> find_driver(const std::string& target, const sys::Stop& stop);

  sys::Files& files_;
  sys::Processes& processes_;
  const CompilerPlaces places_;
  std::mutex mutex_;
  std::map<std::string, Driver> drivers_;
};

}  // namespace weir::run
