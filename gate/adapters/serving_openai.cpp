// OpenAI's streams: /v1/completions and /v1/chat/completions of vLLM, llama-server, SGLang, TGI, …
//
// A chunk has `choices` (one: n is 1) with a text, or a delta of the message; the last that has a
// choice names a finish_reason; with stream_options.include_usage one more has `usage` and no
// choices; "[DONE]" ends the stream. vLLM's last choice has text and finish_reason in one,
// llama-server's has no text. A chunk without text counts as a token (half of a character, a
// special one), as in vLLM's bench. Unlike there, a chat's first chunk, which only names the role,
// is no token, nor is one that only finishes.
#include "gate/adapters/serving_json.hpp"

namespace weir::adapters::serving {
namespace {

// Reads a choice into a piece: its text, and if it is a token. `finished`: it ends the stream.
using ReadChoice = void (*)(const Json& choice, bool finished, StreamPiece& piece);

void read_completion(const Json& choice, bool finished, StreamPiece& piece) {
  const std::string* text = text_in(choice, "text");
  if (text == nullptr) return;
  piece.text = *text;
  piece.is_token = !text->empty() || !finished;
}

// Reads {"delta": {"content": "Hi"}, …} of a chat. A chunk without text may be a token, too, unless
// it only names the role or finishes.
void read_message(const Json& choice, bool finished, StreamPiece& piece) {
  const Json& delta = member_or_null(choice, "delta");
  bool has_text = false;
  // Thinking is output as well; servers use either name for it.
  for (const char* key : {"content", "reasoning_content", "reasoning"}) {
    const std::string* text = text_in(delta, key);
    if (text != nullptr) piece.text += *text;
    has_text = has_text || text != nullptr;
  }
  const bool calls = !member_or_null(delta, "tool_calls").is_null();
  const bool names_role = !member_or_null(delta, "role").is_null();
  piece.is_token = !piece.text.empty() || calls || (has_text && !finished && !names_role);
}

// Reads the likely tokens of a completion ("logprobs") as OpenAI's older API and vLLM have them:
// two lists, with an element a position. Does nothing without these lists.
void read_likely_of_lists(const Json& logprobs, StreamPiece& piece) {
  const auto tokens = list_or_empty(logprobs, "tokens"),
             tops = list_or_empty(logprobs, "top_logprobs");
  for (std::size_t i = 0; i < std::min(tokens.size(), tops.size()); ++i) {
    if (!tokens[i].is_string() || !tops[i].is_object()) continue;
    profile::LikelyTokens& position = piece.likely.emplace_back();
    position.token = text::printable(tokens[i].get_ref<const std::string&>());
    for (const auto& [token, logarithm] : tops[i].items()) {
      if (!logarithm.is_number()) continue;
      position.likely[text::printable(token)] = std::min(logarithm.get<double>(), 0.0);
    }
  }
}

// Fills a piece of the stream from one chunk of JSON: what the server reports of the request, the
// text of its only choice, and the likely tokens. A chunk without choices has the usage alone.
// Fails with Code::data if there are several choices, or neither choices nor usage.
template <ReadChoice read_choice>
Result<void> read_chunk_json(const Json& json, StreamPiece& piece) {
  piece.reported = read_usage(json);
  // llama-server's `timings` describe the same tokens in more detail, so they replace `usage`.
  replace_reported_parts(piece.reported, read_timings(json));
  const Json& choices = member_or_null(json, "choices");
  if (choices.is_null() && !member_or_null(json, "usage").is_null()) return {};
  if (!choices.is_array()) return fail(Code::data, "a chunk without \"choices\"");
  if (choices.size() > 1) return fail(Code::data, "{} choices, asked for one", choices.size());
  if (choices.empty()) return {};
  const Json& choice = choices.front();
  piece.reported.finish = name_in(choice, "finish_reason");
  read_choice(choice, /*finished=*/piece.reported.finish.has_value(), piece);
  const Json& logprobs = member_or_null(choice, "logprobs");
  read_likely(list_or_empty(logprobs, "content"), piece);
  read_likely_of_lists(logprobs, piece);
  return {};
}

template <ReadChoice read_choice>
Result<StreamPiece> read_chunk(std::string_view data) {
  if (data != "[DONE]") return parse_piece(data, read_chunk_json<read_choice>);
  StreamPiece piece;
  piece.is_last = true;
  return piece;
}

}  // namespace

Json completions::body(const ServingRequest& ask) {
  Json body = openai_body(ask);
  body["prompt"] = ask.prompt;
  return body;
}
Result<StreamPiece> completions::read(std::string_view data) {
  return read_chunk<read_completion>(data);
}

Json chat::body(const ServingRequest& ask) {
  Json body = openai_body(ask);
  body["messages"] = Json::array({{{"role", "user"}, {"content", ask.prompt}}});
  return body;
}
Result<StreamPiece> chat::read(std::string_view data) { return read_chunk<read_message>(data); }

}  // namespace weir::adapters::serving
