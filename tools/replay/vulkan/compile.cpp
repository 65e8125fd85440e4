// weir-compile-vulkan [FILE]: compiles recorded pipelines and prints the driver's statistics of
// their code. Nothing is run, so a driver for a GPU that is not there will do (RADV).
//
//   --only 3,1,4   these pipelines, in this order (default: all of them)
//   --seconds S    that one of them may take (default: 30)
//   --memory MIB   that it may take (default: 4096)
//   --assembly     also its machine code, as text
//
// Without a FILE it prints which driver there is, and ends.
//
// A program of its own, as compilers crash, hang and eat memory: before each pipeline a line says
// which one it is, so whoever started this knows where to go on. JSON lines on standard output.
// Exit 0 when it came to the end, 1 with an error on standard error, 2 for wrong arguments;
// k_exit_slow and k_exit_memory (read_kernels.hpp) when a pipeline took more than it may.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <new>
#include <string_view>
#include <thread>

#include <sys/resource.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

#include "tools/replay/vulkan/vulkan.hpp"

namespace weir::replay {
namespace {

constexpr const char* k_compiler = "weir-compile-vulkan";

struct CompileArguments {
  std::string file;
  std::optional<std::vector<std::size_t>> only;
  double seconds = 30;
  std::uint64_t memory = std::uint64_t{4} << 30;
  bool assembly = false;
};

// Ends the process when a pipeline takes too long or too much memory; the exit code says which. Its
// own thread does that, as a compiler cannot be asked to stop.
class Watchdog {
 public:
  Watchdog(double seconds, std::uint64_t memory)
      : limit_(seconds), max_bytes_(data_bytes() + memory) {
    // The thread may look too late.
    const rlimit hard{max_bytes_ + 4 * memory, max_bytes_ + 4 * memory};
    setrlimit(RLIMIT_DATA, &hard);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::set_new_handler([] { std::_Exit(probes::k_exit_memory); });
    std::thread([this] { watch(); }).detach();
  }
  void begin() { begun_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;

  // Private memory that can be written, touched or not: the sixth number there, in pages.
  static std::uint64_t data_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    for (int i = 0; i < 6; ++i) statm >> pages;
    constexpr std::uint64_t k_page = 4096;
    return pages * k_page;
  }
  [[noreturn]] void watch() const {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (Clock::now() - begun_.load() > limit_) std::_Exit(probes::k_exit_slow);
      if (data_bytes() > max_bytes_) std::_Exit(probes::k_exit_memory);
    }
  }

  const std::chrono::duration<double> limit_;
  const std::uint64_t max_bytes_;
  std::atomic<Clock::time_point> begun_{Clock::now()};
};

// Returns the statistic's value in the type that its format names.
Json statistic_value(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return statistic.value.b32 != 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return statistic.value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return statistic.value.u64;
    default:
      return statistic.value.f64;
  }
}

// A compute pipeline has one executable.
VkPipelineExecutableInfoKHR executable_info(const PipelineObjects& objects) {
  return of_type<vk::PipelineExecutableInfoKHR>(objects.handle(), 0U);
}

// Reads the driver's statistics of a pipeline, such as registers, by name.
Result<Json> read_statistics(const Device& device, const PipelineObjects& objects) {
  const auto info = executable_info(objects);
  std::uint32_t count = 0;
  std::vector<VkPipelineExecutableStatisticKHR> statistics;
  for (int round = 0; round < 2; ++round) {  // how many, then which
    statistics.assign(count, of_type<vk::PipelineExecutableStatisticKHR>());
    WEIR_CHECK(WEIR_REPLAY_CALL(device.call, GetPipelineExecutableStatisticsKHR, device.handle,
                                &info, &count, round == 0 ? nullptr : statistics.data()));
  }
  Json values = Json::object();
  for (const auto& statistic : statistics) {
    values[text::printable(statistic.name)] = statistic_value(statistic);
  }
  return values;
}

// Reads the machine code as text, from a driver that has it (RADV). Vulkan is asked for the count,
// the lengths and the texts in turn.
Result<std::string> read_assembly(const Device& device, const PipelineObjects& objects) {
  const auto info = executable_info(objects);
  std::uint32_t count = 0;
  std::vector<VkPipelineExecutableInternalRepresentationKHR> representations;
  std::vector<std::string> texts;
  for (int round = 0; round < 3; ++round) {  // how many, how long, and what they are
    representations.resize(count, of_type<vk::PipelineExecutableInternalRepresentationKHR>());
    texts.resize(count);
    for (std::uint32_t i = 0; round == 2 && i < count; ++i) {
      texts[i].resize(representations[i].dataSize);
      representations[i].pData = texts[i].data();
    }
    WEIR_CHECK(WEIR_REPLAY_CALL(device.call, GetPipelineExecutableInternalRepresentationsKHR,
                                device.handle, &info, &count,
                                round == 0 ? nullptr : representations.data()));
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string_view name = representations[i].name;
    if (representations[i].isText != 0 && name.find("ssembly") != std::string_view::npos) {
      return texts[i].c_str();  // it ends in a 0
    }
  }
  return left_out_error("the driver has no assembly of it");
}

// Returns the subgroup size that the compiler chose for this code; 0 if it does not say.
Result<Json> subgroup_size(const Device& device, const PipelineObjects& objects) {
  const auto info = of_type<vk::PipelineInfoKHR>(objects.handle());
  auto properties = of_type<vk::PipelineExecutablePropertiesKHR>();
  std::uint32_t count = 1;
  const VkResult result =
      device.call.vkGetPipelineExecutablePropertiesKHR(device.handle, &info, &count, &properties);
  if (result != VK_INCOMPLETE) WEIR_CHECK(check(result, "vkGetPipelineExecutablePropertiesKHR"));
  return Json(count == 0 ? 0 : properties.subgroupSize);
}

