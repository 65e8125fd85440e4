// weir-replay-vulkan FILE: runs each recorded kernel alone (docs/how-to/replay-kernels.md).
//
//   --device NAME|NUMBER   which device (default: the first one)
//   --runs N --seconds S   timed runs of each, fewer where they would take longer than S
//   --memory MIB           what one of them may take
//   --from N               begin with this one
//
// A program of its own, so that a driver that crashes takes only this down: before each work a line
// says which one it is, so whoever started this knows where to go on. JSON lines on standard
// output. Exit 0 when it came to the end, 1 with an error on standard error, 2 for wrong arguments,
// 3 when the device is lost: `--from` goes on behind it.
#include "tools/replay/vulkan/vulkan.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "gate/base/text.hpp"

namespace weir::replay {
namespace {

// Creates the command buffer, the timestamp queries and the fence that all runs use.
Result<void> make_command_objects(Device& device) {
  const auto pool = of_type<vk::CommandPoolCreateInfo>(
      VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, device.family);
  VkCommandPool command_pool = VK_NULL_HANDLE;
  WEIR_CHECK(WEIR_REPLAY_MAKE(device, CreateCommandPool, &pool, &command_pool));
  const auto commands =
      of_type<vk::CommandBufferAllocateInfo>(command_pool, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1U);
  WEIR_CHECK(WEIR_REPLAY_CALL(device.call, AllocateCommandBuffers, device.handle, &commands,
                              &device.commands));
  const auto queries = of_type<vk::QueryPoolCreateInfo>(0U, VK_QUERY_TYPE_TIMESTAMP, k_queries, 0U);
  WEIR_CHECK(WEIR_REPLAY_MAKE(device, CreateQueryPool, &queries, &device.queries));
  const auto fence = of_type<vk::FenceCreateInfo>();
  return WEIR_REPLAY_MAKE(device, CreateFence, &fence, &device.fence);
}

struct Arguments {
  std::string file, device;
  std::uint64_t from = 0;
  RunLimits limits;
};

// Reads one option into `out`. Returns false for an unknown name or a wrong value.
bool read_option(std::string_view name, const std::string& value, Arguments& out) {
  if (name == "--device") {
    out.device = value;
    return true;
  }
  if (name == "--seconds") {
    const auto seconds = text::to_double(value);
    if (!seconds || *seconds < 0 || *seconds > 3600) return false;
    out.limits.seconds = *seconds;
    return true;
  }
  const auto number = text::to_int(value);
  if (!number || *number < 0 || *number > 1LL << 32) return false;
  const auto value_64 = static_cast<std::uint64_t>(*number);
  if (name == "--from") out.from = value_64;
  if (name == "--memory") out.limits.memory = value_64 << 20;
  if (name == "--runs") {
    out.limits.runs = static_cast<std::uint32_t>(std::min<std::uint64_t>(value_64, k_max_runs));
  }
  return name == "--from" || name == "--memory" || name == "--runs";
}

// Replays all recorded works (dispatches) from `arguments.from` on. Returns the exit code: 3 if the
// device was lost.
Result<int> replay_all(const Arguments& arguments) {
  WEIR_TRY(const auto recorded, probes::read_recording(sys::RealFiles(), arguments.file));
  // A recorded program may have several devices: each is opened for its first work.
  std::map<std::uint32_t, Device> devices;
  for (std::size_t i = arguments.from; i < recorded.works.size(); ++i) {
    const auto& work = recorded.works[i];
    const std::uint32_t recorded_on = recorded.pipelines[work.pipeline].head.device;
    if (!devices.contains(recorded_on)) {
      WEIR_TRY(Device fresh, open_device(recorded.devices[recorded_on], arguments.device,
                                         "weir-replay-vulkan", true));
      WEIR_CHECK(make_command_objects(fresh));
      print({{"device", fresh.name}, {"driver", fresh.driver}, {"warnings", fresh.warnings}});
      devices.emplace(recorded_on, std::move(fresh));
    }
    print({{"begins", i}});
    const auto outcome = replay(devices.at(recorded_on), recorded, work, arguments.limits);
    Json line = {{"work", i}, {"seconds", outcome.seconds}};
    if (!outcome.left_out.empty()) line = {{"work", i}, {"left_out", outcome.left_out}};
    print(line);
    if (outcome.lost) return 3;
  }
  print({{"ends", recorded.works.size()}});
  return 0;
}

}  // namespace
}  // namespace weir::replay

// Reads the options and replays the dispatches of the file. Exits without the driver's destructors.
int main(int count, char** values) {
  using namespace weir::replay;
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = values[i];
    if (!name.starts_with("--") && arguments.file.empty()) {
      arguments.file = name;
    } else if (i + 1 == count) {
      std::fprintf(stderr, "weir-replay-vulkan: what is %s for?\n", values[i]);
      return 2;
    } else {
      ++i;
      const char* value = values[i];
      if (read_option(name, value, arguments)) continue;
      std::fprintf(stderr, "weir-replay-vulkan: what is %s for?\n", value);
      return 2;
    }
  }
  if (arguments.file.empty()) {
    std::fputs("weir-replay-vulkan: no file\n", stderr);
    return 2;
  }
  const auto status = replay_all(arguments);
  if (!status) std::fprintf(stderr, "weir-replay-vulkan: %s\n", status.error().message.c_str());
  std::fflush(stdout);
  std::_Exit(status.value_or(1));  // no driver's destructors
}
