// Runs the ops of one token, in the order of the forward pass.
//
// A backend owns the activations ("slots"), the cache of keys and values and, on a GPU, the
// weights. Ops return nothing: a GPU records them, and finish() returns their errors. Not to be
// shared between threads. The model outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/base/result.hpp"

#include "tools/engine/counts.hpp"
#include "tools/engine/model.hpp"

namespace weir::engine {

// Vectors between ops. `state` is the residual stream.
enum class Slot : std::uint8_t {
  state,
  normed,
  query,
  key,
  value,
  attended,
  gate,
  up,
  logits,
};
inline constexpr std::size_t k_slots = 9;
[[nodiscard]] std::uint32_t slot_size(Slot slot, const Sizes& sizes);

// Cosine and sine for each pair of values of a head at a position: sizes.head values.
void angles_at(const Model& model, std::uint32_t position, std::span<float> angles);

struct Product {
  const Tensor& weights;
  Slot out;
};
enum class Output { overwrite, add };

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string name() const = 0;    // "CPU", "Vulkan"
  [[nodiscard]] virtual std::string device() const = 0;  // "llvmpipe (LLVM 15.0.6, 256 bits)"

  // state = the token's row of the embedding. Looked up by the CPU on any backend.
  virtual void embed(std::uint32_t token) = 0;
  // out = in / sqrt(mean(in²) + epsilon) * weights (Zhang and Sennrich 2019).
  virtual void rms_norm(Slot in, const Tensor& weights, Slot out) = 0;
  // Products of matrices with one vector, independent of each other: done at once.
  virtual void multiply(Slot in, std::span<const Product> products, Output into) = 0;
  // Turns query and key by their position, and puts key and value into the cache.
  virtual void rotate_and_store(std::uint32_t layer, std::uint32_t position) = 0;
  // attended = softmax(query · keys / sqrt(head)) · values, over positions up to this one.
  virtual void attend(std::uint32_t layer, std::uint32_t position) = 0;
  // gate = silu(gate) * up.
  virtual void activate() = 0;
  // gate = silu(gate weights · in) * (up weights · in): two products and activate() in one kernel.
  virtual void gate_and_up(Slot in, const Tensor& gate, const Tensor& up) = 0;
  // Finds the largest of the logits, the first among equals. With `share`, its softmax, too.
  virtual void select_token(bool share) = 0;

  // Waits for all ops: afterwards the values below are those of the last ops.
  [[nodiscard]] virtual Result<void> finish() = 0;
  [[nodiscard]] virtual std::uint32_t selected_token() const = 0;
  [[nodiscard]] virtual std::optional<float> chosen_share() const = 0;

  // The rest is no part of a forward pass but for tests, tools and faults (faults.hpp); it may be
  // slow.
  //
  // Copies a slot to the host: copied() returns its values after the next wait().
  virtual void copy_out(Slot slot) = 0;
  [[nodiscard]] virtual Result<void> wait() = 0;
  [[nodiscard]] virtual std::vector<float> copied(Slot slot) const = 0;
  virtual void write(Slot slot, std::span<const float> values) = 0;
  // Ops after it begin when all ops before it are done; on a CPU all workers meet.
  virtual void barrier() = 0;
  // Multiplies with slower kernels from here on.
  [[nodiscard]] virtual Result<void> use_worse_kernels() = 0;
};

// Code::unavailable if a kernel is missing (missing.hpp). `threads`: at least 1.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_cpu_backend(const Model& model,
                                                                unsigned threads, Counts& counts);
// The Vulkan device of that number (in the driver's order); Code::unavailable where there is none.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_vulkan_backend(const Model& model,
                                                                   unsigned device, Counts& counts);

}  // namespace weir::engine
