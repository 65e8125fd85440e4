// Reads and shrinks the sizes of a model, and finds them in the dimensions of its tensors.
#include "gate/model/twin_sizes.hpp"

#include <algorithm>
#include <numeric>

#include "gate/base/text.hpp"

namespace weir::model {
namespace {

constexpr std::uint64_t k_max_source_layers = 4096;
constexpr std::uint64_t k_max_vocab = std::uint64_t{1} << 24;
// The largest block of any quantization and a multiple of every tile that kernels work in.
constexpr std::uint64_t k_tile = 256;
// Matrix kernels for few rows differ from those for many; 128 is beyond the last such border.
constexpr std::uint64_t k_wide = 128;
constexpr std::uint64_t k_smallest_head = 32;
// More query heads per key head are not kept (latent attention has 128 of them).
constexpr std::uint64_t k_max_ratio = 16;

// A size with the metadata key that holds it, for reading and writing.
struct SizeKey {
  std::string_view key;
  std::uint64_t TwinSizes::*size;
};
constexpr SizeKey k_sizes[] = {
    {"embedding_length", &TwinSizes::embedding},
    {"attention.key_length", &TwinSizes::key},
    {"attention.value_length", &TwinSizes::value},
    {"attention.key_length_swa", &TwinSizes::key_swa},
    {"attention.value_length_swa", &TwinSizes::value_swa},
    {"attention.key_length_mla", &TwinSizes::key_mla},
    {"attention.value_length_mla", &TwinSizes::value_mla},
    {"attention.q_lora_rank", &TwinSizes::query_rank},
    {"attention.kv_lora_rank", &TwinSizes::kv_rank},
    {"rope.dimension_count", &TwinSizes::rope},
    {"rope.dimension_count_swa", &TwinSizes::rope_swa},
    {"expert_feed_forward_length", &TwinSizes::expert_feed_forward},
    {"expert_shared_feed_forward_length", &TwinSizes::shared_feed_forward},
    {"expert_count", &TwinSizes::experts},
    {"expert_shared_count", &TwinSizes::shared_experts},
    {"embedding_length_per_layer_input", &TwinSizes::per_layer_input},
    {"ssm.inner_size", &TwinSizes::inner},
    {"ssm.time_step_rank", &TwinSizes::rank},
    {"ssm.group_count", &TwinSizes::groups},
    {"ssm.state_size", &TwinSizes::state},
    {"ssm.conv_kernel", &TwinSizes::conv},
    {"shortconv.l_cache", &TwinSizes::conv},
    {"wkv.head_size", &TwinSizes::wkv_head},
    {"context_length", &TwinSizes::context},
    {"block_count", &TwinSizes::layers},
};
struct SizeListKey {
  std::string_view key;
  std::vector<std::uint64_t> TwinSizes::*list;
};
constexpr SizeListKey k_lists[] = {
    {"feed_forward_length", &TwinSizes::feed_forward},
    {"attention.head_count", &TwinSizes::heads},
    {"attention.head_count_kv", &TwinSizes::kv_heads},
};

// Returns the new value of a size that depends on no other: the smallest one of at least k_wide
// that is a multiple of the same power of two. Equal sizes thus stay equal.
std::uint64_t shrink_size(std::uint64_t size) {
  if (size <= k_tile) return size;
  const std::uint64_t unit = std::gcd(size, k_tile);
  std::uint64_t times = (k_wide + unit - 1) / unit;
  if (times % 2 == 0) ++times;
  return unit * times;
}

// Returns true if `small` keeps the divisor that `size` has in common with `tile`, and is wide if
// `size` was.
bool keeps_divisor(std::uint64_t size, std::uint64_t small, std::uint64_t tile) {
  return small % std::gcd(size, tile) == 0 && small >= std::min(size, k_wide);
}

// Sizes in a fixed order, so that the list of the old sizes and that of the new ones correspond.
using Values = std::vector<std::uint64_t>;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return contains(text, part); });
}

