// What compiled kernels cost, summed up over a token.
#include <gmock/gmock.h>

#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace kernel_costs_test {

using testing::ElementsAre;
using testing::IsEmpty;

using Costs = std::map<std::string, std::int64_t>;

CodeFacts facts(Costs costs, std::string not_compiled = "") {
  CodeFacts made;
  made.costs = std::move(costs);
  made.not_compiled = std::move(not_compiled);
  return made;
}

// Two kernels a token, in 96 and 4 groups.
Profile with(std::map<std::string, CodeFacts> codes, Rational groups = 96) {
  Profile made;
  made.compiler = "radv-navi31, Mesa 25.0.7";
  made.code_groups.emplace();
  made.code_groups->scope = unit::Scope::per_token;
  made.code_groups->counts = {{"flash@00000000000000a1", groups},
                              {"matmul@00000000000000b1", 4},
                              {"unused@00000000000000c1", 0}};
  made.codes = made.code_groups;
  made.codes->counts["flash@00000000000000a1"] = 4;
  made.code_facts = std::move(codes);
  return made;
}
const std::string k_flash = "00000000000000a1", k_matmul = "00000000000000b1";

std::map<std::string, Rational> sums(Profile profile) {
  add_kernel_costs(profile);
  std::map<std::string, Rational> made;
  for (const auto& [name, measured] : profile.metrics) {
    EXPECT_EQ(measured.source, profile.compiler);
    made[name] = *measured.exact;
  }
  return made;
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
  for (const Case& one : cases) {
    EXPECT_EQ(sums(with({{k_flash, facts(one.flash)}, {k_matmul, facts(one.matmul)}})), one.sums)
        << one.what;
  }
}

TEST(KernelCosts, AreNotSummedWithoutACompilerOrOverGroupsThatVary) {
  const std::map<std::string, CodeFacts> codes{
      {k_flash, facts({{"throughput_cycles", 1}, {"waves", 1}})},
      {k_matmul, facts({{"throughput_cycles", 1}, {"waves", 1}})}};
  EXPECT_EQ(sums(with(codes, 6)).at("estimated_cycles_per_token"), 10);
  // Called, and nobody knows in how many groups: an indirect dispatch.
  EXPECT_THAT(sums(with(codes, 0)), IsEmpty());
  Profile nobody = with(codes), varying = with(codes), ungrouped = with(codes);
  nobody.compiler.clear();
  varying.code_groups->varies = true;
  ungrouped.code_groups.reset();
  for (const Profile& one : {nobody, varying, ungrouped}) EXPECT_THAT(sums(one), IsEmpty());
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
