// The APIs whose runtime libraries a twin stands in for, CUDA and HIP: all in which they differ.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"

namespace weir::probes {

struct PartialFile;
struct RuntimeKernels;
struct Twin;

// The GPU that code runs on.
struct CodeTarget {
  int major = 0, minor = 0;  // compute capability
  std::string target{};      // HIP's: "gfx1100", "gfx90a:sramecc+:xnack-"; "" for CUDA

  // "89", "gfx90a.sramecc+.xnack-".
  [[nodiscard]] std::string file_name() const;
};

// Values that a description leaves out, as they depend on the GPU's generation alone.
struct RuntimeGeneration : CodeTarget {
  std::vector<std::pair<const char*, std::uint64_t>> attributes;  // by name
};

// An attribute of devices: its number in the API, and its name there without the prefix.
struct RuntimeAttribute {
  int number;
  const char* name;
  int value;  // default, true of every GPU of the last ten years; 0: unknown
};

struct RuntimeApi {
  const char* name;  // a device of weir.yaml, and the section of a description: "cuda"
  const char* title;

  // Descriptions.
  Json Twin::*section;
  const char* generation_key;  // "compute_capability"
  Result<RuntimeGeneration> (*find_generation)(const std::string& text);
  std::int64_t driver_version;  // default
  const char* multiprocessors;  // the attribute with their number
  std::span<const RuntimeAttribute> attributes;

  // Libraries.
  const char* library;                         // the twin's own
  std::span<const char* const> names;          // under which programs load it
  std::span<const char* const> opened;         // of these, what packages open by themselves
  std::span<const std::string_view> stems;     // beginnings of the names of all the API's libraries
  std::string_view runtime;                    // of these, the one that programs with kernels need
  std::span<const std::string_view> prefixes;  // beginnings of functions, and of other names, too
  bool (*is_function)(std::string_view name);
  const char* link_advice;  // for a program with the runtime inside

  // Kernels.
  std::string_view code_section;
  int reader;  // differs when the same file gives another table
  Result<RuntimeKernels> (*read_kernels)(std::span<const PartialFile> files,
                                         const CodeTarget& target);
};
extern const RuntimeApi k_cuda_runtime, k_hip_runtime;

[[nodiscard]] std::span<const RuntimeApi* const> runtime_apis();
// Null for a device that has no such twins.
[[nodiscard]] const RuntimeApi* find_runtime_api(std::string_view name);
// Returns true for the driver's library and those of the API's toolkit.
[[nodiscard]] bool is_library_of(const RuntimeApi& api, std::string_view name);

}  // namespace weir::probes
