// Engines that print their counters for each token, of which some tokens are slower: every verb
// sees them, with the share.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace own_counters_test {

using testing::HasSubstr;

// `./engine FORMAT TOKENS`: a line of counters for each token, 690/690/1, and of the slow ones
// 706/930/17: those that the variable SLOW or else the file "slow" names. Behind TOKENS, what the
// presets of Agave and hf2q say how many tokens with.
constexpr const char* k_engine = R"(#!/bin/sh
slow=${SLOW:-$(cat "$(dirname "$0")/slow")}
case $3 in
  -n) n=$4 ;;
  --prompt) n=$6 ;;
  *) n=$2 ;;
esac
i=1
while [ $i -le "$n" ]; do
  case $slow in
    third) is=$((i % 3)) ;;
    half) is=$((i % 2)) ;;
    last) is=$((n - i)) ;;
    *) is=1 ;;
  esac
  if [ $is = 0 ]; then d=706 b=930 s=17; else d=690 b=690 s=1; fi
  case $1 in
    generic) echo "$d dispatches, $b barriers, $s syncs" ;;
    agave) echo "Metal stats: $d dispatches, $b barriers, $s syncs" ;;
    hf2q) echo "[GREEDY_PROFILE] linear_attn=1.2ms total_layers=3.6ms cmd_bufs=$s dispatches=$d" ;;
  esac
  i=$((i + 1))
done
echo "$n tokens, 41.5 tok/s"
)";

// Means over the 12 tokens that are asked for: 690 + 16 * 4/12, 690 + 16 * 6/12, 690 + 16 * 1/12.
const std::vector<std::pair<std::string, std::string>> k_slow{
    {"third", "2086/3"}, {"half", "698"}, {"last", "2074/3"}};

class OwnCounters : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    spill_program(scratch_ / "engine", k_engine);
    spill(scratch_ / "model.bin", "m");
    const std::string format = GetParam();
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  mine:\n    command: [./engine, " + format +
              ", '{tokens}']\n    output: " + format + "\n" +
              (format != "generic" ? "    counted_env: {PROFILE: '1'}\n"
                                   : "    metrics:\n"
                                     "      dispatches_per_token: {regex: '(\\d+) dispatches'}\n"
                                     "      barriers_per_token: {regex: '(\\d+) barriers'}\n"
                                     "      syncs_per_token: {regex: '(\\d+) syncs'}\n"
                                     "    facts: {generated_tokens: {regex: '(\\d+) tokens'}}\n") +
              "models: {m: model.bin}\nbackends: {metal: {device: metal}}\n"
              "prompts: {decode: {prompt_tokens: 0, tokens: 12}}\n");
  }
  void slow(const std::string& which) { spill(scratch_ / "slow", which); }

  Scratch scratch_;
};

