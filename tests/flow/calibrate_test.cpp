// weir calibrate of engines whose times vary as much as a test asks for: drawn from a seed, as the
// coin is, by a clock that goes on with each process.
#include "gate/flow/calibrate.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "tests/flow/fake_world.hpp"

namespace weir::flow {
namespace calibrate_test {

using ::testing::HasSubstr;

constexpr const char* k_yaml = R"(version: 1
engines:
  bench:
    command: [./bench, -m, "{model}", -p, "{prompt_tokens}", -n, "{tokens}", -r, "{repeats}"]
    output: llama-bench
models: {tiny: tiny.bin}
backends: {cpu: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 8}}
gate: {repeats: 1, budget: 10m}
)";

class SeededCoin final : public sys::Coin {
 public:
  [[nodiscard]] bool flip() override { return (random_() & 1U) != 0; }

 private:
  std::mt19937 random_{20261127};
};

// A machine on which a process takes 50 ms, and on which one differs from another by `noise`
// (standard deviation of the logarithm).
class Machine {
 public:
  explicit Machine(double noise) : noise_(noise) { setenv("WEIR_CACHE", "/cache", 1); }

  Result<Answer> calibrate(const CalibrateOptions& options) {
    const Job own{machine_, world_.job().selection, world_.job().output};
    return flow::calibrate(own, options);
  }
  [[nodiscard]] std::size_t count_stored() const {
    std::size_t files = 0;
    for (const std::string& folder : world_.files.list("/cache/calibration").value_or(k_none)) {
      files += world_.files.list("/cache/calibration/" + folder).value_or(k_none).size();
    }
    return files;
  }
  [[nodiscard]] const std::vector<sys::ProcessSpec>& started() const { return processes_.started; }

 private:
  inline static const std::vector<std::string> k_none;

  // Sums twelve uniform numbers, which every standard library draws alike.
  double bell() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random_()) / 4294967296.0;
    return sum;
  }
  sys::Finished engine(const sys::ProcessSpec& spec) {
    sys::Finished finished = run::FakeProcesses::good(spec);
    finished.wall_seconds = 0.05;
    world_.clock.seconds += finished.wall_seconds;
    const std::string time_text = "1000000";  // nanoseconds, of bench_output()
    const std::size_t at = finished.out.find(time_text);
    const auto nanoseconds = static_cast<long long>(80e6 * std::exp(noise_ * bell()));
    if (at != std::string::npos) {
      finished.out.replace(at, time_text.size(), std::to_string(nanoseconds));
    }
    return finished;
  }

  double noise_;
  std::mt19937 random_{7};
  tests::FakeWorld world_{k_yaml};
  run::FakeProcesses processes_{[this](const sys::ProcessSpec& spec) { return engine(spec); }};
  SeededCoin coin_;
  sys::World machine_{
      world_.files, processes_, world_.clock, world_.locks,    world_.http,
      world_.pause, coin_,      world_.load,  world_.terminal, world_.world.environment};
};

TEST(Calibrate, OfAQuietMachineSaysThatItHoldsTheLimitAndKeepsThat) {
  Machine machine(0.01);
  CalibrateOptions options;
  options.pairs = 20;
  options.replays = 200;
  const auto answer = machine.calibrate(options);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->code, ExitCode::pass);
  EXPECT_THAT(answer->text, HasSubstr("This machine can hold 5 %"));
  const Json json = Json::parse(answer->json);
  EXPECT_EQ(json["schema"], "weir.calibration/1");
  EXPECT_EQ(json["holds"], true);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_EQ(json["replays"], 200);
  const Json& cell = json["cells"].at(0);
  EXPECT_EQ(cell["cell"], "bench/tiny/cpu/decode");
  EXPECT_GE(cell["pairs"], 20);
  const Json& metric = cell["metrics"].at(0);
  EXPECT_EQ(metric["metric"], "decode_tokens_per_second");
  // The difference of two runs with 1 % noise has 1.4 %; twenty pairs measure that to about a
  // third.
  EXPECT_NEAR(metric["noise"].get<double>(), 0.014, 0.005);
  EXPECT_EQ(machine.count_stored(), 1U);
}

TEST(Calibrate, OfALoudOneSaysThatItCanNot) {
  Machine machine(1);
  // Pairs differ by 140 %, and from about 30 % on a thousand of them, the most there are, decide
  // nothing. The budget pays a hundred.
  CalibrateOptions options;
  options.budget = "10s";
  options.pairs = 16;
  options.replays = 20;
  const auto answer = machine.calibrate(options);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->code, ExitCode::pass) << "an inconclusive gate fails nothing here";
  EXPECT_THAT(answer->text, HasSubstr("too noisy"));
  EXPECT_THAT(answer->text, HasSubstr("NO    bench / tiny / cpu / decode"));
  EXPECT_GT(machine.started().size(), 2 * 50U);
  EXPECT_LE(machine.started().size(), 2 * (1 + 100U)) << "with the warm-ups";
}

}  // namespace calibrate_test
}  // namespace weir::flow
