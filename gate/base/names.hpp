// The values of an enum and their names in files, in one table for both directions:
//   constexpr auto k_natures = names_in_order<Nature>("exact", …);  // as the enum declares them,
//   from 0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace weir {

template <class E>
using Name = std::pair<E, std::string_view>;

template <class E, class... Texts>
[[nodiscard]] constexpr std::array<Name<E>, sizeof...(Texts)> names_in_order(Texts... names) {
  int at = 0;
  return {{Name<E>{static_cast<E>(at++), names}...}};
}

// Returns the name of `value`, or the table's first name if it has none.
template <class E, std::size_t N>
[[nodiscard]] constexpr std::string_view name_of(const std::array<Name<E>, N>& names, E value) {
  const auto entry = std::find_if(names.begin(), names.end(), [&](const Name<E>& candidate) {
    return candidate.first == value;
  });
  return (entry == names.end() ? names.front() : *entry).second;
}

template <class E>
[[nodiscard]] constexpr std::optional<E> value_of(std::span<const Name<E>> names,
                                                  std::string_view name) {
  for (const auto& [value, value_name] : names) {
    if (value_name == name) return value;
  }
  return std::nullopt;
}

template <class E, std::size_t N>
[[nodiscard]] constexpr std::optional<E> value_of(const std::array<Name<E>, N>& names,
                                                  std::string_view name) {
  return value_of(std::span<const Name<E>>(names), name);
}

}  // namespace weir
