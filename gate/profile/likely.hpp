// The tokens that a model found likely next, as far as its server reports them: the top of each
// distribution. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gate/base/fields.hpp"

namespace weir::profile {

struct LikelyTokens {
  std::string token;                     // the one that was taken
  std::map<std::string, double> likely;  // natural logarithms of probabilities; at most 0

  friend bool operator==(const LikelyTokens&, const LikelyTokens&) = default;
};
using Likely = std::vector<LikelyTokens>;
void fields(Fields& io, LikelyTokens& tokens);
// As they are kept: tokens by their hashes, and no more of them than are asked for, twice.
[[nodiscard]] LikelyTokens hashed(const LikelyTokens& tokens);

inline constexpr std::int64_t k_likely_tokens = 10;    // asked for at each position
inline constexpr std::size_t k_likely_positions = 64;  // kept of an answer

// The Kullback-Leibler divergence of `candidate` from `base` in nats, the mean over the positions
// of the answer up to the first that took another token: behind it they answer other questions. At
// each position the least that it can be: over the tokens that both name; those that the base alone
// names as one, of which none is likelier than the least that `candidate` names; and all others as
// one (log sum inequality: Cover and Thomas, theorem 2.7.1). Nothing where a side tells nothing of
// a position.
[[nodiscard]] std::optional<double> divergence(const Likely& base, const Likely& candidate);

}  // namespace weir::profile
