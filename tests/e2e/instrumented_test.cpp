// An engine that marks its own work (tests/probes/instrument/engine.c), gated as any other.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace instrumented_test {

using testing::HasSubstr;

class Instrumented : public testing::Test {
 protected:
  Instrumented() {
    spill(scratch_ / "m.bin", "no model at all");
    spill(scratch_ / "weir.yaml", R"(version: 1
engines:
  mine:
    command: [)" WEIR_INSTRUMENT_ENGINE R"(, tokens, "{tokens}", "{args}"]
    output: generic
    metrics: {decode_tokens_per_second: {regex: '\(([\d.]+) tok/s\)'}}
    probes: [instrument]
    cpu_ops_allowed: {GET_ROWS: one row}
models: {m: m.bin}
backends:
  metal: {args: [metal]}
  lost: {device: metal, args: [cpu]}
prompts: {decode: {tokens: 8}}
)");
  }
  Ended counted(std::vector<std::string> words, const std::string& cell,
                const std::map<std::string, std::string>& env = {}) {
    words.insert(words.end(), {"--counts-only", "--cell", cell});
    return weir(scratch_, words, env);
  }
  Scratch scratch_;
};

constexpr const char* k_metal = "mine/m/metal/decode";

TEST_F(Instrumented, CountsPerTokenWhatItMarks) {
  ASSERT_EQ(counted({"baseline", "accept"}, k_metal).exit_code, 0);
  const Json gate = json_of(counted({"gate", "--json", "-"}, k_metal));
  const Json cell = cell_of(gate, k_metal);
  EXPECT_EQ(cell.value("outcome", cell.value("verdict", "")), "pass");
  const Json stored =
      *parse_json(slurp(scratch_ / "baselines/mine/m/metal/decode/sample-1002-0-0-1-0.json"));
  // Counts of a token by engine.c; its start and its prefill are the fixed part.
  const std::map<std::string, int> want = {{"dispatches_per_token", 6}, {"dispatches_fixed", 6},
                                           {"barriers_per_token", 2},   {"copies_per_token", 1},
                                           {"copies_fixed", 3},         {"submits_per_token", 1},
                                           {"syncs_per_token", 1},      {"syncs_fixed", 2},
                                           {"cpu_ops_per_token", 1},    {"graphs_per_token", 1}};
  for (const auto& [name, count] : want) EXPECT_EQ(stored["counts"].value(name, -1), count) << name;
  EXPECT_EQ(stored["kernels"]["counts"], (Json{{"mul_mat", 4}, {"rms_norm", 2}}));
  EXPECT_EQ(stored["placement"].value("state", ""), "shown");
}

TEST_F(Instrumented, SaysWhichKernelsChangedWhenTheyAreAcceptedWithTheSameCounts) {
  ASSERT_EQ(counted({"baseline", "accept"}, k_metal).exit_code, 0);
  const auto file = scratch_ / "baselines/mine/m/metal/decode/sample-1002-0-0-1-0.json";
  std::string stored = slurp(file);
  stored.replace(stored.find("mul_mat"), 7, "old_mat");
  spill(file, stored);
  const Ended accepted = counted({"baseline", "accept"}, k_metal);
  EXPECT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_NE(accepted.out.find("\n    2 kernels changed\n"), std::string::npos) << accepted.out;
}

TEST_F(Instrumented, FailsWhenACountGrew) {
  ASSERT_EQ(counted({"baseline", "accept"}, k_metal).exit_code, 0);
  const Ended grew = counted({"gate"}, k_metal, {{"SAMPLE_EXTRA_BARRIER", "1"}});
  EXPECT_EQ(grew.exit_code, 1) << grew.err;
  EXPECT_THAT(grew.out, testing::ContainsRegex("barriers/token +2 → 4 +\\+2"));
}

// What it declares is compared with its base's, which ran beside it.
TEST_F(Instrumented, IsNotJudgedOnAnotherDeviceThanItsBase) {
  ASSERT_EQ(counted({"baseline", "accept"}, k_metal).exit_code, 0);
  const auto beside = [&](const std::string& class_of_base) {
    return weir(scratch_, {"gate", "--json", "-", "--counts-only", "--cell", k_metal, "--against",
                           "--", "env", "SAMPLE_DEVICE_CLASS=" + class_of_base,
                           WEIR_INSTRUMENT_ENGINE, "tokens", "{tokens}", "{args}"});
  };
  EXPECT_EQ(beside("sample-1002-0-0-1-0").exit_code, 0);
  const Ended other = beside("metal-1-2-3");
  EXPECT_EQ(other.exit_code, 3) << other.err;
  EXPECT_EQ(cell_of(json_of(other), k_metal).value("reason", ""),
            "base and candidate ran on different devices: metal-1-2-3 and sample-1002-0-0-1-0");
}

TEST_F(Instrumented, FailsWhenTheEngineSaysThatItWorkedElsewhere) {
  const Ended lost = counted({"gate"}, "mine/m/lost/decode");
  EXPECT_EQ(lost.exit_code, 1) << lost.err;
  EXPECT_THAT(lost.out, HasSubstr("asked for metal"));
}

TEST_F(Instrumented, IsProfiledWithItsScopesAndCommandBuffers) {
  const Ended profiled = weir(
      scratch_, {"profile", "--trace", "trace.json", "--", WEIR_INSTRUMENT_ENGINE, "tokens", "3"});
  EXPECT_EQ(profiled.exit_code, 0) << profiled.err;
  EXPECT_THAT(profiled.out, HasSubstr("4 of 4 command buffers timed"));
  const Json trace = *parse_json(slurp(scratch_ / "trace.json"));
  int scopes = 0;
  for (const Json& event : trace["traceEvents"]) scopes += event.value("cat", "") == "op" ? 1 : 0;
  EXPECT_EQ(scopes, 4 * 7);
}

