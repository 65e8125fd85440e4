// The smallest tokenizer that engines accept: SentencePiece ("llama") with byte tokens, so that any
// text can be encoded. Pure.
#pragma once

#include <cstdint>

#include "gate/model/gguf.hpp"

namespace weir::model {

// Three special tokens, 256 bytes, the space and the letters.
inline constexpr std::uint32_t k_min_vocab = 320;

// Adds the tokenizer.ggml.* keys for `vocab` tokens. REQUIRES: vocab >= k_min_vocab.
void add_tokenizer(std::uint32_t vocab, GgufHeader& header);

}  // namespace weir::model
