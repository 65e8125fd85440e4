// Records of engine processes as JSON.
#include "gate/profile/record.hpp"

#include <random>

#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/profile/profile.hpp"

namespace weir::profile {
namespace record_test {

ProbeCounts ggml_counts() {
  ProbeCounts ggml;
  ggml.probe = "ggml";
  ggml.counts = {{"cpu_ops", 5}, {"graphs", 5}};
  ggml.graphs = {{.rows = 1,
                  .computed = 5,
                  .ops = 2,
                  .cpu_ops = 1,
                  .splits = 2,
                  .sums = {{"tensor_copies", 25}}}};
  ggml.ops = {{.op = "GET_ROWS",
               .type = "f16,i32->f32",
               .shape = "256x512,1->256",
               .backend = "CPU",
               .on_cpu = true,
               .graph = 0,
               .count = 5},
              {.op = "ADD",
               .type = "",
               .shape = "",
               .backend = "Vulkan0",
               .on_cpu = false,
               .graph = 0,
               .count = 5}};
  ggml.transfers = {
      {.kind = "copy", .from = "CPU_Mapped", .to = "Vulkan0", .calls = 25, .bytes = 2680}};
  return ggml;
}

RunRecord full_record() {
  RunRecord record;
  record.cell = "llama.cpp/tiny-llama/vulkan/decode";
  record.pass = Pass::counted;
  record.order = 7;
  record.parameters = {16, 24, 3, 256};
  record.attempt = 2;
  record.started_at = 1790000000.25;
  record.wall_seconds = 0.1 + 0.2;  // not a short decimal: must come back to the last bit
  record.ended = Ended::signaled;
  record.exit_code = -1;
  record.signal = 11;
  record.cpu_seconds = 1.5;
  record.peak_rss_bytes = std::int64_t{1} << 40;
  record.machine = {0.11, 2.5, 3};
  EngineReport report;
  report.times.push_back({*unit::find_metric("decode_tokens_per_second"), {28.6, 28.1}});
  report.times.push_back({unit::custom_metric("queue_delay", unit::Kind::time, unit::Unit::seconds,
                                              unit::Better::lower),
                          {0.001}});
  report.counts = {{"dispatches_per_token", 65}, {"layers_fused", INT64_MAX}};
  report.count_metrics["layers_fused"] = unit::custom_metric(
      "layers_fused", unit::Kind::count, unit::Unit::count, unit::Better::higher);
  report.printed_values = {{"dispatches_per_token", 24}};
  report.generated_tokens = 24;
  report.prompt_tokens = 0;
  report.output_digest = "abc";
  report.requests = 16;
  report.server = {{"vllm:prompt_tokens_total", ServerFigure::Kind::counter, 80},
                   {"vllm:num_requests_running", ServerFigure::Kind::gauge, 0},
                   {"vllm:ttft_seconds", ServerFigure::Kind::mean, 0.1 + 0.2}};
  report.model = "llama 1B";
  report.engine_build = "b1234";
  report.cpu_variant = "haswell";
  report.device_refuted = "n_gpu_layers 0";
  report.warnings = {"asserts on"};
  record.report = report;
  record.probes.push_back({"vulkan",
                           {{"vulkan", "llvmpipe", "cpu", "vulkan-10005-0-d-1-0a"}},
                           {{"dispatches", 130}, {"syncs", 0}},
                           {{"rope \"norm\"\n", 8}},
                           true,
                           {{"rope \"norm\"\n@00000000000000ff", 8}},
                           {{"rope \"norm\"\n@00000000000000ff", 64}},
                           {"kernel table overflowed"}});
  record.probes.push_back(ggml_counts());
  record.error = "exit 139 (SIGSEGV)\nsecond line";
  record.stderr_tail = "segfault\n";
  record.warnings = {"11 % steal time"};
  return record;
}

RunRecord small_record() {
  RunRecord record;
  record.cell = "e/m/b/p";
  return record;
}

TEST(Record, ComesBackFromItsLineAsItWas) {
  for (const RunRecord& record : {full_record(), small_record()}) {
    const std::string line = dump_json(write_fields(record));
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto json = parse_json(line);
    ASSERT_TRUE(json);
    const auto back = read_fields<RunRecord>(*json, "record");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, record);
  }
}

TEST(Record, KeepsTheTurnsOfAServerInItsPair) {
  RunRecord record = small_record();
  record.pair = 3;
  record.turns = {0, 3, 4, 7};
  const auto back = read_fields<RunRecord>(*parse_json(dump_json(write_fields(record))), "record");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, record);
}

TEST(Record, LeavesOutWhatIsAbsent) {
  const Json json = write_fields(small_record());
  for (const char* key : {"report", "probes", "error", "stderr_tail", "warnings", "machine",
                          "attempt", "signal", "exit_code", "cpu_seconds", "peak_rss_bytes"}) {
    EXPECT_FALSE(json.contains(key)) << key;
  }
}

