// Facts in a model's header about its layers: how many, and which of them have what others lack.
//
// A difference of 16 syncs says little; "one for each of the 16 layers that have ssm_* tensors"
// says where to look. Files come from strangers: layers, families and names have limits. Pure.
#pragma once

#include "gate/base/result.hpp"
#include "gate/model/gguf.hpp"

namespace weir::explain {

// Layers that share something the others lack.
struct LayerFamily {
  std::string pattern;               // "blk.*.ssm_*", or what config.json says of them
  std::string description;           // "with blk.*.ssm_* tensors": follows "16 layers"
  std::vector<std::int64_t> layers;  // sorted, from 0; never empty, never all

  friend bool operator==(const LayerFamily&, const LayerFamily&) = default;
};

struct ModelFacts {
  std::string architecture;  // "" when it is not said
  std::int64_t layers = 0;   // 0: not known
  // Each set of layers once, the largest first; then by pattern.
  std::vector<LayerFamily> families;
  std::optional<std::int64_t> experts_used;
  // Numbers that a cache keeps of each token, and what they are made of: "4 layers × 2 × 4 heads ×
  // 64"; absent where layers keep different ones, or only those of a window.
  std::optional<std::int64_t> cached_numbers{};
  std::string cached_numbers_text{};

  friend bool operator==(const ModelFacts&, const ModelFacts&) = default;
};

inline constexpr std::int64_t k_max_layers = 4096;
inline constexpr std::size_t k_max_families = 32;

// Never fails: a header without layers has none. One file of a model in several, or one that has
// fewer layers than it says, tells how many there are, and no families by tensors.
[[nodiscard]] ModelFacts model_facts(const model::GgufHeader& header);

// The text of a config.json as published beside safetensors. Fails with Code::data where it is no
// JSON object or tells no number of layers.
[[nodiscard]] Result<ModelFacts> model_facts_from_config(std::string_view text);

}  // namespace weir::explain
