#include "gate/explain/model_facts.hpp"

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/model/twin_sizes.hpp"

namespace weir::explain {
namespace {

using Layers = std::set<std::int64_t>;

// Not where the layers are none, all, or those of a family that is there already.
void add_family(ModelFacts& facts, std::string pattern, std::string words, const Layers& layers) {
  if (layers.empty() || static_cast<std::int64_t>(layers.size()) >= facts.layers) return;
  if (facts.families.size() >= k_most_families) return;
  std::vector<std::int64_t> list(layers.begin(), layers.end());
  if (std::ranges::find(facts.families, list, &Family::layers) != facts.families.end()) return;
  facts.families.push_back({std::move(pattern), std::move(words), std::move(list)});
}

// Layers first, first + step, … below `layers`.
Layers every_nth(std::int64_t layers, std::int64_t step, std::int64_t first) {
  Layers made;
  if (step < 1 || first < 0) return made;
  for (std::int64_t layer = first; layer < layers; layer += step) made.insert(layer);
  return made;
}

// The largest first; then by pattern.
void order_families(ModelFacts& facts) {
  std::ranges::sort(facts.families, {}, [](const Family& family) {
    return std::pair(-std::ssize(family.layers), std::string_view(family.pattern));
  });
}

struct BlockTensor {
  std::int64_t layer = 0;
  std::string name;  // "ssm_conv1d", without ".weight" and ".bias"
};

// "blk.12.ssm_conv1d.weight"; nothing for a tensor outside of layers.
std::optional<BlockTensor> block_tensor(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const auto layer = text::to_int(name.substr(0, dot));
  if (!layer || *layer < 0 || *layer >= k_most_layers) return std::nullopt;
  std::string_view rest = name.substr(dot + 1);
  for (const std::string_view ending : {".weight", ".bias"}) {
    if (rest.ends_with(ending)) rest.remove_suffix(ending.size());
  }
  if (rest.empty() || rest.size() > 64) return std::nullopt;
  return BlockTensor{*layer, text::printable(rest)};
}

// Models have some tens of names; what a file from strangers has beyond is left out.
constexpr std::size_t k_most_names = 4096;

using TensorLayers = std::map<std::string, Layers>;

// Where a name may be cut: behind an underscore or a dot, or not at all.
std::vector<std::string> beginnings(const std::string& name) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    if (name[i] == '_' || name[i] == '.') list.push_back(name.substr(0, i + 1));
  }
  list.push_back(name);
  return list;
}

// Of all beginnings that only tensors of exactly these layers share, the one that covers most of
// them; the shortest of these.
std::string pattern_of(const Layers& layers, const TensorLayers& tensors) {
  std::string best;
  std::size_t best_covers = 0;
  std::set<std::string> tried;  // else names that begin alike take the square of their number
  for (const auto& [name, own] : tensors) {
    if (own != layers) continue;
    for (const std::string& beginning : beginnings(name)) {
      if (!tried.insert(beginning).second) continue;
      std::size_t covers = 0;
      bool others = false;
      for (auto it = tensors.lower_bound(beginning);
           !others && it != tensors.end() && it->first.starts_with(beginning); ++it) {
        others = it->second != layers;
        ++covers;
      }
      if (others) continue;
      if (covers > best_covers || (covers == best_covers && beginning.size() < best.size())) {
        best = beginning;
        best_covers = covers;
      }
    }
  }
  const bool whole = best_covers == 1 && tensors.contains(best);
  return "blk.*." + best + (whole ? "" : "*");
}

void add_tensor_families(const TensorLayers& tensors, std::int64_t layers, ModelFacts& facts) {
  std::set<Layers> sets;
  for (const auto& [name, own] : tensors) {
    if (static_cast<std::int64_t>(own.size()) < layers) sets.insert(own);
    if (sets.size() > k_most_families) break;
  }
  for (const Layers& own : sets) {
    const std::string pattern = pattern_of(own, tensors);
    add_family(facts, pattern, "with " + pattern + " tensors", own);
  }
}