TEST(Record, SaysWhichFieldIsWrong) {
  struct Case {
    const char* pointer;
    Json value;
    const char* names;
  };
  const Case k_cases[] = {
      {"/pass", "warm", "pass"},
      {"/ended", "vanished", "ended"},
      {"/order", "7", "order"},
      {"/order", 1e30, "order"},
      {"/exit_code", std::int64_t{1} << 40, "exit_code"},
      {"/asked/tokens", "many", "tokens"},
      {"/report/times/0/metric", "bogus_metric", "metric"},
      {"/report/times/0/samples/0", "fast", "samples"},
      {"/report/counts/dispatches_per_token", 6.5, "counts"},
      {"/report/count_metrics/0/metric/unit", "furlong", "metric"},
      {"/probes/0/counts/dispatches", "65", "counts"},
      {"/probes/0/kernels", Json::array(), "kernels"},
      {"/probes/0/devices/0/name", nullptr, "name"},
      {"/probes/1/ops/0/graph", 1, "graph"},
      {"/probes/1/ops/0/count", "5", "count"},
      {"/probes/1/graphs/0/sums/tensor_copies", 0.5, "sums"},
      {"/probes/1/transfers/0/bytes", nullptr, "bytes"},
  };
  for (const Case& test_case : k_cases) {
    Json json = write_fields(full_record());
    json[Json::json_pointer(test_case.pointer)] = test_case.value;
    const auto back = read_fields<RunRecord>(json, "record");
    ASSERT_FALSE(back) << test_case.pointer;
    EXPECT_NE(back.error().message.find(test_case.names), std::string::npos)
        << test_case.pointer << ": " << back.error().message;
  }
}

// A damaged line never crashes the reader. A line that is accepted is written back the same.
TEST(Record, SurvivesTenThousandMutatedLines) {
  const std::string line = dump_json(write_fields(full_record()));
  std::mt19937 random(20261120);
  const std::string_view k_pieces[] = {
      "{}", "[]", "null", "-1", "1e308", "\"\"", "18446744073709551615"};
  std::size_t taken = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string text = line;
    const std::uint_fast32_t edits = 1 + random() % 3;
    for (std::uint_fast32_t edit = 0; edit < edits; ++edit) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, k_pieces[random() % std::size(k_pieces)]);
          break;
        default: {
          // Replacing a whole value keeps the text valid JSON and reaches the field checks.
          const std::size_t colon = text.find(':', at);
          const std::size_t end = text.find_first_of(",}", colon);
          if (end != std::string::npos) {
            text.replace(colon + 1, end - colon - 1, k_pieces[random() % std::size(k_pieces)]);
          }
        }
      }
      if (text.empty()) text = "x";
    }
    const auto json = parse_json(text);
    if (!json) continue;
    const auto record = read_fields<RunRecord>(*json, "record");
    if (!record) continue;
    ++taken;
    const auto again =
        read_fields<RunRecord>(*parse_json(dump_json(write_fields(*record))), "record");
    ASSERT_TRUE(again) << text;
  }
  EXPECT_GT(taken, 100U);  // otherwise mutations never got past the parser
}

TEST(ProfileJson, ComesBackAsItWas) {
  Profile profile;
  profile.cell = *CellKey::parse("e@v/m/vulkan/long@d256");
  profile.device = "vulkan";
  profile.provenance = {"f00", {{"arguments", "1a"}}, "p 1", "vulkan-1-2-3-4-5", "GPU",
                        "mc",  "two cores",           "b1",  {8, 16, 24}};
  Measurement count;
  count.metric = *unit::find_metric("dispatches_per_token");
  count.nature = Nature::exact;
  count.source = "vulkan";
  count.exact = *Rational::make(133, 2);
  profile.metrics["dispatches_per_token"] = count;
  Measurement rate;
  rate.metric = *unit::find_metric("decode_tokens_per_second");
  rate.source = "llama-bench";
  rate.samples = {28.1, 28.6, 30.0, 27.0};
  rate.relative_spread = 0.1;
  rate.warnings = {"w"};
  profile.metrics["decode_tokens_per_second"] = rate;
  profile.kernels =
      KernelSet{unit::Scope::at_length, 24, true, {{"mul", *Rational::make(1, 3)}}, true};
  profile.placement = {Placement::State::ran_elsewhere, "on the CPU", {{"ADD", 3}}};
  profile.work = {24, 0, "d", "m"};
  profile.errors = {"timed: x"};
  profile.stderr_tail = "tail";
  profile.counts_skip_reason = "no probe";
  profile.warnings = {"w2"};
  profile.counted_runs = 3;
  profile.timed_runs = 10;
  profile.profiling_cost = 0.013;
  profile.requests = 16;
  profile.server = {{"vllm:prompt_tokens_total", ServerFigure::Kind::counter, 80}};

  const Json json = write_fields(profile);
  EXPECT_EQ(json["schema"], "weir.profile/1");
  const auto back = read_fields<Profile>(*parse_json(dump_json(json, 2)), "profile");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(dump_json(write_fields(*back)), dump_json(json));
  EXPECT_EQ(back->metrics.at("dispatches_per_token").value(), 66.5);
  EXPECT_DOUBLE_EQ(*back->metrics.at("decode_tokens_per_second").value(), (28.1 + 28.6) / 2);
  EXPECT_EQ(back->kernels, profile.kernels);
  EXPECT_EQ(back->placement, profile.placement);
  EXPECT_EQ(back->work, profile.work);
  EXPECT_EQ(back->requests, 16);
  EXPECT_EQ(back->server, profile.server);
}

TEST(ProfileJson, RefusesAnotherDocument) {
  EXPECT_FALSE(read_fields<Profile>(Json{{"schema", "weir.verdict/1"}}, "profile"));
  EXPECT_FALSE(read_fields<Profile>(Json::array(), "profile"));
}

}  // namespace record_test
}  // namespace weir::profile
