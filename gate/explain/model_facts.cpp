// Reads from a GGUF header or a config.json which layers of a model have what others lack.
#include "gate/explain/model_facts.hpp"

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/model/twin_sizes.hpp"

namespace weir::explain {
namespace {

using Layers = std::set<std::int64_t>;

// Adds a family of layers, unless it is empty, all layers, or there already.
void add_family(ModelFacts& facts, std::string pattern, std::string words, const Layers& layers) {
  if (layers.empty() || static_cast<std::int64_t>(layers.size()) >= facts.layers) return;
  if (facts.families.size() >= k_max_families) return;
  std::vector<std::int64_t> list(layers.begin(), layers.end());
  if (std::ranges::find(facts.families, list, &LayerFamily::layers) != facts.families.end()) return;
  facts.families.push_back({std::move(pattern), std::move(words), std::move(list)});
}

// Returns the layers first, first + step, … below `layers`.
Layers every_nth_layer(std::int64_t layers, std::int64_t step, std::int64_t first) {
  Layers result;
  if (step < 1 || first < 0) return result;
  for (std::int64_t layer = first; layer < layers; layer += step) result.insert(layer);
  return result;
}

// Sorts by size, the largest first; then by pattern.
void order_families(ModelFacts& facts) {
  std::ranges::sort(facts.families, {}, [](const LayerFamily& family) {
    return std::pair(-std::ssize(family.layers), std::string_view(family.pattern));
  });
}

struct BlockTensor {
  std::int64_t layer = 0;
  std::string name;  // "ssm_conv1d", without ".weight" and ".bias"
};

// Parses the name of a tensor, "blk.12.ssm_conv1d.weight", into layer 12 and "ssm_conv1d"; nothing
// for a tensor outside of layers.
std::optional<BlockTensor> parse_block_tensor(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const auto layer = text::to_int(name.substr(0, dot));
  if (!layer || *layer < 0 || *layer >= k_max_layers) return std::nullopt;
  std::string_view rest = name.substr(dot + 1);
  for (const std::string_view ending : {".weight", ".bias"}) {
    if (rest.ends_with(ending)) rest.remove_suffix(ending.size());
  }
  if (rest.empty() || rest.size() > 64) return std::nullopt;
  return BlockTensor{*layer, text::printable(rest)};
}

// Models have some tens of names; a hostile file may have more, which are left out.
constexpr std::size_t k_max_names = 4096;

using LayersByTensor = std::map<std::string, Layers>;

// Returns the beginnings of a name that end with an underscore or a dot, and the name itself.
std::vector<std::string> prefixes(const std::string& name) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    if (name[i] == '_' || name[i] == '.') list.push_back(name.substr(0, i + 1));
  }
  list.push_back(name);
  return list;
}

// Returns a pattern for tensors that exactly these layers have, "blk.*.ssm*": the prefix that
// covers most of them, the shortest if several do.
std::string find_pattern(const Layers& layers, const LayersByTensor& tensors) {
  std::string best_prefix;
  std::size_t best_covered_tensors = 0;
  std::set<std::string> tried;  // else names with a common prefix take quadratic time
  for (const auto& [name, tensor_layers] : tensors) {
    if (tensor_layers != layers) continue;
    for (const std::string& prefix : prefixes(name)) {
      if (!tried.insert(prefix).second) continue;
      std::size_t covered_tensors = 0;
      bool has_others = false;
      for (auto match = tensors.lower_bound(prefix);
           !has_others && match != tensors.end() && match->first.starts_with(prefix); ++match) {
        has_others = match->second != layers;
        ++covered_tensors;
      }
      if (has_others) continue;
      const bool is_shorter = prefix.size() < best_prefix.size();
      if (covered_tensors > best_covered_tensors ||
          (covered_tensors == best_covered_tensors && is_shorter)) {
        best_prefix = prefix;
        best_covered_tensors = covered_tensors;
      }
    }
  }
  const bool is_full_name = best_covered_tensors == 1 && tensors.contains(best_prefix);
  return "blk.*." + best_prefix + (is_full_name ? "" : "*");
}

// Adds a family for each set of layers that have tensors which others lack.
void add_tensor_families(const LayersByTensor& tensors, std::int64_t layers, ModelFacts& facts) {
  std::set<Layers> sets;
  for (const auto& [name, tensor_layers] : tensors) {
    if (static_cast<std::int64_t>(tensor_layers.size()) < layers) sets.insert(tensor_layers);
    if (sets.size() > k_max_families) break;
  }
  for (const Layers& set : sets) {
    const std::string pattern = find_pattern(set, tensors);
    add_family(facts, pattern, "with " + pattern + " tensors", set);
  }
}

