// Tests lists of kernels that no engine would write: a file from strangers may hold anything.
#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace kernels_test {

// Builds `count` kernels that only one side has, each called once.
test::Counts kernels(const std::string& name, int count) {
  test::Counts counts;
  for (int i = 0; i < count; ++i) counts[name + std::to_string(i)] = 1;
  return counts;
}

// A comparison of each with each would take a quarter of an hour and hit the test's time limit.
TEST(Kernels, AreSoonComparedWhereNearlyAllOfThemChanged) {
  constexpr int k_many = 60'000;
  const auto why = test::explained(test::side({{"dispatches", k_many}}, kernels("gone", k_many)),
                                   test::side({{"dispatches", k_many}}, kernels("new", k_many)));
  std::vector<std::string> kinds;
  for (const Finding& finding : why.findings) kinds.push_back(finding.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"op_added", "op_removed"}));
}

TEST(Kernels, OfTheSameWorkAreFoundAmongAnyNumber) {
  test::Counts before = kernels("gone", 3000), after = kernels("new", 3000);
  before["mul_mat_vec_q4_k_f32"] = 53;
  after["mul_mat_vec_q4_k_f16"] = 53;
  const auto why = test::explained(test::side({{"dispatches", 3053}}, before),
                                   test::side({{"dispatches", 3053}}, after));
  bool match = false;
  for (const Finding& finding : why.findings) {
    if (finding.kind != "variant_changed") continue;
    match = true;
    EXPECT_EQ(finding.ops.size(), 2U);
  }
  EXPECT_TRUE(match);
}

// onnxruntime-node on WebGPU: Gemm became MatMul and Add, and no kernel has a name.
TEST(Kernels, WithoutNamesSeemToBeAFusionByTheirNumbers) {
  const std::string dawn = "dawn_entry_point@";
  const auto why = test::explained(
      test::side({{"dispatches", 55}},
                 {{dawn + "d2e37b8bfaf9201d", 24}, {dawn + "0000000000000001", 36}}),
      test::side({{"dispatches", 84}}, {{dawn + "1a676d20a0b96cfb", 24},
                                        {dawn + "0000000000000002", 24},
                                        {dawn + "0000000000000001", 36}}));
  ASSERT_FALSE(why.findings.empty());
  EXPECT_EQ(why.findings.front().kind, "fusion_lost");
  EXPECT_EQ(why.findings.front().headline.find("Fusion seems lost: "), 0U)
      << why.findings.front().headline;
}

// One layer of jax-js without its norms. Kernels that the norms shared run less often, but still
// run.
TEST(Kernels, WithoutNamesThatRunElsewhereAsBeforeAreLessWork) {
  const std::string dawn = "dawn_entry_point@000000000000000";
  const auto why = test::explained(
      test::side({{"dispatches", 28}},
                 {{dawn + "1", 4}, {dawn + "2", 8}, {dawn + "3", 8}, {dawn + "4", 8}}),
      test::side({{"dispatches", 16}},
                 {{dawn + "2", 4}, {dawn + "3", 4}, {dawn + "4", 4}, {dawn + "5", 4}}));
  ASSERT_FALSE(why.findings.empty());
  EXPECT_EQ(why.findings.front().kind, "op_removed") << why.findings.front().headline;
  for (const Finding& finding : why.findings) {
    EXPECT_NE(finding.kind, "variant_changed") << "no name tells which one the new one replaced";
  }
}

// Counts of a file may not be subtractable: then there is no change and no new kernel.
TEST(Kernels, WhoseChangeIsNoNumberAreLeftOut) {
  const Rational before = *Rational::parse("1/9223372036854775807"),
                 after = *Rational::parse("1/9223372036854775806");
  ASSERT_FALSE(after.minus(before));
  const auto why =
      test::explained(test::side({{"dispatches", 4}}, {{"gemv_f16", before}, {"gemv_f32", before}}),
                      test::side({{"dispatches", 5}}, {{"gemv_f16", after}, {"gemv_f32", after}}));
  for (const Finding& finding : why.findings) EXPECT_NE(finding.kind, "variant_changed");
}

