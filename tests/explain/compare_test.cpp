// Tests which rows of two profiles are the same work, and how much of it changed.
#include "gate/explain/compare.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"

namespace weir::explain {
namespace compare_test {

using observed::Observed;
using observed::ObservedOp;
using observed::Phase;
using testing::ElementsAre;
using testing::HasSubstr;

struct Row {
  const char* op;
  const char* kernel;
  const char* type;
  const char* shape;
  std::int64_t calls;
  double seconds;
};

Observed make_run(const char* backend, std::int64_t tokens, std::vector<Row> rows) {
  Observed observed;
  observed.format = "made";
  observed.context.backend = backend;
  observed.profiled_tokens = tokens;
  for (const Row& row : rows) {
    ObservedOp op;
    op.op = row.op;
    op.kernel = row.kernel;
    op.type = row.type;
    op.shape = row.shape;
    op.backend = backend;
    op.phase = Phase::decode;
    op.calls = row.calls;
    op.seconds = row.seconds;
    observed.ops.push_back(op);
  }
  return observed;
}

Comparison compared(const Observed& a, const Observed& b) { return compare({"a", &a}, {"b", &b}); }

const OpChange& only(const Comparison& comparison) {
  EXPECT_EQ(comparison.ops.size(), 1U) << write_fields(comparison).dump(1);
  static const OpChange k_none;
  return comparison.ops.empty() ? k_none : comparison.ops.front();
}

constexpr const char* k_shape = "256x64,256->64";

// A test of llama-bench, with its rate.
observed::ObservedCase bench_test(const char* model, const char* flash_attn, double rate) {
  observed::ObservedCase test;
  test.name = "tg128";
  test.facts = {{"model_type", model}, {"flash_attn", flash_attn}};
  test.timings = {{*unit::find_metric("decode_tokens_per_second"), {rate}, {}, {}}};
  return test;
}

Observed make_tests(std::vector<observed::ObservedCase> tests) {
  Observed observed;
  observed.format = "made";
  observed.cases = std::move(tests);
  observed.case_settings = {"model_type", "flash_attn"};
  return observed;
}

TEST(Compared, TestsArePairedByTheirSettingsAndNotByTheirPlace) {
  const auto a = make_tests({bench_test("llama", "0", 200), bench_test("llama", "1", 220),
                             bench_test("qwen", "0", 80), bench_test("qwen", "0", 90)});
  // JSON has "true" where a table has "1".
  const auto b = make_tests({bench_test("qwen", "0", 85), bench_test("llama", "true", 110),
                             bench_test("llama", "false", 200), bench_test("gemma", "0", 50)});
  const Comparison comparison = compared(a, b);
  std::vector<std::string> lines;
  for (const MetricChange& metric : comparison.metrics) {
    lines.push_back(
        fmt::format("{} {} {}", metric.name, metric.a.value_or(-1), metric.b.value_or(-1)));
  }
  EXPECT_THAT(lines, ElementsAre("tg128, llama, flash_attn 0 decode_tokens_per_second 200 200",
                                 "tg128, llama, flash_attn 1 decode_tokens_per_second 220 110",
                                 // It ran twice: the median.
                                 "tg128, qwen, flash_attn 0 decode_tokens_per_second 85 85",
                                 "tg128, gemma, flash_attn 0 decode_tokens_per_second -1 50"));
}

TEST(Compared, ASingleTestOfEachSideIsPairedWhateverItsSettings) {
  auto a = make_tests({bench_test("llama", "0", 200)});
  auto b = make_tests({bench_test("llama", "1", 220)});
  a.case_settings.clear();
  b.case_settings.clear();
  const Comparison comparison = compared(a, b);
  ASSERT_EQ(comparison.metrics.size(), 1U);
  EXPECT_EQ(comparison.metrics.front().a, 200);
  EXPECT_EQ(comparison.metrics.front().b, 220);
}

TEST(Compared, WorkIsMatchedByRoleWhateverTheQuantizationTheBackendAndTheEngine) {
  const Row cpu{"MUL_MAT", "", "q8_0,f32->f32", k_shape, 8, 0.004};
  const Row vulkan{"", "mul_mat_vec_q4_0_f32_f32", "", "", 8, 0.002};
  const Row metal{"", "kernel_mul_mv_q8_0_f32", "", "", 8, 0.002};
  const Row logger{"MUL_MAT", "MUL_MAT_VEC", "q4_0,f32->f32", k_shape, 8, 0.002};
  const Row agave{"gemv_ffn", "", "", "", 8, 0.002};
  for (const Row& row : {vulkan, metal, logger, agave}) {
    const Comparison comparison = compared(make_run("CPU", 1, {cpu}), make_run("GPU", 1, {row}));
    const OpChange& op = only(comparison);
    EXPECT_EQ(op.role, "MUL_MAT") << row.kernel << row.op;
    EXPECT_EQ(op.shift, Shift::faster);
    EXPECT_DOUBLE_EQ(op.time_ratio().value(), 0.5);
    EXPECT_THAT(op.a->backends, ElementsAre("CPU"));
    EXPECT_THAT(op.b->backends, ElementsAre("GPU"));
  }
}

// Ten tokens at a rate of `rate` a second.
Observed labelled(double rate, const std::map<std::string, std::pair<int, double>>& labels) {
  Observed observed;
  observed.format = "made";
  observed.profiled_tokens = 10;
  if (rate > 0)
    observed.timings.push_back({*unit::find_metric("decode_tokens_per_second"), {rate}, {}, {}});
  for (const auto& [label, entry] : labels) {
    observed::ObservedBuffer buffer;
    buffer.label = label;
    buffer.buffers = entry.first;
    if (entry.second > 0) buffer.seconds = entry.second;
    observed.buffers.push_back(buffer);
  }
  return observed;
}

TEST(Compared, CommandBuffersGoByTheirLabel) {
  const Observed before =
      labelled(40, {{"attn", {400, 0.05}}, {"moe", {20, 0.10}}, {"old", {10, 0.01}}});
  const Observed after =
      labelled(32, {{"attn", {430, 0.0538}}, {"moe", {20, 0.15}}, {"head", {10, 0.01}}});
  const Comparison comparison = compared(before, after);
  ASSERT_EQ(comparison.buffers.size(), 4U);
  const std::vector<std::pair<const char*, Shift>> want{{"head", Shift::fresh},
                                                        {"old", Shift::gone},
                                                        {"moe", Shift::slower},
                                                        {"attn", Shift::more_calls}};
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(comparison.buffers[i].role, want[i].first);
    EXPECT_EQ(comparison.buffers[i].shift, want[i].second) << want[i].first;
  }
  EXPECT_DOUBLE_EQ(comparison.buffers[3].b->calls.value(), 43);
  EXPECT_DOUBLE_EQ(comparison.buffers[3].b->seconds.value(), 0.00538);
  const auto gap = token_gap(comparison);
  ASSERT_TRUE(gap);
  EXPECT_DOUBLE_EQ(gap->seconds.value(), 1 / 32.0 - 1 / 40.0);
  EXPECT_NEAR(gap->buffers, 0.005 + 0.00038, 1e-12);
  EXPECT_EQ(gap->labels[0].first->role, "moe");
  EXPECT_NEAR(gap->labels[0].second, 0.005, 1e-12);
  EXPECT_THAT(comparison.warnings, ElementsAre());
}

// "moe" takes 1.15 times as long, enough for a finding below a fifth; "head" takes 1.01 times.
TEST(Compared, RowsThatAFindingOrTheGapNamesAreNotTheSame) {
  const auto run = [](double rate, double moe, double head) {
    return labelled(rate, {{"moe", {80, moe}}, {"head", {20, head}}, {"attn", {80, 0.4}}});
  };
  const Observed before = run(40, 1.2, 0.20), after = run(37, 1.38, 0.202);
  Comparison comparison = compared(before, after);
  const auto change = [](const std::vector<OpChange>& rows, const std::string& role) {
    return std::ranges::find(rows, role, &OpChange::role)->shift;
  };
  EXPECT_EQ(change(comparison.buffers, "moe"), Shift::unchanged);
  shift_named_rows(comparison);
  EXPECT_EQ(comparison.buffers.front().role, "moe");
  EXPECT_EQ(change(comparison.buffers, "moe"), Shift::slower);
  EXPECT_EQ(change(comparison.buffers, "head"), Shift::unchanged);
  EXPECT_EQ(change(comparison.buffers, "attn"), Shift::unchanged);
  Comparison back = compared(after, before);
  shift_named_rows(back);
  EXPECT_EQ(change(back.buffers, "moe"), Shift::faster);
  // Ops count as slower only by a finding.
  Comparison ops =
      compared(make_run("GPU", 1, {{"ADD", "", "", "", 1, 0.10}, {"ROPE", "", "", "", 1, 0.10}}),
               make_run("GPU", 1, {{"ADD", "", "", "", 1, 0.11}, {"ROPE", "", "", "", 1, 0.11}}));
  verdict::Finding finding;
  finding.kind = "op_slower";
  finding.ops = {"ADD"};
  ops.findings = {finding};
  shift_named_rows(ops);
  EXPECT_EQ(change(ops.ops, "ADD"), Shift::slower);
  EXPECT_EQ(change(ops.ops, "ROPE"), Shift::unchanged);
}

TEST(Compared, AGapIsToldOfTimesOnBothSidesAlone) {
  const struct {
    const char* what;
    Observed a, b;
    bool gap, rates;
    std::size_t warnings, untimed = 0;
  } cases[] = {
      {"both", labelled(40, {{"attn", {4, 1}}}), labelled(32, {{"attn", {4, 1}}}), true, true, 0},
      {"no rate", labelled(40, {{"attn", {4, 1}}}), labelled(0, {{"attn", {4, 1}}}), true, false,
       0},
      {"no time", labelled(40, {{"attn", {4, 1}}}), labelled(32, {{"attn", {4, 0}}}), false, false,
       0},
      {"no labels", labelled(40, {{"attn", {4, 1}}}), labelled(32, {}), false, false, 1},
      {"no time of one", labelled(40, {{"attn", {4, 1}}, {"moe", {4, 1}}}),
       labelled(32, {{"attn", {4, 1}}, {"moe", {4, 0}}}), true, true, 0, 1},
      {"none at all", labelled(40, {}), labelled(32, {}), false, false, 0},
  };
  for (const auto& entry : cases) {
    const Comparison comparison = compared(entry.a, entry.b);
    const auto gap = token_gap(comparison);
    EXPECT_EQ(gap.has_value(), entry.gap) << entry.what;
    EXPECT_EQ(gap && gap->seconds, entry.rates) << entry.what;
    EXPECT_EQ(gap ? gap->untimed_labels : 0, entry.untimed) << entry.what;
    if (entry.untimed > 0) {
      EXPECT_DOUBLE_EQ(gap->buffers, 0) << entry.what;
    }
    EXPECT_EQ(comparison.warnings.size(), entry.warnings) << entry.what;
  }
}

TEST(Compared, AFusionIsNoRoleOfItsParts) {
  const Comparison comparison =
      compared(make_run("GPU", 1, {{"", "rms_norm_mul_f32", "", "", 4, 0.01}}),
               make_run("GPU", 1,
                        {{"", "rms_norm_f32", "", "", 4, 0.01}, {"", "mul_f32", "", "", 4, 0.01}}));
  ASSERT_EQ(comparison.ops.size(), 3U);
  EXPECT_EQ(comparison.ops[0].shift, Shift::fresh);
  EXPECT_EQ(comparison.ops[1].shift, Shift::fresh);
  EXPECT_EQ(comparison.ops[2].shift, Shift::gone);
  EXPECT_EQ(comparison.ops[2].role, "RMS_NORM_MUL");
}

// A side without kernels reports what each op was for. It is compared with the first op of a
// fusion.
TEST(Compared, NamesGoByOpWhereOneSideTellsNoKernels) {
  const Comparison comparison = compared(
      make_run("Vulkan", 1, {{"RMS_NORM", "RMS_NORM_MUL", "", "", 4, 0.01}}),
      make_run("CPU", 1, {{"RMS_NORM", "", "", "", 4, 0.01}, {"MUL", "", "", "", 4, 0.01}}));
  ASSERT_EQ(comparison.ops.size(), 2U);
  EXPECT_EQ(comparison.ops[0].role, "MUL");
  EXPECT_EQ(comparison.ops[0].shift, Shift::fresh);
  EXPECT_EQ(comparison.ops[1].role, "RMS_NORM");
  EXPECT_EQ(comparison.ops[1].shift, Shift::unchanged);
}

TEST(Compared, WhatChangedIsToldByOneWord) {
  struct Case {
    std::int64_t calls_a, calls_b;
    double seconds_a, seconds_b;
    Shift want;
    const char* why;
  };
  const Case cases[] = {
      {8, 8, 0.010, 0.010, Shift::unchanged, ""},
      {8, 8, 0.010, 0.0119, Shift::unchanged, "19 % is what single runs vary by"},
      {8, 8, 0.010, 0.0121, Shift::slower, ""},
      {8, 8, 0.012, 0.0099, Shift::faster, ""},
      {8, 16, 0.010, 0.020, Shift::more_calls, "each takes as long"},
      {8, 16, 0.010, 0.030, Shift::slower, "more often too, but each takes 1.5 times as long"},
      {8, 4, 0.010, 0.010, Shift::slower, "each takes twice as long"},
      {8, 4, 0.010, 0.004, Shift::fewer_calls,
       "each is faster, but that they are fewer comes first"},
  };
  for (const Case& entry : cases) {
    const Comparison comparison =
        compared(make_run("GPU", 1, {{"ROPE", "", "", "", entry.calls_a, entry.seconds_a}}),
                 make_run("GPU", 1, {{"ROPE", "", "", "", entry.calls_b, entry.seconds_b}}));
    EXPECT_EQ(only(comparison).shift, entry.want)
        << entry.calls_a << " " << entry.calls_b << " " << entry.seconds_b << " " << entry.why;
  }
}

TEST(Compared, RunsOfOtherLengthsAreHeldAgainstEachOtherByToken) {
  const Comparison comparison = compared(make_run("GPU", 10, {{"ROPE", "", "", "", 80, 0.10}}),
                                         make_run("GPU", 5, {{"ROPE", "", "", "", 40, 0.05}}));
  const OpChange& op = only(comparison);
  EXPECT_EQ(op.shift, Shift::unchanged);
  EXPECT_DOUBLE_EQ(op.a->calls.value(), 8);
  EXPECT_DOUBLE_EQ(op.b->seconds.value(), 0.01);
  EXPECT_EQ(comparison.per, "token");
  EXPECT_EQ(comparison.a.tokens, 10);
  EXPECT_TRUE(comparison.decoding);
  EXPECT_TRUE(comparison.warnings.empty());
}

TEST(Compared, RunsThatDoNotTellTokensSaySo) {
  Observed a = make_run("GPU", 1, {{"ROPE", "", "", "", 8, 0.01}});
  a.profiled_tokens.reset();
  const Comparison comparison = compared(a, a);
  EXPECT_EQ(comparison.per, "");
  ASSERT_EQ(comparison.warnings.size(), 1U);
  EXPECT_THAT(comparison.warnings.front(), HasSubstr("does not report its tokens"));
}

TEST(Compared, WhatIsAbsentStaysAbsent) {
  Observed a = make_run("GPU", 1, {{"ROPE", "", "", "", 8, 0}});
  a.ops.front().seconds.reset();
  Observed b = a;
  b.ops.front().calls = 9;
  const Comparison counts = compared(a, b);
  EXPECT_EQ(only(counts).shift, Shift::more_calls);
  EXPECT_FALSE(only(counts).time_ratio());
  EXPECT_FALSE(counts.seconds_a);
  EXPECT_FALSE(write_fields(counts)["ops"][0]["a"].contains("seconds"));
  b.ops.front().calls.reset();
  const Comparison nothing = compared(a, b);
  EXPECT_EQ(only(nothing).shift, Shift::unchanged) << "nobody says how often";
  EXPECT_FALSE(only(nothing).b->calls);
}

TEST(Compared, TheSumIsOfWhatBothSidesTime) {
  Observed all = make_run("GPU", 1,
                          {{"ADD", "", "", "", 1, 0.5},
                           {"GET_ROWS", "", "", "", 1, 0.25},
                           {"ROPE", "", "", "", 1, 0.125},
                           {"SCALE", "", "", "", 1, 0.0625}});
  Observed some = all, none = all;
  some.ops.pop_back();          // SCALE is missing there, which is no time
  some.ops[1].seconds.reset();  // GET_ROWS is there, and not timed
  for (ObservedOp& op : none.ops) op.seconds.reset();
  const struct {
    const char* what;
    const Observed &a, &b;
    std::optional<double> seconds_a, seconds_b;
    std::size_t untimed;
  } cases[] = {
      {"all", all, all, 0.9375, 0.9375, 0},
      {"B lacks a time", all, some, 0.6875, 0.625, 1},
      {"A lacks a time", some, all, 0.625, 0.6875, 1},
      {"neither has it", some, some, 0.625, 0.625, 0},
      {"B has no times", all, none, 0.9375, {}, 0},
  };
  for (const auto& entry : cases) {
    const Comparison comparison = compared(entry.a, entry.b);
    EXPECT_EQ(comparison.seconds_a, entry.seconds_a) << entry.what;
    EXPECT_EQ(comparison.seconds_b, entry.seconds_b) << entry.what;
    EXPECT_EQ(comparison.untimed_ops, entry.untimed) << entry.what;
  }
}

TEST(Compared, WorkTimedTogetherIsComparedWithTheSumOfItsParts) {
  const struct {
    const char* what;
    std::vector<Row> parts, together;
    const char* role;                   // role of the one row; "": they do not meet
    double before = 0, after = 0;       // times of that row
    std::vector<std::string> others{};  // roles of the other rows
  } cases[] = {
      {"a batch",
       {{"ROPE", "", "", "", 8, 0.25}, {"SET_ROWS", "", "", "", 4, 0.5}},
       {{"ROPE, SET_ROWS x 2", "", "", "", 4, 1}},
       "ROPE+SET_ROWS",
       0.75,
       1},
      {"a part that also runs by itself",
       {{"ROPE", "", "", "", 8, 0.25}, {"SET_ROWS", "", "", "", 4, 0.5}},
       {{"ROPE, SET_ROWS", "", "", "", 4, 1}, {"ROPE", "", "", "", 4, 0.25}},
       "ROPE+SET_ROWS",
       0.75,
       1.25},
      {"two batches with a part in common",
       {{"ROPE", "", "", "", 8, 0.25},
        {"SET_ROWS", "", "", "", 4, 0.5},
        {"SCALE", "", "", "", 4, 0.5}},
       {{"ROPE, SET_ROWS", "", "", "", 4, 1}, {"ROPE, SCALE", "", "", "", 4, 0.5}},
       "ROPE+SCALE+SET_ROWS",
       1.25,
       1.5},
      {"a shape that the group names",
       {{"SCALE", "", "", "", 4, 0.25},
        {"RMS_NORM_MUL", "", "", "(64,1,1,1)", 4, 0.25},
        {"RMS_NORM_MUL", "", "", "(256,1,1,1)", 4, 0.5}},
       {{"SCALE, RMS_NORM_MUL RMS_NORM(64,1,1,1)", "", "", "", 4, 1},
        {"RMS_NORM_MUL", "", "", "(256,1,1,1)", 4, 0.5}},
       "RMS_NORM_MUL+SCALE",
       0.5,
       1,
       {"RMS_NORM_MUL"}},
      {"a part that the other side lacks",
       {{"ROPE", "", "", "", 8, 0.25}},
       {{"ROPE, SET_ROWS", "", "", "", 4, 1}},
       "",
       0,
       0,
       {"ROPE", "ROPE+SET_ROWS"}},
  };
  for (const auto& entry : cases) {
    for (const bool find_swapped : {false, true}) {
      const Observed observed = make_run("GPU", 1, entry.parts),
                     together = make_run("GPU", 1, entry.together);
      const Comparison comparison =
          find_swapped ? compared(together, observed) : compared(observed, together);
      std::vector<std::string> others;
      for (const OpChange& op : comparison.ops) {
        if (op.role != entry.role) {
          others.push_back(op.role);
          continue;
        }
        ASSERT_TRUE(op.a && op.b) << entry.what;
        EXPECT_DOUBLE_EQ(op.a->seconds.value(), find_swapped ? entry.after : entry.before)
            << entry.what;
        EXPECT_DOUBLE_EQ(op.b->seconds.value(), find_swapped ? entry.before : entry.after)
            << entry.what;
        EXPECT_FALSE(op.a->calls || op.b->calls) << entry.what;
      }
      std::ranges::sort(others);
      EXPECT_EQ(others, entry.others) << entry.what;
      EXPECT_EQ(comparison.ops.size(), others.size() + (*entry.role == '\0' ? 0 : 1)) << entry.what;
    }
  }
}

// llama.cpp's perf logger with and without GGML_VK_PERF_LOGGER_CONCURRENT: query and key together.
TEST(Compared, SeveralOfOneRoleTimedTogetherAreComparedWithThoseTimedApart) {
  const Row head{"", "MUL_MAT_VEC", "", "512x256,512->256", 4, 0.5};
  const Observed observed = make_run("GPU", 1,
                                     {{"", "MUL_MAT_VEC", "", "256x64,256->64", 8, 0.25},
                                      {"", "MUL_MAT_VEC", "", "256x512,256->512", 4, 0.5},
                                      head});
  const Observed together = make_run(
      "GPU", 1, {{"", "MUL_MAT_VEC q8_0 m=64, MUL_MAT_VEC q8_0 m=512", "", "", 4, 1}, head});
  const Comparison comparison = compared(observed, together);
  ASSERT_EQ(comparison.ops.size(), 2U) << "the shape that both run as often has a row of its own";
  EXPECT_EQ(comparison.ops[0].shift, Shift::slower);
  EXPECT_DOUBLE_EQ(comparison.ops[0].each_ratio().value(), 1 / 0.75);
  EXPECT_FALSE(comparison.ops[0].a->calls || comparison.ops[0].b->calls);
  EXPECT_EQ(comparison.ops[1].shift, Shift::unchanged);
  EXPECT_EQ(comparison.ops[1].a->calls, 4);
}

TEST(Compared, ShapesAreKeptApartWhereBothSidesWordThemAlike) {
  const char* shape = "512x64,512->64";
  const std::vector<Row> rows{{"MUL_MAT", "", "q8_0,f32->f32", k_shape, 8, 0.01},
                              {"MUL_MAT", "", "q8_0,f32->f32", shape, 8, 0.01}};
  auto slower = rows;
  slower[1].seconds = 0.03;
  slower[0].type = slower[1].type = "q4_0,f32->f32";
  const Comparison comparison = compared(make_run("GPU", 1, rows), make_run("GPU", 1, slower));
  ASSERT_EQ(comparison.ops.size(), 2U);
  EXPECT_EQ(comparison.ops[0].shift, Shift::slower);
  EXPECT_THAT(comparison.ops[0].b->shapes, ElementsAre(shape));
  EXPECT_EQ(comparison.ops[1].shift, Shift::unchanged);
  // If another format prints other shapes, the role is one row.
  slower[0].shape = slower[1].shape = "m=64 k=256";
  EXPECT_EQ(compared(make_run("GPU", 1, rows), make_run("GPU", 1, slower)).ops.size(), 1U);
}

// Layers of Agave multiply by "gemv", its output by "lm_head_gemv"; its tables name each part.
TEST(Compared, APartIsARowOfItsOwnWhereItsNameTellsAnotherPlace) {
  const Row layers{"gemv", "", "", "", 12, 0.006}, head{"lm_head_gemv", "", "", "", 1, 0.012};
  const Row ffn{"gemv_ffn", "", "", "", 8, 0.004}, qkv{"gemv_qkv", "", "", "", 4, 0.002};
  const Row ggml{"MUL_MAT", "", "", "", 13, 0.018};
  const struct {
    const char* what;
    std::vector<Row> a, b;
    std::vector<std::string> rows;  // parts of rows; "A: " or "B: ": on one side only
  } cases[] = {
      {"both name both", {layers, head}, {layers, head}, {"", "lm_head"}},
      {"both name a part behind the kernel", {layers, ffn}, {layers, ffn}, {"", "ffn"}},
      {"one has no output", {layers, head}, {layers}, {"", "A: lm_head"}},
      {"parts of the one alone", {layers}, {ffn, qkv}, {""}},
      {"parts of the one, an output of the other", {layers, head}, {ffn, qkv}, {"", "A: lm_head"}},
      {"parts in common", {ffn, qkv}, {ffn, head}, {"A: qkv", "B: lm_head", "ffn"}},
      {"another engine, which names none", {ffn, head}, {ggml}, {""}},
  };
  for (const auto& entry : cases) {
    const Comparison comparison =
        compared(make_run("Metal", 1, entry.a), make_run("Metal", 1, entry.b));
    std::vector<std::string> rows;
    for (const OpChange& op : comparison.ops) {
      EXPECT_EQ(op.role, "MUL_MAT");
      std::string prefix;
      if (!op.a) prefix = "B: ";
      if (!op.b) prefix = "A: ";
      rows.push_back(prefix + op.part);
    }
    std::ranges::sort(rows);
    EXPECT_EQ(rows, entry.rows) << entry.what;
  }
}

TEST(Compared, AShapeThatBothRunAsOftenIsKeptApartFromWorkWithoutOne) {
  const char* head = "256x1000,256->1000";
  const struct {
    const char* what;
    std::int64_t heads;
    std::vector<std::string> shapes;  // shapes of the rows of B; "": several or none
  } cases[] = {{"once a token on both sides", 1, {"", head}}, {"more often on one", 2, {""}}};
  for (const auto& entry : cases) {
    const Comparison comparison = compared(
        make_run("GPU", 1,
                 {{"MUL_MAT", "", "", k_shape, 8, 0.01}, {"MUL_MAT", "", "", head, 1, 0.01}}),
        make_run("GPU", 1,
                 {{"MUL_MAT", "", "", "", 8, 0.01}, {"MUL_MAT", "", "", head, entry.heads, 0.02}}));
    std::vector<std::string> shapes;
    for (const OpChange& op : comparison.ops) {
      ASSERT_TRUE(op.a && op.b) << entry.what;
      const bool has_own_shape =
          op.b->shapes == std::set<std::string>{head} && op.a->shapes == op.b->shapes;
      shapes.emplace_back(has_own_shape ? head : "");
    }
    std::ranges::sort(shapes);
    EXPECT_EQ(shapes, entry.shapes) << entry.what;
  }
}

TEST(Compared, AWorkWhoseShapeChangedIsNotNewAndGone) {
  const auto run = [](const char* last) {
    return make_run("GPU", 1,
                    {{"MUL_MAT", "", "f16,f32->f32", k_shape, 8, 0.01},
                     {"MUL_MAT", "", "f16,f32->f32", last, 1, 0.01}});
  };
  const Comparison comparison = compared(run("256x1000,256->1000"), run("256x3000,256->3000"));
  ASSERT_EQ(comparison.ops.size(), 2U);
  for (const OpChange& op : comparison.ops) EXPECT_TRUE(op.a && op.b);
}

// q4_K_M has q4_K and q6_K, q5_K_M has q5_K and q6_K. The profiles do not tell which q6_K became
// which.
TEST(Compared, TypesAreKeptApartOnlyWhereTheyAreTheSameOnBothSides) {
  const std::vector<Row> mixed{{"MUL_MAT", "", "q4_K,f32->f32", k_shape, 8, 0.01},
                               {"MUL_MAT", "", "q6_K,f32->f32", k_shape, 8, 0.01}};
  auto requantized = mixed;
  requantized[0].type = "q5_K,f32->f32";
  EXPECT_EQ(compared(make_run("GPU", 1, mixed), make_run("GPU", 1, mixed)).ops.size(), 2U);
  const Comparison comparison =
      compared(make_run("GPU", 1, mixed), make_run("GPU", 1, requantized));
  EXPECT_EQ(only(comparison).shift, Shift::unchanged);
  EXPECT_EQ(only(comparison).a->types.size(), 2U);
}

TEST(Compared, WhatIsWorstComesFirstWithinItsKind) {
  const Comparison comparison =
      compared(make_run("GPU", 1, {}), make_run("GPU", 1,
                                                {{"ADD", "", "", "", 1, 0.001},
                                                 {"ROPE", "", "", "", 1, 0.003},
                                                 {"SCALE", "", "", "", 1, 0.002}}));
  std::vector<std::string> roles;
  for (const OpChange& op : comparison.ops) roles.push_back(op.role);
  EXPECT_THAT(roles, ElementsAre("ROPE", "SCALE", "ADD"));
}

TEST(Compared, CallsOfTheCpuInATraceAreNoWorkOfADevice) {
  Observed a =
      make_run("GPU", 1, {{"ROPE", "", "", "", 8, 0.01}, {"wait for fence", "", "", "", 2, 0.5}});
  a.ops[1].category = "wait";
  const Comparison comparison = compared(a, a);
  EXPECT_DOUBLE_EQ(comparison.seconds_a.value(), 0.01);
  EXPECT_EQ(comparison.ops[0].role, "wait for fence") << "under its own name";
}

profile::Profile make_profile(const char* device, std::map<std::string, Rational> kernels) {
  profile::Profile profile;
  profile.cell = *profile::CellKey::parse("llama.cpp/tiny/x/decode");
  profile.device = device;
  profile.kernels = profile::KernelSet{};
  profile.kernels->has_names = true;
  profile.kernels->counts = std::move(kernels);
  return profile;
}

TEST(Compared, ProfilesOfCellsHaveCallsAndNoTimes) {
  const auto gpu = make_profile("vulkan", {{"mul_mat_vec_q8_0_f32_f32", 29}, {"rope_norm_f32", 8}});
  auto moved = make_profile("vulkan", {{"mul_mat_vec_q4_0_f32_f32", 29}, {"rope_norm_f32", 4}});
  moved.placement.cpu_ops = {{"ROPE", 4}};
  const Comparison comparison = compare({"a", &gpu}, {"b", &moved});
  EXPECT_EQ(comparison.per, "token");
  ASSERT_EQ(comparison.ops.size(), 2U);
  for (const OpChange& op : comparison.ops) {
    EXPECT_EQ(op.shift, Shift::unchanged) << op.role;
    EXPECT_FALSE(op.b->seconds);
  }
  EXPECT_THAT(comparison.ops[1].b->backends, ElementsAre("cpu", "vulkan")) << "half of it moved";
}

TEST(Compared, ACellStandsBesideWhatAProfilerWrote) {
  const auto cpu = make_profile("cpu", {{"MUL_MAT q8_0,f32->f32 256x64,256->64", 8}});
  const Observed gpu =
      make_run("Vulkan", 2, {{"MUL_MAT", "MUL_MAT_VEC", "q4_0,f32->f32", k_shape, 16, 0.1}});
  const Comparison comparison = compare({"a", &cpu}, {"b", &gpu});
  const OpChange& op = only(comparison);
  EXPECT_EQ(op.shift, Shift::unchanged);
  EXPECT_THAT(op.a->shapes, ElementsAre(k_shape));
  EXPECT_THAT(op.a->types, ElementsAre("q8_0,f32->f32"));
  EXPECT_DOUBLE_EQ(op.b->calls.value(), 8) << "a token";
}

TEST(Compared, CountsOfOtherUnitsAreNotHeldAgainstEachOther) {
  auto prefill = make_profile("vulkan", {{"rope_norm_f32", 8}});
  prefill.kernels->scope = unit::Scope::per_prefill;
  const auto decode = make_profile("vulkan", {{"rope_norm_f32", 4}, {"scale_f32", 1}});
  const Comparison comparison = compare({"a", &prefill}, {"b", &decode});
  ASSERT_EQ(comparison.ops.size(), 2U);
  EXPECT_EQ(comparison.ops[0].shift, Shift::fresh);
  EXPECT_EQ(comparison.ops[1].shift, Shift::unchanged);
  EXPECT_FALSE(comparison.ops[1].a->calls);
  EXPECT_THAT(comparison.warnings.front(), HasSubstr("do not count by the same unit"));
}

TEST(Compared, CountsOfOtherLengthsAreNotHeldAgainstEachOther) {
  auto short_run = make_profile("vulkan", {{"scale_f32", 8}});
  short_run.kernels->scope = unit::Scope::at_length;
  short_run.kernels->length = 8;
  auto long_run = short_run;
  long_run.kernels->length = 16;
  EXPECT_EQ(compare({"a", &short_run}, {"b", &short_run}).per, "run of length 8");
  const Comparison comparison = compare({"a", &short_run}, {"b", &long_run});
  EXPECT_FALSE(only(comparison).a->calls);
  EXPECT_THAT(comparison.warnings.front(), HasSubstr("do not count by the same unit"));
}

TEST(Compared, ANameThatAFileHasTwiceIsComparedByItsMedian) {
  Observed two = make_run("CPU", 1, {});
  two.timings.push_back({*unit::find_metric("decode_tokens_per_second"), {10}, {}, {}});
  two.timings.push_back({*unit::find_metric("decode_tokens_per_second"), {30}, {}, {}});
  const Comparison comparison = compared(two, two);
  ASSERT_EQ(comparison.metrics.size(), 1U);
  EXPECT_EQ(comparison.metrics[0].a, 20);
  EXPECT_EQ(comparison.metrics[0].b, 20);
}

TEST(Compared, TimesThatAddUpToNoNumberAreNotTold) {
  const Observed huge =
      make_run("CPU", 1, {{"MUL_MAT", "", "", "", 1, 1e308}, {"MUL_MAT", "", "", "", 1, 1e308}});
  const Comparison comparison = compared(huge, huge);
  EXPECT_FALSE(comparison.seconds_a);
  EXPECT_FALSE(only(comparison).a->seconds);
}

TEST(Compared, RatesAndCountsAreThereWithThoseOfOneSideAlone) {
  Observed a = make_run("GPU", 1, {}), b = a;
  a.timings.push_back({*unit::find_metric("decode_tokens_per_second"), {100}, {}, {}});
  b.timings.push_back({*unit::find_metric("decode_tokens_per_second"), {90}, {}, {}});
  b.counts.push_back({*unit::find_metric("syncs_per_token"), {1, 1, 4}});
  const Comparison comparison = compared(a, b);
  ASSERT_EQ(comparison.metrics.size(), 2U);
  EXPECT_EQ(comparison.metrics[0].b, 90);
  EXPECT_FALSE(comparison.metrics[1].a);
  EXPECT_EQ(comparison.metrics[1].b, 2) << "the mean";
}

}  // namespace compare_test
}  // namespace weir::explain
