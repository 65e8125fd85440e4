// Tests the texts that all reports share: numbers, reasons, hints, layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/hints.hpp"
#include "gate/report/html.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/proposals.hpp"
#include "gate/report/terminal.hpp"

#include "tests/report/fixtures.hpp"

namespace weir::report {
namespace words_test {

using testing::ElementsAre;

Rational ratio(std::int64_t numerator, std::int64_t denominator) {
  return Rational::make(numerator, denominator).value();
}

TEST(Words, ShowRationalsAsDecimalsWhereThatIsExactAndShort) {
  struct Row {
    Rational value;
    const char* plain;
    const char* with_sign;
  };
  for (const auto& [value, plain, with_sign] : {
           Row{Rational(65), "65", "+65"},
           Row{Rational(-3), "\u22123", "\u22123"},
           Row{Rational(0), "0", "0"},
           Row{ratio(133, 2), "66.5", "+66.5"},
           Row{ratio(-1, 8), "\u22120.125", "\u22120.125"},
           Row{ratio(1, 16), "0.0625 (1/16)", "+0.0625"},
           Row{ratio(5'158'000'001, 2), "2579000000.5", "+2579000000.5"},
           Row{ratio(-133, 3), "\u221244.33 (\u2212133/3)", "\u221244.33"},
       }) {
    EXPECT_EQ(show(value), plain);
    EXPECT_EQ(show_change(value), with_sign);
  }
}

TEST(Words, DescribeEachKindOfMetric) {
  const auto times = words(fixtures::rate("decode_tokens_per_second", verdict::Outcome::pass, 28.6,
                                          27.9, {-0.024, -0.041, -0.006}));
  EXPECT_EQ(times.label, "decode tok/s");
  EXPECT_EQ(times.change, "\u22122.4 % (\u22124.1 \u2026 \u22120.6)");
  EXPECT_EQ(times.evidence, "10 runs, 3 stored runs");

  auto bytes = fixtures::count("copied_bytes_per_token", verdict::Outcome::fail, 1024, 3072);
  EXPECT_EQ(words(bytes).candidate, "3.00 KiB");
  EXPECT_EQ(words(bytes).change, "+2.00 KiB");

  auto many =
      fixtures::count("instructions_per_token", verdict::Outcome::fail, 2'600'000, 2'860'000);
  EXPECT_EQ(words(many).change, "+10.0 %") << "a difference of millions says little";

  auto gone = fixtures::count("syncs_per_token", verdict::Outcome::error, 1, 1);
  gone.current.reset();
  gone.current_text.reset();
  EXPECT_EQ(words(gone).candidate, "");
  EXPECT_FALSE(words(gone).differs());
}

TEST(Words, NameWhatIsToleratedWhereATimeFailedWithinItsLimit) {
  auto within = fixtures::rate("decode_tokens_per_second", verdict::Outcome::fail, 41.2, 39.4,
                               {-0.043, -0.051, -0.036});
  within.pairs = 14;
  within.limit.max_drop = verdict::MaxChange{{0.05, true}, {0.025, true}};
  EXPECT_EQ(words(within).limit, "surely more than the tolerated 2.5 % (limit 5 %)");
  auto beyond = within;
  beyond.change = -0.07;
  EXPECT_EQ(words(beyond).limit, beyond.limit.words());
  auto stored = within;
  stored.pairs.reset();
  EXPECT_EQ(words(stored).limit, stored.limit.words()) << "stored runs tolerate nothing less";
  auto passed = within;
  passed.verdict = verdict::Outcome::pass;
  EXPECT_EQ(words(passed).limit, passed.limit.words());
  auto slower =
      fixtures::rate("process_cpu_seconds", verdict::Outcome::fail, 2, 2.08, {0.04, 0.03, 0.05});
  slower.pairs = 14;
  slower.limit = {};
  slower.limit.max_increase = verdict::MaxChange{{0.2, false}, {0.05, true}};
  EXPECT_THAT(words(slower).limit, ::testing::StartsWith("surely more than the tolerated 5 %"));
}

TEST(Words, NameTheLimitThatBrokeWhereAnAbsoluteOneStandsBesideAnother) {
  auto rate = fixtures::rate("decode_tokens_per_second", verdict::Outcome::fail, 41.2, 30,
                             {-0.27, -0.3, -0.24});
  rate.limit = {};
  rate.limit.max_drop = verdict::MaxChange{{0.05, true}, {0.025, true}};
  rate.limit.min = verdict::Amount{35, false};
  rate.reason = "30 tok/s (29 to 31) is below min 35";
  EXPECT_EQ(words(rate).limit, rate.reason);
  rate.limit.min = verdict::Amount{20, false};
  EXPECT_EQ(words(rate).limit, "may drop 5 %");
  rate.verdict = verdict::Outcome::pass;
  EXPECT_EQ(words(rate).limit, "may drop 5 %, at least 20");
  rate.pairs = 0;
  rate.samples = 1;
  rate.baseline_sessions.reset();
  EXPECT_EQ(words(rate).evidence, "1 run") << "only an absolute limit was judged";
}

TEST(Words, GiveAReasonWhereNumbersDoNotTellIt) {
  const auto grew = fixtures::count("syncs_per_token", verdict::Outcome::fail, 1, 17);
  const auto fell = fixtures::count("syncs_per_token", verdict::Outcome::fail, 17, 1);
  EXPECT_TRUE(reason_is_plain(grew));
  EXPECT_FALSE(reason_is_plain(fell)) << "fewer is no obvious fault";
}

TEST(Words, OrderChangedKernelsByWhatCameAndHowMuch) {
  const auto all = named_changes(
      {fixtures::changed("gone", 12, std::nullopt), fixtures::changed("a_little", 1, 2),
       fixtures::changed("much", std::nullopt, 12), fixtures::changed("also", std::nullopt, 12)});
  std::vector<std::string> lines;
  for (const NamedChange& kernel : all) lines.push_back(kernel.change + " " + kernel.name);
  EXPECT_THAT(lines, ElementsAre("+12 also", "+12 much", "+1 a_little", "\u221212 gone"));
}

TEST(Words, KeepADifferenceThatDoesNotFitAsTwoNumbers) {
  const auto all = named_changes({fixtures::changed("k", std::numeric_limits<std::int64_t>::min(),
                                                    std::numeric_limits<std::int64_t>::max())});
  EXPECT_EQ(all.at(0).change, "\u22129223372036854775808 \u2192 9223372036854775807");
}

TEST(Words, HeadTheReportWithTheGatesVerdict) {
  struct Row {
    verdict::GateVerdict gate;
    const char* want;
  };
  for (const auto& [gate, want] : {
           Row{fixtures::red(), "1 of 8 cells broke a limit"},
           Row{fixtures::hostile(), "1 of 8 cells broke a limit, 1 cell could not be measured"},
           Row{fixtures::errors(), "2 of 8 cells could not be measured"},
           Row{fixtures::undecided(), "1 of 8 cells is inconclusive"},
           // Eight cells have five counts and a rate each.
           Row{fixtures::green(), "8 cells, 48 metrics within limits"},
       }) {
    EXPECT_EQ(headline(gate), want);
  }
}

TEST(Words, PutTheLimitsInShort) {
  EXPECT_EQ(short_rule(fixtures::green()), "counts exact, throughput may drop 5 %");
  auto gate = fixtures::green();
  gate.cells[0].judgements[5].limit.max_drop->amount.value = 0.1;
  EXPECT_EQ(short_rule(gate), "counts exact, throughput may drop 5 % to 10 %");
  gate.cells[0].judgements[0].nature = profile::Nature::nearly_exact;
  EXPECT_EQ(short_rule(gate), "counts exact (1 varies), throughput may drop 5 % to 10 %");
}

TEST(Hints, NameCellsByAPatternThatAShellLeavesAlone) {
  const auto alone = [](const std::string& name, std::size_t most) {
    return cell_patterns({name}, {name, "other/cell"}, most);
  };
  EXPECT_THAT(alone("a/b/c/d", 60), ElementsAre("a/b/c/d"));
  EXPECT_THAT(alone("a/b/c/d'; rm -rf $HOME", 60), ElementsAre("a/b/c/d*rm*-rf*HOME"));
  const std::string name = std::string(64, 'a') + "/" + std::string(64, 'b');
  const auto cut = alone(name, 30).at(0);
  EXPECT_EQ(cut.size(), 30U);
  EXPECT_TRUE(text::glob_match(cut, name)) << cut;
  EXPECT_THAT(cell_patterns({name}, {name, name + "c", "a" + name}, 30), ElementsAre(name))
      << "cut short it would match another";
  EXPECT_TRUE(cell_patterns({"a;b"}, {"a;b", "a,b"}, 60).empty()) << "a*b matches another";
}

TEST(Hints, MatchTheCellsThatAreMeantAndNoOthers) {
  const std::vector<std::string> gpu{"e/m/gpu/1", "e/m/gpu/2", "e/n/gpu/1", "e/n/gpu/2"};
  std::vector<std::string> all = gpu;
  all.insert(all.end(), {"e/m/cpu/1", "e/n/cpu/1"});
  EXPECT_THAT(cell_patterns(gpu, all, 60), ElementsAre("e/*/gpu/*"));
  // One GPU cell of model n must not match.
  all.emplace_back("e/n/gpu/3");
  EXPECT_THAT(cell_patterns(gpu, all, 60), ElementsAre("e/*/gpu/1", "e/*/gpu/2"));
  EXPECT_THAT(cell_patterns(gpu, {}, 60), testing::ElementsAreArray(gpu))
      << "cells that nobody listed may match";
  EXPECT_THAT(cell_patterns({gpu[0], gpu[1]}, all, 60), ElementsAre(gpu[0], gpu[1]))
      << "names say more than a pattern";
  // The option --cell takes "1" for "1@d256", too.
  all = gpu;
  all.emplace_back("e/n/gpu/1@d256");
  EXPECT_TRUE(cell_patterns(gpu, all, 60).empty()) << "its name alone would take that as well";
  std::vector<std::string> many;
  for (int i = 0; i < 13; ++i) many.push_back(fmt::format("e/m/gpu/{}", i));
  EXPECT_TRUE(cell_patterns(many, {}, 60).empty());
}

TEST(Hints, StoreNewCellsApartFromWhatGotWorse) {
  const Verbs verbs{"baseline accept"};
  auto gate = fixtures::mixed();
  gate.counts_only = true;
  gate.verdict = gate.cells[7].verdict = Outcome::fail;
  const auto both = hints(gate, verbs);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].what, "accept");
  EXPECT_EQ(both[1].what, "store");
  for (const Hint& hint : both) {
    EXPECT_THAT(hint.words, testing::Contains("--counts-only"));
    for (const auto& cell : gate.cells) {
      const std::string option = fmt::format("--cell '{}'", cell.cell.str());
      const bool meant = cell.verdict == (hint.what == "store" ? Outcome::new_ : Outcome::fail);
      EXPECT_EQ(std::ranges::count(hint.words, option), meant ? 1 : 0) << hint.what << option;
    }
  }
}

TEST(Hints, NameTheComparisonWithAnOldRunWhereSettingsChanged) {
  GateVerdict gate;
  gate.verdict = Outcome::new_;
  gate.run = "weir-out/b";
  gate.cells.emplace_back().verdict = Outcome::new_;
  gate.cells[0].cell = *profile::CellKey::parse("e/m/cpu/p");
  gate.cells[0].not_compared = "no baseline is stored";
  EXPECT_TRUE(hints(gate, {"compare"}).empty());
  gate.cells[0].not_compared = "the baselines were stored with other settings: arguments changed";
  ASSERT_EQ(hints(gate, {"compare"}).size(), 1U);
  EXPECT_EQ(text::join(hints(gate, {"compare"})[0].words, " "), "weir compare OLD_RUN weir-out/b");
}

TEST(Hints, NameDoctorWhereAnEngineFailedAloneOrInPairs) {
  CellVerdict alone;
  alone.cell = *profile::CellKey::parse("e/m/cpu/p");
  alone.verdict = Outcome::error;
  CellVerdict paired = alone;
  paired.not_compared = "timed: the candidate failed in 2 of its processes";
  paired.stderr_tail = "out of memory";
  CellVerdict unjudged = alone;
  unjudged.not_compared = "no baseline is stored";
  for (const auto& [cell, number] :
       {std::pair{alone, 1U}, std::pair{paired, 1U}, std::pair{unjudged, 0U}}) {
    GateVerdict gate;
    gate.verdict = Outcome::error;
    gate.cells = {cell};
    EXPECT_EQ(hints(gate, {"doctor"}).size(), number) << cell.not_compared.value_or("-");
  }
}

TEST(Hints, OfferToAcceptNothingThatRanElsewhere) {
  using Ops = std::set<std::string>;
  const struct {
    const char* what;
    Outcome placement;
    bool elsewhere;
    Ops not_allowed;
    bool others;  // another cell fails by its counts
    std::vector<std::string> want;
  } cases[] = {
      {"an op that is not allowed", Outcome::fail, true, {"SWIGLU"}, false, {"allow"}},
      {"beside a count of another cell",
       Outcome::fail,
       true,
       {"SWIGLU"},
       true,
       {"allow", "comment", "accept"}},
      {"no layer on the device", Outcome::fail, true, {}, false, {}},
      {"an op that is allowed ran there more often", Outcome::fail, false, {}, false, {"accept"}},
      {"placement is only reported", Outcome::info, true, {"SWIGLU"}, false, {"comment"}},
      {"a count", Outcome::pass, false, {}, false, {"comment", "accept"}},
  };
  for (const auto& test_case : cases) {
    auto gate = fixtures::red();
    for (CellVerdict& cell : gate.cells) cell.verdict = Outcome::pass;
    CellVerdict& cell = gate.cells[7];
    cell.verdict = Outcome::fail;
    cell.put("placement").verdict = test_case.placement;
    cell.ran_elsewhere = test_case.elsewhere;
    cell.not_allowed = test_case.not_allowed;
    if (test_case.others) gate.cells[6].verdict = Outcome::fail;
    std::vector<std::string> got;
    for (const Hint& hint : hints(gate, {"/weir waive", "baseline accept"})) {
      got.push_back(hint.what);
      const std::string words = text::join(hint.words, " ");
      if (hint.what == "accept") {
        EXPECT_EQ(words.find(gate.cells[7].cell.str()) == words.npos, test_case.elsewhere) << words;
      }
      if (hint.what != "allow") continue;
      EXPECT_EQ(words,
                "engines: {llama.cpp: {cpu_ops_allowed: "
                "{SWIGLU: {match: {backend: vulkan}, why: \"…\"}}}}");
      TerminalStyle wide;
      wide.width = 120;
      EXPECT_NE(terminal(gate, wide).find(words), std::string::npos) << test_case.what;
      EXPECT_NE(markdown(gate, {}).find("`" + words + "`"), std::string::npos) << test_case.what;
      EXPECT_NE(html(gate).find("cpu_ops_allowed: {SWIGLU: "), std::string::npos) << test_case.what;
    }
    EXPECT_EQ(got, test_case.want) << test_case.what;
  }
}

TEST(Hints, OfferToAcceptNothingThatBreaksAPlainNumber) {
  auto gate = fixtures::mixed();
  gate.verdict = gate.cells[7].verdict = Outcome::fail;
  verdict::Judgement& judgement = gate.cells[7].judgements.front();
  judgement.verdict = Outcome::fail;
  judgement.current = 100;
  const auto offers = [&] {
    return std::ranges::any_of(hints(gate, {"baseline accept"}),
                               [](const Hint& hint) { return hint.what == "accept"; });
  };
  EXPECT_TRUE(offers());
  judgement.limit.min = verdict::Amount{50, false};
  EXPECT_TRUE(offers()) << "it is within the number, and fails by its change";
  judgement.limit.min = verdict::Amount{150, false};
  EXPECT_FALSE(offers());
}

TEST(Hints, WriteOpsThatMayStayAsTheConfigurationTakesThem) {
  const struct {
    OpsByEngine ops;
    const char* want;
  } cases[] = {
      {{}, ""},
      {{{"toy", {}}}, ""},
      {{{"toy", {{"ROPE", {"gpu"}}, {"ADD", {"gpu", "other"}}}}},
       R"(engines: {toy: {cpu_ops_allowed: {ADD: "…", ROPE: {match: {backend: gpu}, why: "…"}}}})"},
      {{{"toy", {{"ADD", {"gpu"}}, {"MUL", {"gpu"}}, {"ROPE", {"gpu"}}}}},
       "engines: {toy: {cpu_ops_allowed: {ADD: &ops1 {match: {backend: gpu}, why: \"…\"}, "
       "MUL: *ops1, ROPE: *ops1}}}"},
      {{{"a", {{"ADD", {}}}}, {"b", {{"ROPE", {}}}}},
       R"(engines: {a: {cpu_ops_allowed: {ADD: "…"}}, b: {cpu_ops_allowed: {ROPE: "…"}}})"},
      {{{"1", {{"a: b", {}}}}}, R"(engines: {"1": {cpu_ops_allowed: {"a: b": "…"}}})"},
      {{{"toy", {{"a\nb", {}}}}}, ""},
  };
  for (const auto& test_case : cases) EXPECT_EQ(allowed_ops(test_case.ops), test_case.want);
}

TEST(Hints, RepeatTheOptionsOfTheGate) {
  const Verbs verbs{"explain", "doctor", "gate --counts-only", "gate --from", "baseline accept"};
  struct Case {
    const char* config;
    std::map<std::string, std::string> options;
    std::map<std::string, std::string> begin;  // name of the hint, start of its command
  };
  for (const Case& test_case : {
           Case{"weir.yaml",
                {},
                {{"why", "weir explain"},
                 {"numbers", "weir gate --from 'my out/1' --html report.html"},
                 {"look", "weir doctor"},
                 {"again", "weir gate --c"},
                 {"accept", "weir baseline accept --c"}}},
           Case{
               "ci/my weir.yaml",
               {{"--baselines", "perf"}, {"--out", "my out"}},
               {{"why", "weir explain 'my out/1'"},
                {"numbers", "weir gate --baselines perf --from 'my out/1' --html report.html"},
                {"look", "weir doctor -c 'ci/my weir.yaml'"},
                {"again", "weir gate -c 'ci/my weir.yaml' --baselines perf --out 'my out' --c"},
                {"accept",
                 "weir baseline accept -c 'ci/my weir.yaml' --baselines perf --out 'my out' --c"}}},
           Case{"weir.yaml",
                {{"--rules-from", "main"},
                 {"--baselines-ref", "origin/perf:x"},
                 {"--from", "my out/1"}},
                {{"why", "weir explain 'my out/1'"},
                 {"numbers",
                  "weir gate --rules-from main --baselines-ref origin/perf:x --from 'my out/1'"},
                 {"look", "weir doctor"},
                 {"again", "weir gate --rules-from main --baselines-ref origin/perf:x --c"},
                 {"accept", "weir baseline accept --baselines-ref perf:x --c"}}},
           Case{"weir.yaml",
                {{"--waivers-ref", "perf"},
                 {"--pr", "12"},
                 {"--base", "main"},
                 {"--merged-pr", "3@a 4@b"},
                 {"--base-pr", "5@c"}},
                {{"why", "weir explain"},
                 {"numbers",
                  "weir gate --waivers-ref perf --pr 12 --base main --merged-pr 3@a "
                  "--merged-pr 4@b --base-pr 5@c --from 'my out/1' --html report.html"},
                 {"look", "weir doctor"},
                 {"again",
                  "weir gate --waivers-ref perf --pr 12 --base main --merged-pr 3@a "
                  "--merged-pr 4@b --base-pr 5@c --c"},
                 {"accept", "weir baseline accept --c"}}},
           Case{"weir.yaml",
                {{"--baselines", "a\nb"}, {"--unknown", "x"}},
                {{"why", "weir explain"}, {"look", "weir doctor"}}},
       }) {
    auto gate = fixtures::mixed();
    gate.counts_only = true;
    gate.verdict = gate.cells[7].verdict = Outcome::fail;
    gate.cells[0].verdict = Outcome::error;
    gate.config = test_case.config;
    gate.options = test_case.options;
    gate.run = "my out/1";
    std::map<std::string, std::string> got;
    for (const Hint& hint : hints(gate, verbs)) {
      if (hint.what != "store") got[hint.what] = text::join(hint.words, " ");
    }
    ASSERT_EQ(got.size(), test_case.begin.size()) << test_case.config;
    for (const auto& [what, begin] : test_case.begin) {
      EXPECT_TRUE(got[what].starts_with(begin)) << what << ": " << got[what];
    }
    // Terminal and Markdown print the same command.
    const std::string why = test_case.begin.at("why");
    MarkdownStyle style;
    style.verbs = verbs;
    EXPECT_NE(markdown(gate, style).find(why), std::string::npos);
    TerminalStyle wide;
    wide.width = 120;
    wide.verbs = verbs;
    EXPECT_NE(terminal(gate, wide).find(why), std::string::npos);
  }
}

TEST(Layout, WrapsAtSpacesAndBreaksOnlyWhatIsTooWide) {
  EXPECT_THAT(wrap("one two three four", 20, "tag  ", 5),
              ElementsAre("tag  one two three", "     four"));
  EXPECT_THAT(wrap("aaaaaaaaaaaaaaaaaaaaaaaaa b", 20, "", 2),
              ElementsAre("aaaaaaaaaaaaaaaaaaaa", "  aaaaa b"));
  EXPECT_THAT(wrap("first\nsecond", 20, "- ", 4), ElementsAre("- first", "    second"));
  EXPECT_THAT(wrap("", 20, "head ", 2), ElementsAre("head"));
  EXPECT_THAT(wrap("keep\u00a0this together", 20, "xxxxxxxxxx ", 2),
              ElementsAre("xxxxxxxxxx keep this", "  together"));
}

TEST(Layout, CutsWhereCodePointsEnd) {
  EXPECT_EQ(clip("\u00e4\u00f6\u00fc\u00df", 3), "\u00e4\u00f6\u2026");
  EXPECT_EQ(clip_middle("abcdefghij", 5), "ab\u2026ij");
  EXPECT_EQ(printable_line("a\r\n b\t\x1b[31mc\x1b[0m  "), "a b c");
  EXPECT_THAT(last_lines("1\n2\n3\n4\n", 2), ElementsAre("(2 earlier lines left out)", "3", "4"));
  EXPECT_THAT(last_lines("", 2), ElementsAre());
}

// A reason comes before a stack trace. Each case has the first line that is shown.
TEST(Layout, PutsWhatGivesAReasonBeforeTheLastLines) {
  const std::string frames =
      "#1 0x7f in ggml_abort ()\nlib.so(panic+0x1) [0x2]\n???: 0x3 in main\n";
  const std::string loaded = "loading\nwarning: no error log\n";
  const struct {
    const char* output;
    std::vector<std::string> first;
  } cases[] = {
      {"thread 8 panic: no dtype\n/a.zig:16:2: 0x1 in emb (a)\n    else => @panic(\"x\"),\n",
       {"thread 8 panic: no dtype", "/a.zig:16:2: 0x1 in emb (a)"}},
      {"thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds\n",
       {"thread 'main' panicked at src/main.rs:4:5:", "index out of bounds"}},
      {"/ggml.c:12: GGML_ASSERT(a) failed\n", {"/ggml.c:12: GGML_ASSERT(a) failed"}},
      {"CUDA out of memory\nmore\n", {"CUDA out of memory"}},
      {"  File \"a.py\", line 12, in f\n    raise KernelError(\"no dtype\")\n"
       "a.KernelError: no dtype\n",
       {"a.KernelError: no dtype"}},
      {"nothing of it\n", {}},
  };
  for (const auto& test_case : cases) {
    const auto lines = last_lines(loaded + test_case.output + frames, 3);
    const auto end = std::ranges::find_if(lines, [](const std::string& line) {
      return line.starts_with('(') && line.ends_with("left out)");
    });
    EXPECT_EQ(std::vector<std::string>(lines.begin(), end), test_case.first) << test_case.output;
    EXPECT_EQ(std::ssize(lines), std::ssize(test_case.first) + 4) << test_case.output;
  }
}

}  // namespace words_test
}  // namespace weir::report
