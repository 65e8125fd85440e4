// The APIs of inference servers: the request for a prompt, and the meaning of an event of the
// streamed answer. One file per API (serving_*.cpp), one line in a table. Pure.
//
// Sources of the APIs: docs/reference/servers.md.
#pragma once

#include "gate/adapters/event_stream.hpp"
#include "gate/base/json.hpp"
#include "gate/base/result.hpp"
#include "gate/profile/served.hpp"

namespace weir::adapters::serving {

// One request. Sampling is greedy (temperature 0) always.
struct ServingRequest {
  std::string model;  // "" : left out where the API lets that be (llama-server serves one model)
  std::string prompt;
  std::int64_t max_tokens = 16;
  std::int64_t seed = 1;
  // Fields that are no part of OpenAI's API, and that llama-server, vLLM and SGLang understand or
  // pass over: ignore_eos, so that each answer has max_tokens tokens, and cache_prompt: false, so
  // that each prompt is computed. Off for servers that refuse fields they do not know.
  bool sends_extra_fields = true;
  bool ignores_eos = true;             // ignore_eos
  bool allows_cached_prompts = false;  // true: the server decides if it uses a cache
  // Members that are added to the body or replace its own: {"cache_salt": "…"}. Objects in both are
  // merged. An object, or null.
  Json extra_members = nullptr;
};

// The content of one event.
struct StreamPiece {
  bool is_token = false;    // it brings tokens, maybe of no text (half a character, a special one)
  std::int64_t tokens = 1;  // how many, where it says; else 1
  // Tokens generated up to here, if it says so, including those that were held back before.
  std::optional<std::int64_t> tokens_so_far;
  std::string text;
  profile::Likely likely{};          // if requested
  profile::ServedReport reported;    // numbers that the server reports; some are absent
  std::optional<std::string> error;  // the server's words; the request failed
  bool is_last = false;              // the API's end of a stream
};

struct Api {
  std::string_view name;          // "completions", "chat", "llama", "ollama"
  std::string_view path;          // "/v1/completions"
  std::string_view content_type;  // content type of its streams, without parameters
  Framing framing = Framing::server_sent;
  bool needs_model = false;
  Json (*body)(const ServingRequest& ask) = nullptr;
  // Reads an event's data. Fails with Code::data when the data does not fit the API.
  Result<StreamPiece> (*read)(std::string_view data) = nullptr;
  // Returns the members that ask for the likeliest tokens at each position; null: the API has none.
  Json (*likely_tokens_request)(std::int64_t tokens) = nullptr;
};

[[nodiscard]] std::span<const Api> apis();
[[nodiscard]] const Api* find_api(std::string_view name);  // null: unknown
[[nodiscard]] std::vector<std::string> api_names();

// Members of a request that weir sends itself ("options.seed"), or that would undo one of them: no
// configuration may set them.
[[nodiscard]] std::vector<std::string> reserved_members(const Api& api, bool sends_extra_fields);

// The body to send: the API's own members and `ask.extra_members`, in one line.
[[nodiscard]] std::string make_body(const Api& api, const ServingRequest& ask);

// Returns the message of an error answer: {"error": {"message": …}}, {"error": "…"}, {"detail": …},
// {"message": …}; else the text's beginning. Printable.
[[nodiscard]] std::string error_answer_text(std::string_view body);

// Replaces those parts of `report` that `newer` has.
void replace_reported_parts(profile::ServedReport& report, const profile::ServedReport& newer);

}  // namespace weir::adapters::serving
