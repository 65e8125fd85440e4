// Metrics that the end of their name declares.
#include "gate/unit/declared_metric.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"

namespace weir::unit {
namespace declared_metric_test {

TEST(DeclaredMetric, HasTheUnitDirectionAndKindThatItsNameEndsIn) {
  const struct {
    const char* name;
    const char* metric;
  } cases[] = {
      {"images_per_second", "count higher time 1"},
      {"draft_tokens_per_second", "tok/s higher time 1"},
      {"ok_requests_per_second", "requests/s higher time 1"},
      {"start_seconds", "s lower time 1"},
      {"start_ms", "s lower time 0.001"},
      {"cache_bytes", "B lower memory 1"},
      {"cache_mb", "B lower memory 1000000"},
      {"cache_gb", "B lower memory 1000000000"},
      {"cache_mib", "B lower memory 1048576"},
      {"hits_count", "count lower count 1"},
      {"hit_rate", "ratio higher quality 1"},
      {"overlap_share", "ratio higher quality 1"},
  };
  for (const auto& c : cases) {
    const auto declared = metric_of_name(c.name);
    ASSERT_TRUE(declared) << c.name;
    const Metric& metric = declared->metric;
    EXPECT_EQ(metric.name, c.name);
    EXPECT_EQ(fmt::format("{} {} {} {}", to_string(metric.unit), to_string(metric.better),
                          to_string(metric.kind), declared->scale.factor),
              c.metric)
        << c.name;
  }
}

TEST(DeclaredMetric, ShowsBytesInTheUnitThatWasWritten) {
  const auto heap = metric_of_name("heap_mb");
  ASSERT_TRUE(heap);
  EXPECT_EQ(show(heap->metric, 120e6), "120 MB");
  EXPECT_EQ(show(metric_of_name("heap_mib")->metric, 120 * 1048576.0), "120 MiB");
  EXPECT_EQ(show(metric_of_name("heap_gb")->metric, 1.5e9), "1.50 GB");
  EXPECT_EQ(show(metric_of_name("heap_bytes")->metric, 120e6), "114 MiB");
  Metric named = custom_metric("heap", Kind::memory, Unit::bytes, Better::lower);
  named.shown_in = "kB";
  EXPECT_EQ(show(named, 2500), "2.50 kB");
  Json json;
  MetricField{named, "no metric"}.put(json);
  const auto read = metric_from_json(json);
  ASSERT_TRUE(read);
  EXPECT_EQ(show(*read, 2500), "2.50 kB");
}

TEST(DeclaredMetric, IsNoneOfANameWhoseEndSaysNothing) {
  for (const char* name : {"score", "ms", "seconds_total", "", "decode_token_per_second"})
    EXPECT_FALSE(metric_of_name(name)) << name;
}

TEST(DeclaredMetric, IsSuggestedWhereTheNameIsNearOrABaseOfCounts) {
  EXPECT_NE(suggest_metric("dispatches").find("dispatches_per_token"), std::string::npos);
  EXPECT_NE(suggest_metric("decode_tokens_per_secnd").find("decode_tokens_per_second"),
            std::string::npos);
  EXPECT_EQ(suggest_metric("score"), "");
}

}  // namespace declared_metric_test
}  // namespace weir::unit
