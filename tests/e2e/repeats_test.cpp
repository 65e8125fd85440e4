// The pinned llama.cpp on Vulkan again and again: what one run counts, a hundred count.
#include <atomic>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "gate/probes/read.hpp"
#include "gate/probes/timeline.hpp"
#include "gate/profile/align.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/process.hpp"

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace {

constexpr int k_repeats = 100;
constexpr int k_at_a_time = 2;
const std::string k_probes = WEIR_BINARY_DIR "/lib/weir/probes";

// Everything that both probes tell of one run.
struct Counted {
  profile::ProbeCounts vulkan, ggml;
  friend bool operator==(const Counted&, const Counted&) = default;
};

// One run with both probes writing into `folder`; false with the engine's words.
testing::AssertionResult bench(const std::string& model, int tokens, const std::string& folder,
                               sys::EnvironmentList more = {}) {
  static sys::RealProcesses processes;
  static const sys::Stop k_stop;
  sys::ProcessSpec spec;
  spec.argv = {WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench",
               "-m",
               WEIR_SOURCE_DIR "/models/" + model + ".gguf",
               "-p",
               "0",
               "-n",
               std::to_string(tokens),
               "-r",
               "1",
               "-ngl",
               "99",
               "-o",
               "json"};
  spec.env = {{"WEIR_PROBE_DIR", folder},
              {"LD_PRELOAD", k_probes + "/libweir_ggml.so"},
              {"VK_LAYER_PATH", k_probes},
              {"VK_INSTANCE_LAYERS", "VK_LAYER_WEIR_probe"},
              {"GGML_VK_VISIBLE_DEVICES", "0"},
              {"GGML_VK_DEBUG_MARKERS", "1"},
              {"VK_LOADER_DRIVERS_SELECT", "*lvp*"},
              {"LP_NUM_THREADS", "1"}};
  spec.env.insert(spec.env.end(), more.begin(), more.end());
  fs::create_directories(folder);
  const auto finished = processes.run(spec, k_stop);
  if (!finished) return testing::AssertionFailure() << finished.error().message;
  if (finished->ended == sys::HowEnded::exited && finished->exit_code == 0) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << "llama-bench did not end well: " << finished->err << finished->start_error;
}

Counted counted_in(const std::string& folder) {
  std::vector<probes::ProbeFile> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    auto file = probes::read_probe_file(slurp(entry.path()));
    if (file) files.push_back(std::move(*file));
  }
  Counted out{probes::merge("vulkan", files), probes::merge("ggml", files)};
  out.vulkan.counts.erase("polls");  // how often a fence was asked too early is time, not work
  return out;
}

TEST(Repeats, CountTheSameAHundredTimes) {
  const struct {
    const char* model;
    std::int64_t dispatches, barriers;  // of a token; docs/counting.md
  } cases[] = {{"tiny-llama", 65, 46}, {"tiny-gemma3", 125, 96}};
  for (const auto& c : cases) {
    const Scratch scratch;
    std::mutex lock;
    std::vector<Counted> different;  // one of each
    std::atomic<int> next = 0;
    const auto work = [&] {
      for (int i = next++; i < k_repeats; i = next++) {
        const std::string folder = (scratch / std::to_string(i)).string();
        const auto ran = bench(c.model, 2, folder);
        const std::lock_guard<std::mutex> guard(lock);
        EXPECT_TRUE(ran) << "run " << i;
        Counted counted = counted_in(folder);
        fs::remove_all(folder);
        if (std::find(different.begin(), different.end(), counted) != different.end()) continue;
        different.push_back(std::move(counted));
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < k_at_a_time; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(different.size(), 1U) << c.model;
    const Counted& counted = different[0];
    EXPECT_TRUE(counted.vulkan.warnings.empty() && counted.ggml.warnings.empty()) << c.model;
    // A warm-up token, then two.
    EXPECT_EQ(counted.vulkan.counts.at("dispatches"), 3 * c.dispatches) << c.model;
    EXPECT_EQ(counted.vulkan.counts.at("barriers"), 3 * c.barriers) << c.model;
    EXPECT_EQ(counted.ggml.counts.at("graphs"), 3) << c.model;
    EXPECT_TRUE(counted.vulkan.kernels_named) << c.model;
    EXPECT_FALSE(counted.ggml.ops.empty()) << c.model;
  }
}

TEST(Repeats, LeaveNothingOverBesideTheGraph) {
  for (const char* model : {"tiny-llama", "tiny-gemma3"}) {
    for (const char* timing : {"off", "batched", "serialized"}) {
      for (int i = 0; i < 2; ++i) {
        const Scratch scratch;
        const std::string folder = (scratch / "probes").string();
        ASSERT_TRUE(
            bench(model, 4, folder, {{"WEIR_PROBE_EVENTS", "64"}, {"WEIR_PROBE_TIMING", timing}}));
        auto timeline = probes::collect_timeline(sys::RealFiles(), folder);
        ASSERT_TRUE(timeline) << timeline.error().message;
        profile::align(*timeline);
        ASSERT_TRUE(timeline->alignment) << model << ", timing " << timing;
        const profile::Alignment& alignment = *timeline->alignment;
        EXPECT_EQ(alignment.graphs, 5U) << model;  // a warm-up token, then four
        EXPECT_EQ(alignment.dispatches_left + alignment.nodes_left, 0U) << model;
        EXPECT_EQ(alignment.left_over, std::vector<std::string>()) << model;
        EXPECT_EQ(alignment.dispatches % 5, 0U) << model;
        EXPECT_EQ(alignment.dispatches / 5, std::string(model) == "tiny-llama" ? 65U : 125U);
      }
    }
  }
}

}  // namespace
}  // namespace weir::e2e
