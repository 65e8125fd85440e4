// Look-ups that say in one word what find() and end() say in two.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

namespace weir {

// The value under `key`; null where there is none.
template <class Map, class Key>
[[nodiscard]] auto* look_up(Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// A copy of it, or `otherwise`.
template <class Map, class Key, class Value>
[[nodiscard]] typename Map::mapped_type look_up(const Map& map, const Key& key,
                                                const Value& otherwise) {
  const auto* found = look_up(map, key);
  return found == nullptr ? typename Map::mapped_type(otherwise) : *found;
}

// The first that fits; null where none does.
template <class List, class Fits>
[[nodiscard]] auto* first_of(List& list, const Fits& fits) {
  const auto found = std::find_if(std::begin(list), std::end(list), fits);
  return found == std::end(list) ? nullptr : &*found;
}

// The one of this name.
template <class List, class Text>
[[nodiscard]] auto* find_named(List& list, const Text& name) {
  return first_of(list, [&](const auto& one) { return one.name == name; });
}

template <class List, class Value>
[[nodiscard]] bool holds(const List& list, const Value& value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

// `part` of each, in their order: collect<std::string>(engines, &Engine::name).
template <class Item, class List, class Part>
[[nodiscard]] std::vector<Item> collect(const List& list, const Part& part) {
  std::vector<Item> items;
  for (const auto& one : list) items.emplace_back(std::invoke(part, one));
  return items;
}

}  // namespace weir
