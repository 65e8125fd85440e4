// docs/tutorial/first-gate.md, command by command, with the real llama.cpp. Its Vulkan device is a
// twin of lavapipe, which computes the prompt's 512 tokens at once.
#include <gmock/gmock.h>

#include "tests/e2e/llama_bench.hpp"
#include "tests/support/code_blocks.hpp"

namespace weir::e2e {
namespace tutorial_test {

const std::string k_root = WEIR_SOURCE_DIR;

// "NAME=VALUE weir WORD…    # exit code N": no shell, as the page quotes nothing.
void run_line(const Scratch& scratch, const std::string& line) {
  const auto comment = line.find('#');
  const sys::EnvironmentList& twin = on_twin_of_lavapipe();
  std::map<std::string, std::string> env(twin.begin(), twin.end());
  std::vector<std::string> words;
  for (const std::string& word : text::split(line.substr(0, comment), ' ')) {
    if (word.empty()) continue;
    const auto equals = word.find('=');
    if (words.empty() && equals != std::string::npos) {
      env[word.substr(0, equals)] = word.substr(equals + 1);
    } else {
      words.push_back(word);
    }
  }
  ASSERT_FALSE(words.empty());
  ASSERT_EQ(words[0], "weir") << line;
  words.erase(words.begin());
  const std::string_view marker = "exit code ";
  const auto at = line.find(marker);
  const int expected = at == std::string::npos ? 0 : std::stoi(line.substr(at + marker.size()));
  const Ended ended = weir(scratch, words, env);
  EXPECT_EQ(ended.exit_code, expected) << line << "\n" << ended.out << ended.err;
}

TEST(Tutorial, OfAFirstGateGoesAsItIsPrinted) {
  ASSERT_TRUE(fs::exists(k_root + "/engines/llama.cpp/llama-bench")) << "run ci/prepare test first";
  const Scratch scratch;
  fs::create_directories(scratch / "build");
  fs::create_directories(scratch / "models");
  fs::create_directory_symlink(k_root + "/engines/llama.cpp", scratch / "build/bin");
  const std::string page = slurp(k_root + "/docs/tutorial/first-gate.md");
  const std::vector<std::string> lines = text::lines(tests::code_blocks(page, "sh"));
  EXPECT_GE(lines.size(), 6U);
  for (const std::string& line : lines) {
    if (!line.empty()) run_line(scratch, line);
  }
  // The page prints the weir.yaml that weir init wrote, without its comments.
  const std::string blocks = tests::code_blocks(page, "yaml");
  spill(scratch / "printed.yaml",
        blocks.substr(0, blocks.find("\nbackends", blocks.find("limits")) + 1));
  const Ended written = weir(scratch, {"config", "show"});
  const Ended printed = weir(scratch, {"config", "show", "-c", "printed.yaml"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(printed.out, written.out);
  // And the twin that it adds is gated.
  std::string text = slurp(scratch / "weir.yaml");
  const auto at = text.find("backends:");
  ASSERT_NE(at, std::string::npos);
  text.replace(
      at, text.find('\n', at) - at,
      blocks.substr(blocks.rfind("backends:"), blocks.rfind('\n') - blocks.rfind("backends:")));
  spill(scratch / "weir.yaml", text);
  const Ended twin = weir(scratch, {"gate", "--counts-only", "--cell", "*/rtx4090/decode"});
  EXPECT_EQ(twin.exit_code, 0) << twin.err;
  EXPECT_THAT(twin.out, testing::HasSubstr("llama.cpp/tiny/rtx4090/decode"));
}

}  // namespace tutorial_test
}  // namespace weir::e2e
