// Measures a complete gate of the reference matrix, and its command lines run one after another.
#include <cstdlib>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "gate/base/text.hpp"
#include "gate/sys/process.hpp"

namespace {

using namespace weir;

const std::string k_weir = WEIR_BINARY_DIR "/weir";
const std::vector<std::string> k_selection{
    "-c",    WEIR_SOURCE_DIR "/configs/llama.cpp.yaml", "--cell", "*/tiny-llama/*", "--runs", "2",
    "--out", WEIR_BINARY_DIR "/benchmark-out"};

// Runs a program to its end. A program that does not start gives a default Finished.
sys::Finished run(std::vector<std::string> argv, const sys::EnvironmentList& env = {}) {
  static sys::RealProcesses k_processes;
  static const sys::Stop k_stop;
  sys::ProcessSpec spec;
  spec.argv = std::move(argv);
  spec.env = env;
  spec.timeout_seconds = 600;
  auto result = k_processes.run(spec, k_stop);
  return result ? *result : sys::Finished{};
}

// The command line of a verb of weir on the selected cells.
std::vector<std::string> weir_command(const char* verb, const std::vector<std::string>& options) {
  std::vector<std::string> argv{k_weir, verb};
  argv.insert(argv.end(), k_selection.begin(), k_selection.end());
  argv.insert(argv.end(), options.begin(), options.end());
  return argv;
}

struct Command {
  std::vector<std::string> argv;
  sys::EnvironmentList env;
};

// Returns the commands that --dry-run prints, with the variables before them. Splitting at spaces
// is enough: no argument has one.
std::vector<Command> command_lines() {
  std::vector<Command> commands;
  for (const std::string& line : text::lines(run(weir_command("run", {"--dry-run"})).out)) {
    Command command;
    for (const std::string& word : text::split(line, ' ')) {
      const auto equals = word.find('=');
      if (command.argv.empty() && equals != std::string::npos) {
        command.env.emplace_back(word.substr(0, equals), word.substr(equals + 1));
      } else {
        command.argv.push_back(word);
      }
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

void gate(benchmark::State& state) {
  for (auto _ : state) {
    const auto finished =
        run(weir_command("gate", {"--baselines", WEIR_SOURCE_DIR "/baselines", "--quiet"}));
    if (finished.exit_code != 0) state.SkipWithError("the gate did not pass");
  }
}
BENCHMARK(gate)->Unit(benchmark::kSecond)->Iterations(1)->UseRealTime();

void bare_commands(benchmark::State& state) {
  static const std::vector<Command> k_commands = command_lines();
  if (k_commands.empty()) state.SkipWithError("no commands");
  for (auto _ : state) {
    for (const Command& command : k_commands) {
      if (run(command.argv, command.env).exit_code != 0) state.SkipWithError("a command failed");
    }
  }
}
BENCHMARK(bare_commands)
    ->Name("command_lines")
    ->Unit(benchmark::kSecond)
    ->Iterations(1)
    ->UseRealTime();

}  // namespace
