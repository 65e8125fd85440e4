// Tests which limits apply to a metric, and how entries combine.
#include "gate/verdict/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace limits_test {

using test::entry;
using ::testing::HasSubstr;

const profile::CellKey k_cell = *profile::CellKey::parse("llama.cpp@fused/tiny/vulkan/long@d256");

Limit resolve(const char* name, const std::vector<LimitEntry>& entries = {}) {
  return resolve_limit(k_cell, *unit::find_metric(name), entries);
}

TEST(Limits, HaveDefaults) {
  struct Case {
    const char* metric;
    const char* words;
  };
  for (const auto& [name, words] :
       {Case{"dispatches_per_token", "must not change"},
        Case{"syncs_per_prefill", "must not change"}, Case{"barriers_at_16", "must not change"},
        Case{"dispatches_fixed", ""}, Case{"decode_tokens_per_second", "may drop 5 %"},
        Case{"prefill_tokens_per_second", "may drop 5 %"}, Case{"load_seconds", ""},
        Case{"time_per_output_token_seconds", ""}, Case{"peak_rss_bytes", ""},
        Case{"instructions_per_token", "must not change"},
        Case{"device_memory_peak_bytes", "may rise 1 %"}, Case{"device_memory_steady_bytes", ""},
        Case{"kv_cache_bytes", ""}, Case{"allocations_per_token", "must not change"},
        Case{"pipelines_per_token", "must not change"}, Case{"pipelines_fixed", ""},
        Case{"uploaded_bytes_per_token", ""}}) {
    EXPECT_EQ(resolve(name).words(), words) << name;
  }
  EXPECT_TRUE(resolve_non_metric_limit(k_cell, "kernels", {}).exact);
  EXPECT_TRUE(resolve_non_metric_limit(k_cell, "placement", {}).exact);
}

TEST(Limits, OfDeclaredMetricsLetThemGetALittleWorse) {
  using unit::Better, unit::Kind, unit::Unit;
  const struct {
    unit::Metric metric;
    const char* limit;
  } cases[] = {
      {unit::custom_metric("load_seconds", Kind::time, Unit::seconds, Better::lower),
       "may rise 5 %"},
      {unit::custom_metric("hit_rate", Kind::quality, Unit::ratio, Better::higher), "may drop 5 %"},
      {unit::custom_metric("retries", Kind::count, Unit::count, Better::lower), "may rise 5 %"},
      {unit::custom_metric("hits", Kind::count, Unit::count, Better::higher), "may fall 5 %"},
      // Names that patterns for weir's own metrics cover.
      {unit::custom_metric("ms_per_token", Kind::time, Unit::seconds, Better::lower),
       "may rise 5 %"},
      {unit::custom_metric("latency_at_p99_ms", Kind::time, Unit::seconds, Better::lower),
       "may rise 5 %"},
      {unit::custom_metric("wait_at_zero_context", Kind::time, Unit::seconds, Better::lower),
       "may rise 5 %"},
      {unit::custom_metric("read_bytes_per_second", Kind::time, Unit::tokens_per_second,
                           Better::higher),
       "may drop 5 %"},
      {unit::custom_metric("opened_files_n", Kind::count, Unit::count, Better::lower),
       "may rise 5 %"},
      {unit::custom_metric("estimated_cycles_all", Kind::count, Unit::count, Better::lower),
       "may rise 5 %"},
      {unit::custom_metric("device_memory_bytes_idle", Kind::memory, Unit::bytes, Better::lower),
       "may rise 5 %"},
  };
  for (const auto& c : cases) {
    const auto declared = limit_of_declared(c.metric, "llama.cpp");
    ASSERT_TRUE(declared) << c.metric.name;
    EXPECT_EQ(resolve_limit(k_cell, c.metric, {&*declared, 1}).words(), c.limit);
  }
  const unit::Metric covered = *unit::find_metric("decode_tokens_per_second");
  EXPECT_FALSE(limit_of_declared(covered, "llama.cpp"));
  const unit::Metric exact =
      unit::custom_metric("retries_per_token", Kind::count, Unit::count, Better::lower);
  EXPECT_FALSE(limit_of_declared(exact, "llama.cpp"));
  EXPECT_EQ(resolve_limit(k_cell, exact, {}).words(), "must not change");
}

