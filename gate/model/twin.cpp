// Shrinks a real model to a tiny one that takes the same code path.
#include "gate/model/twin.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_set>

#include "gate/base/text.hpp"
#include "gate/model/tensor_type.hpp"
#include "gate/model/twin_sizes.hpp"

namespace weir::model {
namespace {

constexpr unsigned k_max_halvings = 4;
constexpr std::uint64_t k_max_kv_heads = 1024;
constexpr int k_max_attempts = 64;  // for each head dimension: hostile sizes fit nowhere
constexpr std::uint64_t k_max_bytes = std::uint64_t{64} << 30;  // more is no small twin

// Returns a number for each layer; layers with the same tensors have the same number. Tensors are
// compared by name and dimensions. Their types differ by the rules of quantization mixes.
std::vector<std::size_t> layer_shapes(const GgufHeader& header, std::uint64_t layers) {
  std::vector<std::string> shapes(layers);
  for (const GgufTensor& tensor : header.tensors) {
    const auto layer = layer_index(tensor.name);
    if (!layer || *layer >= layers) continue;
    const std::size_t dot = tensor.name.find('.', tensor.name.find("blk.") + 4);
    shapes[*layer] += fmt::format("{} {};", tensor.name.substr(std::min(dot, tensor.name.size())),
                                  fmt::join(tensor.dims, "x"));
  }
  // Numbers make the many comparisons of the pattern search cheap.
  std::map<std::string, std::size_t> number_by_shape;
  std::vector<std::size_t> shape_numbers;
  shape_numbers.reserve(shapes.size());
  for (const std::string& shape : shapes) {
    shape_numbers.push_back(
        number_by_shape.try_emplace(shape, number_by_shape.size()).first->second);
  }
  return shape_numbers;
}

// The layer pattern: `lead` layers first, then periods of `period` layers.
struct Pattern {
  std::uint64_t lead = 0;
  std::uint64_t period = 1;
};
// Returns the pattern with the least sum of lead (layers before it) and period. Without a
// repetition, all layers are lead.
Pattern find_pattern(const std::vector<std::size_t>& shapes) {
  const std::size_t count = shapes.size();
  for (std::size_t sum = 1; sum < count; ++sum) {
    for (std::size_t period = sum; period >= 1; --period) {
      const std::size_t lead = sum - period;
      const auto first = shapes.begin() + static_cast<std::ptrdiff_t>(lead);
      if (std::equal(shapes.begin() + static_cast<std::ptrdiff_t>(sum), shapes.end(), first)) {
        return {lead, period};
      }
    }
  }
  return {count, 1};
}

// Returns the period of attention windows, which tensors do not show: from the header, else a
// multiple of the periods that engines use.
std::uint64_t window_period(const GgufHeader& header) {
  if (const auto period = header.own_number("attention.sliding_window_pattern")) {
    return std::max<std::uint64_t>(*period, 1);
  }
  if (const GgufValue* interval = header.find_own("full_attention_interval")) {
    return std::max<std::uint64_t>(interval->to_unsigned().value_or(1), 1);
  }
  if (header.find_own("attention.sliding_window") == nullptr) return 1;
  return 12;  // a multiple of 2, 3, 4 and 6, the periods in use
}

// Removes layers so that `wanted` remain, rounded up to whole periods of the layer pattern; 0 keeps
// all. Cuts per-layer lists in the header as well.
void limit_layers(std::uint64_t wanted, GgufHeader& header, std::vector<std::string>& warnings) {
  const std::uint64_t layers = header.own_number("block_count").value_or(0);
  if (wanted == 0 || wanted >= layers) return;
  const Pattern pattern = find_pattern(layer_shapes(header, layers));
  const std::uint64_t period = std::lcm(pattern.period, window_period(header));
  const std::uint64_t layers_after_lead = wanted > pattern.lead ? wanted - pattern.lead : 1;
  const std::uint64_t layer_count =
      std::min(layers, pattern.lead + (layers_after_lead + period - 1) / period * period);
  if (layer_count != wanted) {
    warnings.push_back(fmt::format("{} layers kept in place of {}: {} first and periods of {}",
                                   layer_count, wanted, pattern.lead, period));
  }
  if (layer_count == layers) return;
  std::erase_if(header.tensors, [&](const GgufTensor& tensor) {
    const auto layer = layer_index(tensor.name);
    return layer && *layer >= layer_count;
  });
  std::vector<std::uint64_t> kept_layers(layer_count);
  std::iota(kept_layers.begin(), kept_layers.end(), 0);
  const std::string architecture_prefix = header.architecture() + ".";
  for (auto& [key, value] : header.metadata) {
    if (!key.starts_with(architecture_prefix)) continue;
    if (key == architecture_prefix + "block_count")
      value = value.with_unsigned(layer_count).value_or(value);
    // Extra layers that predict further tokens are the last ones, which are removed.
    if (key == architecture_prefix + "nextn_predict_layers")
      value = value.with_unsigned(0).value_or(value);
    if (key == architecture_prefix + "leading_dense_block_count") {
      const std::uint64_t dense = value.to_unsigned().value_or(0);
      value = value.with_unsigned(std::min(dense, layer_count)).value_or(value);
    }
    const bool is_per_layer = value.is_array() && value.count() == layers;
    if (is_per_layer && !key.ends_with("dimension_sections"))
      value = value.with_elements_at(kept_layers);
  }
}

struct Candidate {
  GgufHeader header;
  std::uint64_t bytes = 0;
  std::set<std::string> unknown;
};

// Returns the shrunken model with these sizes. Nullopt if a dimension could be two different sizes
// or rows are no whole blocks.
std::optional<Candidate> try_sizes(const GgufHeader& base, const TwinSizes& old_sizes,
                                   TwinSizes new_sizes, std::uint64_t vocab) {
  new_sizes.vocab = vocab;
  // Tensors first: most attempts end here, before the tokenizer is copied.
  Candidate candidate;
  std::vector<GgufTensor> tensors = base.tensors;
  for (GgufTensor& tensor : tensors) {
    std::vector<std::uint64_t> unknown;
    auto dims = shrink_dims(tensor, old_sizes, new_sizes, unknown);
    if (!dims) return std::nullopt;
    for (const std::uint64_t dim : unknown) {
      const std::size_t dot = tensor.name.find('.', tensor.name.find("blk.") + 4);
      const bool is_in_layer = layer_index(tensor.name).has_value() && dot != std::string::npos;
      candidate.unknown.insert(
          fmt::format("size {} of {} is kept: not recognized", dim,
                      is_in_layer ? "*" + tensor.name.substr(dot) : tensor.name));
    }
    tensor.dims = std::move(*dims);
  }
  candidate.header = base;
  candidate.header.tensors = std::move(tensors);
  put_sizes(old_sizes, new_sizes, candidate.header);
  if (!encode_gguf_header(candidate.header)) return std::nullopt;
  const auto bytes = gguf_file_bytes(candidate.header);
  if (!bytes) return std::nullopt;
  candidate.bytes = *bytes;
  return candidate;
}

// Returns the first shrunken model that is below the target size, else the smallest; nullopt if
// none is possible. Tries each head dimension with the fewest heads that keep the divisors of the
// sizes.
std::optional<Candidate> search_sizes(const GgufHeader& base, const TwinSizes& sizes,
                                      std::uint64_t vocab, const TwinOptions& options,
                                      std::vector<std::string>& warnings) {
  std::optional<Candidate> best;
  unsigned best_halvings = 0;
  const std::uint64_t max_kv_heads =
      std::clamp<std::uint64_t>(largest(sizes.kv_heads), 1, k_max_kv_heads);
  for (unsigned halvings = 0; halvings <= k_max_halvings; ++halvings) {
    int attempts = 0;
    for (std::uint64_t kv_heads = 1; kv_heads <= max_kv_heads && attempts < k_max_attempts;
         ++kv_heads) {
      const auto small = shrink(sizes, kv_heads, halvings);
      if (!small) continue;
      ++attempts;
      auto candidate = try_sizes(base, sizes, *small, vocab);
      if (!candidate) continue;
      if (!best || candidate->bytes < best->bytes) {
        best = std::move(candidate);
        best_halvings = halvings;
      }
      break;
    }
    if (best && best->bytes <= options.target_bytes) break;
  }
  if (best && best_halvings > 0) {
    warnings.push_back(fmt::format(
        "the head dimension {} became {}: kernels chosen by it can differ (a larger target size "
        "keeps it)",
        sizes.key, sizes.key >> best_halvings));
  }
  if (best && best->bytes > options.target_bytes) {
    warnings.push_back(
        fmt::format("{} bytes are more than the {} asked for: fewer layers or "
                    "tokens make it smaller",
                    best->bytes, options.target_bytes));
  }
  return best;
}

constexpr std::string_view k_prefix = "tokenizer.ggml.";
constexpr std::uint64_t k_control_token = 3;  // token_type
constexpr std::uint64_t k_byte_token = 6;

bool is_token_id(std::string_view key) {
  return key.starts_with(k_prefix) && key.ends_with("_token_id");
}
bool is_token_id_list(std::string_view key) {
  return key.starts_with(k_prefix) && key.ends_with("_token_ids");
}

// Returns for each token whether it is kept; nullopt if more than `limit` tokens must be kept.
std::optional<std::vector<bool>> choose_tokens(std::uint64_t vocab, std::uint64_t limit,
                                               const GgufHeader& header) {
  std::vector<bool> is_kept(vocab, false);
  std::uint64_t count = 0;
  const auto keep = [&](std::uint64_t id) {
    if (id >= vocab || is_kept[id]) return;
    is_kept[id] = true;
    ++count;
  };
  for (const auto& [key, value] : header.metadata) {
    if (is_token_id(key)) keep(value.to_unsigned().value_or(vocab));
    if (!is_token_id_list(key)) continue;
    for (const std::uint64_t id : value.to_unsigned_list().value_or(std::vector<std::uint64_t>{})) {
      keep(id);
    }
  }
  const GgufValue* types = header.find("tokenizer.ggml.token_type");
  std::vector<std::uint64_t> token_types;
  if (types != nullptr)
    token_types = types->to_unsigned_list().value_or(std::vector<std::uint64_t>{});
  const auto keep_kind = [&](std::uint64_t kind, std::uint64_t max_kept) {
    for (std::uint64_t id = 0; id < std::min<std::uint64_t>(token_types.size(), vocab); ++id) {
      if (token_types[id] == kind && max_kept > 0) {
        --max_kept;
        keep(id);
      }
    }
  };
  keep_kind(k_byte_token, vocab);
  keep_kind(k_control_token, limit / 8);  // some vocabularies reserve thousands
  if (count > limit) return std::nullopt;
  for (std::uint64_t id = 0; id < vocab && count < limit; ++id) keep(id);
  return is_kept;
}

// Returns the merges of a tokenizer whose tokens are all left: "a b" needs the tokens a, b and ab.
GgufValue filter_merges(const GgufValue& merges, const std::unordered_set<std::string>& tokens) {
  const auto all = merges.to_string_list();
  if (!all) return merges;
  std::vector<std::string> result;
  for (const std::string& merge : *all) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string::npos) continue;
    const std::string first = merge.substr(0, space);
    const std::string second = merge.substr(space + 1);
    if (tokens.contains(first) && tokens.contains(second) && tokens.contains(first + second)) {
      result.push_back(merge);
    }
  }
  return GgufValue::strings(result);
}