TEST_P(OwnCounters, ThatDifferFromTokenToTokenAreRedInTheGateWithTheShare) {
  slow("none");
  const Ended accepted = weir(scratch_, {"baseline", "accept", "--counts-only"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.out << accepted.err;
  EXPECT_EQ(weir(scratch_, {"gate", "--counts-only"}).exit_code, 0);
  for (const auto& [which, share] : k_slow) {
    slow(which);
    const Ended ended = weir(scratch_, {"gate", "--counts-only", "--json", "-"});
    EXPECT_EQ(ended.exit_code, 1) << which << ended.err;
    const Json cell = cell_of(json_of(ended), "mine/m/metal/decode");
    const Json dispatches = metric_of(cell, "dispatches_per_token");
    EXPECT_EQ(dispatches["verdict"], "fail") << which;
    EXPECT_EQ(dispatches["nature"], "exact") << which;
    EXPECT_EQ(dispatches["current_text"], share) << which;
  }
}

TEST_P(OwnCounters, ThatDifferAreRedBetweenTwoPrograms) {
  const std::vector<std::string> against{
      "gate", "--counts-only", "--json",   "-",        "--against", "--",
      "env",  "SLOW=none",     "./engine", GetParam(), "{tokens}"};
  slow("none");
  const Ended same = weir(scratch_, against);
  EXPECT_EQ(same.exit_code, 0) << same.err;
  for (const auto& [which, share] : k_slow) {
    slow(which);
    const Ended slowed = weir(scratch_, against);
    EXPECT_EQ(slowed.exit_code, 1) << slowed.err;
    const Json cell = cell_of(json_of(slowed), "mine/m/metal/decode");
    EXPECT_EQ(metric_of(cell, "dispatches_per_token")["current_text"], share) << which;
  }
}

TEST_P(OwnCounters, OfABaseThatFailsAreAnError) {
  slow("none");
  const Ended ended = weir(
      scratch_, {"gate", "--counts-only", "--json", "-", "--against", "--", "false", "{tokens}"});
  EXPECT_EQ(ended.exit_code, 3) << ended.out << ended.err;
  const Json verdict = json_of(ended);
  const std::string why = "the base could not measure this cell";
  EXPECT_THAT(cell_of(verdict, "mine/m/metal/decode")["reason"].get<std::string>(), HasSubstr(why));
  EXPECT_THAT(verdict["unjudged"].get<std::string>(), HasSubstr(why)) << "once, above all cells";
}

// `weir ab` takes the device that the engine names: on Linux no probe sees Metal do anything.
TEST_P(OwnCounters, AreComparedByAbOnTheDeviceThatTheEngineNames) {
  if (std::string(GetParam()) == "generic") return;
  slow("none");
  const std::vector<std::string> words{"ab",    "./engine",   "--preset", GetParam(),
                                       "--env", "SLOW=third", "--json",   "-",
                                       "--",    GetParam(),   "12"};
  const Ended ended = weir(scratch_, words);
  EXPECT_EQ(ended.exit_code, 1) << ended.out << ended.err;
  const Json verdict = json_of(ended);
  ASSERT_EQ(verdict["cells"].size(), 1U) << ended.err;
  EXPECT_EQ(verdict["cells"][0]["device"], "metal") << ended.err;
}

// Nobody asked for Vulkan, which the preset of Agave would take where a device of it is.
TEST_P(OwnCounters, AreThoseOfTheNamedDeviceWhereAPresetWouldTakeAnother) {
  const std::string name = GetParam();
  if (name == "generic") return;
  slow("none");
  spill_program(scratch_ / name, k_engine);
  for (const char* engine : {"engine", name.c_str()}) {
    const std::string program = fmt::format("./{}", engine);
    const Ended ended = weir(scratch_, {"ab", program, program, "--preset", name, "--counts-only",
                                        "--json", "-", "--", name, "12"});
    EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
    const Json verdict = json_of(ended);
    ASSERT_EQ(verdict["cells"].size(), 1U) << ended.err;
    EXPECT_EQ(verdict["cells"][0]["device"], "metal") << engine;
  }
}

// The output itself, by the verbs that read files.
TEST_P(OwnCounters, AreComparedAndExplainedByTheirMeans) {
  if (std::string(GetParam()) == "generic") return;  // only weir.yaml says how it is read
  const auto print = [&](const std::string& slow, const std::string& file) {
    const std::string line = fmt::format("cd '{}' && SLOW={} ./engine {} 12 > {} 2>&1",
                                         scratch_.path().string(), slow, GetParam(), file);
    ASSERT_EQ(std::system(line.c_str()), 0);
  };
  print("none", "good.txt");
  const Ended alone = weir(scratch_, {"explain", "good.txt"});
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("Checklist for slow engines"));
  for (const auto& [which, share] : k_slow) {
    print(which, "bad.txt");
    const Ended compared = weir(scratch_, {"compare", "good.txt", "bad.txt"});
    const Ended explained = weir(scratch_, {"explain", "good.txt", "bad.txt"});
    EXPECT_THAT(explained.out, HasSubstr(share)) << which;
    for (const Ended& ended : {compared, explained}) {
      EXPECT_THAT(ended.out, HasSubstr(" dispatches\n")) << which << ": the finding, by how many";
    }
  }
}

// `./engine TOKENS`: 10 dispatches a token and three rates of 100, as the variable HOW or else the
// file "how" prints them: a line for each token, one more whose mean is 10 all the same, one alone,
// or with more rates.
constexpr const char* k_printer = R"(#!/bin/sh
how=${HOW:-$(cat "$(dirname "$0")/how")}
i=1
[ "$how" = more ] && echo "0 dispatches"
while [ $i -lt "$1" ]; do
  [ "$how" = alone ] || echo "10 dispatches"
  i=$((i + 1))
done
[ "$how" = more ] && echo "20 dispatches" || echo "10 dispatches"
[ "$how" = rates ] && echo "50 tok/s" && echo "50 tok/s"
echo "100 tok/s"
echo "100 tok/s"
echo "100 tok/s"
echo "$1 tokens"
)";

