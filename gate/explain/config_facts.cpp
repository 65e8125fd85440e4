// A model's layers from config.json, as published beside safetensors.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/layer_sets.hpp"

namespace weir::explain {
namespace {

using Layers = std::set<std::int64_t>;

// A whole number from 1 to `most` under the first of these keys that has one.
std::optional<std::int64_t> whole(const Json& config, std::initializer_list<const char*> keys,
                                  std::int64_t most, std::int64_t least = 1) {
  for (const char* key : keys) {
    const auto found = config.find(key);
    if (found == config.end() || !found->is_number_integer()) continue;
    if (found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{1} << 40)
      continue;
    const auto value = found->get<std::int64_t>();
    if (value >= least && value <= most) return value;
  }
  return std::nullopt;
}

// One word a layer, as hybrid models have it.
void add_types(const Json& config, ModelFacts& facts) {
  for (const char* key : {"layer_types", "layers_block_type"}) {
    const auto found = config.find(key);
    if (found == config.end() || !found->is_array()) continue;
    std::map<std::string, Layers> kinds;
    std::int64_t layer = 0;
    for (const Json& one : *found) {
      if (layer >= facts.layers) break;
      if (one.is_string()) {
        kinds[text::printable(one.get<std::string>().substr(0, 64))].insert(layer);
      }
      ++layer;
    }
    for (const auto& [kind, layers] : kinds) {
      add_family(facts, kind, fmt::format("of {} \"{}\"", key, kind), layers);
    }
  }
}

// "M-M*-": one letter a layer.
void add_letters(const Json& config, ModelFacts& facts) {
  const auto found = config.find("hybrid_override_pattern");
  if (found == config.end() || !found->is_string()) return;
  std::map<char, Layers> kinds;
  const auto letters = found->get<std::string>();
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (static_cast<std::int64_t>(i) >= facts.layers) break;
    kinds[letters[i]].insert(static_cast<std::int64_t>(i));
  }
  for (const auto& [letter, layers] : kinds) {
    if (letter <= ' ' || letter > '~') continue;
    add_family(facts, std::string(1, letter),
               fmt::format("marked \"{}\" in hybrid_override_pattern", letter), layers);
  }
}

Layers others(const ModelFacts& facts, const Layers& layers) {
  Layers rest;
  for (std::int64_t layer = 0; layer < facts.layers; ++layer) {
    if (!layers.contains(layer)) rest.insert(layer);
  }
  return rest;
}

void add_both(ModelFacts& facts, const Layers& layers, const std::string& one,
              const std::string& other) {
  add_family(facts, one, "with " + one, layers);
  add_family(facts, other, "with " + other, others(facts, layers));
}

// Numbers that say which layers are special.
void add_periods(const Json& config, ModelFacts& facts) {
  if (const auto every = whole(config, {"full_attention_interval"}, 64, 2)) {
    add_both(facts, every_nth(facts.layers, *every, *every - 1), "full attention",
             "linear attention");
  }
  if (const auto every = whole(config, {"sliding_window_pattern"}, 64, 2)) {
    add_both(facts, every_nth(facts.layers, *every, *every - 1), "full attention",
             "a sliding window");
  }
  if (const auto every = whole(config, {"attn_layer_period"}, 64, 2)) {
    const auto first = whole(config, {"attn_layer_offset"}, 64, 0).value_or(0);
    add_both(facts, every_nth(facts.layers, *every, first), "attention", "state space");
  }
  if (const auto every = whole(config, {"expert_layer_period"}, 64, 2)) {
    const auto first = whole(config, {"expert_layer_offset"}, 64, 0).value_or(0);
    add_both(facts, every_nth(facts.layers, *every, first), "experts", "a dense FFN");
  }
  if (const auto dense = whole(config, {"first_k_dense_replace"}, k_most_layers)) {
    Layers first;
    for (std::int64_t i = 0; i < std::min(*dense, facts.layers); ++i) first.insert(i);
    add_both(facts, first, "a dense FFN", "experts");
  }
  if (const auto step = whole(config, {"decoder_sparse_step"}, 64, 2)) {
    add_both(facts, every_nth(facts.layers, *step, *step - 1), "experts", "a dense FFN");
  }
}

}  // namespace

Result<ModelFacts> model_facts_from_config(std::string_view source) {
  WEIR_TRY(const Json json, parse_json(source, {.bytes = std::size_t{4} << 20, .depth = 32}));
  if (!json.is_object()) return fail(Code::data, "a config.json holds an object");
  // Models that see keep what they say of text apart.
  const auto inner = json.find("text_config");
  const Json& config = inner != json.end() && inner->is_object() ? *inner : json;
  const auto layers =
      whole(config, {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, k_most_layers);
  if (!layers) {
    return fail(Code::data,
                "it tells no number of layers\n"
                "  (num_hidden_layers, 1 to {}; is it a model's config.json?)",
                k_most_layers);
  }
  ModelFacts facts;
  facts.layers = *layers;
  const auto type = config.find("model_type");
  if (type != config.end() && type->is_string()) {
    facts.architecture = text::printable(type->get<std::string>().substr(0, 64));
  }
  facts.experts =
      whole(config, {"num_experts", "num_local_experts", "n_routed_experts"}, 1'000'000);
  facts.experts_used = whole(
      config, {"num_experts_per_tok", "num_experts_per_token", "experts_per_token"}, 1'000'000);
  add_types(config, facts);
  add_letters(config, facts);
  add_periods(config, facts);
  order_families(facts);
  return facts;
}

}  // namespace weir::explain
