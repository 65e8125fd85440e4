// weir device list|show|record|import|compile|matrix: descriptions of GPUs, for device twins.
#include "gate/flow/device.hpp"

#include "gate/app/options.hpp"

namespace weir::app {
namespace {

void add_device_matrix(const Verb& device) {
  const Verb verb = device.below(
      "matrix", "One engine's counts and kernels on every described device, side by side");
  auto options = std::make_shared<flow::DeviceMatrixOptions>();
  verb.takes(Takes::config);
  verb.repeated("--cell", verb.job().asked.cells, "GLOB",
                "Only cells whose name (with the twin as backend) matches GLOB");
  verb.repeated("--twin", options->twins, "GLOB",
                "Only twins whose name matches GLOB; may be repeated");
  verb.option("--html", options->html, "FILE", "Also write a page");
  verb.flag("--all", options->all, "Also rows that are the same on all devices");
  verb->footer(
      "Takes arguments and environment of the first backend with device: vulkan.\n\n"
      "Example:\n  weir device matrix --cell '*/tiny-llama/*/decode' --twin 'amd-*'");
  verb.runs(options, flow::show_device_matrix);
}

using Flow = Result<flow::Answer>(const flow::Job&, const flow::DeviceOptions&);

// One of those that take DeviceOptions, with what all of them share.
Verb add(const Verb& device, const char* name, const char* what, Flow* flow,
         const std::shared_ptr<flow::DeviceOptions>& options, const char* footer) {
  const Verb verb = device.below(name, what);
  verb->footer(footer);
  verb.runs(options, flow);
  return verb;
}

void takes_config(const Verb& verb) {
  verb.takes_config("The configuration beside which configs/devices lies");
}

void takes_new(const Verb& verb, flow::DeviceOptions& options) {
  verb.option("--out", options.out, "FILE", "Write FILE (default: standard output)");
  verb.option("--name", options.called, "", "What twin: shall take (a file's own name wins)");
  verb.option("--title", options.title, "", "What people shall read");
}

}  // namespace

void add_device(const Verb& device) {
  device->require_subcommand(1);
  const auto options = std::make_shared<flow::DeviceOptions>();
  const Verb list =
      add(device, "list", "The descriptions there are", flow::list_devices, options,
          "Those of configs/devices beside weir.yaml stand in front of weir's own.\n\n"
          "Example:\n  weir device list");
  takes_config(list);
  list.takes_json();
  const Verb show =
      add(device, "show", "What engines decide by, of one device", flow::show_device, options,
          "--json writes the whole description.\n\n"
          "Example:\n  weir device show amd-rx-7900-xtx");
  takes_config(show);
  show.option("NAME", options->name, "", "A description, or a file")->required();
  show.takes_json();
  const Verb record =
      add(device, "record", "Write a description of a GPU of this machine", flow::record_device,
          options,
          "Serial numbers and UUIDs are left out. Exit code 3 where there is no Vulkan device.\n\n"
          "Example:\n  weir device record --out configs/devices/my-gpu.json");
  record.preset("--index", options->index, "", "Which of its Vulkan devices, from 0");
  takes_new(record, *options);
  const Verb import = add(
      device, "import", "Write a description from a file of vulkaninfo --json or of a database",
      flow::import_device, options,
      "Such a file can also be put into configs/devices as it is; what it lacks has defaults\n"
      "then (memory, cooperative matrices), and weir device show tells of them.\n\n"
      "Example:\n  weir device import VP_VULKANINFO_GPU.json --out configs/devices/my-gpu.json");
  import.option("FILE", options->name, "", "")->required();
  takes_new(import, *options);
  const Verb compile =
      add(device, "compile", "Write what the twin driver reads, to use it by hand",
          flow::compile_device, options,
          "A program that has in its environment what is printed sees this device and no other.\n"
          "The file fits this build of weir alone.\n\n"
          "Example:\n"
          "  env $(weir device compile nvidia-rtx-4090 --out rtx.twin) vulkaninfo --summary");
  takes_config(compile);
  compile.option("NAME", options->name, "", "A description, or a file")->required();
  compile.option("--out", options->out, "FILE", "The file to write")->required();
  add_device_matrix(device);
}

}  // namespace weir::app
