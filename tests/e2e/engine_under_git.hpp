// An engine under git whose speed is its source: a fixture for what is held to a base program.
#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {

inline constexpr const char* k_rate = "decode_tokens_per_second";

class EngineUnderGit : public testing::Test {
 protected:
  void SetUp() override {
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / ".gitignore", "weir-*\nmodel.bin\nlocks\ncache\nbaselines\n");
    write_config("2h");
    git({"init", "-q", "-b", "main"});
    commit_engine("base", "10000000");
  }

  // The time-out is for an engine that hangs.
  void write_config(const std::string& budget, const std::string& more = "",
                    const std::string& gate = "", const std::string& timeout = "10m") {
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  fake:\n    command: [./engine, -m, '{model}', -n, '{tokens}', "
          "-p, '{prompt_tokens}', -r, '{repeats}']\n    output: llama-bench\n    timeout: " +
              timeout +
              "\nmodels: {m: model.bin}\nbackends: {cpu: {}}\n"
              "prompts: {decode: {prompt_tokens: 0, tokens: 8}}\n"
              "gate: {repeats: 1, budget: " +
              budget + gate + "}\n" + more);
  }
  // `ns` is a shell word: nanoseconds a token.
  void write_engine(const std::string& ns, const std::string& mode = "ok") {
    spill_program(scratch_ / "engine", "#!/bin/sh\nFAKE_ENGINE_NS=" + ns +
                                           " exec " WEIR_BINARY_DIR
                                           "/tests/fake_engines/fake_engine " +
                                           mode + " \"$@\"\n");
  }
  void commit_engine(const std::string& subject, const std::string& ns) {
    write_engine(ns);
    git({"add", "-A"});
    git({"commit", "-q", "--allow-empty", "-m", subject});
  }
  void git(std::vector<std::string> arguments) {
    std::string line = "cd '" + scratch_.path().string() +
                       "' && env -u GIT_DIR HOME=/nonexistent git -c user.name=A -c "
                       "user.email=a@example.org -c commit.gpgsign=false";
    for (const std::string& argument : arguments) line += " '" + argument + "'";
    ASSERT_EQ(std::system(line.c_str()), 0) << line;
  }
  Ended weir_here(std::vector<std::string> arguments, std::map<std::string, std::string> env = {}) {
    env.emplace("WEIR_CACHE", (scratch_ / "cache").string());
    last_ = weir(scratch_, std::move(arguments), env);
    return last_;
  }
  static Json rate_of(const Json& verdict) {
    return metric_of(cell_of(verdict, "fake/m/cpu/decode"), k_rate);
  }

  Scratch scratch_;
  Ended last_;
};

}  // namespace weir::e2e
