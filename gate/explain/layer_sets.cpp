#include "gate/explain/layer_sets.hpp"

#include <algorithm>

namespace weir::explain {

void add_family(ModelFacts& facts, std::string pattern, std::string words,
                const std::set<std::int64_t>& layers) {
  if (layers.empty() || static_cast<std::int64_t>(layers.size()) >= facts.layers) return;
  if (facts.families.size() >= k_most_families) return;
  std::vector<std::int64_t> list(layers.begin(), layers.end());
  for (const Family& known : facts.families) {
    if (known.layers == list) return;
  }
  facts.families.push_back({std::move(pattern), std::move(words), std::move(list)});
}

std::set<std::int64_t> every_nth(std::int64_t layers, std::int64_t step, std::int64_t first) {
  std::set<std::int64_t> made;
  if (step < 1 || first < 0) return made;
  for (std::int64_t layer = first; layer < layers; layer += step) made.insert(layer);
  return made;
}

void order_families(ModelFacts& facts) {
  std::sort(facts.families.begin(), facts.families.end(), [](const Family& a, const Family& b) {
    if (a.layers.size() != b.layers.size()) return a.layers.size() > b.layers.size();
    return a.pattern < b.pattern;
  });
}

}  // namespace weir::explain
