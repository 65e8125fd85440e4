// Tests how paired runs confirm times that failed against stored samples.
#include <gmock/gmock.h>

#include "gate/verdict/verdict.hpp"

namespace weir::verdict {
namespace confirm_test {

using ::testing::HasSubstr;

const profile::CellKey k_cell = *profile::CellKey::parse("e/m/b/p");

Judgement rate(Outcome outcome, bool paired, std::string reason = "why") {
  Judgement judgement;
  judgement.metric = *unit::find_metric("decode_tokens_per_second");
  judgement.verdict = outcome;
  judgement.limit.max_drop = MaxChange{{0.05, true}, {0.025, true}};
  judgement.reason = std::move(reason);
  if (paired) {
    judgement.pairs = 12;
  } else {
    judgement.suspected = outcome == Outcome::fail;
  }
  return judgement;
}

CellVerdict cell(std::vector<Judgement> metrics) {
  CellVerdict judged;
  judged.cell = k_cell;
  judged.judgements = std::move(metrics);
  judged.verdict = judged.judgements.front().verdict;
  return judged;
}

TEST(Suspected, IsATimeThatFailsAgainstStoredSamplesByItsChange) {
  Judgement floor = rate(Outcome::fail, false);
  floor.suspected = false;  // it is below an absolute limit (times.cpp)
  const struct {
    Judgement metric;
    bool suspected;
  } cases[] = {{rate(Outcome::fail, false), true},
               {rate(Outcome::pass, false), false},
               {rate(Outcome::inconclusive, false), false},
               {rate(Outcome::fail, true), false},  // by its pairs
               {floor, false}};
  for (const auto& c : cases) {
    const CellVerdict of[] = {cell({c.metric})};
    EXPECT_EQ(suspected(of).size(), c.suspected ? 1U : 0U);
  }
}

// A candidate that crashes in its pairs, or has no pairs, is not cleared.
TEST(Confirm, LeavesAFailWherePairsBrokeOrWereNone) {
  for (const Outcome outcome : {Outcome::inconclusive, Outcome::pass, Outcome::fail}) {
    CellVerdict broken = cell({rate(outcome, true)});
    broken.reason = "the candidate crashed twice";
    CellVerdict none = cell({rate(Outcome::inconclusive, true)});
    none.judgements[0].pairs = 0;
    for (const CellVerdict& paired_cell : {broken, none}) {
      std::vector<CellVerdict> cells{cell({rate(Outcome::fail, false)})};
      const CellVerdict beside[] = {paired_cell};
      const Confirmed result = confirm(cells, beside, "main");
      EXPECT_EQ(cells[0].verdict, Outcome::fail) << to_string(outcome);
      EXPECT_EQ(result.cleared + result.inconclusive, 0);
    }
  }
}

TEST(Confirm, GivesASuspectedTimeTheVerdictOfItsPairs) {
  const struct {
    Outcome pairs, expected;
    const char* reason;
  } cases[] = {
      {Outcome::fail, Outcome::fail, "against stored samples it was -9 %"},
      {Outcome::pass, Outcome::pass, "not slower than main"},
      {Outcome::improved, Outcome::pass, "not slower than main"},
      {Outcome::inconclusive, Outcome::inconclusive, "suspected, not confirmed"},
      {Outcome::error, Outcome::fail, "-9 %"},
      {Outcome::new_, Outcome::fail, "-9 %"},
  };
  for (const auto& c : cases) {
    std::vector<CellVerdict> cells{cell({rate(Outcome::fail, false, "-9 %")})};
    const CellVerdict beside[] = {cell({rate(c.pairs, true)})};
    const Confirmed result = confirm(cells, beside, "main");
    EXPECT_EQ(cells[0].verdict, c.expected) << to_string(c.pairs);
    EXPECT_EQ(cells[0].judgements[0].verdict, c.expected) << to_string(c.pairs);
    EXPECT_THAT(cells[0].judgements[0].reason, HasSubstr(c.reason));
    EXPECT_EQ(result.confirmed + result.cleared + result.inconclusive +
                  static_cast<std::int64_t>(result.not_asked.size()),
              1);
  }
}

TEST(Confirm, TakesOfATimeThatWasNotSuspectedAFailAlone) {
  for (const Outcome stored : {Outcome::pass, Outcome::inconclusive, Outcome::new_}) {
    for (const Outcome pairs : {Outcome::fail, Outcome::pass, Outcome::inconclusive}) {
      std::vector<CellVerdict> cells{cell({rate(stored, false)})};
      const CellVerdict beside[] = {cell({rate(pairs, true)})};
      EXPECT_TRUE(confirm(cells, beside, "main").not_asked.empty());
      EXPECT_EQ(cells[0].judgements[0].verdict, pairs == Outcome::fail ? Outcome::fail : stored);
    }
  }
}

TEST(Confirm, SaysWhyPairsOfACellWereNone) {
  std::vector<CellVerdict> cells{cell({rate(Outcome::fail, false)})};
  CellVerdict broken;
  broken.cell = k_cell;
  broken.reason = "the base hangs\nand more";
  const CellVerdict beside[] = {broken};
  const Confirmed result = confirm(cells, beside, "main");
  ASSERT_EQ(result.not_asked.size(), 1U);
  EXPECT_EQ(result.not_asked[0], "e/m/b/p, decode tok/s: the base hangs");
  EXPECT_EQ(cells[0].verdict, Outcome::fail);
}

}  // namespace confirm_test
}  // namespace weir::verdict
