// Tables and blocks that people post of benchmarks and profilers: key figures, each with where it
// comes from. The whole of every sample stands in its golden file (samples_test.cpp).
#include <gmock/gmock.h>

#include "gate/adapters/format.hpp"
#include "gate/adapters/work_table.hpp"

#include "tests/adapters/read_data.hpp"

namespace weir::adapters {
namespace posted_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

observed::Observed read(const std::string& text) {
  auto result = read_any({text});
  if (result) return std::move(*result);
  ADD_FAILURE() << result.error().message;
  return {};
}

std::vector<double> rates(const observed::ObservedCase& test, std::string_view metric) {
  for (const auto& timing : test.timings) {
    if (timing.metric.name == metric) return timing.samples;
  }
  return {};
}

std::vector<std::string> case_names(const observed::Observed& observed) {
  return collect<std::string>(observed.cases, &observed::ObservedCase::name);
}

const observed::ObservedOp& find_op(const std::vector<observed::ObservedOp>& ops,
                                    const std::string& name) {
  static const observed::ObservedOp k_none;
  const auto* match =
      find_first(ops, [&](const auto& op) { return op.op == name || op.kernel == name; });
  if (match == nullptr) ADD_FAILURE() << "no row named " << name;
  return match == nullptr ? k_none : *match;
}

TEST(NumberCell, ReadsWhatTablesHold) {
  const struct {
    const char* cell;
    std::optional<double> value;
  } cases[] = {{"3,200", 3200},
               {"48,000,000", 48e6},
               {"1,923,076.9", 1923076.9},
               {"90,000.000", 90000},
               {"0", 0},
               {" 15.5 ", 15.5},
               {"1,5", 1.5},
               {"-", {}},
               {"--", {}},
               {"nan", {}},
               {"inf", {}},
               {"", {}},
               {"1.5e+04", 1.5e4},
               {"12,34,567", {}},
               {"not set", {}}};
  for (const auto& c : cases) EXPECT_EQ(number_cell(c.cell), c.value) << c.cell;
}

TEST(TimeCell, TakesTheUnitOfTheCellBeforeThatOfTheHeading) {
  EXPECT_DOUBLE_EQ(*time_cell("729.72us"), 729.72e-6);
  EXPECT_DOUBLE_EQ(*time_cell("24.5000s"), 24.5);
  EXPECT_DOUBLE_EQ(*time_cell("1,000.5", 1e-9), 1000.5e-9);
  EXPECT_DOUBLE_EQ(*time_cell("3.5ms", 1e-9), 3.5e-3);
  EXPECT_EQ(time_cell("0.000us"), 0.0) << "0 is a time";
  for (const char* none : {"12", "61.5%", "-3us", "256.00 Kb", "--", ""})
    EXPECT_EQ(time_cell(none), std::nullopt) << none;
}

TEST(BatchedBench, NamesACaseByItsTokensAndItsBatch) {
  const auto table = read(read_data("llama-batched-bench.md.txt"));
  EXPECT_THAT(case_names(table), ElementsAre("pp32 tg16 b1", "pp32 tg16 b4"));
  EXPECT_THAT(rates(table.cases[1], "decode_tokens_per_second"), ElementsAre(1472.55));
  EXPECT_THAT(rates(table.cases[1], "prefill_tokens_per_second"), ElementsAre(9904.82));
  EXPECT_THAT(rates(table.cases[1], "tokens_per_second"), ElementsAre(3405.16));
  EXPECT_EQ(table.cases[1].facts.at("n_ubatch"), "512");
  EXPECT_THAT(table.warnings, Contains(HasSubstr("all its sequences together")));
  const auto lines = read(read_data("llama-batched-bench.jsonl"));
  EXPECT_EQ(case_names(lines), case_names(table));
  EXPECT_THAT(rates(lines.cases[1], "decode_tokens_per_second"), ElementsAre(2215.375977));
}

TEST(BatchedBench, TakesTheCacheOfASweepForItsDepth) {
  const auto sweep = read(read_data("constructed-llama-sweep-bench.md.txt"));
  EXPECT_THAT(case_names(sweep),
              ElementsAre("pp1024 tg256", "pp1024 tg256 @ d1024", "pp1024 tg256 @ d2048"));
  EXPECT_EQ(sweep.cases[0].depth, 0);
  EXPECT_EQ(sweep.cases[2].depth, 2048);
  EXPECT_THAT(rates(sweep.cases[2], "decode_tokens_per_second"), ElementsAre(30.48));
  EXPECT_THAT(sweep.warnings, IsEmpty());
}

constexpr const char* k_batched_heading =
    "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    "
    "S t/s |\n|-------|--------|------|--------|----------|----------|----------|----------|-------"
    "---|----------|\n";
std::string batched_row(const char* decode, const char* tokens = "128") {
  return fmt::format(
      "|   512 | {} |    1 |    640 |    0.640 |   800.00 |    2.000 | {} |    2.640 |   242.42 "
      "|\n",
      tokens, decode);
}

TEST(BatchedBench, KeepsTablesOfTwoRunsApart) {
  const auto both = read(std::string("master:\n") + k_batched_heading + batched_row("64.00") +
                         "\nPR:\n" + k_batched_heading + batched_row("67.05"));
  EXPECT_THAT(case_names(both), ElementsAre("pp512 tg128 b1", "pp512 tg128 b1 (table 2)"));
  EXPECT_THAT(rates(both.cases[1], "decode_tokens_per_second"), ElementsAre(67.05));
}

TEST(BatchedBench, NamesSettingsThatDiffer) {
  const auto row = [](int flash_attn, double rate) {
    return fmt::format(
        R"({{"n_batch": 2048, "flash_attn": {}, "pp": 512, "tg": 32, "pl": 1, "n_kv": 544,)"
        R"( "speed_pp": 2438.1, "speed_tg": {}, "speed": 1208.89}})"
        "\n",
        flash_attn, rate);
  };
  const auto observed = read(row(0, 120) + row(1, 133) + row(1, 134));
  EXPECT_THAT(case_names(observed),
              ElementsAre("pp512 tg32 b1 flash_attn 0", "pp512 tg32 b1 flash_attn 1"));
  EXPECT_THAT(rates(observed.cases[1], "decode_tokens_per_second"), ElementsAre(133, 134));
}

TEST(BatchedBench, CountsRowsThatItCanNotRead) {
  const auto some =
      read(k_batched_heading + batched_row("64.00") + batched_row("nan") + batched_row("inf"));
  EXPECT_EQ(some.cases.size(), 1U);
  EXPECT_THAT(some.warnings, Contains("2 of 3 rows not read: a rate is none or 0"));
  const auto none = read_any({k_batched_heading + batched_row("nan")});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("1 of 1 rows not read"));
  const auto prompts = read(k_batched_heading + batched_row("nan", "0"));  // -ntg 0
  EXPECT_THAT(case_names(prompts), ElementsAre("pp512 b1"));
  EXPECT_THAT(rates(prompts.cases[0], "decode_tokens_per_second"), IsEmpty());
  const auto bench = read(k_batched_heading + batched_row("64.00") +
                          "\n| model | test | t/s |\n| - | - | - |\n| a | tg8 | 9.00 |\n");
  EXPECT_THAT(bench.warnings, Contains(HasSubstr("1 of 2 tables not read")));
}