TEST(PrintedValues, InAnotherNumberAreNoPassWhateverTheyComeTo) {
  const Scratch scratch;
  spill_program(scratch / "engine", k_printer);
  spill(scratch / "model.bin", "m");
  spill(scratch / "weir.yaml",
        "version: 1\nengines:\n  mine:\n    command: [./engine, '{tokens}']\n"
        "    output: generic\n    metrics:\n"
        "      dispatches_per_token: {regex: '(\\d+) dispatches'}\n"
        "      decode_tokens_per_second: {regex: '(\\d+) tok/s', pick: all}\n"
        "    facts: {generated_tokens: {regex: '(\\d+) tokens'}}\n"
        "models: {m: model.bin}\nbackends: {metal: {device: metal}}\n"
        "prompts: {decode: {prompt_tokens: 0, tokens: 12}}\ngate: {budget: 20s}\n");
  const auto print = [&](const std::string& how) { spill(scratch / "how", how); };
  print("each");
  ASSERT_EQ(weir(scratch, {"baseline", "accept", "--counts-only"}).exit_code, 0);
  const std::vector<std::string> stored{"gate", "--json", "-", "--counts-only"};
  const std::vector<std::string> against{"gate", "--json",   "-",        "--against", "--",
                                         "env",  "HOW=each", "./engine", "{tokens}"};
  const std::string dispatches = "dispatches_per_token was printed ", by_base = " by the base and ";
  const std::string more = dispatches + "12 times" + by_base + "13 times here";
  const std::string alone = dispatches + "12 times" + by_base + "1 time here";
  const struct {
    std::vector<std::string> words;
    const char* how;
    std::string why;
  } cases[] = {
      {stored, "each", ""},
      {stored, "more", more},
      {stored, "alone", alone},
      {stored, "rates", ""},
      {against, "each", ""},
      {against, "more", more},
      {against, "alone", alone},
      {against, "rates", "decode_tokens_per_second was printed 3 times" + by_base + "5 times here"},
  };
  for (const auto& [words, how, why] : cases) {
    print(how);
    const Ended ended = weir(scratch, words);
    EXPECT_EQ(ended.exit_code, why.empty() ? 0 : 3) << how << ended.out << ended.err;
    const Json cell = cell_of(json_of(ended), "mine/m/metal/decode");
    EXPECT_EQ(cell["verdict"], why.empty() ? "pass" : "error") << how;
    EXPECT_THAT(cell.value("reason", ""), HasSubstr(why)) << how;
  }
}

// `./engine TOKENS`: hf2q's table of command buffers by label behind each token; of "layer.moe" as
// many as the file "moe" says, each of 117.8 microseconds.
constexpr const char* k_labelled = R"(#!/bin/sh
moe=$(cat "$(dirname "$0")/moe")
i=1
while [ $i -le "$1" ]; do
  echo "[GREEDY_PROFILE] ffn=2.0ms cmd_bufs=$((moe + 2)) dispatches=1350"
  echo "[GREEDY_PROFILE] output_head=5.1ms"
  if [ -n "$MLX_PROFILE_CB" ]; then
    ms=$(awk "BEGIN { print $moe * 0.1178 }")
    echo "[CB_PROFILE] total=9.81ms across 2 labels:"
    echo "  48.0%  ${ms}ms  count=$moe  avg=117.8µs  min=110.2µs  max=140.9µs  layer.moe"
    echo "  52.0%  5.10ms  count=2  avg=2550.0µs  min=2510.0µs  max=2640.9µs  head"
  fi
  i=$((i + 1))
