// Numbers that ought to agree and do not are told: by `weir profile` of a file, and by a gate.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace doubts_test {

using testing::HasSubstr;
using testing::Not;

const std::string k_data = WEIR_SOURCE_DIR "/tests/adapters/data/";

// As one line: terminals wrap.
std::string unwrapped(const std::string& text) {
  std::string words;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || (!words.empty() && words.back() != ' ')) {
      words += blank ? ' ' : c;
    }
  }
  return words;
}

Json observed(double rows, double buffers, double tokens_per_second) {
  return {
      {"schema", "weir.observed/1"},
      {"format", "weir-observed"},
      {"profiled_tokens", 10},
      {"ops",
       {{{"op", "MUL_MAT"},
         {"backend", "Metal"},
         {"phase", "decode"},
         {"calls", 100},
         {"seconds", rows}}}},
      {"buffers", {{{"label", "decode"}, {"seconds", buffers}}}},
      {"timings", {{{"metric", "decode_tokens_per_second"}, {"samples", {tokens_per_second}}}}}};
}

// Dispatches of 1 s in ten tokens beside what is said of their buffers and of the clock.
TEST(ProfileOfAFile, TellsWhereItsNumbersDisagree) {
  const struct {
    double buffers, tokens_per_second;
    std::vector<const char*> warnings;
  } cases[] = {
      {1.0, 9.8, {}},
      {0.93, 9.8, {"command buffers to 930 ms: 8 % apart"}},
      {0.5, 9.8, {"100 % apart, too much to trust their times"}},
      {1.0, 10.7, {"ops take 100 ms a token, the token 93.5 ms: they overlap"}},
      {1.0, 20, {"ops take 100 ms a token, the token 50.0 ms: they overlap"}},
      {1.0, 2, {"the token 500 ms: most of its time is in no op"}},
  };
  Scratch scratch;
  for (const auto& test_case : cases) {
    spill(scratch / "o.json", observed(1.0, test_case.buffers, test_case.tokens_per_second).dump());
    const Ended ended = weir(scratch, {"profile", "o.json"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const std::string text = unwrapped(ended.out);
    for (const char* warning : test_case.warnings) EXPECT_THAT(text, HasSubstr(warning));
    if (test_case.warnings.empty()) {
      EXPECT_THAT(text, Not(HasSubstr("doubt")));
    }
    const Json json = json_of(weir(scratch, {"profile", "o.json", "--json", "-"}));
    EXPECT_EQ(json.value("warnings", Json::array()).size(), test_case.warnings.size())
        << json.dump(1);
  }
}

TEST(ProfileOfAFile, WritesAsJsonWhatAPageWouldShow) {
  Json document = observed(1.0, 1.0, 9.8);
  document["context"] = {{"model", "/home/ann/m.gguf"},
                         {"facts", {{"cwd", "/home/ann"}, {"api_key", "4711"}}},
                         {"places", {"/home/ann/m.gguf", "box17"}}};
  document["warnings"] = {"box17 was slow"};
  Scratch scratch;
  spill(scratch / "o.json", document.dump());
  const Ended hidden = weir(scratch, {"profile", "o.json", "--json", "hidden.json"});
  ASSERT_EQ(hidden.exit_code, 0) << hidden.err;
  const std::string text = slurp(scratch / "hidden.json");
  for (const char* place : {"/home", "box17", "4711"}) EXPECT_THAT(text, Not(HasSubstr(place)));
  EXPECT_EQ(weir(scratch, {"profile", "hidden.json"}).exit_code, 0) << "it is read back";
  const Ended shown = weir(scratch, {"profile", "o.json", "--json", "-", "--show-private"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("/home/ann/m.gguf"));
  EXPECT_THAT(shown.out, HasSubstr("box17 was slow"));
  EXPECT_THAT(shown.out, Not(HasSubstr("4711"))) << "secrets are never shown";
}

// A file of weir run --json whose kernels are one fewer than its dispatches.
TEST(ProfileOfAFile, HoldsKernelsAgainstDispatches) {
  std::string name;
  for (const auto& entry : fs::directory_iterator(WEIR_SOURCE_DIR "/tests/explain/recorded")) {
    if (entry.path().filename() == "amd-tiny-llama-decode.json") name = entry.path();
  }
  const auto recorded = parse_json(slurp(name));
  ASSERT_TRUE(recorded) << name;
  Json profile = recorded->at("base");
  Scratch scratch;
  spill(scratch / "p.json", profile.dump());
  EXPECT_THAT(weir(scratch, {"profile", "p.json"}).out, Not(HasSubstr("kernels by name")));
  profile["kernels"]["counts"]["swiglu_f32"] = 3;
  spill(scratch / "p.json", profile.dump());
  EXPECT_THAT(unwrapped(weir(scratch, {"profile", "p.json"}).out),
              HasSubstr("kernels by name add up to 64, dispatches were counted 65"));
}

// Engines that print what real ones printed, their own profile with it.
TEST(GateOfAnEnginesOwnProfile, TellsWhereItsNumbersDisagree) {
  Scratch scratch;
  spill(scratch / "model.bin", "no model at all");
  const auto engine = [&](const std::string& name, const std::string& file) {
    spill_program(scratch / name, "#!/bin/sh\ncat " + k_data + file + " >&2\n");
    return "  " + name + ": {command: [./" + name +
           ", '{model}', '{tokens}', '{prompt}'], output: " + name + "}\n";
  };
  spill(scratch / "weir.yaml", "version: 1\nengines:\n" +
                                   engine("agave", "agave-profile.stderr.txt") +
                                   engine("hf2q", "constructed-hf2q.stderr.txt") +
                                   "models: {m: model.bin}\nbackends: {cpu: {}}\n"
                                   "prompts: {hello: {text: Hello, tokens: 8}}\n"
                                   "gate: {runs: 2}\n");
  const Ended ended = weir(scratch, {"gate", "--html", "page.html", "--markdown", "comment.md"});
  const std::string page = slurp(scratch / "page.html");
  const std::string comment = slurp(scratch / "comment.md");
  for (const std::string& text : {unwrapped(ended.out), page, comment}) {
    // Agave's ops take 6.76 ms a step, and 176.5 tok/s of 6 tokens are 6.8 ms.
    EXPECT_THAT(text, Not(HasSubstr("they overlap")));
    // hf2q's table of command buffers is cut: ops are held against the token.
    EXPECT_THAT(text, HasSubstr("ops take 8.60 ms a token, the token 24.6 ms"));
  }
}

}  // namespace doubts_test
}  // namespace weir::e2e
