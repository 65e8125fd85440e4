// Tests of the generic adapter.
#include <gmock/gmock.h>

#include "gate/adapters/readers.hpp"

namespace weir::adapters {
namespace generic_test {

using config::ValueRule;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

ValueRule by_regex(const std::string& metric, const std::string& regex) {
  ValueRule rule;
  rule.metric = metric;
  rule.regex = regex;
  return rule;
}

ValueRule by_pointer(const std::string& metric, const std::string& pointer) {
  ValueRule rule;
  rule.metric = metric;
  rule.pointer = pointer;
  return rule;
}

Result<profile::EngineReport> read(const config::GenericOutput& rules, std::string_view out,
                                   std::string_view err = "",
                                   std::optional<profile::Pass> pass = std::nullopt) {
  return read_generic({out, err, {0, 8, 1, 0}, "cpu", &rules, pass});
}

// An engine's own profiler on standard error, its answer and timing on standard output, logs
// between, all of it coloured.
constexpr std::string_view k_out =
    "The quick brown fox\n"
    "[2026-11-20 06:41:00] info: sampler ready\n"
    "\x1B[32mToken time: 83ms (12.0 tok/s)\x1B[0m\r\n";
constexpr std::string_view k_err =
    "load: 12% 55% 100%\n"
    "Metal: 706 dispatches, 930 barriers, 17 syncs\n"
    "bye\n";

config::GenericOutput metal_rules() {
  config::GenericOutput rules;
  rules.values = {by_regex("dispatches_per_token", R"((\d+) dispatches)"),
                  by_regex("barriers_per_token", R"((\d+) barriers)"),
                  by_regex("syncs_per_token", R"((\d+) syncs)"),
                  by_regex("decode_tokens_per_second", R"(\(([\d.]+) tok/s\))"),
                  by_regex("time_per_output_token_seconds", R"(Token time: ([\d.]+)ms)")};
  rules.values.back().scale = unit::parse_scale("ms");
  return rules;
}

TEST(Generic, ReadsAShareThatWeirKnows) {
  config::GenericOutput rules;
  rules.values = {by_regex("cached_prompt_share", R"(cached (\S+))")};
  const auto report = read(rules, "cached 0.81\n");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->shares.at("cached_prompt_share").str(), "81/100");
}

TEST(Generic, ReadsAProfilersSummaryAndATimingLineOutOfBothStreams) {
  const auto report = read(metal_rules(), k_out, k_err);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->counts,
              UnorderedElementsAre(Pair("dispatches_per_token", 706),
                                   Pair("barriers_per_token", 930), Pair("syncs_per_token", 17)));
  ASSERT_EQ(report->times.size(), 2U);
  EXPECT_EQ(report->times[0].metric, unit::find_metric("decode_tokens_per_second"));
  EXPECT_THAT(report->times[0].samples, ElementsAre(12.0));
  EXPECT_THAT(report->times[1].samples, ElementsAre(DoubleNear(0.083, 1e-12)));  // 83 ms
}

TEST(Generic, TakesTheLastMatchOrTheFirstOrAll) {
  constexpr std::string_view k_lines = "4 tok/s\n5 tok/s\n6 tok/s\n";
  config::GenericOutput rules;
  rules.values = {by_regex("decode_tokens_per_second", R"(([\d.]+) tok/s)")};
  EXPECT_THAT(read(rules, k_lines)->times[0].samples, ElementsAre(6));
  rules.values[0].pick = ValueRule::Pick::first;
  EXPECT_THAT(read(rules, k_lines)->times[0].samples, ElementsAre(4));
  rules.values[0].pick = ValueRule::Pick::all;
  EXPECT_THAT(read(rules, k_lines)->times[0].samples, ElementsAre(4, 5, 6));
}

TEST(Generic, LooksAtStandardOutputFirstUnlessToldWhere) {
  config::GenericOutput rules;
  rules.values = {by_regex("decode_tokens_per_second", R"(([\d.]+) tok/s)")};
  EXPECT_THAT(read(rules, "1 tok/s", "2 tok/s")->times[0].samples, ElementsAre(1));
  EXPECT_THAT(read(rules, "", "2 tok/s")->times[0].samples, ElementsAre(2));
  rules.values[0].stream = ValueRule::Stream::err;
  EXPECT_THAT(read(rules, "1 tok/s", "2 tok/s")->times[0].samples, ElementsAre(2));
  rules.values[0].stream = ValueRule::Stream::out;
  EXPECT_FALSE(read(rules, "", "2 tok/s"));
}

