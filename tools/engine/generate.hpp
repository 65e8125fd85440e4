// Greedy decoding with a clock: the generated tokens, their times and their counts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/engine/counts.hpp"
#include "tools/engine/decoder.hpp"

namespace weir::engine {

struct Work {
  std::vector<std::uint32_t> prompt;  // not empty
  std::uint32_t tokens = 0;           // to generate; the prompt's evaluation gives the first
  std::uint32_t depth = 0;            // positions to fill beforehand, untimed
  std::uint32_t repeats = 1;
};

struct Repeat {
  std::vector<std::uint32_t> tokens;  // generated
  std::vector<float> shares;          // softmax of each, with Switches::shares
  double prefill_seconds = 0;         // until the first token is there
  double decode_seconds = 0;          // all other tokens together
  Tally prefill;
  std::vector<Tally> per_token;  // one for each token but the first
};

// Called with the logits of each position of the prompt and after it; for tools, and slow.
using LogitsSink = std::function<Result<void>(const std::vector<float>& logits)>;

// Returns token ids that depend on the length alone.
[[nodiscard]] std::vector<std::uint32_t> made_up_prompt(std::uint32_t length, const Model& model);
// Runs `work` once, from an empty cache.
[[nodiscard]] Result<Repeat> generate(const Model& model, Backend& backend, Decoder& decoder,
                                      const Work& work, const Counts& counts,
                                      const LogitsSink& sink = {});

}  // namespace weir::engine