std::optional<std::int64_t> small_number(const model::GgufHeader& header, std::string_view key) {
  const auto* value = header.find_own(key);
  const auto number = value == nullptr ? 0 : value->to_unsigned().value_or(0);
  if (number == 0 || number > 1'000'000) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

// Per-layer values of the metadata: layers without keys and values keep no cache, those with a
// window attend to a part of it.
void add_metadata_families(const model::GgufHeader& header, ModelFacts& facts) {
  const auto* heads = header.find_own("attention.head_count_kv");
  if (const auto list = heads == nullptr ? std::nullopt : heads->to_unsigned_list()) {
    Layers some;
    for (std::size_t i = 0; i < list->size() && i < std::size_t{k_most_layers}; ++i) {
      if ((*list)[i] > 0) some.insert(static_cast<std::int64_t>(i));
    }
    add_family(facts, "attention.head_count_kv > 0", "with keys and values", some);
  }
  const auto every = small_number(header, "attention.sliding_window_pattern");
  if (every && *every > 1 && *every <= 64) {
    add_family(facts, "attention.sliding_window_pattern", "without a sliding window",
               every_nth(facts.layers, *every, *every - 1));
  }
}

// One file of several: the tensors of the layers in the others are not in it.
bool is_part(const model::GgufHeader& header) {
  const auto* files = header.find("split.count");
  return files != nullptr && files->to_unsigned().value_or(1) > 1;
}

// A whole number from 1 to `most` under the first of these keys that has one.
std::optional<std::int64_t> whole(const Json& config, std::initializer_list<const char*> keys,
                                  std::int64_t most, std::int64_t least = 1) {
  for (const char* key : keys) {
    const Json& found = below(config, key);
    // Beyond what is signed it is below 0.
    const std::int64_t value = found.is_number_integer() ? found.get<std::int64_t>() : -1;
    if (value >= least && value <= most) return value;
  }
  return std::nullopt;
}

// Families by what each layer is said to be, in quotes between `before` and `after`; "" says
// nothing.
void add_kinds(const std::vector<std::string>& of_layers, const std::string& before,
               const std::string& after, ModelFacts& facts) {
  std::map<std::string, Layers> kinds;
  std::int64_t layer = 0;
  for (const std::string& kind : of_layers) {
    if (layer < facts.layers) kinds[kind].insert(layer++);
  }
  kinds.erase("");
  for (const auto& [kind, layers] : kinds) {
    add_family(facts, kind, before + '"' + kind + '"' + after, layers);
  }
}

// One word or letter ("M-M*-") a layer, as hybrid models have it.
void add_types(const Json& config, ModelFacts& facts) {
  const auto word = [](const Json& one) {
    return one.is_string() ? text::printable(one.get<std::string>().substr(0, 64)) : "";
  };
  const auto letter = [](char c) { return std::string(c > ' ' && c <= '~' ? 1 : 0, c); };
  for (const std::string key : {"layer_types", "layers_block_type"}) {
    add_kinds(collect<std::string>(list_in(config, key.c_str()), word), "of " + key + " ", "",
              facts);
  }
  const Json& letters = below(config, "hybrid_override_pattern");
  if (!letters.is_string()) return;
  add_kinds(collect<std::string>(letters.get<std::string>(), letter), "marked ",
            " in hybrid_override_pattern", facts);
}

void add_both(ModelFacts& facts, const Layers& layers, const std::string& one,
              const std::string& other) {
  add_family(facts, one, "with " + one, layers);
  Layers rest = every_nth(facts.layers, 1, 0);
  std::erase_if(rest, [&](std::int64_t layer) { return layers.contains(layer); });
  add_family(facts, other, "with " + other, rest);
}

// Numbers that say which layers are special: every n-th, from the n-th on or from an offset.
void add_periods(const Json& config, ModelFacts& facts) {
  // `offset`: "" where the n-th is the first.
  const auto add = [&](const char* period, const char* offset, const char* these,
                       const char* others) {
    const auto every = whole(config, {period}, 64, 2);
    if (!every) return;
    const auto first = *offset ? whole(config, {offset}, 64, 0).value_or(0) : *every - 1;
    add_both(facts, every_nth(facts.layers, *every, first), these, others);
  };
  add("full_attention_interval", "", "full attention", "linear attention");
  add("sliding_window_pattern", "", "full attention", "a sliding window");
  add("attn_layer_period", "attn_layer_offset", "attention", "state space");
  add("expert_layer_period", "expert_layer_offset", "experts", "a dense FFN");
  if (const auto dense = whole(config, {"first_k_dense_replace"}, k_most_layers)) {
    add_both(facts, every_nth(std::min(*dense, facts.layers), 1, 0), "a dense FFN", "experts");
  }
  add("decoder_sparse_step", "", "experts", "a dense FFN");
}

void add_cache(const model::GgufHeader& header, ModelFacts& facts) {
  const auto sizes = model::read_sizes(header);
  const bool windows = header.find_own("attention.sliding_window") != nullptr;
  if (!sizes || windows || sizes->kv_rank != 0 || sizes->key != sizes->value) return;
  const std::uint64_t heads = model::largest(sizes->kv_heads);
  constexpr std::uint64_t k_most = 1U << 20;
  if (heads == 0 || heads > k_most || sizes->key == 0 || sizes->key > k_most ||
      std::ranges::count(sizes->kv_heads, heads) != std::ssize(sizes->kv_heads) ||
      sizes->kv_heads.size() != static_cast<std::size_t>(facts.layers)) {
    return;
  }
  facts.cached_numbers = facts.layers * static_cast<std::int64_t>(2 * heads * sizes->key);
  facts.cached_words =
      fmt::format("{} layers \u00d7 2 \u00d7 {} heads \u00d7 {}", facts.layers, heads, sizes->key);
}

}  // namespace