TEST(Generic, FindsPointersInDocumentsOfSeveralLinesAndOfOneAmongLogs) {
  constexpr std::string_view k_text =
      "starting {x}\n"
      "[info] loaded\n"
      "{\n  \"timings\": {\"rates\": [10, 20]},\n  \"note\": \"a } in a text\"\n}\n"
      "{\"stats\": {\"tokens\": 8, \"peak\": \"1.5\", \"hash\": \"abc\"}}\n";
  config::GenericOutput rules;
  rules.values = {by_pointer("decode_tokens_per_second", "/timings/rates/1"),
                  by_pointer("peak_rss_bytes", "/stats/peak")};
  rules.values[1].scale = unit::parse_scale("MiB");
  rules.facts = {by_pointer("generated_tokens", "/stats/tokens"),
                 by_pointer("output_digest", "/stats/hash"), by_pointer("model", "/nowhere")};
  const auto report = read(rules, k_text);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->times[0].samples, ElementsAre(20));
  EXPECT_THAT(report->times[1].samples, ElementsAre(1572864));  // 1.5 MiB
  EXPECT_EQ(report->generated_tokens, 8);
  EXPECT_EQ(report->output_digest, "abc");
  EXPECT_THAT(report->warnings, ElementsAre("the output has no model (pointer /nowhere)"));
}

TEST(Generic, ReportsItsOwnMetricsAsDeclared) {
  config::GenericOutput rules;
  rules.values = {by_regex("retries", R"((\d+) retries)"), by_regex("queue", R"(queue (\d+)us)")};
  rules.values[0].custom =
      unit::custom_metric("retries", unit::Kind::count, unit::Unit::count, unit::Better::lower);
  rules.values[1].custom =
      unit::custom_metric("queue", unit::Kind::time, unit::Unit::seconds, unit::Better::lower);
  rules.values[1].scale = unit::parse_scale("us");
  const auto report = read(rules, "3 retries, queue 250us\n");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->counts, UnorderedElementsAre(Pair("retries", 3)));
  EXPECT_EQ(report->count_metrics.at("retries"), *rules.values[0].custom);
  EXPECT_EQ(report->times[0].metric, *rules.values[1].custom);
  EXPECT_THAT(report->times[0].samples, ElementsAre(DoubleNear(250e-6, 1e-15)));
}

// Eight tokens, of which each third takes 17 syncs: 1 1 17 1 1 17 1 1.
std::string sync_lines(int lines) {
  std::string text;
  for (int i = 1; i <= lines; ++i) text += i % 3 == 0 ? "17 syncs\n" : "1 syncs\n";
  return text;
}

TEST(Generic, SumsWhatIsPrintedForEachTokenOverTheTokens) {
  using Pick = ValueRule::Pick;
  const struct {
    const char* metric;
    std::string text;
    std::optional<Pick> pick;
    std::int64_t repeats;
    std::optional<Rational> count;
    const char* why;
  } cases[] = {
      {"syncs_per_token", sync_lines(8), {}, 1, 5, "(6 + 2 * 17) / 8"},
      {"syncs_per_token",
       sync_lines(7),
       {},
       1,
       *Rational::make(39, 7),
       "the first is the prefill's"},
      {"syncs_per_token", sync_lines(9), {}, 1, *Rational::make(57, 9), "the prefill prints, too"},
      {"syncs_per_token", "17 syncs\n", {}, 1, 17, "printed once: of each token"},
      {"syncs_per_token", "1 syncs\n2 syncs\n", {}, 2, *Rational::make(3, 2), "once a repetition"},
      {"syncs_per_token", sync_lines(16), {}, 2, *Rational::make(96, 16), "two repetitions"},
      {"syncs_per_token", sync_lines(3), {}, 1, std::nullopt, "three values for eight tokens"},
      {"syncs_per_token", sync_lines(3), Pick::sum, 1, *Rational::make(19, 8), "of all tokens"},
      {"syncs_per_token", "16 syncs\n", Pick::sum, 1, 2, "a total of all tokens"},
      {"syncs_per_token", sync_lines(8), Pick::last, 1, 1, ""},
      {"syncs_per_token", sync_lines(8), Pick::first, 1, 1, ""},
      {"syncs_per_token", sync_lines(8), Pick::max, 1, 17, ""},
      {"syncs_per_token", sync_lines(8), Pick::median, 1, 1, ""},
      {"syncs_per_prefill", sync_lines(3), {}, 1, 19, "the prompt in three pieces"},
      {"syncs_per_prefill", sync_lines(6), {}, 2, *Rational::make(38, 2), ""},
      {"syncs_per_prefill", sync_lines(3), {}, 2, std::nullopt, "no multiple of two"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(c.metric) + ": " + c.text + c.why);
    config::GenericOutput rules;
    rules.values = {by_regex(c.metric, R"((\d+) syncs)")};
    rules.values[0].pick = c.pick;
    const auto read_in = [&](std::optional<profile::Pass> pass) {
      return read_generic({c.text, "", {0, 8, c.repeats, 0}, "cpu", &rules, pass});
    };
    const auto report = read_in(std::nullopt);
    ASSERT_TRUE(report) << report.error().message;
    std::map<std::string, Rational> values = report->shares;
    for (const auto& [name, count] : report->counts) values[name] = count;
    const auto expected = c.count ? std::map<std::string, Rational>{{c.metric, *c.count}}
                                  : std::map<std::string, Rational>{};
    EXPECT_EQ(values, expected);
    EXPECT_EQ(report->uncounted.size(), c.count ? 0U : 1U);
    const auto counted = read_in(profile::Pass::counted);
    EXPECT_EQ(counted.has_value(), c.count.has_value());
    if (!counted) EXPECT_THAT(counted.error().message, HasSubstr("pick: sum says"));
  }
}

