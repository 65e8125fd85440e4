// Computes the nodes of a recorded step, each alone, and prints their times as lines of JSON.
#include "tools/replay/program/program.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "gate/base/text.hpp"

namespace weir::replay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t k_min_runs = 5;
constexpr std::size_t k_max_runs = 1000;
constexpr double k_slow_factor = 20;  // times the requested time, for a node whose graph is slow
constexpr std::int64_t k_max_copies = 256;
constexpr std::int64_t k_min_without_weights = 8;

// Reads the size of the last-level cache from Linux ("32768K"). The C library reports that of the
// whole processor, of which a virtual machine has a part.
std::int64_t last_cache_bytes() {
  std::int64_t largest_bytes = 0;
  for (int level = 0; level < 8; ++level) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", level));
    long long kib = 0;
    if (file >> kib && kib > 0 && kib < (1 << 24)) {
      largest_bytes = std::max<std::int64_t>(largest_bytes, static_cast<std::int64_t>(kib) << 10);
    }
  }
  return largest_bytes > 0 ? largest_bytes : std::int64_t{32} << 20;
}

// Parses pairs of an option and its value, as weir passes them. Numbers out of range are moved into
// it.
Result<ProgramOptions> parse_options(int argc, char** argv) {
  ProgramOptions options;
  std::map<std::string, std::string> words;
  for (int i = 1; i + 1 < argc; i += 2) words[argv[i]] = argv[i + 1];
  const auto number = [&](const char* name, long long min_value, long long max_value,
                          long long fallback) {
    const auto value = text::to_int(words[name]);
    return value ? std::clamp(*value, min_value, max_value) : fallback;
  };
  options.file = words["--replay"];
  options.engine = words["--engine"];
  options.on = words["--on"];
  options.threads = static_cast<int>(number("--threads", 1, 1024, 1));
  options.from = static_cast<std::size_t>(number("--from", 0, 1 << 20, 0));
  options.seconds = static_cast<double>(number("--milliseconds", 1, 600'000, 200)) / 1000;
  options.limits.max_bytes = number("--memory", 1, 1 << 20, 2048) << 20;
  options.limits.constant_bytes = number("--constant-bytes", 0, 1LL << 50, 0);
  options.limits.any_shape = words["--any-op"] == "1";
  options.any_version = words["--any-version"] == "1";
  options.limits.cache_bytes = last_cache_bytes();
  if (options.file.empty()) return fail(Code::usage, "--replay FILE: weir replay starts this");
  return options;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Makes the work of a node. A device's submission and wait count once a step, so a graph of a few
// short nodes would count them as theirs. A short graph is made again with more copies.
Result<std::unique_ptr<Work>> make_work(const OpenedDevice& opened, const profile::ReplayNode& node,
                                        ReplayLimits limits) {
  constexpr double k_graph_seconds = 0.02;
  constexpr double k_max_repeats = 64;
  {
    auto work = opened.make(node, limits);
    if (!work || !opened.waits_for_device || !(*work)->compute()) return work;
    const auto begin = Clock::now();
    if (!(*work)->compute()) return work;
    const double seconds = seconds_since(begin);
    const auto copies = static_cast<double>((*work)->copies());
    const double wanted =
        std::min(k_max_repeats, std::ceil(copies * k_graph_seconds / std::max(seconds, 1e-6)));
    if (wanted <= copies) return work;
    limits.min_copies = static_cast<std::int64_t>(wanted);
  }
  return opened.make(node, limits);
}

// Returns the node's times in seconds (median, least, most): those of its graph, divided by the
// copies in it.
Json measure(const ProgramOptions& options, Work& work) {
  Json failed = {{"left_out", "the engine says that computing it failed"}};
  if (!work.compute()) return failed;
  std::vector<double> times;
  double total_seconds = 0;
  const auto has_enough_runs = [&] {
    if (times.size() >= k_max_runs) return true;
    if (times.size() >= k_min_runs) return total_seconds >= options.seconds;
    return !times.empty() && total_seconds >= options.seconds * k_slow_factor;
  };
  while (!has_enough_runs()) {
    const auto begin = Clock::now();
    if (!work.compute()) return failed;
    times.push_back(seconds_since(begin));
    total_seconds += times.back();
  }
  std::sort(times.begin(), times.end());
  const auto copies = static_cast<double>(work.copies());
  return {{"median", times[times.size() / 2] / copies},
          {"least", times.front() / copies},
          {"most", times.back() / copies},
          {"runs", times.size()},
          {"copies", work.copies()}};
}

// Replays the nodes of the recording's first step, from number `from` on, and prints a line of JSON
// before and after each.
Result<void> replay_all(const ProgramOptions& options, const OpenDevice& open) {
  std::ifstream file(options.file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return fail(Code::io, "{}: cannot be read", options.file);
  WEIR_TRY(const Json json, parse_json(text));
  WEIR_TRY(const profile::Replay recording, profile::replay_from_json(json));
  WEIR_TRY(const OpenedDevice opened, open(options, recording));
  print(opened.identity);
  if (recording.steps.empty()) return {};
  ReplayLimits limits = options.limits;
  limits.visible_mask_share = recording.steps.front().visible_mask_share.value_or(1);
  const auto& nodes = recording.steps.front().nodes;
  for (std::size_t i = options.from; i < nodes.size(); ++i) {
    print({{"begins", i}});
    const auto work = make_work(opened, nodes[i], limits);
    Json line = work ? measure(options, **work) : Json{{"left_out", work.error().message}};
    line["node"] = i;
    print(line);
  }
  print({{"complete", true}});
  return {};
}

}  // namespace

void print(const Json& line) {
  std::puts(dump_json(line).c_str());
  std::fflush(stdout);
}

int run_program(int argc, char** argv, const OpenDevice& open) {
  const auto options = parse_options(argc, argv);
  const auto result =
      options ? replay_all(*options, open) : Result<void>(tl::unexpected(options.error()));
  if (result) return 0;
  print({{"error", result.error().message}});
  return 1;
}

// Returns how many copies of a node one graph computes. Weights (`each` bytes a copy) must not stay
// in a cache if the whole step would not fit into it.
Result<std::int64_t> copies_needed(std::int64_t count, std::int64_t each, std::int64_t shared,
                                   const ReplayLimits& limits) {
  if (each + shared > limits.max_bytes) {
    return left_out_error("it needs {} MiB, more than the {} MiB it may take (--memory)",
                          (each + shared) >> 20, limits.max_bytes >> 20);
  }
  std::int64_t copies = std::min(std::max(count, limits.min_copies), k_max_copies);
  if (each == 0) return std::max(copies, k_min_without_weights);
  // In a step that the cache cannot hold each weight is read from memory.
  const std::int64_t bytes_to_flush_cache = std::min(limits.constant_bytes, 2 * limits.cache_bytes);
  copies = std::max(copies, std::min(bytes_to_flush_cache / each + 1, k_max_copies));
  return std::max<std::int64_t>(1, std::min(copies, (limits.max_bytes - shared) / each));
}

std::int64_t spread_index(std::int64_t number, std::int64_t places) {
  // A prime that does not divide `places` visits all of them.
  for (const std::int64_t step : {7919, 7927, 7933, 7937}) {
    if (places % step != 0) return number % places * step % places;
  }
  return number % places;
}

}  // namespace weir::replay
