// Measures what each probe costs the real llama.cpp: its tokens per second with and without the
// probe, and the calls that reach the driver.
//
// A round runs every way once, in random order. Each result is divided by the run of the same round
// with nothing attached. "nothing, again" is such a run too: the spread of its ratio is noise, and
// no smaller effect can be measured. The calls that reach the driver are counted in a run of their
// own, by a layer that shares no code with the probe (tests/probes/independent_layer.cpp).
#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/process.hpp"

#include "tests/probes/independent_count.hpp"

namespace weir {
namespace {

const std::string k_probes = WEIR_BINARY_DIR "/lib/weir/probes";
constexpr const char* k_layer = "VK_LAYER_WEIR_probe";

// A way to run llama.cpp.
struct Way {
  std::string name;
  bool layer = false;  // the Vulkan probe
  sys::EnvironmentList env;
};

// Returns the ways that are compared: without probes, and with each probe by its environment. The
// first is what the others are divided by.
std::vector<Way> ways() {
  const std::pair<std::string, std::string> events{"WEIR_PROBE_EVENTS", "256"};
  const std::pair<std::string, std::string> ggml{"LD_PRELOAD", k_probes + "/libweir_ggml.so"};
  return {
      {.name = "nothing", .env = {}},  // first: what the others are divided by
      {.name = "nothing, again", .env = {}},
      {.name = "vulkan, counting", .layer = true, .env = {}},
      {.name = "vulkan, events", .layer = true, .env = {events}},
      {.name = "vulkan, batched timing",
       .layer = true,
       .env = {events, {"WEIR_PROBE_TIMING", "batched"}}},
      {.name = "vulkan, serialized timing",
       .layer = true,
       .env = {events, {"WEIR_PROBE_TIMING", "serialized"}}},
      {.name = "ggml", .env = {ggml}},
      {.name = "ggml and vulkan, counting", .layer = true, .env = {ggml}},
      {.name = "GGML_VK_PERF_LOGGER=1", .env = {{"GGML_VK_PERF_LOGGER", "1"}}},
  };
}

struct Options {
  int rounds = 5;
  int tokens = 48;
  std::uint64_t seed = 1;
  std::string model = "tiny-llama";
  std::vector<std::string> env{"GGML_VK_VISIBLE_DEVICES=0", "VK_LOADER_DRIVERS_SELECT=*lvp*"};
};

class Bench {
 public:
  Bench(const Options& options, sys::Files& files, std::string scratch)
      : options_(options), files_(files), scratch_(std::move(scratch)) {}

  // Returns tokens per second. `counts` is the file for the independent layer's counts; "" runs
  // without that layer.
  Result<double> run(const Way& way, const std::string& counts = "") {
    WEIR_CHECK(files_.make_dirs(scratch_));
    sys::ProcessSpec spec;
    spec.argv = {WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench",
                 "-m",
                 WEIR_SOURCE_DIR "/models/" + options_.model + ".gguf",
                 "-p",
                 "0",
                 "-n",
                 std::to_string(options_.tokens),
                 "-r",
                 "1",
                 "-ngl",
                 "99",
                 "-o",
                 "json"};
    for (const std::string& variable : options_.env) {
      const std::size_t equals = variable.find('=');
      spec.env.emplace_back(variable.substr(0, equals), variable.substr(equals + 1));
    }
    spec.env.insert(spec.env.end(), way.env.begin(), way.env.end());
    spec.env.emplace_back("WEIR_PROBE_DIR", scratch_);
    std::vector<std::string> layers;
    if (way.layer) layers.emplace_back(k_layer);
    if (!counts.empty()) layers.emplace_back(probes::k_independent_layer);  // next to the driver
    if (!layers.empty()) {
      spec.env.emplace_back("VK_LAYER_PATH", k_probes + ":" WEIR_INDEPENDENT_LAYER);
      spec.env.emplace_back("VK_INSTANCE_LAYERS", text::join(layers, ":"));
      spec.env.emplace_back("WEIR_INDEPENDENT_COUNTS", counts);
    }
    WEIR_TRY(const sys::Finished result, processes_.run(spec, stop_));
    if (result.ended != sys::HowEnded::exited || result.exit_code != 0) {
      return fail(Code::data, "llama-bench with {} failed: {}{}", way.name, result.start_error,
                  result.err);
    }
    WEIR_TRY(const Json json, parse_json(result.out));
    if (!json.is_array() || json.size() != 1 || !json[0].contains("avg_ts")) {
      return fail(Code::data, "llama-bench with {} printed something else", way.name);
    }
    return json[0]["avg_ts"].get<double>();
  }