TEST(Generic, NamesTheFactThatASumNeeds) {
  config::GenericOutput rules;
  rules.values = {by_regex("syncs_per_token", R"((\d+) syncs)")};
  rules.values[0].pick = ValueRule::Pick::sum;
  const auto counted = read_generic(
      {"3 syncs\n4 syncs\n", "", {512, 0, 1, 0}, "cpu", &rules, profile::Pass::counted});
  ASSERT_FALSE(counted);
  EXPECT_THAT(
      counted.error().message,
      HasSubstr(
          "syncs_per_token: printed 2 times in a run: how many tokens they are of together "
          "is not known; facts: {generated_tokens: {regex: '(\\d+) tokens'}} beside metrics"));
}

TEST(Generic, SaysHowManyValuesWerePrintedUnlessTheLastTimeCounts) {
  using Pick = ValueRule::Pick;
  const struct {
    const char* metric;
    const char* text;
    std::optional<Pick> pick;
    std::optional<std::int64_t> printed;
  } cases[] = {
      {"syncs_per_token", "7 x\n", {}, 1},
      {"syncs_per_token", "0 x\n1 x\n", Pick::all, 2},
      {"syncs_per_token", "0 x\n1 x\n2 x\n", Pick::sum, 3},
      {"syncs_per_token", "0 x\n1 x\n2 x\n", Pick::max, 3},
      {"syncs_per_token", "0 x\n1 x\n2 x\n", Pick::median, 3},
      {"syncs_per_token", "0 x\n1 x\n2 x\n", Pick::first, 3},
      {"syncs_per_token", "0 x\n1 x\n2 x\n", Pick::last, 3},
      {"decode_tokens_per_second", "5 x\n6 x\n7 x\n", Pick::all, 3},
      {"decode_tokens_per_second", "5 x\n6 x\n7 x\n", {}, std::nullopt},
      {"decode_tokens_per_second", "5 x\n6 x\n7 x\n", Pick::last, std::nullopt},
      {"decode_tokens_per_second", "5 x\n6 x\n7 x\n", Pick::first, 3},
      {"decode_tokens_per_second", "5 x\n6 x\n7 x\n", Pick::max, 3},
      {"decode_tokens_per_second", "5 x\n6 x\n7 x\n", Pick::median, 3},
      {"decode_tokens_per_second", "5 x\n6 x\n7 x\n", Pick::sum, 3},
  };
  for (const auto& c : cases) {
    config::GenericOutput rules;
    rules.values = {by_regex(c.metric, R"((\d+) x)")};
    rules.values[0].pick = c.pick;
    const auto report = read(rules, c.text);
    ASSERT_TRUE(report) << report.error().message;
    std::map<std::string, std::int64_t> printed;
    if (c.printed) printed[c.metric] = *c.printed;
    EXPECT_EQ(report->printed_values, printed) << c.metric << ": " << c.text;
  }
}

