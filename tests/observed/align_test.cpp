// Tests which ops of a graph belong to which kernels of a timeline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/observed/timeline.hpp"

namespace weir::observed {
namespace align_test {

using testing::ElementsAre;
using testing::IsEmpty;
using Words = std::vector<std::string>;

TEST(AlignSequences, FindsTheOpOfEachKernel) {
  const struct {
    const char* what;
    Words kernels, ops;
    Words expected;
  } cases[] = {
      {"one each", {"get_rows_f32_f32", "scale_f32"}, {"GET_ROWS", "SCALE"}, {"GET_ROWS", "SCALE"}},
      {"a fusion that the kernel's name tells",
       {"rms_norm_mul_f32"},
       {"RMS_NORM", "MUL"},
       {"RMS_NORM_MUL"}},
      {"a fusion that it does not tell: the ADD has no kernel of its own",
       {"mul_mat_vec_f16_f32_f32", "rms_norm_mul_f32"},
       {"MUL_MAT", "ADD", "RMS_NORM", "MUL"},
       {"MUL_MAT_ADD", "RMS_NORM_MUL"}},
      {"the same without: the ADD has one",
       {"mul_mat_vec_f16_f32_f32", "add_rms_f32_f32_f32_norepeat"},
       {"MUL_MAT", "ADD"},
       {"MUL_MAT", "ADD"}},
      // Names as in ggml's log: there is a view between the two, which is no node here.
      {"rope into the cache",
       {"rope_norm_f32", "rope_norm_f32_f16", "set_rows_f32_f16_i64"},
       {"ROPE", "ROPE", "SET_ROWS", "SET_ROWS"},
       {"ROPE", "ROPE_VIEW_SET_ROWS", "SET_ROWS"}},
      {"parts behind their op",
       {"flash_attn_f32_f16_aligned", "fa_split_k_reduce"},
       {"FLASH_ATTN_EXT"},
       {"FLASH_ATTN_EXT", "FLASH_ATTN_EXT"}},
      {"parts before their op",
       {"quantize_q8_1_x4", "matmul_q4_0_q8_1", "split_k_reduce"},
       {"MUL_MAT"},
       {"MUL_MAT", "MUL_MAT", "MUL_MAT"}},
      {"a copy is an op where there is one, and a part where there is none",
       {"cpy_f32_f16", "matmul_f16", "cpy_f32_f32"},
       {"MUL_MAT", "CPY"},
       {"MUL_MAT", "MUL_MAT", "CPY"}},
      {"three sums in one", {"multi_add_f32_3"}, {"ADD", "ADD", "ADD"}, {"ADD_ADD_ADD"}},
  };
  for (const auto& c : cases) {
    const Aligned aligned = align_sequences(c.kernels, c.ops);
    EXPECT_EQ(aligned.ops, c.expected) << c.what;
    EXPECT_THAT(aligned.unmatched_kernels, IsEmpty()) << c.what;
    EXPECT_THAT(aligned.unmatched_nodes, IsEmpty()) << c.what;
  }
}

TEST(OpAlone, IsThatOfAKernelWhichCanHaveRunNothingElse) {
  const Words ops = {"ADD", "ADD_ID", "MUL", "MUL_MAT", "RMS_NORM", "ROPE", "SILU", "SOFT_MAX"};
  const std::pair<const char*, const char*> cases[] = {
      {"add_f32_f32_f32_norepeat", "ADD"},
      {"add_id_f32", "ADD_ID"},
      {"mul_f32", "MUL"},
      {"mul_mat_vec_f16_f32_f32", ""},  // or with the ADD after it
      {"matmul_f16", "MUL_MAT"},
      {"rms_norm_f32", "RMS_NORM"},
      {"rms_norm_mul_f32", ""},
      {"rope_norm_f32", ""},
      {"silu_f32", "SILU"},
      {"silu_mul_f32", ""},
      {"soft_max_f32", "SOFT_MAX"},
      {"soft_max_large1_f32", ""},  // one of three
      {"rms_norm_f32<256, false, false>", "RMS_NORM"},
      {"rms_norm_f32<256, true, false>", ""},
      {"k_bin_bcast<&op_add, float, float, float, float const*>", "ADD"},
      {"k_bin_bcast<&op_add, float, float, float, float const*, float const*>", ""},
      {"main@ec2ac0f063322dd0", ""},
  };
  for (const auto& [kernel, op] : cases) EXPECT_EQ(op_alone(kernel, ops), op) << kernel;
}

TEST(AlignSequences, LeavesOverWhatDoesNotFitInsteadOfForcingIt) {
  const struct {
    const char* what;
    Words kernels, ops;
    Words expected;
    std::vector<std::size_t> unmatched_kernels, unmatched_nodes;
  } cases[] = {
      {"a kernel of nobody's", {"scale_f32", "mystery"}, {"SCALE"}, {"SCALE", ""}, {1}, {}},
      {"an op without a kernel", {"scale_f32"}, {"SQR", "SCALE"}, {"SCALE"}, {}, {0}},
      {"called like another op's beginning", {"mulx_f32"}, {"MUL"}, {""}, {0}, {0}},
      {"a part without an op", {"split_k_reduce"}, {}, {""}, {0}, {}},
      {"nothing at all", {}, {}, {}, {}, {}},
  };
  for (const auto& c : cases) {
    const Aligned aligned = align_sequences(c.kernels, c.ops);
    EXPECT_EQ(aligned.ops, c.expected) << c.what;
    EXPECT_EQ(aligned.unmatched_kernels, c.unmatched_kernels) << c.what;
    EXPECT_EQ(aligned.unmatched_nodes, c.unmatched_nodes) << c.what;
  }
}

TEST(AlignSequences, SaysWhichNodeAKernelBeginsWith) {
  const Aligned aligned =
      align_sequences({"rms_norm_mul_f32", "mul_mat_vec_f16_f32_f32", "silu_f32"},
                      {"RMS_NORM", "MUL", "MUL_MAT", "ADD", "SILU"});
  EXPECT_THAT(aligned.nodes, ElementsAre(0, 2, 4));
}

// Two submissions have two dispatches of one graph; a third comes from another thread.
TEST(Align, TakesTheDispatchesThatAGraphSentOnItsOwnThread) {
  const auto submission = [](std::uint32_t thread, double at, const char* kernel) {
    Command command;
    command.name = kernel;
    Submission out;
    out.thread = thread;
    out.call = {at, at + 0.1};
    out.buffers.push_back({{command}, std::nullopt, {}});
    return out;
  };
  Timeline timeline;
  Process process;
  process.submissions = {submission(1, 1, "scale_f32"), submission(2, 2, "sqr_f32"),
                         submission(1, 3, "sqr_f32"), submission(1, 9, "sqr_f32")};
  process.graphs = {{{{"SCALE", "first", "Vulkan0", false},
                      {"GET_ROWS", "on the CPU", "CPU", true},
                      {"SQR", "second", "Vulkan0", false}}}};
  process.graph_runs = {{0, 1, {0.5, 4}}};
  timeline.processes.push_back(process);
  align(timeline);
  const auto& submissions = timeline.processes[0].submissions;
  EXPECT_EQ(submissions[0].buffers[0].commands[0].node, "first");
  EXPECT_EQ(submissions[1].buffers[0].commands[0].op, "");
  EXPECT_EQ(submissions[2].buffers[0].commands[0].op, "SQR");
  EXPECT_EQ(submissions[3].buffers[0].commands[0].op, "");
  ASSERT_TRUE(timeline.alignment);
  EXPECT_EQ(timeline.alignment->dispatches, 2U);
  EXPECT_EQ(timeline.alignment->nodes, 2U);
  EXPECT_EQ(timeline.alignment->unmatched_nodes + timeline.alignment->unmatched_dispatches, 0U);
}

TEST(ObservedOf, HasARowForWhatAGraphRanOnTheCpu) {
  Process process;
  process.graphs = {{{{"SCALE", "first", "Vulkan0", false},
                      {"GET_ROWS", "on the CPU", "CPU", true, std::nullopt, 3}},
                     1}};
  process.graph_runs = {{0, 1, {0, 1}}, {0, 1, {1, 2}}};
  const auto make_rows = [](const Process& single) {
    Timeline timeline;
    timeline.processes.push_back(single);
    return to_observed(timeline).ops;
  };
  const auto rows = make_rows(process);
  ASSERT_EQ(rows.size(), 2U) << "no dispatch was seen: the device's op as well";
  EXPECT_EQ(rows[0].op, "GET_ROWS");
  EXPECT_EQ(rows[0].backend, "CPU");
  EXPECT_EQ(rows[0].layer, 3);
  EXPECT_EQ(rows[0].calls, 2);
  EXPECT_EQ(rows[0].phase, Phase::decode);
  EXPECT_FALSE(rows[0].seconds);
  process.graph_runs.back().node_by_node = true;
  EXPECT_TRUE(make_rows(process).empty()) << "node by node each has a row with its time";
}

TEST(WorkTimes, GiveOverlappingWorkOneRow) {
  const auto command = [](const char* name, std::uint32_t group) {
    Command out;
    out.name = name;
    out.group = group;
    return out;
  };
  Timeline timeline;
  timeline.processes.resize(1);
  Submission submission;
  submission.buffers.push_back(
      {{command("a", 0), command("a", 0), command("b", 1), command("a", 1), command("c", 2)},
       Interval{0, 10},
       {{0, 4}, {5, 8}, {8, 9}}});
  timeline.processes[0].submissions.push_back(submission);
  const auto rows = work_times(timeline);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].name, "a");  // both rows of group 0, 2 s each
  EXPECT_EQ(rows[0].calls, 2U);
  EXPECT_DOUBLE_EQ(rows[0].seconds, 4);
  EXPECT_DOUBLE_EQ(rows[0].min_seconds, 2);
  EXPECT_EQ(rows[1].name, "a, b");
  EXPECT_DOUBLE_EQ(rows[1].seconds, 3);
  EXPECT_EQ(rows[2].name, "c");
  // Events cover 4 + 3 + 1 of 10 s.
  EXPECT_NEAR(*coverage(timeline).gap(), 0.2, 1e-12);
}

}  // namespace align_test
}  // namespace weir::observed