ModelFacts model_facts(const model::GgufHeader& header) {
  ModelFacts facts;
  facts.architecture = text::printable(header.architecture().substr(0, 64));
  TensorLayers tensors;
  Layers all;
  for (const model::GgufTensor& tensor : header.tensors) {
    const auto block = block_tensor(tensor.name);
    if (!block) continue;
    all.insert(block->layer);
    if (tensors.size() >= k_most_names && !tensors.contains(block->name)) continue;
    tensors[block->name].insert(block->layer);
  }
  const std::int64_t seen = std::ssize(all);
  std::int64_t said = small_number(header, "block_count").value_or(0);
  if (said > k_most_layers) said = 0;
  const bool partial = is_part(header) || said > seen;
  facts.layers = partial ? said : seen;
  facts.experts_used = small_number(header, "expert_used_count");
  // Which layers lack a tensor is not known where layers are missing.
  if (!partial) add_tensor_families(tensors, facts.layers, facts);
  add_metadata_families(header, facts);
  if (!partial) add_cache(header, facts);
  order_families(facts);
  return facts;
}

Result<ModelFacts> model_facts_from_config(std::string_view source) {
  WEIR_TRY(const Json json, parse_json(source, {.bytes = std::size_t{4} << 20, .depth = 32}));
  if (!json.is_object()) return fail(Code::data, "a config.json holds an object");
  // Models that see keep what they say of text apart.
  const Json& inner = below(json, "text_config");
  const Json& config = inner.is_object() ? inner : json;
  const auto layers =
      whole(config, {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, k_most_layers);
  if (!layers) {
    return fail(Code::data,
                "it names no number of layers\n"
                "  (num_hidden_layers, 1 to {}; is it a model's config.json?)",
                k_most_layers);
  }
  ModelFacts facts;
  facts.layers = *layers;
  if (const Json& type = below(config, "model_type"); type.is_string()) {
    facts.architecture = text::printable(type.get<std::string>().substr(0, 64));
  }
  facts.experts_used = whole(
      config, {"num_experts_per_tok", "num_experts_per_token", "experts_per_token"}, 1'000'000);
  add_types(config, facts);
  add_periods(config, facts);
  order_families(facts);
  return facts;
}

}  // namespace weir::explain
