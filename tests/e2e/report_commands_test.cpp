// Every command that a report prints works as it is pasted into a shell, in the order of the
// report.
#include <sstream>

#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace report_commands_test {

using testing::HasSubstr;
using testing::Key;
using testing::UnorderedElementsAre;

// `./engine MODEL TOKENS`: with the variable SLOW it waits more often; with BROKEN the large model
// fails.
constexpr const char* k_engine = R"(#!/bin/sh
case $1 in *large*) d=125 s=3 ;; *) d=65 s=1 ;; esac
if [ -n "$BROKEN" ] && [ $d = 125 ]; then echo "out of memory" >&2; exit 3; fi
[ -z "$SLOW" ] || s=$((s * 5))
echo "$d dispatches, $s syncs"
)";

constexpr const char* k_config = R"(version: 1
engines:
  mine:
    command: [./engine, "{model}", "{tokens}"]
    output: generic
    metrics: {dispatches_per_token: {regex: '(\d+) dispatches'}, syncs_per_token: {regex: '(\d+) syncs'}}
models: {small: small.bin, large: large.bin}
backends: {metal: {}}
prompts: {decode: {tokens: 8}, long: {tokens: 16}}
)";

// Returns the commands below the verdict, by what they are for. A line that ends with a backslash
// goes on.
std::map<std::string, std::string> printed_commands(const std::string& report) {
  constexpr std::size_t k_indent = 6, k_column = 15;
  std::map<std::string, std::string> commands;
  std::istringstream lines(report);
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    const bool is_command = line.size() > k_column && line.substr(k_column).starts_with("weir ");
    if (is_command) name = line.substr(k_indent, line.find(' ', k_indent) - k_indent);
    if (name.empty()) continue;
    commands[name] += line.substr(k_column) + "\n";
    if (!line.ends_with("\\")) name.clear();
  }
  return commands;
}

class ReportCommands : public testing::Test {
 protected:
  // "my perf": a shell divides what is not quoted.
  ReportCommands() {
    spill_program(scratch_ / "engine", k_engine);
    spill(scratch_ / "my perf.yaml", k_config);
    for (const char* model : {"small.bin", "large.bin"}) spill(scratch_ / model, model);
    spill(scratch_ / "bin/weir", "");
    fs::remove(scratch_ / "bin/weir");
    fs::create_symlink(WEIR_BINARY_DIR "/weir", scratch_ / "bin/weir");
  }
  Ended here(std::vector<std::string> arguments,
             const std::map<std::string, std::string>& env = {}) {
    for (const char* word :
         {"-c", "my perf.yaml", "--baselines", "my base", "--out", "my out", "--counts-only"}) {
      arguments.emplace_back(word);
    }
    return weir(scratch_, arguments, env);
  }
  // Runs a command as a shell does.
  Ended paste(const std::string& command, std::map<std::string, std::string> env) {
    env["PATH"] = (scratch_ / "bin").string() + ":" + getenv("PATH");
    return Weir(scratch_, {"-c", command}, env, "/bin/sh").wait();
  }

  Scratch scratch_;
};

TEST_F(ReportCommands, WorkAsTheyArePasted) {
  ASSERT_EQ(here({"baseline", "accept"}).exit_code, 0);
  const std::map<std::string, std::string> slow{{"SLOW", "1"}};
  const Ended red = here({"gate"}, slow);
  ASSERT_EQ(red.exit_code, 1) << red.err;
  ASSERT_THAT(red.out, HasSubstr("4 of 4 cells broke a limit, 1 cause"));
  auto commands = printed_commands(red.out);
  ASSERT_THAT(commands,
              UnorderedElementsAre(Key("why"), Key("numbers"), Key("again"), Key("accept")))
      << red.out;
  const Ended why = paste(commands["why"], slow);
  EXPECT_EQ(why.exit_code, 0) << why.err;
  EXPECT_THAT(why.out, HasSubstr("more often"));
  const Ended numbers = paste(commands["numbers"], slow);
  EXPECT_EQ(numbers.exit_code, 1) << numbers.err;
  EXPECT_THAT(slurp(scratch_ / "report.html"), HasSubstr("mine / large / metal / long"));
  const Ended again = paste(commands["again"], slow);
  EXPECT_EQ(again.exit_code, 1) << again.err;
  EXPECT_THAT(again.out, HasSubstr("4 of 4 cells broke a limit, 1 cause"));
  const Ended accepted = paste(commands["accept"], slow);
  EXPECT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_EQ(here({"gate"}, slow).exit_code, 0) << "the accepted level holds now";
}

TEST_F(ReportCommands, LookAtAnEngineThatFailed) {
  ASSERT_EQ(here({"baseline", "accept"}).exit_code, 0);
  const std::map<std::string, std::string> broken{{"SLOW", "1"}, {"BROKEN", "1"}};
  const Ended red = here({"gate"}, broken);
  ASSERT_EQ(red.exit_code, 1) << red.err;
  EXPECT_THAT(red.out, HasSubstr("2 cells could not be measured"));
  auto commands = printed_commands(red.out);
  ASSERT_TRUE(commands.contains("look")) << red.out;
  const Ended look = paste(commands["look"], broken);
  EXPECT_NE(look.exit_code, 2) << look.err;
  EXPECT_THAT(look.out, HasSubstr("out of memory")) << look.err;
}

}  // namespace report_commands_test
}  // namespace weir::e2e
