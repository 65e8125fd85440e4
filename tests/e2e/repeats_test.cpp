// The pinned llama.cpp on Vulkan, on lavapipe and on twins, again and again: what one run counts,
// all count. WEIR_REPEATS=100 takes minutes.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "gate/observed/timeline.hpp"
#include "gate/probes/events.h"
#include "gate/probes/read/timeline.hpp"
#include "gate/sys/files.hpp"

#include "tests/e2e/llama_bench.hpp"

namespace weir::e2e {
namespace repeats_test {

constexpr int k_at_a_time = 2;

int repeats() {
  const char* setting = std::getenv("WEIR_REPEATS");
  return setting == nullptr ? 24 : std::max(4, std::atoi(setting));
}

// Runs it again and again, and keeps one of each different count.
std::vector<Counted> different_counts(const Bench& what, int repeats) {
  const Scratch scratch;
  std::mutex lock;
  std::vector<Counted> different;
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int i = next++; i < repeats; i = next++) {
      const fs::path folder = scratch / std::to_string(i);
      const Benched ran = bench(what, folder);
      const std::lock_guard<std::mutex> guard(lock);
      EXPECT_TRUE(ran.well) << "run " << i;
      Counted counted = counted_in(folder);
      fs::remove_all(folder);
      if (std::find(different.begin(), different.end(), counted) != different.end()) continue;
      different.push_back(std::move(counted));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < k_at_a_time; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return different;
}

TEST(Repeats, CountTheSame) {
  const struct {
    const char* model;
    std::int64_t dispatches, barriers;  // per token; see docs/explanation/counting.md
  } cases[] = {{"tiny-llama", 65, 46}, {"tiny-gemma3", 125, 96}};
  for (const auto& c : cases) {
    const auto different =
        different_counts({c.model, {"-p", "0", "-n", "2"}, on_lavapipe()}, repeats());
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

// Each card as often: two models, and two fillings of what a device would have written.
TEST(Repeats, CountTheSameOnEachTwin) {
  const Scratch scratch;
  for (const std::string& card : shipped_twins()) {
    const sys::EnvironmentList env = on_twin(scratch, card);
    for (const auto& [model, words] :
         {std::pair{"tiny-llama", std::vector<std::string>{"-p", "0", "-n", "2"}},
          std::pair{"tiny-gemma3", std::vector<std::string>{"-p", "64", "-n", "2"}}}) {
      std::vector<Counted> both;
      for (const char* fill : {"0", "127"}) {
        Bench what{model, words, env};
        what.env.emplace_back("WEIR_TWIN_FILL", fill);
        for (Counted& counted : different_counts(what, repeats() / 4))
          both.push_back(std::move(counted));
      }
      ASSERT_EQ(both.size(), 2U) << card << " / " << model;
      EXPECT_EQ(both[0], both[1]) << card << " / " << model;
      EXPECT_TRUE(both[0].vulkan.kernels_named) << card << " / " << model;
      EXPECT_GT(both[0].vulkan.counts.at("dispatches"), 0) << card << " / " << model;
      EXPECT_FALSE(both[0].ggml.ops.empty()) << card << " / " << model;
    }
  }
}

TEST(Repeats, LeaveNothingOverBesideTheGraph) {
  for (const char* model : {"tiny-llama", "tiny-gemma3"}) {
    for (const char* timing : {"off", "batched", "serialized"}) {
      for (int i = 0; i < 2; ++i) {
        const Scratch scratch;
        const std::string folder = (scratch / "probes").string();
        Bench what{model, {"-p", "0", "-n", "4"}, on_lavapipe()};
        what.env.emplace_back("WEIR_PROBE_EVENTS", "64");
        what.env.emplace_back("WEIR_PROBE_TIMING", timing);
        // As weir profile has it, so that the ggml probe leaves the device's ops fused.
        what.env.emplace_back(WEIR_PROBE_TIMED_VARIABLE, "Vulkan");
        ASSERT_TRUE(bench(what, folder).well);
        auto timeline = probes::collect_timeline(sys::RealFiles(), folder);
        ASSERT_TRUE(timeline) << timeline.error().message;
        observed::align(*timeline);
        ASSERT_TRUE(timeline->alignment) << model << ", timing " << timing;
        const observed::Alignment& alignment = *timeline->alignment;
        EXPECT_EQ(alignment.graphs, 5U) << model;  // a warm-up token, then four
        EXPECT_EQ(alignment.unmatched_dispatches + alignment.unmatched_nodes, 0U) << model;
        EXPECT_EQ(alignment.left_over, std::vector<std::string>()) << model;
        EXPECT_EQ(alignment.dispatches % 5, 0U) << model;
        EXPECT_EQ(alignment.dispatches / 5, std::string(model) == "tiny-llama" ? 65U : 125U);
      }
    }
  }
}

}  // namespace repeats_test
}  // namespace weir::e2e
