// Makes a model of one layer with made-up weights.
#include "benchmarks/micro/shapes.hpp"

#include <cstring>
#include <utility>

namespace weir::micro {
namespace {

using engine::Tensor;
using model::TensorType;

constexpr std::uint32_t k_vocabulary = 32;

// Fills a tensor with random weights. Values and scales are small normal numbers in every type:
// denormals and infinities would be slow on some processors.
void fill(Tensor& tensor, std::span<std::byte> bytes) {
  const auto put = [&](std::size_t block, const auto& value) {
    std::memcpy(bytes.data() + block, &value, sizeof value);
  };
  constexpr std::uint16_t k_half = 0x2000;  // 2^-7
  const model::TensorTypeInfo& info = model::tensor_type_info(tensor.type);
  std::uint32_t state = 1;
  const auto next_random = [&state] {
    state = state * 1664525U + 1013904223U;
    return state;
  };
  for (std::size_t block = 0; block < bytes.size(); block += info.block_bytes) {
    if (tensor.type == TensorType::f32) {
      put(block, static_cast<float>(next_random() >> 24) * 0x1p-14F);
    } else if (tensor.type == TensorType::f16) {
      put(block, static_cast<std::uint16_t>(k_half + (next_random() >> 24)));
    } else {
      for (std::size_t i = 2; i < info.block_bytes; ++i) {
        bytes[block + i] = static_cast<std::byte>(next_random() >> 24);
      }
      put(block, k_half);
    }
  }
}

}  // namespace

// Makes a model of one layer: lays its tensors out one after another in `bytes` and fills them.
// Norms are f32, other tensors `type`.
MadeModel make_model(const Shape& shape, TensorType type) {
  MadeModel result;
  engine::Model& model = result.model;
  model.description = std::string(shape.name);
  model.sizes = {.layers = 1,
                 .embedding = shape.embedding,
                 .feed_forward = shape.feed_forward,
                 .heads = shape.heads,
                 .kv_heads = shape.kv_heads,
                 .head = shape.head,
                 .vocabulary = k_vocabulary,
                 .context = k_context,
                 .epsilon = 1e-5F};
  model.frequencies.assign(shape.head / 2, 0.01F);
  model.layers.resize(1);
  engine::Layer& layer = model.layers.front();
  const std::uint32_t queries = model.sizes.queries(), keys = model.sizes.keys();
  struct TensorSpec {
    Tensor* tensor;
    const char* name;
    TensorType type;
    std::uint32_t columns, rows;
  };
  const TensorSpec specs[] = {
      {&model.embedding, "token_embd.weight", type, shape.embedding, k_vocabulary},
      {&model.output, "output.weight", type, shape.embedding, k_vocabulary},
      {&model.output_norm, "output_norm.weight", TensorType::f32, shape.embedding, 1},
      {&layer.attention_norm, "blk.0.attn_norm.weight", TensorType::f32, shape.embedding, 1},
      {&layer.query, "blk.0.attn_q.weight", type, shape.embedding, queries},
      {&layer.key, "blk.0.attn_k.weight", type, shape.embedding, keys},
      {&layer.value, "blk.0.attn_v.weight", type, shape.embedding, keys},
      {&layer.output, "blk.0.attn_output.weight", type, queries, shape.embedding},
      {&layer.ffn_norm, "blk.0.ffn_norm.weight", TensorType::f32, shape.embedding, 1},
      {&layer.gate, "blk.0.ffn_gate.weight", type, shape.embedding, shape.feed_forward},
      {&layer.up, "blk.0.ffn_up.weight", type, shape.embedding, shape.feed_forward},
      {&layer.down, "blk.0.ffn_down.weight", type, shape.feed_forward, shape.embedding},
  };
  std::uint64_t size = 0;
  for (const TensorSpec& spec : specs) {
    const model::TensorTypeInfo& info = model::tensor_type_info(spec.type);
    const std::uint64_t row = std::uint64_t{spec.columns} / info.block_values * info.block_bytes;
    *spec.tensor = {spec.name, spec.type, spec.columns, spec.rows, row, {}};
    size += row * spec.rows;
  }
  result.bytes.resize(size);
  std::size_t at = 0;
  for (const TensorSpec& spec : specs) {
    const std::size_t bytes = spec.tensor->row_bytes * spec.rows;
    const std::span<std::byte> place = std::span(result.bytes).subspan(at, bytes);
    fill(*spec.tensor, place);
    spec.tensor->bytes = place;
    at += bytes;
  }
  return result;
}

}  // namespace weir::micro
