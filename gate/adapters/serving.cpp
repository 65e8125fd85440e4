// The table of APIs of inference servers, and helpers that they share.
#include "gate/adapters/serving.hpp"

#include "gate/adapters/serving_json.hpp"

namespace weir::adapters::serving {
namespace {

constexpr std::size_t k_longest_words = 300;

constexpr std::string_view k_events = "text/event-stream";
constexpr std::string_view k_lines = "application/x-ndjson";

// name, path, content type, framing, needs a model, body, events, likely tokens
constexpr Api k_apis[] = {
    {"completions", "/v1/completions", k_events, Framing::server_sent, false, completions::body,
     completions::read,
     [](std::int64_t tokens) {
       return Json{{"logprobs", tokens}};
     }},
    {"chat", "/v1/chat/completions", k_events, Framing::server_sent, false, chat::body, chat::read,
     [](std::int64_t tokens) {
       return Json{{"logprobs", true}, {"top_logprobs", tokens}};
     }},
    {"llama", "/completion", k_events, Framing::server_sent, false, llama::body, llama::read,
     [](std::int64_t tokens) {
       return Json{{"n_probs", tokens}};
     }},
    {"ollama", "/api/generate", k_lines, Framing::json_lines, true, ollama::body, ollama::read},
};

std::string display(std::string_view words) { return display_text(words, k_longest_words); }

// Returns the message in `error`, which is a text or an object with a message.
std::optional<std::string> find_error(const Json& json) {
  const Json& error = member_or_null(json, "error");
  if (error.is_null()) return std::nullopt;
  if (const std::string* words = text_in(error, "message")) return display(*words);
  return display(json_display_text(error));
}

}  // namespace

// Adds the paths of all members of a JSON object: "seed", "options.seed".
static void add_member_names(const Json& json, const std::string& path,
                             std::vector<std::string>& names) {
  for (const auto& [name, value] : json.items()) {
    const std::string member = path.empty() ? name : fmt::format("{}.{}", path, name);
    if (value.is_object()) {
      add_member_names(value, member, names);
    } else if (!holds(names, member)) {
      names.push_back(member);
    }
  }
}

std::span<const Api> apis() { return k_apis; }

const Api* find_api(std::string_view name) { return find_named(k_apis, name); }

std::vector<std::string> api_names() { return list_names(k_apis); }

std::vector<std::string> reserved_members(const Api& api, bool sends_extra_fields) {
  // Other names for the number of tokens, and for several answers to one prompt.
  std::vector<std::string> names{"max_tokens", "max_completion_tokens", "n", "best_of"};
  ServingRequest ask;
  ask.model = "any";
  ask.sends_extra_fields = sends_extra_fields;
  add_member_names(api.body(ask), "", names);
  return names;
}

std::string make_body(const Api& api, const ServingRequest& ask) {
  Json body = api.body(ask);
  if (ask.extra_members.is_object()) body.update(ask.extra_members, true);
  return dump_json(body);
}

std::string error_answer_text(std::string_view body) {
  const auto json = parse_json(body, k_event_limits);
  if (!json) return display(body);
  if (const auto error = find_error(*json)) return *error;
  for (const char* key : {"message", "detail"}) {
    if (const std::string* words = text_in(*json, key)) return display(*words);
  }
  return display(body);
}

// Replaces each part that the newer report has.
void replace_reported_parts(profile::ServedReport& report, const profile::ServedReport& newer) {
  using Report = profile::ServedReport;
  const auto take = [&](auto part) {
    if (newer.*part) report.*part = newer.*part;
  };
  take(&Report::prompt_tokens);
  take(&Report::cached_tokens);
  take(&Report::output_tokens);
  take(&Report::drafted_tokens);
  take(&Report::accepted_tokens);
  take(&Report::prompt_seconds);
  take(&Report::output_seconds);
  take(&Report::finish);
  take(&Report::model);
  take(&Report::build);
}

Result<StreamPiece> parse_piece(std::string_view data,
                                Result<void> (*fill)(const Json& json, StreamPiece& piece)) {
  WEIR_TRY(const Json json, parse_json(data, k_event_limits));
  if (!json.is_object()) return fail(Code::data, "an event that is no JSON object");
  StreamPiece piece;
  piece.error = find_error(json);
  if (!piece.error) WEIR_CHECK(fill(json, piece));
  return piece;
}

// Reads {"timings": {"prompt_n": 12, "prompt_ms": 88.1, "predicted_n": 32, …}} of llama-server.
profile::ServedReport read_timings(const Json& json) {
  constexpr double k_ms = 1e-3;
  profile::ServedReport report;
  const Json& timings = member_or_null(json, "timings");
  report.cached_tokens = count_in(timings, "cache_n");
  // prompt_n counts computed tokens only.
  if (const auto computed = count_in(timings, "prompt_n")) {
    report.prompt_tokens = *computed + report.cached_tokens.value_or(0);
  }
  report.output_tokens = count_in(timings, "predicted_n");
  report.drafted_tokens = count_in(timings, "draft_n");
  report.accepted_tokens = count_in(timings, "draft_n_accepted");
  report.prompt_seconds = seconds_in(timings, "prompt_ms", k_ms);
  report.output_seconds = seconds_in(timings, "predicted_ms", k_ms);
  return report;
}

profile::ServedReport read_usage(const Json& json) {
  profile::ServedReport report;
  report.model = name_in(json, "model");
  report.build = name_in(json, "system_fingerprint");
  const Json& usage = member_or_null(json, "usage");
  report.prompt_tokens = count_in(usage, "prompt_tokens");
  report.output_tokens = count_in(usage, "completion_tokens");
  report.cached_tokens = count_in(member_or_null(usage, "prompt_tokens_details"), "cached_tokens");
  return report;
}

// Reads [{"token": "Hi", "top_logprobs": [{"token": "Hi", "logprob": -0.1}, …]}, …], an element a
// token.
void read_likely(const Json& positions, StreamPiece& piece) {
  for (const Json& position : positions) {
    const std::string* token = text_in(position, "token");
    if (token == nullptr) continue;
    profile::LikelyTokens& tokens = piece.likely.emplace_back();
    tokens.token = text::printable(*token);
    for (const Json& candidate : list_or_empty(position, "top_logprobs")) {
      const std::string* name = text_in(candidate, "token");
      const auto logarithm = json_number(candidate, "logprob");
      if (name != nullptr && logarithm) {
        tokens.likely[text::printable(*name)] = std::min(*logarithm, 0.0);
      }
    }
  }
}

// Returns the members that requests for completions and for chats share.
Json openai_body(const ServingRequest& ask) {
  Json body = {{"max_tokens", ask.max_tokens},
               {"seed", ask.seed},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"temperature", 0}};
  if (!ask.model.empty()) body["model"] = ask.model;
  if (ask.sends_extra_fields) {
    if (!ask.allows_cached_prompts) body["cache_prompt"] = false;
    if (ask.ignores_eos) body["ignore_eos"] = true;
  }
  return body;
}

}  // namespace weir::adapters::serving
