// Runs a prompt and greedy decoding with a clock and a tally of counts around each token.
#include "tools/engine/generate.hpp"

#include <chrono>

namespace weir::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Evaluates `tokens` and returns the next one. With a sink each position runs alone and its logits
// go there.
Result<std::uint32_t> evaluate(Backend& backend, Decoder& decoder,
                               std::span<const std::uint32_t> tokens, const LogitsSink& sink) {
  if (!sink) return decoder.evaluate(tokens);
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    WEIR_TRY(next, decoder.evaluate(tokens.subspan(i, 1)));
    backend.copy_out(Slot::logits);
    WEIR_CHECK(backend.wait());
    WEIR_CHECK(sink(backend.copied(Slot::logits)));
  }
  return next;
}

void add_token(Repeat& repeat, std::uint32_t token, const Backend& backend) {
  repeat.tokens.push_back(token);
  if (const auto share = backend.chosen_share()) repeat.shares.push_back(*share);
}

}  // namespace

std::vector<std::uint32_t> made_up_prompt(std::uint32_t length, const Model& model) {
  std::vector<std::uint32_t> ids{model.first_token};
  while (ids.size() < length) {
    const auto at = static_cast<std::uint64_t>(ids.size());
    ids.push_back(static_cast<std::uint32_t>(at * 2654435761U % model.sizes.vocabulary));
  }
  return ids;
}

// Evaluates the prompt, then generates token by token. Returns times and counts of both parts.
Result<Repeat> generate(const Model& model, Backend& backend, Decoder& decoder, const Work& work,
                        const Counts& counts, const LogitsSink& sink) {
  decoder.restart();
  if (work.depth > 0) WEIR_CHECK(decoder.evaluate(made_up_prompt(work.depth, model)));
  Repeat repeat;
  Tally before = counts.tally();
  const auto start = Clock::now();
  WEIR_TRY(std::uint32_t token, evaluate(backend, decoder, work.prompt, sink));
  repeat.prefill_seconds = seconds_since(start);
  repeat.prefill = counts.tally() - before;
  if (work.tokens == 0) return repeat;
  add_token(repeat, token, backend);
  const auto decode_start = Clock::now();
  while (repeat.tokens.size() < work.tokens) {
    before = counts.tally();
    WEIR_TRY(token, evaluate(backend, decoder, {&token, 1}, sink));
    repeat.per_token.push_back(counts.tally() - before);
    add_token(repeat, token, backend);
  }
  repeat.decode_seconds = seconds_since(decode_start);
  return repeat;
}

}  // namespace weir::engine
