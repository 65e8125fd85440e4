#include "gate/app/doctor_look.hpp"

#include <algorithm>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/system.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::app {
namespace {

constexpr double k_doctor_patience_seconds = 30;

// What it printed; an Error in words for people where it did not end well.
Result<std::string> output_of(std::vector<std::string> argv, const sys::Stop& stop) {
  sys::RealProcesses processes;
  sys::ProcessSpec spec;
  spec.argv = std::move(argv);
  spec.timeout_seconds = k_doctor_patience_seconds;
  spec.output_limit = std::uint64_t{1} << 20;
  WEIR_TRY(sys::Finished finished, processes.run(spec, stop));
  const std::string name = sys::file_name_of(spec.argv.front());
  switch (finished.ended) {
    case sys::HowEnded::exited:
      if (finished.exit_code == 0) return std::move(finished.out);
      return fail(Code::data, "{} failed (exit {})", name, finished.exit_code);
    case sys::HowEnded::signaled:
      return fail(Code::data, "the driver crashed when {} asked it (signal {})", name,
                  finished.signal);
    case sys::HowEnded::timed_out:
      return fail(Code::data, "the driver did not answer {} within {:.0f} s", name,
                  k_doctor_patience_seconds);
    case sys::HowEnded::output_limit:
      return fail(Code::data, "{} does not stop printing", name);
    case sys::HowEnded::not_started:
      return fail(Code::data, "{} can not be run: {}", name, finished.start_error);
    case sys::HowEnded::interrupted:
      break;
  }
  return fail(Code::interrupted, "interrupted");
}

Result<void> read_devices(const std::string& text, report::Diagnosis& diagnosis) {
  WEIR_TRY(const Json json, parse_json(text, {.bytes = std::size_t{1} << 20, .depth = 8}));
  JsonReader read(json, "weir-devices");
  for (const unit::DeviceApi& known : unit::device_apis()) {
    const char* api = known.name;
    if (!read.has(api)) continue;  // this weir-devices does not know it
    const std::size_t before = diagnosis.devices.size();
    for (const Json& device : read.array(api)) {
      JsonReader one(device, fmt::format("weir-devices: {}", api));
      diagnosis.devices.push_back({api, one.string("name"),
                                   one.optional_string("type").value_or(""),
                                   one.optional_string("driver").value_or("")});
      if (auto problem = one.problem()) return tl::unexpected(*problem);
    }
    const auto error = read.optional_string(fmt::format("{}_error", api).c_str());
    if (error) diagnosis.device_errors.emplace_back(api, *error);
    if (!error && diagnosis.devices.size() == before) {
      diagnosis.device_errors.emplace_back(api, "its drivers list none");
    }
  }
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return {};
}

// The names of the layers whose manifests lie in `folder`.
void add_layers(const sys::Files& files, const std::string& folder, std::vector<std::string>& out) {
  constexpr std::size_t k_most_layers = 64;
  for (const std::string& name : files.list(folder).value_or(std::vector<std::string>())) {
    if (!name.ends_with(".json") || out.size() == k_most_layers) continue;
    const auto text = files.read(sys::join_path(folder, name), std::uint64_t{1} << 20);
    const auto json = text ? parse_json(*text) : tl::unexpected(text.error());
    if (!json || !json->is_object()) continue;
    const auto layer = json->find("layer");
    if (layer == json->end() || !layer->is_object()) continue;
    const auto layer_name = JsonReader(*layer, name).optional_string("name");
    if (layer_name && std::find(out.begin(), out.end(), *layer_name) == out.end()) {
      out.push_back(*layer_name);
    }
  }
}

}  // namespace

void look_at_probes(const sys::Files& files, report::Diagnosis& diagnosis) {
  const auto places = probes::locate(files);
  if (!places) {
    diagnosis.probes_error = places.error().message;
    return;
  }
  for (const auto& [name, devices] : probes::probe_devices()) {
    const auto there = probes::environment_for(
        name, *places, "/", files,
        [](std::string_view variable) { return sys::environment_value(std::string(variable)); });
    if (there) {
      diagnosis.probes.push_back(name);
    } else {
      diagnosis.probes_error +=
          (diagnosis.probes_error.empty() ? "" : "; ") + there.error().message;
    }
  }
}

void look_at_devices(const sys::Files& files, const sys::Stop& stop, report::Diagnosis& diagnosis) {
  const auto places = probes::locate(files);
  if (!places || places->devices_program.empty()) {
    diagnosis.device_errors.emplace_back(
        "vulkan", sys::k_on_macos ? "weir-devices, which would ask, is not on macOS"
                                  : "nobody to ask: weir-devices is not beside the probes");
    return;
  }
  const auto text = output_of({places->devices_program}, stop);
  const auto read = text ? read_devices(*text, diagnosis) : tl::unexpected(text.error());
  if (!read) diagnosis.device_errors.emplace_back("vulkan", read.error().message);
}

void look_at_layers(const sys::Files& files, report::Diagnosis& diagnosis) {
  std::vector<std::string> roots{"/etc", "/usr/local/etc", "/usr/local/share", "/usr/share"};
  if (const auto home = sys::environment_value("HOME")) {
    roots.push_back(sys::join_path(*home, ".config"));
    roots.push_back(sys::join_path(*home, ".local/share"));
  }
  for (const std::string& root : roots) {
    add_layers(files, root + "/vulkan/implicit_layer.d", diagnosis.always_layers);
    add_layers(files, root + "/vulkan/explicit_layer.d", diagnosis.layers);
  }
}

std::vector<sys::GpuHealth> look_at_nvidia_gpus(const sys::Files& files, const sys::Stop& stop) {
  const std::string path = sys::environment_value("PATH").value_or("/usr/bin:/bin");
  const auto program = sys::find_program(files, "nvidia-smi", ".", path);
  if (!program) return {};
  const auto text = output_of({*program, fmt::format("--query-gpu={}", sys::k_nvidia_fields),
                               "--format=csv,noheader,nounits"},
                              stop);
  return text ? sys::parse_nvidia_smi(*text) : std::vector<sys::GpuHealth>();
}

}  // namespace weir::app
