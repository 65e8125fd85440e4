// Key figures of the formats, each with where it comes from. The whole of every sample stands in
// its golden file (samples_test.cpp).
#include <regex>

#include <gmock/gmock.h>

#include "gate/adapters/format.hpp"
#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"

#include "tests/adapters/read_data.hpp"

namespace weir::adapters {
namespace readers_test {

using observed::GroupBy;
using observed::Phase;
using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

observed::Observed read(const std::string& out, const std::string& err = "") {
  auto result = read_any({out, err});
  if (result) return std::move(*result);
  ADD_FAILURE() << result.error().message;
  return {};
}

std::vector<double> samples_of(const std::vector<observed::ObservedTiming>& timings,
                               const char* metric) {
  for (const auto& timing : timings) {
    if (timing.metric.name == metric) return timing.samples;
  }
  return {};
}

std::vector<std::int64_t> counts_of(const observed::Observed& observed, const char* metric) {
  for (const auto& count : observed.counts) {
    if (count.metric.name == metric) return count.values;
  }
  return {};
}

TEST(Agave, HasItsTableAsDecodeRowsOfAllTokensButTheFirst) {
  const auto observed = read("", read_data("agave-profile.stderr.txt"));
  EXPECT_EQ(observed.context.backend, "CPU");
  EXPECT_EQ(observed.generated_tokens, 6);
  EXPECT_EQ(observed::decoded_tokens(observed), 5);  // the prefill makes the first of 6
  const auto each = op_totals_per_token(observed, GroupBy::op);
  ASSERT_FALSE(each.empty());
  EXPECT_EQ(each[0].name, "gemv_qkv");
  EXPECT_EQ(each[0].calls, 4);                            // 20 calls in 5 tokens
  EXPECT_NEAR(*each[0].seconds, 20 * 1607e-6 / 5, 1e-9);  // 20 of 1607 us each
  // Printed are 176.5 tok/s of 6 tokens: 34 ms, in which 5 steps were taken.
  EXPECT_THAT(samples_of(observed.timings, "decode_tokens_per_second"),
              ElementsAre(DoubleNear(176.5 * 5 / 6, 1e-9)));
  EXPECT_THAT(samples_of(observed.timings, "time_to_first_token_seconds"),
              ElementsAre(DoubleNear(0.009, 1e-12)));
}

// With --prefill-batch-size 1 the table holds the 57 tokens of the prompt as well as the 7 steps.
TEST(Agave, DividesItsTableByTheTokensThatWereLookedUp) {
  const auto observed = read(read_data("agave-profile-sequential.stdout.txt"),
                             read_data("agave-profile-sequential.stderr.txt"));
  EXPECT_EQ(observed::decoded_tokens(observed), 64);
  EXPECT_EQ(observed.generated_tokens, 8);
  std::map<std::string, std::optional<double>> calls;
  for (const auto& total : op_totals_per_token(observed, GroupBy::op))
    calls[total.name] = total.calls;
  EXPECT_EQ(calls["rms_norm"], 19);  // 6 layers: 3 each, and one at the end
  EXPECT_EQ(calls["gemv_qkv"], 6);
  EXPECT_THAT(samples_of(observed.timings, "decode_tokens_per_second"),
              ElementsAre(DoubleNear(7 / 0.073, 1e-4)));  // "gen_ms":73
  EXPECT_THAT(observed::cross_checks(observed), IsEmpty());
  // Embeddings of layers beside the tokens' own: twice as many look-ups (Gemma 4).
  const auto twice = read(
      "", std::regex_replace(read_data("agave-profile.stderr.txt"),
                             std::regex("emb_lookup              5"), "emb_lookup             10"));
  EXPECT_EQ(observed::decoded_tokens(twice), 5);
}

TEST(Agave, SaysWhatItsEngineComplainedOf) {
  const auto missing = read("", read_data("agave-error-missing-file.stderr.txt"));
  EXPECT_THAT(missing.errors,
              ElementsAre("Error: failed to open 'nosuch.gguf': error.FileNotFound"));
  EXPECT_THAT(missing.context.places, ElementsAre("nosuch.gguf"));
  const auto panic = read("", read_data("agave-error-vulkan-q8-panic.stderr.txt"));
  EXPECT_EQ(panic.context.backend, "Vulkan");
  EXPECT_EQ(panic.context.device, "llvmpipe (LLVM 15.0.6, 256 bits)");
  EXPECT_THAT(panic.errors, ElementsAre(HasSubstr("unsupported dtype")));
  const auto fallback = read("", read_data("agave-backend-fallback-metal.stderr.txt"));
  EXPECT_EQ(fallback.context.backend, "CPU");
  EXPECT_THAT(fallback.warnings, Contains("Metal not available on this platform"));
}

TEST(Agave, HasNoRateWhereNoTimeWasMeasured) {  // "1 tok · 0.0 tok/s"
  const auto observed = read("", read_data("agave-profile-n1.stderr.txt"));
  EXPECT_TRUE(samples_of(observed.timings, "decode_tokens_per_second").empty());
  EXPECT_TRUE(observed.ops.empty());
}

TEST(Agave, CountsOfATokenComeInEitherForm) {
  const auto block = read(read_data("constructed-agave-per-token.txt"));
  EXPECT_THAT(counts_of(block, "dispatches_per_token"), ElementsAre(994));
  EXPECT_THAT(counts_of(block, "syncs_per_token"), ElementsAre(1));
  const auto line = read("", read_data("constructed-agave-metal-counters.stderr.txt"));
  EXPECT_THAT(counts_of(line, "dispatches_per_token"), ElementsAre(994));
  EXPECT_THAT(counts_of(line, "barriers_per_token"), ElementsAre(690));
  EXPECT_THAT(counts_of(line, "syncs_per_token"), ElementsAre(1));
  const auto about = read("Metal: ~30 dispatches, ~20 barriers, 1 sync\n");
  EXPECT_THAT(counts_of(about, "dispatches_per_token"), ElementsAre(30));
  EXPECT_THAT(about.warnings, Contains(HasSubstr("rounded")));
}

// 3 tokens in 71 + 91 + 71 ms are 12.9 tok/s, whatever the middle one is; 2 in 71 + 142 ms are 9.4.
TEST(Agave, RateOfTokenTimesIsThatOfTheWholeText) {
  struct Case {
    const char* text;
    double rate;
    std::size_t tokens;
  };
  for (const Case& c : {
           Case{"Token time: 71ms (14.1 tok/s)\n", 14.1, 1},
           Case{"Token time: 71ms (14.1 tok/s)\nToken time: 91ms (11.0 tok/s)\n"
                "Token time: 71ms (14.1 tok/s)\n",
                12.9, 3},
           Case{"Metal: 690 dispatches, 690 barriers, 1 sync\nToken time: 71ms (14.1 tok/s)\n"
                "Metal: 690 dispatches, 690 barriers, 1 sync\nToken time: 142ms (7.0 tok/s)\n",
                9.4, 2},
           Case{"Token time: 25000ms (0.0 tok/s)\n", 0.04, 1},
       }) {
    const auto observed = read(c.text);
    EXPECT_EQ(observed.format, "agave") << c.text;
    ASSERT_EQ(observed.timings.size(), 1U) << c.text;
    EXPECT_THAT(observed.timings[0].samples, ElementsAre(DoubleNear(c.rate, 0.05))) << c.text;
    EXPECT_EQ(observed.steps.size(), c.tokens) << c.text;
  }
  for (const char* none : {"Token time: 0ms (0.0 tok/s)\n", "Token time: soon\n"}) {
    EXPECT_FALSE(read_any({none, ""})) << none;
  }
}

TEST(Agave, CountersAloneNameTheirDevice) {
  for (const char* device : {"Metal", "CUDA", "ROCm", "Vulkan"}) {
    for (const char* form : {"{} stats: 994 dispatches, 690 barriers, 1 syncs\n",
                             "{}: 994 dispatches, 690 barriers, 1 syncs\n",
                             "warning: {} stats: ~994 dispatches, 690 barriers, 1 sync\n",
                             "{} counters:\nDispatches: 994\nBarriers: 690\nSyncs: 1\n"}) {
      const std::string text = fmt::format(fmt::runtime(form), device);
      const auto observed = read(text);
      EXPECT_EQ(observed.format, "agave") << text;
      EXPECT_EQ(observed.context.backend, device) << text;
      EXPECT_THAT(counts_of(observed, "dispatches_per_token"), ElementsAre(994)) << text;
      EXPECT_THAT(counts_of(observed, "syncs_per_token"), ElementsAre(1)) << text;
    }
  }
}

TEST(Agave, LayersOfATokenAddUpWhateverTheirListLeavesOut) {
  const auto observed = read(read_data("constructed-agave-per-token.txt"));
  ASSERT_EQ(observed.steps.size(), 2U);
  EXPECT_EQ(observed.steps[0].seconds, 0.151);
  const auto layers = op_totals(observed, GroupBy::layer, {std::nullopt, 0});
  ASSERT_EQ(layers.size(), 4U);  // 0, 1, 31 and what is of none
  EXPECT_EQ(layers[0].name, "layer 0");
  EXPECT_NEAR(*layers[0].seconds, 0.0081, 1e-9);  // 0.3 + 6.2 + 0.1 + 1.3, and 0.2 not listed
  EXPECT_EQ(layers[2].name, "layer 31");
  for (const auto& op : observed.ops) {
    if (op.op != "gemv") continue;
    EXPECT_EQ(op.calls, 3);  // "gemv×3"
  }
}

// 8.0 + 8.1 ms of layers without a list and 0.2 ms that the list of layer 0 leaves out; layer 0 of
// the second token is listed in full.
TEST(Agave, LayersWithoutAListAreNoOp) {
  const auto totals = op_totals(read(read_data("constructed-agave-per-token.txt")), GroupBy::op);
  for (const auto& total : totals) EXPECT_NE(total.name, "layer");
  ASSERT_FALSE(totals.empty());
  EXPECT_EQ(totals.back().name, observed::k_not_listed) << "no op stands behind it";
  EXPECT_NEAR(*totals.back().seconds, 0.0163, 1e-9);
}

TEST(Agave, HasItsBackendInEachRowWhereverItIsNamed) {
  const struct {
    std::string out, err;
    const char* backend;
  } cases[] = {
      {"", read_data("agave-profile.stderr.txt"), "CPU"},           // the banner
      {read_data("constructed-agave-per-token.txt"), "", "Metal"},  // after the tokens
      {"Token 1: \"a\" (9ms)\n  gemv: 5ms\nMetal counters:\n  Dispatches: 994\n"
       "Token 2: \"b\" (8ms)\n  gemv: 5ms\n",
       "", "Metal"},  // after the first
      {read_data("agave-profile-json.stdout.txt"), read_data("agave-profile-json.stderr.txt"),
       "CPU"},
  };
  for (const auto& c : cases) {
    const auto observed = read(c.out, c.err);
    EXPECT_THAT(observed.ops, testing::Not(IsEmpty()));
    for (const auto& op : observed.ops) EXPECT_EQ(op.backend, c.backend) << op.op;
  }
}

TEST(VkPerfLogger, TellsTokensFromPromptsByTheColumnsOfItsProducts) {
  const auto observed = read("", read_data("vk-perf-logger.stderr.txt"));
  ASSERT_EQ(observed.steps.size(), 3U);
  EXPECT_EQ(observed.steps[0].phase, Phase::prefill);
  EXPECT_EQ(observed.steps[0].tokens, 16);  // n=16
  EXPECT_EQ(observed.steps[1].phase, Phase::decode);
  EXPECT_NEAR(*observed.steps[1].seconds, 0.0449313, 1e-12);
  EXPECT_EQ(observed.context.device, "llvmpipe (LLVM 15.0.6, 256 bits) (llvmpipe)");
  const auto shapes = op_totals(observed, GroupBy::shape, {std::nullopt, 1});
  // MUL_MAT_VEC q8_0 m=512 n=1 k=256: 9 x 603.284 us = 5429.56 us
  const auto product = std::find_if(shapes.begin(), shapes.end(), [](const auto& shape) {
    return shape.name == "MUL_MAT_VEC q8_0,f32->f32 256x512,256->512";
  });
  ASSERT_NE(product, shapes.end());
  EXPECT_EQ(product->calls, 9);
  EXPECT_NEAR(*product->seconds, 5429.56e-6, 1e-12);
  EXPECT_NEAR(*product->flops, 9 * 2.0 * 512 * 256,
              9 * 2.0 * 512 * 256 * 0.005);  // 0.43368 GFLOPS/s
}

TEST(VkPerfLogger, KnowsAFusionFromTheOpItBeginsWith) {
  const auto observed = read("", read_data("vk-perf-logger.stderr.txt"));
  const auto fused = std::find_if(observed.ops.begin(), observed.ops.end(),
                                  [](const auto& op) { return op.kernel == "ROPE_VIEW_SET_ROWS"; });
  ASSERT_NE(fused, observed.ops.end());
  EXPECT_EQ(fused->op, "ROPE");
}

TEST(VkPerfLogger, TellsHowManyTokensABlockHoldsFromHowOftenOpsOccur) {
  const auto observed = read("", read_data("vk-perf-logger-frequency4.stderr.txt"));
  ASSERT_EQ(observed.steps.size(), 2U);  // 6 tokens: 4, then the other 2
  EXPECT_EQ(observed.steps[0].tokens, 4);
  EXPECT_EQ(observed.steps[1].tokens, 2);
  EXPECT_EQ(observed::decoded_tokens(observed), 6);
}

TEST(VkPerfLogger, TellsNoTokensWhereTheirNumberIsBeyondAll) {
  // 2^62 columns, and calls whose common divisor is 4: 2^64 tokens.
  const auto observed = read("",
                             "Vulkan Timings:\n"
                             "MUL_MAT q8_0 m=64 n=4611686018427387904 k=256: 4 x 1 us = 4 us\n"
                             "Total time: 4 us.\n");
  ASSERT_EQ(observed.steps.size(), 1U);
  EXPECT_EQ(observed.steps[0].phase, Phase::prefill);
  EXPECT_EQ(observed.steps[0].tokens, std::nullopt);
}

TEST(VkPerfLogger, SaysHowManyRowsDoNotFit) {
  const auto observed = read("",
                             "Vulkan Timings:\n"
                             "GLU: 4 x nan us = nan us\n"
                             "ADD: -4 x 1 us = -4 us\n"
                             "MUL: 12345678901234567890123 x 1 us = 4 us\n"
                             "load_backend: loaded CPU backend\n"
                             "SCALE: 4 x 1 us = 4 us\n"
                             "Total time: 4 us.\n");
  EXPECT_EQ(observed.ops.size(), 1U);
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("3 of the rows of timings")));
}

