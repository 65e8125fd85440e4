// The sizes of a model's tensors, how a shrunken model changes them, and which of them a dimension
// of a tensor is. Part of twin.hpp. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/model/gguf.hpp"

namespace weir::model {

// 0 stands for "this model has no such size". Lists have one element a layer.
struct TwinSizes {
  std::uint64_t layers = 0, embedding = 0, vocab = 0, context = 0;
  std::vector<std::uint64_t> feed_forward, heads, kv_heads;
  std::uint64_t key = 0, value = 0;          // head dimensions
  std::uint64_t key_swa = 0, value_swa = 0;  // in layers with a sliding window, if different
  std::uint64_t rope = 0, rope_swa = 0;
  std::uint64_t key_mla = 0, value_mla = 0, query_rank = 0, kv_rank = 0;  // latent attention
  std::uint64_t expert_feed_forward = 0, shared_feed_forward = 0;
  std::uint64_t experts = 0, shared_experts = 0;
  std::uint64_t per_layer_input = 0;
  // State space models and linear attention.
  std::uint64_t inner = 0, rank = 0, groups = 0, state = 0, conv = 0, wkv_head = 0;
};

// Code::data when embedding_length or block_count is missing or the lists do not fit.
[[nodiscard]] Result<TwinSizes> read_sizes(const GgufHeader& source);

// Returns smaller sizes, with `kv_heads` in the layer that has most of them, and the head dimension
// halved `halvings` times. Nothing if that does not keep the divisors of the sizes, or would grow
// them.
[[nodiscard]] std::optional<TwinSizes> shrink(const TwinSizes& sizes, std::uint64_t kv_heads,
                                              unsigned halvings);

// Replaces the old sizes in the metadata.
void put_sizes(const TwinSizes& old_sizes, const TwinSizes& new_sizes, GgufHeader& header);

// The largest of `sizes`; 0 for an empty list.
[[nodiscard]] std::uint64_t largest(const std::vector<std::uint64_t>& sizes);

// "blk.12.attn_q.weight" is of layer 12; nothing for tensors of no layer.
[[nodiscard]] std::optional<std::uint64_t> layer_index(std::string_view tensor_name);

// The new dimensions of a tensor. A size that is not recognized is kept and added to `unknown`;
// nothing when one could be two sizes that shrink differently.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> shrink_dims(
    const GgufTensor& tensor, const TwinSizes& old_sizes, const TwinSizes& new_sizes,
    std::vector<std::uint64_t>& unknown);

}  // namespace weir::model
