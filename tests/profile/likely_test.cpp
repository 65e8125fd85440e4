// Tests the divergence between two sets of likely tokens.
#include "gate/profile/likely.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace weir::profile {
namespace likely_test {

// Builds a position from probabilities, stored as logarithms.
LikelyTokens tokens(const std::string& taken, const std::map<std::string, double>& probabilities) {
  LikelyTokens likely_tokens{taken, {}};
  for (const auto& [token, p] : probabilities) likely_tokens.likely[token] = std::log(p);
  return likely_tokens;
}

TEST(Divergence, IsNoneOfTheSame) {
  const Likely likely = {tokens("a", {{"a", 0.6}, {"b", 0.3}}), tokens("c", {{"c", 0.9}})};
  EXPECT_NEAR(*divergence(likely, likely), 0, 1e-12);
  EXPECT_EQ(divergence({}, likely), std::nullopt);
  EXPECT_EQ(divergence(likely, {}), std::nullopt);
}

// By hand: 0.6 ln(0.6/0.4) + 0.3 ln(0.3/0.5) + 0.1 ln(0.1/0.1) = 0.0900 nats.
TEST(Divergence, IsTheMeanOverPositionsWithAllOthersAsOne) {
  const LikelyTokens was = tokens("a", {{"a", 0.6}, {"b", 0.3}});
  const LikelyTokens is = tokens("a", {{"a", 0.4}, {"b", 0.5}});
  const double entry = 0.6 * std::log(0.6 / 0.4) + 0.3 * std::log(0.3 / 0.5);
  EXPECT_NEAR(entry, 0.0900, 1e-4);
  EXPECT_NEAR(*divergence({was}, {is}), entry, 1e-12);
  EXPECT_NEAR(*divergence({was, was}, {is, was}), entry / 2, 1e-12);
}

TEST(Divergence, TakesWhatTheOtherSideDoesNotNameForNoLikelierThanWhatItNames) {
  // "b" has at most 0.4, like "a"; the others have the remaining 0.2 of 0.6.
  const Likely was = {tokens("a", {{"a", 0.6}, {"b", 0.3}})}, is = {tokens("a", {{"a", 0.4}})};
  EXPECT_NEAR(*divergence(was, is),
              0.6 * std::log(0.6 / 0.4) + 0.3 * std::log(0.3 / 0.4) + 0.1 * std::log(0.1 / 0.2),
              1e-12);
  // No token is shared: "a" and "b" have at most 0.01 each there, and at most the remaining
  // probability.
  const Likely likely = {tokens("a", {{"a", 0.7}, {"b", 0.2}})};
  const Likely disjoint = {tokens("x", {{"x", 0.9}, {"y", 0.01}})};
  EXPECT_GT(*divergence(likely, disjoint), 0.9 * std::log(0.9 / 0.02) - 0.3);
  const Likely sure = {tokens("a", {{"a", 0.99}, {"b", 0.01}})};
  const Likely wrong = {tokens("x", {{"x", 0.99}, {"y", 0.01}})};
  EXPECT_GT(*divergence(sure, wrong), 10);
  // A position without likely tokens is skipped.
  EXPECT_EQ(divergence(sure, {{"a", {}}}), std::nullopt);
}

TEST(LikelyTokens, AreKeptByTheirHashesAndNoMoreThanWereAskedFor) {
  LikelyTokens many{"secret", {}};
  for (int i = 0; i < 1000; ++i) many.likely[std::to_string(i)] = -i;
  const LikelyTokens likely_tokens = hashed(many);
  EXPECT_EQ(likely_tokens.likely.size(), 20U);
  EXPECT_EQ(likely_tokens.token.size(), 12U);
  EXPECT_NE(likely_tokens.token, "secret");
}

TEST(Divergence, EndsWhereAnotherTokenIsTaken) {
  const LikelyTokens same = tokens("a", {{"a", 0.9}});
  const LikelyTokens divergent = tokens("b", {{"a", 0.4}, {"b", 0.5}});
  const LikelyTokens far = tokens("x", {{"x", 1}}), away = tokens("y", {{"y", 1}});
  const double position = 0.9 * std::log(0.9 / 0.4) + 0.1 * std::log(0.1 / 0.6);
  EXPECT_NEAR(*divergence({same, same, far}, {same, divergent, away}), position / 2, 1e-12);
}

TEST(Divergence, BearsProbabilitiesThatNobodyCanHave) {
  LikelyTokens never{"a", {{"a", -INFINITY}}}, more{"a", {{"a", 0}, {"b", 0}}};
  for (const auto& [first, second] : {std::pair(never, more), {more, never}, {more, more}}) {
    const auto far = divergence({first}, {second});
    ASSERT_TRUE(far);
    EXPECT_TRUE(std::isfinite(*far) && *far >= 0) << *far;
  }
}

}  // namespace likely_test
}  // namespace weir::profile
