#include "gate/adapters/from_observed.hpp"

#include <gmock/gmock.h>

#include "tests/adapters/read_data.hpp"

namespace weir::adapters {
namespace {

using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

Result<profile::EngineReport> read(const char* adapter, const std::string& out,
                                   const std::string& err, profile::Asked asked = {},
                                   std::string_view device = "cpu",
                                   std::optional<profile::Pass> pass = profile::Pass::timed) {
  const Adapter* found = find(adapter);
  if (found == nullptr) return fail(Code::internal, "no adapter {}", adapter);
  return found->read({out, err, asked, device, nullptr, pass});
}

TEST(AgaveAdapter, GivesRatesTokensAndWhereItRan) {
  const auto json = read_data("agave-json.stdout.txt");
  const auto report = read("agave", json, read_data("agave-json.stderr.txt"));
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_FALSE(report->times.empty());
  EXPECT_EQ(report->times[0].metric.name, "decode_tokens_per_second");
  EXPECT_THAT(report->times[0].samples, ElementsAre(DoubleNear(171.4286, 1e-4)));  // 6 in 35 ms
  EXPECT_EQ(report->generated_tokens, 6);
  EXPECT_EQ(report->prompt_tokens, 10);
  EXPECT_EQ(report->engine_build, "0.1.0");
  EXPECT_EQ(report->device_refuted, std::nullopt);
}

TEST(AgaveAdapter, SaysWhereItFellBackToTheCpu) {
  const auto report =
      read("agave", "", read_data("agave-backend-fallback-metal.stderr.txt"), {}, "metal");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->device_refuted.value_or(""), HasSubstr("the CPU did the work"));
  EXPECT_THAT(report->warnings, Contains("Metal not available on this platform"));
}

TEST(AgaveAdapter, HandsOnWhatTheEngineComplainedOf) {
  const auto report = read("agave", "", read_data("agave-error-missing-file.stderr.txt"));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("failed to open 'nosuch.gguf'"));
}

TEST(AgaveAdapter, CountsInACountedPass) {
  const auto report = read("agave", "", read_data("constructed-agave-metal-counters.stderr.txt"),
                           {}, "metal", profile::Pass::counted);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->counts.at("dispatches_per_token"), 994);
  EXPECT_EQ(report->counts.at("syncs_per_token"), 1);
}

TEST(Hf2qAdapter, TellsCountsThatAreNotTheSameForEachToken) {
  const auto report = read("hf2q", "", read_data("constructed-hf2q.stderr.txt"), {}, "metal",
                           profile::Pass::counted);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->counts.at("submits_per_token"), 102);
  EXPECT_THAT(report->warnings, Contains(HasSubstr("not the same each time (1350 and 1351)")));
}

TEST(LlamaBenchTableAdapter, HoldsTheTestsToWhatWasAskedFor) {
  for (const char* file : {"llama-bench.csv", "llama-bench.md.txt"}) {
    const auto report = read("llama-bench-table", read_data(file), "", {16, 8, 2, 0});
    ASSERT_TRUE(report) << file << ": " << report.error().message;
    EXPECT_EQ(report->times.size(), 2U);
    EXPECT_EQ(report->generated_tokens, 8);
    EXPECT_THAT(read("llama-bench-table", read_data(file), "", {16, 0, 2, 0}).error().message,
                HasSubstr("2 results, expected 1"));
    EXPECT_THAT(read("llama-bench-table", read_data(file), "", {16, 9, 2, 0}).error().message,
                HasSubstr("not asked for"));
    EXPECT_THAT(read("llama-bench-table", read_data(file), "", {16, 8, 2, 32}).error().message,
                HasSubstr("not asked for"));
  }
}

TEST(AdaptersOfReaders, RefuseWhatIsCutOrOfAnotherKind) {
  EXPECT_THAT(
      read("mlx-lm", "Timing with prompt_tokens=5\nTrial 1:  prompt_tps=1.5, generation_tps=2.5\n",
           "")
          .error()
          .message,
      HasSubstr("ends in the middle"));
  for (const char* adapter :
       {"agave", "hf2q", "mlx-lm", "ollama", "llama-perf", "llama-bench-table"}) {
    EXPECT_FALSE(read(adapter, "hello\n", "")) << adapter;
    EXPECT_FALSE(read(adapter, "", "")) << adapter;
  }
}

TEST(AdaptersOfReaders, ReadTheirEnginesRates) {
  const auto perf = read("llama-perf", "", read_data("llama-completion-perf.stderr.txt"));
  ASSERT_TRUE(perf) << perf.error().message;
  EXPECT_EQ(perf->generated_tokens, 8);
  const auto ollama = read("ollama", "", read_data("constructed-ollama-verbose.stderr.txt"));
  ASSERT_TRUE(ollama) << ollama.error().message;
  EXPECT_EQ(ollama->generated_tokens, 290);
  const auto mlx = read("mlx-lm", read_data("constructed-mlx-lm.txt"), "");
  ASSERT_TRUE(mlx) << mlx.error().message;
  EXPECT_EQ(mlx->times.size(), 2U);
}

}  // namespace
}  // namespace weir::adapters
