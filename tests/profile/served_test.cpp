// Summaries of requests to a server.
#include "gate/profile/served.hpp"

#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "gate/base/json.hpp"

namespace weir::profile {
namespace served_test {

// Builds a request with tokens at these moments. It reports each as a token, and no cached ones.
ServedRequest request(double intended, std::vector<double> tokens, std::string prompt = "p") {
  ServedRequest request;
  request.prompt = std::move(prompt);
  request.scheduled = request.sent = intended;
  for (const double at : tokens) request.tokens.push_back({at, 1});
  request.ended = tokens.empty() ? intended : tokens.back();
  request.counted_tokens = static_cast<std::int64_t>(tokens.size());
  request.asked_tokens = request.counted_tokens;
  request.reported.output_tokens = request.counted_tokens;
  request.reported.prompt_tokens = 10;
  request.reported.cached_tokens = 0;
  request.output_digest = "d";
  return request;
}

ServedRequest failed(double intended, double ended, ServedFault fault) {
  ServedRequest served = request(intended, {});
  served.ended = ended;
  served.failure = ServedFailure{fault, 0, ""};
  return served;
}

double figure(const ServedSummary& summary, std::string_view name) {
  for (const ServedFigure& figure : figures_of(summary)) {
    if (figure.metric.name == name) return figure.value;
  }
  ADD_FAILURE() << "no figure " << name;
  return -1;
}

TEST(Summary, OfTwoRequestsIsWhatOneCountsByHand) {
  // A: due at 1, tokens at 2, 2.5, 4.    first 1, gaps .5 1.5, per token (4−2)/2 = 1, in all 3
  // B: due at 2, tokens at 5, 5.25, 5.5. first 3, gaps .25 .25, per token .5/2 = .25, in all 3.5
  const std::vector<ServedRequest> requests = {request(1, {2, 2.5, 4}), request(2, {5, 5.25, 5.5})};
  const ServedSummary summary = summarise(requests);
  EXPECT_EQ(summary.requests, 2);
  EXPECT_EQ(summary.succeeded, 2);
  EXPECT_DOUBLE_EQ(summary.span_seconds, 4.5);  // 1 … 5.5
  // Two values a, b: numpy.percentile gives a + (b − a)·p
  EXPECT_DOUBLE_EQ(summary.first_token->p50, 2);
  EXPECT_DOUBLE_EQ(summary.first_token->p90, 2.8);
  EXPECT_DOUBLE_EQ(summary.first_token->p99, 2.98);
  EXPECT_DOUBLE_EQ(summary.first_token->mean, 2);
  EXPECT_DOUBLE_EQ(summary.first_token->largest, 3);
  EXPECT_DOUBLE_EQ(summary.per_token->p50, 0.625);
  EXPECT_DOUBLE_EQ(summary.end_to_end->p50, 3.25);
  // .25 .25 .5 1.5: place 1.5 between .25 and .5; place 2.7 between .5 and 1.5
  EXPECT_EQ(summary.inter_token_gap->samples, 4);
  EXPECT_DOUBLE_EQ(summary.inter_token_gap->p50, 0.375);
  EXPECT_DOUBLE_EQ(summary.inter_token_gap->p90, 1.2);
  EXPECT_DOUBLE_EQ(summary.inter_token_gap->p99, 1.47);
  EXPECT_DOUBLE_EQ(*summary.output_tokens_per_second, 6 / 4.5);
  EXPECT_DOUBLE_EQ(*summary.requests_per_second, 2 / 4.5);
  EXPECT_FALSE(summary.goodput);
  EXPECT_EQ(summary.input_tokens, 20);
  EXPECT_EQ(summary.output_tokens, 6);
  EXPECT_EQ(summary.outputs.at("p").digests, (std::map<std::string, std::int64_t>{{"d", 2}}));
  EXPECT_EQ(summary.warnings, std::vector<std::string>{});
}

TEST(Blocks, OfALoadGoOnWhereTheOneBeforeEnded) {
  // Two blocks of one request each, 0.5 s and 1 s long, with 10 s of another server between them.
  std::vector<ServedRequest> all;
  append_block(all, {request(1, {1.25, 1.5})});
  append_block(all, {});
  append_block(all, {request(11.5, {12, 12.5})});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].number, 1);
  EXPECT_DOUBLE_EQ(all[1].scheduled, 1.5);
  EXPECT_DOUBLE_EQ(all[1].sent, 1.5);
  EXPECT_EQ(all[1].tokens, (std::vector<ServedToken>{{2, 1}, {2.5, 1}}));
  const ServedSummary summary = summarise(all);
  EXPECT_DOUBLE_EQ(summary.span_seconds, 1.5);
  EXPECT_DOUBLE_EQ(*summary.requests_per_second, 2 / 1.5);
  EXPECT_DOUBLE_EQ(summary.first_token->p50, 0.375);  // median of 0.25 and 0.5
}