TEST(VkPerfLogger, KeepsNodesThatRanTogetherAsOneKernel) {
  const auto observed = read("", read_data("vk-perf-logger-concurrent.stderr.txt"));
  EXPECT_THAT(observed.ops, Contains(testing::Field(&observed::ObservedOp::kernel,
                                                    "SCALE, RMS_NORM_MUL RMS_NORM(64,1,1,1)")));
}

TEST(VkSyncLogger, CountsBarriersOfAGraph) {
  const auto observed =
      read("",
           "0 SCALE inp_scaled\nsync\n1 RMS_NORM norm-0\n2 MUL attn_norm-0\nsync\n"
           "3 MUL_MAT Qcur-3\nsync\n0 SCALE inp_scaled\nsync\n1 RMS_NORM norm-0\n");
  ASSERT_EQ(observed.buffers.size(), 2U);  // numbers begin anew: a next graph
  EXPECT_EQ(observed.buffers[0].barriers, 3);
  EXPECT_EQ(observed.buffers[1].barriers, 1);
  EXPECT_EQ(observed.ops[3].layer, 3);
}

TEST(LlamaPerf, MakesRatesFromTimesWithoutTheFirstToken) {
  const auto program = read("", read_data("llama-perf-context-print-excerpt.stderr.txt"));
  // 532.58 ms / 9 tokens; 3731.56 ms / 7 runs: 8 tokens, the first from the prompt
  EXPECT_THAT(samples_of(program.timings, "prefill_tokens_per_second"),
              ElementsAre(DoubleNear(16.90, 0.005)));
  EXPECT_THAT(samples_of(program.timings, "decode_tokens_per_second"),
              ElementsAre(DoubleNear(1.876, 0.005)));
  EXPECT_THAT(samples_of(program.timings, "load_seconds"), ElementsAre(DoubleNear(0.53959, 1e-9)));
  EXPECT_EQ(program.generated_tokens, 8);
  const auto server = read("", read_data("llama-server-print-timing.stderr.txt"));
  ASSERT_EQ(server.cases.size(), 4U);
  EXPECT_EQ(server.cases[0].name, "task 0");
  EXPECT_EQ(server.cases[0].generated_tokens, 8);
  // 1.37 ms / 8 tokens, of which 7 took that time: it says 5105.76 from 1.371 ms
  EXPECT_THAT(samples_of(server.cases[0].timings, "decode_tokens_per_second"),
              ElementsAre(DoubleNear(7 / 0.00137, 1e-6)));
}