// Profiles of jax-js without jit, and the other way round.
TEST(Kernels, ThatAreNearlyAllOthersAndManyMoreSeemToBeLostFusions) {
  const Side joined = test::side({{"dispatches", 26}}, kernels("joined@000000000000000", 5)),
             separate = test::side({{"dispatches", 55}}, kernels("apart@000000000000000", 9));
  Side before = joined, after = separate;
  for (Work& work : before.works) work.times = 5;
  for (Work& work : after.works) work.times = 6;
  Work same;
  same.name = "same";
  same.times = 1;
  before.works.push_back(same);
  after.works.push_back(same);
  const auto why = test::explained(before, after), back = test::explained(after, before);
  ASSERT_FALSE(why.findings.empty() || back.findings.empty());
  EXPECT_EQ(why.findings.front().headline,
            "Fusion seems lost: nearly every kernel is another, and 55 run a token where 26 ran.");
  EXPECT_EQ(back.findings.front().kind, "fusion_gained");
  EXPECT_EQ(why.findings.size(), 1U);
}

// Older llama.cpp names no pipelines, so between two releases each shader has another hash.
TEST(Kernels, WithoutNamesThatRunAsOftenAreNoMoreWork) {
  const auto why =
      test::explained(test::side({{"dispatches", 16}},
                                 {{"main@6f7af80fc9c82454", 4}, {"main@d95452add187c5a4", 12}}),
                      test::side({{"dispatches", 16}},
                                 {{"main@00ab7346502eecb0", 12}, {"main@a6cfe956533ea327", 4}}));
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings.front().kind, "variant_changed");
  EXPECT_EQ(why.findings.front().headline,
            "2 kernels without names were replaced by others, as often.");
}

TEST(Kernels, WithoutNamesThatAreNewBesideReplacedOnesAreMoreWork) {
  const auto why =
      test::explained(test::side({{"dispatches", 16}},
                                 {{"main@6f7af80fc9c82454", 4}, {"main@d95452add187c5a4", 12}}),
                      test::side({{"dispatches", 45}}, {{"main@00ab7346502eecb0", 12},
                                                        {"main@a6cfe956533ea327", 4},
                                                        {"main@ba3c280d0e129133", 29}}));
  ASSERT_EQ(why.findings.size(), 2U);
  EXPECT_EQ(why.findings.front().kind, "op_added");
  EXPECT_EQ(why.findings.front().ops, (std::vector<std::string>{"main@ba3c280d0e129133"}));
  EXPECT_EQ(why.findings.back().kind, "variant_changed");
}

// llama-3.1-8b, a prompt of 512, on an RX 7900 XTX: counts of the wheels cyllama-rocm 0.2.17 and
// 0.2.18 on a HIP twin.
TEST(Kernels, OfAttentionThatMovedToMatrixCoresAreOneChange) {
  const auto tile =
      test::side({{"dispatches", 863}}, {{"mul_mat_q<(ggml_type)12, 128, false>", 190},
                                         {"flash_attn_tile<128, 128, 16, 4, false>", 32},
                                         {"flash_attn_combine_results<128>", 32}});
  const auto wmma =
      test::side({{"dispatches", 863}}, {{"mul_mat_q<(ggml_type)12, 128, false>", 190},
                                         {"flash_attn_ext_f16<128, 128, 16, 4, false, false>", 32},
                                         {"flash_attn_stream_k_fixup_uniform<128, 16, 4>", 32}});
  const auto to = test::explained(tile, wmma), from = test::explained(wmma, tile);
  ASSERT_EQ(to.findings.size(), 1U);
  EXPECT_EQ(to.findings.front().kind, "matrix_cores_gained");
  EXPECT_EQ(to.findings.front().headline,
            "Matrix cores are now used for attention: flash_attn_ext_f16<128, 128, 16, 4, false, "
            "false> in place of flash_attn_tile<128, 128, 16, 4, false>, 32 times a token.");
  ASSERT_EQ(from.findings.size(), 1U);
  EXPECT_EQ(from.findings.front().kind, "matrix_cores_lost");
  EXPECT_EQ(
      from.findings.front().headline,
      "Matrix cores are no longer used for attention: flash_attn_tile<128, 128, 16, 4, false> "
      "in place of flash_attn_ext_f16<128, 128, 16, 4, false, false>, 32 times a token.");
}