TEST(LlamaPerplexity, HasItsEstimateAndItsError) {
  const auto observed = read(read_data("constructed-llama-perplexity.txt"));
  const auto* estimate = find_first(
      observed.timings, [](const auto& timing) { return timing.metric.name == "perplexity"; });
  ASSERT_NE(estimate, nullptr);
  EXPECT_EQ(estimate->mean, 6.1);
  EXPECT_EQ(estimate->stddev, 0.21);
}

TEST(Nsys, HasKernelsAndCopiesAsWorkAndCallsBesideThem) {
  const auto observed = read(read_data("constructed-nsys-stats.txt"));
  const auto& kernel = find_op(observed.ops, "k_fast_add(float *, float *)");
  EXPECT_EQ(kernel.category, "kernel");
  EXPECT_EQ(kernel.calls, 100'000);
  EXPECT_DOUBLE_EQ(*kernel.seconds, 6.0);  // 6,000,000,000 ns
  EXPECT_DOUBLE_EQ(*kernel.min_seconds, 1e-6);
  EXPECT_DOUBLE_EQ(*kernel.max_seconds, 90e-6);
  const auto& copy = find_op(observed.ops, "[CUDA memcpy Device-to-Device]");
  EXPECT_EQ(copy.category, "copy");
  EXPECT_DOUBLE_EQ(*copy.bytes, 500'000);  // 10,000.000 MB in 20,000 of them
  EXPECT_EQ(observed.ops.size(), 5U);
  EXPECT_EQ(find_op(observed.cpu_calls, "cudaStreamSynchronize").category, "wait");
  EXPECT_EQ(find_op(observed.cpu_calls, "cudaGraphLaunch_v10000").category, "graph");
  EXPECT_THAT(observed.warnings, ElementsAre(HasSubstr("2 of 13 rows not read")));  // osrt_sum
}

TEST(Nsys, SaysTheSameOfEachCallAndInEachForm) {
  const auto trace = read(read_data("constructed-nsys-gpu-trace.csv"));
  const std::string name = "void mul_mat_vec_q<(ggml_type)8, (int)1>(const void *)";
  EXPECT_EQ(find_op(trace.ops, name).calls, 2);
  EXPECT_NEAR(*find_op(trace.ops, name).seconds, 31e-6, 1e-12);  // 15000 and 16000 ns
  const auto micros = read(
      "Time(%)  Total Time (us)  Instances  Average (us)  Name\n"
      "-------  ---------------  ---------  ------------  ----\n"
      "100.0    1,500            1,000      1.5           a<1>\n\n");
  EXPECT_EQ(find_op(micros.ops, "a<1>").calls, 1000);
  EXPECT_NEAR(*find_op(micros.ops, "a<1>").seconds, 1.5e-3, 1e-12);
}

TEST(Nsys, LeavesATableThatSaysTheSameAgain) {
  const std::string table = read_data("constructed-nsys-kern-sum.csv");
  const auto twice = read(table + "\n" + table);
  EXPECT_EQ(twice.ops.size(), 3U);
  EXPECT_EQ(twice.ops[0].calls, 3200);
  EXPECT_THAT(twice.warnings, Contains(HasSubstr("3 of 6 rows not read: a second table")));
}

TEST(Nsys, KeepsNamesThatDifferFarFromTheirBegin) {
  const std::string begin(300, 'x');
  const auto observed = read("Time (%),Total Time (ns),Instances,Name\n60.0,6000,1,\"" + begin +
                             "<1>\"\n40.0,4000,1,\"" + begin + "<2>\"\n");
  ASSERT_EQ(observed.ops.size(), 2U);
  EXPECT_NE(observed.ops[0].kernel, observed.ops[1].kernel);
}

TEST(Nvprof, ReadsTheUnitOfEachTime) {
  const auto observed = read(read_data("constructed-nvprof.txt"));
  const auto& kernel = find_op(observed.ops, "dequantize_block_q4_0(void const *, float*)");
  EXPECT_EQ(kernel.calls, 130);
  EXPECT_DOUBLE_EQ(*kernel.seconds, 2.04);
  EXPECT_DOUBLE_EQ(*kernel.min_seconds, 8.5e-3);
  EXPECT_EQ(find_op(observed.ops, "[CUDA memcpy HtoD]").category, "copy");
  EXPECT_EQ(find_op(observed.cpu_calls, "cudaDeviceSynchronize").category, "wait");
  EXPECT_EQ(observed.ops.size(), 3U);
}

TEST(Nvprof, ReadsTheUnitsOfCsvFromTheRowBelowTheTitles) {
  const auto observed = read(read_data("constructed-nvprof.csv"));
  const auto& gemv = find_op(
      observed.ops, "void gemv<__half, int=128>(__half const *, __half const *, __half*, int)");
  EXPECT_DOUBLE_EQ(*gemv.seconds, 812.44123e-3);
  EXPECT_EQ(gemv.calls, 4160);
  EXPECT_DOUBLE_EQ(*gemv.min_seconds, 101.12e-6);
  EXPECT_DOUBLE_EQ(*gemv.max_seconds, 0.240112e-3);
  EXPECT_EQ(find_op(observed.ops, "[CUDA memcpy HtoD]").category, "copy");
  EXPECT_DOUBLE_EQ(*find_op(observed.cpu_calls, "cudaDeviceSynchronize").seconds, 506.08e-3);
}

TEST(GoogleBenchmarkConsole, HasTimesRepetitionsAndAggregates) {
  const std::string out = read_data("google-benchmark-console.stdout.txt");
  const auto observed = read(out + "BM_cuda SKIPPED: 'no device'\nDone.\n");
  EXPECT_EQ(observed.format, "google-benchmark-console");
  EXPECT_THAT(case_names(observed),
              ElementsAre("BM_gemv/32", "BM_gemv/64", "BM_gemv/256", "BM_gemv/512",
                          "BM_norm<float,4>/repeats:3", "BM_softmax/repeats:4", "BM_broken/7",
                          "BM_slow/real_time", "BM_cuda"));
  const auto near = [](double seconds) { return testing::DoubleNear(seconds, 1e-12); };
  EXPECT_THAT(rates(observed.cases[3], "real_seconds"), ElementsAre(near(551593e-9)));
  EXPECT_THAT(rates(observed.cases[3], "cpu_seconds"), ElementsAre(near(108777e-9)));
  EXPECT_THAT(rates(observed.cases[4], "real_seconds"),
              ElementsAre(near(494e-9), near(506e-9), near(526e-9)));
  EXPECT_NEAR(observed.cases[5].timings[0].mean.value_or(0), 3.28e-6, 1e-12);
  EXPECT_NEAR(observed.cases[5].timings[0].stddev.value_or(0), 2.06e-6, 1e-12);
  EXPECT_THAT(rates(observed.cases[7], "real_seconds"), ElementsAre(near(0.214)));
  EXPECT_THAT(observed.errors, ElementsAre("BM_broken/7: size must be even"));
  EXPECT_THAT(observed.warnings, ElementsAre("BM_cuda: skipped: no device"));
  EXPECT_THAT(read(out + "BM_more  many ns  3 ns  4\n").warnings,
              Contains(HasSubstr("a row has no time and iterations")));
  const auto both = read_any({out, read_data("google-benchmark-console.stderr.txt")});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->cases.size(), 8U);
  EXPECT_THAT(both->warnings, Contains(HasSubstr("debug build")));
}

// A name that goes over two lines is one metric.
TEST(AiperfConsole, HasTheFiguresOfTheTableAndTheLoadOfTheCommand) {
  const std::string text = read_data("constructed-aiperf-console.txt");
  const auto observed = read(text);
  ASSERT_EQ(observed.cases.size(), 1U);
  const observed::ObservedCase& load = observed.cases[0];
  EXPECT_EQ(load.facts.at("completed"), "40");
  EXPECT_EQ(load.facts.at("concurrency"), "4");
  EXPECT_EQ(observed.context.model, "acme/tiny-1b");
  EXPECT_EQ(load.generated_tokens, 5056) << "126.40 of each";
  EXPECT_EQ(load.prompt_tokens, 20480);
  std::map<std::string, double> figures;
  for (const auto& figure : observed::figures_of(observed)) {
    if (figure.value) figures[figure.name] = *figure.value;
  }
  EXPECT_DOUBLE_EQ(figures["output_tokens_per_second"], 392.75);
  EXPECT_DOUBLE_EQ(figures["requests_per_second"], 3.11);
  EXPECT_DOUBLE_EQ(figures["end_to_end_latency_seconds p99"], 2.69004);
  EXPECT_DOUBLE_EQ(figures["time_to_first_token_seconds p50"], 0.01987);
  EXPECT_DOUBLE_EQ(figures["time_per_output_token_seconds mean"], 0.00941);
  EXPECT_EQ(read(text + text).cases.size(), 2U);
}

TEST(AiperfConsole, CountsTheFailuresThatArePrintedAboveTheTable) {
  const std::string text = read_data("aiperf-console.txt");
  const auto observed = read(text);
  ASSERT_EQ(observed.cases.size(), 1U);
  EXPECT_EQ(observed.cases[0].error, "6 of 24 requests failed");
  EXPECT_EQ(observed.cases[0].facts.at("concurrency"), "4") << "in the command's second line";
  EXPECT_EQ(observed.context.model, "m");
  const auto two = read(text + text);
  ASSERT_EQ(two.cases.size(), 2U);
  EXPECT_EQ(two.cases[0].error, "6 of 24 requests failed");
  EXPECT_EQ(two.cases[1].error, "6 of 24 requests failed");
  const auto none = read(replaced(text, "LLM Metrics  ", "Other  "));
  EXPECT_THAT(none.errors, ElementsAre(HasSubstr("no request was completed")));
}

TEST(AiperfConsole, TakesNoHeadingAmidItsRows) {
  const std::string text = read_data("aiperf-console.txt");
  const std::size_t end = text.find("\n\u2514", text.find("LLM Metrics  "));
  std::string longer = text;
  longer.insert(end, "\n\u2502 Metric \u2502 max \u2502");
  EXPECT_EQ(write_fields(read(longer)), write_fields(read(text)));
}

// What is printed before "Benchmark ..." is the warm-up.
TEST(SglangOneBatch, HasTheRatesOfEachBatch) {
  const auto printed = read(read_data("constructed-sglang-one-batch.txt"));
  const auto lines = read(read_data("constructed-sglang-one-batch.jsonl"));
  EXPECT_THAT(case_names(printed), ElementsAre("batch 4", "batch 8"));
  EXPECT_THAT(case_names(lines), ElementsAre("before, batch_size 4, input_len 512, output_len 32",
                                             "before, batch_size 8, input_len 512, output_len 32"));
  for (const auto* observed : {&printed, &lines}) {
    EXPECT_THAT(rates(observed->cases[0], "prefill_tokens_per_second"), ElementsAre(9732));
    EXPECT_THAT(rates(observed->cases[1], "decode_tokens_per_second"), ElementsAre(451.21));
  }
}

TEST(TorchBenchmark, LeavesATableOfComparisonsOut) {
  const auto observed = read(read_data("torch-benchmark.txt"));
  EXPECT_THAT(case_names(observed), ElementsAre("torch.softmax(x, dim=-1)", "mm, 2 threads",
                                                "add: 64x512", "ops: x + 1"));
}

TEST(TorchBenchmark, HasTheMedianOfEachMeasurement) {
  const auto observed = read(read_data("constructed-torch-benchmark.txt"));
  EXPECT_THAT(case_names(observed),
              ElementsAre("attention(q, k, v)", "attention(q, k, v), 4 threads", "mlp(x)"));
  const auto near = [](double seconds) { return testing::DoubleNear(seconds, 1e-12); };
  EXPECT_THAT(rates(observed.cases[0], "real_seconds"), ElementsAre(near(3.12e-3)));
  EXPECT_THAT(rates(observed.cases[1], "real_seconds"), ElementsAre(near(941.2e-6)));
  EXPECT_THAT(rates(observed.cases[2], "real_seconds"), ElementsAre(near(14.72e-3)));
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("Interquartile range is 32.9%")));
}

