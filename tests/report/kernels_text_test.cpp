// Tests the text of `weir kernels`.
#include "gate/report/kernels_text.hpp"

#include <gmock/gmock.h>

#include "gate/base/json.hpp"

#include "support.hpp"

namespace weir::report {
namespace kernels_text_test {

using support::expect_golden;

profile::Profile decode() {
  profile::Profile profile;
  profile.cell = *profile::CellKey::parse("llama.cpp/tiny-gemma3/radeon/decode");
  profile.compiler = "radv-navi31, Mesa 25.0.7-2~bpo12+1";
  profile.codes.emplace().scope = unit::Scope::per_token;
  profile.code_groups.emplace().scope = unit::Scope::per_token;
  const auto add = [&](const std::string& kernel, const std::string& hash, int calls, int groups,
                       profile::CodeFacts facts) {
    profile.codes->counts[kernel + "@" + hash] = calls;
    if (groups > 0) profile.code_groups->counts[kernel + "@" + hash] = groups;
    profile.code_facts[hash] = std::move(facts);
  };
  const auto costs = [](std::map<std::string, std::int64_t> all) {
    profile::CodeFacts facts;
    facts.costs = std::move(all);
    return facts;
  };
  add("flash_attn_f32_f16_aligned_cm1", "00000000000000a1", 6, 24,
      costs({{"registers", 96},
             {"spilled_registers", 0},
             {"occupancy", 18},
             {"waves", 4},
             {"shared_memory_bytes", 15'360},
             {"throughput_cycles", 5'434}}));
  add("mul_mat_vec_q4_k_f32_f32", "00000000000000b1", 37, 4'000,
      costs({{"registers", 48}, {"occupancy", 32}, {"waves", 1}, {"throughput_cycles", 1'176}}));
  // The same name with other code; called in an unknown number of groups.
  add("mul_mat_vec_q4_k_f32_f32", "00000000000000b2", 1, 0,
      costs({{"registers", 384},
             {"spilled_registers", 95},
             {"scratch_bytes", 380},
             {"occupancy", 4},
             {"throughput_cycles", 10'126}}));
  add("never_called", "00000000000000c1", 0, 0, {});
  profile::CodeFacts left_out;
  left_out.not_compiled = "needs VK_KHR_cooperative_matrix";
  add("matmul_\x1b[31m_" + std::string(90, 'x'), "00000000000000d1", 1, 2, left_out);
  return profile;
}

TEST(KernelsText, ShowsWhatEachCodeCostsWithinEightyColumns) {
  profile::Profile program = decode();  // has no cell and no compiler
  program.cell = {};
  program.cell.engine = "llama-bench -m tiny.gguf";
  program.compiler.clear();
  for (auto& [hash, facts] : program.code_facts) facts = {};
  const std::vector<KernelsOfCell> tables{kernels_of(decode()), kernels_of(program)};
  expect_golden("kernels.txt", kernels_text(tables, 80, 20));
  expect_golden("kernels-top.txt", kernels_text({tables.data(), 1}, 80, 1));
  expect_golden("kernels.json", kernels_json(tables).dump(1) + "\n");
}

TEST(KernelsText, OrdersByEstimatedCyclesOverAllWaves) {
  const KernelsOfCell table = kernels_of(decode());
  ASSERT_EQ(table.rows.size(), 4U);  // without kernels that are never called
  EXPECT_EQ(table.rows[0].cycles, 1'176.0 * 4'000);
  EXPECT_EQ(table.rows[1].cycles, 5'434.0 * 4 * 24);
}

TEST(KernelsText, ShowsWhatAKernelDiffersIn) {
  verdict::KernelChange code;
  code.kernel = "flash_attn_f32_f16_aligned_cm1";
  code.calls = 4;
  code.code_changed = true;
  code.hashes_before = {"00000000000000a1"};
  code.hashes_now = {"00000000000000a2"};
  code.metadata_differences = {"constant 2 (v_rows): 64 \u2192 128",
                               "instructions 812 \u2192 1034"};
  code.costs = {{"occupancy", 18, 6}, {"spilled_registers", 0, 95}, {"of_a_later_version", 1, 2}};
  const std::vector<KernelDiff> diffs{
      {code, {"llama.cpp/tiny-llama/radeon/decode", "llama.cpp/tiny-gemma3/radeon/decode"}, "", ""},
      {code,
       {"llama.cpp/tiny-llama/radeon/prefill"},
       "radv-navi31, Mesa 25.0.7",
       "@@ -1,1 +1,1 @@\n-v_mov\n+v_add\n"}};
  expect_golden("kernel-diffs.txt", kernel_diffs_text(diffs, 80));
  expect_golden("kernel-diffs.json", kernel_diffs_json(diffs).dump(1) + "\n");
}

}  // namespace kernels_text_test
}  // namespace weir::report
