// Tests limits on the costs of single kernels, by the compiler of their device.
#include <gmock/gmock.h>

#include "build.hpp"

namespace weir::verdict {
namespace kernel_costs_test {

using testing::Contains;
using testing::HasSubstr;
using namespace test;

constexpr const char* k_mesa = "radv-navi31, Mesa 25.0.7";

struct Code {
  std::string kernel, hash;
  std::map<std::string, std::int64_t> costs;
};

profile::Profile profile_with(const std::vector<Code>& codes,
                              const std::string& compiler = k_mesa) {
  profile::Profile profile = reference();
  profile.codes.emplace();
  for (const Code& code : codes) {
    profile.codes->counts[code.kernel + "@" + code.hash] = 4;
    profile.code_facts[code.hash].costs = code.costs;
  }
  profile.compiler = compiler;
  return profile;
}
const std::string k_a = "00000000000000a1", k_b = "00000000000000b1", k_c = "00000000000000c1";

std::vector<LimitEntry> limits() {
  LimitEntry spills = entry({"spilled_registers:*", "registers:flash"});
  spills.max_increase = Amount{0, false};
  LimitEntry occupancy = entry({"occupancy:*"});
  occupancy.max_decrease = Amount{0.25, true};
  return {spills, occupancy};
}

TEST(KernelCosts, AreLimitedByTheWorstCodeOfAName) {
  struct Case {
    std::vector<Code> base, now;
    std::string metric;
    Outcome verdict;
  };
  const Case cases[] = {
      {{{"flash", k_a, {{"spilled_registers", 0}}}},
       {{"flash", k_b, {{"spilled_registers", 95}}}},
       "spilled_registers:flash",
       Outcome::fail},
      {{{"flash", k_a, {{"occupancy", 32}}}},
       {{"flash", k_b, {{"occupancy", 24}}}},
       "occupancy:flash",
       Outcome::pass},
      {{{"flash", k_a, {{"occupancy", 32}}}},
       {{"flash", k_b, {{"occupancy", 23}}}},
       "occupancy:flash",
       Outcome::fail},
      // Two codes under one name: the fewest waves and the most registers count.
      {{{"flash", k_a, {{"occupancy", 32}}}, {"flash", k_b, {{"occupancy", 10}}}},
       {{"flash", k_c, {{"occupancy", 16}}}, {"flash", k_b, {{"occupancy", 10}}}},
       "occupancy:flash",
       Outcome::pass},
      {{{"flash", k_a, {{"registers", 24}}}, {"flash", k_b, {{"registers", 84}}}},
       {{"flash", k_a, {{"registers", 24}}}, {"flash", k_c, {{"registers", 85}}}},
       "registers:flash",
       Outcome::fail},
      // A kernel that the base does not have is new.
      {{{"matmul", k_a, {{"registers", 24}}}},
       {{"flash", k_b, {{"spilled_registers", 3}}}},
       "spilled_registers:flash",
       Outcome::new_},
  };
  for (const Case& test_case : cases) {
    const CellVerdict cell =
        judge(profile_with(test_case.now), {stored(profile_with(test_case.base))}, limits());
    EXPECT_EQ(metric(cell, test_case.metric).verdict, test_case.verdict)
        << test_case.metric << metric(cell, test_case.metric).reason;
  }
}

TEST(KernelCosts, ThatNoLimitNamesAreNotListed) {
  const auto profile = profile_with({{"flash", k_a, {{"registers", 24}, {"occupancy", 16}}}});
  for (const Judgement& judgement : judge(profile, {stored(profile)}).judgements) {
    EXPECT_THAT(judgement.metric.name, testing::Not(HasSubstr(":")));
  }
  EXPECT_EQ(metric(judge(profile, {stored(profile)}, limits()), "registers:matmul").metric.name,
            "");
}

TEST(KernelCosts, ByAnotherCompilerAreNew) {
  const std::vector<Code> base{{"flash", k_a, {{"spilled_registers", 0}}}};
  const std::vector<Code> now{{"flash", k_a, {{"spilled_registers", 95}}}};
  const CellVerdict cell =
      judge(profile_with(now, "radv-navi31, Mesa 22.3.6"), {stored(profile_with(base))}, limits());
  const Judgement& judgement = metric(cell, "spilled_registers:flash");
  EXPECT_EQ(judgement.verdict, Outcome::new_);
  EXPECT_THAT(judgement.reason,
              HasSubstr("by radv-navi31, Mesa 25.0.7, this run by radv-navi31, Mesa "
                        "22.3.6"));
}

TEST(KernelCosts, ThatNobodyToldAreNotJudgedAndSaidSo) {
  const auto base = profile_with({{"flash", k_a, {{"spilled_registers", 0}}}});
  const CellVerdict cell = judge(profile_with({{"flash", k_a, {}}}, ""), {stored(base)}, limits());
  // A missing figure of a kernel that still runs is an error. A limit that matches nothing is
  // named.
  EXPECT_EQ(metric(cell, "spilled_registers:flash").verdict, Outcome::error);
  EXPECT_EQ(cell.verdict, Outcome::error);
  const CellVerdict of_others =
      judge(profile_with({{"flash", k_a, {{"registers", 8}}}}), {stored(base)}, limits());
  EXPECT_THAT(of_others.warnings,
              Contains(HasSubstr("not judged, no compiler reported it of a kernel here")));
}

}  // namespace kernel_costs_test
}  // namespace weir::verdict
