// Tests pictures of the ratios of pairs, and the parts of reports that depend on a base program.
#include "gate/report/ratios.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/report/annotations.hpp"
#include "gate/report/document.hpp"
#include "gate/report/html.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/terminal.hpp"

#include "tests/report/paired_fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace ratios_test {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using verdict::Judgement;
using verdict::Outcome;

constexpr const char* k_rate = "decode_tokens_per_second";

Judgement with_ratios(const std::string& name, std::vector<std::optional<double>> ratios) {
  Judgement judgement = fixtures::paired(name, Outcome::pass, 100, {0, 1, 0}, {0, -0.01, 0.01});
  judgement.pairs = static_cast<std::int64_t>(ratios.size());
  judgement.ratios = std::move(ratios);
  return judgement;
}

std::size_t count_pairs(const Histogram& all, double from, double to) {
  std::size_t pairs = 0;
  for (const Histogram::Bar& bar : all.bars) {
    if (bar.from >= from && bar.to <= to) pairs += bar.pairs;
  }
  return pairs;
}

TEST(Ratios, StandOnTheirSideOfEveryMark) {
  // A rate may drop 5 %, and 2.5 % is tolerated: two are beyond, one between, one tolerated, two
  // better.
  const Judgement metric =
      with_ratios(k_rate, {0.90, 0.9499, 0.96, 0.98, 1.001, 1.02, std::nullopt});
  const Histogram all = histogram(metric, 40);
  EXPECT_EQ(all.pairs, 6U);
  EXPECT_EQ(all.not_ended, 1U);
  EXPECT_DOUBLE_EQ(*all.limit, -0.05);
  EXPECT_DOUBLE_EQ(*all.tolerated, -0.025);
  EXPECT_EQ(count_pairs(all, -1, -0.05), 2U);
  EXPECT_EQ(count_pairs(all, -0.05, -0.025), 1U);
  EXPECT_EQ(count_pairs(all, -0.025, 0), 1U);
  EXPECT_EQ(count_pairs(all, 0, 1), 2U);
}

TEST(Ratios, OfATimeHaveTheirLimitToTheRight) {
  const Histogram all = histogram(with_ratios("time_to_first_token_seconds", {1.2, 1.3}), 40);
  EXPECT_DOUBLE_EQ(*all.limit, 0.05);
  EXPECT_EQ(count_pairs(all, 0.05, 1), 2U);
}

TEST(Ratios, TakePlainAmountsAsAShareOfTheBase) {
  Judgement metric = with_ratios(k_rate, {1, 1.01});
  metric.limit.max_drop = verdict::MaxChange{{8, false}, {4, false}};
  EXPECT_DOUBLE_EQ(*histogram(metric, 40).limit, -0.08);
  metric.baseline.reset();
  EXPECT_FALSE(histogram(metric, 40).limit) << "of nothing there is no share";
}

TEST(Ratios, FarOutAreCountedAndDoNotPressTheRestTogether) {
  std::vector<std::optional<double>> ratios(40, 1.0);
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] = 0.98 + 0.001 * static_cast<double>(i);
  ratios[3] = 0.2;
  ratios[9] = 7;
  const Histogram all = histogram(with_ratios(k_rate, ratios), 40);
  EXPECT_EQ(all.below, 1U);
  EXPECT_EQ(all.above, 1U);
  EXPECT_EQ(count_pairs(all, -1, 10), 40U) << "they stand in the outermost bars";
  EXPECT_LT(all.bars.back().to, 0.2);
  const std::string strip = ratio_strip(with_ratios(k_rate, ratios), 70);
  EXPECT_THAT(strip, AllOf(HasSubstr("1 below"), HasSubstr("1 above")));
}

TEST(Ratios, OfPairsThatDidNotEndAreToldBesideTheLine) {
  EXPECT_THAT(ratio_strip(with_ratios(k_rate, {1, std::nullopt}), 70), HasSubstr(", 1 not ended"));
}

TEST(Ratios, FitTheirColumnsWhateverTheyAre) {
  struct Row {
    const char* what;
    std::vector<std::optional<double>> ratios;
  };
  for (const auto& [what, ratios] :
       {Row{"one", {0.5}}, Row{"all the same", {1, 1, 1, 1, 1, 1, 1, 1, 1}},
        Row{"all gone", {1e-9, 1e-12, 1e-10}}, Row{"huge", {1e12, 2e12, 1e15}},
        Row{"a tenth of the limit", {0.9999, 1.0001}}, Row{"half", {0.5, 0.51, 0.5, 0.52, 0.49}}}) {
    for (const std::size_t columns : {50U, 70U, 110U}) {
      const std::string strip = ratio_strip(with_ratios(k_rate, ratios), columns);
      EXPECT_FALSE(strip.empty()) << what;
      EXPECT_LE(text::columns(strip), columns) << what << ": " << strip;
      EXPECT_EQ(support::occurrences(strip, "\u2503"), 1U) << what << ": " << strip;
      EXPECT_EQ(support::occurrences(strip, "\u2502"), 1U) << what << ": " << strip;
    }
  }
}

TEST(Ratios, HaveNoPictureWhereNothingEndedOrNothingIsJudged) {
  EXPECT_EQ(ratio_strip(with_ratios(k_rate, {std::nullopt}), 70), "");
  Judgement unlimited = with_ratios(k_rate, {1, 1});
  unlimited.limit = {};
  EXPECT_FALSE(has_picture(unlimited));
}

TEST(Ratios, AreToldInWordsToo) {
  const Judgement metric = with_ratios(k_rate, {0.90, 0.96, 1.02, std::nullopt});
  EXPECT_EQ(picture_text(metric),
            "3 pairs from \u221210.0 % to +2.0 %; 1 beyond the limit of \u22125 %; 1 more did not "
            "end");
  EXPECT_EQ(strip_legend(metric),
            "\u2503 limit \u22125 %   \u254e tolerated \u22122.5 %   \u2502 no change");
}

