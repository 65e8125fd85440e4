// Tests explanations of changes of the host's work in Python: calls of functions, lines.
#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace python_test {

using test::side;

Explanation explain_calls(Evidence evidence) {
  return explain(evidence, nullptr, {default_bands(), {}});
}

TEST(HostCalls, TheFunctionThatIsCalledMoreIsNamed) {
  Evidence evidence = test::evidence(side({{"python_calls", 100}}), side({{"python_calls", 106}}));
  evidence.host_calls = {{"call of vllm.core.Scheduler._make_request", Rational(2), Rational(4)},
                         {"call of vllm.core.Request.get_ids", std::nullopt, Rational(4)}};
  const Explanation explanation = explain_calls(evidence);
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings[0].kind, "host_calls_added");
  EXPECT_EQ(explanation.findings[0].headline, "The host now calls `get_ids`, 4 times a token.");
  EXPECT_EQ(explanation.findings[0].lines[1], "+2 vllm.core.Scheduler._make_request (2 → 4)");
  evidence.host_calls.pop_back();
  EXPECT_EQ(explain_calls(evidence).findings[0].headline,
            "The host calls `_make_request` 4 times a token; it was 2.");
}

TEST(HostCalls, OnesThatWaitAreFindingsOfTheirOwnAndComeFirst) {
  Evidence evidence =
      test::evidence(side({{"python_calls", 100}, {"c_calls", 50}, {"costly_calls", 0}}),
                     side({{"python_calls", 140}, {"c_calls", 60}, {"costly_calls", 4}}));
  evidence.host_calls = {{"call of logging.Filter.filter", std::nullopt, Rational(40)},
                         {"call of _thread.RLock.acquire", std::nullopt, Rational(3)},
                         {"call of logging.Logger._log", std::nullopt, Rational(1)}};
  const Explanation explanation = explain_calls(evidence);
  ASSERT_EQ(explanation.findings.size(), 2U);
  EXPECT_EQ(explanation.findings[0].kind, "costly_call_added");
  EXPECT_EQ(explanation.findings[0].headline, "The host now calls `_log`, once a token.");
  EXPECT_EQ(explanation.findings[1].headline, "The host now calls `filter`, 40 times a token.");
}

TEST(HostCalls, ANewFunctionThatWaitsIsCostly) {
  Evidence evidence = test::evidence(side({{"c_calls", 50}, {"costly_calls", 0}}),
                                     side({{"c_calls", 51}, {"costly_calls", 1}}));
  evidence.host_calls = {{"call of ctypes.thrd_sleep", std::nullopt, Rational(1)},
                         {"wait in ctypes.thrd_sleep", std::nullopt, Rational(1)}};
  const Explanation explanation = explain_calls(evidence);
  EXPECT_EQ(explanation.findings.at(0).kind, "costly_call_added");
  EXPECT_EQ(explanation.findings.at(0).headline, "The host now calls `thrd_sleep`, once a token.");
}

TEST(HostCalls, ALoopIsSeenByItsLines) {
  Evidence evidence = test::evidence(side({{"python_calls", 100}, {"python_lines", 500}}),
                                     side({{"python_calls", 101}, {"python_lines", 20504}}));
  evidence.host_calls = {{"call of engine.spin", std::nullopt, Rational(1)}};
  evidence.host_lines = {{"lines of engine.spin", std::nullopt, Rational(20004)}};
  const Explanation explanation = explain_calls(evidence);
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings[0].headline, "The host runs 20004 more lines a token in `spin`.");
}

TEST(HostCalls, AreNamedWhereTheirSumLiesOnNoLine) {
  Evidence evidence = test::evidence(
      side({{"dispatches", 9}, {"costly_calls_at_6", 0}, {"costly_calls_at_12", 0}}),
      side({{"dispatches", 9}, {"costly_calls_at_6", 1}, {"costly_calls_at_12", 3}}));
  evidence.host_calls = {{"call of time.sleep", std::nullopt, *Rational::make(1, 5)}};
  EXPECT_EQ(explain_calls(evidence).findings.at(0).headline,
            "The host now calls `sleep`, 1/5 times a token.");
  evidence.host_calls.clear();
  EXPECT_EQ(explain_calls(evidence).findings.at(0).headline,
            "The host makes more calls that wait, log, copy or read back.");
}

TEST(HostCalls, FewerCallsAreNamedToo) {
  Evidence evidence = test::evidence(side({{"python_calls", 100}}), side({{"python_calls", 98}}));
  evidence.host_calls = {{"call of engine.log", Rational(2), std::nullopt}};
  const Explanation explanation = explain_calls(evidence);
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings[0].kind, "host_calls_removed");
  EXPECT_EQ(explanation.findings[0].headline,
            "The host no longer calls `log`; it was twice a token.");
}

TEST(HostCalls, OnACpuNoGpuWaits) {
  Evidence evidence = test::evidence(side({{"python_calls", 100}}), side({{"python_calls", 104}}));
  evidence.host_calls = {{"call of engine.log", std::nullopt, Rational(4)}};
  evidence.device = "cpu";
  EXPECT_EQ(explain_calls(evidence).findings.at(0).cause,
            "the host does more for the same result.");
  evidence.device = "cuda";
  EXPECT_TRUE(explain_calls(evidence).findings.at(0).cause.starts_with("the GPU waits"));
}

TEST(HostCalls, WhereTimesAloneChangedTheOptionThatSeesLoopsIsNamed) {
  verdict::CellVerdict cell;
  cell.cell = *profile::CellKey::parse("mine/none/cpu/decode");
  cell.device = "cpu";
  cell.verdict = verdict::Outcome::fail;
  const auto add_count = [&](const char* metric) {
    verdict::Judgement& count = cell.judgements.emplace_back();
    count.metric = *unit::find_metric(metric);
    count.nature = profile::Nature::exact;
    count.baseline = count.current = 100;
  };
  verdict::Judgement& rate = cell.judgements.emplace_back();
  rate.metric = *unit::find_metric("decode_tokens_per_second");
  rate.verdict = verdict::Outcome::fail;
  rate.baseline = 20;
  rate.current = 10;
  const auto look_at = [&] { return explain_calls(make_evidence(cell)).findings.at(0).look_at; };
  EXPECT_EQ(look_at().find("python_lines: true"), std::string::npos) << "nothing was counted";
  add_count("python_calls_per_token");
  EXPECT_NE(look_at().find("python_lines: true"), std::string::npos);
  add_count("python_lines_per_token");
  EXPECT_EQ(look_at().find("python_lines: true"), std::string::npos);
}

}  // namespace python_test
}  // namespace weir::explain
