// Reads a file of recorded kernels (gate/probes/recorded_kernels.h). Pure. The bytes are hostile;
// results are consistent, so that they can be handed to Vulkan without further checks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/recorded_kernels.h"
#include "gate/sys/files.hpp"

namespace weir::probes {

struct RecordedFeatures {
  std::uint32_t type = 0;  // VkStructureType
  std::string values;      // the struct's bytes behind sType and pNext
};

struct RecordedDevice {
  std::uint32_t index = 0;  // in the probe file
  std::uint32_t api_version = 0;
  std::vector<std::string> extensions;
  std::vector<RecordedFeatures> features;
};

struct RecordedCode {
  std::uint64_t hash = 0;
  std::vector<std::uint32_t> words;  // SPIR-V; only the magic number was checked
};

struct RecordedPipeline {
  weir_kernels_pipeline head{};  // device and code are indices into RecordedKernels
  std::string entry_point;
  std::vector<weir_kernels_binding> bindings;  // buffers alone; each (set, binding) once
  std::vector<weir_kernels_constant> constants;
  std::string data;
};

struct RecordedWork {
  std::string name;  // the kernel's
  std::uint32_t kernel = 0, pipeline = 0;
  std::array<std::uint32_t, 3> groups{};
  std::uint64_t count = 0;  // how often it reached the device; at least 1
  std::vector<weir_kernels_buffer> buffers;
  // Each lies within its buffer's span, and has a binding of its type in the pipeline.
  std::vector<weir_kernels_descriptor> descriptors;
  std::string push;
};

struct RecordedKernels {
  std::uint32_t pid = 0;
  std::vector<RecordedDevice> devices;
  std::vector<RecordedCode> codes;
  std::vector<RecordedPipeline> pipelines;
  std::vector<RecordedWork> works;
  std::array<std::uint64_t, WEIR_LEFT_REASONS> left_out{};  // dispatches
};

// The largest file that is read: what WEIR_PROBE_KERNELS may ask for, in MiB.
constexpr std::uint64_t k_max_kernels_mib = 4096;

// Fails with Code::data on another kind of file, another version, or inconsistent records.
[[nodiscard]] Result<RecordedKernels> read_recorded_kernels(std::string_view bytes);

// Exit codes of weir-compile-vulkan if a pipeline takes too much time or memory.
constexpr int k_exit_slow = 4, k_exit_memory = 5;

// Reads a file; errors start with its name.
[[nodiscard]] Result<RecordedKernels> read_recording(const sys::Files& files,
                                                     const std::string& path,
                                                     std::uint64_t max_bytes = k_max_kernels_mib
                                                                               << 20);

// The reason why a dispatch was left out: "its group counts lie in the device's memory".
[[nodiscard]] std::string_view left_out_reason(std::size_t reason);

// Paths of the recordings in `folder`, sorted; fails with Code::data where there are none.
[[nodiscard]] Result<std::vector<std::string>> recorded_kernel_files(const sys::Files& files,
                                                                     const std::string& folder);

}  // namespace weir::probes
