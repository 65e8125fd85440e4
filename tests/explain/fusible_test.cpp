// Ops in a row that ran as one kernel or separately.
#include "gate/explain/fusible.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace fusible_test {

using testing::HasSubstr;
using Check = Check::Answer;
using test::Counts;

profile::Profile make_profile(Counts rows, Counts ops, Counts kernels) {
  profile::Profile profile;
  profile.cell = *profile::CellKey::parse("llama.cpp/tiny/vulkan/decode");
  profile.device = "vulkan";
  profile.fusible.emplace().counts = std::move(rows);
  profile.graph_ops.emplace().counts = std::move(ops);
  profile.kernels.emplace().counts = std::move(kernels);
  profile.kernels->has_names = true;
  return profile;
}

explain::Check check_fusible(const profile::Profile& profile) {
  const auto why = explain(make_evidence(profile, profile), nullptr, {default_bands(), {}});
  return why.checklist.back();
}

const Counts k_rows = {{"RMS_NORM+MUL", 9}, {"MUL_MAT+ADD", 7}, {"ROPE+SET_ROWS", 4}};
const Counts k_ops = {{"RMS_NORM", 9}, {"MUL", 9},      {"ADD", 8},
                      {"ROPE", 8},     {"SET_ROWS", 8}, {"MUL_MAT", 29}};

TEST(Fusible, IsWhatRanAsKernelsOfItsOwn) {
  const struct {
    const char* what;
    Counts rows, ops, kernels;
    Check answer;
    const char* says;
  } cases[] = {
      // The tiny model of docs/explanation/counting.md on lavapipe: 85 dispatches without fusion.
      {"nothing fused",
       k_rows,
       k_ops,
       {{"rms_norm_f32", 9},
        {"mul_f32_f32_f32", 9},
        {"add_f32_f32_f32_norepeat", 8},
        {"rope_norm_f32", 8},
        {"set_rows_f32_f16_i64", 8},
        {"mul_mat_vec_f16_f32_f32", 29}},
       Check::wrong,
       "RMS_NORM+MUL 9 times a token, MUL_MAT+ADD 7 times a token, ROPE+SET_ROWS 4 times a token "
       "ran apart: as one kernel each at least 20 fewer dispatches a token"},
      // One ADD and four SET_ROWS stand elsewhere, and run alone.
      {"all fused",
       k_rows,
       k_ops,
       {{"rms_norm_mul_f32", 8},
        {"rms_norm_mul_partials_f32", 1},
        {"add_rms_f32_f32_f32_norepeat", 1},
        {"rope_norm_f32", 4},
        {"rope_norm_f32_f16", 4},
        {"set_rows_f32_f16_i64", 4},
        {"mul_mat_vec_f16_f32_f32", 29}},
       Check::fine,
       "RMS_NORM+MUL 9 times a token, MUL_MAT+ADD 7 times a token, ROPE+SET_ROWS 4 times a token "
       "ran "
       "as one kernel each"},
      {"some of them",
       {{"RMS_NORM+MUL", 9}},
       {{"RMS_NORM", 9}, {"MUL", 9}},
       {{"rms_norm_mul_f32", 6}, {"rms_norm_f32", 3}, {"mul_f32", 3}},
       Check::wrong,
       "at least 3 fewer"},
      {"a part of a longer row",
       {{"RMS_NORM+MUL+ROPE+SET_ROWS", 4}},
       {{"RMS_NORM", 4}, {"MUL", 4}, {"ROPE", 4}, {"SET_ROWS", 4}},
       {{"rms_norm_mul_f32", 4}, {"rope_norm_f32", 4}, {"set_rows_f32_f16", 4}},
       Check::wrong,
       "RMS_NORM+MUL+ROPE+SET_ROWS 4 times a token ran apart"},
      {"norms that stand elsewhere may be those alone",
       {{"RMS_NORM+MUL", 4}},
       {{"RMS_NORM", 8}, {"MUL", 8}},
       {{"rms_norm_f32", 4}, {"mul_f32", 4}, {"rms_norm_mul_f32", 4}},
       Check::fine,
       "4 times"},
      {"names that tell nothing",
       {{"RMS_NORM+MUL", 9}},
       {{"RMS_NORM", 9}, {"MUL", 9}},
       {{"kernel_a", 9}, {"kernel_b", 9}},
       Check::fine,
       "as much as before"},
      {"CUDA's names",
       {{"RMS_NORM+MUL", 13}},
       {{"RMS_NORM", 13}, {"MUL", 19}},
       {{"rms_norm_f32<256, false, false>", 13},
        {"k_bin_bcast<&op_mul, float, float, float, float const*>", 19}},
       Check::wrong,
       "at least 13 fewer dispatches"},
      {"CUDA's names, fused",
       {{"RMS_NORM+MUL", 13}},
       {{"RMS_NORM", 13}, {"MUL", 19}},
       {{"rms_norm_f32<256, true, false>", 13}},
       Check::fine,
       "RMS_NORM+MUL 13 times"},
      {"no such row", {}, {{"MUL_MAT", 9}}, {{"matmul_f16", 9}}, Check::fine, "none in a row"},
  };
  for (const auto& c : cases) {
    const explain::Check point = check_fusible(make_profile(c.rows, c.ops, c.kernels));
    EXPECT_EQ(point.answer, c.answer) << c.what << ": " << point.note;
    EXPECT_THAT(point.note, HasSubstr(c.says)) << c.what;
  }
}

TEST(Fusible, IsUnknownWithTheReason) {
  const profile::Profile all = make_profile(k_rows, k_ops, {{"rms_norm_f32", 9}});
  const struct {
    const char* says;
    void (*change)(profile::Profile&);
  } cases[] = {
      {"a CPU's ops", [](profile::Profile& profile) { profile.device = "cpu"; }},
      {"in their order", [](profile::Profile& profile) { profile.fusible.reset(); }},
      {"no names", [](profile::Profile& profile) { profile.kernels.reset(); }},
      {"no names", [](profile::Profile& profile) { profile.kernels->has_names = false; }},
      {"the same unit",
       [](profile::Profile& profile) { profile.kernels->scope = unit::Scope::at_length; }},
  };
  for (const auto& c : cases) {
    profile::Profile changed = all;
    c.change(changed);
    EXPECT_THAT(find_fusible(changed).unknown, HasSubstr(c.says));
  }
}

TEST(Fusible, IsNotKnownOfACpuWhoseKernelsHaveNoNames) {
  profile::Profile profile = make_profile(k_rows, k_ops, {{"MUL_MAT", 29}});
  profile.device = "cpu";
  EXPECT_EQ(check_fusible(profile).answer, Check::unknown) << check_fusible(profile).note;
}

}  // namespace fusible_test
}  // namespace weir::explain