TEST(LlamaPerf, TakesTheOlderPrefixAndNumbersThatAreNone) {
  const auto observed = read("",
                             "llama_print_timings:        load time =  100.00 ms\n"
                             "llama_print_timings: prompt eval time =   0.00 ms /     0 tokens (   "
                             " -nan ms per token,     -nan tokens per second)\n"
                             "llama_print_timings:        eval time =   50.00 ms /     5 runs   (  "
                             " 10.00 ms per token,   100.00 tokens per second)\n");
  EXPECT_TRUE(samples_of(observed.timings, "prefill_tokens_per_second").empty());
  EXPECT_THAT(samples_of(observed.timings, "decode_tokens_per_second"),
              ElementsAre(DoubleNear(100, 1e-9)));
}

// The second answer found all but the last token of its prompt in the cache. Both had 63 tokens.
TEST(LlamaPerf, CountsNoFirstTokenOfAPromptThatWasInTheCache) {
  const std::string text = read_data("llama-cpp-python-excerpt.stderr.txt");
  const std::size_t second = text.find("Llama.generate: 11 prefix-match hit");
  const auto first = read("", text.substr(0, second));
  EXPECT_EQ(first.generated_tokens, 63);
  EXPECT_EQ(first.prompt_tokens, 12);
  EXPECT_TRUE(first.warnings.empty());
  const auto cached = read("", text.substr(second));
  EXPECT_EQ(cached.generated_tokens, 63);
  EXPECT_EQ(cached.prompt_tokens, std::nullopt);
  EXPECT_TRUE(samples_of(cached.timings, "prefill_tokens_per_second").empty());
  EXPECT_THAT(samples_of(cached.timings, "decode_tokens_per_second"),
              ElementsAre(DoubleNear(808.15, 0.05)));
  EXPECT_THAT(cached.warnings, ElementsAre(HasSubstr("no prompt was evaluated")));
}

