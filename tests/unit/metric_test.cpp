// Tests of the table of metrics.
#include "gate/unit/metric.hpp"

#include <set>

#include <gtest/gtest.h>

namespace weir::unit {
namespace metric_test {

TEST(FindMetric, KnowsEveryNameItLists) {
  std::set<std::string> labels;
  for (const std::string& name : metric_names()) {
    const auto metric = find_metric(name);
    ASSERT_TRUE(metric) << name;
    EXPECT_EQ(metric->name, name);
    EXPECT_TRUE(labels.insert(display_name(*metric)).second)
        << "two metrics read \"" << display_name(*metric) << '"';
  }
  // Times, memory, quality, usage and fits: seventeen; 21 of serving alone, six of how that
  // drifts; thirteen of what is there at once; 44 counts in four scopes; over depths 43 counts and
  // two times.
  EXPECT_EQ(labels.size(), 17 + 21 + 6 + 13 + 44 * 4 + (43 + 2) * 2U);
}

TEST(FindMetric, KnowsWhatIsThereAtOnceAsAWholeAlone) {
  const auto peak = find_metric("device_memory_peak_bytes");
  ASSERT_TRUE(peak);
  EXPECT_EQ(peak->kind, Kind::count);
  EXPECT_EQ(peak->unit, Unit::bytes);
  EXPECT_EQ(peak->scope, Scope::whole_run);
  for (const char* scoped : {"device_memory_peak_bytes_per_token", "weights_bytes_fixed",
                             "device_memory_peak_bytes_at_8"}) {
    EXPECT_FALSE(find_metric(scoped)) << scoped;
  }
  EXPECT_TRUE(find_metric("device_memory_bytes_per_token")) << "it grows";
}

TEST(FindMetric, KnowsTimesAndCallsOfAnyOpAndKernel) {
  const auto time = find_metric("op:lm_head");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->kind, Kind::time);
  EXPECT_EQ(time->unit, Unit::seconds);
  EXPECT_EQ(display_name(*time), "time of lm_head");
  const auto calls = find_metric("kernel_calls:aten::mm_per_token");
  ASSERT_TRUE(calls);
  EXPECT_EQ(calls->kind, Kind::count);
  EXPECT_EQ(display_name(*calls), "calls of aten::mm_per_token") << "as the engine calls it";
  EXPECT_TRUE(is_op_or_kernel_metric("op_calls:gemv_*"));
  for (const char* bad : {"op:", "kernel_calls:a b", "op_call:a", "op"}) {
    EXPECT_FALSE(find_metric(bad)) << bad;
  }
  EXPECT_FALSE(find_metric("op:" + std::string(101, 'x')));
}

TEST(FindMetric, KnowsCountsOfARoleOfProcesses) {
  const auto syncs = find_metric(role_metric_name("rank", "syncs_per_token"));
  ASSERT_TRUE(syncs);
  EXPECT_EQ(syncs->name, "rank:syncs_per_token");
  EXPECT_EQ(syncs->base, "syncs");
  EXPECT_EQ(syncs->scope, Scope::per_token);
  EXPECT_EQ(display_name(*syncs), "rank syncs/token");
  EXPECT_TRUE(find_metric("rank:copies_at_8"));
  EXPECT_EQ(display_name(*find_metric("rank:processes")), "rank processes");
  for (const char* bad : {"rank:decode_tokens_per_second", "rank:rank:syncs_per_token",
                          "rank:", ":syncs_per_token", "Rank:syncs_per_token"}) {
    EXPECT_FALSE(find_metric(bad)) << bad;
  }
}

TEST(FindMetric, KnowsCommandBuffersByTheirLabel) {
  const auto time = find_metric("buffer:layer.attn_moe_ffn");
  const auto count = find_metric("buffers:layer.attn_moe_ffn");
  ASSERT_TRUE(time && count);
  EXPECT_EQ(time->kind, Kind::time);
  EXPECT_EQ(display_name(*time), "time of buffers layer.attn_moe_ffn");
  EXPECT_EQ(count->kind, Kind::count);
  EXPECT_EQ(display_name(*count), "buffers layer.attn_moe_ffn");
  EXPECT_EQ(buffer_label("buffers:layer"), "layer");
  EXPECT_EQ(buffer_label("buffer:layer"), std::nullopt);
}

TEST(WorkName, IsFitForAMetricWhateverTheNameIs) {
  const std::string hostile = "void f<int>(a b)\n\x1b\xff" + std::string(300, 'y');
  const std::string name = work_name("kernel_calls:", hostile);
  EXPECT_TRUE(find_metric(name)) << name;
  EXPECT_EQ(name.substr(0, 32), "kernel_calls:void_f<int>(a_b)%0A");
}

TEST(WorkName, KeepsNamesApartThatDiffer) {
  const std::string long_name(150, 'y');
  const std::string names[] = {"größe",       "grüße",       "gr\xF6\xDF\x65", "gr\xFC\xDF\x65",
                               "grö\u00A0ße", "grö\u202Eße", long_name,        long_name + "z",
                               "グラフ",      "графа"};
  std::set<std::string> seen;
  for (const std::string& name : names) {
    const std::string metric = work_name("op:", name);
    EXPECT_TRUE(find_metric(metric)) << metric;
    EXPECT_TRUE(seen.insert(metric).second) << metric;
  }
  EXPECT_TRUE(seen.contains("op:größe"));
}

TEST(FindMetric, ReadsCountsAtOneLengthAndRefusesLookAlikes) {
  const auto metric = find_metric("syncs_at_8");
  ASSERT_TRUE(metric);
  EXPECT_EQ(metric->scope, Scope::at_length);
  EXPECT_EQ(metric->length, 8);
  EXPECT_EQ(metric->base, "syncs");
  for (const char* bad :
       {"syncs_at_0", "syncs_at_08", "syncs_at_", "syncs_at_-1", "syncs_at_9999999999",
        "wishes_at_8", "_at_8", "syncs", "decode_tokens_per_second_at_8"}) {
    EXPECT_FALSE(find_metric(bad)) << bad;
  }
}

TEST(FindMetric, GivesThroughputAndTimesTheirDirections) {
  EXPECT_EQ(find_metric("decode_tokens_per_second")->better, Better::higher);
  EXPECT_EQ(find_metric("load_seconds")->better, Better::lower);
  EXPECT_EQ(find_metric("copied_bytes_per_token")->unit, Unit::bytes);
}

TEST(FindMetric, KnowsWhatIsFittedOverDepths) {
  struct Case {
    const char* name;
    const char* base;
    Scope scope;
    const char* label;
  };
  const std::vector<Case> cases{
      {"dispatches_at_zero_context", "dispatches", Scope::at_zero_context,
       "dispatches at zero context"},
      {"copied_bytes_per_context_token", "copied_bytes", Scope::per_context_token,
       "copied bytes/context token"},
      {"time_per_output_token_seconds_at_zero_context", "time_per_output_token_seconds",
       Scope::at_zero_context, "token time at zero context"},
      {"time_per_prompt_token_seconds_per_context_token", "time_per_prompt_token_seconds",
       Scope::per_context_token, "prompt time/context token"},
  };
  for (const Case& c : cases) {
    const auto metric = find_metric(c.name);
    ASSERT_TRUE(metric) << c.name;
    EXPECT_EQ(metric->base, c.base);
    EXPECT_EQ(metric->scope, c.scope);
    EXPECT_EQ(display_name(*metric), c.label);
    EXPECT_EQ(metric->better, Better::lower);
    EXPECT_TRUE(is_over_context(*metric));
  }
  EXPECT_FALSE(is_over_context(*find_metric("dispatches_per_token")));
  EXPECT_FALSE(find_metric("instructions_per_context_token")) << "they only nearly repeat";
}

TEST(ParseScale, TurnsEnginesUnitsIntoBaseUnits) {
  struct Case {
    const char* text;
    Unit unit;
    double factor;
  };
  for (const Case& c : {Case{"ms", Unit::seconds, 1e-3},
                        {"us", Unit::seconds, 1e-6},
                        {"MiB", Unit::bytes, 1048576},
                        {"MB", Unit::bytes, 1e6},
                        {"tok/s", Unit::tokens_per_second, 1},
                        {"", Unit::count, 1}}) {
    const auto scale = parse_scale(c.text);
    ASSERT_TRUE(scale) << c.text;
    EXPECT_EQ(scale->unit, c.unit) << c.text;
    EXPECT_EQ(scale->factor, c.factor) << c.text;
  }
  EXPECT_FALSE(parse_scale("parsec"));
}

TEST(Durations, AndSizesReadAsConfigsWriteThem) {
  EXPECT_EQ(*parse_duration_seconds("120s"), 120);
  EXPECT_EQ(*parse_duration_seconds("10m"), 600);
  EXPECT_EQ(*parse_duration_seconds("500ms"), 0.5);
  EXPECT_EQ(*parse_duration_seconds("1m21s"), 81);
  EXPECT_EQ(*parse_duration_seconds("1 m 21 s"), 81) << "as it is printed";
  EXPECT_EQ(*parse_bytes("16MiB"), 16 << 20);
  EXPECT_EQ(*parse_bytes("4096"), 4096);
  for (const char* bad : {"", "s", "12", "-3s", "1 fortnight", "1.2.3s"}) {
    EXPECT_FALSE(parse_duration_seconds(bad)) << bad;
  }
  for (const char* bad : {"", "MiB", "3s", "-1", "99999999999GB"})
    EXPECT_FALSE(parse_bytes(bad)) << bad;
}

TEST(Show, PutsValuesInUnitsPeopleRead) {
  const auto shown = [](const char* name, double value) { return show(*find_metric(name), value); };
  EXPECT_EQ(shown("dispatches_per_token", 65), "65");
  EXPECT_EQ(shown("decode_tokens_per_second", 28.62), "28.6");
  EXPECT_EQ(shown("decode_tokens_per_second", 1712.4), "1712");
  EXPECT_EQ(shown("time_to_first_token_seconds", 0.0123), "12.3 ms");
  EXPECT_EQ(shown("peak_rss_bytes", 300.0 * 1048576), "300 MiB");
  EXPECT_EQ(show_duration(41.4), "41 s");
  EXPECT_EQ(show_duration(72), "1 m 12 s");
}

TEST(Show, PutsTimesInTheUnitThatFitsThem) {
  const struct {
    double seconds;
    const char* text;
  } cases[] = {{1234.4, "1234 s"},    {7.631, "7.63 s"},   {0.9996, "1.00 s"}, {0.2, "200 ms"},
               {9.996e-4, "1.00 ms"}, {3.04e-7, "304 ns"}, {0, "0.00 us"}};
  for (const auto& entry : cases) EXPECT_EQ(show_seconds(entry.seconds), entry.text);
}

TEST(Show, PutsASignBeforePercent) {
  const struct {
    double ratio;
    const char* text;
  } cases[] = {{-0.024, "\u22122.4 %"}, {0.1846, "+18.5 %"}, {0.0, "0.0 %"},
               {-0.0001, "0.0 %"},      {2.5, "+250 %"},     {INFINITY, "+\u221e %"}};
  for (const auto& entry : cases) EXPECT_EQ(signed_percent(entry.ratio), entry.text);
}

}  // namespace metric_test
}  // namespace weir::unit