// The same with other numbers of kernels that add up pieces, as on cards with other numbers of
// processors: dispatches change with them, by the same cause.
TEST(Kernels, ThatAddUpPiecesGoWithTheAttentionThatMoved) {
  const auto why = test::explained(
      test::side({{"dispatches", 122}},
                 {{"mul_mat_q", 118}, {"flash_attn_ext_f16<64, 64, 32, 2, false, false>", 4}}),
      test::side({{"dispatches", 126}}, {{"mul_mat_q", 118},
                                         {"flash_attn_tile<64, 64, 32, 2, false>", 4},
                                         {"flash_attn_combine_results<64>", 4}}));
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings.front().kind, "matrix_cores_lost");
  EXPECT_EQ(why.findings.front().delta, Rational(4));
}

// llama-3.1-8b, a prompt of 512, on HIP twins: RX 7900 XTX before and MI300X after.
TEST(Kernels, ThatAddUpTilesOfStreamKAreACauseOfTheirOwn) {
  const auto without = test::side(
      {{"dispatches", 411}}, {{"mul_mat_q<(ggml_type)12, 64, false>", 190},
                              {"mul_mat_q<(ggml_type)14, 64, false>", 31},
                              {"rms_norm_f32", 158},
                              {"flash_attn_ext_f16<128, 128, 16, 4, false, false, false>", 32}});
  Side with = without;
  with.metrics["dispatches_per_token"].exact = 664;
  for (const auto& [name, times] :
       test::Counts{{"mul_mat_q_stream_k_fixup<(ggml_type)12, 64, false>", 190},
                    {"mul_mat_q_stream_k_fixup<(ggml_type)14, 64, false>", 31},
                    {"flash_attn_stream_k_fixup_general<128, 16, 4>", 32}}) {
    Work fixup;
    fixup.name = name;
    fixup.times = times;
    with.works.push_back(fixup);
  }
  const auto more = test::explained(without, with), fewer = test::explained(with, without);
  ASSERT_EQ(more.findings.size(), 2U);
  for (const Finding& finding : more.findings) EXPECT_EQ(finding.kind, "stream_k_changed");
  EXPECT_EQ(
      more.findings[0].headline,
      "More stream-k fixups of matrix multiplications: mul_mat_q_stream_k_fixup<(ggml_type)12, "
      "64, false>, 221 times a token.");
  EXPECT_EQ(more.findings[1].headline,
            "More stream-k fixups of attention: flash_attn_stream_k_fixup_general<128, 16, 4>, 32 "
            "times a token.");
  ASSERT_EQ(fewer.findings.size(), 2U);
  EXPECT_EQ(fewer.findings[1].headline.find("Fewer stream-k fixups of attention: "), 0U);
}

// Fixups that another tile size renamed run as often.
TEST(Kernels, ThatAddUpTilesAsOftenAreOnlyOtherVariants) {
  const auto why =
      test::explained(test::side({{"dispatches", 380}},
                                 {{"mul_mat_q<(ggml_type)12, 128, false>", 190},
                                  {"mul_mat_q_stream_k_fixup<(ggml_type)12, 128, false>", 190}}),
                      test::side({{"dispatches", 380}},
                                 {{"mul_mat_q<(ggml_type)12, 64, false>", 190},
                                  {"mul_mat_q_stream_k_fixup<(ggml_type)12, 64, false>", 190}}));
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings.front().kind, "variant_changed");
}

