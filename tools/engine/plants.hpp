// Planted regressions, for trying a gate on: --inject NAME makes the engine do the same work worse,
// in one of the ways in which real engines got slower in silence. What it generates stays the same.
//
// A fault stands between the forward pass and the backend and changes what an op does: neither of
// these knows of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/engine/backend.hpp"
#include "tools/engine/decoder.hpp"

namespace weir::engine {

enum class Plant : std::uint8_t {
  cpu_split,
  op_on_cpu,
  unbatched_qkv,
  lost_fusion,
  extra_barriers,
  extra_copy,
  slow_kernel,
};

// Where a fault is to be planted: not every one has something to spoil everywhere.
struct Ground {
  bool vulkan = false;
  unsigned threads = 1;  // of the CPU backend
  Switches switches;
};

// "cpu-split" → its fault. Code::usage with the known ones.
[[nodiscard]] Result<Plant> parse_plant(const std::string& name);
// A line each: name, what it does, where.
[[nodiscard]] std::string plants_text();
// Code::usage where one of them would change nothing, with why and which would do.
[[nodiscard]] Result<void> check_plants(std::span<const Plant> plants, const Ground& ground);

// `backend` with these faults in it; each once, however often it is named. `model` and `counts`
// outlive it. REQUIRES: check_plants().
[[nodiscard]] Result<std::unique_ptr<Backend>> planted(std::unique_ptr<Backend> backend,
                                                       std::span<const Plant> plants,
                                                       const Model& model, Counts& counts);

}  // namespace weir::engine