// Returns the sizes of attention matrices of a layer with `heads` query heads and `kv` key heads.
// Includes sliding windows (`_swa`) and latent attention (MLA).
Values head_sizes(std::string_view name, const TwinSizes& twin, std::uint64_t heads,
                  std::uint64_t kv) {
  Values values;
  for (const auto& [key, value] :
       {std::pair{twin.key, twin.value}, {twin.key_swa, twin.value_swa}}) {
    values.insert(values.end(), {heads * key, kv * key, heads * value, kv * value, key, value});
    // Fused matrices, and a query with its gate.
    if (contains(name, "qkv")) values.push_back(heads * key + kv * key + kv * value);
    if (contains(name, "attn_kv.")) values.push_back(kv * key + kv * value);
    if (contains(name, "attn_q.")) values.push_back(2 * heads * key);
  }
  if (twin.kv_rank > 0) {
    const std::uint64_t key_without_rope = twin.key_mla > twin.rope ? twin.key_mla - twin.rope : 0;
    values.insert(values.end(),
                  {heads * twin.key_mla, heads * twin.value_mla,
                   heads * (key_without_rope + twin.value_mla), key_without_rope, twin.value_mla,
                   twin.query_rank, twin.kv_rank, twin.kv_rank + twin.rope});
  }
  values.insert(values.end(), {twin.rope / 2, twin.rope_swa / 2});
  return values;
}

// Returns the sizes of state space models and linear attention; empty if the model has neither.
Values state_sizes(const TwinSizes& sizes) {
  Values values;
  if (sizes.inner > 0) {
    const std::uint64_t grouped = 2 * sizes.groups * sizes.state;
    values = {sizes.inner,
              2 * sizes.inner,
              sizes.inner + grouped,
              2 * sizes.inner + grouped,
              2 * sizes.inner + grouped + sizes.rank,
              sizes.groups == 0 ? 0 : sizes.inner / sizes.groups,
              sizes.rank + 2 * sizes.state,
              sizes.state};
  }
  if (sizes.wkv_head > 0) {
    values.insert(values.end(), {sizes.wkv_head, sizes.embedding / sizes.wkv_head,
                                 2 * sizes.embedding, 3 * sizes.embedding});
  }
  if (sizes.conv > 0) values.push_back(3 * sizes.embedding);
  return values;
}

Values forward_sizes(const TwinSizes& s, std::uint64_t forward) {
  return {forward,
          2 * forward,
          s.expert_feed_forward,
          2 * s.expert_feed_forward,
          s.shared_feed_forward,
          s.expert_feed_forward * s.shared_experts};
}

// Returns true if the tensor's name says that dimension `dim` is the embedding, even if other sizes
// have the same value.
bool is_embedding(const GgufTensor& tensor, std::size_t dim) {
  const std::string_view name = tensor.name;
  if (contains(name, "attn_output.")) return dim + 1 == tensor.dims.size();
  if (name.starts_with("token_embd.") || name.starts_with("output.") ||
      name.starts_with("position_embd.") ||
      contains_any(name, {"attn_q.", "attn_k.", "attn_v.", "attn_qkv.", "attn_q_a.",
                          "attn_kv_a_mqa.", "attn_gate.", "ffn_gate", "ffn_up"})) {
    return dim == 0 && tensor.dims.size() > 1;
  }
  if (contains(name, "ffn_down")) return dim == 1;
  return dim == 0 && contains_any(name, {"attn_norm.", "ffn_norm.", "post_attention_norm.",
                                         "post_ffw_norm.", "output_norm."});
}