done
echo "Decode tok/s: 41.2"
)";

class CommandBuffers : public testing::Test {
 protected:
  CommandBuffers() {
    spill_program(scratch_ / "engine", k_labelled);
    spill(scratch_ / "model.bin", "m");
  }
  void configure(const std::string& keys, const std::string& limits = "") {
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  mine:\n    command: [./engine, '{tokens}']\n"
          "    output: hf2q\n" +
              keys +
              "models: {m: model.bin}\nbackends: {metal: {device: metal}}\n"
              "prompts: {decode: {prompt_tokens: 0, tokens: 12}}\n" +
              limits);
  }
  void moe(const std::string& buffers) { spill(scratch_ / "moe", buffers); }

  static constexpr const char* k_counted = "    counted_env: {MLX_PROFILE_CB: '1'}\n";
  Scratch scratch_;
};

TEST_F(CommandBuffers, AreRedByLabelAndNamedAsTheReason) {
  configure(k_counted);
  moe("40");
  const Ended accepted = weir(scratch_, {"baseline", "accept", "--counts-only"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.out << accepted.err;
  EXPECT_EQ(weir(scratch_, {"gate", "--counts-only"}).exit_code, 0);
  moe("43");
  const Ended grew = weir(scratch_, {"gate", "--counts-only"});
  EXPECT_EQ(grew.exit_code, 1) << grew.err;
  EXPECT_THAT(grew.out, HasSubstr("buffers layer.moe    40 \u2192 43   +3   must not change"));
  EXPECT_THAT(grew.out, HasSubstr("why: 3 more command buffers labelled layer.moe a token."));
  EXPECT_THAT(weir(scratch_, {"explain"}).out,
              HasSubstr("3 more command buffers labelled layer.moe a token."));
  configure(k_counted,
            "limits: [{metrics: 'buffers:layer.*', exact: false, max: 43},"
            " {metrics: submits_per_token, exact: false}]\n");
  EXPECT_EQ(weir(scratch_, {"gate", "--counts-only"}).exit_code, 0);
  moe("44");
  EXPECT_EQ(weir(scratch_, {"gate", "--counts-only"}).exit_code, 1);
}

TEST_F(CommandBuffers, AreComparedAsTheEnginePrintedThem) {
  for (const char* count : {"40", "43"}) {
    moe(count);
    const std::string line = fmt::format("cd '{0}' && MLX_PROFILE_CB=1 ./engine 12 > {1}.txt",
                                         scratch_.path().string(), count);
    ASSERT_EQ(std::system(line.c_str()), 0);
  }
  const Ended compared = weir(scratch_, {"compare", "40.txt", "43.txt"});
  EXPECT_THAT(compared.out, HasSubstr("Command buffers take +353.4 us: "));
  EXPECT_THAT(compared.out, HasSubstr("3 more command buffers labelled layer.moe a token."));
}

// The engine counts by itself, although nothing in weir.yaml asks for it.
TEST_F(CommandBuffers, AreNotCalledUncountedAboveTheirCounts) {
  configure("    env: {MLX_PROFILE_CB: '1'}\n");
  moe("40");
  const Ended ran = weir(scratch_, {"run", "--counts-only"});
  EXPECT_THAT(ran.out, HasSubstr("dispatches/token"));
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("not counted"))) << ran.out;
}

INSTANTIATE_TEST_SUITE_P(Of, OwnCounters, testing::Values("generic", "agave", "hf2q"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace own_counters_test
}  // namespace weir::e2e
