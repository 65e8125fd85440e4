// weir demo as a newcomer starts it: what it says, what it leaves, and where it cannot go on.
#include <sstream>

#include <gmock/gmock.h>

#include "tests/e2e/planted_scene.hpp"

namespace weir::e2e {
namespace demo_test {

using ::testing::HasSubstr;
using ::testing::Not;

// Characters, not bytes.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), 80U) << line;
}

// In this order, other text between them.
void expect_in_order(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    const std::size_t start = text.find(part, at);
    ASSERT_NE(start, std::string::npos) << part << "\nis not in its place in\n" << text;
    at = start + part.size();
  }
}

class DemoVerb : public testing::Test {
 protected:
  // In a folder for temporary files of its own.
  Ended demo(std::vector<std::string> words, std::map<std::string, std::string> env = {}) {
    fs::create_directories(scratch_ / "tmp");
    words.insert(words.begin(), "demo");
    env.emplace("TMPDIR", (scratch_ / "tmp").string());
    env.emplace("VK_LOADER_DRIVERS_SELECT", "*lvp*");
    return weir(scratch_, words, env);
  }
  Scratch scratch_;
};

TEST_F(DemoVerb, WalksFromTheBaselineToTheCause) {
  const Ended ended = demo({});
  ASSERT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  EXPECT_EQ(ended.err, "");
  expect_narrow(ended.out);
  expect_in_order(ended.out,
                  {"$ weir model make toy.gguf", "$ cat weir.yaml", "probes: [vulkan, instrument]",
                   "$ weir baseline accept --counts-only", "$ weir gate --counts-only", "PASS",
                   "cpu-split: the query is read back",
                   "$ WEIR_ENGINE_PLANT=cpu-split weir gate --counts-only", "FAIL", "syncs/token",
                   "1 \u2192 7",  // one more in each of six layers
                   "Exit code 1", "$ weir explain", "once in each layer", "weir bisect GOOD BAD",
                   "weir baseline accept", "weir init", "The demo went as it should"});
  // The tutorial shows this step as it is printed.
  const std::string page = slurp(fs::path(WEIR_SOURCE_DIR) / "docs/tutorial/demo.md");
  const std::size_t begin = page.find("5. Somebody changes the engine");
  EXPECT_THAT(ended.out, HasSubstr(page.substr(begin, page.find("```", begin) - begin)));
  EXPECT_TRUE(fs::is_empty(scratch_ / "tmp")) << "it removes what it made";
}

// No baseline is accepted of it.
TEST_F(DemoVerb, OffersToAllowWorkThatRanElsewhereThanAsked) {
  const Ended ended = demo({"--inject", "op-on-cpu"});
  ASSERT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  expect_narrow(ended.out);
  expect_in_order(ended.out, {"What next?", "Allow these ops", "cpu_ops_allowed: {SWIGLU:"});
  const std::string next = ended.out.substr(ended.out.find("What next?"));
  EXPECT_THAT(next, Not(HasSubstr("weir baseline accept")));
}

TEST_F(DemoVerb, KeepsAFolderInWhichOneGoesOn) {
  const Ended ended = demo({"--inject", "slow-kernel", "--keep", "kept/here"});
  ASSERT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("multiply_q8_0_serial"));
  EXPECT_THAT(ended.out, HasSubstr((scratch_ / "kept/here").string()));
  const std::string config = "kept/here/weir.yaml";
  const Ended gate =
      weir(scratch_, {"gate", "-c", config, "--baselines", "kept/here/baselines", "--counts-only"});
  EXPECT_EQ(gate.exit_code, 0) << gate.out << gate.err;
  const Ended again = demo({"--keep", "kept/here"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("is there already"));
}

TEST_F(DemoVerb, TakesTheFusedKernelWhereItsLossIsShown) {
  const Ended ended = demo({"--inject", "lost-fusion"});
  ASSERT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  expect_in_order(ended.out, {"--fused-ffn", "FAIL", "$ weir explain", "Fusion"});
}

