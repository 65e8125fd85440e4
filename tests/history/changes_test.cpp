// Tests changes along the series of a history. Values are invented: levels with a noise of one in a
// hundred, the same every time.
#include "gate/history/changes.hpp"

#include <gmock/gmock.h>

#include "gate/base/text.hpp"

namespace weir::history {
namespace changes_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double k_day = 86'400, k_first = 1'760'000'000;

// Returns 1 plus a number from -0.01 to 0.01 that looks like noise.
double noise(std::size_t i) {
  return 1 + 0.01 * (static_cast<double>((i * 7919 + 13) % 101) / 50 - 1);
}

std::string make_commit(std::size_t i) { return fmt::format("{:040x}", 0xabc000 + i); }

class SeriesOfNights {
 public:
  explicit SeriesOfNights(const std::string& metric) {
    history_.series.push_back({"default", "mine/m/cpu/decode", metric_named(metric), "lab", {}});
    history_.places.push_back({"cpu", "", "class-1", "", ""});
    history_.places.push_back({"cpu", "", "class-2", "", ""});
  }
  void night(double value, std::uint32_t place = 0, bool with_commit = true) {
    const std::size_t i = history_.runs.size();
    RunFacts run;
    run.id = fmt::format("{}", i);
    run.time = k_first + static_cast<double>(i) * k_day;
    if (with_commit) run.commit = make_commit(i);
    history_.runs.push_back(run);
    const bool count = history_.series[0].metric.kind == unit::Kind::count;
    history_.series[0].points.push_back({value,
                                         {},
                                         {},
                                         count ? profile::Nature::exact : profile::Nature::sampled,
                                         static_cast<std::uint32_t>(i),
                                         place});
  }
  [[nodiscard]] std::vector<SeriesChange> changes(
      const std::vector<Acknowledgement>& acknowledgements = {}) const {
    const auto result = find_changes(history_, acknowledgements, {});
    EXPECT_TRUE(result) << result.error().message;
    return result.value_or(std::vector<SeriesChange>());
  }