// llama-3.1-8b, a prompt of 512, on HIP twins: MI300X before and MI210 after.
TEST(Kernels, OfProductsThatMovedToTheLibraryAreOneChange) {
  const auto mi300x = test::side({{"dispatches", 990}, {"hipblas_calls", 0}},
                                 {{"rms_norm_f32", 65},
                                  {"mul_mat_q<(ggml_type)12, 64, false>", 190},
                                  {"mul_mat_q<(ggml_type)14, 64, false>", 31},
                                  {"mul_mat_q_stream_k_fixup<(ggml_type)12, 64, false>", 190},
                                  {"mul_mat_q_stream_k_fixup<(ggml_type)14, 64, false>", 31},
                                  {"quantize_mmq_q8_1<(mmq_q8_1_ds_layout)0, false>", 31},
                                  {"quantize_mmq_q8_1<(mmq_q8_1_ds_layout)1, false>", 190}});
  const auto mi210 = test::side({{"dispatches", 990}, {"hipblas_calls", 221}},
                                {{"rms_norm_f32", 65},
                                 {"convert_unary_cont_vec4<float, __half>", 221},
                                 {"dequantize_block_q4_K<__half>", 190},
                                 {"dequantize_block_q6_K<__half>", 31},
                                 {"hipblasGemmEx", 221}});
  const auto to = test::explained(mi300x, mi210), from = test::explained(mi210, mi300x);
  ASSERT_EQ(to.findings.size(), 1U);
  EXPECT_EQ(to.findings.front().kind, "moved_to_library");
  EXPECT_EQ(
      to.findings.front().headline,
      "Matrix multiplications moved to the vendor's library: hipblasGemmEx, 221 times a token.");
  ASSERT_EQ(from.findings.size(), 1U);
  EXPECT_EQ(from.findings.front().headline,
            "Matrix multiplications moved from the vendor's library to the engine's kernels: "
            "hipblasGemmEx, 221 times a token.");
}

// TensorFlow.js with separate kernels after its matrix multiplications, which keep their names
// (recorded).
TEST(Kernels, WithOtherCodeBesideSmallOnesAreAFusion) {
  const auto kernels = [](int binary) {
    return test::side({{"dispatches", 102 + binary}},
                      {{"BinaryOpProgram", binary}, {"MatMulPackedProgram", 29}, {"Softmax", 73}});
  };
  const auto explained = [](Evidence evidence, const std::vector<std::string>& recoded) {
    for (const std::string& name : recoded) {
      evidence.code.push_back({name, 29, true, {}, {}, {}, {}, {}, {}});
    }
    return explain(evidence, nullptr, {}).findings.front();
  };
  const Evidence lost = test::evidence(kernels(76), kernels(100));
  EXPECT_EQ(explained(lost, {"MatMulPackedProgram"}).headline,
            "Fusion seems lost: MatMulPackedProgram has other code, and binary_op_program now runs "
            "apart.");
  const Evidence gained = test::evidence(kernels(100), kernels(76));
  EXPECT_EQ(explained(gained, {"MatMulPackedProgram"}).kind, "fusion_gained");
  EXPECT_EQ(explained(lost, {}).kind, "op_added") << "no code changed";
  EXPECT_EQ(explained(lost, {"MatMulPackedProgram", "MatMulReduceProgram"}).kind, "op_added")
      << "more kernels have other code than came: another build";
  const Evidence more = test::evidence(kernels(76), kernels(110));
  EXPECT_EQ(explained(more, {"MatMulPackedProgram"}).kind, "op_added")
      << "34 times a token, where the product runs 29 times";
}

