// Tests the difference of two readings of one process.
#include <gmock/gmock.h>

#include "gate/profile/counts.hpp"

namespace weir::profile {
namespace between_test {

using testing::HasSubstr;

// Builds counts of a token's graph and a prompt's graph, computed `tokens` and `prompts` times.
ProbeCounts counted(std::int64_t tokens, std::int64_t prompts) {
  ProbeCounts probe;
  probe.probe = "ggml";
  probe.counts = {{"graphs", tokens + prompts}, {"cpu_ops", 0}};
  const auto add = [&](std::int64_t rows, std::int64_t computed) {
    if (computed == 0) return;  // probes leave out graphs that were not computed
    const auto place = static_cast<std::int64_t>(probe.graphs.size());
    probe.graphs.push_back({rows, computed, 2, 0, 1, {{"tensor_sets", 3 * computed}}});
    probe.ops.push_back({"ADD", "f32", std::to_string(rows), "CPU", true, place, computed});
    probe.ops.push_back({"MUL", "f32", std::to_string(rows), "CPU", true, place, computed});
  };
  add(1, tokens);
  add(7, prompts);
  return probe;
}

TEST(Between, IsTheSecondReadingLessTheFirst) {
  const std::vector<ProbeCounts> before{counted(3, 1)}, after{counted(11, 2)};
  const auto between = counts_between(before, after);
  ASSERT_TRUE(between) << between.error().message;
  EXPECT_EQ(*between, std::vector{counted(8, 1)});
}

TEST(Between, LeavesOutKindsOfGraphThatWereNotComputedAndFindsThoseThatRemain) {
  const std::vector<ProbeCounts> before{counted(3, 1)}, after{counted(3, 3)};
  const auto between = counts_between(before, after);
  ASSERT_TRUE(between) << between.error().message;
  // The token's graph is first in both readings, so the prompt's takes its place.
  EXPECT_EQ(*between, std::vector{counted(0, 2)});
}

// Shapes grow with the context, and a long list joins them in one entry. The graph keeps its kind.
TEST(Between, FindsAGraphWhoseOpsComeInOtherShapes) {
  const auto attends = [](std::vector<std::pair<std::string, std::int64_t>> shapes) {
    ProbeCounts probe;
    probe.probe = "ggml";
    probe.graphs = {{1, 0, 2, 0, 1, {}}};
    for (const auto& [shape, count] : shapes) {
      probe.ops.push_back({"ATTEND", "f32", shape, "Vulkan0", false, 0, count});
      probe.graphs[0].computed += count;
    }
    probe.ops.push_back({"ADD", "f32", "64", "Vulkan0", false, 0, probe.graphs[0].computed});
    probe.counts = {{"ops", 2 * probe.graphs[0].computed}, {"cpu_ops", 0}};
    return probe;
  };
  const ProbeCounts before = attends({{"256", 1}, {"512", 2}});
  const struct {
    const char* what;
    ProbeCounts after, between;
  } cases[] = {
      {"another shape", attends({{"256", 1}, {"512", 4}, {"768", 5}}),
       attends({{"512", 2}, {"768", 5}})},
      {"all shapes as one", attends({{"*", 70}}), attends({{"*", 67}})},
  };
  for (const auto& c : cases) {
    const auto between = counts_between(std::vector{before}, std::vector{c.after});
    ASSERT_TRUE(between) << c.what << ": " << between.error().message;
    EXPECT_EQ(between->at(0).graphs, c.between.graphs) << c.what;
    EXPECT_THAT(between->at(0).ops, testing::UnorderedElementsAreArray(c.between.ops)) << c.what;
    EXPECT_EQ(between->at(0).counts, c.between.counts) << c.what;
  }
}

TEST(Between, KeepsCountsThatStayedAsZeroAndDropsKernelsThatDidNotRun) {
  ProbeCounts before, after;
  before.probe = after.probe = "vulkan";
  before.counts = {{"syncs", 4}, {"dispatches", 10}};
  before.kernels = {{"load", 6}, {"add", 4}};
  before.transfers = {{"set", "program", "Vulkan0", 2, 100}, {"get", "Vulkan0", "program", 1, 8}};
  after.counts = {{"syncs", 4}, {"dispatches", 15}, {"copies", 2}};
  after.kernels = {{"load", 6}, {"add", 8}, {"mul", 1}};
  after.transfers = {{"set", "program", "Vulkan0", 2, 100}, {"get", "Vulkan0", "program", 3, 24}};
  const auto between = counts_between(std::vector{before}, std::vector{after});
  ASSERT_TRUE(between) << between.error().message;
  const ProbeCounts& probe_counts = between->at(0);
  EXPECT_EQ(probe_counts.counts,
            (std::map<std::string, std::int64_t>{{"syncs", 0}, {"dispatches", 5}, {"copies", 2}}));
  EXPECT_EQ(probe_counts.kernels, (std::map<std::string, std::int64_t>{{"add", 4}, {"mul", 1}}));
  EXPECT_EQ(probe_counts.transfers,
            (std::vector<TransferCount>{{"get", "Vulkan0", "program", 2, 16}}));
}

TEST(Between, IsAllOfAProbeThatHadSeenNothingBefore) {
  const auto between = counts_between({}, std::vector{counted(2, 1)});
  ASSERT_TRUE(between) << between.error().message;
  EXPECT_EQ(*between, std::vector{counted(2, 1)});
}

TEST(Between, RefusesCountsThatWentBack) {
  const auto between = counts_between(std::vector{counted(5, 1)}, std::vector{counted(4, 1)});
  ASSERT_FALSE(between);
  EXPECT_THAT(between.error().message, HasSubstr("the ggml probe's count of graphs went back"));
}

}  // namespace between_test
}  // namespace weir::profile
