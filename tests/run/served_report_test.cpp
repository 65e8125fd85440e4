// Tests the lengths of held requests, the kept latencies, and drifts over a long run.
#include "gate/run/served_report.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "gate/base/find.hpp"
#include "gate/run/server_hold.hpp"

namespace weir::run {
namespace served_report_test {

using profile::EngineReport, profile::ServedRequest;

TEST(HeldLengths, HaveTheAverageThatIsAskedForAndNoOrder) {
  for (const std::int64_t tokens : {1, 2, 7, 32, 1000}) {
    for (const std::int64_t requests : {1, 2, 8, 16, 31}) {
      const auto lengths = burst_token_counts(tokens, requests);
      ASSERT_EQ(lengths.size(), static_cast<std::size_t>(requests));
      EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}),
                tokens * requests);
      EXPECT_GE(*std::min_element(lengths.begin(), lengths.end()), 1);
    }
  }
  // Computed by hand: steps of 3 among 8 places from 16 to 48.
  EXPECT_EQ(burst_token_counts(32, 8), (std::vector<std::int64_t>{16, 30, 43, 21, 34, 48, 26, 38}))
      << "neither rising nor falling";
}

TEST(ServedFailures, AskForTheApiWhereThereIsNoSuchPath) {
  const std::pair<const char*, const char*> cases[] = {
      {"<!DOCTYPE html>\n<html>", "1 of 1 requests failed: 1 status (HTTP 404: is `api:` right?)"},
      {"The model `nope` does not exist",
       "1 of 1 requests failed: 1 status (HTTP 404: The model `nope` does not exist: is "
       "`model_name:` right?)"},
      {"Not Found", "1 of 1 requests failed: 1 status (HTTP 404: Not Found: is `api:` right?)"}};
  for (const auto& [detail, message] : cases) {
    std::vector<ServedRequest> requests(1);
    requests[0].failure.emplace();
    requests[0].failure->fault = profile::ServedFault::status;
    requests[0].failure->status = 404;
    requests[0].failure->detail = detail;
    EXPECT_EQ(served_failures(requests), message);
  }
}

TEST(ServedFailures, NameTheKeyThatLeavesOutAFieldWhichTheServerRefuses) {
  const std::pair<const char*, bool> cases[] = {
      {R"({"detail": [{"loc": ["body", "ignore_eos"], "msg": "Extra inputs"}]})", true},
      {"Unrecognized request argument supplied: cache_prompt", true},
      {"no salt", false}};
  for (const auto& [detail, is_named] : cases) {
    std::vector<ServedRequest> requests(1);
    requests[0].failure = {profile::ServedFault::status, 422, detail};
    const std::string message = served_failures(requests).value_or("");
    EXPECT_EQ(message.find("`own_fields: false`") != std::string::npos, is_named) << message;
  }
}

// Builds one request a second for an hour. Tokens take `from` s each at the start and `to` s at the
// end, and vary by 5 %.
std::vector<ServedRequest> soak(double from, double to) {
  constexpr std::size_t k_requests = 3600;
  std::vector<ServedRequest> requests(k_requests);
  for (std::size_t i = 0; i < k_requests; ++i) {
    ServedRequest& request = requests[i];
    const double at = static_cast<double>(i), share = at / k_requests;
    const double each = (from + (to - from) * share) * (1 + 0.05 * std::sin(at * 1.7));
    request.scheduled = at;
    request.tokens = {{at + 0.1, 1}, {at + 0.1 + 10 * each, 10}};
    request.counted_tokens = 11;
    request.reported.drafted_tokens = 20;
    request.reported.accepted_tokens = 10 + (i % 2 == 0 ? 1 : -1);
  }
  return requests;
}

std::map<std::string, double> drifts(const std::vector<ServedRequest>& requests,
                                     const std::vector<stats::Point>& memory = {}) {
  profile::EngineReport report;
  add_drifts(requests, memory, report);
  std::map<std::string, double> result;
  for (const auto& series : report.times) result[series.metric.name] = series.samples.at(0);
  EXPECT_EQ(std::ranges::count_if(result, [](const auto& entry) { return entry.second > 0; }),
            static_cast<std::ptrdiff_t>(report.warnings.size()))
      << "each drift is told in words";
  return result;
}

// Rates of vllm-project/vllm#41838: 3.07 tokens/s at first, 2.8 an hour later.
TEST(Latencies, AreKeptOfTenThousandRequestsAtMost) {
  EngineReport report;
  std::vector<ServedRequest> requests = soak(0.01, 0.01);
  requests[1].failure = profile::ServedFailure{};
  add_latencies(requests, report);
  ASSERT_EQ(report.latencies.size(), 3 * 3599U);
  EXPECT_EQ(report.latencies[3], 2'000'000) << "the one that failed is left out";
  EXPECT_EQ(report.latencies[4], 100'000);
  const std::vector<ServedRequest> more = soak(0.01, 0.01);
  for (int i = 0; i < 3; ++i) requests.insert(requests.end(), more.begin(), more.end());
  requests[7779].tokens.back().received_at += 50;
  report.latencies.clear();
  add_latencies(requests, report);
  std::int64_t slowest = 0;
  for (std::size_t i = 2; i < report.latencies.size(); i += 3) {
    slowest = std::max(slowest, report.latencies[i]);
  }
  EXPECT_GT(slowest, 50'000'000) << "a stall is kept";
  EXPECT_LE(report.latencies.size(), 3 * profile::k_max_latencies);
  EXPECT_GE(report.latencies.size(), 3 * profile::k_max_latencies / 2);
}

TEST(Drifts, AreToldOfTheLatencyThatRose) {
  const auto result = drifts(soak(1 / 3.07, 1 / 2.8));
  EXPECT_NEAR(result.at("time_per_output_token_drift"), 3.07 / 2.8 - 1, 0.01);
  EXPECT_EQ(result.at("time_to_first_token_drift"), 0);
  EXPECT_EQ(result.at("draft_acceptance_drift"), 0);
  EXPECT_FALSE(result.contains("cached_prompt_share_drift")) << "nothing was reported";
}

TEST(Drifts, ThatMakeItBetterAreNone) {
  EXPECT_EQ(drifts(soak(0.4, 0.3)).at("time_per_output_token_drift"), 0);
  EXPECT_EQ(drifts(soak(0.3, 0.3)).at("time_per_output_token_drift"), 0);
}

TEST(Drifts, AreToldOfMemoryAndAcceptance) {
  std::vector<ServedRequest> requests = soak(0.3, 0.3);
  std::vector<stats::Point> memory;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const double at = static_cast<double>(i);
    memory.push_back({at, 1e9 * (1 + 0.2 * at / 3600)});
    requests[i].reported.accepted_tokens = 12 - static_cast<std::int64_t>(i / 900);
  }
  const auto result = drifts(requests, memory);
  EXPECT_NEAR(result.at("resident_memory_drift"), 0.2, 0.01);
  EXPECT_NEAR(result.at("draft_acceptance_drift"), 3.0 / 10.5, 0.1) << "12 of 20 to 9 of 20";
}

TEST(Drifts, NeedRequestsEnough) {
  profile::EngineReport report;
  add_drifts(std::vector<ServedRequest>(20), {}, report);
  EXPECT_TRUE(report.times.empty());
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0], "20 requests are too few to tell a drift: at least 200 are needed");
}

}  // namespace served_report_test
}  // namespace weir::run
