// Compares what a model finds likely next with the base, token by token.
#include "gate/profile/likely.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"

namespace weir::profile {
namespace {

// Lower bound for probabilities: rounded ones may leave nothing, and some are reported as 0.
constexpr double k_min_probability = 1e-9;

// Returns the least divergence at one position. A token that `candidate` does not name is no
// likelier than the least that it names, and all of them together no more than the rest. Within
// that, it takes the value nearest to `base`.
double position_divergence(const LikelyTokens& base, const LikelyTokens& candidate) {
  double sum = 0, rest_base = 1, rest_candidate = 1, unnamed_base = 0, unnamed_candidate = 0,
         min_candidate = 1;
  for (const auto& [token, logarithm] : candidate.likely) {
    min_candidate = std::min(min_candidate, std::exp(logarithm));
    rest_candidate -= std::exp(logarithm);
  }
  for (const auto& [token, logarithm] : base.likely) {
    const double p = std::max(std::exp(logarithm), k_min_probability);
    rest_base -= p;
    if (const double* log_candidate = look_up(candidate.likely, token)) {
      sum += p * std::log(p / std::max(std::exp(*log_candidate), k_min_probability));
    } else {
      unnamed_base += p;
      unnamed_candidate += min_candidate;
    }
  }
  const double max_unnamed = std::max(rest_candidate, k_min_probability);
  // Tokens that only `candidate` names are part of the base's rest.
  for (const auto& [token, logarithm] : candidate.likely) {
    if (!base.likely.contains(token)) rest_candidate += std::exp(logarithm);
  }
  rest_base = std::max(rest_base, k_min_probability);
  rest_candidate = std::max(rest_candidate, k_min_probability);
  if (unnamed_base > 0) {
    const double q =
        std::max(std::min({unnamed_candidate, max_unnamed,
                           rest_candidate * unnamed_base / (unnamed_base + rest_base)}),
                 k_min_probability);
    sum += unnamed_base * std::log(unnamed_base / q);
    rest_candidate = std::max(rest_candidate - q, k_min_probability);
  }
  return std::max(sum + rest_base * std::log(rest_base / rest_candidate), 0.0);
}

}  // namespace

LikelyTokens hashed(const LikelyTokens& tokens) {
  LikelyTokens result{short_hash(tokens.token), {}};
  for (const auto& [token, logarithm] : tokens.likely) {
    if (std::ssize(result.likely) == 2 * k_likely_tokens) break;
    result.likely[short_hash(token)] = logarithm;
  }
  return result;
}

void fields(Fields& io, LikelyTokens& tokens) {
  io("token", tokens.token);
  io.always("likely", tokens.likely);
}

// Returns the mean divergence over the positions up to the first different token.
std::optional<double> divergence(const Likely& base, const Likely& candidate) {
  const std::size_t shared_positions = std::min(base.size(), candidate.size());
  double sum = 0;
  std::size_t positions = 0;
  for (std::size_t i = 0; i < shared_positions; ++i) {
    if (base[i].likely.empty() || candidate[i].likely.empty()) return std::nullopt;
    sum += position_divergence(base[i], candidate[i]);
    ++positions;
    if (base[i].token != candidate[i].token) break;
  }
  if (positions == 0) return std::nullopt;
  return sum / static_cast<double>(positions);
}

}  // namespace weir::profile
