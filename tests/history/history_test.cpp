// Tests the names, JSON lines and documents that a history stores.
#include "gate/history/history.hpp"

#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/history/documents.hpp"
#include "gate/history/json_lines.hpp"
#include "gate/history/store.hpp"

#include "tests/history/support.hpp"

namespace weir::history {
namespace history_test {

TEST(Names, StayAsTheyAreWhereTheyCanBeShown) {
  for (const char* name :
       {"llama.cpp/tiny/vulkan/decode", "größe", "漢字", "a b", "a\\b'c\"d;--"}) {
    EXPECT_EQ(stored_name(name), name);
  }
}

TEST(Names, AreWrittenOutWhereTheyCanNotBeShownAndNeverRunTogether) {
  const std::vector<std::string> odd{"",
                                     "\x80",
                                     "<80>",
                                     "a\nb",
                                     "a\tb",
                                     std::string("a\0b", 3),
                                     "\xE2\x80\xAE",
                                     "\x1b[31m",
                                     std::string(600, 'x'),
                                     std::string(601, 'x'),
                                     "\xC3",
                                     "\xED\xA0\x80"};
  std::set<std::string> names;
  for (const std::string& name : odd) {
    const std::string stored = stored_name(name);
    EXPECT_TRUE(names.insert(stored).second) << stored;
    EXPECT_EQ(stored_name(stored), stored);  // a stored name stays as it is
    EXPECT_LE(stored.size(), k_longest_name);
    EXPECT_TRUE(check(run_at("id", 0, {time_point(stored, 1)})).has_value()) << stored;
  }
}

TEST(Names, OfAnyBytesAreNames) {
  std::mt19937 random(2);  // the same bytes every time
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes;
    for (std::size_t n = random() % 24; n > 0; --n) bytes += static_cast<char>(random() % 256);
    EXPECT_TRUE(check(run_at("id", 0, {time_point(stored_name(bytes), 1)})).has_value());
  }
}

struct WrongRun {
  std::string says;
  std::function<void(history::Run&)> spoil;
};
class Check : public testing::TestWithParam<WrongRun> {};
TEST_P(Check, RefusesWhatIsNotFitToBeKept) {
  history::Run run = run_at("id", 0, {time_point("c", 1, {1, 1}), count_point("c", 65)});
  ASSERT_TRUE(check(run).has_value());
  GetParam().spoil(run);
  const auto checked = check(run);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, Code::data);
  EXPECT_THAT(checked.error().message, testing::HasSubstr(GetParam().says));
}
const double k_nan = std::numeric_limits<double>::quiet_NaN();
INSTANTIATE_TEST_SUITE_P(
    Table, Check,
    testing::Values(
        WrongRun{"a cell", [](history::Run& run) { run.points[0].cell = ""; }},
        WrongRun{"a cell", [](history::Run& run) { run.points[0].cell = "a\nb"; }},
        WrongRun{"a metric", [](history::Run& run) { run.points[0].metric.name = "\x80"; }},
        WrongRun{"a project", [](history::Run& run) { run.facts.project = ""; }},
        WrongRun{"a commit", [](history::Run& run) { run.facts.commit = ""; }},
        WrongRun{"a machine", [](history::Run& run) { run.facts.machine = std::string(513, 'm'); }},
        WrongRun{"not finite", [](history::Run& run) { run.points[0].value = k_nan; }},
        WrongRun{"not finite", [](history::Run& run) { run.points[0].samples[1] = -1 / 0.0; }},
        WrongRun{"a run's time", [](history::Run& run) { run.facts.time = k_nan; }},
        WrongRun{"a run's time", [](history::Run& run) { run.facts.time = 1e18; }},
        WrongRun{"66 is not 65", [](history::Run& run) { run.points[1].value = 66; }},
        WrongRun{"is there twice", [](history::Run& run) { run.points.push_back(run.points[0]); }},
        WrongRun{"samples",
                 [](history::Run& run) { run.points[0].samples.assign(k_max_samples + 1, 1); }},
        WrongRun{"points in one run",
                 [](history::Run& run) { run.points.assign(k_max_points + 1, run.points[0]); }},
        WrongRun{"MiB", [](history::Run& run) {
                   run.points[0].samples.assign(16'000, 1);
                   const Point big = run.points[0];
                   for (int i = 0; i < 100; ++i) {
                     run.points.push_back(big);
                     run.points.back().cell = std::to_string(i);
                   }
                 }}));

TEST(JsonLines, GiveBackWhatTheyWereMadeOf) {
  history::Run run =
      run_at("id", 1795000000.25,
             {time_point("c", 0.1, {0.1, 0.1}), count_point("d", *Rational::make(133, 2))});
  run.facts.commit = std::string(40, 'a');
  run.facts.branch = "main";
  run.facts.commit_time = 5;
  run.facts.dirty = true;
  run.facts.weir_version = "0.1.0";
  run.points[0].place = {"d", "Device \"x\"", "m", "Machine", "b1"};
  run.points[1].metric = {"mine", unit::Kind::quality, unit::Unit::ratio, unit::Better::higher};
  const StoredVerdict verdict = verdict_at("id", 3, "fail");
  const Acknowledgement acknowledgement = acknowledged("c", "known: größer");
  const std::string text = first_line() + "\n" + line_of(run) + "\n" + line_of(verdict) + "\n\n" +
                           line_of(acknowledgement) + "\n";
  int read_count = 0;
  const auto done = read_lines(text, {[&](const history::Run& read) {
                                        EXPECT_EQ(read, run);
                                        ++read_count;
                                        return Result<void>{};
                                      },
                                      [&](const StoredVerdict& read) {
                                        EXPECT_EQ(read, verdict);
                                        ++read_count;
                                        return Result<void>{};
                                      },
                                      [&](const Acknowledgement& read) {
                                        EXPECT_EQ(read, acknowledgement);
                                        ++read_count;
                                        return Result<void>{};
                                      }});
  EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().message);
  EXPECT_EQ(read_count, 3);
}

