// The search for a capacity, on servers in virtual time whose capacity is known.
#include "gate/load/capacity.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/load/virtual_server.hpp"
#include "tests/support/rounds.hpp"

namespace weir::load {
namespace capacity_test {

const std::string k_answer =
    "data: {\"content\":\"a\",\"tokens\":[7],\"stop\":false}\n\n"
    "data: {\"content\":\"\",\"tokens\":[],\"stop\":true}\n\n";

// Serves one request after the other, each for a second, in the order they come.
class OneByOne {
 public:
  explicit OneByOne() : streams_(clock_, [this](std::size_t, double at) { return serve(at); }) {}

  Result<Capacity> find(const CapacityPlan& plan) {
    free_at_ = 0;
    return find_capacity(plan, streams_, clock_, stop_);
  }

 private:
  VirtualAnswer serve(double at) {
    free_at_ = std::max(free_at_, at) + 1;
    return {.says = {{0, ""}, {free_at_ - at, k_answer}}};
  }
  VirtualClock clock_;
  double free_at_ = 0;
  sys::Stop stop_;
  VirtualStreams streams_;
};

CapacityPlan make_plan(std::int64_t requests, std::int64_t seed) {
  constexpr double k_long = 1e9;
  CapacityPlan plan;
  plan.load.url = "http://virtual";
  plan.load.api = "llama";
  plan.load.prompts = {{"a", "A", 1}};
  plan.load.requests = requests;
  plan.load.seed = seed;
  plan.load.limits = {.header_seconds = k_long,
                      .first_token_seconds = k_long,
                      .next_token_seconds = k_long,
                      .request_seconds = k_long,
                      .load_seconds = k_long,
                      .answer_bytes = 1 << 20};
  plan.lowest = 0.7;
  plan.highest = 1.1;
  return plan;
}

// M/D/1: by Erlang's formula for the waiting time, P(wait > 5 services) is 1 % at 0.62953 arrivals
// a service, and P(wait > 30) at 0.92601 (80 decimal digits, for its terms cancel each other).
struct Reference {
  double limit, rate;
  double lowest, highest;
};
constexpr Reference k_sixth{6, 0.62953, 0.4, 0.9}, k_crowded{31, 0.92601, 0.7, 1.1};

// WEIR_REPEATS=20 WEIR_REQUESTS=5000 prints a row of the table in docs/evidence/serving-load.md;
// the test `capacity` has 5 seeds of 20 000 requests.
TEST(Capacity, OfAServerWithAKnownServiceTimeIsFound) {
  const auto setting = [](const char* name, int otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::atoi(value);
  };
  constexpr int k_requests = 20'000;
  constexpr double k_within = 0.03;
  const int seeds = setting("WEIR_REPEATS", 1),
            requests = setting("WEIR_REQUESTS", k_requests / tests::k_one_of);
  for (const Reference& reference : {k_sixth, k_crowded}) {
    double largest = 0, squares = 0;
    std::size_t rates = 0;
    int inside = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      OneByOne server;
      CapacityPlan plan = make_plan(requests, seed);
      plan.objectives.first_token_seconds = reference.limit;
      plan.lowest = reference.lowest;
      plan.highest = reference.highest;
      const auto capacity = server.find(plan);
      ASSERT_TRUE(capacity) << capacity.error().message;
      const double error = capacity->rate / reference.rate - 1;
      largest = std::max(largest, std::fabs(error));
      squares += error * error;
      EXPECT_LE(capacity->low, capacity->rate);
      EXPECT_GE(capacity->high, capacity->rate);
      EXPECT_FALSE(capacity->below_lowest || capacity->above_highest);
      rates += capacity->tried.size();
      inside += capacity->low <= reference.rate && reference.rate <= capacity->high ? 1 : 0;
    }
    if (requests >= k_requests) {
      EXPECT_LE(largest, k_within) << reference.rate;
    }
    std::printf(
        "%.2f busy, %d requests: largest error %.1f %%, deviation %.1f %%, %.1f rates, in the "
        "interval %d of %d\n",
        reference.rate, requests, 100 * largest, 100 * std::sqrt(squares / seeds),
        static_cast<double>(rates) / seeds, inside, seeds);
  }
}

// Late while more than 0.9 requests a second have come since the load began, from the 1000th on;
// else at once. The mean over i of P(Gamma(i) < i rate / 0.9) is 1 % at 0.8699 requests a second.
TEST(Capacity, OfAServerWhoseLateRequestsAllFollowEachOtherIsFound) {
  constexpr std::int64_t k_requests = 20'000, k_first = 1000;
  constexpr double k_max_kept_share = 0.9, k_late = 10, k_expected = 0.8699, k_within = 0.02;
  VirtualClock clock;
  double begun = 0;
  VirtualStreams streams(clock, [&](std::size_t number, double at) {
    const auto came = static_cast<std::int64_t>(number) % k_requests;
    if (came == 0) begun = at;
    const bool late = came > k_first && static_cast<double>(came) > k_max_kept_share * (at - begun);
    return VirtualAnswer{.says = {{0, ""}, {late ? k_late : 0, k_answer}}};
  });
  CapacityPlan plan = make_plan(k_requests, 1);
  plan.objectives.first_token_seconds = 1;
  const auto capacity = find_capacity(plan, streams, clock, {});
  ASSERT_TRUE(capacity) << capacity.error().message;
  EXPECT_NEAR(capacity->rate, k_expected, k_within * k_expected);
  EXPECT_LT(capacity->low, k_expected);
  EXPECT_GT(capacity->high, k_expected);
}

TEST(Capacity, OutsideOfWhatIsTriedIsSaidToBeSo) {
  OneByOne server;
  CapacityPlan plan = make_plan(500, 1);
  plan.objectives.first_token_seconds = 0.5;  // less than a service takes
  auto capacity = server.find(plan);
  ASSERT_TRUE(capacity) << capacity.error().message;
  EXPECT_TRUE(capacity->below_lowest);
  EXPECT_EQ(capacity->tried.size(), 1U);
  plan.objectives.first_token_seconds = 1e6;
  capacity = server.find(plan);
  ASSERT_TRUE(capacity) << capacity.error().message;
  EXPECT_TRUE(capacity->above_highest);
  EXPECT_EQ(capacity->rate, plan.highest);
}

TEST(Capacity, NeedsObjectivesAndRatesInTheirOrder) {
  OneByOne server;
  CapacityPlan plan = make_plan(10, 1);
  EXPECT_EQ(server.find(plan).error().code, Code::usage) << "no objective";
  plan.objectives.end_to_end_seconds = 1;
  plan.highest = plan.lowest;
  EXPECT_EQ(server.find(plan).error().code, Code::usage);
}

// 20 of 200 requests in a row took too long: 10 %. They came together, which makes the share
// uncertain.
TEST(TriedRate, IsAsSureAsItsStretchesAreAlike) {
  std::vector<profile::ServedRequest> requests(200);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].tokens = {{i < 20 ? 2.0 : 0.5, 1}};
    requests[i].counted_tokens = 1;
  }
  profile::ServedObjectives objectives;
  objectives.first_token_seconds = 1;
  const TriedRate together = evaluate_rate(3, requests, objectives);
  EXPECT_DOUBLE_EQ(together.missed, 0.1);
  EXPECT_EQ(together.low, 0);
  EXPECT_FALSE(together.is_kept());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].tokens = {{i % 10 == 0 ? 2.0 : 0.5, 1}};
  }
  const TriedRate spread = evaluate_rate(3, requests, objectives);
  EXPECT_DOUBLE_EQ(spread.missed, 0.1);
  EXPECT_DOUBLE_EQ(spread.low, 0.1);
  EXPECT_DOUBLE_EQ(spread.high, 0.1);
}

}  // namespace capacity_test
}  // namespace weir::load