// A token of the sample has two layers of RMS_NORM and two MUL_MAT, one dispatch each.
TEST_F(Instrumented, IsProfiledByTheLayersOpsAndTokensThatItsMarksName) {
  const struct {
    const char* by;
    std::vector<const char*> rows;
  } cases[] = {
      {"layer", {" 12 .* layer 0\n", " 12 .* layer 1\n"}},
      {"op", {" 16 .* MUL_MAT\n", " 8 .* RMS_NORM\n", " 4 .* GET_ROWS\n"}},
      {"op-shape",
       {" 6 .* RMS_NORM f32->f32 64->32 on Sample GPU\n",
        " 2 .* RMS_NORM f32->f32 64x8->32x8 on Sample GPU\n"}},
      {"layer,op", {" 12 .* layer 0\n", " 8 .* layer 0: MUL_MAT\n", " 4 .* layer 1: RMS_NORM\n"}},
      {"token,op", {" 4.00 .* MUL_MAT\n", " 2.00 .* RMS_NORM\n"}},
      {"buffer", {" prefill .* token\n", " decode .* token\n"}},
      {"buffer,kernel", {" 28 .* token\n", " 16 .* token: mul_mat\n"}},
      {"step", {" prefill +8 .* evaluation 0\n", " decode +1 .* evaluation 3\n"}},
  };
  for (const auto& c : cases) {
    const Ended profiled =
        weir(scratch_, {"profile", "--by", c.by, "--", WEIR_INSTRUMENT_ENGINE, "tokens", "3"});
    EXPECT_EQ(profiled.exit_code, 0) << profiled.err;
    for (const char* row : c.rows) EXPECT_THAT(profiled.out, testing::ContainsRegex(row)) << c.by;
  }
}

TEST_F(Instrumented, IsProfiledThroughProgramsThatStartIt) {
  const std::string engine = WEIR_INSTRUMENT_ENGINE;
  spill_program(scratch_ / "wrap", "#!/bin/sh\nexec " + engine + " \"$@\"\n");
  const std::vector<std::string> cases[] = {{"sh", "-c", engine + " tokens 3"},
                                            {"env", "A=1", engine, "tokens", "3"},
                                            {"./wrap", "tokens", "3"}};
  for (std::vector<std::string> words : cases) {
    words.insert(words.begin(), {"profile", "--by", "layer", "--"});
    const Ended profiled = weir(scratch_, words);
    EXPECT_EQ(profiled.exit_code, 0) << profiled.err;
    EXPECT_THAT(profiled.out, testing::ContainsRegex(" 12 .* layer 1\n")) << words[4];
  }
}

// Its marks tell of a GPU, and it has no command's flag that does.
TEST_F(Instrumented, IsComparedOnTheDeviceOfItsMarks) {
  const Ended same = weir(scratch_, {"ab", WEIR_INSTRUMENT_ENGINE, WEIR_INSTRUMENT_ENGINE,
                                     "--counts-only", "--", "tokens", "3"});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_THAT(same.err, HasSubstr("/metal/run"));
}

TEST_F(Instrumented, IsComparedByTheTokensAndOpsOfItsMarksInFoldersThatWereKept) {
  std::vector<std::string> words{"compare"};
  for (const auto& [folder, tokens] : {std::pair("k1", "3"), {"k2", "5"}}) {
    const Ended profiled = weir(scratch_, {"profile", "--keep", "--out", folder, "--",
                                           WEIR_INSTRUMENT_ENGINE, "tokens", tokens});
    ASSERT_EQ(profiled.exit_code, 0) << profiled.err;
    const auto profile_folder = fs::directory_iterator(scratch_ / folder / "profiles")->path();
    words.push_back((profile_folder / "probes").string());
  }
  const Ended compared = weir(scratch_, words);
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("a token (of 3 and 5)"));
  EXPECT_THAT(compared.out, testing::Not(HasSubstr("does not report its tokens")));
}

TEST_F(Instrumented, IsSeenByDoctorWithoutBeingRun) {
  for (const char* program : {WEIR_INSTRUMENT_ENGINE, WEIR_INSTRUMENT_ENGINE_SHARED}) {
    const Ended doctor = weir(scratch_, {"doctor", program});
    EXPECT_THAT(doctor.out, HasSubstr("instrument: the engine's own marks")) << program;
  }
}

TEST_F(Instrumented, FailsWhereAKindOfWorkAppearsThatThereWasNone) {
  ASSERT_EQ(counted({"baseline", "accept"}, k_metal, {{"SAMPLE_NO_BARRIERS", "1"}}).exit_code, 0);
  const Ended grew = counted({"gate"}, k_metal);
  EXPECT_EQ(grew.exit_code, 1) << grew.out;
  EXPECT_THAT(grew.out, HasSubstr("barriers/token    0 \u2192 2   +2")) << grew.out;
}

TEST_F(Instrumented, IsTimedWithoutMarksWhateverWeirsOwnSurroundingsAsk) {
  const Ended ran = weir(scratch_, {"run", "--cell", k_metal, "--json", "-"},
                         {{"WEIR_PROFILE", "counts,ops"}, {"SAMPLE_REFUSES_MARKS", "1"}});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

}  // namespace instrumented_test
}  // namespace weir::e2e
