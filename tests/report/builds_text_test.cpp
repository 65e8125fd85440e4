// What `weir kernels OLD NEW` shows.
#include "gate/report/builds_text.hpp"

#include <gtest/gtest.h>

#include "gate/base/json.hpp"

#include "tests/report/support.hpp"

namespace weir::report {
namespace builds_text_test {

using profile::GpuBuild;
using profile::GpuKernel;
using support::expect_golden;

void add(GpuBuild& build, const std::string& symbol, std::uint64_t digest,
         profile::KernelFigures figures) {
  for (const char* target : {"gfx942", "gfx90a"}) {
    build.kernels.push_back(GpuKernel{target, symbol, digest, figures});
  }
}

BuildComparison comparison() {
  GpuBuild base, now;
  const std::string attention = "flash_attn_ext_f16<64, 64, 16, 4, false, false>";
  const auto figures = [](std::uint32_t registers, std::uint32_t spilled, std::uint32_t scratch,
                          std::uint32_t waves, std::uint32_t code_bytes = 9000) {
    return profile::KernelFigures{.registers = registers,
                                  .spilled_vgprs = spilled,
                                  .spilled_sgprs = 26,
                                  .scratch_bytes = scratch,
                                  .occupancy = waves,
                                  .code_bytes = code_bytes};
  };
  add(base, attention, 1, figures(185, 0, 0, 2));
  add(now, attention, 2, figures(128, 51, 180, 4));
  add(base, "scale\x1b[31m", 3, figures(20, 0, 0, 8));
  add(now, "scale\x1b[31m", 4, figures(20, 0, 0, 8));
  add(base, "rope", 5, figures(20, 0, 0, 8));
  add(now, "rope", 5, figures(20, 0, 0, 8));
  add(base, "old", 6, figures(20, 0, 0, 8));
  add(now, "new", 7, figures(256, 31, 128, 2));
  add(base, "mma", 8, figures(1, 0, 0, 8, 28));
  add(now, "mma", 9, figures(256, 115, 500, 2));
  add(now, "mma_new", 10, figures(1, 0, 0, 8, 28));
  base.kernels.push_back(GpuKernel{"sm_90", "k", 11, {.registers = 40}});
  now.kernels.push_back(GpuKernel{"sm_90", "k", 11, {.registers = 40}});
  BuildComparison comparison{"old.so",
                             "new.so",
                             profile::compare_builds(base, now),
                             {{"spilled_registers", 0}},
                             0,
                             1,
                             [](const std::string& symbol) { return symbol; }};
  return comparison;
}

TEST(BuildsText, ShowsWhatGotWorseFirstAndStubsApart) {
  BuildComparison builds = comparison();
  expect_golden("builds.txt", builds_text(builds, 80, 20));
  expect_golden("builds-top.txt", builds_text(builds, 80, 1));
  expect_golden("builds.json", builds_json(builds).dump(1) + "\n");
  EXPECT_EQ(count_broken(builds), 2U);
  builds.limits = {{"occupancy", 0, false, true}};
  EXPECT_EQ(count_broken(builds), 0U);
}

TEST(BuildsText, OfEqualBuildsIsALine) {
  BuildComparison builds = comparison();
  builds.targets = {builds.targets.back()};
  builds.limits.clear();
  builds.unread_now = 0;
  EXPECT_EQ(builds_text(builds, 80, 20), "sm_90  1 kernel: the same code\n");
}

}  // namespace builds_text_test
}  // namespace weir::report
