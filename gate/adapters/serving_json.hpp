// What serving.cpp's table is made of, one file each; and what these share: members of an event's
// JSON, of which one of another type counts as absent. For serving_*.cpp alone.
#pragma once

#include "gate/adapters/readers.hpp"
#include "gate/adapters/serving.hpp"

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

// Of no more than a billion: what a server says is added up.
[[nodiscard]] inline std::optional<std::int64_t> count_in(const Json& json, const char* key) {
  const auto count = json_whole(json, key);
  return count && *count <= 1'000'000'000 ? count : std::nullopt;
}

[[nodiscard]] inline std::optional<double> seconds_in(const Json& json, const char* key,
                                                      double unit) {
  const auto number = json_number(json, key);
  return number && *number >= 0 ? std::optional(*number * unit) : std::nullopt;
}

[[nodiscard]] inline const std::string* text_in(const Json& json, const char* key) {
  const Json& found = below(json, key);
  return found.is_string() ? &found.get_ref<const std::string&>() : nullptr;
}

// Fit to show, and no longer than a name.
[[nodiscard]] inline std::optional<std::string> name_in(const Json& json, const char* key) {
  const auto text = json_text(json, key);
  return text && !text->empty() ? text : std::nullopt;
}

// llama-server's `timings`, which it adds to its answers in every API.
[[nodiscard]] profile::ServedReport timings_of(const Json& json);
// `usage`, `model` and `system_fingerprint`, as OpenAI has them.
[[nodiscard]] profile::ServedReport usage_of(const Json& json);
// A list of {"token", "logprob", "top_logprobs": [{"token", "logprob"}]}.
void take_likely(const Json& positions, Piece& piece);
// What both of OpenAI's APIs are sent, but for the prompt.
[[nodiscard]] Json openai_body(const Ask& ask);

}  // namespace weir::adapters::serving