// Reads a number from 1 to a million; nothing for others.
std::optional<std::int64_t> small_number(const model::GgufHeader& header, std::string_view key) {
  const auto* value = header.find_own(key);
  const auto number = value == nullptr ? 0 : value->to_unsigned().value_or(0);
  if (number == 0 || number > 1'000'000) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

// Adds families of layers (sets that are built alike) by values per layer in the metadata: layers
// with keys and values, and layers without a sliding window.
void add_metadata_families(const model::GgufHeader& header, ModelFacts& facts) {
  const auto* value = header.find_own("attention.head_count_kv");
  std::optional<std::vector<std::uint64_t>> heads;  // by layer
  if (value != nullptr) heads = value->to_unsigned_list();
  if (heads) {
    Layers with_cache;
    for (std::size_t i = 0; i < heads->size() && i < std::size_t{k_max_layers}; ++i) {
      if ((*heads)[i] > 0) with_cache.insert(static_cast<std::int64_t>(i));
    }
    add_family(facts, "attention.head_count_kv > 0", "with keys and values", with_cache);
  }
  const auto period = small_number(header, "attention.sliding_window_pattern");
  if (period && *period > 1 && *period <= 64) {
    add_family(facts, "attention.sliding_window_pattern", "without a sliding window",
               every_nth_layer(facts.layers, *period, *period - 1));
  }
}

// Returns true if this is one file of several. It lacks the tensors of the other layers.
bool is_part(const model::GgufHeader& header) {
  const auto* files = header.find("split.count");
  return files != nullptr && files->to_unsigned().value_or(1) > 1;
}

// Returns the whole number from `least` to `most` under the first of these keys that has one.
std::optional<std::int64_t> read_number(const Json& config, std::initializer_list<const char*> keys,
                                        std::int64_t max_value, std::int64_t min_value = 1) {
  for (const char* key : keys) {
    const Json& node = member_or_null(config, key);
    // A number beyond the signed range becomes negative.
    const std::int64_t value = node.is_number_integer() ? node.get<std::int64_t>() : -1;
    if (value >= min_value && value <= max_value) return value;
  }
  return std::nullopt;
}

// Adds a family (set of layers) for each different label; its description is the label in quotes
// between `before` and `after`. A layer with label "" is in no family.
void add_families_by_kind(const std::vector<std::string>& labels, const std::string& before,
                          const std::string& after, ModelFacts& facts) {
  std::map<std::string, Layers> layers_of_label;
  std::int64_t layer = 0;
  for (const std::string& label : labels) {
    if (layer == facts.layers) break;
    layers_of_label[label].insert(layer);
    ++layer;
  }
  layers_of_label.erase("");
  for (const auto& [label, layers] : layers_of_label) {
    add_family(facts, label, before + '"' + label + '"' + after, layers);
  }
}

// Adds families of layers from lists with one word or letter for each layer ("M-M*-"), as
// config.json of hybrid models has them.
void add_layer_types(const Json& config, ModelFacts& facts) {
  const auto word = [](const Json& item) {
    return item.is_string() ? text::printable(item.get<std::string>().substr(0, 64)) : "";
  };
  const auto letter = [](char c) { return std::string(c > ' ' && c <= '~' ? 1 : 0, c); };
  for (const std::string key : {"layer_types", "layers_block_type"}) {
    add_families_by_kind(collect<std::string>(list_or_empty(config, key.c_str()), word),
                         "of " + key + " ", "", facts);
  }
  const Json& letters = member_or_null(config, "hybrid_override_pattern");
  if (!letters.is_string()) return;
  add_families_by_kind(collect<std::string>(letters.get<std::string>(), letter), "marked ",
                       " in hybrid_override_pattern", facts);
}

// Adds these layers as a family, and all other layers as another.
void add_family_and_rest(ModelFacts& facts, const Layers& layers, const std::string& description,
                         const std::string& rest_description) {
  add_family(facts, description, "with " + description, layers);
  Layers rest = every_nth_layer(facts.layers, 1, 0);
  std::erase_if(rest, [&](std::int64_t layer) { return layers.contains(layer); });
  add_family(facts, rest_description, "with " + rest_description, rest);
}

// Adds families of layers from numbers that say which layers are special: every n-th, from the
// n-th on or from an offset.
void add_periods(const Json& config, ModelFacts& facts) {
  // `offset`: key of the first layer; "" if the n-th is the first.
  const auto add_periodic = [&](const char* period_key, const char* offset, const char* description,
                                const char* rest_description) {
    const auto period = read_number(config, {period_key}, 64, 2);
    if (!period) return;
    const auto first = *offset ? read_number(config, {offset}, 64, 0).value_or(0) : *period - 1;
    add_family_and_rest(facts, every_nth_layer(facts.layers, *period, first), description,
                        rest_description);
  };
  add_periodic("full_attention_interval", "", "full attention", "linear attention");
  add_periodic("sliding_window_pattern", "", "full attention", "a sliding window");
  add_periodic("attn_layer_period", "attn_layer_offset", "attention", "state space");
  add_periodic("expert_layer_period", "expert_layer_offset", "experts", "a dense FFN");
  if (const auto dense = read_number(config, {"first_k_dense_replace"}, k_max_layers)) {
    add_family_and_rest(facts, every_nth_layer(std::min(*dense, facts.layers), 1, 0), "a dense FFN",
                        "experts");
  }
  add_periodic("decoder_sparse_step", "", "experts", "a dense FFN");
}

// Sets how many numbers the KV cache keeps per token. Left unset unless all layers keep the same
// number, and none has a sliding window.
void add_cache(const model::GgufHeader& header, ModelFacts& facts) {
  const auto sizes = model::read_sizes(header);
  const bool has_window = header.find_own("attention.sliding_window") != nullptr;
  if (!sizes || has_window || sizes->kv_rank != 0 || sizes->key != sizes->value) return;
  const std::uint64_t heads = model::largest(sizes->kv_heads);
  constexpr std::uint64_t k_max_size = 1U << 20;
  if (heads == 0 || heads > k_max_size || sizes->key == 0 || sizes->key > k_max_size ||
      std::ranges::count(sizes->kv_heads, heads) != std::ssize(sizes->kv_heads) ||
      sizes->kv_heads.size() != static_cast<std::size_t>(facts.layers)) {
    return;
  }
  facts.cached_numbers = facts.layers * static_cast<std::int64_t>(2 * heads * sizes->key);
  facts.cached_numbers_text =
      fmt::format("{} layers \u00d7 2 \u00d7 {} heads \u00d7 {}", facts.layers, heads, sizes->key);
}

}  // namespace