TEST(Generic, ReadsNoPartOfALongerNumber) {
  const struct {
    const char* regex;
    const char* text;
    std::optional<double> value;  // nothing: an error
  } cases[] = {
      {R"(([0-9.]+) ms)", "950.5 ms", 950.5},
      {R"(([0-9.]+) ms)", "1,250.5 ms", {}},
      {R"(([0-9]+(?:[.][0-9]+)?) ms)", "1.250,5 ms", {}},
      {R"(ms: ([0-9.]+))", "ms: 1,250", {}},
      {R"(([0-9]+) ms)", "1'250 ms", {}},
      {R"(([0-9]+) ms)",
       "1\xC2\xA0"
       "250 ms",
       {}},
      {R"(([0-9]+) ms)",
       "1\xE2\x80\xAF"
       "250 ms",
       {}},
      {R"(([0-9.]+) ms)", "1,25 ms", {}},
      {R"(ms: ([0-9.]+))", "ms: 1.9e+03", 1900},
      {R"(ms: ([0-9.]+))", "ms: 1.9E3 or so", 1900},
      {R"(ms: ([0-9.]+))", "ms: 2e-1", 0.2},
      {R"(ms: ([0-9]+))", "ms: 1.5", 1.5},
      {R"(([0-9]) ms)", "125 ms", 125},
      {R"(ms=-?([0-9.]+))", "ms=-3", {}},
      // Not a number that goes on.
      {R"(([0-9.]+) ms)", "in 12, 950.5 ms", 950.5},
      {R"(ms: ([0-9.]+))", "ms: 12.5, 3 tokens", 12.5},
      {R"(ms ([0-9]+))", "ms 12.", 12},
      {R"(pp,512,([0-9.]+))", "pp,512,900.5", 900.5},
      {R"(([0-9.]+),7,8$)", "10,7,8", 10},
      {R"(^\d+,([0-9.]+)$)", "32,812.4", 812.4},
      {R"(^([0-9]+),\d+$)", "812,400", 812},
      {R"(run-([0-9]+))", "run-3", 3},
      {R"(([0-9]+)ms)", "06:41:12ms", {}},
      {R"(:([0-9]+)ms)", "06:41:12ms", 12},
  };
  for (const auto& c : cases) {
    config::GenericOutput rules;
    rules.values = {by_regex("rate", c.regex)};
    rules.values[0].custom =
        unit::custom_metric("rate", unit::Kind::time, unit::Unit::count, unit::Better::higher);
    const auto report = read(rules, c.text);
    ASSERT_EQ(report.has_value(), c.value.has_value()) << c.text;
    if (report) EXPECT_DOUBLE_EQ(report->times[0].samples[0], *c.value) << c.text;
  }
  config::GenericOutput rules;
  rules.values = {by_regex("syncs_per_token", R"(([0-9]+) syncs)")};
  EXPECT_THAT(
      read(rules, "1,250 syncs").error().message,
      HasSubstr("syncs_per_token: \"1,250\" may be read in several ways in the line \"1,250 "
                "syncs\": print numbers as 1250.5, with a decimal point, without other "
                "separators and in one unit, or name the columns beside it in the pattern "
                "(regex "));
  rules.values = {by_regex("decode_tokens_per_second", R"(([0-9.]+) tok/s)")};
  EXPECT_THAT(read(rules, "speed 1,250.5 tok/s").error().message,
              HasSubstr("\n  | speed 1,250.5 tok/s"));
  rules.facts = {by_regex("engine_build", "build ([0-9]+)")};
  EXPECT_EQ(read(rules, "build 12,345\n5 tok/s")->engine_build, "12");
}

// A slower engine must not print its times so that they are read smaller.
TEST(Generic, ReadsNoPartOfANumberHoweverItIsGrouped) {
  const struct {
    const char* regex;
    const char* text;
  } cases[] = {
      {R"(([0-9.]+) ms)", "1_826.7 ms"},
      {R"(([0-9.]+) ms)", "took 1 834.0 ms"},
      {R"(([0-9.]+) ms)", "took: 1 834 ms"},
      {R"(([0-9.]+) ms)", "t=12 345 834 ms"},
      {R"(took ([0-9.]+))", "took 1 834.0 ms"},
      {R"(took ([0-9]+))", "took 1 834"},
      {R"(took ([0-9.]+))", "took 1_834"},
      {R"(([0-9.]+) ms)", "1\u2009834.0 ms"},
      {R"(([0-9.]+) ms)", "1\u2019834.0 ms"},
      {R"(([0-9.]+) ms)", "1\u200B834.0 ms"},
      {R"(([0-9.]+) ms)", "\uFF11834.0 ms"},
      {R"(took ([0-9.]+))", "took 1\u00B7834 ms"},
      {R"(([0-9]+[.][0-9]+) ms)", "1.250.5 ms"},
      {R"(took ([0-9]+))", "took 1.2.3"},
      {R"(took ([0-9.]+))", "took 1.8d3 ms"},
      {R"(took ([0-9.]+))", "took 1.8 x 10^3 ms"},
      {R"(took ([0-9.]+))", "took 1.8\u00D710\u00B3 ms"},
      {R"(took ([0-9.]+))", "took 1m12s"},
      {R"(m([0-9.]+)s)", "real 1m12.3s"},
      {R"(([0-9.]+) s)", "took 1 min 12 s"},
      {R"(took ([0-9.]+))", "took 1 min 12 s"},
      {R"(took ([0-9.]+))", "took 2 minutes, 5 seconds"},
      {R"(([0-9.]+) seconds)", "took 2 minutes and 5 seconds"},
      {R"(took ([0-9.]+))", "took 1 s 834 ms"},
      {R"(took ([0-9.]+))", "took 1h30"},
      {R"(([0-9.]+) ms)", "took 1 s, 834 ms"},
      {R"(([0-9.]+) ms)", "took 1 sec and 834 ms"},
      {R"(([0-9.]+) ms)", "took 1 s + 834 ms"},
      {R"(([0-9.]+) ms)", "took 1:834.0 ms"},
      {R"(([0-9.]+) ms)", "took 1;834.0 ms"},
      {R"(([0-9.]+) ms)", "took 1|834.0 ms"},
      {R"(([0-9.]+) ms)", "took 2 x 834 ms"},
      {R"(([0-9.]+) ms)", "took 2*834 ms"},
      {R"(([0-9.]+) ms)", "took 834 ms x 2"},
      {R"(([0-9.]+) ms)", "took 834 ms * 2"},
      {R"(([0-9.]+) ms)", "took 834 ms + 2 s"},
      {R"(took ([0-9.]+))", "took 2:834.0 ms"},
      {R"(took ([0-9.]+))", "took 834 \u00D7 2 ms"},
  };
  for (const auto& c : cases) {
    config::GenericOutput rules;
    rules.values = {by_regex("load_seconds", c.regex)};
    rules.values[0].scale = unit::parse_scale("ms");
    const auto report = read(rules, c.text);
    ASSERT_FALSE(report) << c.text << ": " << report->times[0].samples[0];
    EXPECT_THAT(report.error().message, HasSubstr("may be read in several ways in the line"))
        << c.text;
  }
}

