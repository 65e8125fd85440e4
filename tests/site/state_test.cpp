// Tests of the state of a series.
#include <gtest/gtest.h>

#include "gate/site/parts.hpp"

namespace weir::site {
namespace state_test {

history::Series make_series(std::vector<double> values) {
  history::Series series;
  series.metric.name = "decode_tokens_per_second";
  for (const double value : values) {
    history::SeriesPoint point;
    point.value = value;
    point.nature = profile::Nature::sampled;
    series.points.push_back(std::move(point));
  }
  return series;
}

TEST(SeriesState, IsSteadyOnlyWhileTheLastNightsLieInTheBandOfThoseBefore) {
  std::vector<double> values;
  for (int i = 0; i < 30; ++i) values.push_back(100 + (i * 7 % 11) * 0.1);
  EXPECT_EQ(series_state(make_series(values), {}), "steady");
  values[29] = 80;  // one bad night
  EXPECT_EQ(series_state(make_series(values), {}), "steady");
  values[28] = 80;
  EXPECT_EQ(series_state(make_series(values), {}), "unclear");
  EXPECT_EQ(series_state(make_series({100, 101, 80, 80}), {}), "steady")
      << "too few to have a band";
}

}  // namespace state_test
}  // namespace weir::site