TEST(LlamaPerf, CountsNoTokensWhereNoneWereGenerated) {
  EXPECT_EQ(read(read_data("constructed-llama-perplexity.txt")).generated_tokens, std::nullopt);
}

TEST(LlamaPerf, TakesACommaForTheDecimalMark) {
  const auto observed = read("",
                             "llama_perf_context_print: prompt eval time =     532,58 ms /     9 "
                             "tokens (   59,18 ms per token,    16,90 tokens per second)\n");
  EXPECT_THAT(samples_of(observed.timings, "prefill_tokens_per_second"),
              ElementsAre(DoubleNear(16.90, 0.005)));
}

TEST(SchedDebug, HasSplitsWithWhatIsCopiedToThem) {
  const auto observed = read("", read_data("sched-debug-1-excerpt.stderr.txt"));
  ASSERT_EQ(observed.steps.size(), 2U);
  EXPECT_EQ(observed.steps[1].tokens, 256);  // ne of inp_tokens before it
  ASSERT_GT(observed.splits.size(), 10U);
  EXPECT_EQ(observed.splits[1].backend, "Vulkan0");
  ASSERT_EQ(observed.splits[1].inputs.size(), 7U);
  EXPECT_EQ(observed.splits[1].inputs[0].name, "ffn_post_norm-2");
  EXPECT_EQ(observed.splits[1].inputs[0].bytes, 1024);
  const auto& views = observed.splits[11].inputs;  // "[cache_k_l0 (view) (permuted) (  32K)]"
  ASSERT_EQ(views.size(), 3U);
  EXPECT_EQ(views[0].name, "cache_k_l0 (view) (permuted)");
  EXPECT_EQ(views[0].bytes, 32 * 1024);
}

TEST(SchedDebug, HasNodesOnTheBackendOfTheirSplit) {
  const auto observed = read("", read_data("sched-debug-2-excerpt.stderr.txt"));
  EXPECT_EQ(observed.ops[0].op, "GET_ROWS");
  EXPECT_EQ(observed.ops[0].node, "embd");
  EXPECT_EQ(observed.ops[4].node, "Qcur-0");
  EXPECT_EQ(observed.ops[4].layer, 0);
  EXPECT_EQ(observed.ops[4].backend, "CPU");
  const auto backends = op_totals(observed, GroupBy::backend, {std::nullopt, 0});
  ASSERT_EQ(backends.size(), 2U);
}

TEST(SchedDebug, ReadsThroughPrefixesOfLogCallsInTheMiddleOfALine) {
  const auto observed = read("", read_data("sched-debug-prefixed-excerpt.stderr.txt"));
  ASSERT_EQ(observed.splits.size(), 2U);
  EXPECT_EQ(observed.splits[1].inputs.size(), 7U);
  EXPECT_EQ(observed.splits[1].inputs[6].name, "out_ids");
}

TEST(GgmlProfiler, SaysTheSameInAllItsForms) {
  const auto v2 = read(read_data("constructed-ggml-profile-v2.json"));
  const auto v4 = read(read_data("constructed-ggml-profile-v4.json"));
  const auto table = read(read_data("constructed-ggml-profile.txt"));
  const auto trace = read(read_data("constructed-ggml-profile-chrome-trace.json"));
  EXPECT_EQ(v2.version, "2");
  EXPECT_EQ(v4.version, "4");
  for (const auto* observed : {&v2, &v4, &table, &trace}) {
    const auto ops = op_totals(*observed, GroupBy::op);
    ASSERT_EQ(ops.size(), 7U) << observed->format;
    EXPECT_EQ(ops[0].name, "RMS_NORM") << observed->format;  // 886.490 us
    EXPECT_NEAR(*ops[0].seconds, 886.49e-6, 1e-8) << observed->format;
    EXPECT_EQ(ops[1].name, "MUL_MAT") << observed->format;
    EXPECT_EQ(ops[1].calls, 3) << observed->format;
    EXPECT_NEAR(*ops[1].seconds, (333.533 + 113.586 + 402.420) * 1e-6, 1e-8) << observed->format;
  }
  EXPECT_EQ(op_totals(v4, GroupBy::backend)[0].name, "Vulkan0");
  EXPECT_EQ(op_totals(table, GroupBy::backend)[0].name, "Vulkan0");
}

