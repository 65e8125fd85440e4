// A injected fault makes the engine slower, not wrong: tokens stay as they are.
#include <gmock/gmock.h>

#include "tests/engine/engine_run.hpp"

namespace weir::engine {
namespace faults_tokens_test {

struct Injection {
  const char* fault;
  Words switches;
  bool on_cpu;
};
const Injection k_injections[] = {
    {"cpu-split", {}, false},     {"cpu-split", {"--fused-ffn"}, false},
    {"op-on-cpu", {}, false},     {"unbatched-qkv", {}, true},
    {"extra-copy", {}, false},    {"lost-fusion", {"--fused-ffn"}, true},
    {"extra-barriers", {}, true}, {"slow-kernel", {"--fused-ffn"}, true},
    {"slow-kernel", {}, true},
};

TEST(RealFaults, LeaveTheTokensAsTheyAre) {
  const probes::Folder folder;
  for (const char* type : {"f32", "f16", "q8_0", "q4_0"}) {
    const std::string model = write_model(folder, type, of_type(second_model(), type));
    for (const char* backend : {"cpu", "vulkan"}) {
      std::map<Words, std::string> without;
      for (const Injection& injection : k_injections) {
        if (!injection.on_cpu && std::string("cpu") == backend) continue;
        // Threads that wait for each other are slow where others have the processors.
        const bool threads = std::string("extra-barriers") == injection.fault;
        Words words{"--backend",   backend,  "-t", threads ? "2" : "1",
                    "--tokens-in", "1,17,4", "-n", "4"};
        words.insert(words.end(), injection.switches.begin(), injection.switches.end());
        std::string& expected = without[words];
        if (expected.empty()) expected = run_engine(model, words).out;
        ASSERT_EQ(std::count(expected.begin(), expected.end(), '\n'), 4);
        words.insert(words.end(), {"--inject", injection.fault});
        EXPECT_EQ(run_engine(model, words).out, expected)
            << injection.fault << " " << backend << " " << type;
      }
    }
  }
}

// One thread a row adds up in the order in which 32 do: not the choice alone is the same.
TEST(RealFaults, WithTheSameArithmeticLeaveEveryBitOfTheLogits) {
  const probes::Folder folder;
  for (const char* type : {"f32", "f16", "q8_0", "q4_0"}) {
    const std::string model = write_model(folder, type, of_type(second_model(), type));
    const std::string plain = folder.path() + "/plain", faulty = folder.path() + "/other";
    const Words words{"--backend", "vulkan", "--tokens-in", "1,17,4", "-n", "4", "--logits"};
    const auto logits = [&](const std::string& file, const Words& more) {
      Words all = words;
      all.push_back(file);
      all.insert(all.end(), more.begin(), more.end());
      run_engine(model, all);
      return read_logits(file, second_model().vocab);
    };
    const auto expected = logits(plain, {});
    for (const char* fault : {"slow-kernel", "cpu-split", "unbatched-qkv", "extra-barriers"}) {
      EXPECT_EQ(logits(faulty, {"--inject", fault}), expected) << fault << " " << type;
    }
  }
}

TEST(RealFaults, ComeFromTheEnvironmentAsWell) {
  const probes::Folder folder;
  const std::string model = write_model(folder, "m", of_type(second_model(), "q8_0"));
  const probes::Ran ran = run_engine(model, {"--backend", "vulkan", "-n", "3", "--json"},
                                     {{"WEIR_ENGINE_PLANT", "slow-kernel,extra-copy"}});
  EXPECT_THAT(ran.out, testing::HasSubstr("multiply_q8_0_serial"));
}

TEST(RealFaults, ThatCannotBeInjectedEndTheProgramBeforeItReadsAModel) {
  const probes::Ran ran =
      probes::run({WEIR_ENGINE, "-m", "/no/such/model", "--inject", "extra-copy"}, k_lavapipe);
  EXPECT_EQ(ran.status, 2) << ran.err;
  EXPECT_THAT(ran.err, testing::HasSubstr("take --backend vulkan"));
}

TEST(RealFaults, AreListedWithoutAModel) {
  const probes::Ran ran = probes::run({WEIR_ENGINE, "--inject", "list"}, k_lavapipe);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::HasSubstr("cpu-split"));
}

}  // namespace faults_tokens_test
}  // namespace weir::engine