// Reads the number of layers and their families from a GGUF file's header. Families by tensors
// need a complete file: of a split file's part, metadata alone counts.
ModelFacts model_facts(const model::GgufHeader& header) {
  ModelFacts facts;
  facts.architecture = text::printable(header.architecture().substr(0, 64));
  LayersByTensor tensors;
  Layers layers_with_tensors;
  for (const model::GgufTensor& tensor : header.tensors) {
    const auto block = parse_block_tensor(tensor.name);
    if (!block) continue;
    layers_with_tensors.insert(block->layer);
    if (tensors.size() >= k_max_names && !tensors.contains(block->name)) continue;
    tensors[block->name].insert(block->layer);
  }
  const std::int64_t layers_seen = std::ssize(layers_with_tensors);
  std::int64_t layers_stated = small_number(header, "block_count").value_or(0);
  if (layers_stated > k_max_layers) layers_stated = 0;
  const bool is_partial = is_part(header) || layers_stated > layers_seen;
  facts.layers = is_partial ? layers_stated : layers_seen;
  facts.experts_used = small_number(header, "expert_used_count");
  // Families by tensors need all layers.
  if (!is_partial) add_tensor_families(tensors, facts.layers, facts);
  add_metadata_families(header, facts);
  if (!is_partial) add_cache(header, facts);
  order_families(facts);
  return facts;
}

// Reads the number of layers and their families from a model's config.json. Fails if it names no
// number of layers.
Result<ModelFacts> model_facts_from_config(std::string_view source) {
  WEIR_TRY(const Json json, parse_json(source, {.bytes = std::size_t{4} << 20, .depth = 32}));
  if (!json.is_object()) return fail(Code::data, "a config.json holds an object");
  // Vision models keep the text part in an object of its own.
  const Json& text_config = member_or_null(json, "text_config");
  const Json& config = text_config.is_object() ? text_config : json;
  const auto layers =
      read_number(config, {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, k_max_layers);
  if (!layers) {
    return fail(Code::data,
                "it names no number of layers\n"
                "  (num_hidden_layers, 1 to {}; is it a model's config.json?)",
                k_max_layers);
  }
  ModelFacts facts;
  facts.layers = *layers;
  if (const Json& type = member_or_null(config, "model_type"); type.is_string()) {
    facts.architecture = text::printable(type.get<std::string>().substr(0, 64));
  }
  facts.experts_used = read_number(
      config, {"num_experts_per_tok", "num_experts_per_token", "experts_per_token"}, 1'000'000);
  add_layer_types(config, facts);
  add_periods(config, facts);
  order_families(facts);
  return facts;
}

}  // namespace weir::explain