TEST(Rocprof, AddsUpTheCallsOfATrace) {
  const auto trace = read(read_data("constructed-rocprofv3-kernel-trace.csv"));
  const auto& kernel = find_op(trace.ops, "void mul_mat_vec_q<8>(float*)");
  EXPECT_EQ(kernel.calls, 2);
  EXPECT_NEAR(*kernel.seconds, 31e-6, 1e-12);  // 15 and 16 us
  EXPECT_NEAR(*kernel.max_seconds, 16e-6, 1e-12);
  for (const char* totals :
       {"constructed-rocprofv3-kernel-stats.csv", "constructed-rocprofv3-summary.txt"}) {
    const auto stats = read(read_data(totals));
    ASSERT_EQ(stats.ops.size(), 2U) << totals;
    EXPECT_EQ(stats.ops[0].calls, 3200) << totals;
    EXPECT_DOUBLE_EQ(*stats.ops[0].seconds, 0.048) << totals;
  }
}

TEST(Rocprof, KnowsCopiesCallsAndSumsOfADomain) {
  const std::string heading = R"("Name","Calls","TotalDurationNs","AverageNs","Percentage")"
                              "\n";
  const auto calls = read(heading +
                          "\"hipLaunchKernel\",10,5000,500.0,50.0\n"
                          "\"hipStreamSynchronize\",1,5000,5000.0,50.0\n");
  EXPECT_THAT(calls.ops, IsEmpty());
  EXPECT_EQ(find_op(calls.cpu_calls, "hipLaunchKernel").category, "submit");
  const auto copies = read(heading + "\"MEMORY_COPY_HOST_TO_DEVICE\",10,5000,500.0,100.0\n");
  EXPECT_EQ(find_op(copies.ops, "MEMORY_COPY_HOST_TO_DEVICE").category, "copy");
  EXPECT_FALSE(read_any({heading + "\"KERNEL_DISPATCH\",10,5000,500.0,100.0\n"}));
  const auto old = read(heading + "\"void f<8>(float*) [clone .kd]\",1,1000,1000,100.0\n");
  EXPECT_EQ(old.ops[0].kernel, "void f<8>(float*)") << "as rocprofv3 names it";
}

