// The host's path of the unmodified llama.cpp: system calls, and regressions of it that no count of
// kernels or ops shows.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace host_test {

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_engine = k_root + "/engines/llama.cpp/llama-bench";
constexpr const char* k_cell = "llama.cpp/tiny/cpu/decode";

class Host : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(k_engine)) << "run ci/prepare test first";
    write("", "[ggml, host]");
  }
  // Both sides are started the same way: a script of one line.
  void write(const std::string& plant, const std::string& probes, const std::string& more = "") {
    for (const std::string& side : {std::string("base"), std::string("mine")}) {
      const std::string what = side == "mine" ? plant : "";
      fs::create_directories(scratch_ / side);
      spill_program(scratch_ / side / "engine",
                    "#!/bin/sh\nWEIR_PLANT='" + what + "' LD_PRELOAD=\"$LD_PRELOAD:" +
                        WEIR_HOST_PLANTS + "\" exec " + k_engine + " \"$@\"\n");
    }
    spill(scratch_ / "weir.yaml", R"(version: 1
engines:
  llama.cpp:
    command: [./mine/engine, -m, "{model}", -p, "{prompt_tokens}", -n, "{tokens}", -r, "{repeats}", -t, "{threads}", -o, json]
    output: llama-bench
    probes: )" + probes + R"(
models: {tiny: )" + k_root + R"(/models/tiny-llama.gguf}
backends: {cpu: {args: [-ngl, "0", -dev, none]}}
prompts: {decode: {prompt_tokens: 0, tokens: 16)" +
                                      more + "}}\n");
  }
  std::vector<std::string> against(std::vector<std::string> words) const {
    const std::initializer_list<std::string> k_base = {
        "--json",    "-",  "--against",       "--", "./base/engine", "-m",
        "{model}",   "-p", "{prompt_tokens}", "-n", "{tokens}",      "-r",
        "{repeats}", "-t", "{threads}",       "-o", "json"};
    words.insert(words.end(), k_base);
    return words;
  }
  Json gate(int exit_code) {
    const Ended ended = weir(scratch_, against({"gate", "--counts-only"}));
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    return json_of(ended);
  }

  Scratch scratch_;
};

TEST_F(Host, TheSameProgramMakesTheSameSystemCalls) {
  const Json cell = cell_of(gate(0), k_cell);
  EXPECT_EQ(cell["verdict"], "pass") << cell.dump(1);
  const Json calls = metric_of(cell, "system_calls_per_token");
  EXPECT_EQ(calls["verdict"], "pass");
  EXPECT_EQ(calls["nature"], "exact");
  EXPECT_EQ(metric_of(cell, "threads_peak")["current"], 1);
}

TEST_F(Host, ASystemCallInTheSamplerFailsAndIsNamed) {
  write("call", "[ggml, host]");
  const Json cell = cell_of(gate(1), k_cell);
  const Json calls = metric_of(cell, "system_calls_per_token");
  EXPECT_EQ(calls["verdict"], "fail");
  EXPECT_EQ(calls["current"], calls["baseline"].get<int>() + 1);
  EXPECT_EQ(metric_of(cell, "cpu_ops_per_token")["verdict"], "pass") << "no count of ops shows it";
  ASSERT_FALSE(cell["findings"].empty());
  EXPECT_EQ(cell["findings"][0]["kind"], "calls_changed");
  EXPECT_THAT(cell["findings"][0]["text"].get<std::string>(),
              testing::HasSubstr("getppid +1 a token (0 → 1)"));
}

TEST_F(Host, AWaitMoreForEachTokenFailsInPairsAndIsNamed) {
  write("futex", "[ggml, host]", ", threads: 1");
  std::string config = slurp(scratch_ / "weir.yaml");
  config +=
      "limits: [{mode: off}, {metrics: voluntary_switches, mode: gate}]\n"
      "gate: {budget: 5m, repeats: 1}\n";
  spill(scratch_ / "weir.yaml", config);
  const Ended ended = weir(scratch_, against({"gate"}));
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  const Json cell = cell_of(json_of(ended), k_cell);
  EXPECT_EQ(metric_of(cell, "voluntary_switches")["verdict"], "fail") << cell.dump(1);
  EXPECT_EQ(metric_of(cell, "futex_waits_per_token")["verdict"], "info");
  ASSERT_FALSE(cell["findings"].empty());
  EXPECT_THAT(cell["findings"][0]["text"].get<std::string>(), testing::HasSubstr("futex wait"));
}

TEST_F(Host, CellsOfAListOfThreadsTellWhatAThreadAdds) {
  write("", "[ggml, host]", ", threads: [1, 2]");
  const Json verdict = gate(0);
  EXPECT_EQ(metric_of(cell_of(verdict, "llama.cpp/tiny/cpu/decode@t2"), "threads_peak")["current"],
            2);
  EXPECT_EQ(cell_of(verdict, "llama.cpp/tiny/cpu/decode@t1")["verdict"], "pass");
}

}  // namespace host_test
}  // namespace weir::e2e
