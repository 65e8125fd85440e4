// Tests the document of an engine's own report: JSON, timings, totals, placements and shapes.
#include "gate/observed/observed.hpp"

#include <gmock/gmock.h>

#include "gate/base/json.hpp"
#include "gate/observed/totals.hpp"

namespace weir::observed {
namespace observed_test {

using testing::HasSubstr;

ObservedOp row(const char* op, std::optional<std::int64_t> calls, std::optional<double> seconds,
               Phase phase = Phase::decode) {
  ObservedOp op_row;
  op_row.op = op;
  op_row.calls = calls;
  op_row.seconds = seconds;
  op_row.phase = phase;
  return op_row;
}

// Builds a report with every field at something other than its default.
Observed full() {
  Observed observed;
  observed.format = "made";
  observed.version = "4";
  observed.context = {"engine",  "b1", "m.gguf", "CPU", "EPYC", "run m.gguf", {{"quant", "Q8_0"}},
                      {"m.gguf"}};
  observed.steps = {{"token 1", Phase::decode, 1, 0.5}, {"prompt", Phase::prefill, 16, {}}};
  ObservedOp op = row("MUL_MAT", 4, 0.25);
  op.kernel = "mul_mat_vec";
  op.type = "q8_0,f32->f32";
  op.shape = "256x64,256->64";
  op.backend = "Vulkan0";
  op.node = "Qcur-3";
  op.category = "kernel";
  op.layer = 3;
  op.step = 0;
  op.min_seconds = 0.05;
  op.max_seconds = 0.1;
  op.seconds_without_nested = 0.2;
  op.flops = 32768;
  op.bytes = 18688.5;
  op.includes_other_rows = true;
  observed.ops = {op, row("", {}, {}, Phase::unknown)};
  observed.cpu_calls = {row("submit", 3, 0.125, Phase::unknown)};
  observed.profiled_tokens = 5;
  observed.buffers = {{"layer.0", 2, 1, 10, 9, 1, 0.5, 0.2, 0.3}};
  observed.counts = {
      {*unit::find_metric("dispatches_per_token"), {994, 995}},
      {unit::custom_metric("cmd_bufs", unit::Kind::count, unit::Unit::count, unit::Better::lower),
       {3}}};
  observed.timings = {{*unit::find_metric("decode_tokens_per_second"), {3, 1, 2}, 2, 1}};
  observed.latencies = {
      {*unit::find_metric("time_to_first_token_seconds"), "percentile", 99.9, 0.1, true}};
  observed.cases = {{"pp16", {{"n_batch", "512"}}, 16, 8, 32, observed.timings, "no device"}};
  observed.splits = {{1, 2, "Vulkan0", 7, {{"inp_pos", 1024}}}};
  observed.counters = {{"queue", "gpu", "gauge", {{0.5, 1}, {{}, 2}}}};
  observed.tracks = {{"python", "stream 7", 12, 0.25}};
  observed.prompt_tokens = 16;
  observed.cached_tokens = 4;
  observed.generated_tokens = 8;
  observed.errors = {"panic"};
  observed.truncated = true;
  observed.warnings = {"cut"};
  return observed;
}

TEST(Observed, IsTheSameAfterAJourneyThroughJson) {
  const Observed observed = full();
  const auto back = read_fields<Observed>(write_fields(observed), "observed");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, observed);
  EXPECT_FALSE(empty(observed));
}

TEST(Observed, WritesNothingThatIsAbsent) {
  Observed observed;
  observed.format = "made";
  EXPECT_EQ(dump_json(write_fields(observed)), R"({"format":"made","schema":"weir.observed/1"})");
  EXPECT_TRUE(empty(observed));
  observed.warnings = {"nothing was there"};
  EXPECT_TRUE(empty(observed));
  observed.errors = {"no model"};
  EXPECT_FALSE(empty(observed));
}

TEST(Observed, RefusesWhatIsNotItsJson) {
  struct Case {
    const char* at;
    Json value;
    const char* complaint;
  };
  const Case cases[] = {
      {"/schema", "weir.profile/1", "not weir.observed/1"},
      {"/ops/0/step", 2, "leads nowhere"},
      {"/ops/0/step", -1, "leads nowhere"},
      {"/ops/0/phase", "warm", "none of weir's"},
      {"/ops/0/calls", -3, "below 0"},
      {"/ops/0/seconds", "long", "seconds"},
      {"/counts/0/metric", "no_such_metric", "no metric"},
      {"/timings/0/samples", {1, "x"}, "samples"},
      {"/counters/0/points/0", Json::array({1, 2, 3}), "a number or two"},
      {"/cases", 7, "cases"},
  };
  for (const Case& entry : cases) {
    Json json = write_fields(full());
    json[Json::json_pointer(entry.at)] = entry.value;
    const auto read = read_fields<Observed>(json, "observed");
    ASSERT_FALSE(read) << entry.at;
    const std::string& message = read.error().message;
    EXPECT_THAT(message, HasSubstr(entry.complaint)) << entry.at;
    if (const std::size_t place = message.find("ops[0]"); place != message.npos) {
      EXPECT_EQ(message.find("ops[0]", place + 1), message.npos) << message;
    }
  }
}

TEST(ObservedTiming, IsTheMedianOfItsSamplesElseItsMean) {
  ObservedTiming timing;
  EXPECT_EQ(timing.value(), std::nullopt);
  timing.mean = 7;
  EXPECT_EQ(timing.value(), 7);
  timing.samples = {5, 1, 3};
  EXPECT_EQ(timing.value(), 3);
  timing.samples = {5, 1, 3, 4};
  EXPECT_EQ(timing.value(), 3.5);
}

TEST(ObservedTotals, AddRowsUpByOpMostTimeFirst) {
  Observed observed;
  observed.ops = {row("ADD", 2, 0.5), row("MUL_MAT", 3, 0.25), row("ADD", 1, 0.125),
                  row("ROPE", {}, {})};
  observed.ops[0].min_seconds = 0.2;
  observed.ops[2].min_seconds = 0.125;
  observed.ops[2].max_seconds = 0.3;
  const auto totals = op_totals(observed, GroupBy::op);
  ASSERT_EQ(totals.size(), 3U);
  EXPECT_EQ(totals[0].name, "ADD");
  EXPECT_EQ(totals[0].calls, 3);
  EXPECT_EQ(totals[0].seconds, 0.625);
  EXPECT_EQ(totals[0].min_seconds, 0.125);
  EXPECT_EQ(totals[0].max_seconds, 0.3);
  EXPECT_FALSE(totals[0].partly);
  EXPECT_EQ(totals[2].name, "ROPE");
  EXPECT_EQ(totals[2].seconds, std::nullopt);  // a missing time is not 0
}

TEST(ObservedTotals, SayWhereOnlySomeRowsHaveATime) {
  Observed observed;
  observed.ops = {row("ADD", 2, {}), row("ADD", 1, 0.125), row("MUL", 1, 0.5), row("MUL", 1, {})};
  for (const OpTotal& total : op_totals(observed, GroupBy::op))
    EXPECT_TRUE(total.partly) << total.name;
}

TEST(ObservedTotals, LeaveOutRowsThatCoverOthers) {
  Observed observed;
  observed.ops = {row("total_layer", 1, 2), row("ADD", 1, 1)};
  observed.ops[0].includes_other_rows = true;
  const auto totals = op_totals(observed, GroupBy::op);
  ASSERT_EQ(totals.size(), 1U);
  EXPECT_EQ(totals[0].name, "ADD");
}

TEST(ObservedTotals, GoByLayerInTheirOrder) {
  Observed observed;
  observed.ops = {row("A", 1, 1), row("B", 1, 3), row("C", 1, 2)};
  observed.ops[0].layer = 10;
  observed.ops[1].layer = 2;
  const auto totals = op_totals(observed, GroupBy::layer);
  ASSERT_EQ(totals.size(), 3U);
  EXPECT_EQ(totals[0].name, "layer 2");
  EXPECT_EQ(totals[1].name, "layer 10");
  EXPECT_EQ(totals[2].name, "(no layer)");
}

TEST(ObservedTotals, GoByTokenOverTheStepsThatDecode) {
  Observed observed;
  observed.steps = {{"prompt", Phase::prefill, 16, {}},
                    {"token", Phase::decode, 1, {}},
                    {"token", Phase::decode, {}, {}},
                    {"not profiled", Phase::decode, 9, {}}};
  observed.ops = {row("ADD", 7, 9, Phase::prefill), row("ADD", 4, 0.5), row("ADD", 2, 0.25)};
  for (std::size_t i = 0; i < 3; ++i) observed.ops[i].step = i;
  EXPECT_EQ(decoded_tokens(observed), 2);
  const auto each = op_totals_per_token(observed, GroupBy::op);
  ASSERT_EQ(each.size(), 1U);
  EXPECT_EQ(each[0].calls, 3);        // (4 + 2) / 2
  EXPECT_EQ(each[0].seconds, 0.375);  // (0.5 + 0.25) / 2
  observed.steps.clear();
  for (ObservedOp& op : observed.ops) op.step = std::nullopt;
  EXPECT_TRUE(op_totals_per_token(observed, GroupBy::op).empty());
  observed.profiled_tokens = 3;
  EXPECT_EQ(op_totals_per_token(observed, GroupBy::op)[0].calls, 2);
}

TEST(LayerOfNode, IsWhatItsNameTells) {
  struct Case {
    const char* name;
    std::optional<std::int64_t> layer;
  };
  const Case cases[] = {
      {"Qcur-0", 0},
      {"ffn_geglu-31", 31},
      {"blk.12.attn_q.weight", 12},
      {"cache_k_l3", 3},
      {"cache_v_l10 (view)", 10},
      {"Kcur-1 (view)", 1},
      {"model.layers.7.mlp", 7},
      {"layer 5", 5},
      {"layer.4.attn", 4},
      {"node_27", {}},
      {"norm", {}},
      {"result_output", {}},
      {"inp_pos", {}},
      {"with.3", {}},
      {"-5", {}},
      {"x-99999999999", {}},
      {"a-3b", {}},
      {"", {}},
      {"Vulkan0#Kcur-2#0", {}},  // the copy's number follows and is not reported
  };
  for (const Case& entry : cases) EXPECT_EQ(layer_of_node(entry.name), entry.layer) << entry.name;
}

TEST(FillFromShape, GivesTheWorkOfAMultiplication) {
  ObservedOp op = row("MUL_MAT", 1, {});
  op.type = "q8_0,f32->f32";
  op.shape = "256x64,256->64";
  fill_from_shape(op);
  EXPECT_EQ(op.flops, 2.0 * 256 * 64);
  // q8_0 takes 34 bytes for 32 values: 256 * 64 / 32 * 34, then 256 and 64 values of 4 bytes.
  EXPECT_EQ(op.bytes, 17408 + 1024 + 256);
  op.flops = 1;
  op.bytes = 2;
  fill_from_shape(op);  // keeps numbers of the document
  EXPECT_EQ(op.flops, 1);
  EXPECT_EQ(op.bytes, 2);
}

TEST(FillFromShape, CountsOfATableTheRowsThatAreRead) {
  ObservedOp op;
  op.op = "GET_ROWS";
  op.type = "f16,i32->f32";
  op.shape = "256x512,9->256x9";
  fill_from_shape(op);
  EXPECT_EQ(op.bytes, 256 * 9 * 2 + 9 * 4 + 256 * 9 * 4);  // without the table's 512 rows
  ObservedOp experts = op;
  experts.op = "MUL_MAT_ID";
  experts.bytes.reset();
  fill_from_shape(experts);
  EXPECT_EQ(experts.bytes, std::nullopt) << "which of them are read the shapes do not say";
}

TEST(FillFromShape, SaysNothingOfWhatItDoesNotKnow) {
  for (const auto& [type, shape] : {std::pair{"", "256x64,256->64"},
                                    {"q8_0,f32->f32", "dst(64)"},
                                    {"q99,f32->f32", "256x64,256->64"},
                                    {"f32->f32", "256x64,256->64"},
                                    {"q8_0,f32->f32", "255x64,256->64"},  // no whole blocks
                                    {"f32->f32", "0->0"}}) {
    ObservedOp op = row("ADD", 1, {});
    op.type = type;
    op.shape = shape;
    fill_from_shape(op);
    EXPECT_EQ(op.bytes, std::nullopt) << type << " " << shape;
    EXPECT_EQ(op.flops, std::nullopt) << type << " " << shape;
  }
}

}  // namespace observed_test
}  // namespace weir::observed