TEST(TorchTable, HasOwnTimesOfTheCpu) {
  const auto observed = read(read_data("torch-table.txt"));
  const auto& linear = find_op(observed.ops, "aten::linear");
  EXPECT_EQ(linear.calls, 6);
  EXPECT_DOUBLE_EQ(*linear.seconds, 54.076e-3);
  EXPECT_DOUBLE_EQ(*linear.seconds_without_nested, 12.404e-3);
  EXPECT_DOUBLE_EQ(*find_op(observed.ops, "aten::t").seconds_without_nested, 150.020e-6);
  double own = 0;
  for (const auto& op : observed.ops) own += *observed::exclusive_time(op);
  EXPECT_NEAR(own, 167.742e-3, 1e-6) << "its last line";
  EXPECT_THAT(observed.warnings, IsEmpty());
}

TEST(TorchTable, CountsTheTimeOfADeviceOnce) {
  const auto observed = read(read_data("constructed-torch-table-cuda.txt"));
  double sum = 0;
  for (const auto& op : observed.ops) {
    EXPECT_EQ(op.backend, "CUDA");
    if (!op.includes_other_rows) sum += *op.seconds;
  }
  EXPECT_NEAR(sum, 90e-3, 1e-9) << "Self CUDA time total";
  EXPECT_EQ(find_op(observed.ops, "Memcpy HtoD (Pageable -> Device)").category, "copy");
  EXPECT_EQ(
      find_op(observed.ops, "void (anonymous namespace)::softmax_warp_forward<flo...").category,
      "kernel");
  EXPECT_TRUE(find_op(observed.ops, "auto_dtype").includes_other_rows) << "a range";
  EXPECT_EQ(find_op(observed.cpu_calls, "cudaDeviceSynchronize").category, "wait");
  EXPECT_EQ(find_op(observed.cpu_calls, "aten::copy_").category, "cpu_op");
}

