// The APIs of engines that serve: what is sent for a prompt, and what an event of the streamed
// answer means. One file an API (serving_*.cpp), one line in a table. Pure.
//
// Where each of these stands: docs/how-to/servers.md.
#pragma once

#include "gate/adapters/event_stream.hpp"
#include "gate/base/json.hpp"
#include "gate/base/result.hpp"
#include "gate/profile/served.hpp"

namespace weir::adapters::serving {

// One request. Sampling is greedy (temperature 0) always.
struct Ask {
  std::string model;  // "" : left out where the API lets that be (llama-server serves one model)
  std::string prompt;
  std::int64_t max_tokens = 16;
  std::int64_t seed = 1;
  // Fields that are no part of OpenAI's API, and that llama-server, vLLM and SGLang understand or
  // pass over: ignore_eos, so that each answer has max_tokens tokens, and cache_prompt: false, so
  // that each prompt is computed. Off for servers that refuse fields they do not know.
  bool own_fields = true;
  bool to_full_length = true;   // ignore_eos
  bool cached_prompts = false;  // whether a cache is used is the server's own affair
  // Put over the body's own members, last: {"cache_salt": "…"}; objects in both are made one. An
  // object, or null.
  Json more = nullptr;
};

// What one event says.
struct Piece {
  bool is_token = false;    // it brings tokens, maybe of no text (half a character, a special one)
  std::int64_t tokens = 1;  // how many, where it says; else 1
  // Tokens generated up to here, where it says: what was held back before came with this event.
  std::optional<std::int64_t> so_far;
  std::string text;
  profile::Likely likely{};          // where it was asked for
  profile::ServedReport reported;    // what this event says of it; parts are absent
  std::optional<std::string> error;  // the server's words; the request failed
  bool is_last = false;              // the API's end of a stream
};

struct Api {
  std::string_view name;          // "completions", "chat", "llama", "ollama"
  std::string_view path;          // "/v1/completions"
  std::string_view content_type;  // of its streams, without parameters
  Framing framing = Framing::server_sent;
  bool needs_model = false;
  Json (*body)(const Ask& ask) = nullptr;
  // Of an event's data. Fails with Code::data when it is not what the API says.
  Result<Piece> (*read)(std::string_view data) = nullptr;
  // Members that ask for the likeliest tokens at each position; null: it cannot be asked.
  Json (*ask_likely)(std::int64_t tokens) = nullptr;
};

[[nodiscard]] std::span<const Api> apis();
[[nodiscard]] const Api* find_api(std::string_view name);  // null: unknown
[[nodiscard]] std::vector<std::string> api_names();

// Members of a request that weir sends itself ("options.seed"), or that would undo one of them: no
// configuration may set them.
[[nodiscard]] std::vector<std::string> members_sent(const Api& api, bool own_fields);

// The body to send: the API's own members and `ask.more`, in one line.
[[nodiscard]] std::string body_of(const Api& api, const Ask& ask);

// An error's words, out of the body of an answer that is no stream: {"error": {"message": …}},
// {"error": "…"}, {"detail": …}, {"message": …}; else the text's beginning. Fit to show.
[[nodiscard]] std::string error_words(std::string_view body);

// Parts that `newer` has replace those of `known`.
void merge(profile::ServedReport& known, const profile::ServedReport& newer);

}  // namespace weir::adapters::serving