// Returns every size that a dimension of this tensor may be. Small numbers (a count of heads) are
// included only for names that have them, lest 8 heads be taken for 8 experts.
Values possible_sizes(const GgufTensor& tensor, const TwinSizes& sizes) {
  const std::string_view name = tensor.name;
  // If the name tells which dimension is the embedding, no other one is.
  Values values;
  if (!is_embedding(tensor, 0) && !is_embedding(tensor, tensor.dims.size() - 1)) {
    values.push_back(sizes.embedding);
  }
  const auto add = [&](const Values& more) {
    values.insert(values.end(), more.begin(), more.end());
  };
  const auto layer = layer_index(name);
  if (!layer) {
    add({sizes.vocab, sizes.per_layer_input * sizes.layers, sizes.rope / 2, sizes.rope_swa / 2});
    if (name.starts_with("position_embd.")) values = {sizes.context};
    return values;
  }
  const std::size_t layer_number = std::min<std::size_t>(*layer, sizes.layers - 1);
  const std::uint64_t feed_forward =
      sizes.feed_forward.empty() ? 0 : sizes.feed_forward[layer_number];
  const std::uint64_t heads = sizes.heads.empty() ? 0 : sizes.heads[layer_number];
  const std::uint64_t kv = sizes.kv_heads.empty() ? 0 : sizes.kv_heads[layer_number];
  if (contains_any(name, {"ffn", "ffw", "channel_mix", "vis_gate", "vis_up", "vis_down"})) {
    add(forward_sizes(sizes, feed_forward));
  } else {
    add(head_sizes(name, sizes, heads, kv));
    add(state_sizes(sizes));
  }
  add({sizes.per_layer_input});
  if (contains_any(name,
                   {"attn_sinks", "attn_k_b", "attn_v_b", "attn_rel_b", "attn_q_norm", "attn_g"})) {
    add({heads});
  }
  if (contains(name, "attn_k_norm")) add({kv});
  if (contains(name, "ssm")) add({sizes.rank, 2 * sizes.rank, sizes.groups});
  return values;
}

// Returns true for dimensions that never shrink, by the tensor's name.
bool is_fixed(const GgufTensor& tensor, std::size_t dim) {
  if (tensor.dims[dim] <= 1) return true;
  const bool is_last = dim + 1 == tensor.dims.size();
  if (is_last && contains_any(tensor.name, {"_exps", "ffn_gate_inp", "exp_probs_b"})) {
    return !contains_any(tensor.name, {"ffn_gate_inp_shexp", "norm"});
  }
  if (contains(tensor.name, "indexer")) return dim > 0;  // has heads of its own
  return dim == 0 && tensor.dims.size() > 1 && contains_any(tensor.name, {"conv1d", "conv.weight"});
}

