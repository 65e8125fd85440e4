// Measures the Vulkan probe's cost per recorded command: the layer in front of a driver that does
// nothing (record_with_probe), and that driver alone (record_bare). One iteration is one
// command, so the difference is the probe.
//
// The commands come in the mix of a decoded token of the reference model, over and over: 65
// dispatches, each with its pipeline bind, and 46 barriers, over 16 pipelines and 12 buffers.
#include <cstdlib>

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

enum class Command { bind, dispatch, barrier };
struct Step {
  Command command;
  VkCommandBuffer into;
  VkPipeline pipeline;
};

// Returns the commands of one decoded token: dispatches in even shares over the buffers, and
// barriers in even distances between them.
std::vector<Step> token_steps(const StandIn& layer) {
  std::vector<VkPipeline> pipelines;
  for (std::size_t i = 0; i < k_pipelines; ++i) {
    pipelines.push_back(layer.pipeline("kernel" + std::to_string(i)));
  }
  const VkCommandPool pool = layer.pool();
  std::vector<VkCommandBuffer> buffers;
  for (std::size_t i = 0; i < k_buffers; ++i) buffers.push_back(layer.begin(pool));
  std::vector<Step> steps;
  for (std::size_t i = 0; i < k_dispatches; ++i) {
    const VkCommandBuffer buffer = buffers[i * k_buffers / k_dispatches];
    const VkPipeline pipeline = pipelines[i * 7 % k_pipelines];
    steps.push_back({Command::bind, buffer, pipeline});
    steps.push_back({Command::dispatch, buffer, pipeline});
    const std::size_t barriers = i * k_barriers / k_dispatches;
    const std::size_t barriers_after = (i + 1) * k_barriers / k_dispatches;
    if (barriers_after != barriers) {
      steps.push_back({Command::barrier, buffer, pipeline});
    }
  }
  return steps;
}

// The functions that a program records commands with: the layer's or the driver's.
struct Commands {
  PFN_vkCmdBindPipeline bind;
  PFN_vkCmdDispatch dispatch;
  PFN_vkCmdPipelineBarrier barrier;
};

Commands probe_commands(const StandIn& layer) {
  return {layer.vk.CmdBindPipeline, layer.vk.CmdDispatch, layer.vk.CmdPipelineBarrier};
}

Commands driver_commands() {
  return {reinterpret_cast<PFN_vkCmdBindPipeline>(StandIn::below("vkCmdBindPipeline")),
          reinterpret_cast<PFN_vkCmdDispatch>(StandIn::below("vkCmdDispatch")),
          reinterpret_cast<PFN_vkCmdPipelineBarrier>(StandIn::below("vkCmdPipelineBarrier"))};
}

// Records the commands of a token over and over, one per iteration, through the probe or directly.
void record(benchmark::State& state, bool with_probe) {
  static const Folder k_folder;  // for the probe's file; removed at the end
  setenv("WEIR_PROBE_DIR", k_folder.path().c_str(), 1);
  const StandIn layer(k_layer);
  const std::vector<Step> steps = token_steps(layer);
  const Commands commands = with_probe ? probe_commands(layer) : driver_commands();
  std::size_t next = 0;
  for (auto _ : state) {
    const Step& step = steps[next];
    next = next + 1 == steps.size() ? 0 : next + 1;
    switch (step.command) {
      case Command::bind:
        commands.bind(step.into, VK_PIPELINE_BIND_POINT_COMPUTE, step.pipeline);
        break;
      case Command::dispatch:
        commands.dispatch(step.into, 1, 1, 1);
        break;
      case Command::barrier:
        commands.barrier(step.into, 0, 0, 0, 0, nullptr, 0, nullptr, 0, nullptr);
        break;
    }
  }
}

void record_bare(benchmark::State& state) { record(state, /*with_probe=*/false); }
void record_with_probe(benchmark::State& state) { record(state, /*with_probe=*/true); }
BENCHMARK(record_bare);
BENCHMARK(record_with_probe);

}  // namespace
}  // namespace weir::probes