TEST(GgmlProfiler, AddsUpSpansOfAFunctionByItsName) {
  const auto observed = read(
      R"({"profiler": "ggml", "version": 4, "records": [], "fn_records": [
          {"name": "decode", "start_ns": 1000, "end_ns": 4000},
          {"name": "other", "start_ns": 0, "end_ns": 1000},
          {"name": "decode", "start_ns": 10000, "end_ns": 11000}]})");
  ASSERT_EQ(observed.ops.size(), 2U);
  EXPECT_EQ(observed.ops[0].op, "decode");
  EXPECT_EQ(observed.ops[0].calls, 2);
  EXPECT_NEAR(*observed.ops[0].seconds, 4e-6, 1e-12);
  EXPECT_NEAR(*observed.ops[0].min_seconds, 1e-6, 1e-12);
  EXPECT_NEAR(*observed.ops[0].max_seconds, 3e-6, 1e-12);
  EXPECT_TRUE(observed.ops[0].includes_other_rows);
}

TEST(GgmlProfiler, HasShapesAndTypesFromItsThirdVersionOn) {
  const auto observed = read(read_data("constructed-ggml-profile-v4.json"));
  const auto product = std::find_if(observed.ops.begin(), observed.ops.end(),
                                    [](const auto& op) { return op.node == "Kcur-0"; });
  ASSERT_NE(product, observed.ops.end());
  EXPECT_EQ(product->shape, "256x64,256x9->64x9");
  EXPECT_EQ(product->type, "q8_0,f32->f32");
  EXPECT_EQ(product->flops, 2.0 * 256 * 64 * 9);
  EXPECT_EQ(product->layer, 0);
}

TEST(GgmlProfiler, SaysWhereItsVersionIsUnknown) {
  const auto text =
      replaced(read_data("constructed-ggml-profile-v4.json"), "\"version\": 4", "\"version\": 9");
  const auto observed = read(text);
  EXPECT_EQ(observed.version, "9");
  EXPECT_EQ(observed.ops.size(), read(read_data("constructed-ggml-profile-v4.json")).ops.size());
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("version 9 of this format is unknown")));
}

TEST(TestBackendOps, TakesTheExactSizeFromTheShape) {
  const auto observed = read(read_data("test-backend-ops-perf-console.stdout.txt"));
  ASSERT_EQ(observed.ops.size(), 3U);
  const auto& product = observed.ops[1];
  EXPECT_EQ(product.op, "MUL_MAT");
  EXPECT_EQ(product.node, "Kcur-0");
  EXPECT_EQ(product.calls, 458752);
  EXPECT_NEAR(*product.seconds, 458752 * 2.20e-6, 1e-9);
  EXPECT_EQ(product.bytes, 17408 + 1024 + 256);  // "18 kB/run"
  const auto sql = read(read_data("test-backend-ops-perf.sql"));
  ASSERT_EQ(sql.ops.size(), 3U);
  EXPECT_NEAR(*sql.ops[1].seconds, 376832 * 2.659604e-6, 1e-9);
  EXPECT_EQ(sql.ops[1].shape, product.shape);
}

TEST(TestBackendOps, TakesASourceWithoutABracketForNone) {
  const auto read =
      read_any({"Backend 1/1: CPU\n"
                "  CPY(type=f32,ne=[2,1,1,1],sources=f32[2,1],f32 2,1]): 10 runs - "
                "2.00 us/run - 1 kB/run - 1.00 GB/s\n"});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->ops[0].type, "");
}

TEST(TestBackendOps, TakesBuiltInCasesWithTheirOwnRates) {
  const auto observed = read(
      "Testing 1 devices\n\nBackend 1/1: CPU\n"
      "  MUL_MAT(type_a=f32,m=4096,n=1,k=14336,bs=[1,1]):    852 runs -  1177.00 us/run - 117.44 "
      "MFLOP/run -  99.78 GFLOPS\n"
      "  ARGMAX(type=f32,ne=[32,1,1,1]): not supported\n"
      "  Backend CPU: \x1B[1;32mOK\x1B[0m\n1/1 backends passed\n");
  ASSERT_EQ(observed.ops.size(), 1U);
  EXPECT_EQ(observed.ops[0].flops, 117.44e6);
  EXPECT_EQ(observed.ops[0].bytes, std::nullopt);
  EXPECT_THAT(observed.warnings, ElementsAre(HasSubstr("not supported: ARGMAX")));
}

TEST(TestBackendOps, TellsWhatLooksLikeSuccessAndMeasuredNothing) {
  const auto skipped = read(read_data("test-backend-ops-unknown-backend.stdout.txt"));
  EXPECT_THAT(skipped.warnings, ElementsAre(HasSubstr("CPU was skipped")));
  const auto malformed = read(read_data("test-backend-ops-error-malformed-line.stdout.txt"));
  EXPECT_THAT(malformed.errors, ElementsAre("failed to allocate tensors"));
  const auto failing = read(read_data("test-backend-ops-test-console.stdout.txt"));
  EXPECT_THAT(failing.errors, ElementsAre(HasSubstr("NaN at index 617")));
  EXPECT_EQ(failing.ops.size(), 2U);
}

