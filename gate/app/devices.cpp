#include "gate/app/devices.hpp"

#include "gate/app/devices_program.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/run/environment.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::app {
namespace {

constexpr double k_patience_seconds = 30;

using Api = unit::DeviceApi;  // whose devices weir-devices can list

run::DeviceFacts absent(const Api& api, const std::string& why) {
  run::DeviceFacts facts;
  facts.absent = fmt::format(
      "asked for {}: {}, so nothing was run.\n"
      "  Install {} for a software device, or take the backend out of the\n"
      "  matrix (--cell leaves it out for once).",
      api.title, why, api.package);
  return facts;
}

// The answer of weir-devices.
Result<run::DeviceFacts> read_answer(const Api& api, const std::string& text) {
  WEIR_TRY(const Json json, parse_json(text, {.bytes = std::size_t{1} << 20, .depth = 8}));
  JsonReader read(json, "weir-devices");
  const std::string error_key = fmt::format("{}_error", api.name);
  const Json& devices = read.array(api.name);
  const auto error = read.optional_string(error_key.c_str());
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (devices.empty()) {
    const std::string none = fmt::format("this machine has no {} device", api.title);
    return absent(api, error ? fmt::format("{} ({})", none, text::printable(*error)) : none);
  }
  run::DeviceFacts facts;
  facts.on_cpu = true;
  for (const Json& device : devices) {
    JsonReader one(device, fmt::format("weir-devices: {}", api.name));
    const std::string name = text::printable(one.string("name"));
    facts.on_cpu = facts.on_cpu && one.string("type") == "cpu";
    // With several devices the engine chooses; the probe tells which one it was.
    facts.device_class = devices.size() == 1 ? one.string("class") : "";
    facts.name += (facts.name.empty() ? "" : ", ") + name;
    if (auto problem = one.problem()) return tl::unexpected(*problem);
  }
  return facts;
}

Result<run::DeviceFacts> look_for(const Api& api, const config::Cell& cell, const sys::Stop& stop) {
  WEIR_TRY(const sys::Finished finished,
           ask_devices_program({.arguments = {api.name},
                                .env = run::merge_environment(sys::own_environment(), cell.env, {}),
                                .patience_seconds = k_patience_seconds},
                               stop));
  switch (finished.ended) {
    case sys::HowEnded::exited: {
      if (finished.exit_code == 0) return read_answer(api, finished.out);
      return absent(api,
                    fmt::format("the {} loader failed (exit {})", api.title, finished.exit_code));
    }
    case sys::HowEnded::signaled:
      return absent(api, fmt::format("the {} driver crashed (signal {}) when asked for its devices",
                                     api.title, finished.signal));
    case sys::HowEnded::timed_out:
      return absent(api, fmt::format("the {} driver did not answer within {:.0f} s", api.title,
                                     k_patience_seconds));
    case sys::HowEnded::output_limit:
    case sys::HowEnded::interrupted:  // both were told of as errors
    case sys::HowEnded::not_started:
      break;
  }
  return fail(Code::unavailable, "the {} driver printed without end when asked for its devices",
              api.title);
}

}  // namespace

Result<std::map<std::string, run::DeviceFacts>> look_for_devices(const config::Cell& cell,
                                                                 const sys::Machine& machine,
                                                                 const sys::Stop& stop) {
  std::map<std::string, run::DeviceFacts> devices;
  devices["cpu"] = {
      .device_class = machine.cpu_class, .name = machine.cpu_model, .on_cpu = true, .absent = {}};
  for (const Api& api : unit::device_apis()) {
    if (cell.device != api.name || api.package.empty()) continue;
    WEIR_TRY(devices[api.name], look_for(api, cell, stop));
  }
  // Nothing here can ask for other devices yet; the engine itself says when one is missing.
  return devices;
}

}  // namespace weir::app