TEST(Summary, FiguresStandUnderTheNamesOfTheirMetrics) {
  const std::vector<ServedRequest> requests = {request(1, {2, 2.5, 4}), request(2, {5, 5.25, 5.5})};
  const ServedSummary summary = summarise(requests, {.first_token_seconds = 2});
  EXPECT_DOUBLE_EQ(figure(summary, "time_to_first_token_seconds"), 2);
  EXPECT_DOUBLE_EQ(figure(summary, "time_to_first_token_p99_seconds"), 2.98);
  EXPECT_DOUBLE_EQ(figure(summary, "time_per_output_token_seconds"), 0.625);
  EXPECT_DOUBLE_EQ(figure(summary, "inter_token_latency_p90_seconds"), 1.2);
  EXPECT_DOUBLE_EQ(figure(summary, "end_to_end_latency_seconds"), 3.25);
  EXPECT_DOUBLE_EQ(figure(summary, "output_tokens_per_second"), 6 / 4.5);
  EXPECT_DOUBLE_EQ(figure(summary, "requests_per_second"), 2 / 4.5);
  EXPECT_DOUBLE_EQ(figure(summary, "goodput_requests_per_second"), 1 / 4.5);
  std::set<std::string> names;
  for (const ServedFigure& figure : figures_of(summary)) {
    EXPECT_TRUE(names.insert(figure.metric.name).second) << figure.metric.name << " twice";
    const bool rate = figure.metric.name.find("per_second") != std::string::npos;
    EXPECT_EQ(figure.metric.better, rate ? unit::Better::higher : unit::Better::lower);
  }
  EXPECT_EQ(names.size(), 15U);
}

TEST(Summary, GoodRequestsAreWithinEveryObjectiveThatIsStated) {
  // First token 1, 3; per token 1, .25; in all 3, 3.5.
  const std::vector<ServedRequest> requests = {request(1, {2, 2.5, 4}), request(2, {5, 5.25, 5.5}),
                                               failed(2, 3, ServedFault::cut_off)};
  const struct {
    ServedObjectives objectives;
    std::int64_t good;
  } cases[] = {
      {{.first_token_seconds = 3}, 2},  // the limit itself is good
      {{.first_token_seconds = 2.9}, 1},
      {{.per_token_seconds = 0.5}, 1},
      {{.first_token_seconds = 2, .per_token_seconds = 0.5}, 0},
      {{.end_to_end_seconds = 3.2}, 1},
      {{.first_token_seconds = 9, .per_token_seconds = 9, .end_to_end_seconds = 9}, 2},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(summarise(requests, c.objectives).met_objectives, c.good);
    EXPECT_DOUBLE_EQ(summarise(requests, c.objectives).goodput.value_or(-1),
                     static_cast<double>(c.good) / 4.5);
  }
}

TEST(Summary, ARequestOfOneTokenHasNoTimePerTokenAndIsGoodByIt) {
  const std::vector<ServedRequest> requests = {request(0, {1})};
  const ServedSummary summary = summarise(requests, {.per_token_seconds = 1e-9});
  EXPECT_FALSE(summary.per_token);
  EXPECT_FALSE(summary.inter_token_gap);
  EXPECT_EQ(summary.met_objectives, 1);
}

// Each event has two tokens, as in speculative decoding. Gaps are between events; times per token
// use the reported number.
TEST(Summary, ReportedTokensAreTheOnesThatCount) {
  ServedRequest served = request(0, {1, 3});
  served.reported.output_tokens = 5;
  const std::vector<ServedRequest> requests = {served};
  const ServedSummary summary = summarise(requests);
  EXPECT_EQ(summary.output_tokens, 5);
  EXPECT_DOUBLE_EQ(summary.per_token->p50, 0.5);  // 2 / (5 − 1)
  EXPECT_DOUBLE_EQ(summary.inter_token_gap->p50, 2);
  ASSERT_EQ(summary.warnings.size(), 1U);
  EXPECT_EQ(summary.warnings[0].substr(0, 62),
            "1 of 1 requests report another number of tokens than came as e");
}

TEST(Summary, FailedOnesAreCountedByFaultAndInNoLatency) {
  const std::vector<ServedRequest> requests = {
      request(0, {1, 2}), failed(0, 7, ServedFault::timeout_token),
      failed(1, 8, ServedFault::status), failed(2, 9, ServedFault::status)};
  const ServedSummary summary = summarise(requests);
  EXPECT_EQ(summary.requests, 4);
  EXPECT_EQ(summary.succeeded, 1);
  EXPECT_EQ(summary.faults, (std::map<ServedFault, std::int64_t>{{ServedFault::timeout_token, 1},
                                                                 {ServedFault::status, 2}}));
  EXPECT_EQ(summary.end_to_end->samples, 1);
  EXPECT_DOUBLE_EQ(summary.span_seconds, 9);  // failed requests take time, too
  EXPECT_DOUBLE_EQ(*summary.requests_per_second, 1.0 / 9);
  EXPECT_EQ(summary.warnings, (std::vector<std::string>{"1 of 4 requests failed: timeout_token",
                                                        "2 of 4 requests failed: status"}));
}

