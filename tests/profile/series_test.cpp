// Tests that counts by name take room for what runs list, not for each name in each run.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/profile/marginal.hpp"

namespace weir::profile {
namespace series_test {

std::string describe(const std::optional<Line>& line) {
  return line ? line->slope.str() + " n + " + line->intercept.str() : "no line";
}

TEST(Series, HaveTheLineThroughAllRunsWhereSomeDoNotListTheName) {
  std::mt19937 random(5);
  int lines = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 1 + random() % 6; i > 0; --i) {
      lengths.push_back(1 + static_cast<std::int64_t>(random() % 3));
    }
    const std::int64_t slope = static_cast<std::int64_t>(random() % 3) - 1;
    std::vector<LengthCount> points;
    RunCounts counts;
    for (std::size_t run = 0; run < lengths.size(); ++run) {
      const std::int64_t count = random() % 5 == 0 ? 7 : slope * (lengths[run] - 2);
      points.push_back({lengths[run], count});
      // A run that counted 0 may list it or not.
      if (count != 0 || random() % 2 == 0) counts.push_back({run, count});
    }
    const auto line = exact_line(points);
    lines += line ? 1 : 0;
    EXPECT_EQ(describe(exact_line(RunLengths(lengths), counts)), describe(line));
  }
  EXPECT_GT(lines, 300);
}

TEST(Series, OfManyNamesInOneOfManyRunsAreFitted) {
  constexpr std::size_t k_runs = 5'000, k_names = 50'000;  // 4 GB of counts, if each were kept
  std::vector<std::int64_t> lengths;
  for (std::size_t run = 0; run < k_runs; ++run) {
    lengths.push_back(static_cast<std::int64_t>(run + 1));
  }
  KernelSeries series{RunLengths(lengths), {}};
  for (std::size_t name = 0; name < k_names; ++name) {
    add_count(series.counts[std::to_string(name)], k_runs - 1, 3);
  }
  const KernelFit fit = fit_kernels(series, Sweep::tokens);
  EXPECT_EQ(fit.set.scope, unit::Scope::at_length);
  EXPECT_EQ(fit.set.length, 5'000);
  EXPECT_EQ(fit.set.counts.size(), k_names);
  EXPECT_FALSE(fit.set.runs_disagree);
}

TEST(Series, ThatSomeRunsOfALengthDoNotListDisagree) {
  KernelSeries series{RunLengths({4, 4, 8}), {}};
  add_count(series.counts["a"], 0, 5);
  add_count(series.counts["a"], 2, 5);
  const KernelFit fit = fit_kernels(series, Sweep::tokens);
  EXPECT_TRUE(fit.set.runs_disagree);
  EXPECT_EQ(fit.set.counts.at("a"), Rational(5)) << "at the longest";
}

}  // namespace series_test
}  // namespace weir::profile
