// Look-ups that say in one word what find() and end() say in two.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir {

// Returns the value under `key`, or null.
template <class Map, class Key>
[[nodiscard]] auto* look_up(Map& map, const Key& key) {
  const auto entry = map.find(key);
  return entry == map.end() ? nullptr : &entry->second;
}

// Returns a copy of the value under `key`, or `otherwise`.
template <class Map, class Key, class Value>
[[nodiscard]] typename Map::mapped_type look_up(const Map& map, const Key& key,
                                                const Value& otherwise) {
  const auto* entry = look_up(map, key);
  return entry == nullptr ? typename Map::mapped_type(otherwise) : *entry;
}

// Returns the first element that fits, or null.
template <class List, class Fits>
[[nodiscard]] auto* find_first(List& list, const Fits& fits) {
  const auto match = std::find_if(std::begin(list), std::end(list), fits);
  return match == std::end(list) ? nullptr : &*match;
}

// Returns the element of this name, or null.
template <class List, class Text>
[[nodiscard]] auto* find_named(List& list, const Text& name) {
  return find_first(list, [&](const auto& item) { return item.name == name; });
}

template <class List, class Value>
[[nodiscard]] bool holds(const List& list, const Value& value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

// Returns `part` of each element, in order: collect<std::string>(engines, &Engine::name).
template <class Item, class List, class Part>
[[nodiscard]] std::vector<Item> collect(const List& list, const Part& part) {
  std::vector<Item> items;
  for (const auto& element : list) items.emplace_back(std::invoke(part, element));
  return items;
}

// Groups items by key, in the order in which keys first come. Finds a key in logarithmic time.
template <class First, class Rest>
struct Grouped {
  std::vector<std::pair<First, Rest>> all;
  std::map<std::string, std::size_t> places;

  Rest& find_or_add(const std::string& key, const First& first) {
    const auto [place, fresh] = places.try_emplace(key, all.size());
    if (fresh) all.emplace_back(first, Rest());
    return all[place->second].second;
  }
};

}  // namespace weir
