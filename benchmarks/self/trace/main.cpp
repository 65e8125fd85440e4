// Compares weir and JSON libraries at reading a made-up Chrome trace: processor time and memory.
//
//   trace_cost [MB [ROUNDS [FOLDER]]]     default: 100 MB, 5 rounds, /tmp; the file is removed
//   after
//
// Every way runs in a process of its own, all of them in each round. Above 200 MB Python's json is
// left out, which makes a tree of the complete file.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

#include "benchmarks/self/trace/made_trace.hpp"
#include "benchmarks/self/trace/ways.hpp"

namespace weir::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_python = R"(
import json, resource, sys
with open(sys.argv[1]) as file:
    text = file.read()
def seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
began = seconds()
events = len(json.loads(text)["traceEvents"])
ended = seconds()
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print(ended - began, events, int(status["VmHWM"].split()[0]) - int(status["RssFile"].split()[0]))
)";

// Reads the file in the way of this name and prints "SECONDS COUNT MEMORY_KIB". Returns the exit
// code; 2 if there is no such way.
int walk(std::string_view name, const std::string& file) {
  for (const Way& way : ways()) {
    if (way.name != name) continue;
    const auto result = way.walk(file);
    if (!result) {
      std::fprintf(stderr, "%s\n", result.error().message.c_str());
      return 1;
    }
    std::printf("%.6f %llu %llu\n", result->seconds, static_cast<unsigned long long>(result->count),
                static_cast<unsigned long long>(result->memory_kib));
    return 0;
  }
  return 2;
}

// Results of one way: the processor time of each round, the most memory, and the number of events.
struct Measurement {
  std::vector<double> seconds;
  std::uint64_t memory_kib = 0;
  std::string count;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Runs one way once, as a process, and adds its result. Prints the error and returns false if it
// fails.
bool measure(const std::vector<std::string>& argv, Measurement& measurement) {
  sys::RealProcesses processes;
  sys::ProcessSpec spec;
  spec.argv = argv;
  const auto finished = processes.run(spec, sys::Stop());
  if (!finished || finished->exit_code != 0) {
    std::fprintf(stderr, "%s failed: %s\n", argv[0].c_str(),
                 finished ? finished->err.c_str() : finished.error().message.c_str());
    return false;
  }
  const auto words = text::split(text::trim(finished->out), ' ');
  const auto seconds = words.size() == 3 ? text::to_double(words[0]) : std::nullopt;
  const auto memory = words.size() == 3 ? text::to_int(words[2]) : std::nullopt;
  if (!seconds || !memory) return false;
  measurement.seconds.push_back(*seconds);
  measurement.count = words[1];
  measurement.memory_kib = std::max(measurement.memory_kib, static_cast<std::uint64_t>(*memory));
  return true;
}

// Makes the trace, measures every way of reading it in each round, and prints the table. Returns
// the exit code.
int compare(std::uint64_t megabytes, std::size_t rounds, const fs::path& folder) {
  const fs::path file = folder / "weir-made-trace.json";
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> writer(std::fopen(file.c_str(), "wb"),
                                                         std::fclose);
  if (!writer) return 1;
  const TraceSummary trace = make_trace(megabytes * 1'000'000, 1, [&](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), writer.get());
  });
  writer.reset();
  std::vector<std::pair<std::string, std::vector<std::string>>> commands;
  for (const Way& way : ways()) {
    commands.emplace_back(way.name, std::vector<std::string>{sys::own_program_path(), "--walk",
                                                             std::string(way.name), file.string()});
  }
  if (megabytes <= 200) {
    commands.emplace_back(
        "Python's json", std::vector<std::string>{"/usr/bin/env", "python3", "-c", k_python, file});
  }
  std::map<std::string, Measurement> measurements;
  bool succeeded = true;
  for (std::size_t round = 0; round < rounds && succeeded; ++round) {
    for (const auto& [name, argv] : commands) {
      succeeded = succeeded && measure(argv, measurements[name]);
    }
  }
  fs::remove(file);
  if (!succeeded) return 1;
  std::printf("%llu bytes, %llu events; %zu rounds, medians\n%-16s %8s %10s %10s %10s\n",
              static_cast<unsigned long long>(trace.bytes),
              static_cast<unsigned long long>(trace.events), rounds, "", "MB/s", "/simdjson", "MiB",
              "found");
  for (const auto& [name, argv] : commands) {
    const Measurement& measurement = measurements[name];
    std::vector<double> ratios;
    for (std::size_t i = 0; i < rounds; ++i) {
      ratios.push_back(measurements["simdjson"].seconds[i] / measurement.seconds[i]);
    }
    std::printf("%-16s %8.0f %10.2f %10.1f %10s\n", name.c_str(),
                static_cast<double>(trace.bytes) / 1e6 / median(measurement.seconds),
                median(ratios), static_cast<double>(measurement.memory_kib) / 1024,
                measurement.count.c_str());
  }
  std::printf("limits: weir at least 0.50 of simdjson, at most 64 MiB\n");
  return 0;
}

}  // namespace
}  // namespace weir::bench

// Walks one file in one way (--walk WAY FILE), or compares all ways on a file that it writes.
// Returns the exit code.
int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 3 && words[0] == "--walk") return weir::bench::walk(words[1], words[2]);
  // Returns the count in words[at], or `otherwise` without such a word; nothing if it is no count.
  const auto parse_count = [&](std::size_t at,
                               long long otherwise) -> std::optional<std::uint64_t> {
    constexpr long long k_max = 100'000;
    if (words.size() <= at) return otherwise;
    const auto value = weir::text::to_int(words[at]);
    if (!value || *value <= 0 || *value > k_max) return std::nullopt;
    return *value;
  };
  const auto megabytes = parse_count(0, 100), rounds = parse_count(1, 5);
  if (!megabytes || !rounds) {
    std::fprintf(stderr, "trace_cost [MB [ROUNDS [FOLDER]]]\n");
    return 2;
  }
  return weir::bench::compare(*megabytes, *rounds, words.size() > 2 ? words[2] : "/tmp");
}