// In milliseconds, as weir.yaml says.
TEST(Generic, ReadsTheUnitThatFollowsANumber) {
  const struct {
    const char* regex;
    const char* text;
    double seconds;
  } cases[] = {
      {R"(([0-9.]+) ms)", "1.80e+03 ms", 1.8},
      {R"(took ([0-9.]+))", "took 900", 0.9},
      {R"(took ([0-9.]+))", "took 900 ms", 0.9},
      {R"(took ([0-9.]+))", "took 900ms", 0.9},
      {R"(took ([0-9.]+))", "took 1.8 s", 1.8},
      {R"(took ([0-9.]+))", "took 1.8s", 1.8},
      {R"(took ([0-9.]+))", "took 1.8\ts", 1.8},
      {R"(took ([0-9.]+))", "took 1.8 [s]", 1.8},
      {R"(took ([0-9.]+))", "took 1.8 (sec)", 1.8},
      {R"(took ([0-9.]+))", "took 2 seconds.", 2},
      {R"(took ([0-9.]+))", "took 2 Seconds", 2},
      {R"(took ([0-9.]+))", "took 2 min", 120},
      {R"(took ([0-9.]+))", "took 2m", 120},
      {R"(took ([0-9.]+))", "took 2 hours", 7200},
      {R"(took ([0-9.]+))", "took 500 us", 500e-6},
      {R"(took ([0-9.]+))", "took 500 \u00B5s", 500e-6},
      {R"(took ([0-9.]+))", "took 500 \u03BCs", 500e-6},
      {R"(took ([0-9.]+))", "took 7 ns", 7e-9},
      {R"(took ([0-9.]+))", "took 2 s/it", 2},
      {R"(took ([0-9.]+))", "took 24 ms/token", 0.024},
      {R"(took ([0-9.]+))", "took 24 ms per token", 0.024},
      {R"(0m([0-9.]+)s)", "real 0m1.234s", 1.234},
      {R"(took[^:]*: ([0-9.]+))", "took [s]: 1.8", 1.8},
      {R"(took[^:]*: ([0-9.]+))", "took (sec): 1.8", 1.8},
      {R"(took[^:]*: ([0-9.]+))", "took in s: 1.8", 1.8},
      {R"(took[^:]*: ([0-9.]+))", "\"took_s\": 1.8", 1.8},
      {R"(took[^=]*=([0-9.]+))", "took_us=500", 500e-6},
      {R"(took[^:]*: ([0-9.]+))", "took [s]: 900 ms", 0.9},
      {R"(took[^:]*: ([0-9.]+))", "took [MB]: 900", 0.9},
      {R"(took[^:]*: ([0-9.]+))", "took_per_s: 900", 0.9},
      {R"(0 min ([0-9.]+) s)", "took 0 min 12 s", 12},
  };
  for (const auto& c : cases) {
    config::GenericOutput rules;
    rules.values = {by_regex("load_seconds", c.regex)};
    rules.values[0].scale = unit::parse_scale("ms");
    const auto report = read(rules, c.text);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_DOUBLE_EQ(report->times[0].samples[0], c.seconds) << c.text;
  }
  config::GenericOutput rules;
  rules.values = {by_regex("peak_rss_bytes", "peak ([0-9.]+)")};
  EXPECT_DOUBLE_EQ(read(rules, "peak 2 KB")->times[0].samples[0], 2000);
  EXPECT_DOUBLE_EQ(read(rules, "peak 2 MiB")->times[0].samples[0], 2097152);
}

TEST(Generic, RefusesAUnitOfAnotherQuantity) {
  const struct {
    const char *metric, *text;
  } cases[] = {
      {"load_seconds", "= 12 MB"},
      {"load_seconds", "= 12 tok/s"},
      {"peak_rss_bytes", "= 12 ms"},
      {"decode_tokens_per_second", "= 24 ms"},
      {"decode_tokens_per_second", "= 24 ms/token"},
  };
  for (const auto& c : cases) {
    config::GenericOutput rules;
    rules.values = {by_regex(c.metric, "= ([0-9.]+)")};
    const auto report = read(rules, c.text);
    ASSERT_FALSE(report) << c.text;
    EXPECT_THAT(report.error().message, HasSubstr("let the pattern find a number in")) << c.text;
  }
}

