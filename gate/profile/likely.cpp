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

// Returns the least Kullback-Leibler divergence at one position of the output that the lists of
// likely tokens allow. A token that `candidate` leaves out is at most as likely as its last one.
double position_divergence(const LikelyTokens& base, const LikelyTokens& candidate) {
  double sum = 0, base_rest = 1, candidate_rest = 1, base_unnamed = 0, candidate_unnamed = 0,
         candidate_min = 1;
  for (const auto& [token, log_probability] : candidate.likely) {
    candidate_min = std::min(candidate_min, std::exp(log_probability));
    candidate_rest -= std::exp(log_probability);
  }
  for (const auto& [token, log_probability] : base.likely) {
    const double probability = std::max(std::exp(log_probability), k_min_probability);
    base_rest -= probability;
    if (const double* log_candidate = look_up(candidate.likely, token)) {
      sum += probability *
             std::log(probability / std::max(std::exp(*log_candidate), k_min_probability));
    } else {
      base_unnamed += probability;
      candidate_unnamed += candidate_min;
    }
  }
  const double max_unnamed = std::max(candidate_rest, k_min_probability);
  // Tokens that only `candidate` names are part of the base's rest.
  for (const auto& [token, log_probability] : candidate.likely) {
    if (!base.likely.contains(token)) candidate_rest += std::exp(log_probability);
  }
  base_rest = std::max(base_rest, k_min_probability);
  candidate_rest = std::max(candidate_rest, k_min_probability);
  if (base_unnamed > 0) {
    const double best_unnamed =
        std::max(std::min({candidate_unnamed, max_unnamed,
                           candidate_rest * base_unnamed / (base_unnamed + base_rest)}),
                 k_min_probability);
    sum += base_unnamed * std::log(base_unnamed / best_unnamed);
    candidate_rest = std::max(candidate_rest - best_unnamed, k_min_probability);
  }
  return std::max(sum + base_rest * std::log(base_rest / candidate_rest), 0.0);
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

// Returns the mean divergence of the probabilities over the positions up to the first different
// token. Nothing if a position has no probabilities, or there is none.
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
