#include "gate/explain/model_facts.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/explain/layer_sets.hpp"

namespace weir::explain {
namespace {

using Layers = std::set<std::int64_t>;

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

// Per-layer values of the metadata: layers without keys and values keep no cache, those with a
// window attend to a part of it.
void add_metadata_families(const model::GgufHeader& header, ModelFacts& facts) {
  if (const auto* heads = header.find_own("attention.head_count_kv")) {
    if (const auto list = heads->to_unsigned_list()) {
      Layers some;
      for (std::size_t i = 0; i < list->size() && i < std::size_t{k_most_layers}; ++i) {
        if ((*list)[i] > 0) some.insert(static_cast<std::int64_t>(i));
      }
      add_family(facts, "attention.head_count_kv > 0", "with keys and values", some);
    }
  }
  if (const auto* window = header.find_own("attention.sliding_window_pattern")) {
    if (const auto every = window->to_unsigned(); every && *every > 1 && *every <= 64) {
      const auto step = static_cast<std::int64_t>(*every);
      add_family(facts, "attention.sliding_window_pattern", "without a sliding window",
                 every_nth(facts.layers, step, step - 1));
    }
  }
}

std::optional<std::int64_t> small_number(const model::GgufHeader& header, std::string_view key) {
  const auto* value = header.find_own(key);
  if (value == nullptr) return std::nullopt;
  const auto number = value->to_unsigned();
  if (!number || *number == 0 || *number > 1'000'000) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

// One file of several: the tensors of the layers in the others are not in it.
bool is_part(const model::GgufHeader& header) {
  const auto* files = header.find("split.count");
  return files != nullptr && files->to_unsigned().value_or(1) > 1;
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
  facts.experts = small_number(header, "expert_count");
  facts.experts_used = small_number(header, "expert_used_count");
  // Which layers lack a tensor is not known where layers are missing.
  if (!partial) add_tensor_families(tensors, facts.layers, facts);
  add_metadata_families(header, facts);
  order_families(facts);
  return facts;
}

}  // namespace weir::explain