// node-llama-cpp 3.10.0 with half of its layers on the CPU, recorded by a Vulkan layer alone.
TEST(Kernels, WithoutNamesThatAllRunLessOftenMovedToTheCpu) {
  const auto half = [](std::int64_t of) {
    test::Counts counts;
    for (int i = 0; i < 6; ++i) counts[fmt::format("main@96b1b53717e5c5a{}", i)] = of;
    return counts;
  };
  const auto why = test::explained(test::side({{"dispatches", 24}, {"submits", 9}}, half(4)),
                                   test::side({{"dispatches", 12}, {"submits", 8}}, half(2)));
  ASSERT_FALSE(why.findings.empty());
  EXPECT_EQ(why.findings.front().kind, "work_moved_to_cpu");
  const auto explained = test::explained(test::side({{"dispatches", 25}}, half(4)),
                                         test::side({{"dispatches", 1}}, {{"main@a", 1}}));
  EXPECT_NE(explained.findings.front().kind, "work_moved_to_cpu") << "none of them runs still";
}

// Small programs on OpenCL and WebGPU (recorded): names do not tell which kernel is a part of
// which.
TEST(Kernels, ThatRanAsOftenAsTheOneTheyBecameAreAFusion) {
  const auto three = test::side({{"dispatches", 18}}, {{"im2col", 6}, {"product", 6}, {"mean", 6}});
  const auto side = test::side({{"dispatches", 12}}, {{"direct_convolution", 6}, {"mean", 6}});
  EXPECT_EQ(test::explained(three, side).findings.front().headline,
            "Fusion seems gained: direct_convolution runs as one kernel 6 times a token, where "
            "im2col and product ran.");
  const auto fewer = test::side({{"dispatches", 11}}, {{"direct_convolution", 5}, {"mean", 6}});
  EXPECT_EQ(test::explained(three, fewer).findings.front().kind, "op_removed") << "5 for 6";
}

TEST(Kernels, OfWhichOneDoesWhatSeveralCallsDidAreAFusion) {
  const auto side = test::side({{"dispatches", 25}}, {{"gemv", 13}, {"rotate", 12}});
  const auto joined =
      test::side({{"dispatches", 17}}, {{"gemv", 1}, {"gemv_qkv", 4}, {"rotate", 12}});
  EXPECT_EQ(test::explained(side, joined).findings.front().kind, "fusion_gained");
  EXPECT_EQ(test::explained(joined, side).findings.front().headline,
            "Fusion seems lost: gemv_qkv ran as one kernel 4 times a token; now gemv runs apart.");
}

// CLBlast without its batched matrix multiplication, and with one that pads its matrices
// (recorded).
TEST(Kernels, OfOneNameWithMoreWordsAreJoinedCalls) {
  const auto batched =
      test::side({{"dispatches", 21}}, {{"XgemmDirectStridedBatchedTN", 8}, {"XgemmDirectTN", 12}});
  const auto looped = test::side({{"dispatches", 45}}, {{"XgemmDirectTN", 44}});
  EXPECT_EQ(test::explained(batched, looped).findings.front().kind, "fusion_lost");
  const auto padded = test::side({{"dispatches", 89}}, {{"Xgemm", 12},
                                                        {"XgemmStridedBatched", 8},
                                                        {"CopyPadMatrix", 12},
                                                        {"TransposeMatrix", 12},
                                                        {"TransposePadMatrix", 12}});
  EXPECT_NE(test::explained(batched, padded).findings.front().kind, "work_moved_to_gpu")
      << "none of them ran before";
}

TEST(Kernels, ThatTakeThePlaceOfTheOnlyOneThatIsGoneAreAVariant) {
  const auto with = [](const char* forces, std::int64_t often) {
    return test::side({{"dispatches", 7 + often}}, {{forces, often}, {"integrate", 7}});
  };
  EXPECT_EQ(test::explained(with("near_forces", 2), with("brute_forces", 2)).findings.front().kind,
            "variant_changed");
  EXPECT_EQ(test::explained(with("near_forces", 2), with("brute_forces", 3)).findings.front().kind,
            "op_added");
}

