// Measures the Vulkan probe's cost when it also records events (weir profile): complete tokens,
// recorded anew and submitted, in front of a driver that does nothing. The layer reads once whether
// to record events, so each case loads a copy of it.
//
// A token of the reference model: 65 dispatches and 46 barriers in 12 buffers, each submitted. With
// a record for each buffer and submission that is 135 events.
#include <cstdlib>
#include <filesystem>

#include <benchmark/benchmark.h>

#include "tests/probes/stand_in.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_pipelines = 16;
constexpr std::size_t k_buffers = 12;
constexpr std::size_t k_dispatches = 65;
constexpr std::size_t k_barriers = 46;

const char* const k_layer = WEIR_BINARY_DIR "/lib/weir/probes/libVkLayer_weir_probe.so";

// The functions that a program calls: the layer's or the driver's.
struct Calls {
  PFN_vkBeginCommandBuffer begin;
  PFN_vkCmdBindPipeline bind;
  PFN_vkCmdDispatch dispatch;
  PFN_vkCmdPipelineBarrier barrier;
  PFN_vkEndCommandBuffer end;
  PFN_vkQueueSubmit submit;
};

// Fills Calls with get(name).
template <class Get>
Calls look_up_calls(Get get) {
  return {reinterpret_cast<PFN_vkBeginCommandBuffer>(get("vkBeginCommandBuffer")),
          reinterpret_cast<PFN_vkCmdBindPipeline>(get("vkCmdBindPipeline")),
          reinterpret_cast<PFN_vkCmdDispatch>(get("vkCmdDispatch")),
          reinterpret_cast<PFN_vkCmdPipelineBarrier>(get("vkCmdPipelineBarrier")),
          reinterpret_cast<PFN_vkEndCommandBuffer>(get("vkEndCommandBuffer")),
          reinterpret_cast<PFN_vkQueueSubmit>(get("vkQueueSubmit"))};
}

// Records and submits the command buffers of one token. Dispatches are spread evenly over the
// buffers, and barriers over the dispatches.
void play_token(const Calls& vk, VkQueue queue, const std::vector<VkCommandBuffer>& buffers,
                const std::vector<VkPipeline>& pipelines) {
  const VkCommandBufferBeginInfo begin{};
  for (std::size_t b = 0; b < k_buffers; ++b) {
    vk.begin(buffers[b], &begin);
    const std::size_t first = (b * k_dispatches + k_buffers - 1) / k_buffers;
    const std::size_t end = ((b + 1) * k_dispatches + k_buffers - 1) / k_buffers;
    for (std::size_t dispatch = first; dispatch < end; ++dispatch) {
      vk.bind(buffers[b], VK_PIPELINE_BIND_POINT_COMPUTE, pipelines[dispatch * 7 % k_pipelines]);
      vk.dispatch(buffers[b], 1, 1, 1);
      const bool has_barrier =
          dispatch * k_barriers / k_dispatches != (dispatch + 1) * k_barriers / k_dispatches;
      if (has_barrier) vk.barrier(buffers[b], 0, 0, 0, 0, nullptr, 0, nullptr, 0, nullptr);
    }
    vk.end(buffers[b]);
    VkSubmitInfo info{};
    info.commandBufferCount = 1;
    info.pCommandBuffers = &buffers[b];
    vk.submit(queue, 1, &info, VK_NULL_HANDLE);
  }
}

enum class Layer { none, counting, events };

// Measures play_token without the layer, or with a fresh copy of it. The driver is a stand-in that
// does nothing.
void measure_tokens(benchmark::State& state, Layer mode) {
  const Folder folder;  // for the probe's files; removed at the end
  setenv("WEIR_PROBE_DIR", folder.path().c_str(), 1);
  if (mode == Layer::events) {
    setenv("WEIR_PROBE_EVENTS", "4096", 1);
  } else {
    unsetenv("WEIR_PROBE_EVENTS");
  }
  const std::string layer = folder.path() + "/layer.so";
  std::filesystem::copy_file(k_layer, layer);
  const StandIn stand_in(layer);
  std::vector<VkPipeline> pipelines;
  for (std::size_t i = 0; i < k_pipelines; ++i) {
    pipelines.push_back(stand_in.pipeline("kernel" + std::to_string(i)));
  }
  const VkCommandPool pool = stand_in.pool();
  std::vector<VkCommandBuffer> buffers;
  for (std::size_t i = 0; i < k_buffers; ++i) buffers.push_back(stand_in.begin(pool));
  const Calls vk = mode == Layer::none
                       ? look_up_calls([](const char* name) { return StandIn::below(name); })
                       : look_up_calls([&](const char* name) { return stand_in.get(name); });
  for (auto _ : state) play_token(vk, stand_in.queues[0], buffers, pipelines);
}

void token_bare(benchmark::State& state) { measure_tokens(state, Layer::none); }
void token_counted(benchmark::State& state) { measure_tokens(state, Layer::counting); }
void token_with_events(benchmark::State& state) { measure_tokens(state, Layer::events); }
// The number of tokens is fixed, so that the event file stays below 200 MB.
BENCHMARK(token_bare)->Iterations(20000);
BENCHMARK(token_counted)->Iterations(20000);
BENCHMARK(token_with_events)->Iterations(20000);

}  // namespace
}  // namespace weir::probes