TEST(LlamaBenchTables, NameTheColumnsOfMarkdownAsTheOtherFormsDo) {
  const auto md = read(read_data("llama-bench.md.txt"));
  const auto& facts = md.cases.at(0).facts;
  EXPECT_EQ(facts.at("model_type"), "gemma3 ?B (guessed) Q8_0");
  EXPECT_EQ(facts.at("model_size"), "2.41 MiB");
  EXPECT_EQ(facts.at("model_n_params"), "2.36 M");
  EXPECT_EQ(facts.at("backends"), "Vulkan");
  EXPECT_EQ(facts.at("n_gpu_layers"), "-1");
  EXPECT_EQ(facts.count("ngl"), 0U);
}

TEST(LlamaBenchTables, SayWhatTheJsonSaysButForSamples) {
  const auto csv = read(read_data("llama-bench.csv"));
  ASSERT_EQ(csv.cases.size(), 2U);
  EXPECT_EQ(csv.cases[0].name, "pp16");
  EXPECT_EQ(csv.cases[0].timings[0].mean, 22.285047);
  EXPECT_EQ(csv.cases[0].timings[0].stddev, 0.088065);
  EXPECT_EQ(csv.cases[1].name, "tg8");
  EXPECT_EQ(csv.context.engine_build, "0ad4a86");
  EXPECT_EQ(csv.generated_tokens, 8);
  const auto sql = read(read_data("llama-bench.sql"));
  ASSERT_EQ(sql.cases.size(), 1U);
  EXPECT_EQ(sql.cases[0].timings[0].mean, 36.782971);
  const auto table = read(read_data("llama-bench.md.txt"));
  ASSERT_EQ(table.cases.size(), 2U);
  EXPECT_EQ(table.cases[1].timings[0].mean, 3735.50);
  EXPECT_EQ(table.cases[1].timings[0].stddev, 3107.17);
  EXPECT_EQ(table.context.engine_build, "0ad4a86");
  EXPECT_FALSE(table.truncated);
}

TEST(LlamaBenchJson, KeepsEveryTestAndItsSamples) {
  const auto observed = read(read_data("llama-bench.jsonl"));
  std::vector<std::string> names;
  for (const auto& test : observed.cases) names.push_back(test.name);
  EXPECT_THAT(names,
              ElementsAre("pp16", "tg8", "pp16+tg8", "pp16 @ d32", "tg8 @ d32", "pp16+tg8 @ d32"));
  EXPECT_TRUE(observed.timings.empty());  // two tests of each kind: neither is the run's
  EXPECT_EQ(observed.cases[0].timings[0].samples.size(), 2U);
  const auto failed = read("[\n", read_data("llama-bench-error-missing-model.stderr.txt"));
  EXPECT_THAT(failed.errors, ElementsAre(HasSubstr("failed to load model 'nosuch.gguf'")));
}

TEST(LlamaServer, DividesByTheTokensThatTookTheTime) {
  const auto observed = read(read_data("llama-server-completion.json"));
  // 8 tokens, the first of the prompt: 7 in 1.371 ms
  EXPECT_THAT(samples_of(observed.timings, "decode_tokens_per_second"),
              ElementsAre(DoubleNear(5105.762, 0.001)));
  EXPECT_THAT(samples_of(observed.timings, "prefill_tokens_per_second"),
              ElementsAre(DoubleNear(2387.901, 0.001)));
  EXPECT_EQ(observed.generated_tokens, 8);
  const auto stream = read(read_data("llama-server-stream.sse.txt"));
  ASSERT_EQ(stream.cases.size(), 1U);
  EXPECT_GE(stream.steps.size(), 1U);
  EXPECT_THAT(stream.warnings, Contains(HasSubstr("cache")));  // cache_n 4
}

TEST(GoogleBenchmark, AnErrorIsNotFast) {
  const auto observed = read(read_data("google-benchmark.json"));
  ASSERT_EQ(observed.cases.size(), 2U);
  EXPECT_THAT(samples_of(observed.cases[0].timings, "real_seconds"),
              ElementsAre(DoubleNear(3.4804189574783617e-6, 1e-18)));
  EXPECT_EQ(observed.cases[1].error, "no device");
  EXPECT_TRUE(observed.cases[1].timings.empty());
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("debug build")));
}

TEST(GoogleBenchmark, TakesMeansAndDeviationsWhereThereAreAggregatesAlone) {
  const auto observed = read(read_data("google-benchmark-aggregates.json"));
  ASSERT_EQ(observed.cases.size(), 1U);
  EXPECT_EQ(observed.cases[0].name, "BM_gemv/64");
  ASSERT_FALSE(observed.cases[0].timings.empty());
  EXPECT_NEAR(*observed.cases[0].timings[0].mean, 3.7199822805196763e-6, 1e-18);
  EXPECT_NEAR(*observed.cases[0].timings[0].stddev, 1.0319126023777574e-6, 1e-18);  // not the cv
}

TEST(GoogleBenchmark, ReadsRowsWithBareNaN) {
  const auto observed = read(R"({"context": {"library_build_type": "release"}, "benchmarks": [
    {"name": "a", "run_type": "iteration", "real_time": 2.0, "cpu_time": 1.0, "time_unit": "ms", "x": NaN}]})");
  ASSERT_EQ(observed.cases.size(), 1U);
  EXPECT_THAT(samples_of(observed.cases[0].timings, "real_seconds"), ElementsAre(0.002));
}

// 12 ms of command buffers; the CPU took 10 ms to write their commands.
TEST(Hf2q, HoldsEncodingTimesAgainstNoCommandBuffer) {
  const auto observed = read(
      "",
      "[CB_PROFILE] total=12.00ms across 1 labels:\n"
      "  100.0%     12.00ms  count=40    avg= 300.0µs  min=110.2µs  max=400.9µs  layer\n"
      "[GREEDY_PROFILE] linear_attn=6.0ms full_attn=4.0ms total_layers=10.0ms dispatches=1350\n");
  ASSERT_EQ(observed.ops.size(), 3U);
  EXPECT_THAT(observed::cross_checks(observed), IsEmpty());
}