TEST(Kernels, InOtherGroupsAreAFindingWhereNothingElseChanged) {
  Evidence evidence = test::evidence(test::side({{"dispatches", 6}}, {{"product", 6}}),
                                     test::side({{"dispatches", 6}}, {{"product", 6}}));
  evidence.code.push_back({"product", 6, false, {}, {}, Rational(384), Rational(96), {}, {}});
  EXPECT_EQ(explain(evidence, nullptr, {}).findings.front().headline,
            "The kernel product runs in other groups: groups 384 \u2192 96.");
  evidence.after.metrics["copies_per_token"].exact = 2;
  evidence.before.metrics["copies_per_token"].exact = 1;
  for (const Finding& finding : explain(evidence, nullptr, {}).findings) {
    EXPECT_NE(finding.kind, "code_changed") << "groups go with shapes";
  }
}

// llama-bench -ngl 0 with and without -fa. Ops are named as in ggml's graph of a model of four
// layers.
TEST(OpsOfACpuCell, AreNamedByWhatTheyDo) {
  const test::Counts joined = {
      {"FLASH_ATTN_EXT f32,f16,f16,f16->f32 64x1x4,64x256x2,64x256x2,256->64x4", 4},
      {"SET_ROWS f32,i64->f16 128,1->128x32768", 8},
      {"MUL_MAT q8_0,f32->f32 256x256,256->256", 29}};
  const test::Counts counts = {{"MUL_MAT f16,f32->f32 64x256x2,64x1x4->256x1x4", 4},
                               {"SOFT_MAX f32,f16->f32 256x1x4,256->256x1x4", 4},
                               {"MUL_MAT f16,f32->f32 256x64x2,256x1x4->64x1x4", 4},
                               {"CONT f32->f32 64x1x4->256", 4},
                               {"SET_ROWS f32,i64->f16 128,1->128x32768", 4},
                               {"SET_ROWS f32,i64->f16 1x128,128->1x32768", 4},
                               {"MUL_MAT q8_0,f32->f32 256x256,256->256", 29}};
  const auto explained = [](const test::Counts& before, const test::Counts& after) {
    Evidence evidence = test::evidence(test::side({}, {}, before), test::side({}, {}, after));
    evidence.device = "cpu";
    return explain(evidence, nullptr, {});
  };
  const auto lost = explained(joined, counts), gained = explained(counts, joined);
  ASSERT_EQ(lost.findings.size(), 1U) << "one cause";
  EXPECT_EQ(lost.findings[0].headline,
            "Fusion lost: FLASH_ATTN_EXT ran as one op 4 times a token; now MUL_MAT, CONT and "
            "SOFT_MAX run apart.");
  ASSERT_EQ(gained.findings.size(), 1U);
  EXPECT_EQ(gained.findings[0].kind, "fusion_gained");
  test::Counts more = joined;
  more["ARGSORT f32->i32 64->64"] = 4;
  EXPECT_EQ(explained(joined, more).findings.at(0).headline, "More work on the CPU: ARGSORT.");
  Evidence waits = test::evidence(test::side({{"backend_syncs", 1}}, {}, joined),
                                  test::side({{"backend_syncs", 3}}, {}, joined));
  waits.device = "cpu";
  EXPECT_EQ(explain(waits, nullptr, {}).findings.at(0).headline,
            "The engine waits for its backend more often in a token.");
  test::Counts longer = joined;
  longer.erase("SET_ROWS f32,i64->f16 128,1->128x32768");
  longer["SET_ROWS f32,i64->f16 128,1->128x65536"] = 8;
  EXPECT_EQ(explained(joined, longer).findings.at(0).headline,
            "SET_ROWS has other types or shapes, 8 times a token.");
}

