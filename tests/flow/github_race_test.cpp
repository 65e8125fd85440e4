// Nobody lets themselves in, in whatever order things happen: pushes of commits and of refs, second
// pull requests, retargets, jobs on runners that keep a cache, posts and comments are drawn, and
// between any two requests of a post or of a comment's answer others happen.
#include <gmock/gmock.h>

#include "tests/flow/race/drawn.hpp"

namespace weir::flow {
namespace github_race_test {

using ::testing::HasSubstr;
using tests::race::Done;
using tests::race::Drawn;
using tests::race::Inputs;
using tests::race::Naming;
using tests::race::Steps;

class OnGithub : public testing::Test {
 protected:
  static void SetUpTestSuite() { jobs = std::make_unique<tests::race::Jobs>(); }
  static void TearDownTestSuite() { jobs.reset(); }

  inline static std::unique_ptr<tests::race::Jobs> jobs;
};

// Else the events below would attack nothing.
class Attacks : public OnGithub {};

TEST_F(Attacks, SucceedWhereAWorkflowAsksForThem) {
  const Inputs honest{.head = "bad"};
  EXPECT_FALSE(jobs->measure(honest).passed);
  const std::string tag = "refs/tags/origin/main";
  const Inputs beside_tag{.head = "bad", .pushed = {tag}, .against = tag};
  EXPECT_TRUE(jobs->measure(beside_tag).passed);
  const std::string checkout = jobs->origin().checkout();
  const Inputs beside_folder{.head = "folders", .against = checkout + "/main"};
  EXPECT_TRUE(jobs->measure(beside_folder).passed);
  Inputs trusting = honest;
  trusting.trusts_cache = true;
  EXPECT_TRUE(jobs->measure(trusting, jobs->poisoned()).passed);
  EXPECT_FALSE(jobs->measure(honest, jobs->poisoned()).passed);
  for (const std::string name : {"zzw", "zzx", "zzy", "zzz"}) {
    const Inputs named{
        .head = "runs", .steps = Steps::run_and_gate, .from = checkout + "/weir-out/" + name};
    EXPECT_TRUE(jobs->measure(named).passed) << name;
  }
}

TEST_F(Attacks, AreRefusedWithAReason) {
  const Inputs by_name{.head = "bad",
                       .pushed = {"refs/tags/origin/main"},
                       .names = {.rules = Naming::id, .base = Naming::of_remote}};
  EXPECT_THAT(jobs->measure(by_name).error, HasSubstr("ambiguous"));
  EXPECT_THAT(jobs->measure({.head = "runs", .steps = Steps::shards_into}).error,
              HasSubstr("joined: it is there already"));
  EXPECT_THAT(jobs->measure({.head = "copies", .steps = Steps::shards}).error,
              HasSubstr("no shards of one run"));
  const Done& foreign = jobs->measure({.head = "bad", .against = jobs->origin().id("slow")});
  EXPECT_TRUE(foreign.passed) << "by its own workflow";
  const Done& judged = jobs->judge(foreign, {});
  EXPECT_FALSE(judged.passed);
  EXPECT_THAT(judged.verdict.value_or(""), HasSubstr("which is no commit of"));
}

// 10 000 in all, in four parts.
class Interleavings : public OnGithub, public testing::WithParamInterface<unsigned> {};

TEST_P(Interleavings, OfWhateverHappensLeaveNoSuccessThatWasNotEarned) {
  constexpr unsigned k_times = 2500;
  int greens = 0, waived = 0, by_refs = 0, by_cache = 0, by_runs = 0;
  std::map<std::string_view, std::pair<int, int>> wrong;  // by attack: of how many
  std::string first;
  for (unsigned seed = GetParam() * k_times; seed < (GetParam() + 1) * k_times; ++seed) {
    Drawn drawn(*jobs, seed);
    for (int i = 0; i < 12; ++i) drawn.act();
    drawn.end();
    auto& [failed, all] = wrong[tests::race::k_attacks[static_cast<std::size_t>(drawn.attack())]];
    ++all;
    if (!drawn.wrong.empty()) {
      ++failed;
      if (first.empty()) first = fmt::format("seed {}: {}", seed, drawn.wrong);
    }
    greens += drawn.greens() > 0 ? 1 : 0;
    waived += drawn.waived;
    by_refs += drawn.by_refs > 0 ? 1 : 0;
    by_cache += drawn.by_cache > 0 ? 1 : 0;
    by_runs += drawn.by_runs > 0 ? 1 : 0;
  }
  std::string failures;
  for (const auto& [attack, counts] : wrong)
    failures += fmt::format("\n{}: {} of {}", attack, counts.first, counts.second);
  EXPECT_EQ(first, "") << failures;
  // Else it would hold of a program that posts nothing, or that nobody attacks.
  EXPECT_GT(greens, 100);
  EXPECT_GT(waived, 12);
  EXPECT_GT(by_refs, 200);
  EXPECT_GT(by_cache, 300);
  EXPECT_GT(by_runs, 150);
}
INSTANTIATE_TEST_SUITE_P(Drawn, Interleavings, testing::Range(0U, 4U));

}  // namespace github_race_test
}  // namespace weir::flow
