// The engines of a starter: what they are asked with, and what they load. Of starter.cpp alone.
// Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gate/config/starter.hpp"

namespace weir::config {

// What the engine of an adapter is asked with, behind its program; counts come from `probes`, where
// one can see it. The flags are those of the engine's own help.
struct EngineKind {
  std::string_view adapter;
  std::string_view arguments;
  bool text = false;                // it takes a text; else a number of prompt tokens
  bool gguf = true, folder = true;  // the models that it loads
  bool metal = false;               // it runs on Apple's devices alone
  std::string_view comment = "";
};

// A name that the config will have, beside what was found.
struct Named {
  std::string name;
  const StarterEngine* engine;
  const EngineKind* kind;  // null: generic
};
// With names of their own, in their order.
[[nodiscard]] std::vector<Named> named_engines(const StarterInput& found);

// The section `engines:` of these; an example where there are none.
[[nodiscard]] std::string starter_engines(const StarterInput& found, const std::vector<Named>& all);

[[nodiscard]] bool of_llama(const StarterEngine& engine);

// Letters, digits, ".", "_" and "-", at most 64, a letter or digit first; not yet in `taken`.
[[nodiscard]] std::string fresh_name(std::string_view wanted, std::string_view fallback,
                                     std::set<std::string>& taken);

}  // namespace weir::config
