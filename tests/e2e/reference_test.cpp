// gate.reference: a pinned engine runs beside the others and says how fast the machine is.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace reference_test {

using ::testing::HasSubstr;

constexpr const char* k_rate = "decode_tokens_per_second";

class ReferenceWorkload : public testing::Test {
 protected:
  void SetUp() override {
    spill(scratch_ / "model.bin", "no model at all");
    for (const char* engine : {"mine", "pinned"}) {
      spill_program(scratch_ / engine,
                    "#!/bin/sh\nread machine < " + (scratch_ / "machine").string() +
                        "\nread own < " + (scratch_ / engine).string() +
                        ".speed\nFAKE_ENGINE_NS=$(( machine * own / 100 )) exec " WEIR_BINARY_DIR
                        "/tests/fake_engines/fake_engine ok \"$@\"\n");
      takes(engine, 100);
    }
    machine_takes(10'000'000);
    write_config("pinned/m/cpu/decode");
  }
  void write_config(const std::string& reference) {
    const std::string command =
        ", -m, '{model}', -n, '{tokens}', -p, '{prompt_tokens}', -r, '{repeats}'], output: "
        "llama-bench}\n";
    spill(scratch_ / "weir.yaml", "version: 1\nengines:\n  mine: {command: [./mine" + command +
                                      "  pinned: {command: [./pinned" + command +
                                      "models: {m: model.bin}\nbackends: {cpu: {}}\n"
                                      "prompts: {decode: {prompt_tokens: 0, tokens: 8}}\n"
                                      "limits: [{metrics: \"*_tokens_per_second\", max_drop: "
                                      "20%}]\n"
                                      "gate: {repeats: 1, reference: " +
                                      reference + "}\n");
  }
  // Per cent of what the machine needs.
  void takes(const std::string& engine, int percent) {
    spill(scratch_ / (engine + ".speed"), std::to_string(percent) + "\n");
  }
  void machine_takes(long ns) { spill(scratch_ / "machine", std::to_string(ns) + "\n"); }
  Json gate(int exit_code, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"gate", "--json", "-"});
    const Ended ended = weir(scratch_, options);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    return json_of(ended);
  }

  Scratch scratch_;
};

TEST_F(ReferenceWorkload, KeepsASlowMachineFromFailingAProgram) {
  ASSERT_EQ(weir(scratch_, {"run"}).exit_code, 0);
  ASSERT_EQ(weir(scratch_, {"baseline", "accept"}).exit_code, 0);
  machine_takes(15'000'000);
  const Json slow_machine = gate(0);
  EXPECT_EQ(metric_of(cell_of(slow_machine, "mine/m/cpu/decode"), k_rate)["verdict"], "pass");
  EXPECT_EQ(metric_of(cell_of(slow_machine, "pinned/m/cpu/decode"), k_rate)["verdict"], "info");
  EXPECT_THAT(dump_json(cell_of(slow_machine, "mine/m/cpu/decode")["notes"]),
              HasSubstr("runs at 0.67 of its stored speed"));
  takes("mine", 150);
  // The reference runs also where it was not selected, and again from the run alone.
  for (const auto& options : {std::vector<std::string>{"--cell", "mine/*"}, {"--from"}}) {
    EXPECT_EQ(metric_of(cell_of(gate(1, options), "mine/m/cpu/decode"), k_rate)["verdict"], "fail");
  }
}

// A pull request could slow its own engine and its own reference alike.
TEST_F(ReferenceWorkload, OfAPullRequestExcusesNothing) {
  spill(scratch_ / ".gitignore", "weir-*\nlocks\n*.speed\nmachine\n");
  ASSERT_EQ(weir(scratch_, {"baseline", "accept"}).exit_code, 0);
  const std::string git =
      "cd '" + scratch_.path().string() +
      "' && git init -q -b main && git add -A && git -c user.name=A -c user.email=a@example.org "
      "-c commit.gpgsign=false commit -qm base";
  ASSERT_EQ(std::system(git.c_str()), 0);
  takes("mine", 200);
  takes("pinned", 200);
  const Json verdict = gate(1, {"--rules-from", "main"});
  EXPECT_EQ(metric_of(cell_of(verdict, "mine/m/cpu/decode"), k_rate)["verdict"], "fail");
  EXPECT_THAT(dump_json(verdict["notes"]),
              HasSubstr("gate.reference pinned/m/cpu/decode is not used"));
  EXPECT_EQ(metric_of(cell_of(gate(1, {"--from"}), "mine/m/cpu/decode"), k_rate)["verdict"],
            "fail");
}

TEST_F(ReferenceWorkload, IsACellOfTheMatrix) {
  write_config("pinnned/m/cpu/decode");
  const Ended ended = weir(scratch_, {"gate"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("weir.yaml:"));
  EXPECT_THAT(ended.err, HasSubstr("did you mean \"pinned/m/cpu/decode\"?"));
}

}  // namespace reference_test
}  // namespace weir::e2e