// Returns the new value of a size that a few architectures have in unusual places.
std::optional<std::uint64_t> unusual_size(std::uint64_t size, const TwinSizes& old_sizes,
                                          const TwinSizes& new_sizes) {
  if (size == old_sizes.embedding) return new_sizes.embedding;
  if (!old_sizes.feed_forward.empty() && 2 * size == old_sizes.feed_forward[0]) {
    return new_sizes.feed_forward[0] / 2;  // the header counts both halves there
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t largest(const std::vector<std::uint64_t>& sizes) {
  return sizes.empty() ? 0 : *std::ranges::max_element(sizes);
}

std::optional<std::uint64_t> layer_index(std::string_view tensor_name) {
  const std::size_t start = tensor_name.find("blk.");
  if (start == std::string_view::npos) return std::nullopt;
  const std::string_view rest = tensor_name.substr(start + 4);
  const auto number = text::to_int(rest.substr(0, rest.find('.')));
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

// Reads the sizes that a model's tensors are made of from its metadata. Fails if it is no language
// model or a size is absurd.
Result<TwinSizes> read_sizes(const GgufHeader& source) {
  constexpr std::uint64_t k_max_size = std::uint64_t{1} << 28;  // products of two stay in range
  TwinSizes sizes;
  for (const auto& [key, size] : k_sizes) {
    sizes.*size = source.own_number(key).value_or(sizes.*size);
    if (sizes.*size > k_max_size) return fail(Code::data, "{}: {} is absurd", key, sizes.*size);
  }
  if (sizes.embedding == 0 || sizes.layers == 0 || sizes.layers > k_max_source_layers) {
    return fail(Code::data,
                "not a language model with sizes to shrink: embedding_length {}, block_count {} "
                "(architecture \"{}\")",
                sizes.embedding, sizes.layers, text::printable(source.architecture()));
  }
  for (const auto& [key, list] : k_lists) {
    const GgufValue* value = source.find_own(key);
    if (value == nullptr) continue;
    if (const auto number = value->to_unsigned()) {
      (sizes.*list).assign(sizes.layers, *number);
    } else {
      sizes.*list = value->to_unsigned_list().value_or(Values{});
      if ((sizes.*list).size() < sizes.layers) {
        return fail(Code::data, "{}: {} values for {} layers", key, (sizes.*list).size(),
                    sizes.layers);
      }
      (sizes.*list).resize(sizes.layers);
    }
    if (largest(sizes.*list) > k_max_size) return fail(Code::data, "{}: absurd", key);
  }
  if (sizes.kv_heads.empty()) sizes.kv_heads = sizes.heads;
  const std::uint64_t heads = largest(sizes.heads);
  if (heads > 0) {  // defaults of engines
    if (sizes.key == 0) sizes.key = sizes.embedding / heads;
    if (sizes.value == 0) sizes.value = sizes.key;
  }
  for (const GgufTensor& tensor : source.tensors) {
    const bool is_table = tensor.name == "token_embd.weight" || tensor.name == "output.weight";
    if (is_table && tensor.dims.size() >= 2) sizes.vocab = std::max(sizes.vocab, tensor.dims[1]);
  }
  if (sizes.vocab > k_max_vocab) return fail(Code::data, "{} tokens: absurd", sizes.vocab);
  return sizes;
}

std::optional<TwinSizes> shrink(const TwinSizes& sizes, std::uint64_t kv_heads, unsigned halvings) {
  TwinSizes small = sizes;
  const std::uint64_t kv = largest(sizes.kv_heads);
  const std::uint64_t heads = largest(sizes.heads);
  if (kv_heads > std::max<std::uint64_t>(kv, 1)) return std::nullopt;
  if (halvings > 0) {
    if (heads == 0 || sizes.key_mla != 0) return std::nullopt;
    for (std::uint64_t TwinSizes::*size :
         {&TwinSizes::key, &TwinSizes::value, &TwinSizes::key_swa, &TwinSizes::value_swa,
          &TwinSizes::rope, &TwinSizes::rope_swa}) {
      small.*size >>= halvings;
      if (small.*size << halvings != sizes.*size || small.*size % 2 != 0) return std::nullopt;
    }
    if (small.key < k_smallest_head || small.value < k_smallest_head) return std::nullopt;
  }
  if (kv > 0 && heads > 0) {
    for (std::size_t i = 0; i < small.heads.size(); ++i) {
      const std::uint64_t old_kv = sizes.kv_heads[i];
      if (old_kv == 0 || sizes.heads[i] == 0) continue;
      std::uint64_t ratio = std::max<std::uint64_t>(sizes.heads[i] / old_kv, 1);
      while (ratio > k_max_ratio) ratio /= 2;
      small.kv_heads[i] = std::max<std::uint64_t>(old_kv * kv_heads / kv, 1);
      small.heads[i] = small.kv_heads[i] * ratio;
    }
    const std::uint64_t query = heads * sizes.value;
    const std::uint64_t small_query = largest(small.heads) * small.value;
    // With halved heads, the key matrices may become narrow.
    const bool is_narrow =
        halvings == 0 && !keeps_divisor(kv * sizes.key, kv_heads * small.key, k_wide);
    if (!keeps_divisor(query, small_query, k_tile) || is_narrow) return std::nullopt;
  }
  // Many architectures take the product of heads and head dimension for the embedding.
  const bool is_coupled = heads > 0 && sizes.embedding == heads * sizes.key;
  small.embedding = is_coupled ? largest(small.heads) * small.key : shrink_size(sizes.embedding);
  if (!keeps_divisor(sizes.embedding, small.embedding, k_tile)) return std::nullopt;
  const auto forward = [&](std::uint64_t size) {
    return size == sizes.embedding ? small.embedding : shrink_size(size);
  };
  for (std::uint64_t& size : small.feed_forward) size = forward(size);
  small.expert_feed_forward = forward(sizes.expert_feed_forward);
  small.shared_feed_forward = forward(sizes.shared_feed_forward);
  if (sizes.inner > 0) {  // engines count on its ratio to the embedding
    if (sizes.inner * small.embedding % sizes.embedding != 0) return std::nullopt;
    small.inner = sizes.inner * small.embedding / sizes.embedding;
    if (sizes.groups > 0 && sizes.rank > 0) {  // rank counts heads there
      if (sizes.inner % sizes.rank != 0) return std::nullopt;
      const std::uint64_t head = sizes.inner / sizes.rank;
      if (small.inner % head != 0) return std::nullopt;
      small.rank = small.inner / head;
      small.groups = std::max<std::uint64_t>(sizes.groups * small.rank / sizes.rank, 1);
    }
  }
  if (small.wkv_head > 0 && small.embedding % small.wkv_head != 0) return std::nullopt;
  return small;
}

// Replaces the sizes of the model in the header's metadata by the new ones.
void put_sizes(const TwinSizes& old_sizes, const TwinSizes& new_sizes, GgufHeader& header) {
  // Replaces the value under a key of the architecture by with(value); returns false if there is
  // none.
  const auto change_value = [&](std::string_view key, const auto& with) {
    auto* entry = const_cast<GgufValue*>(header.find_own(key));
    if (entry == nullptr) return false;
    if (const std::optional<GgufValue> value = with(*entry)) *entry = *value;
    return true;
  };
  for (const auto& [key, size] : k_sizes) {
    const std::uint64_t new_size = new_sizes.*size;
    if (change_value(key, [&](const GgufValue& value) { return value.with_unsigned(new_size); }))
      continue;
    // Engines derive a missing head dimension from the embedding: add it if that would be wrong.
    const bool is_head = size == &TwinSizes::key || size == &TwinSizes::value;
    const std::uint64_t heads = largest(new_sizes.heads);
    if (is_head && heads > 0 && new_sizes.embedding / heads != new_size) {
      header.metadata.emplace_back(fmt::format("{}.{}", header.architecture(), key),
                                   GgufValue::u32(static_cast<std::uint32_t>(new_size)));
    }
  }
  for (const auto& [key, list] : k_lists) {
    const Values& new_size = new_sizes.*list;
    if (new_size.empty()) continue;
    change_value(key, [&](const GgufValue& value) {
      return value.is_array() ? value.with_unsigned_list(new_size)
                              : value.with_unsigned(new_size[0]);
    });
  }
  change_value("vocab_size",
               [&](const GgufValue& value) { return value.with_unsigned(new_sizes.vocab); });
  if (old_sizes.rope == new_sizes.rope) return;
  change_value("rope.dimension_sections", [&](const GgufValue& sections) {  // half of rope together
    auto values = sections.to_unsigned_list().value_or(Values{});
    for (std::uint64_t& value : values) value = value * new_sizes.rope / old_sizes.rope;
    return sections.with_unsigned_list(values);
  });
}

// Returns the dimensions of a tensor in the smaller model; nullopt if one of them may be of several
// sizes. Dimensions of no known size stay, and go into `unknown`.
std::optional<std::vector<std::uint64_t>> shrink_dims(const GgufTensor& tensor,
                                                      const TwinSizes& old_sizes,
                                                      const TwinSizes& new_sizes,
                                                      std::vector<std::uint64_t>& unknown) {
  std::vector<std::uint64_t> dims = tensor.dims;
  if (dims.empty()) return dims;
  const Values possible_old = possible_sizes(tensor, old_sizes);
  const Values possible_new = possible_sizes(tensor, new_sizes);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (is_fixed(tensor, d)) continue;
    if (is_embedding(tensor, d) && dims[d] == old_sizes.embedding) {
      dims[d] = new_sizes.embedding;
      continue;
    }
    std::optional<std::uint64_t> new_size;
    for (std::size_t i = 0; i < possible_old.size(); ++i) {
      if (possible_old[i] != tensor.dims[d]) continue;
      if (new_size && *new_size != possible_new[i]) return std::nullopt;
      new_size = possible_new[i];
    }
    if (!new_size) new_size = unusual_size(tensor.dims[d], old_sizes, new_sizes);
    if (!new_size) unknown.push_back(tensor.dims[d]);
    dims[d] = new_size.value_or(tensor.dims[d]);
  }
  return dims;
}

}  // namespace weir::model
