// The forward pass of a llama model, in words that every backend understands, and greedy decoding.
#pragma once

#include <cstdint>
#include <span>

#include "tools/engine/backend.hpp"
#include "tools/engine/model.hpp"

namespace weir::engine {

struct Switches {
  bool batch = true;                 // independent products in one dispatch
  bool fused_ffn = false;            // gate, up and activation in one dispatch
  bool reports_probability = false;  // the softmax of each chosen token
};

class Decoder {
 public:
  Decoder(const Model& model, Backend& backend, Switches switches, Counts& counts)
      : model_(model), backend_(backend), switches_(switches), counts_(counts) {}

  // Forgets all positions.
  void restart() { position_ = 0; }
  [[nodiscard]] std::uint32_t position() const { return position_; }

  // Evaluates tokens at the next positions and finds what comes after the last one.
  // Code::usage when there is no room for them or one is not in the vocabulary.
  [[nodiscard]] Result<std::uint32_t> evaluate(std::span<const std::uint32_t> tokens);

 private:
  void evaluate_layer(std::uint32_t index);
  void multiply(Slot in, std::initializer_list<Product> products, Output into);

  const Model& model_;
  Backend& backend_;
  Switches switches_;
  Counts& counts_;
  std::uint32_t position_ = 0;
};

}  // namespace weir::engine