TEST(Limits, WithoutAUnitHaveThatOfTheMetricsName) {
  using unit::Better, unit::Kind, unit::Unit;
  const auto heap = unit::custom_metric("heap_mb", Kind::memory, Unit::bytes, Better::lower);
  const auto start = unit::custom_metric("start_ms", Kind::time, Unit::seconds, Better::lower);
  LimitEntry bound = entry({"heap_mb", "start_ms"});
  bound.max = Amount{410, false};
  bound.max_increase = Amount{20, false};
  const std::vector<LimitEntry> limits{bound};
  EXPECT_EQ(resolve_limit(k_cell, heap, limits).max->value, 410e6);
  EXPECT_EQ(resolve_limit(k_cell, heap, limits).max_increase->tolerate.value, 10e6);
  EXPECT_EQ(resolve_limit(k_cell, heap, limits).words(), "may rise 20.0 MB, at most 410 MB");
  EXPECT_EQ(resolve_limit(k_cell, start, limits).words(), "may rise 20.0 ms, at most 410 ms");
  bound.max = Amount{429916160, false, Unit::bytes};  // 410MiB in the configuration
  EXPECT_EQ(resolve_limit(k_cell, heap, {&bound, 1}).max->value, 429916160);
  EXPECT_EQ(resolve("peak_rss_bytes", {entry({"x"})}).words(), "");
}

TEST(Limits, OfALaterEntryWinForEachKindAndKindsAddUp) {
  LimitEntry range = entry({"syncs_per_token"});
  range.min = Amount{1, false};
  range.max = Amount{3, false};
  EXPECT_EQ(resolve("syncs_per_token", {range}).words(), "must not change, 1 to 3");
  LimitEntry wide;
  wide.metrics = {"syncs_per_token"};
  wide.max_increase = Amount{0.02, true};
  EXPECT_EQ(resolve("syncs_per_token", {wide}).words(), "must not change");
  wide.exact = false;
  EXPECT_EQ(resolve("syncs_per_token", {wide}).words(), "may rise 2 %");
  LimitEntry loose = entry({"syncs*"});
  loose.exact = false;
  loose.max = Amount{4, false};
  EXPECT_EQ(resolve("syncs_per_token", {range, loose}).words(), "1 to 4");
  EXPECT_EQ(resolve("syncs_per_token", {loose, range}).words(), "1 to 3");
  LimitEntry drop = entry({"*tokens_per_second"});
  drop.max_drop = Amount{0.1, true};
  drop.tolerate = Amount{0.02, true};
  const Limit limit = resolve("decode_tokens_per_second", {drop});
  EXPECT_EQ(limit.words(), "may drop 10 %");
  EXPECT_EQ(limit.max_drop->tolerate, (Amount{0.02, true}));
  EXPECT_EQ(resolve("decode_tokens_per_second").max_drop->tolerate, (Amount{0.025, true}))
      << "half";
}

TEST(Limits, OfAnEntryForManyMetricsTakeWhatFitsEach) {
  LimitEntry all = entry({"*"});
  all.max_drop = Amount{0.2, true};
  all.exact = false;
  EXPECT_EQ(resolve("decode_tokens_per_second", {all}).words(), "may drop 20 %");
  EXPECT_EQ(resolve("dispatches_per_token", {all}).words(), "");
  EXPECT_FALSE(resolve_non_metric_limit(k_cell, "kernels", std::vector{all}).exact);
}

TEST(Limits, CarryTheModeAndItsReason) {
  LimitEntry report = entry({});
  report.mode = Mode::report;
  report.reason = "new, being observed";
  const Limit limit = resolve("dispatches_per_token", {report});
  EXPECT_EQ(limit.mode, Mode::report);
  EXPECT_EQ(limit.reason, "new, being observed");
  EXPECT_TRUE(limit.exact);
  EXPECT_EQ(resolve_non_metric_limit(k_cell, "placement", std::vector{report}).mode, Mode::report);
}

TEST(Limits, SwitchedOffLeaveTheBoundsOfTheirEntryAndAllOfLaterOnes) {
  LimitEntry off = entry({});
  off.mode = Mode::off;
  LimitEntry least = entry({"*"});
  least.min = Amount{1, false};
  LimitEntry alone = least;
  alone.mode = Mode::off;
  alone.reason = "slow machine";
  LimitEntry report = off;
  report.mode = Mode::report;
  LimitEntry vary = entry({"*"});
  vary.max_increase = Amount{0.1, true};
  const struct {
    const char* what;
    std::vector<LimitEntry> entries;
    Mode mode;
    const char* words;
  } cases[] = {
      {"a bound alone", {alone}, Mode::gate, "at least 1"},
      {"a later bound", {off, least}, Mode::gate, "at least 1"},
      {"a later change", {off, vary}, Mode::gate, "may rise 10 %"},
      {"an earlier bound", {least, off}, Mode::off, "must not change, at least 1"},
      {"no bound", {off}, Mode::off, "must not change"},
      {"reported after all", {alone, report}, Mode::report, "must not change, at least 1"}};
  for (const auto& [what, entries, mode, words] : cases) {
    const Limit limit = resolve("dispatches_per_token", entries);
    EXPECT_EQ(limit.mode, mode) << what;
    EXPECT_EQ(limit.words(), words) << what;
  }
  EXPECT_EQ(resolve("decode_tokens_per_second", {alone}).words(), "at least 1");
  EXPECT_EQ(resolve("decode_tokens_per_second", {alone}).reason, "slow machine");
  EXPECT_EQ(resolve("failed_requests", {off}).mode, Mode::off) << "a default bound goes, too";
  EXPECT_EQ(resolve_non_metric_limit(k_cell, "kernels", std::vector{alone}).mode, Mode::off);
}