TEST(Summary, OfNothingIsAbsentAndNotZero) {
  ServedRequest warm = request(0, {1, 2});
  warm.warm_up = true;
  for (const auto& requests : {std::vector<ServedRequest>{}, std::vector<ServedRequest>{warm}}) {
    const ServedSummary summary = summarise(requests, {.first_token_seconds = 1});
    EXPECT_EQ(summary, ServedSummary{});
    EXPECT_TRUE(figures_of(summary).empty());
  }
  const std::vector<ServedRequest> failures = {failed(0, 1, ServedFault::refused)};
  const ServedSummary summary = summarise(failures);
  EXPECT_FALSE(summary.first_token);
  EXPECT_EQ(summary.output_tokens_per_second, 0);
}

TEST(Summary, DoubtsAreSaid) {
  const struct {
    const char* words;
    std::function<void(std::vector<ServedRequest>&)> make;
  } cases[] = {
      {"1 of 2 requests took a part of their prompt from a cache",
       [](auto& r) { r[0].reported.cached_tokens = 3; }},
      {"1 of 2 requests do not say whether a cache was used",
       [](auto& r) {
         r[0].reported.cached_tokens.reset();
         r[0].reported.prompt_tokens = 16;
       }},
      {"1 of 2 requests have no report of their tokens: those that came were counted",
       [](auto& r) { r[1].reported.output_tokens.reset(); }},
      {"2 of 2 requests have fewer tokens than asked for",
       [](auto& r) { r[0].asked_tokens = r[1].asked_tokens = 9; }},
      {"prompt p has 2 different outputs", [](auto& r) { r[0].output_digest = "e"; }},
      {"requests were sent late, by 98.8 ms at p99",  // 90 ms and 98.9 ms: 90 + 0.99·8.9
       [](auto& r) {
         r[0].sent = r[0].scheduled + 0.09;
         r[1].sent = r[1].scheduled + 0.0989;
       }},
  };
  for (const auto& c : cases) {
    std::vector<ServedRequest> requests = {request(0, {1, 2}), request(1, {2, 3})};
    c.make(requests);
    const auto warnings = summarise(requests).warnings;
    ASSERT_EQ(warnings.size(), 1U) << c.words;
    EXPECT_EQ(warnings[0].substr(0, std::string_view(c.words).size()), c.words);
  }
}

TEST(Summary, InJsonHasEachFigure) {
  const std::vector<ServedRequest> requests = {request(1, {2, 2.5, 4}),
                                               failed(1, 2, ServedFault::tls)};
  const Json json = write_fields(summarise(requests));
  EXPECT_EQ(json["schema"], "weir.served-summary/1");
  EXPECT_EQ(json["time_to_first_token_seconds"]["p50"], 1);
  EXPECT_EQ(json["time_per_output_token_seconds"]["samples"], 1);
  EXPECT_EQ(json["faults"], (Json{{"tls", 1}}));
  EXPECT_TRUE(json["goodput_requests_per_second"].is_null());
}

TEST(ServedRequests, InJsonHaveAllThatIsKnown) {
  ServedRequest full = request(1.5, {2.25, 2.5}, "hello");
  full.number = 7;
  full.warm_up = true;
  full.sent = 1.625;
  full.connected = 1.75;
  full.answered = 2;
  full.kept_connection = true;
  full.tokens[1].tokens = 3;
  full.output_bytes = 9;
  full.reported.prompt_seconds = 0.125;
  full.reported.output_seconds = 0.25;
  full.reported.finish = "length";
  full.reported.model = "m";
  full.reported.build = "b1";
  full.failure = ServedFailure{ServedFault::status, 500, "no memory"};
  EXPECT_EQ(write_fields(full),
            (Json{{"schema", "weir.served/1"},
                  {"number", 7},
                  {"prompt", "hello"},
                  {"asked_tokens", 2},
                  {"intended", 1.5},
                  {"sent", 1.625},
                  {"ended", 2.5},
                  {"counted_tokens", 2},
                  {"output_bytes", 9},
                  {"warm_up", true},
                  {"kept_connection", true},
                  {"connected", 1.75},
                  {"answered", 2},
                  {"output_digest", "d"},
                  {"token_times", {2.25, 2.5}},
                  {"tokens_of_each", {1, 3}},
                  {"reported",
                   {{"prompt_tokens", 10},
                    {"cached_tokens", 0},
                    {"output_tokens", 2},
                    {"prompt_seconds", 0.125},
                    {"output_seconds", 0.25},
                    {"finish", "length"},
                    {"model", "m"},
                    {"build", "b1"}}},
                  {"failure", {{"fault", "status"}, {"status", 500}, {"detail", "no memory"}}}}));
  const Json short_form = write_fields(failed(0, 1, ServedFault::tls));
  EXPECT_EQ(short_form["failure"], (Json{{"fault", "tls"}, {"detail", ""}}));
  EXPECT_EQ(short_form["token_times"], Json::array());
  for (const char* absent : {"warm_up", "connected", "answered", "tokens_of_each"}) {
    EXPECT_FALSE(short_form.contains(absent)) << absent;
  }
}

TEST(ServedFaults, HaveANameEach) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(ServedFault::other); ++i) {
    names.insert(to_string(static_cast<ServedFault>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ServedFault::other) + 1);
}

}  // namespace served_test
}  // namespace weir::profile
