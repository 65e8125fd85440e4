// Costs of compiled kernels, summed over a token.
#include <gmock/gmock.h>

#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace kernel_costs_test {

using testing::ElementsAre;
using testing::IsEmpty;

using Costs = std::map<std::string, std::int64_t>;

CodeFacts facts(Costs costs, std::string not_compiled = "") {
  CodeFacts code_facts;
  code_facts.costs = std::move(costs);
  code_facts.not_compiled = std::move(not_compiled);
  return code_facts;
}

// Builds a profile with two kernels a token, in 96 and 4 groups.
Profile with(std::map<std::string, CodeFacts> codes, Rational groups = 96) {
  Profile profile;
  profile.compiler = "radv-navi31, Mesa 25.0.7";
  profile.code_groups.emplace();
  profile.code_groups->scope = unit::Scope::per_token;
  profile.code_groups->counts = {{"flash@00000000000000a1", groups},
                                 {"matmul@00000000000000b1", 4},
                                 {"unused@00000000000000c1", 0}};
  profile.codes = profile.code_groups;
  profile.codes->counts["flash@00000000000000a1"] = 4;
  profile.code_facts = std::move(codes);
  return profile;
}
const std::string k_flash = "00000000000000a1", k_matmul = "00000000000000b1";

std::map<std::string, Rational> sums(Profile profile) {
  add_kernel_costs(profile);
  std::map<std::string, Rational> result;
  for (const auto& [name, measured] : profile.metrics) {
    EXPECT_EQ(measured.source, profile.compiler);
    result[name] = *measured.exact;
  }
  return result;
}

TEST(KernelCosts, AreSummedOverWavesOfGroupsWhereAllKernelsHaveThem) {
  struct Case {
    const char* what;
    Costs flash, matmul;
    std::map<std::string, Rational> sums;
  };
  const Case cases[] = {
      // 100 * 2 * 96 + 10 * 4
      {"waves of groups",
       {{"throughput_cycles", 100}, {"waves", 2}},
       {{"throughput_cycles", 10}, {"waves", 1}},
       {{"estimated_cycles_per_token", 19'240}}},
      {"one that does not tell its waves",
       {{"throughput_cycles", 100}, {"waves", 2}},
       {{"throughput_cycles", 10}},
       {}},
      {"each cost by itself",
       {{"throughput_cycles", 1},
        {"kernel_instructions", 5},
        {"spilled_registers", 0},
        {"waves", 1}},
       {{"throughput_cycles", 1},
        {"kernel_instructions", 7},
        {"spilled_registers", 3},
        {"waves", 1}},
       {{"estimated_cycles_per_token", 100},
        {"kernel_instructions_per_token", 5 * 96 + 7 * 4},
        {"spilled_registers_per_token", 12}}},
      {"one without it, which would be a sum of others",
       {{"throughput_cycles", 100}, {"spilled_registers", 0}, {"waves", 1}},
       {{"spilled_registers", 0}, {"waves", 1}},
       {{"spilled_registers_per_token", 0}}},
      {"costs that are not summed", {{"registers", 84}}, {{"registers", 108}}, {}},
      {"more than can be held",
       {{"throughput_cycles", INT64_MAX}, {"waves", 1}},
       {{"throughput_cycles", 1}, {"waves", 1}},
       {}},
  };
  for (const Case& entry : cases) {
    EXPECT_EQ(sums(with({{k_flash, facts(entry.flash)}, {k_matmul, facts(entry.matmul)}})),
              entry.sums)
        << entry.what;
  }
}

TEST(KernelCosts, AreNotSummedWithoutACompilerOrOverGroupsThatVary) {
  const std::map<std::string, CodeFacts> codes{
      {k_flash, facts({{"throughput_cycles", 1}, {"waves", 1}})},
      {k_matmul, facts({{"throughput_cycles", 1}, {"waves", 1}})}};
  EXPECT_EQ(sums(with(codes, 6)).at("estimated_cycles_per_token"), 10);
  // An indirect dispatch: the number of groups is unknown.
  EXPECT_THAT(sums(with(codes, 0)), IsEmpty());
  Profile nobody = with(codes), varying = with(codes), ungrouped = with(codes);
  nobody.compiler.clear();
  varying.code_groups->runs_disagree = true;
  ungrouped.code_groups.reset();
  for (const Profile& profile : {nobody, varying, ungrouped}) EXPECT_THAT(sums(profile), IsEmpty());
}

TEST(KernelCosts, ThatCouldNotBeHadAreNotedOnceARun) {
  Profile profile = with({{k_flash, facts({}, "needs VK_KHR_cooperative_matrix")},
                          {k_matmul, facts({{"throughput_cycles", 1}})}});
  add_kernel_costs(profile);
  EXPECT_THAT(profile.metrics, IsEmpty());
  EXPECT_THAT(profile.warnings, IsEmpty()) << "a cell need not say it";
  const std::vector<Profile> cells{profile, profile, with({{k_flash, facts({}, "needs more")}})};
  EXPECT_THAT(
      missing_kernel_costs(cells),
      ElementsAre("kernel costs of 1 of 2 kernels are missing: needs VK_KHR_cooperative_matrix; "
                  "nothing but limits on kernel costs depends on them",
                  "kernel costs of 1 of 2 kernels are missing: needs more; nothing but limits on "
                  "kernel costs depends on them"));
  EXPECT_THAT(missing_kernel_costs({}), IsEmpty());
}

}  // namespace kernel_costs_test
}  // namespace weir::profile
