#include "gate/app/devices.hpp"

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/locate.hpp"
#include "gate/run/environment.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {
namespace {

constexpr double k_patience_seconds = 30;

const std::string k_no_vulkan_cure =
    "  Install mesa-vulkan-drivers for a software device, or take the backend out of the\n"
    "  matrix (--cell leaves it out for once).";

run::DeviceFacts absent(const std::string& why) {
  run::DeviceFacts facts;
  facts.absent = fmt::format("asked for Vulkan: {}, so nothing was run.\n{}", why, k_no_vulkan_cure);
  return facts;
}

// The answer of weir-devices.
Result<run::DeviceFacts> read_answer(const std::string& text) {
  WEIR_TRY(const Json json, parse_json(text, {.bytes = std::size_t{1} << 20, .depth = 8}));
  JsonReader read(json, "weir-devices");
  const Json& devices = read.array("vulkan");
  const auto error = read.optional_string("vulkan_error");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (devices.empty()) {
    return absent(error ? fmt::format("this machine has no Vulkan device ({})", text::printable(*error))
                        : "this machine has no Vulkan device");
  }
  run::DeviceFacts facts;
  facts.on_cpu = true;
  for (const Json& device : devices) {
    JsonReader one(device, "weir-devices: vulkan");
    const std::string name = text::printable(one.string("name"));
    facts.on_cpu = facts.on_cpu && one.string("type") == "cpu";
    // With several devices the engine chooses; the probe tells which one it was.
    facts.device_class = devices.size() == 1 ? one.string("class") : "";
    facts.name += (facts.name.empty() ? "" : ", ") + name;
    if (auto problem = one.problem()) return tl::unexpected(*problem);
  }
  return facts;
}

Result<run::DeviceFacts> look_for_vulkan(const config::Cell& cell, const sys::Stop& stop) {
  const sys::RealFiles files;
  WEIR_TRY(const probes::Places places, probes::locate(files));
  if (places.devices_program.empty()) {
    return fail(Code::unavailable, "weir-devices is missing beside the probes in {}: build or install weir again",
                places.probes);
  }
  sys::RealProcesses processes;
  sys::ProcessSpec spec;
  spec.argv = {places.devices_program};
  spec.env = run::merge_environment(sys::own_environment(), cell.env, {});
  spec.timeout_seconds = k_patience_seconds;
  spec.output_limit = std::uint64_t{1} << 20;
  WEIR_TRY(const sys::Finished finished, processes.run(spec, stop));
  switch (finished.ended) {
    case sys::HowEnded::interrupted: return fail(Code::interrupted, "interrupted");
    case sys::HowEnded::exited: {
      if (finished.exit_code == 0) return read_answer(finished.out);
      return absent(fmt::format("the Vulkan loader failed (exit {})", finished.exit_code));
    }
    case sys::HowEnded::signaled:
      return absent(fmt::format("the Vulkan driver crashed (signal {}) when asked for its devices",
                                finished.signal));
    case sys::HowEnded::timed_out:
      return absent(fmt::format("the Vulkan driver did not answer within {:.0f} s", k_patience_seconds));
    case sys::HowEnded::output_limit:
    case sys::HowEnded::not_started: break;
  }
  return fail(Code::unavailable, "{}: can not be run: {}", places.devices_program, finished.start_error);
}

}  // namespace

Result<std::map<std::string, run::DeviceFacts>> look_for_devices(const config::Cell& cell,
                                                                 const sys::Machine& machine,
                                                                 const sys::Stop& stop) {
  std::map<std::string, run::DeviceFacts> devices;
  devices["cpu"] = {.device_class = machine.cpu_class, .name = machine.cpu_model, .on_cpu = true, .absent = {}};
  if (cell.device == "vulkan") {
    WEIR_TRY(devices["vulkan"], look_for_vulkan(cell, stop));
  }
  // Nothing here can ask for other devices yet; the engine itself says when one is missing.
  return devices;
}

}  // namespace weir::app
