// Greedy decoding with a clock: what was generated, how long it took, and what each part counted.
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
  std::uint32_t depth = 0;            // positions that are filled before, untimed
  std::uint32_t repeats = 1;
};

struct Repeat {
  std::vector<std::uint32_t> tokens;  // generated
  std::vector<float> shares;          // of each, where asked for
  double prefill_seconds = 0;         // until the first token is known
  double decode_seconds = 0;          // of the other tokens together
  Tally prefill;
  std::vector<Tally> per_token;  // of the other tokens, one by one
};

// Called with the logits of each position of the prompt and after it; for tools, and slow.
using LogitsSink = std::function<Result<void>(const std::vector<float>& logits)>;

// From an empty cache each time. Ids of a prompt that nobody wrote: the same for the same length.
[[nodiscard]] std::vector<std::uint32_t> made_up_prompt(std::uint32_t length, const Model& model);
[[nodiscard]] Result<Repeat> generate(const Model& model, Backend& backend, Decoder& decoder,
                                      const Work& work, const Counts& counts,
                                      const LogitsSink& sink = {});

}  // namespace weir::engine