TEST(BesideABase, TheLastColumnOfATerminalIsKept) {
  for (const auto& [name, gate] : fixtures::all_beside()) {
    for (const int width : {60, 80, 120}) {
      TerminalStyle style;
      style.width = width;
      const std::string report = terminal(gate, style);
      for (const std::string& line : text::lines(report)) {
        EXPECT_LE(text::columns(line), static_cast<std::size_t>(width)) << name << ": " << line;
      }
    }
  }
}

TEST(BesideABase, EveryReportSaysWhatItsVerdictPromises) {
  for (const auto& [name, gate] : fixtures::all_beside()) {
    for (const std::string& report : {terminal(gate, {}), markdown(gate, {}), html(gate)}) {
      std::string words;
      for (const char c : report) words += c == '\n' ? ' ' : c;
      while (words.find("  ") != std::string::npos) words.replace(words.find("  "), 2, " ");
      EXPECT_THAT(words, HasSubstr("passes in at most 1 of 100")) << name;
      EXPECT_THAT(words, HasSubstr("at most 1 of 1000 gates fails by chance")) << name;
    }
  }
}

TEST(BesideABase, TheCommitOfTheBaseIsNamedOnce) {
  EXPECT_EQ(Document(fixtures::beside_pass()).base,
            "merge-base of HEAD and origin/main, 1a2b3c4 \"Fuse rope into the cache's write\"");
  EXPECT_EQ(Document(fixtures::green()).base, "stored baselines in baselines, commit e4f5a6b");
}

TEST(BesideABase, AnIntervalThatIsOpenSaysSo) {
  Judgement metric = with_ratios(k_rate, {1, 1});
  metric.low.reset();
  EXPECT_THAT(words(metric).change, HasSubstr("(\u2212100 \u2026 +1.0)"));
  metric.low = -0.01;
  metric.high.reset();
  EXPECT_THAT(words(metric).change, HasSubstr("(\u22121.0 \u2026 +\u221e)"));
}

TEST(BesideARun, BothRunsAreExplainedAndNothingIsMeasuredOrAccepted) {
  const Verbs verbs{"explain", "/weir waive", "baseline accept", "gate --counts-only", "doctor"};
  const struct {
    std::vector<std::string> runs, want;
  } cases[] = {
      {{"out/a", "out/b"}, {"weir explain", "out/a", "out/b"}},
      {{"my out/a", "out/it's/run.jsonl"},
       {"weir explain", "'my out/a'", "'out/it'\\''s/run.jsonl'"}},
      {{"out/a\nb", "out/b"}, {}},
      {{}, {}},  // hidden names
  };
  for (const auto& test_case : cases) {
    auto gate = fixtures::red();
    gate.runs = test_case.runs;
    const auto all = hints(gate, verbs);
    ASSERT_EQ(all.size(), test_case.want.empty() ? 0U : 1U);
    if (!all.empty()) {
      EXPECT_EQ(all[0].words, test_case.want);
    }
  }
  auto improved = fixtures::mixed();
  improved.runs = {"a", "b"};
  TerminalStyle style;
  style.verbs = verbs;
  EXPECT_THAT(terminal(improved, style), testing::Not(HasSubstr("accept")));
}

TEST(BesideABase, NothingIsAcceptedAndTheSameBaseIsAskedForAgain) {
  const Verbs verbs{"baseline accept", "gate --counts-only", "doctor"};
  const std::string cell = "--cell 'llama.cpp/tiny-llama/cpu/decode'";
  const auto failed = hints(fixtures::beside_fail(), verbs);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_THAT(failed[0].words, ElementsAre("weir gate", cell, "--against origin/main"))
      << "counts alone would not show that it is slower";
  EXPECT_TRUE(hints(fixtures::beside_improved(), verbs).empty());

  auto by_counts = fixtures::beside_pass();
  by_counts.verdict = by_counts.cells[1].verdict = Outcome::fail;
  by_counts.cells[1].judgements[0] = fixtures::count("dispatches_per_token", Outcome::fail, 65, 77);
  by_counts.against = verdict::Against{"", {"./old bench", "-m", "{model}", "it's"}};
  EXPECT_THAT(hints(by_counts, verbs).at(0).words,
              ElementsAre("weir gate", "--counts-only", cell, "--against --", "'./old bench'", "-m",
                          "'{model}'", "'it'\\''s'"));
  // It failed by its placement and nothing counts it: --counts-only might skip it.
  auto elsewhere = by_counts;
  elsewhere.cells[1].counts_skip_reason = "no probe sees metal";
  EXPECT_THAT(hints(elsewhere, verbs).at(0).words,
              testing::Not(testing::Contains("--counts-only")));
  // A command that cannot be pasted is not printed: hidden names, a line break.
  by_counts.against = verdict::Against{};
  EXPECT_TRUE(hints(by_counts, verbs).empty());
  by_counts.against = verdict::Against{"", {"./old", "a\nb"}};
  EXPECT_TRUE(hints(by_counts, verbs).empty());
}

TEST(BesideABase, AnnotationsTellEachTimeThatFailedInALine) {
  EXPECT_THAT(annotations(fixtures::beside_fail()),
              AllOf(HasSubstr("decode tok/s: 28.6 \u2192 25.2 (\u221211.8 %25 (\u221212.6 \u2026 "
                              "\u221210.9), 12 pairs, may drop 5 %25)%0A"),
                    HasSubstr("time to first token: ")));
}

}  // namespace ratios_test
}  // namespace weir::report
