// The search for a capacity, on servers in virtual time whose capacity is known.
#include "gate/load/capacity.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/load/virtual_server.hpp"

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

CapacityPlan plan_of(std::int64_t requests, std::int64_t seed) {
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
struct Known {
  double limit, rate;
  double lowest, highest;
  double within;  // 20 of 20 seeds, 20 000 requests a rate
};
constexpr Known k_sixth{6, 0.62953, 0.4, 0.9, 0.05}, k_crowded{31, 0.92601, 0.7, 1.1, 0.05};
constexpr double k_limit = k_crowded.limit;

// WEIR_REPEATS=20 WEIR_REQUESTS=5000 prints a row of the table in docs/evidence/serving-load.md.
TEST(Capacity, OfAServerWithAKnownServiceTimeIsFound) {
  const auto asked = [](const char* name, int otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::atoi(value);
  };
  constexpr int k_requests = 20'000;
  const int seeds = asked("WEIR_REPEATS", 1), requests = asked("WEIR_REQUESTS", k_requests);
  for (const Known& known : {k_sixth, k_crowded}) {
    double largest = 0, squares = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      OneByOne server;
      CapacityPlan plan = plan_of(requests, seed);
      plan.objectives.first_token_seconds = known.limit;
      plan.lowest = known.lowest;
      plan.highest = known.highest;
      const auto found = server.find(plan);
      ASSERT_TRUE(found) << found.error().message;
      const double error = found->rate / known.rate - 1;
      largest = std::max(largest, std::fabs(error));
      squares += error * error;
      EXPECT_LE(found->low, found->rate);
      EXPECT_GE(found->high, found->rate);
      EXPECT_FALSE(found->below_lowest || found->above_highest);
      for (const TriedRate& tried : found->tried) {
        EXPECT_EQ(tried.is_kept(), tried.rate <= found->rate) << tried.rate;
      }
    }
    if (requests >= k_requests) {
      EXPECT_LE(largest, known.within) << known.rate;
    }
    std::printf("%.2f busy, %d requests: largest error %.1f %%, deviation %.1f %%\n", known.rate,
                requests, 100 * largest, 100 * std::sqrt(squares / seeds));
  }
}

TEST(Capacity, OutsideOfWhatIsTriedIsSaidToBeSo) {
  OneByOne server;
  CapacityPlan plan = plan_of(500, 1);
  plan.objectives.first_token_seconds = 0.5;  // less than a service takes
  auto found = server.find(plan);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->below_lowest);
  EXPECT_EQ(found->tried.size(), 1U);
  plan.objectives.first_token_seconds = 1e6;
  found = server.find(plan);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->above_highest);
  EXPECT_EQ(found->rate, plan.highest);
}

TEST(Capacity, NeedsObjectivesAndRatesInTheirOrder) {
  OneByOne server;
  CapacityPlan plan = plan_of(10, 1);
  EXPECT_EQ(server.find(plan).error().code, Code::usage) << "no objective";
  plan.objectives.end_to_end_seconds = 1;
  plan.highest = plan.lowest;
  EXPECT_EQ(server.find(plan).error().code, Code::usage);
}

// Of 200 requests 20 in a row took too long: 10 %, and that they came together makes it uncertain.
TEST(TriedRate, IsAsSureAsItsStretchesAreAlike) {
  std::vector<profile::ServedRequest> requests(200);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].tokens = {{i < 20 ? 2.0 : 0.5, 1}};
    requests[i].counted_tokens = 1;
  }
  profile::ServedObjectives objectives;
  objectives.first_token_seconds = 1;
  const TriedRate together = rate_tried(3, requests, objectives);
  EXPECT_DOUBLE_EQ(together.missed, 0.1);
  EXPECT_EQ(together.low, 0);
  EXPECT_FALSE(together.is_kept());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].tokens = {{i % 10 == 0 ? 2.0 : 0.5, 1}};
  }
  const TriedRate apart = rate_tried(3, requests, objectives);
  EXPECT_DOUBLE_EQ(apart.missed, 0.1);
  EXPECT_DOUBLE_EQ(apart.low, 0.1);
  EXPECT_DOUBLE_EQ(apart.high, 0.1);
}

}  // namespace capacity_test
}  // namespace weir::load
