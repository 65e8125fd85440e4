// A prompt with a list of depths: each depth's cell, and the line over them, on an engine whose
// time and counts grow with context.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace depths_test {

using ::testing::HasSubstr;

constexpr const char* k_zero = "time_per_output_token_seconds_at_zero_context";
constexpr const char* k_slope = "time_per_output_token_seconds_per_context_token";

class Depths : public testing::Test {
 protected:
  Depths() {
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / "weir.yaml", R"(version: 1
engines:
  mine:
    command: [./engine, "{tokens}", "{depth}"]
    output: generic
    metrics:
      dispatches_per_token: {regex: '(\d+) dispatches'}
      syncs_per_token: {regex: '(\d+) syncs'}
      decode_tokens_per_second: {regex: '\(([\d.]+) tok/s\)'}
models: {m: model.bin}
backends: {metal: {}}
prompts: {long: {tokens: 8, depth: [0, 256, 1024]}}
gate: {runs: 5, budget: 2m}
)");
    write_engine("engine", 1, "1");
  }
  // 65 dispatches and 10 ms a token without context; each 256 tokens of it add `dispatches`, each
  // token `us` microseconds.
  void write_engine(const std::string& name, int dispatches, const std::string& us) {
    spill_program(scratch_ / name,
                  "#!/bin/sh\n"
                  "echo \"$((65 + $2 / 256 * " +
                      std::to_string(dispatches) +
                      ")) dispatches, 1 syncs\" >&2\n"
                      "awk -v d=\"$2\" 'BEGIN { printf \"(%.6f tok/s)\\n\", 1e6 / (10000 + d * " +
                      us + ") }'\n");
  }
  Json gate(std::vector<std::string> words, int exit_code) {
    words.insert(words.begin(), {"gate", "--json", "-"});
    last_ = weir(scratch_, words);
    EXPECT_EQ(last_.exit_code, exit_code) << last_.err;
    return json_of(last_);
  }

  Scratch scratch_;
  Ended last_;
};

TEST_F(Depths, HaveALineThatIsStoredAndComparedWithWhatWasStored) {
  ASSERT_EQ(weir(scratch_, {"run"}).exit_code, 0);
  const Ended accepted = weir(scratch_, {"baseline", "accept"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.out << accepted.err;
  EXPECT_THAT(slurp(scratch_ / "baselines/mine/m/metal/long/metal-unseen.json"),
              HasSubstr("\"dispatches_per_context_token\": \"1/256\""));
  Json line = cell_of(gate({}, 0), "mine/m/metal/long");
  EXPECT_EQ(metric_of(line, "dispatches_at_zero_context")["verdict"], "pass");
  EXPECT_EQ(metric_of(line, "dispatches_at_zero_context")["current"], 65);
  EXPECT_NEAR(metric_of(line, k_zero)["current"].get<double>(), 0.010, 1e-6);
  EXPECT_NEAR(metric_of(line, k_slope)["current"].get<double>(), 1e-6, 1e-8);
  // Judged again from the run, all of it or the one line.
  const Json again = gate({"--from", "--cell", "*/long"}, 0);
  EXPECT_EQ(again["cells"].size(), 4U);
  EXPECT_EQ(metric_of(cell_of(again, "mine/m/metal/long"), "dispatches_at_zero_context")["verdict"],
            "pass");
  const Ended pruned = weir(scratch_, {"baseline", "prune"});
  EXPECT_THAT(pruned.out, HasSubstr("0 of 4 baselines")) << "the line's is no stray one";

  write_engine("engine", 2, "1.5");
  line = cell_of(gate({}, 1), "mine/m/metal/long");
  EXPECT_EQ(line["verdict"], "fail");
  EXPECT_EQ(metric_of(line, "dispatches_per_context_token")["verdict"], "fail");
  EXPECT_EQ(metric_of(line, "dispatches_at_zero_context")["verdict"], "pass");
  EXPECT_EQ(metric_of(line, "syncs_per_context_token")["verdict"], "pass");
  EXPECT_EQ(metric_of(line, k_slope)["verdict"], "fail") << last_.err;
  EXPECT_THAT(last_.err, HasSubstr("context token"));
}

TEST_F(Depths, AreHeldToABaseProgramBesideThemAsALineToo) {
  write_engine("old", 1, "1");
  const std::vector<std::string> base{"--against", "--", "./old", "{tokens}", "{depth}"};
  const Json same = gate(base, 0);
  const Json line = cell_of(same, "mine/m/metal/long");
  EXPECT_EQ(line["verdict"], "pass") << last_.err;
  EXPECT_EQ(metric_of(line, k_slope)["verdict"], "pass");
  EXPECT_EQ(metric_of(line, "dispatches_per_context_token")["verdict"], "pass");

  write_engine("engine", 2, "1.2");
  const Json slower = gate(base, 1);
  const Json steeper = cell_of(slower, "mine/m/metal/long");
  EXPECT_EQ(metric_of(steeper, k_slope)["verdict"], "fail") << last_.err;
  EXPECT_NEAR(metric_of(steeper, k_slope)["change"].get<double>(), 0.2, 0.05);
  EXPECT_EQ(metric_of(steeper, k_zero)["verdict"], "pass");
  EXPECT_EQ(metric_of(steeper, "dispatches_per_context_token")["verdict"], "fail");
}

TEST_F(Depths, AreAllSelectedByTheNameOfTheirLine) {
  const Ended ended = weir(scratch_, {"gate", "--counts-only", "--cell", "*/long", "--json", "-"});
  EXPECT_EQ(json_of(ended)["cells"].size(), 4U) << ended.err;
  const Ended single =
      weir(scratch_, {"gate", "--counts-only", "--cell", "*/long@d256", "--json", "-"});
  EXPECT_EQ(json_of(single)["cells"].size(), 1U) << single.err;
}

}  // namespace depths_test
}  // namespace weir::e2e