TEST(Hf2q, PairsTheLinesOfATokenAndKeepsItsBuffers) {
  const auto observed = read("", read_data("constructed-hf2q.stderr.txt"));
  EXPECT_THAT(counts_of(observed, "dispatches_per_token"), ElementsAre(1350, 1351));
  EXPECT_THAT(counts_of(observed, "submits_per_token"), ElementsAre(102, 102));
  EXPECT_EQ(observed::decoded_tokens(observed), 2);
  const auto each = op_totals_per_token(observed, GroupBy::op);
  EXPECT_EQ(each[0].name, "output_head");
  EXPECT_NEAR(*each[0].seconds, (0.0051 + 0.005) / 2, 1e-12);
  ASSERT_EQ(observed.buffers.size(), 3U);
  EXPECT_EQ(observed.buffers[1].label, "layer.linear attn [gated]");
  EXPECT_EQ(observed.buffers[1].buffers, 40);
  EXPECT_NEAR(*observed.buffers[1].seconds, 0.04554, 1e-12);
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("MLX_PROFILE_DISPATCH=1 ignored")));
}

// Tables of two labels, 40 and 2 buffers: 4.71 ms and 5.10 ms.
std::string cb_table(const char* heading, int labels = 2) {
  return fmt::format(
      "{} total=9.81ms across {} labels:\n"
      "   48.0%      4.71ms  count=40    avg= 117.8µs  min=110.2µs  max=140.9µs  layer.ffn\n"
      "   52.0%      5.10ms  count=2     avg=2550.0µs  min=2510.0µs  max=2640.9µs  head\n",
      heading, labels);
}

TEST(Hf2q, KnowsWhichCommandBuffersAreOfATokenThatWasGenerated) {
  const std::string token =
      "[GREEDY_PROFILE] ffn=2.0ms cmd_bufs=42 dispatches=1350\n[GREEDY_PROFILE] "
      "output_head=5.1ms\n";
  const std::string table = cb_table("[CB_PROFILE]");
  const std::string prefill = cb_table("[CB_PROFILE:forward_gpu seq_len=512 layers=40]");
  const struct {
    const char* what;
    std::string text;
    std::int64_t tokens;
    std::size_t steps;
    bool whole = true;
  } cases[] = {
      {"a table behind each token", token + table + token + table, 2, 2},
      {"tables alone", table + table + table, 3, 3},
      {"a prefill's is of no generated token", prefill + token + table, 1, 2},
      {"a prefill's alone", prefill, 0, 1},
      {"tokens without a table say nothing of buffers", token + token, 0, 2},
      {"a table with fewer rows than labels", token + cb_table("[CB_PROFILE]", 24), 1, 1, false},
  };
  for (const auto& c : cases) {
    const auto observed = read("", c.text);
    EXPECT_EQ(observed.steps.size(), c.steps) << c.what;
    const auto per_token = observed::buffers_per_token(observed);
    EXPECT_EQ(per_token.tokens, c.tokens) << c.what;
    EXPECT_EQ(per_token.is_complete, c.whole) << c.what;
    EXPECT_EQ(per_token.labels.size(), c.tokens > 0 ? 2U : 0U) << c.what;
    if (c.tokens == 0) continue;
    EXPECT_EQ(per_token.labels[1].label, "layer.ffn");
    EXPECT_EQ(per_token.labels[1].buffers, Rational(40)) << c.what;
    EXPECT_NEAR(*per_token.labels[1].seconds, 4.71e-3, 1e-9) << c.what;
    EXPECT_EQ(observed.warnings.empty(), c.whole) << c.what;
  }
}

TEST(MlxLm, KeepsEveryTrial) {
  const auto observed = read(read_data("constructed-mlx-lm.txt"));
  EXPECT_THAT(samples_of(observed.timings, "decode_tokens_per_second"), ElementsAre(45, 46));
  EXPECT_THAT(samples_of(observed.timings, "prefill_tokens_per_second"),
              ElementsAre(1230.5, 1240.5));
  EXPECT_EQ(observed.prompt_tokens, 512);
  EXPECT_FALSE(observed.truncated);
}

TEST(Ollama, DividesTokensByNanoseconds) {
  const auto reply = read(read_data("constructed-ollama-generate.jsonl"));
  // 290 in 4.709213 s, 26 in 0.325953 s
  EXPECT_THAT(samples_of(reply.timings, "decode_tokens_per_second"),
              ElementsAre(DoubleNear(61.581, 0.001)));
  EXPECT_THAT(samples_of(reply.timings, "prefill_tokens_per_second"),
              ElementsAre(DoubleNear(79.766, 0.001)));
  const auto verbose = read("", read_data("constructed-ollama-verbose.stderr.txt"));
  EXPECT_THAT(samples_of(verbose.timings, "decode_tokens_per_second"),
              ElementsAre(DoubleNear(50, 1e-9)));  // 290 in 5.8 s
  EXPECT_THAT(samples_of(verbose.timings, "load_seconds"),
              ElementsAre(DoubleNear(0.052479709, 1e-12)));
}

TEST(Vllm, HasPercentilesAsSuch) {
  const auto observed = read(read_data("constructed-vllm.json"));
  const auto latency = [&](const char* metric, double percentile) -> std::optional<double> {
    for (const auto& entry : observed.latencies) {
      if (entry.metric.name == metric && entry.percentile == percentile) return entry.seconds;
    }
    return std::nullopt;
  };
  EXPECT_NEAR(latency("time_to_first_token_seconds", 99).value_or(0), 0.18, 1e-12);
  EXPECT_NEAR(latency("time_per_output_token_seconds", 99).value_or(0), 0.016, 1e-12);
  EXPECT_NEAR(latency("inter_token_latency_seconds", 99.9).value_or(0), 0.0305, 1e-12);
  EXPECT_TRUE(observed.errors.empty());
  const auto failed =
      read(replaced(read_data("constructed-vllm.json"), "\"failed\": 0", "\"failed\": 3"));
  EXPECT_THAT(failed.errors, ElementsAre(HasSubstr("3 of 103 requests failed")));
}