struct WrongLine {
  std::string text, says;
};
class Lines : public testing::TestWithParam<WrongLine> {};
TEST_P(Lines, AreRefusedWithTheirNumber) {
  const auto done = read_lines(GetParam().text, {});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::data);
  EXPECT_THAT(done.error().message, testing::HasSubstr(GetParam().says));
}
const std::string k_head = "{\"schema\":\"weir.history/1\"}\n";
INSTANTIATE_TEST_SUITE_P(
    Table, Lines,
    testing::Values(
        WrongLine{"", "the first line should be"}, WrongLine{"{\"type\":\"run\"}\n", "line 1"},
        WrongLine{"{\"schema\":\"weir.history/2\"}\n", "weir.history/2"},
        WrongLine{k_head + "{\"type\":\"dance\"}\n", "line 2: \"type\" is \"dance\""},
        WrongLine{k_head + "[1]\n", "line 2"}, WrongLine{k_head + "{\"type\":\"run\"\n", "line 2"},
        WrongLine{k_head + line_of(run_at("id", 0, {time_point("c", 1)})).substr(0, 60), "line 2"},
        WrongLine{k_head + R"({"type":"run","project":"p","id":"i","time":0,"places":[],)"
                           R"("points":[{"cell":"c","metric":"x","value":1,"place":0}]})",
                  "\"place\" is not one of"},
        WrongLine{k_head + R"({"type":"run","project":"p","id":"i","time":0,"places":[{}],)"
                           R"("points":[{"cell":"c","metric":"x","exact":"1/0","place":0}]})",
                  "\"exact\""},
        WrongLine{
            k_head +
                R"({"type":"run","project":"p","id":"i","time":1e999,"places":[],"points":[]})",
            "line 2"},
        WrongLine{k_head + std::string(100, '[') + "\n", "line 2"}));

// A spoilt line is refused, or its contents are valid and read the same again.
TEST(JsonLines, ThatAreSpoiltNeverBreak) {
  history::Run run = run_at(
      "id", 1, {time_point("c", 0.1, {0.1, 0.2}), count_point("d", *Rational::make(133, 2))});
  run.facts.commit = std::string(40, 'a');
  const std::string intact = first_line() + "\n" + line_of(run) + "\n" +
                             line_of(verdict_at("id", 3, "fail")) + "\n" +
                             line_of(acknowledged("c", "known")) + "\n";
  std::mt19937 random(4);  // the same texts every time
  for (int i = 0; i < 10'000; ++i) {
    std::string text = intact;
    for (int n = 0; n < 3; ++n) {
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, random() % 20);
      } else {
        text[at] =
            i % 2 == 0 ? static_cast<char>(random() % 256) : "0123456789-e.\"{}[],:"[random() % 21];
      }
      if (text.empty()) text = "x";
    }
    const auto check_item = [](const auto& item) {
      EXPECT_TRUE(check(item).has_value());
      return Result<void>{};
    };
    (void)read_lines(text, {check_item, check_item, check_item});
  }
}

