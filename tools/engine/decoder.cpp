// The forward pass of a llama model, as ops of a backend.
#include "tools/engine/decoder.hpp"

#include <cmath>

namespace weir::engine {

// A GPU gets its work in pieces: a command buffer of thousands of tokens would look like a hang.
constexpr std::uint32_t k_tokens_at_once = 64;

// Returns how many floats a slot (a named vector of the computation) has.
std::uint32_t slot_size(Slot slot, const Sizes& sizes) {
  switch (slot) {
    case Slot::state:
    case Slot::normed:
      return sizes.embedding;
    case Slot::query:
    case Slot::attended:
      return sizes.queries();
    case Slot::key:
    case Slot::value:
      return sizes.keys();
    case Slot::gate:
    case Slot::up:
      return sizes.feed_forward;
    case Slot::logits:
      return sizes.vocabulary;
  }
  return 0;
}

void angles_at(const Model& model, std::uint32_t position, std::span<float> angles) {
  for (std::size_t pair = 0; pair < model.frequencies.size(); ++pair) {
    const float angle = static_cast<float>(position) * model.frequencies[pair];
    angles[2 * pair] = std::cos(angle);
    angles[2 * pair + 1] = std::sin(angle);
  }
}

// Runs the model on the tokens, one after another, and returns the token that comes next. Fails if
// they don't fit into the context.
Result<std::uint32_t> Decoder::evaluate(std::span<const std::uint32_t> tokens) {
  if (tokens.empty() || tokens.size() > model_.sizes.context - position_) {
    return fail(Code::usage, "{} tokens at position {} do not fit into a context of {}",
                tokens.size(), position_, model_.sizes.context);
  }
  for (const std::uint32_t token : tokens) {
    if (token >= model_.sizes.vocabulary) {
      return fail(Code::usage, "token {} is not in a vocabulary of {}", token,
                  model_.sizes.vocabulary);
    }
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    backend_.embed(tokens[i]);
    for (std::uint32_t index = 0; index < model_.sizes.layers; ++index) {
      counts_.set_layer(static_cast<std::int32_t>(index));
      evaluate_layer(index);
    }
    counts_.set_layer(WEIR_LAYER_UNKNOWN);
    ++position_;
    const bool is_last = i + 1 == tokens.size();
    if (!is_last && (i + 1) % k_tokens_at_once == 0) WEIR_CHECK(backend_.finish());
  }
  backend_.rms_norm(Slot::state, model_.output_norm, Slot::normed);
  multiply(Slot::normed, {{model_.output, Slot::logits}}, Output::overwrite);
  backend_.select_token(switches_.reports_probability);
  WEIR_CHECK(backend_.finish());
  counts_.evaluated(static_cast<std::uint32_t>(tokens.size()));
  return backend_.selected_token();
}

// Evaluates one layer for one token: attention, then the feed-forward network. Each adds to the
// state.
void Decoder::evaluate_layer(std::uint32_t index) {
  const Layer& weights = model_.layers[index];
  backend_.rms_norm(Slot::state, weights.attention_norm, Slot::normed);
  multiply(Slot::normed,
           {{weights.query, Slot::query}, {weights.key, Slot::key}, {weights.value, Slot::value}},
           Output::overwrite);
  backend_.rotate_and_store(index, position_);
  backend_.attend(index, position_);
  multiply(Slot::attended, {{weights.output, Slot::state}}, Output::add);

  backend_.rms_norm(Slot::state, weights.ffn_norm, Slot::normed);
  if (switches_.fused_ffn) {
    backend_.gate_and_up(Slot::normed, weights.gate, weights.up);
  } else {
    multiply(Slot::normed, {{weights.gate, Slot::gate}, {weights.up, Slot::up}}, Output::overwrite);
    backend_.activate();
  }
  multiply(Slot::gate, {{weights.down, Slot::state}}, Output::add);
}

void Decoder::multiply(Slot in, std::initializer_list<Product> products, Output into) {
  if (switches_.batch) {
    backend_.multiply(in, {products.begin(), products.size()}, into);
    return;
  }
  for (const Product& product : products) backend_.multiply(in, {&product, 1}, into);
}

}  // namespace weir::engine
