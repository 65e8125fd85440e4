// A small engine of C++ under git whose two prompts run different files of it.
#pragma once

#include <string>
#include <vector>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {

inline const std::string k_dense = "mine/m/cpu/dense", k_sparse = "mine/m/cpu/sparse";

class ReachOfAnEngine : public testing::Test {
 protected:
  void SetUp() override {
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / ".gitignore", "weir-*\nmodel.bin\nlocks\ncache\nengine\n*.json\n");
    spill(scratch_ / "src/work.h", "int dense(int);\nint sparse(int);\nint unused(int);\n");
    for (const char* name : {"dense", "sparse", "unused"}) write_work(name, 1);
    spill(scratch_ / "main.cpp",
          "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include \"src/work.h\"\n"
          "int main(int argc, char** argv) {\n"
          "  const int n = std::atoi(argv[2]);\n"
          "  int sum = 0;\n"
          "  for (int i = 0; i < n; ++i)\n"
          "    sum += std::strcmp(argv[argc - 1], \"dense\") == 0 ? dense(i) : sparse(i);\n"
          "  if (argc > 9) sum = unused(sum);\n"
          "  std::printf(\"%d dispatches, %d tokens, 10 tok/s\\n\", sum < 0 ? 8 : 7, n);\n"
          "}\n");
    spill(scratch_ / "README.md", "an engine\n");
    spill(scratch_ / "tests/a_test.cpp", "int main() {}\n");
    spill_program(scratch_ / "build.sh",
                  "#!/bin/sh\nexec " WEIR_CXX " -g -O0 -o engine main.cpp src/*.cpp\n");
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  mine:\n    command: [./engine, '{model}', '{tokens}']\n"
          "    output: generic\n    timeout: 60s\n    build: [./build.sh]\n    metrics:\n"
          "      dispatches_per_token: {regex: '(\\d+) dispatches'}\n"
          "      decode_tokens_per_second: {regex: '(\\d+) tok/s'}\n"
          "    facts: {generated_tokens: {regex: '(\\d+) tokens'}}\n"
          "models: {m: model.bin}\nbackends: {cpu: {}}\n"
          "prompts:\n  dense: {tokens: 4, args: [dense]}\n  sparse: {tokens: 4, args: [sparse]}\n");
    git("init -q -b main");
    commit("base");
    build();
  }

  void write_work(const std::string& name, int version) {
    // The file has several lines: valgrind takes neighbours in a program for one if their line
    // numbers are equal, whatever their files.
    spill(scratch_ / ("src/" + name + ".cpp"), "#include \"work.h\"\nint " + name +
                                                   "(int x) {\n  return x + " +
                                                   std::to_string(version) + ";\n}\n");
  }
  void run_shell(const std::string& line) {
    const std::string all = "cd '" + scratch_.path().string() + "' && " + line;
    ASSERT_EQ(std::system(all.c_str()), 0) << all;
  }
  void git(const std::string& words) {
    run_shell(
        "env -u GIT_DIR HOME=/nonexistent git -c user.name=A -c user.email=a@example.org "
        "-c commit.gpgsign=false " +
        words);
  }
  void commit(const std::string& subject) {
    git("add -A");
    git("commit -q -m '" + subject + "'");
  }
  void build() { run_shell("./build.sh"); }
  Ended weir_here(std::vector<std::string> arguments) {
    return weir(scratch_, std::move(arguments), {{"WEIR_CACHE", (scratch_ / "cache").string()}});
  }
  void record() {
    const Ended ended = weir_here({"reach", "--record"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_NE(ended.out.find("recorded 2 of 2 cells"), std::string::npos) << ended.out;
  }
  Json diff(const std::string& base = "HEAD~1") {
    const Ended ended = weir_here({"reach", "--diff", base, "--json", "-"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return json_of(ended);
  }
  static std::vector<std::string> reached(const Json& diff) {
    std::vector<std::string> names;
    for (const Json& cell : diff["cells"]) {
      if (cell["reached"] == true) names.push_back(cell["cell"]);
    }
    return names;
  }

  Scratch scratch_;
};

}  // namespace weir::e2e
