// Injected regressions, for trying a gate on: --inject NAME makes the engine do the same work
// worse, in one of the ways in which real engines got slower in silence. What it generates stays
// the same.
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

enum class Fault : std::uint8_t {
  cpu_split,
  op_on_cpu,
  unbatched_qkv,
  lost_fusion,
  extra_barriers,
  extra_copy,
  slow_kernel,
};

// The backend and settings that a fault is for: not every fault changes something everywhere.
struct Target {
  bool vulkan = false;
  unsigned threads = 1;  // the CPU backend's
  Switches switches;
};

// Parses "cpu-split". Code::usage, with the list of names, for any other word.
[[nodiscard]] Result<Fault> parse_fault(const std::string& name);
// A line for each fault: its name, its effect, its backends.
[[nodiscard]] std::string list_faults();
// Code::usage if one of them would change nothing, with the reason and those that would.
[[nodiscard]] Result<void> check_faults(std::span<const Fault> faults, const Target& target);

// Puts each of `faults` once into `backend`. `model` and `counts` outlive the result.
// REQUIRES: check_faults().
[[nodiscard]] Result<std::unique_ptr<Backend>> add_faults(std::unique_ptr<Backend> backend,
                                                          std::span<const Fault> faults,
                                                          const Model& model, Counts& counts);

}  // namespace weir::engine