// Lines that people print: what a pattern reads in them must go on to work.
TEST(Generic, ReadsNumbersBesideOtherNumbers) {
  const struct {
    const char* metric;
    const char* regex;
    const char* text;
    double value;
  } cases[] = {
      {"decode_tokens_per_second", R"(([0-9.]+)$)", "llama 7B Q4_0   128   834.2", 834.2},
      {"decode_tokens_per_second", R"(([0-9.]+)$)", "128\t834.2", 834.2},
      {"decode_tokens_per_second", R"(^\d+ ([0-9.]+))", "128 834.2", 834.2},
      {"decode_tokens_per_second", R"(pp 512 ([0-9.]+))", "pp 512 834.2 12.1", 834.2},
      {"decode_tokens_per_second", R"(([0-9.]+) t/s)", "pp512 834.2 t/s", 834.2},
      {"decode_tokens_per_second", R"(([0-9.]+) \|$)", "| tg128 | 1 | 834.2 |", 834.2},
      {"decode_tokens_per_second", R"(([0-9.]+) ± )", "| tg128 | 834.20 ± 0.31 |", 834.2},
      {"decode_tokens_per_second", R"(\(([\d.]+) tok/s\))", "Token time: 83ms (12.0 tok/s)", 12},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "[12:00:11] 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "12:00:11 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "2026-12-01 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "Dec 01 834 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "v1.2.3 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "1.2.3 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "gpt2 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "#3 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "run 3: 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "1/64 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "12.5 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(([0-9.]+) tok)", "in 2.1 s, 834.0 tok/s", 834},
      {"decode_tokens_per_second", R"(: ([0-9.]+) tok)", "32 tokens in 2 s: 16.0 tokens/sec", 16},
      {"decode_tokens_per_second", R"(speed.* ([0-9.]+))", "speed 1e3 834.0", 834},
      {"decode_tokens_per_second", R"(tps=([0-9.]+))", "n=32,tps=41.2,ms=24", 41.2},
      {"decode_tokens_per_second", R"(: ([0-9.]+))", "tok/s: 41.2 (24 ms)", 41.2},
      {"decode_tokens_per_second", R"(([0-9]+)/64)", "12/64", 12},
      {"decode_tokens_per_second", R"(^([0-9]+))", "10,20,30", 10},
      {"decode_tokens_per_second", R"(([0-9.]+)$)", "pp,512,834.5", 834.5},
      {"decode_tokens_per_second", R"(([0-9.]+)x)", "speedup 1.8x", 1.8},
      {"decode_tokens_per_second", R"(s[)]: ([0-9.]+))", "speed (tokens/s): 41.2", 41.2},
      {"decode_tokens_per_second", R"(s: ([0-9.]+))", "tok_per_s: 41.2", 41.2},
      {"decode_tokens_per_second", R"(rate_s: ([0-9.]+))", "rate_s: 41.2", 41.2},
      {"decode_tokens_per_second", R"(step 1:([0-9.]+))", "step 1:41.2", 41.2},
      {"decode_tokens_per_second", R"(([0-9.]+) tok/s)", "tg128:41.2 tok/s", 41.2},
      {"decode_tokens_per_second", R"([|]([0-9.]+))", "128|41.2|0.3", 41.2},
      {"decode_tokens_per_second", R"(([0-9.]+) tok/s)", "512x512 41.2 tok/s", 41.2},
      {"load_seconds", R"(loaded in ([0-9.]+))", "loaded in 1.5 s.", 1.5},
      {"load_seconds", R"(loaded in ([0-9.]+))", "loaded in 1.5s, 7 layers", 1.5},
      {"load_seconds", R"(per token: ([0-9.]+))", "per token: 2.5 ms/token, 400.0 tok/s", 0.0025},
      {"load_seconds", R"(([0-9.]+) ms per)", "in 2.1 s, 834.0 ms per token", 0.834},
      {"load_seconds", R"(([0-9.]+) ms per)", "in 2 s 834 ms per token", 0.834},
      {"load_seconds", R"(decode ([0-9.]+))", "load 2 s decode 834 ms", 0.834},
      {"load_seconds", R"(avg ([0-9.]+))", "avg 12.5 min 11.0 max 14.0", 12.5},
      {"load_seconds", R"(avg ([0-9.]+))", "avg 12 ms min 11 ms max 14 ms", 0.012},
      {"load_seconds", R"(min ([0-9.]+))", "avg 12 ms min 11 ms max 14 ms", 0.011},
      {"load_seconds", R"(avg ([0-9.]+))", "avg 12.5 min: 11.0", 12.5},
      {"load_seconds", R"(0:([0-9.]+))", "Elapsed (wall clock) time (h:mm:ss or m:ss): 0:01.83",
       1.83},
      {"load_seconds", R"(eval time =\s+([0-9.]+) ms /)",
       "eval time =     834.12 ms /    31 runs   (   26.9 ms per token,    37.16 tokens per "
       "second)",
       0.83412},
      {"syncs_per_token", R"((\d+) syncs)", "Metal: 706 dispatches, 930 barriers, 17 syncs", 17},
      {"syncs_per_token", R"((\d+) syncs)", "8 tokens 128 syncs", 128},
      {"syncs_per_token", R"(syncs: (\d+))", "syncs: 12, in 5 s", 12},
      {"syncs_per_token", R"(syncs (\d+))", "syncs 12 submits 834", 12},
      {"syncs_per_token", R"(count=(\d+))", "count=12 (32,812.4 us)", 12},
  };
  for (const auto& c : cases) {
    config::GenericOutput rules;
    rules.values = {by_regex(c.metric, c.regex)};
    const auto report = read(rules, c.text);
    ASSERT_TRUE(report) << report.error().message;
    const double value = report->times.empty() ? static_cast<double>(report->counts.begin()->second)
                                               : report->times[0].samples[0];
    EXPECT_DOUBLE_EQ(value, c.value) << c.text;
  }
}

