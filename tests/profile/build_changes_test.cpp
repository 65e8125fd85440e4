// What differs between the GPU code of two builds, and what is a regression in it.
#include "gate/profile/build_changes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::profile {
namespace build_changes_test {

GpuKernel kernel(const std::string& symbol, std::uint64_t digest, std::uint32_t spilled,
                 std::uint32_t code_bytes = 1000) {
  GpuKernel kernel{"gfx942", symbol, digest, {}};
  kernel.figures.registers = 128;
  kernel.figures.spilled_vgprs = spilled;
  kernel.figures.spilled_sgprs = 2;
  kernel.figures.occupancy = 4;
  kernel.figures.code_bytes = code_bytes;
  return kernel;
}

TargetChanges compare(std::vector<GpuKernel> base, std::vector<GpuKernel> now) {
  GpuBuild before{std::move(base)}, after{std::move(now)};
  const std::vector<TargetChanges> all = compare_builds(before, after);
  EXPECT_EQ(all.size(), 1U);
  return all.empty() ? TargetChanges() : all.front();
}

std::vector<std::string> symbols_of(const TargetChanges& changes) {
  std::vector<std::string> symbols;
  for (const auto& difference : changes.differences) symbols.push_back(difference.symbol);
  return symbols;
}

TEST(BuildChanges, PutWhatGotWorseFirst) {
  const TargetChanges changes =
      compare({kernel("less", 1, 9), kernel("more", 2, 0), kernel("same", 3, 7),
               kernel("gone", 4, 99), kernel("code", 5, 0)},
              {kernel("less", 11, 0), kernel("more", 12, 51), kernel("same", 3, 7),
               kernel("new", 14, 60), kernel("code", 15, 0)});
  EXPECT_THAT(symbols_of(changes), testing::ElementsAre("new", "more", "code", "gone", "less"));
  EXPECT_EQ(changes.unchanged, 1U);
  EXPECT_EQ(changes.base.spilled_vgprs, 115U);
  EXPECT_EQ(changes.now.spilling, 3U);
}

TEST(BuildChanges, KeepStubsApart) {
  constexpr std::uint32_t k_stub = 64;
  const TargetChanges changes =
      compare({kernel("filled", 1, 0, k_stub), kernel("emptied", 2, 0),
               kernel("both", 3, 0, k_stub), kernel("gone", 4, 0, k_stub)},
              {kernel("filled", 11, 300), kernel("emptied", 12, 0, k_stub),
               kernel("both", 13, 0, k_stub), kernel("new", 14, 0, k_stub)});
  ASSERT_EQ(changes.differences.size(), 4U);
  EXPECT_EQ(changes.unchanged, 1U) << "two stubs are the same";
  for (const KernelDifference& difference : changes.differences) {
    SCOPED_TRACE(difference.symbol);
    EXPECT_EQ(difference.is_stub, difference.symbol == "gone" || difference.symbol == "new");
    EXPECT_FALSE(breaks(difference, {"spilled_registers", 0})) << "is no regression";
  }
  EXPECT_EQ(changes.differences.front().state, KernelState::compiled);
}

TEST(BuildChanges, TakeTheWorstOfSeveralPiecesUnderOneName) {
  const TargetChanges changes =
      compare({kernel("k", 1, 0), kernel("k", 2, 5)}, {kernel("k", 2, 5), kernel("k", 3, 8)});
  ASSERT_EQ(changes.differences.size(), 1U);
  EXPECT_EQ(changes.differences[0].base.spilled_vgprs, 5U);
  EXPECT_EQ(changes.differences[0].now.spilled_vgprs, 8U);
  EXPECT_EQ(compare({kernel("k", 1, 0), kernel("k", 1, 0)}, {kernel("k", 1, 0)}).unchanged, 1U)
      << "the same code twice is the same code";
}

TEST(BuildChanges, BreakLimitsOnKernelsOfBothBuilds) {
  KernelDifference difference{"k", KernelState::changed, true, false, {}, {}};
  difference.base = {.registers = 100, .spilled_vgprs = 0, .spilled_sgprs = 4, .occupancy = 4};
  difference.now = {.registers = 110, .spilled_vgprs = 3, .spilled_sgprs = 0, .occupancy = 3};
  EXPECT_TRUE(breaks(difference, {"spilled_vgprs", 0}));
  EXPECT_FALSE(breaks(difference, {"spilled_vgprs", 3}));
  EXPECT_FALSE(breaks(difference, {"spilled_registers", 0})) << "4 → 3 in all";
  EXPECT_TRUE(breaks(difference, {"registers", 0.09, true}));
  EXPECT_FALSE(breaks(difference, {"registers", 0.1, true}));
  EXPECT_TRUE(breaks(difference, {"occupancy", 0, false, true}));
  EXPECT_FALSE(breaks(difference, {"shared_memory_bytes", 0})) << "neither side states it";
  difference.state = KernelState::added;
  EXPECT_FALSE(breaks(difference, {"spilled_vgprs", 0}));
}

TEST(BuildChanges, FindTargetsByNameOrGlob) {
  const std::vector<std::string> none, name{"gfx90a"}, glob{"sm_*"}, whole{"gfx90a:xnack-"};
  EXPECT_TRUE(is_wanted_target("gfx90a:xnack-", none));
  EXPECT_TRUE(is_wanted_target("gfx90a:xnack-", name));
  EXPECT_TRUE(is_wanted_target("gfx90a:xnack-", whole));
  EXPECT_FALSE(is_wanted_target("gfx90a", whole));
  EXPECT_TRUE(is_wanted_target("sm_90", glob));
  EXPECT_FALSE(is_wanted_target("gfx942", glob));
}

}  // namespace build_changes_test
}  // namespace weir::profile