// Compiles a recorded pipeline, and returns statistics and, if requested, the assembly.
Result<Json> compile(const Device& device, const probes::RecordedKernels& recorded,
                     const probes::RecordedPipeline& pipeline, bool with_assembly) {
  const auto& words = recorded.codes[pipeline.head.code].words;
  // A pipeline with an incomplete layout is not compiled; code that takes addresses is.
  const std::uint32_t reason = pipeline.head.left_out;
  if (reason != 0 && reason != WEIR_LEFT_ADDRESSES + 1) {
    return left_out_error("{}", probes::left_out_reason(reason - 1));
  }
  WEIR_CHECK(check_capabilities(device, words));
  PipelineObjects objects(device, recorded, pipeline);
  WEIR_CHECK(objects.fits());
  VkPipelineCreateFlags flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  if (with_assembly) flags |= VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  WEIR_CHECK(objects.make(flags));
  Json result;
  WEIR_TRY(result["statistics"], read_statistics(device, objects));
  WEIR_TRY_SET(result["subgroup_size"], subgroup_size(device, objects));
  if (with_assembly) WEIR_TRY_SET(result["assembly"], read_assembly(device, objects));
  return result;
}

// Opens the recorded device with the extension and feature that statistics need.
Result<Device> open_compiler(probes::RecordedDevice recorded) {
  const std::string statistics = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
  if (!holds(recorded.extensions, statistics)) recorded.extensions.push_back(statistics);
  constexpr std::uint32_t k_type =
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
  std::erase_if(recorded.features, [](const auto& features) { return features.type == k_type; });
  recorded.features.push_back({k_type, std::string("\1\0\0\0", sizeof(VkBool32))});
  WEIR_TRY(Device device, open_device(recorded, "", k_compiler, false));
  if (!holds(device.extensions, statistics)) {
    return left_out_error("{}: the driver has no {}", device.name, statistics);
  }
  return device;
}

// Compiles the recorded pipelines, and prints a line of JSON before and after each. Without a file,
// prints the device.
Result<void> compile_all(const CompileArguments& arguments) {
  if (arguments.file.empty()) {
    WEIR_TRY(const Device device, pick_device(VK_API_VERSION_1_1, "", k_compiler));
    print({{"device", device.name}, {"driver", device.driver_info}});
    return {};
  }
  WEIR_TRY(const auto recorded, probes::read_recording(sys::RealFiles(), arguments.file));
  std::vector<std::size_t> pipelines_to_compile(recorded.pipelines.size());
  for (std::size_t i = 0; i < pipelines_to_compile.size(); ++i) pipelines_to_compile[i] = i;
  pipelines_to_compile = arguments.only.value_or(pipelines_to_compile);
  static Watchdog watch(arguments.seconds, arguments.memory);  // its thread outlives this function
  std::map<std::uint32_t, Result<Device>> devices;
  for (const std::size_t i : pipelines_to_compile) {
    if (i >= recorded.pipelines.size()) return left_out_error("there is no pipeline {}", i);
    const auto& pipeline = recorded.pipelines[i];
    watch.begin();
    print({{"begins", i}});
    const std::uint32_t device_number = pipeline.head.device;
    if (!devices.contains(device_number))
      devices.emplace(device_number, open_compiler(recorded.devices[device_number]));
    const Result<Device>& device = devices.at(device_number);
    auto line = device ? compile(*device, recorded, pipeline, arguments.assembly)
                       : Result<Json>(tl::unexpected(device.error()));
    if (!line) line = Json{{"left_out", line.error().message}};
    (*line)["pipeline"] = i;
    print(*line);
  }
  print({{"ends", pipelines_to_compile.size()}});
  return {};
}

// Reads one option into `out`: --only 0,3,7, --seconds N or --memory MIB. Returns false for an
// unknown name or a wrong value.
bool read_option(std::string_view name, const std::string& value, CompileArguments& out) {
  if (name == "--only") {
    auto& only = out.only.emplace();
    for (const auto& word : text::split(value, ',')) {
      const auto number = text::to_int(word);
      if (!number || *number < 0) return false;
      only.push_back(static_cast<std::size_t>(*number));
    }
    return true;
  }
  const auto number = text::to_double(value);
  if (!number || !(*number > 0) || *number > 1e6) return false;
  if (name == "--seconds") {
    out.seconds = *number;
    return true;
  }
  if (name == "--memory") {
    out.memory = static_cast<std::uint64_t>(*number) << 20;
    return true;
  }
  return false;
}

}  // namespace
}  // namespace weir::replay

// Reads the options and compiles the file's pipelines. Exits without the driver's destructors.
int main(int count, char** values) {
  using namespace weir::replay;
  CompileArguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = values[i];
    if (name == "--assembly") {
      arguments.assembly = true;
    } else if (!name.starts_with("--") && arguments.file.empty()) {
      arguments.file = name;
    } else if (i + 1 == count) {
      std::fprintf(stderr, "weir-compile-vulkan: what is %s for?\n", values[i]);
      return 2;
    } else {
      ++i;
      const char* value = values[i];
      if (read_option(name, value, arguments)) continue;
      std::fprintf(stderr, "weir-compile-vulkan: %s %s: no such option, or no value for it\n",
                   values[i - 1], value);
      return 2;
    }
  }
  const auto done = compile_all(arguments);
  if (!done) std::fprintf(stderr, "weir-compile-vulkan: %s\n", done.error().message.c_str());
  std::fflush(stdout);
  std::_Exit(done ? 0 : 1);  // no driver's destructors
}
