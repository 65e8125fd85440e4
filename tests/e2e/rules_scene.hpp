// An engine under git that says its own counts, with accepted baselines: a fixture for who may
// change the rules.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {

class Rules : public testing::Test {
 protected:
  const std::string k_cell = "mine/m/metal/decode";

  void SetUp() override {
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / ".gitignore", "weir-*\nlocks\ncache\n");
    write_config();
    write_engine(65);
    git({"init", "-q", "-b", "main"});
    ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
    git({"add", "-A"});
    git({"commit", "-q", "-m", "base"});
    git({"checkout", "-q", "-b", "feature"});
  }
  void write_config(const std::string& more = "",
                    const std::string& prompts = "{decode: {tokens: 8}, other: {tokens: 9}}") {
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  mine:\n    command: [./engine, --tokens, '{tokens}']\n"
          "    output: generic\n    metrics:\n"
          "      dispatches_per_token: {regex: '(\\d+) dispatches'}\n"
          "      syncs_per_token: {regex: '(\\d+) syncs'}\n"
          "models: {m: model.bin}\nbackends: {metal: {}}\nprompts: " +
              prompts + "\n" + more);
  }
  void write_engine(int dispatches, int syncs = 1) {
    spill_program(scratch_ / "engine", "#!/bin/sh\necho '" + std::to_string(dispatches) +
                                           " dispatches, " + std::to_string(syncs) + " syncs'\n");
  }
  void git(const std::vector<std::string>& arguments) {
    std::string line = "cd '" + scratch_.path().string() +
                       "' && env -u GIT_DIR HOME=/nonexistent git -c user.name=A -c "
                       "user.email=a@example.org -c commit.gpgsign=false";
    for (const std::string& argument : arguments) line += " '" + argument + "'";
    ASSERT_EQ(std::system(line.c_str()), 0) << line;
  }
  std::string git_output(const std::string& arguments) {
    const std::string file = (scratch_ / "weir-git.out").string();
    const std::string line =
        "cd '" + scratch_.path().string() + "' && git " + arguments + " > '" + file + "'";
    EXPECT_EQ(std::system(line.c_str()), 0) << line;
    return slurp(file);
  }
  Ended here(std::vector<std::string> arguments, std::map<std::string, std::string> env = {}) {
    env.emplace("WEIR_CACHE", (scratch_ / "cache").string());
    for (const char* who : {"AUTHOR", "COMMITTER"}) {
      env.emplace("GIT_" + std::string(who) + "_NAME", "A");
      env.emplace("GIT_" + std::string(who) + "_EMAIL", "a@example.org");
    }
    last_ = weir(scratch_, arguments, env);
    return last_;
  }
  Json gate(std::vector<std::string> options, int exit_code) {
    std::vector<std::string> all{"gate", "--json", "-"};
    const bool again = options[0] == "--from";
    if (!again) all.emplace_back("--counts-only");
    all.insert(all.end(), options.begin(), options.end());
    const Ended ended = here(all);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    return json_of(ended);
  }
  static std::vector<std::string> proposal_texts(const Json& verdict) {
    std::vector<std::string> texts;
    for (const Json& proposal : verdict.value("proposals", Json::array()))
      texts.push_back(proposal["words"]);
    return texts;
  }

  Scratch scratch_;
  Ended last_;
};

}  // namespace weir::e2e
