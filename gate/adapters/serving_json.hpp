// The APIs of serving.cpp's table, and helpers to read members of an event's JSON. A member of
// another type counts as absent. For serving_*.cpp only.
#pragma once

#include "gate/adapters/readers.hpp"
#include "gate/adapters/serving.hpp"

namespace weir::adapters::serving {

#define WEIR_SERVING_API(name)                                   \
  namespace name {                                               \
  [[nodiscard]] Json body(const ServingRequest& ask);            \
  [[nodiscard]] Result<StreamPiece> read(std::string_view data); \
  }
WEIR_SERVING_API(completions)
WEIR_SERVING_API(chat)
WEIR_SERVING_API(llama)
WEIR_SERVING_API(ollama)
#undef WEIR_SERVING_API

inline constexpr JsonLimits k_event_limits{std::size_t{1} << 20, 32, 200'000};

// Parses an event's data, a JSON object. `fill` fills in the piece unless the event is an error.
[[nodiscard]] Result<StreamPiece> parse_piece(std::string_view data,
                                              Result<void> (*fill)(const Json& json,
                                                                   StreamPiece& piece));

// Returns a count of at most a billion, as counts of a server are added up.
[[nodiscard]] inline std::optional<std::int64_t> count_in(const Json& json, const char* key) {
  const auto count = json_integer(json, key);
  return count && *count <= 1'000'000'000 ? count : std::nullopt;
}

[[nodiscard]] inline std::optional<double> seconds_in(const Json& json, const char* key,
                                                      double unit) {
  const auto number = json_number(json, key);
  return number && *number >= 0 ? std::optional(*number * unit) : std::nullopt;
}

[[nodiscard]] inline const std::string* text_in(const Json& json, const char* key) {
  const Json& value = member_or_null(json, key);
  return value.is_string() ? &value.get_ref<const std::string&>() : nullptr;
}

// Returns a text that is not empty, as display_text.
[[nodiscard]] inline std::optional<std::string> name_in(const Json& json, const char* key) {
  const auto text = json_text(json, key);
  return text && !text->empty() ? text : std::nullopt;
}

// llama-server's `timings`, which it adds to its answers in every API.
[[nodiscard]] profile::ServedReport read_timings(const Json& json);
// `usage`, `model` and `system_fingerprint`, as OpenAI has them.
[[nodiscard]] profile::ServedReport read_usage(const Json& json);
// A list of {"token", "logprob", "top_logprobs": [{"token", "logprob"}]}.
void read_likely(const Json& positions, StreamPiece& piece);
// The request body of both of OpenAI's APIs, without the prompt.
[[nodiscard]] Json openai_body(const ServingRequest& ask);

}  // namespace weir::adapters::serving
