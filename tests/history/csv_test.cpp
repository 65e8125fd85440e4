// Tests reading CSV tables into the runs of a history.
#include "gate/history/csv.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/history/history.hpp"

namespace weir::history {
namespace csv_test {

const std::string k_header = "cell,metric,commit,time,value,machine\n";

CsvTable parsed(const std::string& text) {
  auto table = CsvTable::parse(text, "default");
  EXPECT_TRUE(table.has_value()) << (table ? "" : table.error().message);
  return table ? *std::move(table) : CsvTable();
}

TEST(Csv, GivesARunForEachCommitTimeAndMachine) {
  const CsvTable table = parsed(k_header +
                                "e/m/b/p,load_seconds,abc1234,1795000000,1.5,box\n"
                                "e/m/b/p,tokens,abc1234,1795000000,20,box\n"
                                "e/m/b/p,load_seconds,abc1235,1795000060,1.6,box\n"
                                "e/m/b/p,load_seconds,abc1234,1795000000,1.5,other\n");
  ASSERT_EQ(table.runs(), 3U);
  const history::Run first = table.run(0);
  EXPECT_EQ(first.facts.commit, "abc1234");
  EXPECT_EQ(first.facts.time, 1795000000);
  EXPECT_EQ(first.facts.machine, "box");
  EXPECT_EQ(first.facts.source, Source::csv);
  ASSERT_EQ(first.points.size(), 2U);
  EXPECT_EQ(first.points[0].value, 1.5);
  EXPECT_EQ(first.points[0].metric.unit, unit::Unit::seconds);  // a metric that weir knows
  EXPECT_EQ(first.points[1].metric.better, std::nullopt);       // a metric that weir does not know
  EXPECT_TRUE(check(first).has_value());
}

TEST(Csv, TakesColumnsInAnyOrderAndWarnsOfOthers) {
  const CsvTable table = parsed("Value, METRIC ,note,time,cell\n1,x,hello,0,c\n");
  ASSERT_EQ(table.runs(), 1U);
  EXPECT_EQ(table.run(0).points[0].cell, "c");
  EXPECT_EQ(table.run(0).facts.commit, std::nullopt);
  ASSERT_EQ(table.warnings().size(), 1U);
  EXPECT_THAT(table.warnings()[0], testing::HasSubstr("\"note\""));
}

TEST(Csv, KeepsCountsExactlyAndOtherNumbersAsTheyAre) {
  const CsvTable table = parsed(k_header +
                                "c,dispatches_per_token,,0,65,m\n"
                                "c,barriers_per_token,,0,133/2,m\n"
                                "c,load_seconds,,0,65,m\n");
  const history::Run run = table.run(0);
  ASSERT_EQ(run.points.size(), 3U);
  EXPECT_EQ(run.points[0].exact, Rational(65));
  EXPECT_EQ(run.points[1].exact, Rational::make(133, 2));
  EXPECT_EQ(run.points[2].exact, std::nullopt);
  EXPECT_EQ(run.points[2].value, 65);
}

TEST(Csv, TakesRowsThatAgreeInAllButTheValueForSamples) {
  const history::Run run =
      parsed(k_header + "c,load_seconds,,0,3,m\nc,load_seconds,,0,1,m\nc,load_seconds,,0,2,m\n")
          .run(0);
  ASSERT_EQ(run.points.size(), 1U);
  EXPECT_EQ(run.points[0].samples, (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(run.points[0].value, 2);
}

TEST(Csv, NamesARunByWhatItIsHoweverItIsWritten) {
  const history::Run first = parsed(k_header + "c,x,abc1234,1970-01-01T00:01:00Z,1,m\n").run(0);
  const history::Run second =
      parsed("machine,value,time,commit,metric,cell\r\nm,2,60,abc1234,y,d\r\n").run(0);
  EXPECT_EQ(first.facts.id, second.facts.id);
  // Two rows of the same moment in one file are one run, too.
  EXPECT_EQ(parsed(k_header + "c,x,,60,1,m\nc,y,,1970-01-01T00:01Z,1,m\n").runs(), 1U);
}

struct Quoting {
  std::string field, expected;
};
class CsvField : public testing::TestWithParam<Quoting> {};
TEST_P(CsvField, IsReadAsRfc4180Says) {
  const CsvTable table = parsed(k_header + GetParam().field + ",x,,0,1,m");
  ASSERT_EQ(table.runs(), 1U);
  EXPECT_EQ(table.run(0).points[0].cell, GetParam().expected);
}
INSTANTIATE_TEST_SUITE_P(Table, CsvField,
                         testing::Values(Quoting{"plain", "plain"}, Quoting{"\"a,b\"", "a,b"},
                                         Quoting{"\"say \"\"hi\"\"\"", "say \"hi\""},
                                         Quoting{" spaces stay ", " spaces stay "},
                                         Quoting{"\"\"\"\"", "\""},
                                         // Control characters and broken UTF-8 are spelled out,
                                         // with a hash.
                                         Quoting{"\"two\nlines\"", stored_name("two\nlines")},
                                         Quoting{"\x80", stored_name("\x80")}));

struct Wrong {
  std::string text, says;
};
class CsvWrong : public testing::TestWithParam<Wrong> {};
TEST_P(CsvWrong, IsRefusedWithItsLine) {
  const auto table = CsvTable::parse(GetParam().text, "default");
  ASSERT_FALSE(table.has_value());
  EXPECT_EQ(table.error().code, Code::data);
  EXPECT_THAT(table.error().message, testing::HasSubstr(GetParam().says));
}
INSTANTIATE_TEST_SUITE_P(
    Table, CsvWrong,
    testing::Values(Wrong{"", "line 1: no header"},
                    Wrong{"cell,metric,time\n", "no column \"value\""},
                    Wrong{"cell,cell,metric,time,value\n", "\"cell\" is there twice"},
                    Wrong{k_header + "c,x,,0,nan,m\n", "line 2: \"nan\" is no finite number"},
                    Wrong{k_header + "c,x,,0,inf,m\n", "no finite number"},
                    Wrong{k_header + "c,x,,0,1e999,m\n", "no finite number"},
                    Wrong{k_header + "c,x,,0,0x10,m\n", "no finite number"},
                    Wrong{k_header + "c,x,,0,,m\n", "no finite number"},
                    Wrong{k_header + "c,x,,0,1/0,m\n", "no finite number"},
                    Wrong{k_header + "c,x,,yesterday,1,m\n", "\"yesterday\" is not a time"},
                    Wrong{k_header + "c,x,,1795000000000,1,m\n", "not in the years 0 to 9999"},
                    Wrong{k_header + "c,x,,0,1\n", "5 fields; the header has 6"},
                    Wrong{k_header + "c,x,,0,1,m,more\n", "7 fields"},
                    Wrong{k_header + ",x,,0,1,m\n", "a cell and a metric need names"},
                    Wrong{k_header + "\"c,x,,0,1,m\n", "a quote is not closed"},
                    Wrong{k_header + "\"c\"d,x,,0,1,m\n", "after a closing quote"},
                    Wrong{k_header + "c\"d,x,,0,1,m\n", "a quote within a field"},
                    Wrong{k_header + "ok,x,,0,1,m\n\"two\nlines\",x,,0,1,m\nc,x,,0,bad,m\n",
                          "line 5"},
                    Wrong{std::string(600, ','), "more than 256 columns"},
                    Wrong{k_header + std::string(70'000, 'c') + ",x,,0,1,m\n", "64 KiB"}));

TEST(Csv, IsRefusedOrReadButNeverBreaks) {
  std::mt19937 random(1);  // the same texts every time
  const std::string letters = "cell,metric,time,value\n\r\"\"0123456789.-:TZ\x80\xFF";
  for (int i = 0; i < 10'000; ++i) {
    std::string text = i % 2 == 0 ? k_header : "";
    for (std::size_t n = random() % 60; n > 0; --n) text += letters[random() % letters.size()];
    const auto table = CsvTable::parse(text, "default");
    for (std::size_t run = 0; table && run < table->runs(); ++run) {
      EXPECT_TRUE(check(table->run(run)).has_value());
    }
  }
}

struct TimeCase {
  std::string text;
  std::optional<double> seconds;  // as printed by `date -u -d TEXT +%s`
};
class Times : public testing::TestWithParam<TimeCase> {};
TEST_P(Times, AreSecondsSinceTheEpoch) {
  EXPECT_EQ(parse_time(GetParam().text), GetParam().seconds) << GetParam().text;
}
INSTANTIATE_TEST_SUITE_P(
    Table, Times,
    testing::Values(
        TimeCase{"0", 0}, TimeCase{"1795000000.25", 1795000000.25}, TimeCase{"-1", -1},
        TimeCase{"1970-01-01", 0}, TimeCase{"2026-11-20", 1795132800},
        TimeCase{"2026-11-20T09:30", 1795167000}, TimeCase{"2026-11-20T09:30:15Z", 1795167015},
        TimeCase{"2026-11-20 09:30:15.5", 1795167015.5},
        TimeCase{"2026-11-20T09:30:15+02:00", 1795159815},
        TimeCase{"2026-11-20T09:30:15-0530", 1795186815}, TimeCase{"2024-02-29", 1709164800},
        TimeCase{"1900-03-01", -2203891200}, TimeCase{"2026-02-29", std::nullopt},
        TimeCase{"2026-13-01", std::nullopt}, TimeCase{"2026-11-20T24:00", std::nullopt},
        TimeCase{"2026-11-20T", std::nullopt}, TimeCase{"2026-11-20T09:30:15+25:00", std::nullopt},
        TimeCase{"2026-11-20T09:30:15Zx", std::nullopt}, TimeCase{"", std::nullopt},
        TimeCase{"now", std::nullopt}, TimeCase{"2026-1-1", std::nullopt}));

// Files of two machines for the same nights are two runs a night.
TEST(Csv, OfRowsWithoutAMachineIsOfTheOneThatIsNamed) {
  const std::string text = "cell,metric,time,value\nc,m,1,2\n";
  const auto first = CsvTable::parse(text, "p", "A"), second = CsvTable::parse(text, "p", "B");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->run(0).facts.machine, "A");
  EXPECT_NE(first->run(0).facts.id, second->run(0).facts.id);
}

}  // namespace csv_test
}  // namespace weir::history
