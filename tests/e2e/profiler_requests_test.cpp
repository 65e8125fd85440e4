// docs/evidence/profiler-requests.md, row by row: the commands of its tables, and what they have to
// print.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"
#include "tests/support/code_blocks.hpp"

namespace weir::e2e {
namespace profiler_requests_test {

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_engines = k_root + "/engines";

// A row of a table of the page: | "SENTENCE" | `COMMAND`, `COMMAND` | `OUTPUT` …, exit code N |
struct Row {
  std::string sentence;
  std::vector<std::string> commands, outputs;
  int exit_code = 0;  // exit code of the last command
};

std::vector<std::string> spans(const std::string& cell) {
  std::vector<std::string> texts;
  const std::vector<std::string> parts = text::split(cell, '`');
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2) texts.push_back(parts[i]);
  return texts;
}

std::vector<Row> parse_rows(const std::string& page) {
  std::vector<Row> rows;
  for (const std::string& line : text::lines(page)) {
    if (!line.starts_with("| \"")) continue;
    const std::vector<std::string> cells = text::split(line, '|');
    EXPECT_EQ(cells.size(), 5U) << line;
    if (cells.size() != 5) continue;
    Row row{cells[1], spans(cells[2]), spans(cells[3])};
    const std::string_view words = "exit code ";
    const std::size_t at = cells[3].find(words);
    if (at != std::string::npos) row.exit_code = std::stoi(cells[3].substr(at + words.size()));
    rows.push_back(std::move(row));
  }
  return rows;
}

// Lines that weir broke are whole again.
std::string in_one_line(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  for (std::string word; in >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

// An ellipsis stands for any text of a few lines.
bool appears(const std::string& wanted, const std::string& text) {
  constexpr std::size_t k_max_gap = 300;
  const std::string ellipsis = "\u2026";
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = wanted.find(ellipsis, from)) != std::string::npos;
       from = at + ellipsis.size()) {
    parts.push_back(wanted.substr(from, at - from));
  }
  parts.push_back(wanted.substr(from));
  for (std::size_t begin = text.find(parts[0]); begin != std::string::npos;
       begin = text.find(parts[0], begin + 1)) {
    std::size_t end = begin + parts[0].size();
    bool all = true;
    for (std::size_t i = 1; i < parts.size() && all; ++i) {
      const std::size_t next = text.find(parts[i], end);
      all = next != std::string::npos && next - end <= k_max_gap;
      end = next + parts[i].size();
    }
    if (all) return true;
  }
  return false;
}

class ProfilerRequests : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(k_engines + "/llama.cpp/llama-bench")) << "run ci/prepare test first";
    fs::create_directory_symlink(WEIR_BINARY_DIR, scratch_ / "build");
    for (const char* folder : {"configs", "engines", "tests"}) {
      fs::create_directory_symlink(k_root + "/" + folder, scratch_ / folder);
    }
    fs::create_directories(scratch_ / "models");
    fs::create_symlink(k_root + "/models/tiny-llama.gguf", scratch_ / "models/tiny-llama.gguf");
    spill(scratch_ / "weir.yaml", tests::code_blocks(page_, "yaml"));
  }

  // Output and errors together, with those pages that the command wrote.
  Ended run(const std::string& command) {
    std::map<std::string, std::string> env = {
        {"PATH", WEIR_BINARY_DIR ":" + k_engines + "/llama.cpp:" + std::getenv("PATH")},
        {"GGML_VK_VISIBLE_DEVICES", "0"},
        {"VK_LOADER_DRIVERS_SELECT", "*lvp*"},
        {"LP_NUM_THREADS", "1"}};
    std::vector<std::string> words = tests::split_command(command);
    for (; words[0].find('=') != std::string::npos; words.erase(words.begin())) {
      const std::size_t equals = words[0].find('=');
      env[words[0].substr(0, equals)] = words[0].substr(equals + 1);
    }
    const bool has_folder = words[0].find('/') != std::string::npos;
    const std::string program = (has_folder ? "" : WEIR_BINARY_DIR "/") + words[0];
    words.erase(words.begin());
    Ended ended = Weir(scratch_, words, env, program).wait();
    ended.out += ended.err;
    for (const std::string& word : words) {
      if (word.ends_with(".html")) ended.out += slurp(scratch_ / word);
    }
    return ended;
  }

  Scratch scratch_;
  const std::string page_ = slurp(k_root + "/docs/evidence/profiler-requests.md");
};

TEST_F(ProfilerRequests, AreAnsweredAsEachRowOfThePageSays) {
  for (const std::string& line : text::lines(tests::code_blocks(page_, "sh"))) {
    if (line.empty()) continue;
    const Ended ended = run(line);
    ASSERT_EQ(ended.exit_code, 0) << line << "\n" << ended.out;
  }
  const std::vector<Row> rows = parse_rows(page_);
  EXPECT_GE(rows.size(), 75U);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.sentence);
    EXPECT_FALSE(row.commands.empty());
    EXPECT_FALSE(row.outputs.empty());
    // Builds for CUDA are there on x86-64 alone.
    if (!row.commands.empty() && row.commands[0].find("cuda13") != std::string::npos &&
        !fs::exists(k_engines + "/llama.cpp-cuda13/llama-bench")) {
      continue;
    }
    std::string printed;
    for (const std::string& command : row.commands) {
      const Ended ended = run(command);
      const bool last = &command == &row.commands.back();
      EXPECT_EQ(ended.exit_code, last ? row.exit_code : 0) << command << "\n" << ended.out;
      printed += ended.out;
    }
    const std::string line = in_one_line(printed);
    for (const std::string& output : row.outputs) {
      EXPECT_TRUE(appears(output, line)) << output << "\nis not in\n" << printed;
    }
  }
}

// A row must not be true by chance.
TEST(ProfilerRequestsTable, IsReadAsItIsMeant) {
  EXPECT_EQ(tests::split_command("A=1 weir gate --cell 'a/b c' x"),
            (std::vector<std::string>{"A=1", "weir", "gate", "--cell", "a/b c", "x"}));
  EXPECT_TRUE(appears("a b", "x a b y"));
  EXPECT_FALSE(appears("a c", "x a b c y"));
  EXPECT_TRUE(appears("a \u2026 c", "a a b c y"));
  EXPECT_FALSE(appears("a \u2026 a", "b a c"));
  EXPECT_FALSE(appears("a\u2026c", "a" + std::string(301, 'b') + "c"));
  const auto rows =
      parse_rows("| sentence | command | result |\n| \"s\" | `c`, `d` | `o`, exit code 3 |\n");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].commands, (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(rows[0].outputs, (std::vector<std::string>{"o"}));
  EXPECT_EQ(rows[0].exit_code, 3);
}

}  // namespace profiler_requests_test
}  // namespace weir::e2e