TEST(TorchTable, TakesTheOpsOfADeviceWhereNoKernelIsListed) {
  const auto observed = read(
      "-------------  ----------  --------  -----------  ---------  --------  ---------  ---------"
      "  ----------\n"
      "Name           Self CPU %  Self CPU  CPU total %  CPU total  CPU Mem  Self XPU  XPU total"
      "  # of Calls\n"
      "-------------  ----------  --------  -----------  ---------  --------  ---------  ---------"
      "  ----------\n"
      "aten::linear        10.0%   1.000ms        20.0%    2.000ms    -4.00 Kb    0.000us   5.000ms"
      "           7\n"
      "aten::mm            10.0%   1.000ms        10.0%    1.000ms       0 b    5.000ms   5.000ms"
      "           7\n"
      "-------------  ----------  --------  -----------  ---------  --------  ---------  ---------"
      "  ----------\n"
      "Self CPU time total: 10.000ms\nSelf XPU time total: 10.000ms\n");
  ASSERT_EQ(observed.ops.size(), 1U);
  EXPECT_EQ(observed.ops[0].op, "aten::mm");
  EXPECT_EQ(observed.ops[0].backend, "XPU");
  EXPECT_DOUBLE_EQ(*observed.ops[0].seconds, 5e-3);
  EXPECT_THAT(observed.warnings, ElementsAre(HasSubstr("50 % of the time on XPU")));
}

