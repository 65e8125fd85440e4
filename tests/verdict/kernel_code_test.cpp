// Tests the code of kernels: reported by default, judged if a limit asks for it.
#include <gmock/gmock.h>

#include "gate/verdict/waiver.hpp"

#include "build.hpp"

namespace weir::verdict {
namespace kernel_code_test {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;
using namespace test;

using Counts = std::map<std::string, Rational>;
constexpr const char* k_flash = "flash_attn@00000000000000a1";

profile::KernelSet make_set(Counts counts) {
  profile::KernelSet set;
  set.has_names = true;
  set.counts = std::move(counts);
  return set;
}
// 4 calls of one kernel and 29 of another, each with its own code.
Counts calls() {
  return {{k_flash, 4}, {"mul_mat@00000000000000b1", 20}, {"mul_mat@00000000000000b2", 9}};
}
Counts groups() { return {{k_flash, 96}, {"mul_mat@00000000000000b1", 5376}}; }

profile::Profile profile_with(Counts codes, Counts groups) {
  profile::Profile profile = reference();
  profile.codes = make_set(std::move(codes));
  profile.code_groups = make_set(std::move(groups));
  return profile;
}
CellVerdict judged(Counts now, Counts workgroups_now, std::vector<LimitEntry> limits = {}) {
  return judge(profile_with(std::move(now), std::move(workgroups_now)),
               {stored(profile_with(calls(), groups()))}, std::move(limits));
}
std::vector<LimitEntry> exact() {
  LimitEntry entry;
  entry.metrics = {"kernel_code"};
  entry.exact = true;
  return {entry};
}

TEST(KernelCode, OfManyRenamedKernelsOfOneCodeIsPairedInOrder) {
  // Each new kernel is looked for among the removed ones of its code, calls and groups.
  Counts before, now, groups_before, groups_now, kernels_before, kernels_now;
  for (int i = 0; i < 5000; ++i) {
    const std::string number = fmt::format("{:05}", i);
    kernels_before["a" + number] = kernels_now["b" + number] = 2;
    before["a" + number + "@00000000000000a1"] = now["b" + number + "@00000000000000a1"] = 2;
    groups_before["a" + number + "@00000000000000a1"] = i;
    groups_now["b" + number + "@00000000000000a1"] = i;
  }
  profile::Profile base = profile_with(before, groups_before);
  profile::Profile candidate = profile_with(now, groups_now);
  base.kernels = make_set(kernels_before);
  candidate.kernels = make_set(kernels_now);
  const CellVerdict cell = judge(candidate, {stored(base)});
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::pass);
  EXPECT_THAT(cell.judgement_of("kernels").reason,
              HasSubstr("the same code by other names: a00000 is b00000 now"));
}

TEST(KernelCode, IsSilentWhereItIsTheSame) {
  EXPECT_EQ(judged(calls(), groups()).judgement_of("kernel_code").metric.name, "");
  const CellVerdict cell = judged(calls(), groups(), exact());
  EXPECT_EQ(cell.judgement_of("kernel_code").verdict, Outcome::pass);
  EXPECT_EQ(cell.verdict, Outcome::pass);
}

TEST(KernelCode, IsToldInTheFirstLineAndFailsNothingByDefault) {
  Counts changed_calls = calls();
  changed_calls.erase(k_flash);
  changed_calls["flash_attn@00000000000000a2"] = 4;
  Counts changed_groups = groups();
  changed_groups["flash_attn@00000000000000a2"] = 96;
  changed_groups.erase(k_flash);
  const CellVerdict cell = judged(changed_calls, changed_groups);
  EXPECT_EQ(cell.verdict, Outcome::pass);
  EXPECT_EQ(cell.judgement_of("kernel_code").reason, "1 kernel has other code: flash_attn");
  ASSERT_THAT(cell.judgement_of("kernel_code").code, SizeIs(1));
  EXPECT_EQ(cell.judgement_of("kernel_code").code[0].hashes_before,
            std::vector<std::string>{"00000000000000a1"});
  EXPECT_EQ(cell.judgement_of("kernel_code").code[0].hashes_now,
            std::vector<std::string>{"00000000000000a2"});
  EXPECT_FALSE(cell.judgement_of("kernel_code").code[0].workgroups_now);
  EXPECT_THAT(judge_gate({cell}, {}).not_judged, Contains("1 kernel has other code"));
}

TEST(KernelCode, OfOneNameIsAMultiset) {
  Counts changed_calls = calls();
  changed_calls["mul_mat@00000000000000b1"] = 19;
  changed_calls["mul_mat@00000000000000b2"] = 10;
  EXPECT_EQ(judged(changed_calls, groups()).judgement_of("kernel_code").reason,
            "1 kernel has other code: mul_mat");
}

TEST(KernelCode, IsToldWithItsOptionsAndItsCosts) {
  using Options = std::map<std::string, std::string>;
  const auto flash = [](const char* hash, const char* source, Options options, int registers) {
    profile::Profile profile = profile_with({{std::string("flash_attn@") + hash, 4}}, {});
    profile.code_facts[hash] = {source, std::move(options), {{"registers", registers}}, ""};
    profile.compiler = "radv-navi31, Mesa 25.0.7";
    return profile;
  };
  const auto base =
      flash("00000000000000a1", "s1", {{"constant 2", "64"}, {"subgroup size", "64"}}, 84);
  auto now = flash("00000000000000a2", "s2", {{"constant 2", "128"}, {"constant 3", "1"}}, 108);
  const auto changed = [&] {
    return judge(now, {stored(base)}).judgement_of("kernel_code").code.at(0);
  };
  EXPECT_THAT(changed().metadata_differences,
              testing::ElementsAre("constant 2: 64 → 128", "constant 3: none → 1",
                                   "subgroup size: 64 → none", "other instructions"));
  EXPECT_EQ(changed().words(), "constant 2: 64 → 128, registers 84 → 108");
  now.compiler = "radv-navi31, Mesa 22.3.6";  // its figures are not comparable
  EXPECT_EQ(changed().words(), "constant 2: 64 → 128");
  now.code_facts.clear();
  EXPECT_EQ(changed().words(), "other code");
}

TEST(KernelCode, WithOtherNumbersOfGroupsIsToldWithThem) {
  Counts more = groups();
  more[k_flash] = 192;
  const CellVerdict cell = judged(calls(), more);
  EXPECT_EQ(cell.judgement_of("kernel_code").reason,
            "1 kernel has other numbers of groups: flash_attn 96 → 192");
  EXPECT_THAT(judge_gate({cell}, {}).not_judged, testing::Not(Contains(HasSubstr("other code"))));
}

TEST(KernelCode, HasNoGroupsToCompareWhereOneSideHasThemOverAnotherLength) {
  profile::Profile candidate = profile_with(calls(), groups());
  candidate.code_groups->scope = unit::Scope::at_length;
  candidate.code_groups->length = 24;
  EXPECT_EQ(judge(candidate, {stored(profile_with(calls(), groups()))})
                .judgement_of("kernel_code")
                .metric.name,
            "");
}

TEST(KernelCode, FailsWhereALimitHoldsItAndCannotBeWaived) {
  Counts changed_calls = calls();
  changed_calls.erase(k_flash);
  changed_calls["flash_attn@00000000000000a2"] = 4;
  const CellVerdict cell = judged(changed_calls, groups(), exact());
  EXPECT_EQ(cell.verdict, Outcome::fail);
  EXPECT_EQ(cell.judgement_of("kernel_code").reason, "1 kernel has other code: flash_attn");
  const NeededWaivers taken = needed_waivers(judge_gate({cell}, {}));
  EXPECT_TRUE(taken.changes.empty());
  EXPECT_THAT(taken.beyond, Contains(HasSubstr("have other code")));
}

TEST(KernelCode, OfKernelsThatAreCalledMoreOftenIsForTheRuleOnKernels) {
  Counts changed_calls = calls();
  changed_calls.erase(k_flash);
  changed_calls["flash_attn@00000000000000a2"] = 5;
  EXPECT_EQ(judged(changed_calls, groups()).judgement_of("kernel_code").metric.name, "");
}

// Other facts of the code, the most telling first, and only by the same compiler.
TEST(KernelCode, IsToldWithItsConstantsAndCosts) {
  profile::Profile base = profile_with({{k_flash, 4}}, {});
  base.compiler = "radv-navi31, Mesa 25.0.7";
  base.code_facts["00000000000000a1"] = {
      "s1", {{"constant 2", "64"}}, {{"registers", 84}, {"occupancy", 18}, {"waves", 2}}, ""};
  profile::Profile now = profile_with({{"flash_attn@00000000000000a2", 4}}, {});
  now.compiler = base.compiler;
  now.code_facts["00000000000000a2"] = {
      "s1", {{"constant 2", "128"}}, {{"registers", 252}, {"occupancy", 6}, {"waves", 2}}, ""};
  const auto words = [&] {
    return judge(now, {stored(base)}).judgement_of("kernel_code").code.at(0).words();
  };
  EXPECT_EQ(words(), "constant 2: 64 → 128, occupancy 18 → 6, registers 84 → 252");
  now.code_facts["00000000000000a2"].source = "s2";
  EXPECT_EQ(
      judge(now, {stored(base)}).judgement_of("kernel_code").code.at(0).metadata_differences.back(),
      "other instructions");
  now.compiler = "radv-navi31, Mesa 22.3.6";
  EXPECT_EQ(words(), "constant 2: 64 → 128");
}

TEST(KernelCode, ThatABaselineDoesNotHoldIsNew) {
  const profile::Profile candidate = profile_with(calls(), groups());
  EXPECT_EQ(judge(candidate, {stored(reference())}, exact()).judgement_of("kernel_code").verdict,
            Outcome::new_);
  EXPECT_EQ(judge(candidate, {stored(reference())}).judgement_of("kernel_code").metric.name, "");
  EXPECT_EQ(judge(reference(), {stored(candidate)}, exact()).judgement_of("kernel_code").verdict,
            Outcome::error);
}

// llama.cpp b6431 to b6673: set_rows_f16 became set_rows_f16_i64 with the same code.
TEST(KernelNames, OfTheSameCodeMayChangeUnlessALimitSaysOtherwise) {
  const auto named = [](const char* name, const char* code) {
    profile::Profile profile = profile_with({{std::string(name) + "@" + code, 4}}, {});
    profile.kernels = make_set({{name, 4}});
    return profile;
  };
  const std::string code = "00000000000000c1";
  const auto base = stored(named("set_rows_f16", code.c_str()));
  const CellVerdict renamed = judge(named("set_rows_f16_i64", code.c_str()), {base}, {});
  EXPECT_EQ(renamed.judgement_of("kernels").verdict, Outcome::pass);
  EXPECT_EQ(renamed.judgement_of("kernels").reason,
            "the same code by other names: set_rows_f16 is set_rows_f16_i64 now");
  EXPECT_THAT(renamed.judgement_of("kernels").changed, SizeIs(2));
  const CellVerdict recoded = judge(named("set_rows_f16_i64", "00000000000000c2"), {base}, {});
  EXPECT_EQ(recoded.judgement_of("kernels").verdict, Outcome::fail);
  profile::Profile wider = named("set_rows_f16_i64", code.c_str());
  wider.code_groups = make_set({{"set_rows_f16_i64@" + code, 4}});
  profile::Profile narrow = named("set_rows_f16", code.c_str());
  narrow.code_groups = make_set({{"set_rows_f16@" + code, 1}});
  EXPECT_EQ(judge(wider, {stored(narrow)}, {}).judgement_of("kernels").verdict, Outcome::fail)
      << "more groups";
  profile::Profile shared = named("set_rows_f16_i64", code.c_str()),
                   small = named("set_rows_f16", code.c_str());
  shared.code_facts[code].costs["shared_bytes"] = 65536;
  small.code_facts[code].costs["shared_bytes"] = 1024;
  EXPECT_EQ(judge(shared, {stored(small)}, {}).judgement_of("kernels").verdict, Outcome::fail)
      << "other costs";
  LimitEntry names;
  names.metrics = {"kernel_names"};
  names.exact = true;
  EXPECT_EQ(judge(named("set_rows_f16_i64", code.c_str()), {base}, {names})
                .judgement_of("kernels")
                .verdict,
            Outcome::fail);
}

}  // namespace kernel_code_test
}  // namespace weir::verdict
