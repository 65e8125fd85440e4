// Sets of a model's layers while its facts are gathered. Used by this module alone.
#pragma once

#include <set>
#include <string>

#include "gate/explain/model_facts.hpp"

namespace weir::explain {

// Not where the layers are none, all, or those of a family that is there already.
void add_family(ModelFacts& facts, std::string pattern, std::string words,
                const std::set<std::int64_t>& layers);

// Layers first, first + step, … below `layers`.
[[nodiscard]] std::set<std::int64_t> every_nth(std::int64_t layers, std::int64_t step,
                                               std::int64_t first);

void order_families(ModelFacts& facts);

}  // namespace weir::explain