TEST_F(DemoVerb, GoesOnWithTheCpuWhereThereIsNoVulkanDevice) {
  const Ended ended = demo({}, {{"VK_LOADER_DRIVERS_SELECT", "*nothing*"}});
  ASSERT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  expect_narrow(ended.out);
  expect_in_order(ended.out,
                  {"No Vulkan device answers here", "unbatched-qkv", "probes: [instrument]",
                   "$ WEIR_ENGINE_PLANT=unbatched-qkv weir gate", "FAIL", "Batching lost"});
  const Ended refused =
      demo({"--inject", "cpu-split"}, {{"VK_LOADER_DRIVERS_SELECT", "*nothing*"}});
  EXPECT_EQ(refused.exit_code, 2) << refused.out << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("--backend cpu has no other memory"));
}

TEST_F(DemoVerb, SaysWhichRegressionsThereAreForOneThatThereIsNot) {
  const Ended ended = demo({"--inject", "nothing-like-this"});
  EXPECT_EQ(ended.exit_code, 2) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("cpu-split, op-on-cpu"));
  EXPECT_TRUE(fs::is_empty(scratch_ / "tmp"));
}

// A fault that is not one for the counts: the demo is then no success.
TEST_F(DemoVerb, IsNoSuccessWhereTheGateDoesNotFail) {
  const Ended ended =
      demo({"--inject", "slow-kernel"}, {{"VK_LOADER_DRIVERS_SELECT", "*nothing*"}});
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("the gate passed"));
}

// weir in an installation's places: bin/weir, lib/weir/probes, libexec/weir/weir-engine.
class InstalledDemo : public DemoVerb {
 protected:
  InstalledDemo() {
    fs::create_directories(scratch_ / "usr/bin");
    fs::create_directories(scratch_ / "usr/lib/weir");
    fs::create_directories(scratch_ / "usr/libexec/weir");
    fs::copy_file(WEIR_BINARY_DIR "/weir", scratch_ / "usr/bin/weir");
    fs::create_directory_symlink(WEIR_BINARY_DIR "/lib/weir/probes",
                                 scratch_ / "usr/lib/weir/probes");
    fs::create_symlink(WEIR_BINARY_DIR "/libexec/weir/weir-devices",
                       scratch_ / "usr/libexec/weir/weir-devices");
  }
  int run(const std::string& words) {
    const std::string line = "cd '" + scratch_.path().string() +
                             "' && VK_LOADER_DRIVERS_SELECT='*lvp*' usr/bin/weir demo " + words +
                             " > out 2> err";
    return WEXITSTATUS(std::system(line.c_str()));
  }
};

TEST_F(InstalledDemo, TakesTheEngineOfTheInstallation) {
  fs::copy_file(WEIR_BINARY_DIR "/weir-engine", scratch_ / "usr/libexec/weir/weir-engine");
  EXPECT_EQ(run("--keep kept"), 0) << slurp(scratch_ / "err");
  EXPECT_EQ(fs::read_symlink(scratch_ / "kept/weir-engine"),
            scratch_ / "usr/libexec/weir/weir-engine");
}

TEST_F(InstalledDemo, SaysWhatIsMissingWithoutTheEngine) {
  EXPECT_EQ(run("--keep kept"), 3);
  EXPECT_THAT(slurp(scratch_ / "err"), HasSubstr("the demo needs weir-engine"));
  EXPECT_THAT(slurp(scratch_ / "err"), HasSubstr("usr/libexec/weir/weir-engine"));
  EXPECT_FALSE(fs::exists(scratch_ / "kept")) << "nothing was begun";
  EXPECT_THAT(slurp(scratch_ / "out"), Not(HasSubstr("$")));
}

TEST_F(DemoVerb, IsCompletedByShellsWithItsOptions) {
  const Ended bash = weir(scratch_, {"completion", "bash"});
  EXPECT_THAT(bash.out, testing::ContainsRegex("\"demo\"\\) words=\".*--inject"));
}

}  // namespace demo_test
}  // namespace weir::e2e