TEST(TorchTable, IsTheSameBehindTheNamesThatALoggerPutsInFront) {
  const std::string text = read_data("torch-table.txt");
  std::string logged;
  for (const std::string_view line : split_lines(text))
    logged += fmt::format("(EngineCore_DP0 pid=7) INFO 11-05 13:22:49 [worker.py:210] {}\n", line);
  EXPECT_EQ(read(logged).ops, read(text).ops);
}

TEST(ServingConsole, HasWhatTheResultInJsonHas) {
  const auto observed = read(read_data("constructed-vllm-console.txt"));
  ASSERT_EQ(observed.cases.size(), 1U);
  const auto& run = observed.cases[0];
  EXPECT_EQ(observed.context.engine, "vllm");
  EXPECT_EQ(run.error, std::nullopt);
  EXPECT_EQ(run.facts.at("completed"), "1000");
  EXPECT_EQ(observed.generated_tokens, 255'000);
  EXPECT_EQ(run.timings[0].metric.name, "requests_per_second");
  EXPECT_EQ(run.timings[0].mean, 43.48);
  EXPECT_EQ(run.timings[1].mean, 11086.96);  // not "Peak output token throughput"
  EXPECT_EQ(observed.latencies.size(), 9U);
  EXPECT_DOUBLE_EQ(observed.latencies[2].seconds, 18.10016);  // P99 TTFT (ms)
  EXPECT_EQ(observed.latencies[2].percentile, 99);
}

TEST(ServingConsole, IsOfNoUseForAGateUnlessNoRequestFailed) {
  const std::string vllm = read_data("constructed-vllm-console.txt");
  const std::string sglang = read_data("constructed-sglang-console.txt");
  const struct {
    std::string text;
    const char* error;
  } cases[] = {{"x.py --num-prompts 3000\n" + sglang, "1400 of 3000 requests failed"},
               {"Namespace(backend='sglang', num_prompts=1600, seed=1)\n" + sglang, nullptr},
               {replaced(vllm, "Failed requests:                         0",
                         "Failed requests:                         7"),
                "7 of 1007 requests failed"},
               {replaced(vllm, "Successful requests:                     1000",
                         "Successful requests:                     0"),
                "no request was completed"},
               {replaced(vllm, "Total generated tokens:                  255000",
                         "Total generated tokens:                  0"),
                "no token was generated"}};
  for (const auto& c : cases) {
    const auto observed = read(c.text);
    ASSERT_EQ(observed.cases.size(), 1U);
    EXPECT_EQ(observed.cases[0].error.value_or(""), c.error == nullptr ? "" : c.error);
  }
  for (const std::string& text : {sglang, replaced(vllm, "Failed requests:", "Other requests:")}) {
    EXPECT_THAT(read(text).warnings,
                Contains(HasSubstr("it does not say how many requests failed")));
  }
  const auto observed = read(sglang);
  EXPECT_EQ(observed.context.engine, "sglang");
  EXPECT_EQ(observed.latencies.size(), 9U) << "without \"Max ITL\"";
  EXPECT_EQ(read(sglang + vllm).cases.size(), 2U);
}

TEST(VllmOffline, HasLatenciesOfBatchesAndRatesOfAll) {
  const auto latency = read(read_data("constructed-vllm-latency.json"));
  EXPECT_THAT(rates(latency.cases[0], "end_to_end_latency_seconds"), ElementsAre(1.2, 1.23, 1.26));
  const auto printed = read(read_data("constructed-vllm-latency.txt"));
  EXPECT_EQ(printed.cases[0].timings[0].mean, 1.2345);
  EXPECT_EQ(printed.latencies.size(), latency.latencies.size());
  const auto console = read(read_data("constructed-vllm-throughput.txt"));
  EXPECT_EQ(console.generated_tokens, 200'000);
  ASSERT_EQ(console.timings.size(), 3U);
  EXPECT_EQ(console.timings[1].metric.name, "output_tokens_per_second");
  EXPECT_EQ(console.timings[1].mean, 1885.36);
  const auto json = read(read_data("constructed-vllm-throughput.json"));
  EXPECT_EQ(json.timings[0].mean, 9.41);
  EXPECT_EQ(json.timings[1].mean, 4225.09);  // tokens of prompts and answers
  const auto none =
      read_any({R"({"elapsed_time": 0.1, "num_requests": 0, "requests_per_second": 0})"});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("1 of 1 runs not read"));
}

TEST(MlxLmGenerate, HasTheRatesOfEachRun) {
  const std::string text = read_data("constructed-mlx-lm-generate.txt");
  const auto one = read(text);
  EXPECT_EQ(one.prompt_tokens, 32188);
  EXPECT_EQ(one.generated_tokens, 892);
  ASSERT_EQ(one.timings.size(), 2U);
  EXPECT_THAT(one.timings[1].samples, ElementsAre(32.211));
  const auto two = read(text + text);
  EXPECT_EQ(two.cases.size(), 2U);
  EXPECT_THAT(two.timings, IsEmpty());
  const auto none = read(replaced(text, "892 tokens, 32.211", "0 tokens, 0.000"));
  EXPECT_THAT(none.errors, ElementsAre("run 0: no token was generated"));
  EXPECT_TRUE(read(text.substr(0, text.find("Generation"))).truncated);
}

TEST(VkPerfLogger, SaysThatRowsOfOldBuildsAreNotRead) {
  const auto old = read_any({"Vulkan Timings:\nADD: 64 x 263.644 ms\nCPY: 6 x 39.26 ms\n----\n"});
  ASSERT_FALSE(old);
  EXPECT_THAT(old.error().message, HasSubstr("2 of 2 rows not read"));
}

}  // namespace posted_test
}  // namespace weir::adapters
