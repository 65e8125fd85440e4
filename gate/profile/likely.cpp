#include "gate/profile/likely.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"

namespace weir::profile {
namespace {

// What is left of rounded probabilities, or is told as minus infinity.
constexpr double k_least = 1e-9;

// What `now` does not name is no likelier than the least that it names, and all of that together no
// more than the rest: within that, whatever is nearest to `base`.
double at_position(const LikelyTokens& base, const LikelyTokens& now) {
  double sum = 0, rest_base = 1, rest_now = 1, unnamed_base = 0, unnamed_now = 0, least_now = 1;
  for (const auto& [token, logarithm] : now.likely) {
    least_now = std::min(least_now, std::exp(logarithm));
    rest_now -= std::exp(logarithm);
  }
  for (const auto& [token, logarithm] : base.likely) {
    const double p = std::max(std::exp(logarithm), k_least);
    rest_base -= p;
    if (const double* log_now = look_up(now.likely, token)) {
      sum += p * std::log(p / std::max(std::exp(*log_now), k_least));
    } else {
      unnamed_base += p;
      unnamed_now += least_now;
    }
  }
  const double room = std::max(rest_now, k_least);
  // Tokens that `now` alone names are among the base's rest.
  for (const auto& [token, logarithm] : now.likely) {
    if (!base.likely.contains(token)) rest_now += std::exp(logarithm);
  }
  rest_base = std::max(rest_base, k_least);
  rest_now = std::max(rest_now, k_least);
  if (unnamed_base > 0) {
    const double q = std::max(
        std::min({unnamed_now, room, rest_now * unnamed_base / (unnamed_base + rest_base)}),
        k_least);
    sum += unnamed_base * std::log(unnamed_base / q);
    rest_now = std::max(rest_now - q, k_least);
  }
  return std::max(sum + rest_base * std::log(rest_base / rest_now), 0.0);
}

}  // namespace

LikelyTokens hashed(const LikelyTokens& tokens) {
  LikelyTokens made{short_hash(tokens.token), {}};
  for (const auto& [token, logarithm] : tokens.likely) {
    if (std::ssize(made.likely) == 2 * k_likely_tokens) break;
    made.likely[short_hash(token)] = logarithm;
  }
  return made;
}

void fields(Fields& io, LikelyTokens& tokens) {
  io("token", tokens.token);
  io.always("likely", tokens.likely);
}

std::optional<double> divergence(const Likely& base, const Likely& now) {
  const std::size_t most = std::min(base.size(), now.size());
  double sum = 0;
  std::size_t positions = 0;
  for (std::size_t i = 0; i < most; ++i) {
    if (base[i].likely.empty() || now[i].likely.empty()) return std::nullopt;
    sum += at_position(base[i], now[i]);
    ++positions;
    if (base[i].token != now[i].token) break;
  }
  if (positions == 0) return std::nullopt;
  return sum / static_cast<double>(positions);
}

}  // namespace weir::profile