// Keeps at most `limit` of the `vocab` tokens: first named, byte and control tokens, then those
// with the lowest numbers. Changes scores, types, merges and ids accordingly. Returns how many
// remain: `vocab` if all fit, or if the named ones alone do not.
std::uint64_t shrink_vocab(std::uint64_t vocab, std::uint64_t limit, GgufHeader& header) {
  if (limit == 0 || vocab <= limit) return vocab;
  // Keep the same power of two as a divisor, since kernels are chosen by it.
  std::uint64_t rounded = limit;
  while (rounded > 1 &&
         std::gcd(rounded, std::uint64_t{256}) != std::gcd(vocab, std::uint64_t{256})) {
    --rounded;
  }
  const auto is_kept = choose_tokens(vocab, rounded, header);
  if (!is_kept) return vocab;
  std::vector<std::uint64_t> kept_ids;
  std::vector<std::uint64_t> new_id(vocab, 0);
  for (std::uint64_t id = 0; id < vocab; ++id) {
    if (!(*is_kept)[id]) continue;
    new_id[id] = kept_ids.size();
    kept_ids.push_back(id);
  }

  std::unordered_set<std::string> tokens;
  for (auto& [key, value] : header.metadata) {
    if (!key.starts_with(k_prefix)) continue;
    if (is_token_id(key)) {
      const auto id = value.to_unsigned();
      if (id && *id < vocab) value = value.with_unsigned(new_id[*id]).value_or(value);
    } else if (is_token_id_list(key)) {
      auto ids = value.to_unsigned_list().value_or(std::vector<std::uint64_t>{});
      std::erase_if(ids, [&](std::uint64_t id) { return id >= vocab; });
      for (std::uint64_t& id : ids) id = new_id[id];
      value = value.with_unsigned_list(ids).value_or(value);
    } else if (value.is_array() && value.count() == vocab) {
      value = value.with_elements_at(kept_ids);
    }
    if (key == "tokenizer.ggml.tokens") {
      const auto names = value.to_string_list().value_or(std::vector<std::string>{});
      tokens.insert(names.begin(), names.end());
    }
  }
  for (auto& [key, value] : header.metadata) {
    if (key == "tokenizer.ggml.merges") value = filter_merges(value, tokens);
  }
  return kept_ids.size();
}

}  // namespace

