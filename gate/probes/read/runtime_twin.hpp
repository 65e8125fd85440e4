// Compiles a section of a GPU's description to the bytes that the stand-in libraries of a CUDA or
// HIP twin map (gate/probes/twin/runtime/blob.h). Pure.
//
// A section stands in the description's "weir" under the API's name (docs/reference/devices.md):
// {"cuda": {"name", "compute_capability", "multiprocessors", "memory_bytes", …, "attributes":
// {"L2_CACHE_SIZE": n}}}; HIP's has "target" in place of the capability. Attributes that depend on
// the GPU's generation alone come from tables. An attribute of the description overrides them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gate/probes/read/runtime_api.hpp"
#include "gate/probes/read/twins.hpp"

namespace weir::probes {

struct RuntimeTwin : CodeTarget {
  std::string blob{};  // weir_runtime_twin
  std::string name{};  // the device's name
};

constexpr std::int64_t k_max_runtime_devices = 16;

// Compiles a twin with `devices` such GPUs, between 1 and k_max_runtime_devices, for the API
// ("cuda", "hip"). Fails with Code::data where the description has no such section, or an invalid
// one.
[[nodiscard]] Result<RuntimeTwin> compile_runtime_twin(const Twin& twin, std::string_view api,
                                                       std::int64_t devices);

}  // namespace weir::probes
