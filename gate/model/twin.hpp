// A shrunken model (twin) of a real one: an engine takes (nearly) the same code path for it, at a
// thousandth of the size and without the weights.
//
// Kept: architecture, metadata, tokenizer kind, layers and their pattern, tensor names and types,
// expert counts, the ratio of query to key heads, and the divisors of the sizes (kernels are chosen
// by them). Shrunk: embedding, feed-forward, number of heads, vocabulary. If that is still too
// large, the head dimension is halved as well. Sizes that are not recognized are kept, with a
// warning. Decisions of an engine by absolute size (a split of very long rows, say) can differ.
// Only the source's header is needed. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/model/gguf.hpp"
#include "gate/model/make.hpp"

namespace weir::model {

struct TwinOptions {
  // 0: all, which keeps every count per token. Else as many, rounded up to whole periods of the
  // layer pattern.
  std::uint32_t layers = 0;
  // Tokens at most; 0 keeps all. Special, control and byte tokens stay before others.
  std::uint32_t vocab = 4096;
  // The head dimension is halved (not below 32) while the file would be larger.
  std::uint64_t target_bytes = std::uint64_t{16} << 20;
  std::uint64_t seed = 1;
};

struct Twin {
  GgufHeader header;  // laid out
  std::vector<std::string> warnings;
};

// Fails with Code::data when the source is one part of several, names no architecture or sizes, or
// has sizes that cannot be told apart; with Code::usage for impossible options.
[[nodiscard]] Result<Twin> shrink_model(const GgufHeader& source, const TwinOptions& options);
// Header and weights.
[[nodiscard]] Result<ModelSummary> write_twin(const GgufHeader& source, const TwinOptions& options,
                                              const ByteSink& sink);

}  // namespace weir::model
