// llama-server's own /completion: each event has `content`, the ids of its `tokens`, and `stop`.
// The event with stop: true has no token but the `timings` of all. An error is in `error`.
//
// A token that ends within a character of UTF-8 is held back until the character is complete. Held
// tokens at the end come without text. `tokens_predicted`, the count so far, gives the number of
// tokens of each event, also of the last one.
#include "gate/adapters/serving_json.hpp"

namespace weir::adapters::serving::llama {

Json body(const ServingRequest& ask) {
  Json body = {{"prompt", ask.prompt},
               {"n_predict", ask.max_tokens},
               {"seed", ask.seed},
               {"stream", true},
               {"temperature", 0}};
  if (!ask.allows_cached_prompts) body["cache_prompt"] = false;
  if (!ask.model.empty()) body["model"] = ask.model;
  if (ask.ignores_eos) body["ignore_eos"] = true;
  return body;
}

// Fills a piece from an event.
static Result<void> fill(const Json& json, StreamPiece& piece) {
  const std::string* content = text_in(json, "content");
  if (content == nullptr || !member_or_null(json, "stop").is_boolean()) {
    return fail(Code::data, "an event without \"content\" and \"stop\"");
  }
  piece.text = *content;
  piece.is_last = json_flag(json, "stop");
  const std::size_t count = list_or_empty(json, "tokens").size();
  const bool no_ids = member_or_null(json, "tokens").is_null();
  piece.is_token = count > 0 || !piece.text.empty() || (no_ids && !piece.is_last);
  if (count > 0) piece.tokens = static_cast<std::int64_t>(count);
  piece.tokens_so_far = count_in(json, "tokens_predicted");
  read_likely(list_or_empty(json, "completion_probabilities"), piece);
  piece.reported = read_timings(json);
  piece.reported.model = name_in(json, "model");
  if (piece.is_last) {
    // Older builds have no timings, but these two counts.
    if (!piece.reported.output_tokens) piece.reported.output_tokens = piece.tokens_so_far;
    if (!piece.reported.prompt_tokens)
      piece.reported.prompt_tokens = count_in(json, "tokens_evaluated");
    piece.reported.finish = name_in(json, "stop_type");
  }
  return {};
}

Result<StreamPiece> read(std::string_view data) { return parse_piece(data, fill); }

}  // namespace weir::adapters::serving::llama
