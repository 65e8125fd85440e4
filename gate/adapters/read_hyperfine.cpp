// hyperfine --export-json: {"results": [{"command": …, "times": […], "exit_codes": […]}]}. Each
// command is a case, its runs are samples.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::hyperfine {
namespace {

// Returns the name of a command, which with other values of its parameters is another.
std::string command_name(const Json& row) {
  std::string name = json_text(row, "command").value_or("command");
  const Json& parameters = member_or_null(row, "parameters");
  if (!parameters.is_object()) return name;
  for (const auto& [key, value] : parameters.items()) {
    const std::string shown = json_display_text(value);
    // Its value is in the command already, unless that has a name of its own.
    if (name.find(shown) == std::string::npos)
      name += fmt::format(" {}={}", display_text(key, 60), shown);
  }
  return name;
}

// Reads {"command": "sleep 1", "mean": 1.002, "times": [1.001, …], "exit_codes": [0, …]}.
void read_command(const Json& row, Observed& observed) {
  if (!row.is_object() || !row.contains("command")) return;
  ObservedCase command;
  command.name = command_name(row);
  for (const std::string& word : text::split(command.name, ' ')) {
    if (word.starts_with('/')) add_place(observed, word);
  }
  if (const Json& parameters = member_or_null(row, "parameters"); parameters.is_object())
    add_facts(parameters, command.facts);
  copy_facts(row, {"user", "system"}, command);
  const Json& codes = list_or_empty(row, "exit_codes");
  const auto failed = std::ranges::count_if(codes, [](const Json& code) { return code != 0; });
  if (failed > 0) {
    fail_load(command, fmt::format("{} of {} runs did not exit with 0", failed, codes.size()));
    observed.errors.push_back(command.name + ": " + *command.error);
  }
  for (const Json& seconds : list_or_empty(row, "times")) {
    if (seconds.is_number()) add_sample(command.timings, "real_seconds", seconds.get<double>());
  }
  if (command.timings.empty()) {
    ObservedTiming& timing =
        find_or_add_timing(command.timings, custom_time_metric("real_seconds"));
    timing.mean = json_number(row, "mean");
    timing.stddev = json_number(row, "stddev");
  }
  append_row_within_limit(observed.cases, std::move(command), observed);
}

void read(const Printed& printed, Observed& observed) {
  read_pieces(printed, {"results"},
              {[&](std::string_view, const Json& row) { read_command(row, observed); },
               [](const Json& /*members*/) {}},
              observed);
  if (observed.cases.empty() && printed.begins("command,mean,stddev"))
    observed.errors.emplace_back("it has no single runs: give the file of --export-json");
}

Result<profile::EngineReport> make_hyperfine_report(const Output& output) {
  return make_benchmark_report("hyperfine", output);
}

}  // namespace
}  // namespace weir::adapters::hyperfine

const weir::adapters::Format weir::adapters::k_hyperfine(
    "hyperfine", "hyperfine --export-json", "", hyperfine::read,
    {{90, {"\"results\" & \"exit_codes\"", "^command,mean,stddev,median,user,system,min,max"}},
     {80, {"\"command\" & \"times\" & \"stddev\" & \"system\""}}},
    {"hyperfine", 21, Counts::results, hyperfine::make_hyperfine_report});
