// llama-server's own /completion: each event has `content`, the ids of its `tokens`, and `stop`;
// the one where that is true has no token, and `timings` of all. An error stands in `error`.
//
// A token that ends within a character of UTF-8 is held back until the character is whole, and what
// is left at the end comes with no text at all. `tokens_predicted`, the count so far, tells how
// many tokens an event stands for; also the last one, where tokens were left.
#include "gate/adapters/serving_json.hpp"

namespace weir::adapters::serving::llama {

Json body(const Ask& ask) {
  Json body = {{"prompt", ask.prompt},
               {"n_predict", ask.max_tokens},
               {"seed", ask.seed},
               {"stream", true},
               {"temperature", 0}};
  if (!ask.cached_prompts) body["cache_prompt"] = false;
  if (!ask.model.empty()) body["model"] = ask.model;
  if (ask.to_full_length) body["ignore_eos"] = true;
  return body;
}

static Result<void> fill(const Json& json, Piece& piece) {
  const std::string* content = text_in(json, "content");
  if (content == nullptr || !below(json, "stop").is_boolean()) {
    return fail(Code::data, "an event without \"content\" and \"stop\"");
  }
  piece.text = *content;
  piece.is_last = json_flag(json, "stop");
  const std::size_t count = list_in(json, "tokens").size();
  const bool no_ids = below(json, "tokens").is_null();
  piece.is_token = count > 0 || !piece.text.empty() || (no_ids && !piece.is_last);
  if (count > 0) piece.tokens = static_cast<std::int64_t>(count);
  piece.so_far = count_in(json, "tokens_predicted");
  take_likely(list_in(json, "completion_probabilities"), piece);
  piece.reported = timings_of(json);
  piece.reported.model = name_in(json, "model");
  if (piece.is_last) {
    // Older builds have no timings; these two they all have.
    if (!piece.reported.output_tokens) piece.reported.output_tokens = piece.so_far;
    if (!piece.reported.prompt_tokens)
      piece.reported.prompt_tokens = count_in(json, "tokens_evaluated");
    piece.reported.finish = name_in(json, "stop_type");
  }
  return {};
}

Result<Piece> read(std::string_view data) { return piece_of(data, fill); }

}  // namespace weir::adapters::serving::llama
