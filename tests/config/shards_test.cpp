// Tests of splitting a matrix for several machines.
#include <numeric>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "gate/config/matrix.hpp"

namespace weir::config {
namespace shards_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Cell cell(const std::string& name, std::vector<std::string> runner = {}) {
  Cell result;
  result.key = *profile::CellKey::parse(name);
  result.runner = std::move(runner);
  return result;
}

std::vector<Cell> cells(std::size_t count) {
  std::vector<Cell> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(cell(fmt::format("e/m/b/p{}", i)));
  return all;
}

TEST(Shards, AreWithinFivePerCentOfBalanceOrOneLargestCell) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    // Engine runs from a second to ten minutes, most of them short.
    std::vector<double> seconds;
    std::lognormal_distribution<double> draw(2, trial % 5 * 0.4);
    for (int i = 0; i < 1000; ++i) seconds.push_back(draw(random));
    const auto shards = make_shards(cells(1000), seconds, 16);
    ASSERT_TRUE(shards);
    ASSERT_EQ(shards->size(), 16U);
    std::multiset<std::size_t> assigned;
    double longest = 0;
    for (const Shard& shard : *shards) {
      assigned.insert(shard.cells.begin(), shard.cells.end());
      double sum = 0;
      for (const std::size_t i : shard.cells) sum += seconds[i];
      EXPECT_NEAR(sum, shard.seconds, 1e-6);
      longest = std::max(longest, sum);
    }
    std::multiset<std::size_t> all;
    for (std::size_t i = 0; i < 1000; ++i) all.insert(i);
    EXPECT_EQ(assigned, all) << "each cell is in one shard";
    const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / 16;
    const double largest = *std::max_element(seconds.begin(), seconds.end());
    EXPECT_LE(longest, std::max(mean * 1.05, mean + largest)) << trial;
  }
}

TEST(Shards, KeepTheDepthsOfAListTogether) {
  const std::vector<Cell> list{cell("e/m/b/p@d0"), cell("e/m/b/q"), cell("e/m/b/p@d256"),
                               cell("e/m/b/p@d1024")};
  const auto shards = make_shards(list, std::vector<double>{1, 10, 1, 1}, 2);
  ASSERT_TRUE(shards);
  EXPECT_THAT(shards->at(0).cells, ElementsAre(1));
  EXPECT_THAT(shards->at(1).cells, ElementsAre(0, 2, 3));
}

TEST(Shards, GoToTheRunnersTheyNeed) {
  const std::vector<Cell> list{cell("e/m/metal/p", {"macos"}), cell("e/m/cpu/p"), cell("e/m/cpu/q"),
                               cell("e/m/cpu/r")};
  const std::vector<double> seconds{1, 1, 1, 1};
  const auto shards = make_shards(list, seconds, 3);
  ASSERT_TRUE(shards);
  ASSERT_EQ(shards->size(), 3U);
  EXPECT_THAT(shards->at(0).runner, ElementsAre("macos"));
  EXPECT_THAT(shards->at(0).cells, ElementsAre(0));
  EXPECT_TRUE(shards->at(1).runner.empty());
  const auto few = make_shards(list, seconds, 1);
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().message, HasSubstr("2 kinds of runners (macos, any)"));
}

TEST(Shards, AreNotMoreThanThereIsToSplit) {
  EXPECT_EQ(make_shards(cells(3), std::vector<double>{1, 1, 1}, 16)->size(), 3U);
}

// 8 tokens at 50 a second and no prompt: 0.16 s a request. A start is 0.5 s, two warm it up.
TEST(Shards, AreGuessedByTheRequestsOfAServer) {
  EngineSettings serves;
  serves.server.emplace();
  const auto guess = [&](std::int64_t at_once, std::optional<double> rate, std::int64_t requests) {
    Cell serving = cell("e/m/b/p");
    serving.engine = &serves;
    serving.concurrency = at_once;
    serving.rate = rate;
    return guessed_seconds(serving, {0, 8, requests, 0});
  };
  const double start = 0.5 + 2 * 0.16;
  EXPECT_DOUBLE_EQ(guess(1, std::nullopt, 1), start + 0.16) << "a counted run of one request";
  EXPECT_DOUBLE_EQ(guess(1, std::nullopt, 8), start + 8 * 0.16);
  EXPECT_DOUBLE_EQ(guess(4, std::nullopt, 32), start + 32 * 0.16 / 2) << "the root of 4";
  EXPECT_DOUBLE_EQ(guess(64, std::nullopt, 4), start + 4 * 0.16 / 2) << "no more than there are";
  EXPECT_DOUBLE_EQ(guess(1, 2.5, 50), start + 20 + 0.16) << "the last of 50 comes after 20 s";
  serves.server->warm_up = 0;
  EXPECT_DOUBLE_EQ(guess(1, std::nullopt, 1), 0.5 + 0.16);
  Cell program = cell("e/m/b/p");
  EXPECT_DOUBLE_EQ(guessed_seconds(program, {1000, 50, 3, 500}), 0.5 + 3 * (1 + 1.5));
}

}  // namespace shards_test
}  // namespace weir::config