// Shrinks a model to the smallest sizes at which engines choose the same kernels: sizes that
// differed still differ, and rows are whole blocks. Fails if there are none.
Result<Twin> shrink_model(const GgufHeader& source, const TwinOptions& options) {
  const GgufValue* parts = source.find("split.count");
  if (parts != nullptr && parts->to_unsigned().value_or(0) > 1) {
    return fail(
        Code::data,
        "one part of a model in several files: merge them first (llama-gguf-split --merge)");
  }
  if (source.tensors.empty()) return fail(Code::data, "the source has no tensors");
  for (const GgufTensor& tensor : source.tensors) WEIR_CHECK(find_type_info(tensor));
  Twin twin;
  GgufHeader base = source;
  std::erase_if(base.metadata, [](const auto& entry) { return entry.first.starts_with("split."); });
  WEIR_CHECK(read_sizes(base));  // checks sizes before anything is allocated by them
  limit_layers(options.layers, base, twin.warnings);
  WEIR_TRY(const TwinSizes sizes, read_sizes(base));
  const std::uint64_t vocab = shrink_vocab(sizes.vocab, options.vocab, base);
  for (auto& [key, value] : base.metadata) {
    if (key == "general.name") {
      value = GgufValue::string(value.to_string().value_or("model") + " (twin)");
    }
  }
  auto candidate = search_sizes(base, sizes, vocab, options, twin.warnings);
  if (!candidate) {
    return fail(Code::data,
                "found no smaller sizes for architecture \"{}\" that keep its sizes apart and its "
                "rows whole blocks (embedding {}, vocabulary {})",
                text::printable(source.architecture()), sizes.embedding, sizes.vocab);
  }
  if (candidate->bytes > k_max_bytes) {
    return fail(Code::data, "the smallest twin found has {} bytes: not made", candidate->bytes);
  }
  twin.header = std::move(candidate->header);
  constexpr std::size_t k_max_notes = 20;
  for (const std::string& note : candidate->unknown) {
    if (twin.warnings.size() < k_max_notes) twin.warnings.push_back(text::printable(note));
  }
  return twin;
}

Result<ModelSummary> write_twin(const GgufHeader& source, const TwinOptions& options,
                                const ByteSink& sink) {
  WEIR_TRY(Twin twin, shrink_model(source, options));
  WEIR_CHECK(write_random_gguf(twin.header, options.seed, sink));
  WEIR_TRY(ModelSummary summary, summarize(twin.header));
  summary.warnings = std::move(twin.warnings);
  return summary;
}

}  // namespace weir::model