TEST(Generic, NotesUnitsAndTheNumbersInARow) {
  const auto forms = [](const char* metric, const char* regex, const char* text) {
    config::GenericOutput rules;
    rules.values = {by_regex(metric, regex)};
    const auto report = read(rules, text);
    std::vector<std::string> names;
    for (const auto& [name, count] : report->printed_values) {
      if (name != metric) names.push_back(name);
    }
    return names;
  };
  const char* k_rate = "decode_tokens_per_second";
  EXPECT_THAT(forms(k_rate, "= ([0-9.]+)", "= 41.2"), testing::IsEmpty());
  EXPECT_THAT(forms(k_rate, "= ([0-9.]+)", "= 41.2 tokens/sec"),
              ElementsAre("decode_tokens_per_second in tok/s"));
  EXPECT_THAT(forms(k_rate, "= ([0-9.]+)", "= 1.2k tok/s"),
              ElementsAre("decode_tokens_per_second in k"));
  EXPECT_THAT(forms(k_rate, "= ([0-9.]+)", "= 2.1 it/s"),
              ElementsAre("decode_tokens_per_second in it/s"));
  EXPECT_THAT(forms(k_rate, ",([0-9.]+)", "pp,1,834"),
              ElementsAre("decode_tokens_per_second in a row of 2 numbers"));
  EXPECT_THAT(forms("syncs_per_token", "([0-9]+) syncs", "5 syncs"), testing::IsEmpty());
  EXPECT_THAT(forms("syncs_per_token", "syncs: ([0-9]+)", "syncs: 5 k"),
              ElementsAre("syncs_per_token in k"));
  EXPECT_THAT(forms("syncs_per_token", "syncs: ([0-9]+)", "syncs: 5 thousand"),
              ElementsAre("syncs_per_token in thousand"));
}

TEST(Generic, WarnsWhereLinesOfATimeDisagree) {
  config::GenericOutput rules;
  rules.values = {by_regex("decode_tokens_per_second", R"(([0-9.]+) tok/s)")};
  const auto warnings = [&](const char* text) { return read(rules, text)->warnings; };
  EXPECT_THAT(warnings("5 tok/s\n5 tok/s\n"), testing::IsEmpty());
  EXPECT_THAT(warnings("5 tok/s\n6 tok/s\n"),
              ElementsAre(HasSubstr("decode_tokens_per_second was printed in several lines with "
                                    "different values, and the last is taken: pick: ")));
  rules.values[0].pick = ValueRule::Pick::last;
  EXPECT_THAT(warnings("5 tok/s\n6 tok/s\n"), testing::IsEmpty());
  rules.values[0].pick = ValueRule::Pick::max;
  EXPECT_THAT(warnings("5 tok/s\n6 tok/s\n"), testing::IsEmpty());
}

TEST(Generic, NeedsTimesInATimedPassAndCountsInACountedOne) {
  const auto rules = metal_rules();
  EXPECT_TRUE(read(rules, k_out, "", profile::Pass::timed));
  EXPECT_TRUE(read(rules, "", k_err, profile::Pass::counted));
  const auto timed = read(rules, "", k_err, profile::Pass::timed);
  ASSERT_FALSE(timed);
  EXPECT_THAT(
      timed.error().message,
      HasSubstr("decode_tokens_per_second found nothing in what the engine printed (regex "));
  const auto counted = read(rules, k_out, "5 dispatches", profile::Pass::counted);
  ASSERT_FALSE(counted);
  EXPECT_THAT(counted.error().message, HasSubstr("syncs_per_token"));
  EXPECT_THAT(counted.error().message, testing::Not(HasSubstr("dispatches_per_token")));
}

// Probes count, and the engine says no more than how many tokens it made.
TEST(Generic, MayHaveFactsAlone) {
  config::GenericOutput rules;
  rules.facts = {by_regex("generated_tokens", "(\\d+) tokens")};
  for (const auto pass : {profile::Pass::counted, profile::Pass::timed}) {
    const auto report = read(rules, "8 tokens\n", "", pass);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->generated_tokens, 8);
  }
}

