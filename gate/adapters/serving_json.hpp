// What serving.cpp's table is made of, one file each; and what these share: members of an event's
// JSON, of which one of another type counts as absent. For serving_*.cpp alone.
#pragma once

#include <cmath>

#include "gate/adapters/serving.hpp"
#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/result.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters::serving {

#define WEIR_SERVING_API(name)                             \
  namespace name {                                         \
  [[nodiscard]] Json body(const Ask& ask);                 \
  [[nodiscard]] Result<Piece> read(std::string_view data); \
  }
WEIR_SERVING_API(completions)
WEIR_SERVING_API(chat)
WEIR_SERVING_API(llama)
WEIR_SERVING_API(ollama)
#undef WEIR_SERVING_API

inline constexpr JsonLimits k_event_limits{std::size_t{1} << 20, 32, 200'000};

// One object, of which `fill` makes the piece where it is no error.
[[nodiscard]] Result<Piece> piece_of(std::string_view data,
                                     Result<void> (*fill)(const Json& json, Piece& piece));

[[nodiscard]] inline const Json* member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

// Of no more than a billion: what a server says is added up.
[[nodiscard]] inline std::optional<std::int64_t> count_in(const Json& json, const char* key) {
  constexpr std::int64_t k_most = 1'000'000'000;
  const Json* found = member(json, key);
  if (found == nullptr || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{k_most})
    return std::nullopt;
  const auto count = found->get<std::int64_t>();
  return count >= 0 && count <= k_most ? std::optional(count) : std::nullopt;
}

[[nodiscard]] inline std::optional<double> seconds_in(const Json& json, const char* key,
                                                      double unit) {
  const Json* found = member(json, key);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  const double seconds = found->get<double>() * unit;
  return std::isfinite(seconds) && seconds >= 0 ? std::optional(seconds) : std::nullopt;
}

[[nodiscard]] inline const std::string* text_in(const Json& json, const char* key) {
  const Json* found = member(json, key);
  return found != nullptr && found->is_string() ? &found->get_ref<const std::string&>() : nullptr;
}

// Fit to show, and no longer than a name.
[[nodiscard]] inline std::optional<std::string> name_in(const Json& json, const char* key) {
  constexpr std::size_t k_longest = 200;
  const std::string* text = text_in(json, key);
  if (text == nullptr || text->empty()) return std::nullopt;
  return text::printable(std::string_view(*text).substr(0, k_longest));
}

// llama-server's `timings`, which it adds to its answers in every API.
[[nodiscard]] profile::ServedReport timings_of(const Json& json);
// `usage`, `model` and `system_fingerprint`, as OpenAI has them.
[[nodiscard]] profile::ServedReport usage_of(const Json& json);
// What both of OpenAI's APIs are sent, but for the prompt.
[[nodiscard]] Json openai_body(const Ask& ask);

}  // namespace weir::adapters::serving