TEST(Prometheus, TakesRatesAndTokensOfAServerItKnows) {
  const auto observed = read(read_data("llama-server-metrics.prom.txt"));
  EXPECT_EQ(observed.prompt_tokens, 74);
  EXPECT_EQ(observed.cached_tokens, 8);
  EXPECT_EQ(observed.generated_tokens, 23);
  EXPECT_THAT(samples_of(observed.timings, "decode_tokens_per_second"), ElementsAre(685.302));
  EXPECT_THAT(samples_of(observed.timings, "prefill_tokens_per_second"),
              ElementsAre(DoubleNear(74 / 0.226975, 1e-6)));
}

TEST(Prometheus, KnowsWhichLabelsArePlaces) {
  const auto observed = read(
      "# TYPE a counter\n"
      "a{model_name=\"/home/ann/secretdir/m.gguf\",instance=\"ann-host:8080\",slot=\"7\"} 1\n"
      "# TYPE b gauge\n"
      "b{model_name=\"tiny\",host=\"box\",node=\"0\"} 1\n");
  EXPECT_THAT(observed.context.places,
              testing::UnorderedElementsAre("/home/ann/secretdir/m.gguf", "ann-host:8080",
                                            "ann-host", "box"));
}

TEST(Prometheus, BoundsPercentilesByTheBucketTheyLieIn) {
  const auto observed = read(read_data("constructed-vllm-metrics.prom.txt"));
  ASSERT_EQ(observed.latencies.size(), 4U);
  EXPECT_EQ(observed.latencies[0].figure, "mean");
  EXPECT_NEAR(observed.latencies[0].seconds, 4.0 / 100, 1e-12);
  EXPECT_EQ(observed.latencies[1].seconds, 0.05);  // 60 of 100 are below it
  EXPECT_TRUE(observed.latencies[1].at_most);
  EXPECT_EQ(observed.latencies[3].percentile, 99);
  EXPECT_EQ(observed.latencies[3].seconds, 0.25);
  EXPECT_EQ(observed.generated_tokens, 2100);
  for (const auto& counter : observed.counters)
    EXPECT_NE(counter.name.substr(0, 24), "vllm:kv_cache_usage_perc");
}

TEST(GraphOps, HasShapesAndTypes) {
  const auto observed = read(read_data("graph-ops-3.txt"));
  ASSERT_EQ(observed.ops.size(), 3U);
  EXPECT_EQ(observed.ops[1].op, "MUL_MAT");  // 29 in v0.5.0, and its shapes are a product's
  EXPECT_EQ(observed.ops[1].shape, "256x64,256->64");
  EXPECT_EQ(observed.ops[1].type, "q8_0,f32->f32");
  EXPECT_EQ(observed.ops[1].node, "Kcur-0");
}

TEST(GraphOps, LeavesNumbersThatAreOfAnotherBuild) {
  std::string shifted;  // an op was inserted before all of them
  for (const std::string& line : text::lines(read_data("graph-ops-3.txt"))) {
    const std::size_t end = line.find(' ');
    if (end == std::string::npos) continue;
    shifted += std::to_string(std::stoi(line.substr(0, end)) + 1) + line.substr(end) + "\n";
  }
  const auto observed = read(shifted);
  ASSERT_EQ(observed.ops.size(), 3U);
  EXPECT_EQ(observed.ops[1].op, "op 30");
}

TEST(Tracy, HasZonesWhoseNamesHoldCommas) {
  const auto sums = read(read_data("constructed-tracy.csv"));
  ASSERT_EQ(sums.ops.size(), 3U);
  EXPECT_EQ(sums.ops[1].op, "gemv<q8_0, 256>");
  EXPECT_EQ(sums.ops[1].node, "/src/agave/src/backend/cpu.zig:612");
  EXPECT_EQ(sums.ops[1].calls, 150);
  EXPECT_EQ(sums.ops[1].seconds, 0.03);
  EXPECT_EQ(sums.ops[1].max_seconds, 410e-6);
  EXPECT_THAT(sums.warnings, ElementsAre(HasSubstr("zones within it")));
  const auto calls = read(read_data("constructed-tracy-unwrap.csv"));
  ASSERT_EQ(calls.ops.size(), 2U);
  EXPECT_EQ(calls.ops[1].calls, 2);  // 3000 and 2000 ns
  EXPECT_DOUBLE_EQ(*calls.ops[1].seconds, 5e-6);
  const auto old = read(read_data("tracy-unwrap-excerpt.csv"));  // without threads
  ASSERT_EQ(old.ops.size(), 4U);
  EXPECT_EQ(old.ops[2].op, "soft_max, in place");
  EXPECT_DOUBLE_EQ(*old.ops[2].seconds, 32218e-9);
  const auto gpu = read(read_data("constructed-tracy-gpu.csv"));
  ASSERT_EQ(gpu.ops.size(), 2U);
  EXPECT_EQ(gpu.ops[0].kernel, "gemv_q8_0");
  EXPECT_DOUBLE_EQ(*gpu.ops[0].seconds, 84e-6);
  EXPECT_TRUE(gpu.warnings.empty());
  std::string tabs = read_data("constructed-tracy-gpu.csv");
  std::ranges::replace(tabs, ',', '\t');  // --sep
  EXPECT_EQ(read(tabs).ops, gpu.ops);
}

}  // namespace readers_test
}  // namespace weir::adapters