TEST(LimitMatch, TakesPartsOfANameWithOrWithoutTheirSuffix) {
  struct Case {
    std::string Match::*part;
    const char* glob;
    bool fits;
  };
  const Case k_cases[] = {
      {&Match::engine, "", true},
      {&Match::engine, "llama.cpp", true},
      {&Match::engine, "llama.cpp@fused", true},
      {&Match::engine, "llama.cpp@other", false},
      {&Match::variant, "fused", true},
      {&Match::variant, "default", false},
      {&Match::prompt, "long*", true},
      {&Match::prompt, "long", true},
      {&Match::prompt, "long@d256", true},
      {&Match::prompt, "long@d0", false},
      {&Match::backend, "vulk*", true},
      {&Match::backend, "cpu", false},
      {&Match::model, "tiny", true},
      {&Match::model, "Tiny", false},
  };
  for (const auto& [part, glob, fits] : k_cases) {
    Match match;
    match.*part = glob;
    EXPECT_EQ(match.fits(k_cell), fits) << glob;
    match.backend = "cpu";
    EXPECT_FALSE(match.fits(k_cell)) << "every part must fit";
  }
}

TEST(Limits, ThatMakeNoSenseSayWhy) {
  struct Case {
    const char* metric;
    std::function<void(LimitEntry&)> set;
    const char* reason;  // "": valid
  };
  const Case k_cases[] = {
      {"decode_tokens_per_second", [](auto& e) { e.exact = true; }, "exact makes no sense"},
      {"decode_tokens_per_second", [](auto& e) { e.exact = false; }, ""},
      {"dispatches_per_token",
       [](auto& e) {
         e.max_drop = Amount{0.05, true};
       },
       "max_drop makes no sense"},
      {"load_seconds",
       [](auto& e) {
         e.max_drop = Amount{0.05, true};
       },
       "lower is better"},
      {"load_seconds",
       [](auto& e) {
         e.max_increase = Amount{0.05, true};
       },
       ""},
      {"decode_tokens_per_second",
       [](auto& e) {
         e.max_increase = Amount{1, false};
       },
       "higher is better"},
      {"peak_rss_bytes",
       [](auto& e) {
         e.max_decrease = Amount{1, false};
       },
       "max_decrease is for counts"},
      {"dispatches_per_token",
       [](auto& e) {
         e.max_increase = e.max_decrease = Amount{2, false};
       },
       ""},
      {"decode_tokens_per_second",
       [](auto& e) {
         e.max_drop = Amount{0.95, true};
       },
       "below 90 %"},
      {"decode_tokens_per_second",
       [](auto& e) {
         e.max_drop = Amount{-0.1, true};
       },
       "negative"},
      {"decode_tokens_per_second",
       [](auto& e) {
         e.tolerate = Amount{0.1, true};
       },
       "goes with"},
      {"decode_tokens_per_second",
       [](auto& e) {
         e.max_drop = Amount{0.05, true};
         e.tolerate = Amount{0.1, true};
       },
       "must be smaller"},
      {"decode_tokens_per_second",
       [](auto& e) {
         e.max_drop = e.tolerate = Amount{0.05, true};
       },
       "must be smaller"},
      {"dispatches_per_token",
       [](auto& e) {
         e.max_increase = Amount{4, false};
         e.max_decrease = Amount{1, false};
         e.tolerate = Amount{2, false};
       },
       "must be smaller"},
      {"syncs_per_token",
       [](auto& e) {
         e.max = Amount{0.1, true};
       },
       "plain numbers"},
      {"failed_requests",
       [](auto& e) {
         e.max = Amount{0.01, true};
       },
       ""},
      {"syncs_per_token",
       [](auto& e) {
         e.min = Amount{3, false};
         e.max = Amount{1, false};
       },
       "min is above max"},
      {"syncs_per_token",
       [](auto& e) {
         e.min = Amount{1, false};
         e.max = Amount{3, false};
       },
       ""},
  };
  for (const Case& test_case : k_cases) {
    LimitEntry limit = entry({"*"});
    test_case.set(limit);
    const auto why = nonsense(limit, *unit::find_metric(test_case.metric));
    EXPECT_EQ(why.has_value(), *test_case.reason != '\0')
        << test_case.metric << ": " << test_case.reason;
    EXPECT_THAT(why.value_or(""), HasSubstr(test_case.reason));
  }
}

TEST(Limits, ShowTheirAmounts) {
  EXPECT_EQ(show(Amount{0.05, true}), "5 %");
  EXPECT_EQ(show(Amount{0.025, true}), "2.5 %");
  EXPECT_EQ(show(Amount{3, false}), "3");
  EXPECT_EQ(show(Amount{0.07, true}), "7 %") << "not 7.000000000000001 %";
}

}  // namespace limits_test
}  // namespace weir::verdict