  // Returns the calls that reached the driver in a run, by name.
  Result<std::map<std::string, std::int64_t>> count(const Way& way) {
    const std::string file = scratch_ + "/independent";
    WEIR_CHECK(files_.remove_tree(scratch_));
    WEIR_CHECK(run(way, file));
    return probes::independent_counts(file);
  }

 private:
  const Options& options_;
  sys::Files& files_;
  std::string scratch_;
  sys::RealProcesses processes_;
  sys::Stop stop_;
};

double load() { return sys::RealMachineLoad().load_average().value_or(0); }

// "48", or "50 (+2)" if the count differs from that with nothing attached.
std::string count_text(std::int64_t count, std::int64_t unattached) {
  if (count == unattached) return std::to_string(count);
  return fmt::format("{} ({:+})", count, count - unattached);
}

// Counts and measures every way in random order, round by round, and prints the table.
Result<void> measure(const Options& options, sys::Files& files, const std::string& scratch) {
  const std::vector<Way> all_ways = ways();
  Bench bench(options, files, scratch);
  std::vector<std::map<std::string, std::int64_t>> counts;
  for (const Way& way : all_ways) {
    WEIR_TRY(auto way_counts, bench.count(way));
    counts.push_back(std::move(way_counts));
  }
  const double load_before = load();
  std::mt19937_64 random(options.seed);
  std::vector<std::vector<double>> ratios(all_ways.size());
  for (int round = 0; round < options.rounds; ++round) {
    std::vector<std::size_t> order(all_ways.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<double> speed(all_ways.size());
    for (const std::size_t way_index : order) {
      WEIR_CHECK(files.remove_tree(scratch));
      WEIR_TRY(speed[way_index], bench.run(all_ways[way_index]));
    }
    for (std::size_t i = 0; i < all_ways.size(); ++i) ratios[i].push_back(speed[i] / speed[0]);
    std::fprintf(stderr, "round %d of %d: %.1f tokens/s with nothing attached\n", round + 1,
                 options.rounds, speed[0]);
  }
  fmt::print("{}, {} tokens a run, {} rounds, seed {}, load {:.1f} before and {:.1f} after\n\n",
             options.model, options.tokens, options.rounds, options.seed, load_before, load());
  fmt::print(
      "| attached | tokens/s over nothing attached | 5 to 95 % of rounds | barriers | submits "
      "| syncs |\n| --- | ---: | ---: | ---: | ---: | ---: |\n");
  for (std::size_t i = 0; i < all_ways.size(); ++i) {
    const auto count = [&](const char* name) {
      return count_text(counts[i][name], counts[0][name]);
    };
    fmt::print("| {} | {:.3f} | {:.3f} … {:.3f} | {} | {} | {} |\n", all_ways[i].name,
               *stats::median(ratios[i]), *stats::quantile(ratios[i], 0.05),
               *stats::quantile(ratios[i], 0.95), count("barriers"), count("submits"),
               count("syncs"));
  }
  return {};
}

}  // namespace
}  // namespace weir

// Reads the options, measures all ways, and removes the scratch folder. Returns the exit code.
int main(int argc, char** argv) {
  using namespace weir;
  Options options;
  CLI::App app("What each probe does to the real llama.cpp");
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--tokens", options.tokens)->check(CLI::Range(1, 100'000))->capture_default_str();
  app.add_option("--seed", options.seed, "Of the order within rounds")->capture_default_str();
  app.add_option("--model", options.model, "A file of models/")->capture_default_str();
  app.add_option("--env", options.env, "NAME=VALUE for the engine; picks the device")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  sys::RealFiles files;
  const std::string scratch = WEIR_BINARY_DIR "/benchmark-out/probes-" + std::to_string(getpid());
  const auto result = measure(options, files, scratch);
  (void)files.remove_tree(scratch);
  if (result) return 0;
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  return 1;
}
