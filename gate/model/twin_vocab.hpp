// Shrinks a tokenizer: fewer tokens of the same kind, so that the embedding of a twin is small.
// Part of model_twin. Pure.
#pragma once

#include <cstdint>

#include "gate/model/gguf.hpp"

namespace weir::model {

// Keeps at most `limit` of the `vocab` tokens: those named by tokenizer.ggml.*_token_id, byte
// tokens and control tokens first, then those with the lowest numbers. Everything that counts or
// names tokens (scores, types, merges, ids) follows. Answers how many tokens are left, which is
// `vocab` when nothing needs to go or the tokens named would not fit.
std::uint64_t shrink_vocab(std::uint64_t vocab, std::uint64_t limit, GgufHeader& header);

}  // namespace weir::model
