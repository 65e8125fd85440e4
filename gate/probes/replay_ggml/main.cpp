// weir-replay-ggml: computes the ops of a recorded step on the kernels of an engine's own ggml,
// those of the CPU or of a Vulkan device.
//
// A program of its own, since it runs code and shapes that come from elsewhere: weir starts it,
// reads one line of JSON for each node, and goes on behind a node that ended it. Nothing in the
// recording is trusted beyond what gate/profile/replay.hpp and shapes.hpp check.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>

#include "gate/base/text.hpp"
#include "gate/probes/replay_ggml/rebuild.hpp"

namespace {

using namespace weir;

constexpr std::size_t k_least_runs = 5;
constexpr std::size_t k_most_runs = 1000;
constexpr double k_patience = 20;  // times the asked time for a node whose graph is slow

void print(const Json& json) {
  const std::string line = dump_json(json) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

struct Options {
  std::string file, engine, on;
  int threads = 1;
  std::size_t from = 0;
  double seconds = 0.2;  // of each node
  replay::Wish wish;
  bool any_version = false;
};

// Of the last level, as Linux tells it ("32768K"): the C library's own answer is that of the whole
// processor, of which a virtual machine has a part.
std::int64_t last_cache_bytes() {
  std::int64_t most = 0;
  for (int level = 0; level < 8; ++level) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", level));
    long long kib = 0;
    if (file >> kib && kib > 0 && kib < (1 << 24)) {
      most = std::max<std::int64_t>(most, static_cast<std::int64_t>(kib) << 10);
    }
  }
  return most > 0 ? most : std::int64_t{32} << 20;
}

Result<Options> options_of(int argc, char** argv) {
  Options options;
  std::map<std::string, std::string> words;
  for (int i = 1; i + 1 < argc; i += 2) words[argv[i]] = argv[i + 1];
  const auto number = [&](const char* name, long long least, long long most, long long otherwise) {
    const auto value = text::to_int(words[name]);
    return value ? std::clamp(*value, least, most) : otherwise;
  };
  options.file = words["--file"];
  options.engine = words["--engine"];
  options.on = words["--on"];
  options.threads = static_cast<int>(number("--threads", 1, 1024, 1));
  options.from = static_cast<std::size_t>(number("--from", 0, 1 << 20, 0));
  options.seconds = static_cast<double>(number("--milliseconds", 1, 600'000, 200)) / 1000;
  options.wish.most_bytes = number("--memory", 1, 1 << 20, 2048) << 20;
  options.wish.constant_bytes = number("--constant-bytes", 0, 1LL << 50, 0);
  options.wish.any_shape = words["--any-op"] == "1";
  options.any_version = words["--any-version"] == "1";
  options.wish.cache_bytes = last_cache_bytes();
  if (options.file.empty() || options.engine.empty() || options.on.empty()) {
    return fail(Code::usage, "weir-replay-ggml is started by weir replay");
  }
  return options;
}

using Clock = std::chrono::steady_clock;

// A device is given work, and waited for, once for a whole step: in a graph of a few short nodes
// that would be taken for theirs. So there are more of them in it, up to as many as a small step
// has.
Result<replay::Rebuilt> rebuilt_for(const replay::Engine& engine, const profile::ReplayNode& node,
                                    replay::Wish wish) {
  constexpr double k_long = 0.02;  // seconds of a graph
  constexpr double k_many = 64;
  {
    auto rebuilt = replay::Rebuilt::make(engine, node, wish);
    if (!rebuilt || engine.memory == nullptr || !rebuilt->compute()) return rebuilt;
    const auto begin = Clock::now();
    if (!rebuilt->compute()) return rebuilt;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const auto copies = static_cast<double>(rebuilt->copies());
    const double wanted = std::min(k_many, std::ceil(copies * k_long / std::max(seconds, 1e-6)));
    if (wanted <= copies) return rebuilt;
    wish.least_copies = static_cast<std::int64_t>(wanted);
  }
  return replay::Rebuilt::make(engine, node, wish);
}

// Times of one node: of the whole graph divided by the nodes in it.
Json measured(const Options& options, const replay::Rebuilt& rebuilt) {
  if (!rebuilt.compute()) return {{"left_out", "ggml says that computing it failed"}};
  std::vector<double> times;
  double sum = 0;
  const auto enough = [&] {
    if (times.size() >= k_most_runs) return true;
    if (times.size() >= k_least_runs) return sum >= options.seconds;
    return !times.empty() && sum >= options.seconds * k_patience;
  };
  while (!enough()) {
    const auto begin = Clock::now();
    if (!rebuilt.compute()) return {{"left_out", "ggml says that computing it failed"}};
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    sum += times.back();
  }
  std::sort(times.begin(), times.end());
  const auto copies = static_cast<double>(rebuilt.copies());
  return {{"median", times[times.size() / 2] / copies},
          {"least", times.front() / copies},
          {"most", times.back() / copies},
          {"runs", times.size()},
          {"copies", rebuilt.copies()}};
}

Result<void> replay_all(Options options) {
  std::ifstream file(options.file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return fail(Code::io, "{}: can not be read", options.file);
  WEIR_TRY(const Json json, parse_json(text));
  WEIR_TRY(const profile::Replay recording, profile::replay_from_json(json));
  WEIR_TRY(const replay::Engine engine,
           replay::open_engine(options.engine, options.on, options.threads));
  if (!options.any_version && !recording.version.empty() && engine.version != recording.version) {
    return fail(Code::unavailable,
                "recorded with ggml {}, and {} holds {}: what ops are told may differ\n"
                "  --any-version replays it all the same; recording it anew is surer",
                recording.version, options.engine,
                engine.version.empty() ? "one that does not say its version" : engine.version);
  }
  print({{"version", text::printable(engine.version)},
         {"commit", text::printable(engine.commit)},
         {"library", text::printable(engine.library)},
         {"device", text::printable(engine.device_words)},
         {"cache_bytes", options.wish.cache_bytes}});
  if (recording.steps.empty()) return {};
  options.wish.mask_open = recording.steps.front().mask_open.value_or(1);
  const auto& nodes = recording.steps.front().nodes;
  for (std::size_t i = options.from; i < nodes.size(); ++i) {
    print({{"begins", i}});
    auto rebuilt = rebuilt_for(engine, nodes[i], options.wish);
    Json line = rebuilt ? measured(options, *rebuilt) : Json{{"left_out", rebuilt.error().message}};
    line["node"] = i;
    print(line);
  }
  print({{"complete", true}});
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = options_of(argc, argv);
  const auto done = options ? replay_all(*options) : Result<void>(tl::unexpected(options.error()));
  if (done) return 0;
  print({{"error", done.error().message}});
  return 1;
}