// llama.cpp with -fa 1 on an RTX 4090's twin, a token of tiny-llama (recorded): no loss, and its
// name is that of the switch.
TEST(GainedFusion, OfAttentionIsFlashAttentionThatIsUsedNow) {
  const auto why = test::explained(
      test::side({{"dispatches", 61}}, {{"mul_mat_vec_f<__half, __half, 1, 128, false, false>", 4},
                                        {"mul_mat_vec_f<__half, float, 1, 32, false, false>", 33},
                                        {"soft_max_f32<true, 256, 256, float>", 4}}),
      test::side({{"dispatches", 57}},
                 {{"flash_attn_combine_results<64>", 4},
                  {"flash_attn_ext_vec<64, 1, (ggml_type)1, (ggml_type)1, false>", 4},
                  {"mul_mat_vec_f<__half, float, 1, 32, false, false>", 29}}));
  ASSERT_FALSE(why.findings.empty());
  EXPECT_EQ(why.findings[0].headline.find("Flash attention is used now: flash_attn_ext_vec runs 4 "
                                          "times a token, where mul_mat_vec_f and soft_max ran."),
            0U)
      << why.findings[0].headline;
  EXPECT_EQ(why.findings[0].kind, "fusion_gained");
}

// Attention of llama.cpp on Vulkan without -fa (recorded). The kernel that adds its pieces goes,
// too.
TEST(LostFusion, OfAttentionTakesTheSumOfItsPiecesAlong) {
  const auto why =
      test::explained(test::side({{"dispatches", 37}}, {{"flash_attn_f32_f16_aligned_cm1", 4},
                                                        {"fa_split_k_reduce", 4},
                                                        {"mul_mat_vec_f16_f32_f32", 29}}),
                      test::side({{"dispatches", 45}}, {{"mul_mat_vec_p021_f16_f322", 4},
                                                        {"mul_mat_vec_f16_f32_f32", 33},
                                                        {"soft_max_f32", 4},
                                                        {"contig_cpy_f32_f32", 4}}));
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings[0].headline.find("Fusion lost: flash_attn ran as one kernel 4 times"), 0U)
      << why.findings[0].headline;
  EXPECT_EQ(why.findings[0].lines.front(),
            "\u22124 flash_attn_f32_f16_aligned_cm1, \u22124 fa_split_k_reduce");
}

// GPTNeoX of two layers in transformers 4.53.0 and 4.53.1, one forward of 64 tokens on an RTX 4090
// twin; what ran as often is left out. The other attention takes a mask, which is built for it.
TEST(Attention, OfAnotherKernelIsTheCauseOfWhatItNeeds) {
  const auto why = test::explained(
      test::side({{"dispatches", 62}}, {{"flash_fwd_kernel<Flash_fwd_kernel_traits, false>", 2},
                                        {"elementwise_kernel<direct_copy, bf16>", 4},
                                        {"vectorized_elementwise_kernel<add, bf16>", 6}}),
      test::side({{"dispatches", 86}}, {{"fmha_cutlassF_bf16_aligned_64x64_rf_sm80", 2},
                                        {"elementwise_kernel<direct_copy, bf16>", 2},
                                        {"elementwise_kernel<direct_copy, i64>", 2},
                                        {"elementwise_kernel<where, bool>", 2},
                                        {"elementwise_kernel_with_index<i32>", 3},
                                        {"vectorized_elementwise_kernel<Fill, bf16>", 4},
                                        {"vectorized_elementwise_kernel<add, i64>", 2},
                                        {"vectorized_elementwise_kernel<add, bf16>", 6}}));
  ASSERT_GE(why.findings.size(), 2U);
  EXPECT_EQ(why.findings[0].headline,
            "Another kernel does the same work: fmha_cutlass_f, twice a token.");
  EXPECT_EQ(why.findings[1].kind, "mask_built");
}

}  // namespace kernels_test
}  // namespace weir::explain