TEST(Generic, RefusesWhatIsNoMeasurement) {
  struct Case {
    const char* metric;
    const char* regex;
    const char* text;
    const char* why;
  };
  const Case cases[] = {
      {"decode_tokens_per_second", R"((\S+) tok/s)", "", "printed nothing"},
      {"decode_tokens_per_second", R"((\S+) tok/s)", "garbage\n", "found nothing"},
      {"decode_tokens_per_second", R"((\S+) tok/s)", "nan tok/s", "\"nan\" is not a number"},
      {"decode_tokens_per_second", R"((\S+) tok/s)", "-nan tok/s", "\"-nan\" is not a number"},
      {"decode_tokens_per_second", R"((\S+) tok/s)", "inf tok/s", "\"inf\" is not a number"},
      {"decode_tokens_per_second", R"((\S+) tok/s)", "1e999 tok/s", "is not a number"},
      {"decode_tokens_per_second", R"((\S+) tok/s)", "0 tok/s", "0 is not above 0"},
      {"decode_tokens_per_second", R"((\S+) tok/s)", "-3 tok/s", "-3 is not above 0"},
      {"syncs_per_token", R"((\S+) syncs)", "1.5 syncs", "1.5 is not a count"},
      {"syncs_per_token", R"((\S+) syncs)", "-1 syncs", "-1 is not a count"},
      {"cached_prompt_share", R"((\S+) cached)", "81 cached", "81 is not a ratio"},
      {"cached_prompt_share", R"((\S+) cached)", "-1 cached", "-1 is not a ratio"},
      {"syncs_per_token", R"((\S+) syncs)", "1e300 syncs", "is not a count"},
      {"syncs_per_token", R"(()syncs)", "syncs", "\"\" is not a number"},
  };
  for (const Case& c : cases) {
    config::GenericOutput rules;
    rules.values = {by_regex(c.metric, c.regex)};
    const auto report = read(rules, c.text);
    ASSERT_FALSE(report) << c.text;
    EXPECT_EQ(report.error().code, Code::data);
    EXPECT_THAT(report.error().message, HasSubstr(c.why)) << c.text;
  }
}

TEST(Generic, ShowsTheLastLinesAndWhatWouldMatchWhereNothingWasFound) {
  struct Case {
    const char *text, *shown;
  };
  for (const Case& test_case : {
           Case{"loading\n\nran 8 tokens\ntokens/s: 41.2\n",
                "decode_tokens_per_second found nothing in what the engine printed (regex 'speed: "
                "([0-9.]+)')\n"
                "  it printed last:\n  | loading\n  | ran 8 tokens\n  | tokens/s: 41.2\n"
                "  decode_tokens_per_second: 'tokens/s: ([0-9.]+)' would match"},
           {"41.2 tok/s (8)\n", "'([0-9.]+) tok/s \\([0-9.]+\\)' would match"},
           {"32 tokens, p50 rate 7.5 tok/s\n", "'[0-9.]+ tokens, p50 rate ([0-9.]+)' would match"},
           {"   [gen] 7.25 t/s\n", "'\\[gen\\] ([0-9.]+)' would match"},
       }) {
    config::GenericOutput rules;
    rules.values = {by_regex("decode_tokens_per_second", "speed: ([0-9.]+)")};
    const std::string message = read(rules, test_case.text).error().message;
    EXPECT_THAT(message, HasSubstr(test_case.shown));
  }
  config::GenericOutput other;
  other.values = {by_regex("syncs_per_token", "syncs: ([0-9]+)")};
  EXPECT_THAT(read(other, "41.2 tok/s\n").error().message, Not(HasSubstr("would match")));
  other.values = {by_regex("load_seconds", "load: ([0-9.]+)")};
  other.values.front().source = "weir.yaml:7:7";
  const std::string message = read(other, "loaded in 1.5 s\n").error().message;
  EXPECT_THAT(message, testing::StartsWith("weir.yaml:7:7: load_seconds found nothing"));
  EXPECT_THAT(message, HasSubstr("load_seconds: 'loaded in ([0-9.]+)' would match"));
  other.values = {by_regex("decode_tokens_per_second", "speed: (.*)")};
  EXPECT_THAT(read(other, "speed: 41.2 tok/s\n").error().message,
              HasSubstr("decode_tokens_per_second: 'speed: ([0-9.]+)' would match"));
}

TEST(Generic, StaysFastOnOutputMadeToBeSlow) {
  // Backtracking engines take exponential time on the first; a bracket a line would make a naive
  // search for JSON quadratic. No time is measured: it would be hours.
  config::GenericOutput rules;
  rules.values = {by_regex("decode_tokens_per_second", "(a+)+b"),
                  by_pointer("syncs_per_token", "/syncs")};
  std::string text(200'000, 'a');
  text += '\n';
  for (int i = 0; i < 200'000; ++i) text += "[\n{\"\n";
  EXPECT_FALSE(read(rules, text));
}

}  // namespace generic_test
}  // namespace weir::adapters
