// Tests of llama-bench's JSON in a gate.
#include <gmock/gmock.h>

#include "gate/adapters/readers.hpp"
#include "gate/base/text.hpp"

#include "tests/adapters/read_data.hpp"

namespace weir::adapters {
namespace llama_bench_test {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

// llama-bench.json is the recorded output of -p 16 -n 8 -r 3 on a model of 8 bits, on the CPU.
constexpr profile::RunParameters k_parameters{16, 8, 3, 0};

Result<profile::EngineReport> read(const std::string& out,
                                   const profile::RunParameters& parameters = k_parameters,
                                   std::string_view device = "cpu", const std::string& err = "") {
  return read_llama_bench({out, err, parameters, device, nullptr, std::nullopt});
}

// The lines of llama-bench.jsonl: "16 0 0", "0 8 0", "16 8 0", "16 0 32", … (n_prompt, n_gen,
// n_depth), two repetitions each.
std::string json_line(std::size_t line) {
  return text::lines(read_data("llama-bench.jsonl"))[line];
}

TEST(LlamaBench, MakesRatesFromTheSamplesAndNotFromTheAverage) {
  const auto report = read(read_data("llama-bench.json"));
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->times.size(), 2U);
  EXPECT_EQ(report->times[0].metric, unit::find_metric("prefill_tokens_per_second"));
  // 16 tokens in 0.491979062, 0.491973513, 0.503998368 s
  EXPECT_THAT(
      report->times[0].samples,
      ElementsAre(DoubleNear(32.5217, 1e-4), DoubleNear(32.5221, 1e-4), DoubleNear(31.7461, 1e-4)));
  EXPECT_EQ(report->times[1].metric, unit::find_metric("decode_tokens_per_second"));
  // 8 tokens in 1.385145569, 0.001143806, 0.001098859 s; its avg_ts says 4760
  EXPECT_THAT(
      report->times[1].samples,
      ElementsAre(DoubleNear(5.77557, 1e-5), DoubleNear(6994.19, 0.01), DoubleNear(7280.28, 0.01)));
  EXPECT_EQ(report->generated_tokens, 8);
  EXPECT_EQ(report->prompt_tokens, 16);
  EXPECT_EQ(report->engine_build, "0ad4a86");
  EXPECT_EQ(report->model, "gemma3 ?B (guessed) Q8_0, 2364160 parameters, 2526208 bytes");
  EXPECT_TRUE(report->warnings.empty());
}

TEST(LlamaBench, ReadsOneResultALineAmongLogLinesOnEitherStream) {
  const std::string log = "\x1B[1mload_backend: ok\x1B[0m\n[info] {model} at 12%\n";
  const std::string lines = log + json_line(0) + "\n" + log + json_line(1) + "\n";
  const profile::RunParameters parameters{16, 8, 2, 0};
  const auto from_out = read(lines, parameters);
  ASSERT_TRUE(from_out) << from_out.error().message;
  // 8 tokens in 1.225438 ms and 1.101673 ms
  EXPECT_THAT(from_out->times[1].samples,
              ElementsAre(DoubleNear(6528.28, 0.01), DoubleNear(7261.68, 0.01)));
  const auto from_err = read("", parameters, "cpu", lines);  // -oe jsonl
  ASSERT_TRUE(from_err) << from_err.error().message;
  EXPECT_EQ(from_err->times, from_out->times);
}

TEST(LlamaBench, ReadsPromptsWithATokenKindThatIsZeroAsOneResult) {
  const auto decode = read(json_line(1), {0, 8, 2, 0});
  ASSERT_TRUE(decode) << decode.error().message;
  EXPECT_EQ(decode->generated_tokens, 8);
  EXPECT_EQ(decode->prompt_tokens, std::nullopt);
  const auto deep = read(json_line(3), {16, 0, 2, 32});
  ASSERT_TRUE(deep) << deep.error().message;
  EXPECT_EQ(deep->prompt_tokens, 16);
  EXPECT_EQ(deep->generated_tokens, std::nullopt);
}

TEST(LlamaBench, RefusesWhatIsNotWhatWasAskedFor) {
  const std::string good = read_data("llama-bench.json");
  struct Case {
    std::string out;
    profile::RunParameters parameters;
    const char* why;
  };
  const Case cases[] = {
      {"", k_parameters, "printed nothing"},
      {" \n\n", k_parameters, "printed nothing"},
      {"[\n", k_parameters, "stops in the middle"},  // printed when the model cannot be loaded
      {good.substr(0, good.rfind(']')), k_parameters, "stops in the middle"},
      {good.substr(0, good.size() / 2), k_parameters, "stops in the middle"},
      {read_data("llama-bench.csv"), k_parameters, "is \"-o, json\""},
      {read_data("llama-bench.md.txt"), k_parameters, "is \"-o, json\""},
      {"Segmentation fault\n", k_parameters, "begins with \"Segmentation fault\""},
      {"[]", k_parameters, "no llama-bench result"},
      {good, {16, 8, 2, 0}, "3 repetitions of its prompt of 16 tokens, and 2 were asked for"},
      {good, {16, 0, 3, 0}, "2 results, expected 1"},
      {good, {16, 9, 3, 0}, "no result for the 9 tokens asked for"},
      {good, {16, 8, 3, 32}, "at depth 0, and 32 was asked for"},
      {good + good, k_parameters, "4 results, expected 2"},
      {json_line(2), {16, 0, 2, 0}, "but for a prompt of 16 tokens and 8 tokens"},
      {replaced(good, "1143806", "NaN"), k_parameters, "cannot be read"},
      {replaced(good, "1143806", "Infinity"), k_parameters, "cannot be read"},
      {replaced(good, "1143806", "0"), k_parameters, "took 0 ns"},
      {replaced(good, "1143806", "-1143806"), k_parameters, "took -1143806 ns"},
      {replaced(good, "1143806", "null"), k_parameters, "took null ns"},
      {replaced(good, "1143806", "1e999"), k_parameters, "cannot be read"},
      {replaced(good, "4760.082515", "0"), k_parameters, "0 tokens a second"},
      {replaced(good, "\"n_gen\": 8", "\"n_gen\": \"8\""), k_parameters, "n_gen"},
      {replaced(good, "\"n_gen\": 8", "\"n_gen\": 8.5"), k_parameters, "n_gen"},
      {replaced(good, "samples_ns", "samples"), k_parameters, "samples_ns"},
      {"[" + std::string(100'000, '['), k_parameters, ""},
      {"{\"n_prompt\": 1, \"n_gen\": " + std::string(5000, '{'), k_parameters,
       "stops in the middle"},
  };
  for (const Case& c : cases) {
    const auto report = read(c.out, c.parameters);
    ASSERT_FALSE(report) << c.out.substr(0, 200);
    EXPECT_EQ(report.error().code, Code::data);
    EXPECT_THAT(report.error().message, HasSubstr(c.why)) << c.out.substr(0, 200);
  }
}

TEST(LlamaBench, SaysWhenTheDeviceAskedForCanNotHaveDoneTheWork) {
  // Recorded with -dev none: n_gpu_layers -1 (all that fit), devices "none", a GPU present.
  const std::string none = json_line(1);
  const std::string used = replaced(none, "\"devices\": \"none\"", "\"devices\": \"auto\"");
  const profile::RunParameters parameters{0, 8, 2, 0};
  EXPECT_EQ(read(used, parameters, "vulkan")->device_refuted, std::nullopt);
  EXPECT_EQ(read(none, parameters, "vulkan")->device_refuted,
            "llama-bench reports devices \"none\": no device was used");
  EXPECT_EQ(
      read(replaced(used, "\"n_gpu_layers\": -1", "\"n_gpu_layers\": 0"), parameters, "vulkan")
          ->device_refuted,
      "llama-bench reports n_gpu_layers 0: no layer was put on the device");
  EXPECT_EQ(read(replaced(used, "llvmpipe (LLVM 15.0.6, 256 bits)", ""), parameters, "vulkan")
                ->device_refuted,
            "llama-bench reports no GPU (gpu_info is empty): the CPU did the work");
  EXPECT_EQ(read(none, parameters, "cpu")->device_refuted, std::nullopt);
}

// b4600 with backends as libraries, on a GPU whose dispatches weir counted.
TEST(LlamaBench, OfOldReleasesAsksForTheGpuTooEarly) {
  const std::string old = replaced(replaced(replaced(json_line(1), "\"devices\": \"none\", ", ""),
                                            "llvmpipe (LLVM 15.0.6, 256 bits)", ""),
                                   "\"build_number\": 1", "\"build_number\": 4600");
  EXPECT_EQ(read(old, {0, 8, 2, 0}, "vulkan")->device_refuted, std::nullopt);
}

TEST(LlamaBench, TakesTheCpuLibraryAndTheBuildWarningFromTheLog) {
  const profile::RunParameters parameters{0, 8, 2, 0};
  const auto plain = read(json_line(1), parameters, "cpu", read_data("llama-bench.stderr.txt"));
  EXPECT_EQ(plain->cpu_variant, "zen4");
  EXPECT_TRUE(plain->warnings.empty());
  const auto debug = read(json_line(1), parameters, "cpu",
                          "warning: asserts enabled, performance may be affected\n");
  EXPECT_EQ(debug->cpu_variant, std::nullopt);
  EXPECT_THAT(debug->warnings, ElementsAre(HasSubstr("asserts enabled")));
}

}  // namespace llama_bench_test
}  // namespace weir::adapters