struct AddressCase {
  std::string text, shown;
  bool postgres, password;
};
class Address : public testing::TestWithParam<AddressCase> {};
TEST_P(Address, IsShownWithoutItsPassword) {
  const StoreAddress address = parse_address(GetParam().text);
  EXPECT_EQ(address.shown, GetParam().shown);
  EXPECT_EQ(address.postgres, GetParam().postgres);
  EXPECT_EQ(address.has_password(), GetParam().password);
}
INSTANTIATE_TEST_SUITE_P(
    Table, Address,
    testing::Values(AddressCase{".weir/history.db", ".weir/history.db", false, false},
                    AddressCase{"postgres://u:word@h/d", "postgres://u@h/d", true, true},
                    AddressCase{"postgresql://u:w@o?r/d@h:5/d?sslmode=require",
                                "postgresql://u@h:5/d?sslmode=require", true, true},
                    AddressCase{"postgres://u@h/d", "postgres://u@h/d", true, false},
                    AddressCase{"postgres://h:5432/d", "postgres://h:5432/d", true, false},
                    AddressCase{"postgres://h/d?user=u&password=x&a=b", "postgres://h/d?user=u&a=b",
                                true, true},
                    AddressCase{"postgres://h/d?p%61ssword=x", "postgres://h/d", true, true}));

baseline::Baseline baseline_with(std::vector<baseline::Session> sessions, const Rational& count) {
  baseline::Baseline result;
  result.cell = "e/m/b/p";
  result.device_class = "vulkan-10005-0-d-1-0a1b2c3d";
  result.sessions["mc"] = std::move(sessions);
  profile::Measurement measured;
  measured.metric = unit::count_metric("dispatches", unit::Scope::per_token);
  measured.nature = profile::Nature::exact;
  measured.exact = count;
  result.counts[measured.metric.name] = measured;
  return result;
}

TEST(Baselines, GiveTheCountsAndTheSessionsThatACommitBrought) {
  const baseline::Session old{"b1", {{"load_seconds", {1, 2}}}, {}};
  const baseline::Session fresh{"b1", {{"load_seconds", {3, 4}}}, {}};
  RunFacts facts;
  facts.commit = std::string(40, 'a');
  facts.time = 7;
  const std::vector<BaselineChange> changes{
      {baseline_with({old}, 65), baseline_with({old, fresh}, 66)}};
  const std::vector<history::Run> runs = make_baseline_runs(facts, changes);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].facts.machine, "vulkan-10005-0");  // the device, whatever its driver
  EXPECT_EQ(runs[0].points.at(0).exact, Rational(66));
  EXPECT_EQ(runs[1].facts.machine, "mc");
  EXPECT_EQ(runs[1].points.at(0).samples, (std::vector<double>{3, 4}));
  EXPECT_EQ(runs[1].points.at(0).place.engine_build, "b1");
  EXPECT_NE(runs[0].facts.id, runs[1].facts.id);
  EXPECT_EQ(make_baseline_runs(facts, changes), runs);  // the second time, too
  for (const history::Run& run : runs) EXPECT_TRUE(check(run).has_value());
}

TEST(Machines, GoByWhatDoesNotChangeWithAnImage) {
  EXPECT_EQ(series_machine("AMD EPYC 9654 96-Core Processor, 2 cores, 24 GiB, debian 12"),
            "AMD EPYC 9654 96-Core Processor, 2 cores, 24 GiB");
  EXPECT_EQ(series_machine(""), "");
}

// Judged parts are those that a later verdict may lack.
TEST(JudgedParts, AreThoseThatAnOutcomeRestsOn) {
  using verdict::Outcome;
  const auto metric = [](const std::string& name, Outcome outcome) {
    verdict::Judgement judgement;
    judgement.metric.name = name;
    judgement.verdict = outcome;
    return judgement;
  };
  const auto cell = [](const std::string& name, Outcome outcome,
                       std::vector<verdict::Judgement> metrics) {
    verdict::CellVerdict result;
    result.cell = profile::CellKey::parse(name).value();
    result.verdict = outcome;
    result.judgements = std::move(metrics);
    return result;
  };
  verdict::GateVerdict gate;
  gate.cells = {cell("e/m/b/mixed", Outcome::new_,
                     {metric("syncs", Outcome::pass), metric("copies", Outcome::new_),
                      metric("time", Outcome::info), metric("submits", Outcome::skipped)}),
                cell("e/m/b/new", Outcome::new_, {metric("syncs", Outcome::new_)}),
                cell("e/m/b/broken", Outcome::error, {}),
                cell("e/m/b/gone", Outcome::fail, {metric("cell", Outcome::fail)}),
                cell("e/m/b/edited", Outcome::error, {metric("cell", Outcome::error)}),
                cell("e/m/b/whole", Outcome::fail, {})};
  gate.cells[3].judgements.front().current = 0;
  gate.cells.back().put("kernels").verdict = Outcome::fail;
  gate.cells.back().put("placement").verdict = Outcome::pass;
  gate.verdict = Outcome::fail;
  gate.exit_code = verdict::ExitCode::fail;
  EXPECT_EQ(judged_parts(stored_verdict({}, "r", gate, 0)),
            (std::set<std::string>{"e/m/b/mixed", "e/m/b/mixed: syncs", "e/m/b/whole",
                                   "e/m/b/whole: kernels", "e/m/b/whole: placement"}));
}

}  // namespace history_test
}  // namespace weir::history
