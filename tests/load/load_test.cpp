// The driver's loops, limits and moments in virtual time: every number is exact.
#include "gate/load/load.hpp"

#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gate/stats/arrivals.hpp"

#include "tests/load/virtual_server.hpp"

namespace weir::load {
namespace load_test {

using profile::ServedFault;
using profile::ServedRequest;

const std::string k_token = R"(data: {"content":"a","tokens":[7],"stop":false})"
                            "\n\n";
const std::string k_last = R"(data: {"content":"","tokens":[],"stop":true})"
                           "\n\n";

// A header after 1 s, then two tokens: after 2 and 2.5 s.
VirtualAnswer two_tokens() {
  return {.says = {{1, ""}, {2, k_token}, {2.5, k_token}, {2.5, k_last}}};
}

LoadPlan make_plan(std::int64_t requests) {
  LoadPlan plan;
  plan.url = "http://virtual";
  plan.api = "llama";
  plan.prompts = {{"a", "A", 2}, {"b", "B", 2}};
  plan.requests = requests;
  return plan;
}

// Drives in virtual time; `streams` and `clock` tell what went on.
struct Scene {
  VirtualClock clock;
  VirtualStreams streams;
  sys::Stop stop;
  explicit Scene(VirtualStreams::Answer answer) : streams(clock, std::move(answer)) {}
  Load drive(const LoadPlan& plan) {
    auto load = load::drive(plan, streams, clock, stop);
    EXPECT_TRUE(load) << load.error().message;
    return load.value_or(Load{});
  }
};

ServedFault fault_of(const ServedRequest& request) {
  EXPECT_TRUE(request.failure);
  return request.failure ? request.failure->fault : ServedFault::other;
}

TEST(ClosedLoop, APlaceSendsItsNextRequestWhenItsLastOneHasEnded) {
  Scene scene([](std::size_t, double) { return two_tokens(); });
  const Load load = scene.drive(make_plan(3));
  ASSERT_EQ(load.requests.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const ServedRequest& request = load.requests[i];
    const double start = 2.5 * static_cast<double>(i);  // each takes 2.5 s
    EXPECT_EQ(request.number, static_cast<std::int64_t>(i));
    EXPECT_EQ(request.prompt, i % 2 == 0 ? "a" : "b");
    EXPECT_DOUBLE_EQ(request.scheduled, start);
    EXPECT_DOUBLE_EQ(request.sent, start);
    EXPECT_DOUBLE_EQ(request.answered.value_or(-1), start + 1);
    ASSERT_EQ(request.tokens.size(), 2U);
    EXPECT_DOUBLE_EQ(request.tokens[0].received_at, start + 2);
    EXPECT_DOUBLE_EQ(request.tokens[1].received_at, start + 2.5);
    EXPECT_DOUBLE_EQ(request.ended, start + 2.5);
    EXPECT_FALSE(request.failure);
  }
}

// llama-server holds back what is no whole character, and says how many tokens there were so far.
TEST(Tokens, ThatWereHeldBackCountWithTheEventThatBringsThem) {
  const auto partial_event = [](const char* text, const char* ids, int count, const char* stop) {
    return fmt::format(
        "data: {{\"content\":\"{}\",\"tokens\":{},\"tokens_predicted\":{},\"stop\":{}}}\n\n", text,
        ids, count, stop);
  };
  Scene scene([&](std::size_t, double) {
    return VirtualAnswer{.says = {{0, ""},
                                  {1, partial_event("a", "[1]", 7, "false")},
                                  {2, partial_event("b", "[2]", 8, "false")},
                                  {3, partial_event("", "[]", 12, "true")}}};
  });
  LoadPlan plan = make_plan(1);
  plan.prompts[0].max_tokens = 12;
  const Load load = scene.drive(plan);
  const ServedRequest& request = load.requests.at(0);
  EXPECT_FALSE(request.failure);
  EXPECT_EQ(request.tokens, (std::vector<profile::ServedToken>{{1, 7}, {2, 1}, {3, 4}}));
  EXPECT_EQ(request.counted_tokens, 12);
}

// The API's end came, HTTP's did not: the request is as long as it was, its place is free when the
// wait for the rest is over (1 s), and the next request is not blamed for that.
TEST(ClosedLoop, AWaitForTheConnectionsEndIsInNoLatency) {
  Scene scene([](std::size_t, double) {
    VirtualAnswer answer = two_tokens();
    answer.ends = false;
    return answer;
  });
  const Load load = scene.drive(make_plan(2));
  EXPECT_DOUBLE_EQ(load.requests.at(0).ended, 2.5);
  EXPECT_DOUBLE_EQ(load.requests.at(1).scheduled, 3.5);
  EXPECT_DOUBLE_EQ(load.requests.at(1).sent, 3.5);
}

TEST(ClosedLoop, AsManyAreUnderWayAsThereArePlaces) {
  for (const std::int64_t places : {1, 4, 16}) {
    Scene scene([](std::size_t, double) { return two_tokens(); });
    LoadPlan plan = make_plan(40);
    plan.loop = ClosedLoop{places};
    const Load load = scene.drive(plan);
    EXPECT_EQ(load.requests.size(), 40U);
    EXPECT_EQ(scene.streams.max_concurrent, static_cast<std::size_t>(places));
    // 40 requests of 2.5 s in rounds of so many places
    const auto rounds = (40 + places - 1) / places;
    EXPECT_DOUBLE_EQ(scene.clock.at - 1000, 2.5 * static_cast<double>(rounds));
  }
}

// A driver that is late by itself: what it sends late counts from when it should have been sent.
TEST(ClosedLoop, WhatTheDriverAddsIsInTheLatency) {
  Scene scene([](std::size_t, double) { return two_tokens(); });
  scene.streams.overhead = 0.25;
  LoadPlan plan = make_plan(2);
  plan.loop = ClosedLoop{2};
  const Load load = scene.drive(plan);
  EXPECT_DOUBLE_EQ(load.requests[1].scheduled, 0);
  EXPECT_DOUBLE_EQ(load.requests[1].sent, 0.25);
  EXPECT_DOUBLE_EQ(load.requests[1].tokens[0].received_at, 2.25);
}

// Two conversations of two turns, and one request that waits for nothing: each takes 2.5 s.
TEST(Turns, AreSentOnceTheTurnBeforeIsAnswered) {
  Scene scene([](std::size_t, double) { return two_tokens(); });
  LoadPlan plan = make_plan(5);
  plan.prompts = {{"a1", "A", 2}, {"a2", "AA", 2}, {"b1", "B", 2}, {"b2", "BB", 2}, {"c", "C", 2}};
  plan.after = {{}, 0, {}, 2, {}};
  plan.loop = ClosedLoop{4};
  const Load load = scene.drive(plan);
  std::vector<std::string> sent;
  for (const ServedRequest& request : load.requests) {
    sent.push_back(fmt::format("{} {}", request.prompt, request.scheduled));
  }
  EXPECT_EQ(sent, (std::vector<std::string>{"a1 0", "b1 0", "c 0", "a2 2.5", "b2 2.5"}))
      << "a place that was free is not late: the answer had to come first";
  plan.requests = 7;
  EXPECT_EQ(scene.drive(plan).requests.size(), 7U) << "then all of them again";
  plan.after = {{}, 2, {}, {}, {}};
  EXPECT_FALSE(load::drive(plan, scene.streams, scene.clock, scene.stop));
}

TEST(OpenLoop, RequestsAreSentWhenTheyAreDueHoweverManyAreUnderWay) {
  Scene scene([](std::size_t, double) { return two_tokens(); });
  LoadPlan plan = make_plan(50);
  plan.loop = OpenLoop{.requests_per_second = 4, .seed = 7};
  const Load load = scene.drive(plan);
  const auto due = stats::poisson_arrivals(4, 50, 7);
  ASSERT_EQ(load.requests.size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR(load.requests[i].scheduled, due[i], 1e-9);
    EXPECT_NEAR(load.requests[i].sent, due[i], 1e-9);
  }
  EXPECT_GT(scene.streams.max_concurrent, 4U);  // 4 a second of 2.5 s each: 10 on average
}

// Coordinated omission: a server that stands still for 10 s is seen by all that were due meanwhile.
TEST(OpenLoop, AServerThatStallsIsSeenByEveryRequestThatWasDueMeanwhile) {
  Scene scene([](std::size_t, double sent) {
    const double stall = std::max(0.0, 1010 - sent);  // it answers nobody before 1010
    return VirtualAnswer{.says = {{stall, ""}, {stall + 0.1, k_token}, {stall + 0.1, k_last}}};
  });
  LoadPlan plan = make_plan(60);
  plan.loop = OpenLoop{.requests_per_second = 5, .seed = 1, .max_concurrent = 3};
  const Load load = scene.drive(plan);
  ASSERT_EQ(load.requests.size(), 60U);
  EXPECT_EQ(scene.streams.max_concurrent, 3U);
  int due_in_stall = 0;
  for (const ServedRequest& request : load.requests) {
    if (request.scheduled >= 10) continue;
    ++due_in_stall;
    // Most of them could not even be sent; their latency holds the stall all the same.
    EXPECT_GE(request.tokens.at(0).received_at - request.scheduled, 10 - request.scheduled);
  }
  EXPECT_GT(due_in_stall, 30);
}

TEST(Limits, EndARequestAtTheirMomentUnderTheirName) {
  const struct {
    const char* what;
    VirtualAnswer answer;
    ServedFault fault;
    double ended;  // by the limits below
  } cases[] = {
      {"no header", {.says = {}, .ends = false}, ServedFault::timeout_headers, 3},
      {"no token", {.says = {{1, ""}}, .ends = false}, ServedFault::timeout_token, 1 + 5},
      {"no next token",
       {.says = {{1, ""}, {2, k_token}}, .ends = false},
       ServedFault::timeout_token,
       2 + 4},
      {"comments are no tokens",
       {.says = {{1, ""}, {2, k_token}, {3, ": a\n"}, {4, ": b\n"}, {5, ": c\n"}}, .ends = false},
       ServedFault::timeout_token,
       2 + 4},
      {"tokens, slowly, for ever",
       {.says = {{1, ""}, {4, k_token}, {7, k_token}, {10, k_token}, {13, k_token}}, .ends = false},
       ServedFault::timeout_total,
       12},
  };
  for (const auto& c : cases) {
    Scene scene([&](std::size_t number, double) { return number == 0 ? c.answer : two_tokens(); });
    LoadPlan plan = make_plan(2);
    plan.limits = {.header_seconds = 3,
                   .first_token_seconds = 5,
                   .next_token_seconds = 4,
                   .request_seconds = 12,
                   .load_seconds = 100};
    const Load load = scene.drive(plan);
    ASSERT_EQ(load.requests.size(), 2U) << c.what;
    EXPECT_EQ(fault_of(load.requests[0]), c.fault) << c.what;
    EXPECT_DOUBLE_EQ(load.requests[0].ended, c.ended) << c.what;
    EXPECT_FALSE(load.requests[1].failure) << c.what << ": the next one is none the worse";
    EXPECT_DOUBLE_EQ(load.requests[1].scheduled, c.ended) << c.what;
  }
}

TEST(Limits, OfOneRequestDoNotTouchThoseBesideIt) {
  // Every third one falls silent after its first token.
  Scene scene([](std::size_t number, double) {
    VirtualAnswer answer = two_tokens();
    if (number % 3 == 0) answer = {.says = {{1, ""}, {2, k_token}}, .ends = false};
    return answer;
  });
  LoadPlan plan = make_plan(30);
  plan.loop = ClosedLoop{4};
  plan.limits.next_token_seconds = 4;
  const Load load = scene.drive(plan);
  ASSERT_EQ(load.requests.size(), 30U);
  for (const ServedRequest& request : load.requests) {
    const bool silent = request.number % 3 == 0;
    EXPECT_EQ(request.failure.has_value(), silent) << request.number;
    EXPECT_DOUBLE_EQ(request.ended - request.sent, silent ? 2 + 4 : 2.5) << request.number;
  }
}

TEST(Limits, TheEndOfTheWholeLoadEndsWhatIsUnderWay) {
  Scene scene([](std::size_t, double) { return two_tokens(); });
  LoadPlan plan = make_plan(10);
  plan.limits.load_seconds = 6;  // two whole ones, and 1 s of the third
  const Load load = scene.drive(plan);
  EXPECT_TRUE(load.out_of_time);
  EXPECT_FALSE(load.interrupted);
  ASSERT_EQ(load.requests.size(), 3U);
  EXPECT_EQ(load.not_sent, 7);
  EXPECT_FALSE(load.requests[1].failure);
  EXPECT_EQ(fault_of(load.requests[2]), ServedFault::interrupted);
  EXPECT_DOUBLE_EQ(load.requests[2].ended, 6);
}

TEST(Limits, AStopEndsWhatIsUnderWay) {
  sys::Stop* stop = nullptr;
  Scene scene([&](std::size_t number, double) {
    if (number == 2) stop->request();
    return two_tokens();
  });
  stop = &scene.stop;
  const Load load = scene.drive(make_plan(10));
  EXPECT_TRUE(load.interrupted);
  ASSERT_EQ(load.requests.size(), 3U);
  EXPECT_EQ(load.not_sent, 7);
  EXPECT_EQ(fault_of(load.requests[2]), ServedFault::interrupted);
}

// Takes in each request after 3 looks; a hold can be refused, or the third request never be read.
class Waiting final : public Queue {
 public:
  bool refuses = false, loses_the_third = false, is_held = false;
  std::vector<std::int64_t> queries;
  bool hold() override { return is_held = !refuses; }
  bool has_queued(std::int64_t requests) override {
    EXPECT_TRUE(is_held);
    queries.push_back(requests);
    return !(loses_the_third && requests == 3) && queries.size() % 3 == 0;
  }
  void release() override { is_held = false; }
  [[nodiscard]] std::string why() const override { return "request 3 was not read"; }
};

LoadPlan burst_plan(Queue& queue) {
  LoadPlan plan = make_plan(4);
  plan.loop = QueuedBurst{&queue};
  return plan;
}

TEST(QueuedBurst, SendsEachRequestOnceTheOneBeforeIsQueued) {
  Waiting queue;
  Scene scene([&](std::size_t, double) { return two_tokens(); });
  const Load load = scene.drive(burst_plan(queue));
  EXPECT_FALSE(load.hold_failure);
  EXPECT_FALSE(queue.is_held);
  EXPECT_EQ(queue.queries, (std::vector<std::int64_t>{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}));
  ASSERT_EQ(load.requests.size(), 4U);
  EXPECT_EQ(scene.streams.max_concurrent, 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    // Between two of the looks, half a millisecond; what the first brings is the connection.
    EXPECT_NEAR(load.requests[i].sent, 0.0005 * static_cast<double>(i), 1e-9);
    EXPECT_FALSE(load.requests[i].failure);
  }
}

// llama-server on lavapipe, with two programs beside it that never rest: the last two of 16
// requests began after more than 60 s, as they had to wait for a place.
TEST(QueuedBurst, LetsRequestsWaitForEachOther) {
  Waiting queue;
  Scene scene([&](std::size_t, double) {
    return VirtualAnswer{.says = {{100, ""}, {250, k_token}, {251, k_token}, {252, k_last}}};
  });
  const Load load = scene.drive(burst_plan(queue));
  ASSERT_EQ(load.requests.size(), 4U);
  for (const ServedRequest& request : load.requests)
    EXPECT_FALSE(request.failure) << request.failure->detail;
}

TEST(QueuedBurst, EndsWithTheTimeOfTheLoadWhereARequestIsNeverAnswered) {
  Waiting queue;
  Scene scene([&](std::size_t number, double) {
    return number == 3 ? VirtualAnswer{.says = {}, .ends = false} : two_tokens();
  });
  LoadPlan plan = burst_plan(queue);
  plan.limits.load_seconds = 300;
  const Load load = scene.drive(plan);
  EXPECT_TRUE(load.out_of_time);
  ASSERT_EQ(load.requests.size(), 4U);
  EXPECT_EQ(fault_of(load.requests[3]), ServedFault::interrupted);
  EXPECT_DOUBLE_EQ(load.requests[3].ended, 300);
}

TEST(QueuedBurst, IsLetGoAndSentAllTheSameWhereItIsNotQueuedInTime) {
  for (const bool refuses : {false, true}) {
    Waiting queue;
    queue.refuses = refuses;
    queue.loses_the_third = true;
    Scene scene([&](std::size_t, double) {
      return VirtualAnswer{.says = {{100, ""}, {100, k_token}, {100, k_last}}};
    });
    LoadPlan plan = burst_plan(queue);
    plan.limits.header_seconds = 1000;
    const Load load = scene.drive(plan);
    EXPECT_EQ(load.hold_failure, "request 3 was not read");
    EXPECT_FALSE(queue.is_held);
    EXPECT_EQ(load.requests.size(), 4U);
    EXPECT_EQ(load.not_sent, 0);
    EXPECT_EQ(queue.queries.empty(), refuses);
  }
}

TEST(Duration, EndsTheSendingAndNotWhatIsUnderWay) {
  Scene scene([](std::size_t, double) { return two_tokens(); });
  LoadPlan plan = make_plan(100);
  plan.send_seconds = 6;
  int seconds = 0;
  plan.each_second = [&] { ++seconds; };
  const Load load = scene.drive(plan);
  // One at a time, 2.5 s each: the third begins at 5 s.
  ASSERT_EQ(load.requests.size(), 3U);
  EXPECT_EQ(load.not_sent, 0);
  EXPECT_DOUBLE_EQ(load.requests[2].ended, 7.5);
  EXPECT_GE(seconds, 6);
}

TEST(WarmUp, IsSentBeforeOneAfterTheOtherAndCountsApart) {
  Scene scene([](std::size_t, double) { return two_tokens(); });
  LoadPlan plan = make_plan(2);
  plan.warm_up = 3;
  plan.loop = ClosedLoop{2};
  const Load load = scene.drive(plan);
  ASSERT_EQ(load.requests.size(), 5U);
  const bool warm[] = {true, true, true, false, false};
  const std::int64_t numbers[] = {0, 1, 2, 0, 1};
  const double starts[] = {0, 2.5, 5, 7.5, 7.5};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(load.requests[i].warm_up, warm[i]);
    EXPECT_EQ(load.requests[i].number, numbers[i]);
    EXPECT_DOUBLE_EQ(load.requests[i].scheduled, starts[i]);
  }
}

TEST(Plans, ThatCanNotBeCarriedOutAreRefused) {
  const struct {
    const char* message;
    std::function<void(LoadPlan&)> spoil;
  } cases[] = {
      {"unknown API \"llana\" (did you mean \"llama\"?)", [](LoadPlan& p) { p.api = "llana"; }},
      {"no URL", [](LoadPlan& p) { p.url = "file:///etc/passwd"; }},
      {"needs the name of a model", [](LoadPlan& p) { p.api = "ollama"; }},
      {"no prompt", [](LoadPlan& p) { p.prompts.clear(); }},
      {"prompt a asks for 0 tokens", [](LoadPlan& p) { p.prompts[0].max_tokens = 0; }},
      {"0 requests", [](LoadPlan& p) { p.requests = 0; }},
      {"a concurrency of 0", [](LoadPlan& p) { p.loop = ClosedLoop{0}; }},
      {"a concurrency of 5000", [](LoadPlan& p) { p.loop = ClosedLoop{5000}; }},
      {"a rate of 0", [](LoadPlan& p) { p.loop = OpenLoop{.requests_per_second = 0}; }},
      {"a rate of nan", [](LoadPlan& p) { p.loop = OpenLoop{.requests_per_second = NAN}; }},
      {"a time limit of 0", [](LoadPlan& p) { p.limits.next_token_seconds = 0; }},
      {"a time limit of inf", [](LoadPlan& p) { p.limits.load_seconds = INFINITY; }},
  };
  for (const auto& c : cases) {
    LoadPlan plan = make_plan(1);
    c.spoil(plan);
    VirtualClock clock;
    VirtualStreams streams(clock, [](std::size_t, double) { return two_tokens(); });
    const sys::Stop stop;
    const auto load = drive(plan, streams, clock, stop);
    ASSERT_FALSE(load) << c.message;
    EXPECT_EQ(load.error().code, Code::usage) << c.message;
    EXPECT_NE(load.error().message.find(c.message), std::string::npos) << load.error().message;
  }
}

}  // namespace load_test
}  // namespace weir::load
