// Ollama's /api/generate: JSON lines, each with a piece of `response`; the last has done: true, and
// counts and durations (nanoseconds) of all. An error is a line of its own.
//
// raw: the prompt goes to the model as it is, without the model's template. Ollama has no switch
// for its prompt cache, nor one to go on after the end of a text; newer ones report cached tokens.
#include "gate/adapters/serving_json.hpp"

namespace weir::adapters::serving::ollama {

Json body(const ServingRequest& ask) {
  return {{"model", ask.model},
          {"prompt", ask.prompt},
          {"raw", true},
          {"stream", true},
          {"options", {{"num_predict", ask.max_tokens}, {"seed", ask.seed}, {"temperature", 0}}}};
}

// Fills a piece from a line.
static Result<void> fill(const Json& json, StreamPiece& piece) {
  constexpr double k_ns = 1e-9;
  if (!member_or_null(json, "done").is_boolean())
    return fail(Code::data, "a line without \"done\"");
  piece.is_last = json_flag(json, "done");
  for (const char* key : {"thinking", "response"}) {
    if (const std::string* text = text_in(json, key)) piece.text += *text;
  }
  piece.is_token = !piece.text.empty() || !piece.is_last;
  piece.reported.model = name_in(json, "model");
  if (!piece.is_last) return {};
  piece.reported.cached_tokens = count_in(json, "prompt_eval_cached_count");
  piece.reported.prompt_tokens = count_in(json, "prompt_eval_count");
  piece.reported.output_tokens = count_in(json, "eval_count");
  piece.reported.prompt_seconds = seconds_in(json, "prompt_eval_duration", k_ns);
  piece.reported.output_seconds = seconds_in(json, "eval_duration", k_ns);
  piece.reported.finish = name_in(json, "done_reason");
  return {};
}

Result<StreamPiece> read(std::string_view data) { return parse_piece(data, fill); }

}  // namespace weir::adapters::serving::ollama