  History history_;
};

SeriesOfNights falling_rate(std::size_t before, std::size_t after, std::uint32_t place = 0) {
  SeriesOfNights nights("decode_tokens_per_second");
  for (std::size_t i = 0; i < before; ++i) nights.night(10 * noise(i));
  for (std::size_t i = 0; i < after; ++i) nights.night(9 * noise(before + i), place);
  return nights;
}

TEST(HistoryChanges, AreNoneWhereNothingChanged) {
  EXPECT_THAT(falling_rate(60, 0).changes(), IsEmpty());
}

TEST(HistoryChanges, NameTheFirstCommitAndTheSize) {
  const SeriesOfNights nights = falling_rate(40, 15);
  const auto changes = nights.changes();
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(kind_name(changes[0]), "step");
  EXPECT_EQ(changes[0].index, 40U);
  EXPECT_NEAR(changes[0].size, -0.1, 0.01);
  EXPECT_LE(changes[0].low, -0.1);
  EXPECT_GE(changes[0].high, -0.1);
  EXPECT_EQ(changes[0].worse, true);
  const Json json = change_json(nights.history_, changes[0]);
  EXPECT_EQ(json["kind"], "step");
  EXPECT_EQ(json["commit"], make_commit(40));
  EXPECT_EQ(json["commit_before"], make_commit(39));
  EXPECT_EQ(json["index"], 40);
  EXPECT_EQ(json["machine"], "lab");
}

TEST(HistoryChanges, OfCountsAreAnyStepAlsoOneThatFlipsBack) {
  SeriesOfNights nights("syncs_per_token");
  for (const double value : {1., 1., 17., 1., 1.}) nights.night(value);
  const auto changes = nights.changes();
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_EQ(changes[0].index, 2U);
  EXPECT_EQ(changes[0].worse, true);
  EXPECT_EQ(changes[1].index, 3U);
  EXPECT_EQ(changes[1].worse, false);
  EXPECT_EQ(size_text(nights.history_.series[0].metric, changes[0]), "grew by 16");
}

// A new driver or image is no commit's fault; it is reported with its effect.
TEST(HistoryChanges, TellAnotherMachineClassAsThat) {
  const SeriesOfNights falls = falling_rate(40, 15, 1);
  const auto with_step = falls.changes();
  ASSERT_THAT(with_step, SizeIs(1));
  EXPECT_EQ(kind_name(with_step[0]), "class");
  EXPECT_FALSE(with_step[0].class_alone);
  EXPECT_EQ(with_step[0].new_class->machine_class, "class-2");
  EXPECT_NEAR(with_step[0].size, -0.1, 0.01);

  SeriesOfNights same("decode_tokens_per_second");
  for (std::size_t i = 0; i < 40; ++i) same.night(10 * noise(i), i < 20 ? 0 : 1);
  const auto without = same.changes();
  ASSERT_THAT(without, SizeIs(1));
  EXPECT_EQ(kind_name(without[0]), "class");
  EXPECT_NEAR(without[0].size, 0, 0.01);
  EXPECT_TRUE(without[0].class_alone);
  EXPECT_FALSE(change_json(falls.history_, with_step[0])["low"].is_null());
  EXPECT_TRUE(change_json(same.history_, without[0])["low"].is_null());
  EXPECT_TRUE(change_json(same.history_, without[0])["high"].is_null());
}

TEST(HistoryChanges, ThatSomebodyAcknowledgedAreKnownAlsoWhenTheyMoveByAPoint) {
  const SeriesOfNights nights = falling_rate(40, 15);
  Acknowledgement word = make_acknowledgement(nights.history_, nights.changes()[0]);
  word.who = "ada";
  word.reason = "a new sampler";
  EXPECT_EQ(nights.changes({word})[0].acknowledgement->who, "ada");
  word.commit = make_commit(42);
  EXPECT_TRUE(nights.changes({word})[0].acknowledgement);
  word.commit = make_commit(50);
  EXPECT_FALSE(nights.changes({word})[0].acknowledgement);
  word.commit = make_commit(40);
  word.machine = "another";
  EXPECT_FALSE(nights.changes({word})[0].acknowledgement);
}

// An acknowledgement of one change does not cover the next.
TEST(HistoryChanges, OfACountThatSomebodyAcknowledgedAreNoOthers) {
  SeriesOfNights nights("syncs_per_token");
  for (const double value : {1., 1., 5., 5., 99.}) nights.night(value);
  const auto changes = nights.changes();
  ASSERT_THAT(changes, SizeIs(2));
  const auto after = nights.changes({make_acknowledgement(nights.history_, changes[0])});
  EXPECT_TRUE(after[0].acknowledgement);
  EXPECT_FALSE(after[1].acknowledgement);
  EXPECT_THAT(make_issue(nights.history_, changes[1], "").near, IsEmpty());
}

TEST(HistoryChanges, InWordsFitATerminalAndAnIssueWhateverTheyAreCalled) {
  SeriesOfNights nights = falling_rate(40, 15);
  nights.history_.series[0].cell = "mine/<!-- x --> @ada #1/cpu/decode";
  nights.history_.series[0].machine = "[lab](http://evil)";
  const auto changes = nights.changes();
  const std::string text = changes_text(nights.history_, changes, 80);
  EXPECT_THAT(text, HasSubstr("WORSE"));
  EXPECT_THAT(text, HasSubstr("decode tok/s fell by "));
  for (const std::string& line : text::lines(text)) EXPECT_LE(text::columns(line), 80U) << line;
  const ChangeIssue issue = make_issue(nights.history_, changes[0], "https://o.github.io/r/");
  EXPECT_EQ(issue.at, make_commit(40));
  EXPECT_THAT(issue.near, ::testing::Contains(make_commit(41)));
  EXPECT_THAT(issue.body, ::testing::Not(HasSubstr("<!--")));
  EXPECT_THAT(issue.body, HasSubstr("weir bisect " + make_commit(39)));
  EXPECT_THAT(issue.title, HasSubstr("decode tok/s"));
}

TEST(HistoryChanges, InWordsLoseNothingAtTheEndOfALine) {
  SeriesOfNights nights = falling_rate(40, 15);
  const std::string cell = "mine/" + std::string(100, 'm') + "/cpu/decode";
  const std::string machine = "the machine " + std::string(90, 'b') + " in the cellar";
  nights.history_.series[0].cell = cell;
  nights.history_.series[0].machine = machine;
  auto changes = nights.changes();
  changes[0].acknowledgement = Acknowledgement{};
  changes[0].acknowledgement->who = "ada";
  changes[0].acknowledgement->reason =
      "the new kernel keeps " + std::string(70, 'k') + " in registers";
  const std::string text = changes_text(nights.history_, changes, 80);
  std::string unbroken;
  for (const char c : text) unbroken += c == ' ' || c == '\n' ? "" : std::string(1, c);
  for (std::string words : {cell, machine, changes[0].acknowledgement->reason}) {
    std::erase(words, ' ');
    EXPECT_THAT(unbroken, HasSubstr(words));
  }
  for (const std::string& line : text::lines(text)) EXPECT_LE(text::columns(line), 80U) << line;
}

TEST(HistoryChanges, MayStillTurnOutToBeAnotherKindOnlyWhileTheyGoOn) {
  SeriesOfNights nights = falling_rate(40, 15);
  auto changes = nights.changes();
  ASSERT_THAT(changes, SizeIs(1));
  changes[0].settled = false;
  EXPECT_THAT(changes_text(nights.history_, changes, 80),
              HasSubstr(" since then: it may still turn out to be a drift"));
  SeriesChange drift = changes[0];
  drift.kind = stats::ChangeKind::drift;
  drift.end = 50;
  EXPECT_THAT(changes_text(nights.history_, {drift}, 80), ::testing::Not(HasSubstr("since then")));
  drift.end = 55;
  EXPECT_THAT(changes_text(nights.history_, {drift}, 80),
              HasSubstr(" since then: it may still turn out to be a step"));
  SeriesChange later = changes[0];
  later.settled = true;
  EXPECT_THAT(changes_text(nights.history_, {drift, later}, 80),
              ::testing::Not(HasSubstr("since then")));
}

TEST(HistoryChanges, WhoseIntervalHoldsZeroAreUnclear) {
  const SeriesOfNights nights = falling_rate(40, 15);
  auto changes = nights.changes();
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_FALSE(changes[0].is_unclear());
  EXPECT_THAT(changes_text(nights.history_, changes, 80), HasSubstr("WORSE"));
  changes[0].high = 0.009;
  EXPECT_TRUE(changes[0].is_unclear());
  EXPECT_THAT(changes_text(nights.history_, changes, 80), HasSubstr("unclear"));
  changes[0].class_alone = true;
  EXPECT_FALSE(changes[0].is_unclear());
}

TEST(HistoryChanges, WithoutCommitsGoByTime) {
  SeriesOfNights nights("decode_tokens_per_second");
  for (std::size_t i = 0; i < 40; ++i) nights.night((i < 25 ? 10 : 8) * noise(i), 0, false);
  const auto changes = nights.changes();
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_TRUE(change_json(nights.history_, changes[0])["commit"].is_null());
  const Acknowledgement word = make_acknowledgement(nights.history_, changes[0]);
  EXPECT_TRUE(nights.changes({word})[0].acknowledgement);
}

}  // namespace changes_test
}  // namespace weir::history
