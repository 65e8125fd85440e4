// Tests of reading and replaying recorded runs.
#include "benchmarks/decision_quality/trace.hpp"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::quality {
namespace trace_test {

using ::testing::HasSubstr;

TEST(Trace, OfOneNumberALineIsRunsInOrder) {
  const auto traces = read_trace("some/where/tg48.txt", "# ns\n100\n\n 250.5\r\n1e3\n");
  ASSERT_TRUE(traces) << traces.error().message;
  ASSERT_EQ(traces->size(), 1U);
  EXPECT_EQ(traces->front().name, "tg48");
  EXPECT_EQ(traces->front().runs,
            (std::vector<double>{std::log(100.0), std::log(250.5), std::log(1e3)}));
}

TEST(Trace, WithKindsIsTwoTracesInOrderOfTime) {
  const auto traces = read_trace("night.log", "10 pp 5\n10 tg 7\n30 tg 9\n20 tg 8\n20 pp 6");
  ASSERT_TRUE(traces) << traces.error().message;
  ASSERT_EQ(traces->size(), 2U);
  EXPECT_EQ((*traces)[0].name, "night-pp");
  EXPECT_EQ((*traces)[0].runs, (std::vector<double>{std::log(5.0), std::log(6.0)}));
  EXPECT_EQ((*traces)[1].name, "night-tg");
  EXPECT_EQ((*traces)[1].runs, (std::vector<double>{std::log(7.0), std::log(8.0), std::log(9.0)}));
}

TEST(Trace, OfTwoNumbersALineIsPairs) {
  const auto traces = read_trace("ab", "100\t110\n200 220\n");
  ASSERT_TRUE(traces) << traces.error().message;
  ASSERT_EQ(traces->front().pairs.size(), 2U);
  EXPECT_EQ(traces->front().pairs[1].base, std::log(200.0));
  EXPECT_EQ(traces->front().pairs[1].candidate, std::log(220.0));
  EXPECT_TRUE(traces->front().runs.empty());
}

TEST(Trace, TellsTheLineThatIsWrong) {
  struct Case {
    std::string text, message;
  };
  for (const auto& [text, message] :
       {Case{"1\n2\n-3\n", "t.txt:3: not a positive number: \"-3\""},
        Case{"1\n\n0\n", "t.txt:3: not a positive number"}, Case{"1\ninf\n", "t.txt:2:"},
        Case{"1\nnan\n", "t.txt:2:"}, Case{"1\n2 3\n", "t.txt:2: 2 words, where the lines before"},
        Case{"1 2 3 4 5\n", "t.txt:1: more than three words"},
        Case{"1 pp 2\n2 xx 2\n", "t.txt:2: neither pp nor tg: \"xx\""},
        Case{"one pp 2\n", "t.txt:1: not a time"}, Case{"1 pp 2\n", "fewer than 2 runs of pp"},
        Case{"", "fewer than 2 runs"}, Case{"7\n", "fewer than 2 runs"},
        Case{"7\n" + std::string(300, '1'), "t.txt:2: longer than 200 characters"},
        Case{std::string("7\n8\x1b[31m\n"), "not a positive number: \"8"}}) {
    const auto traces = read_trace("t.txt", text);
    ASSERT_FALSE(traces) << text;
    EXPECT_EQ(traces.error().code, Code::data);
    EXPECT_THAT(traces.error().message, HasSubstr(message));
    EXPECT_EQ(traces.error().message.find('\x1b'), std::string::npos);
  }
}

TEST(Trace, HasNoMoreRunsThanTheLimit) {
  std::string text;
  for (std::size_t i = 0; i <= k_trace_runs; ++i) text += "1\n";
  EXPECT_THAT(read_trace("t", text).error().message, HasSubstr("more than 1000000 runs"));
}

TEST(KnownRatio, IsReadWithAndWithoutTheNameOfItsTrace) {
  EXPECT_NEAR(read_known_ratio("53/48")->ratio, 53.0 / 48, 1e-15);
  EXPECT_EQ(read_known_ratio("53/48")->trace, "");
  EXPECT_EQ(read_known_ratio("ab=1.5/1")->trace, "ab");
  for (const char* wrong : {"1.1", "x/2", "1/0", "-1/2", "", "/"}) {
    EXPECT_FALSE(read_known_ratio(wrong)) << wrong;
  }
}

// With a mean block of b and n places, the next run is the one behind with 1 - 1/b + 1/(b n).
TEST(Bootstrap, KeepsTheOrderWithinBlocksOfTheMeanLength) {
  constexpr std::size_t k_size = 700;
  constexpr int k_steps = 200'000;
  Random random(3);
  std::set<std::size_t> visited;
  std::size_t at = 0;
  int jumps = 0;
  for (int i = 0; i < k_steps; ++i) {
    const std::size_t next = next_index(at, k_size, 60, random);
    ASSERT_LT(next, k_size);
    jumps += next != (at + 1) % k_size ? 1 : 0;
    visited.insert(next);
    at = next;
  }
  // 3329 expected, standard deviation 57.
  EXPECT_NEAR(jumps, k_steps / 60.0 * (1 - 1.0 / k_size), 4 * 57);
  EXPECT_EQ(visited.size(), k_size);
}

Trace counting(std::size_t runs) {
  Trace trace;
  trace.name = "counting";
  for (std::size_t i = 0; i < runs; ++i) trace.runs.push_back(static_cast<double>(i));
  return trace;
}

TEST(Replay, GivesRunsNextToEachOtherToBothProgramsAndTheEffectToOne) {
  const Scenario scenario = scenario_of_trace(counting(1000), std::nullopt);
  constexpr double k_effect = 0.25;
  const auto pairs = scenario.start(Random(5), k_effect, Coin::fair);
  int base_first = 0, neighbours = 0;
  constexpr int k_pairs = 4000;
  for (int i = 0; i < k_pairs; ++i) {
    const stats::Pair pair = pairs->next();
    EXPECT_EQ(pair.base, std::floor(pair.base));
    EXPECT_EQ(pair.candidate - k_effect, std::floor(pair.candidate - k_effect));
    const double distance = pair.candidate - k_effect - pair.base;
    neighbours += std::fabs(distance) == 1 ? 1 : 0;
    base_first += distance == 1 ? 1 : 0;
  }
  EXPECT_GT(neighbours, k_pairs * 0.97);  // 59 of 60, less the wrap
  EXPECT_NEAR(base_first, neighbours / 2.0, 4 * 32);
}

TEST(Replay, PutsTheBaseFirstWithoutTheCoin) {
  const Scenario scenario = scenario_of_trace(counting(1000), std::nullopt);
  const auto pairs = scenario.start(Random(5), 0, Coin::off);
  int candidate_first = 0;
  for (int i = 0; i < 1000; ++i) {
    const stats::Pair pair = pairs->next();
    candidate_first += pair.candidate == pair.base - 1 ? 1 : 0;
  }
  EXPECT_LE(candidate_first, 1);  // a jump may land there
}

TEST(Replay, KeepsRecordedPairsTogetherAndDividesByTheKnownRatio) {
  Trace trace;
  trace.name = "ab";
  for (int i = 0; i < 50; ++i) trace.pairs.push_back({i + 0.0, i + 0.1});
  EXPECT_FALSE(scenario_of_trace(trace, std::nullopt).effects[0].drop);
  const Scenario scenario = scenario_of_trace(trace, 53.0 / 48);
  ASSERT_EQ(scenario.effects.size(), 2U);
  EXPECT_EQ(*scenario.effects[0].drop, 0);
  EXPECT_NEAR(*scenario.effects[1].drop, 1 - 48.0 / 53, 1e-15);
  EXPECT_FALSE(scenario.same_program);
  for (const Effect& effect : scenario.effects) {
    const auto pairs = scenario.start(Random(1), effect.log, Coin::fair);
    for (int i = 0; i < 100; ++i) {
      const stats::Pair pair = pairs->next();
      const double divided = *effect.drop == 0 ? std::log(53.0 / 48) : 0;
      EXPECT_NEAR(pair.candidate - pair.base, 0.1 - divided, 1e-12);
    }
  }
}

}  // namespace trace_test
}  // namespace weir::quality
