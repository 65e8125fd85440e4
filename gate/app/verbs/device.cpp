// weir device list|show|record|import|compile|matrix: manages descriptions of GPUs, for device
// twins.
#include "gate/flow/device.hpp"

#include "gate/app/options.hpp"

namespace weir::app {
namespace {

// Adds `weir device matrix`, which compares an engine's counts and kernels on all device twins
// (simulated GPUs).
void add_device_matrix(const Verb& device) {
  const Verb verb = device.subcommand(
      "matrix", "Compare one engine's counts and kernels on every described device");
  const auto options = verb.set_flow_with_new_options(flow::show_device_matrix);
  verb.add_group(OptionGroup::config);
  verb.list_option("--cell", verb.job().selection.cells, "GLOB",
                   "Only cells that match GLOB, with the twin as the backend");
  verb.list_option("--twin", options->twins, "GLOB", "Only twins that match GLOB; repeatable");
  verb.option("--html", options->html, "FILE", "Write an HTML page too");
  verb.flag("--all", options->all, "Include rows that are the same on all devices");
  verb->footer(
      "Arguments and environment are those of the first backend with device: vulkan.\n\n"
      "Example:\n"
      "  weir device matrix --cell '*/tiny-llama/*/decode' --twin 'amd-*'");
}

using Flow = Result<flow::Answer>(const flow::Job&, const flow::DeviceOptions&);

// Adds a subcommand that takes DeviceOptions.
Verb add(const Verb& device, const char* name, const char* what, Flow* flow,
         const std::shared_ptr<flow::DeviceOptions>& options, const char* footer) {
  const Verb verb = device.subcommand(name, what);
  verb->footer(footer);
  verb.set_flow(options, flow);
  return verb;
}

void add_config_option(const Verb& verb) {
  verb.add_config_option("Configuration with configs/devices beside it");
}

// Adds the options of a new description: file, name and title.
void add_output_options(const Verb& verb, flow::DeviceOptions& options) {
  verb.option("--output", options.out, "FILE", "File to write (default: standard output)");
  verb.option("--name", options.new_name, "",
              "Name for twin: in weir.yaml (a file's own name takes precedence)");
  verb.option("--title", options.title, "", "Name for people");
}

}  // namespace

void add_device(const Verb& device) {
  device->require_subcommand(1);
  const auto options = std::make_shared<flow::DeviceOptions>();
  const Verb list = add(device, "list", "List the descriptions", flow::list_devices, options,
                        "Descriptions in configs/devices beside weir.yaml precede weir's own.\n\n"
                        "Example:\n"
                        "  weir device list");
  add_config_option(list);
  list.add_json_option();
  const Verb show = add(device, "show", "Show the properties of one device that engines decide by",
                        flow::show_device, options,
                        "--json writes the whole description.\n\n"
                        "Example:\n"
                        "  weir device show amd-rx-7900-xtx");
  add_config_option(show);
  show.option("NAME", options->name, "", "A description, or its file")->required();
  show.add_json_option();
  const Verb record = add(device, "record", "Record the description of a GPU in this machine",
                          flow::record_device, options,
                          "Serial numbers and UUIDs are left out. Exit code 3: no device of Vulkan "
                          "or CUDA.\n\n"
                          "Example:\n"
                          "  weir device record --output configs/devices/my-gpu.json");
  record.option_with_default("--index", options->index, "", "Which device, from 0: Vulkan's first");
  add_output_options(record, *options);
  const Verb import =
      add(device, "import", "Make a description from vulkaninfo --json or from a database file",
          flow::import_device, options,
          "You can also put such a file into configs/devices unchanged. Missing values\n"
          "(memory, cooperative matrices) get defaults, which weir device show lists.\n\n"
          "Example:\n"
          "  weir device import VP_VULKANINFO_GPU.json --output configs/devices/my-gpu.json");
  import.option("FILE", options->name, "", "")->required();
  add_output_options(import, *options);
  const Verb compile =
      add(device, "compile", "Write the file that the twin driver reads, to use a twin by hand",
          flow::compile_device, options,
          "A program with the printed environment sees this device and no other. The file\n"
          "works with this build of weir only.\n\n"
          "Example:\n"
          "  env $(weir device compile nvidia-rtx-4090 --output rtx.twin) vulkaninfo");
  add_config_option(compile);
  compile.option("NAME", options->name, "", "A description, or its file")->required();
  compile.option("--output", options->out, "FILE", "File to write")->required();
  add_device_matrix(device);
  device->footer(
      "Examples:\n"
      "  weir device list\n"
      "  weir device show amd-rx-7900-xtx\n"
      "  weir device matrix --twin 'amd-*'");
}

}  // namespace weir::app
