// Tests explanations of changes on the host: system calls by name, and threads.
#include <set>

#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace host_test {

using test::side;

TEST(SystemCalls, ThatCameAreNamed) {
  Evidence evidence = test::evidence(side({{"system_calls", 58}}), side({{"system_calls", 59}}));
  evidence.calls = {{"system call write", std::nullopt, Rational(1)}};
  const Explanation explanation = explain(evidence, nullptr, {default_bands(), {}});
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings[0].kind, "calls_changed");
  EXPECT_EQ(explanation.findings[0].headline, "System calls: write +1 a token (0 → 1).");
  EXPECT_EQ(explanation.findings[0].metric, "system_calls_per_token");
}

TEST(SystemCalls, OfFutexesAreALock) {
  Evidence evidence = test::evidence(side({}), side({}));
  evidence.calls = {{"system call futex wait", std::nullopt, Rational(37)},
                    {"system call futex wake", Rational(1), Rational(38)}};
  const Explanation explanation = explain(evidence, nullptr, {default_bands(), {}});
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings[0].headline, "System calls: futex wait +37 a token (0 → 37).");
  EXPECT_EQ(explanation.findings[0].lines,
            std::vector<std::string>{"futex wake +37 a token (1 → 38)"});
  EXPECT_NE(explanation.findings[0].cause.find("a lock"), std::string::npos);
}

TEST(SystemCalls, OfANewProgramNameItsStartFirst) {
  Evidence evidence = test::evidence(side({}), side({}));
  evidence.calls = {{"system call rt_sigprocmask", std::nullopt, Rational(9)},
                    {"system call execve", std::nullopt, Rational(1)}};
  const Explanation explanation = explain(evidence, nullptr, {default_bands(), {}});
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings[0].headline, "System calls: execve +1 a token (0 → 1).");
  EXPECT_TRUE(explanation.findings[0].cause.starts_with("a new program is started each time"));
}

// An item() of a sum: a kernel, and a copy that is waited for.
TEST(ReadBacks, AreNamedFirstWithTheKernelThatWroteThem) {
  Evidence evidence = test::evidence(
      side({{"small_read_backs", 1}, {"copies", 3}, {"syncs", 1}, {"dispatches", 113}}),
      side({{"small_read_backs", 3}, {"copies", 5}, {"syncs", 3}, {"dispatches", 115}},
           {{"reduce_kernel<sum_functor, bf16>", 2}}));
  evidence.read_backs = {
      {"read back 1 bytes of compare", Rational(1), Rational(1)},
      {"read back 2 bytes of reduce_kernel<sum_functor, bf16>", std::nullopt, Rational(2)}};
  const Explanation explanation = explain(evidence, nullptr, {default_bands(), {}});
  ASSERT_GE(explanation.findings.size(), 2U);
  const Finding& first = explanation.findings[0];
  EXPECT_EQ(first.kind, "read_back_added");
  EXPECT_EQ(first.headline,
            "A value is read back: 2 bytes of reduce_kernel<sum_functor, bf16>, twice a token.");
  EXPECT_EQ(first.ops, std::vector<std::string>{"reduce_kernel<sum_functor, bf16>"});
  EXPECT_EQ(explanation.findings[1].kind, "op_added");
  std::swap(evidence.before, evidence.after);
  std::swap(evidence.read_backs[1].baseline, evidence.read_backs[1].current);
  EXPECT_EQ(explain(evidence, nullptr, {default_bands(), {}}).findings.front().kind,
            "read_back_removed");
}

TEST(Served, ACacheThatIsOffIsTheCauseOfMoreGraphs) {
  const Explanation explanation =
      test::explained(side({{"cached_prompt_share", 1}, {"graphs_per_token", 1}}),
                      side({{"cached_prompt_share", 0}, {"graphs_per_token", 2}}));
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings[0].headline,
            "0 % of the prompts came from a cache, before 100 %.");
  EXPECT_NE(explanation.findings[0].cause.find("cache of prompts is off"), std::string::npos);
}

// Counts of llama-server on lavapipe with --no-cache-prompt (tiny-gemma3, concurrency 4). Each
// graph has one op on the CPU before and after; the candidate computes more graphs.
TEST(Served, ACacheThatIsOffComesBeforeTheGraphsThatItAdds) {
  const auto of_96 = [](std::int64_t count) { return Rational::make(count, 96).value(); };
  const Explanation explanation = test::explained(side({{"dispatches", of_96(5689)},
                                                        {"barriers", of_96(4543)},
                                                        {"syncs", of_96(174)},
                                                        {"graphs", of_96(44)},
                                                        {"cpu_ops", of_96(44)},
                                                        {"splits", of_96(88)},
                                                        {"cached_prompt_share", 1}}),
                                                  side({{"dispatches", of_96(6019)},
                                                        {"barriers", of_96(4736)},
                                                        {"syncs", of_96(127)},
                                                        {"graphs", of_96(47)},
                                                        {"cpu_ops", of_96(47)},
                                                        {"splits", of_96(94)},
                                                        {"cached_prompt_share", 0}}));
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings[0].headline,
            "0 % of the prompts came from a cache, before 100 %.");
}

TEST(Served, ASmallChangeOfAShareHidesNoOtherCount) {
  for (const char* share : {"cached_prompt_share", "draft_acceptance"}) {
    const auto with = [&](std::int64_t of_100, std::int64_t graphs, std::int64_t syncs) {
      return side({{share, Rational::make(of_100, 100).value()},
                   {"graphs", Rational::make(graphs, 100).value()},
                   {"syncs", syncs}});
    };
    const auto kinds = [&](const Side& after) {
      std::set<std::string> all;
      for (const Finding& finding : test::explained(with(95, 50, 1), after).findings) {
        all.insert(finding.kind);
      }
      return all;
    };
    EXPECT_EQ(kinds(with(94, 51, 25)), (std::set<std::string>{"served_changed", "sync_added"}));
    EXPECT_EQ(kinds(with(10, 90, 2)), std::set<std::string>{"served_changed"});
    EXPECT_EQ(kinds(with(10, 40, 2)), (std::set<std::string>{"served_changed", "sync_added"}))
        << "fewer graphs do not follow from it";
  }
}

// Each graph has the same 22 ops on the CPU, reported as whole numbers per token.
TEST(Moves, DoNotFollowFromMoreGraphs) {
  const auto with = [](std::int64_t graphs, std::int64_t of_a_kind) {
    return side({{"graphs", Rational::make(graphs, 96).value()},
                 {"cpu_ops", Rational::make(22 * graphs, 96).value()},
                 {"dispatches", Rational::make(60 * graphs, 96).value()}},
                {}, {{"MUL_MAT", of_a_kind}});
  };
  for (const Finding& finding : test::explained(with(44, 10), with(47, 11)).findings) {
    EXPECT_NE(finding.kind, "work_moved_to_cpu");
  }
}

TEST(Threads, MoreThanBeforeAreTold) {
  const Explanation explanation =
      test::explained(side({{"threads_peak", 1}}), side({{"threads_peak", 2}}));
  ASSERT_EQ(explanation.findings.size(), 1U);
  EXPECT_EQ(explanation.findings[0].headline, "The engine has 2 threads at once, before 1.");
}

}  // namespace host_test
}  // namespace weir::explain
