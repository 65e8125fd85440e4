// Tests rows of work from a timeline: by op, shape, backend, layer and token.
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/observed/timeline.hpp"
#include "gate/observed/totals.hpp"

namespace weir::observed {
namespace work_rows_test {

using testing::ElementsAre;
using testing::IsEmpty;

ObservedOp kind(const char* op, const char* type, const char* shape, const char* backend) {
  ObservedOp out;
  out.op = op;
  out.type = type;
  out.shape = shape;
  out.backend = backend;
  fill_from_shape(out);
  return out;
}

OpScope scope(std::uint32_t node, std::uint32_t of, const char* op, double begin, double end) {
  OpScope out;
  out.op = op;
  out.backend = "CPU";
  out.layer = 0;
  out.thread = 1;
  out.call = {begin, end};
  out.place = {0, node, of};
  return out;
}

Command dispatch(const char* name, std::uint32_t group) {
  Command out;
  out.name = name;
  out.group = group;
  return out;
}

// Builds two tokens, the first one split by node. Each has a matrix multiplication on the CPU, then
// one on the device with its sum after it.
Timeline two_tokens() {
  Process process;
  process.name = "engine";
  process.op_kinds = {kind("MUL_MAT", "f32,f32->f32", "10x20,10->20", "CPU"),
                      kind("MUL_MAT", "f32,f32->f32", "20x5,20->5", "Vulkan0"),
                      kind("ADD", "f32,f32->f32", "5,5->5", "Vulkan0")};
  process.graphs = {{{{"MUL_MAT", "Qcur-0", "CPU", true, 0, 0},
                      {"MUL_MAT", "ffn_out-1", "Vulkan0", false, 1, 1},
                      {"ADD", "l_out-1", "Vulkan0", false, 2, 1}},
                     1}};
  process.graph_runs = {{0, 1, {0, 10}, true}, {0, 1, {20, 28}, false}};
  process.op_scopes = {scope(0, 0, "MUL_MAT", 1, 4)};
  process.queues = {{"GPU", "vulkan queue 0.0"}};
  for (const double at : {5.0, 21.0}) {
    Submission sent;
    sent.thread = 1;
    sent.call = {at, at + 0.5};
    sent.buffers.push_back(
        {{dispatch("mul_mat_vec_f32", 0)}, Interval{at, at + 4}, {{at, at + 4}}});
    process.submissions.push_back(sent);
  }
  process.transfers = {{"copy", "CPU", "Vulkan0", 80, 1, {4, 5}}};
  Timeline out;
  out.processes.push_back(process);
  align(out);
  return out;
}

TEST(WorkRows, HoldOpsOfEveryBackendWithShapeLayerAndPhase) {
  const Observed observed = to_observed(two_tokens());
  ASSERT_EQ(observed.ops.size(), 2U);
  const ObservedOp& fused = observed.ops[0];
  EXPECT_EQ(fused.kernel, "mul_mat_vec_f32");
  EXPECT_EQ(fused.op, "MUL_MAT_ADD");
  EXPECT_EQ(fused.shape, "20x5,20->5");
  EXPECT_EQ(fused.backend, "Vulkan0");
  EXPECT_EQ(fused.layer, 1);
  EXPECT_EQ(fused.phase, Phase::decode);
  // Rows leave out the token that was not split: its work on the CPU has no times.
  EXPECT_EQ(fused.calls, 1);
  EXPECT_EQ(fused.seconds, 4);
  EXPECT_EQ(fused.flops, 2.0 * 20 * 5);
  // Reads matrix, vector and second summand, writes the sum; the intermediate result costs nothing.
  EXPECT_EQ(fused.bytes, 4.0 * (100 + 20 + 5 + 5));
  const ObservedOp& on_cpu = observed.ops[1];
  EXPECT_EQ(on_cpu.op + " " + on_cpu.kernel, "MUL_MAT ");
  EXPECT_EQ(on_cpu.backend, "CPU");
  EXPECT_EQ(on_cpu.layer, 0);
  EXPECT_EQ(on_cpu.seconds, 3);
  EXPECT_EQ(observed.profiled_tokens, 1);
  ASSERT_EQ(observed.steps.size(), 2U);
  EXPECT_EQ(observed.steps[1].seconds, 8);
}

// Three requests run at once, each with its next token: a row stands for one token.
TEST(WorkRows, OfRowsThatAreEachTheNextTokenOfASequenceDecodeThemAll) {
  const struct {
    std::uint64_t rows;
    bool rows_apart;
    Phase phase;
    std::optional<std::int64_t> tokens;
  } cases[] = {{1, false, Phase::decode, 1},
               {3, true, Phase::decode, 3},
               {3, false, Phase::prefill, std::nullopt}};
  for (const auto& entry : cases) {
    Timeline timeline = two_tokens();
    timeline.processes[0].graphs[0].rows = entry.rows;
    timeline.processes[0].graphs[0].rows_apart = entry.rows_apart;
    const Observed observed = to_observed(timeline);
    for (const ObservedOp& op : observed.ops) EXPECT_EQ(op.phase, entry.phase) << op.op;
    EXPECT_EQ(observed.steps[0].tokens, entry.rows);
    EXPECT_EQ(decoded_tokens(observed), entry.tokens);
  }
}

TEST(WorkRows, AreGroupedAsThoseOfFiles) {
  const Observed observed = to_observed(two_tokens());
  const auto names = [&](GroupBy by) {
    std::vector<std::string> out;
    for (const OpTotal& total : op_totals(observed, by)) out.push_back(total.name);
    return out;
  };
  EXPECT_THAT(names(GroupBy::layer), ElementsAre("layer 0", "layer 1"));
  EXPECT_THAT(names(GroupBy::backend), ElementsAre("Vulkan0", "CPU"));
  EXPECT_THAT(names(GroupBy::op_shape),
              ElementsAre("MUL_MAT_ADD f32,f32->f32 20x5,20->5 on Vulkan0",
                          "MUL_MAT f32,f32->f32 10x20,10->20 on CPU"));
  const auto each = op_totals_per_token(observed, GroupBy::backend);
  ASSERT_EQ(each.size(), 2U);
  EXPECT_EQ(each[1].seconds, 3);
}

TEST(WorkRows, GiveEachOpOfSeveralGroupsItsFlopsOnce) {
  Timeline timeline = two_tokens();
  auto& buffer = timeline.processes[0].submissions[0].buffers[0];
  // Second part of the same matrix multiplication.
  buffer.commands.push_back(dispatch("matmul_split_k_reduce", 1));
  buffer.groups.push_back({9, 9.5});
  align(timeline);
  const auto totals = op_totals(to_observed(timeline), GroupBy::op);
  ASSERT_EQ(totals[0].name, "MUL_MAT_ADD");
  EXPECT_EQ(totals[0].seconds, 4.5);
  EXPECT_EQ(totals[0].flops, 2.0 * 20 * 5);
  EXPECT_FALSE(totals[0].flops_partly);
}

// Each buffer takes 4 s; buffers are in the first and in the second token.
TEST(WorkRows, HoldCommandBuffersByLabelAndToken) {
  const struct {
    const char* what;
    std::vector<std::string> first, second;
    std::size_t rows;  // rows of a label in a token
    Rational attn;     // "attn" buffers of a token
    bool is_whole;
  } cases[] = {
      {"one in each", {"attn"}, {"attn"}, 2, 1, true},
      {"two in the second", {"attn"}, {"attn", "attn"}, 2, *Rational::make(3, 2), true},
      {"another label", {"attn"}, {"attn", "head"}, 3, 1, true},
      {"one without a label", {"attn"}, {"attn", ""}, 2, 1, false},
      {"no label at all", {""}, {""}, 0, 0, true},
  };
  for (const auto& entry : cases) {
    Timeline timeline = two_tokens();
    timeline.processes[0].queues[0].from_marks = true;
    auto& sent = timeline.processes[0].submissions;
    const BufferWork work = sent[0].buffers[0];
    for (const auto& [labels, to] :
         {std::pair(&entry.first, &sent[0]), std::pair(&entry.second, &sent[1])}) {
      to->buffers.clear();
      for (const std::string& label : *labels) {
        to->buffers.push_back(work);
        to->buffers.back().label = label;
      }
    }
    const Observed observed = to_observed(timeline);
    EXPECT_EQ(observed.buffers.size(), entry.rows) << entry.what;
    const BuffersOfTokens per_token = buffers_per_token(observed);
    EXPECT_EQ(per_token.is_complete, entry.is_whole) << entry.what;
    if (entry.rows == 0) continue;
    EXPECT_EQ(per_token.tokens, 2) << entry.what;
    EXPECT_EQ(per_token.labels[0].buffers, entry.attn) << entry.what;
    EXPECT_DOUBLE_EQ(per_token.labels[0].seconds.value(), 4 * entry.attn.value()) << entry.what;
    EXPECT_EQ(observed.buffers[0].dispatches, 1) << entry.what;
  }
}

TEST(NodeByNodeTiming, RowsByKernelAreOfTheGraphsThatRanSo) {
  Timeline timeline = two_tokens();
  std::uint64_t calls = 0, all = 0;
  for (const WorkTime& row : work_times(timeline, By::kernel)) calls += row.calls;
  for (GraphRun& run : timeline.processes[0].graph_runs) run.node_by_node = false;
  for (const WorkTime& row : work_times(timeline, By::kernel)) all += row.calls;
  EXPECT_LT(calls, all) << "without the device's work of the graph that was left whole";
}

TEST(NodeByNodeTiming, HoldsOpsAgainstTheirGraphAndAgainstAWholeOne) {
  auto all = node_by_node(two_tokens());
  ASSERT_TRUE(all);
  EXPECT_EQ(all->graphs, 1U);
  EXPECT_EQ(all->whole_graphs, 1U);
  EXPECT_EQ(all->rows, 1U);
  EXPECT_DOUBLE_EQ(all->each, 10);
  EXPECT_DOUBLE_EQ(all->ops, 0.7);  // 3 s on the CPU, 4 on the device, of 10
  EXPECT_DOUBLE_EQ(all->transfers, 0.1);
  EXPECT_FALSE(all->cost()) << "one of a sort tells nothing";
  all->graphs = all->whole_graphs = 5;
  EXPECT_DOUBLE_EQ(all->cost().value_or(0), 0.25);  // 10 instead of 8
  Timeline none = two_tokens();
  for (GraphRun& run : none.processes[0].graph_runs) run.node_by_node = false;
  EXPECT_FALSE(node_by_node(none));
}

TEST(Layers, OfANodeWithoutOneAreThoseAroundIt) {
  Graph graph;
  for (const char* name : {"embd", "norm-0", "node_3", "Qcur-0", "cache_k_l0 (view)", "node_6",
                           "norm-1", "node_8", "result_norm"}) {
    graph.nodes.push_back({"MUL", name, "CPU", true});
  }
  find_layers(graph);
  std::vector<std::int64_t> layers;
  for (const Node& node : graph.nodes) layers.push_back(node.layer.value_or(-1));
  EXPECT_THAT(layers, ElementsAre(-1, 0, 0, 0, 0, -1, 1, -1, -1));
}

// Marks of an engine are used if nothing else saw work. Each excludes the marks within it.
TEST(WorkRows, TakeAnEnginesMarksWhereNothingElseIs) {
  Timeline timeline;
  Process process;
  const auto mark = [&](const char* op, std::uint32_t depth, double begin, double end) {
    OpScope out;
    out.op = op;
    out.backend = "CPU";
    out.depth = depth;
    out.call = {begin, end};
    process.op_scopes.push_back(out);
  };
  mark("LAYER", 0, 0, 10);
  mark("MUL_MAT", 1, 1, 4);
  mark("MUL_MAT", 1, 5, 9);
  timeline.processes.push_back(process);
  const auto totals = op_totals(to_observed(timeline), GroupBy::op);
  ASSERT_EQ(totals.size(), 2U);
  EXPECT_EQ(totals[0].name, "MUL_MAT");
  EXPECT_EQ(totals[0].seconds, 7);
  EXPECT_EQ(totals[1].seconds, 3);
  EXPECT_THAT(work_times(timeline), IsEmpty()) << "marks are no device work";
}

// An op on the host takes 10 s and waits from 1 to 7 s, as two probes report it. An op within it
// takes 2 s, half of them a wait. Another thread waits all the time.
TEST(WorkRows, OfTheHostLeaveOutItsWaitsForADevice) {
  Timeline timeline;
  Process& process = timeline.processes.emplace_back();
  process.queues = {{"GPU", "vulkan queue 0.0", true}};
  const auto mark = [&](const char* op, std::uint32_t depth, double begin, double end) {
    OpScope& out = process.op_scopes.emplace_back();
    out.op = op;
    out.backend = "host";
    out.depth = depth;
    out.thread = 1;
    out.call = {begin, end};
  };
  mark("SWIGLU", 0, 0, 10);
  mark("SILU", 1, 8, 10);
  process.waits = {{0, 1, "wait for fence", {1, 5}, true},
                   {0, 1, "wait for queue", {2, 7}, true},
                   {0, 1, "wait for fence", {9, 12}, true},
                   {0, 2, "wait for fence", {0, 20}, true}};
  const auto seconds = [&] {
    std::map<std::string, double> out;
    for (const OpTotal& total : op_totals(to_observed(timeline), GroupBy::op)) {
      out[total.name] = total.seconds.value_or(-1);
    }
    return out;
  };
  EXPECT_THAT(seconds(), testing::ElementsAre(testing::Pair("SILU", 2), testing::Pair("SWIGLU", 8)))
      << "no device was seen at work: the waits are all that tells its time";
  process.commands.push_back({0, dispatch("mul_mat", 0), 0.5, Interval{1, 7}});
  process.commands.back().command.op = "MUL_MAT";
  EXPECT_THAT(seconds(), testing::ElementsAre(testing::Pair("MUL_MAT", 6), testing::Pair("SILU", 1),
                                              testing::Pair("SWIGLU", 2)));
}

// Builds a token of two layers with one dispatch each; one dispatch is in no buffer.
Timeline marked_timeline() {
  Timeline timeline;
  Process process;
  process.queues = {{"GPU", "metal queue 0.0", true}};
  process.graphs = {{{}, 1}};
  process.graph_runs = {{.graph = 0, .call = {10, 10}, .from_marks = true},
                        {.graph = 0, .call = {10, 20}, .from_marks = true}};
  for (std::uint32_t i = 0; i < 4; ++i) {
    OpScope scope;
    scope.op = i % 2 == 0 ? "NORM" : "FFN";
    scope.backend = "GPU";
    scope.layer = static_cast<std::int32_t>(i % 2);
    scope.token = i / 2;
    scope.call = {5.0 * i, 5.0 * i + 1};
    process.op_scopes.push_back(scope);
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    Command command;
    command.name = "kernel";
    command.scope = i;
    if (i % 2 == 0) {
      process.submissions.push_back({0, 0, {5.0 * i, 5.0 * i}, {{{command}, {}, {}}}});
    } else {
      process.commands.push_back({0, command, 5.0 * i, {}});
    }
  }
  timeline.processes.push_back(std::move(process));
  return timeline;
}

// Marks of an engine on the CPU: two tokens of two ops, and nothing on a queue. A graph ends with
// its token; the first begins with its first op.
TEST(WorkRows, OfMarksOnTheCpuBelongToTheirTokens) {
  Timeline timeline = marked_timeline();
  Process& process = timeline.processes[0];
  process.queues.clear();
  process.submissions.clear();
  process.commands.clear();
  align(timeline);
  const Observed observed = to_observed(timeline);
  std::map<std::string, double> seconds, calls;
  for (const OpPerToken& op : op_totals_per_token(observed, GroupBy::op)) {
    seconds[op.name] = op.seconds.value_or(-1);
    calls[op.name] = op.calls.value_or(-1);
  }
  const std::map<std::string, double> expected{{"NORM", 1}, {"FFN", 1}};
  EXPECT_EQ(calls, expected);
  EXPECT_EQ(seconds, expected);
  ASSERT_EQ(observed.steps.size(), 2U);
  EXPECT_EQ(observed.steps[0].seconds, 10);
  process.op_scopes.clear();
  process.graph_runs[0].call = {10, 10};
  EXPECT_EQ(to_observed(timeline).steps[0].seconds, std::nullopt) << "nothing tells its begin";
}

TEST(WorkRows, HaveTheOperandsOfMarks) {
  const auto groups = [](const Timeline& timeline) {
    std::map<std::string, std::int64_t> calls;
    for (const OpTotal& total : op_totals(to_observed(timeline), GroupBy::op_shape))
      calls[total.name] = total.calls.value_or(0);
    return calls;
  };
  using Calls = std::map<std::string, std::int64_t>;
  Timeline timeline = marked_timeline();
  Process& process = timeline.processes[0];
  process.op_kinds = {kind("NORM", "f32->f32", "64x8->64x8", "GPU"),
                      kind("NORM", "f32->f32", "64->64", "GPU")};
  process.op_scopes[0].kind = 0;
  process.op_scopes[2].kind = 1;
  process.op_scopes[3].kind = 7;  // the file is broken
  align(timeline);
  const Calls expected{{"NORM f32->f32 64x8->64x8 on GPU", 1},
                       {"NORM f32->f32 64->64 on GPU", 1},
                       {"FFN on GPU", 2}};
  EXPECT_EQ(groups(timeline), expected) << "of device work in marks";
  process.submissions.clear();
  process.commands.clear();
  EXPECT_EQ(groups(timeline), expected) << "of marks alone";
}

TEST(WorkRows, HaveOpLayerAndStepOfTheMarksAroundThem) {
  Timeline timeline = marked_timeline();
  align(timeline);
  const Observed observed = to_observed(timeline);
  ASSERT_EQ(observed.ops.size(), 2U);
  for (const ObservedOp& op : observed.ops) {
    EXPECT_EQ(op.kernel, "kernel");
    EXPECT_EQ(op.layer, op.op == "FFN" ? 1 : 0);
    EXPECT_EQ(op.calls, 2);
    EXPECT_EQ(op.phase, Phase::decode);
    EXPECT_EQ(op.backend, "GPU");
  }
  EXPECT_EQ(observed.steps.size(), 2U);
  EXPECT_EQ(observed.profiled_tokens, 2);
  std::vector<std::string> names;
  for (const OpTotal& total : op_totals(observed, {GroupBy::layer, GroupBy::op})) {
    names.push_back(total.name);
  }
  EXPECT_THAT(names, ElementsAre("layer 0", "layer 0: NORM", "layer 1", "layer 1: FFN"));
}

// Work between two ops of the second token, and before the first computation.
TEST(WorkRows, InNoOpAreOfTheTokenThatTheyWereSentIn) {
  Timeline timeline = marked_timeline();
  Command loose;
  loose.name = "outside";
  for (const double sent : {1.0, 12.0}) {
    timeline.processes[0].commands.push_back({0, loose, sent, {}});
  }
  timeline.processes[0].op_scopes.erase(timeline.processes[0].op_scopes.begin(),
                                        timeline.processes[0].op_scopes.begin() + 1);
  for (auto& submission : timeline.processes[0].submissions)
    submission.buffers[0].commands[0].scope.reset();
  for (auto& command : timeline.processes[0].commands) command.command.scope.reset();
  align(timeline);
  std::map<Phase, std::int64_t> calls;
  for (const ObservedOp& op : to_observed(timeline).ops) {
    if (op.kernel == "outside") calls[op.phase] += op.calls.value_or(0);
  }
  EXPECT_EQ(calls, (std::map<Phase, std::int64_t>{{Phase::unknown, 1}, {Phase::decode, 1}}));
}

// The device's own probe saw the same work, and one kernel without a mark.
TEST(WorkRows, OfADevicesProbeHaveTheMarksOfTheSameDispatches) {
  const std::vector<std::string> marks{"a", "b", "a", "b"};
  const struct {
    const char* what;
    std::vector<std::string> device_marks, ops;
  } cases[] = {
      {"the same", {"a", "b", "a", "b"}, {"NORM", "FFN", "NORM", "FFN"}},
      {"one more in between", {"a", "x", "b", "a", "b"}, {"NORM", "", "FFN", "NORM", "FFN"}},
      {"one fewer", {"a", "a", "b"}, {"NORM", "NORM", "FFN"}},
      {"names of its own", {"k", "k", "k", "k"}, {"NORM", "FFN", "NORM", "FFN"}},
      {"names of its own, and another number", {"k", "k", "k"}, {"", "", ""}},
  };
  for (const auto& c : cases) {
    Timeline timeline = marked_timeline();
    Process& process = timeline.processes[0];
    process.submissions.clear();
    process.commands.clear();
    process.queues.push_back({"GPU", "vulkan queue 0.0", false});
    const auto submit = [&](std::uint32_t queue, const std::vector<std::string>& names) {
      BufferWork work;
      for (std::size_t i = 0; i < names.size(); ++i) {
        Command command;
        command.name = names[i];
        if (queue == 0) command.scope = static_cast<std::uint32_t>(i);
        work.commands.push_back(command);
      }
      process.submissions.push_back({queue, 0, {1, 2}, {work}});
    };
    submit(0, marks);
    submit(1, c.device_marks);
    align(timeline);
    std::vector<std::string> ops;
    for (const Command& command : process.submissions[1].buffers[0].commands) {
      ops.push_back(command.op);
    }
    EXPECT_EQ(ops, c.ops) << c.what;
    std::int64_t calls = 0;
    for (const ObservedOp& op : to_observed(timeline).ops) calls += op.calls.value_or(0);
    EXPECT_EQ(calls, static_cast<std::int64_t>(c.device_marks.size()))
        << c.what << ": nothing twice";
  }
}

// Only marks have the label of a buffer; only the device's probe sees its copy.
TEST(WorkRows, OfADevicesProbeAreInTheBuffersThatMarksLabel) {
  for (const bool as_many : {true, false}) {
    Timeline timeline = marked_timeline();
    Process& process = timeline.processes[0];
    process.commands.clear();
    process.queues.push_back({"GPU", "vulkan queue 0.0", false});
    process.submissions.resize(1);
    process.submissions[0].buffers[0].label = "attention";
    Command copy;
    copy.name = "copy";
    for (int i = 0; i < (as_many ? 1 : 2); ++i) {
      process.submissions.push_back({1, 0, {1, 2}, {{{copy}, {}, {}}}});
    }
    align(timeline);
    const Command& command = process.submissions[1].buffers[0].commands[0];
    EXPECT_EQ(command.label, as_many ? "attention" : "");
  }
}

TEST(WorkRows, OfGraphsWhoseDevicesNoProbeSawAreOpsWithoutTimes) {
  Timeline timeline;
  Process process;
  process.graphs = {{{{"MUL_MAT", "Qcur-0", "CUDA0", false},
                      {"ROPE", "Qcur-0", "CUDA0", false},
                      {"SOFT_MAX", "kq-0", "CPU", true}},
                     1,
                     3}};
  process.graph_runs = {{.graph = 0, .call = {0, 1}}, {.graph = 0, .call = {1, 2}}};
  timeline.processes.push_back(std::move(process));
  align(timeline);
  const Observed observed = to_observed(timeline);
  const auto totals = op_totals(observed, GroupBy::op);
  ASSERT_EQ(totals.size(), 3U);
  for (const OpTotal& total : totals) EXPECT_EQ(total.calls, 2) << total.name;
  ASSERT_EQ(observed.splits.size(), 2U);
  EXPECT_EQ(observed.splits[0].backend, "CUDA0");
  EXPECT_EQ(observed.splits[0].ops, 2);
  ASSERT_EQ(observed.warnings.size(), 1U);
  EXPECT_EQ(observed.warnings[0],
            "graph 0 was cut into 3 splits; 2 of them lie in different places and are told apart");
}

// Formula of llama.cpp's performance tests: 2 x rows x keys x (key + value) a head.
TEST(Shapes, GiveAttentionItsFlopsAndSetRowsItsBytes) {
  const ObservedOp attention =
      kind("FLASH_ATTN_EXT", "f32,f16,f16,f16->f32", "64x1x4,64x256x2,64x256x2,256->64x4", "CPU");
  EXPECT_EQ(attention.flops, 2.0 * 4 * 256 * (64 + 64));
  const ObservedOp rows = kind("SET_ROWS", "f32,i64,f16->f16", "128,1,128x256->128x256", "CPU");
  EXPECT_EQ(rows.bytes, 128 * 4 + 8 + 128 * 2);
}

// Peak rates are 100 flops and 10 bytes a second. Two calls of 300 flops and 20 bytes take 6 s by
// their flops and 4 s by their bytes. That is 60 % of the peak in 10 s. Rows of other backends or
// without shapes have no peak.
TEST(Peak, IsTheLongerOfFlopsAndBytesAtTheHighestRatesOfTheSameBackend) {
  const auto op = [](const char* backend, double seconds, double flops, double bytes) {
    ObservedOp peak_row;
    peak_row.op = backend + std::string(" op");
    peak_row.backend = backend;
    peak_row.calls = 2;
    peak_row.seconds = seconds;
    if (flops > 0) peak_row.flops = flops;
    if (bytes > 0) peak_row.bytes = bytes;
    return peak_row;
  };
  Observed peak;
  peak.ops = {op("CPU", 2, 100, 1), op("CPU", 2, 1, 10), op("CPU", 2, 50, 5)};
  Observed observed;
  observed.ops = {op("CPU", 10, 300, 20), op("Vulkan0", 10, 300, 20), op("CPU", 10, 0, 0)};
  compare_with_peak(observed, peak);
  EXPECT_EQ(observed.ops[0].seconds_at_peak, 6);
  EXPECT_EQ(observed.ops[1].seconds_at_peak, std::nullopt);
  EXPECT_EQ(observed.ops[2].seconds_at_peak, std::nullopt);
  const auto totals = op_totals(observed, GroupBy::op);
  ASSERT_EQ(totals.size(), 2U);
  EXPECT_EQ(totals[0].share_of_peak(), std::nullopt) << "one row of CPU says nothing";
  observed.ops.pop_back();
  EXPECT_EQ(op_totals(observed, GroupBy::backend)[0].share_of_peak(), 0.6);
}

}  // namespace work_rows_test
}  // namespace weir::observed
