// weir device list|show|record|import|compile: descriptions of GPUs, for device twins.
#include <memory>

#include "gate/app/command_line.hpp"
#include "gate/app/devices_program.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/probes/read/twin_facts.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/probes/twin/blob.h"
#include "gate/report/texts.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {
namespace {

constexpr double k_describe_patience_seconds = 60;
constexpr std::uint64_t k_most_description_bytes = std::uint64_t{16} << 20;

struct DeviceOptions {
  CommonOptions common;
  std::string name;    // of a description, or the path of a file
  std::string out;     // "" is standard output
  std::string called;  // the new description's name
  std::string title;
  std::size_t index = 0;
};

std::vector<std::string> folders_of(const DeviceOptions& options, const sys::Files& files) {
  return probes::twin_folders(files, sys::folder_of(options.common.config));
}

Result<ExitCode> list(const DeviceOptions& options) {
  const sys::RealFiles files;
  WEIR_TRY(const auto found, probes::list_twins(files, folders_of(options, files)));
  std::vector<report::DeviceLine> lines;
  for (const probes::FoundTwin& one : found)
    lines.push_back({one.name, one.title, one.source, one.error});
  const int stream = answer_stream(options.common);
  answer(options.common, report::device_list_text(lines, width_of(stream)));
  WEIR_CHECK(write_json(options.common, report::device_list_json(lines)));
  return ExitCode::pass;
}

Result<ExitCode> show(const DeviceOptions& options) {
  const sys::RealFiles files;
  WEIR_TRY(probes::Twin twin, probes::load_twin(files, folders_of(options, files), options.name));
  static_cast<void>(probes::compile_twin(twin));  // for its doubts
  const report::DeviceSheet sheet{twin.name,    twin.title,    twin.source,
                                  twin.assumed, twin.warnings, probes::facts_of(twin)};
  answer(options.common, report::device_text(sheet, width_of(answer_stream(options.common))));
  WEIR_CHECK(write_json(options.common, dump_json(probes::document_of(twin), 2) + "\n"));
  return ExitCode::pass;
}

// Writes where --out says, and says so; else to standard output.
Result<ExitCode> hand_out(const DeviceOptions& options, const std::string& text,
                          const std::string& what) {
  if (options.out.empty()) {
    fmt::print("{}", text);
    return ExitCode::pass;
  }
  sys::RealFiles files;
  WEIR_CHECK(files.make_dirs(sys::folder_of(options.out)));
  WEIR_CHECK(files.write_atomic(options.out, text));
  talk(options.common, fmt::format("{}: {}", options.out, what));
  return ExitCode::pass;
}

// The new description's name and title as asked for, else as they are.
Result<void> name_it(const DeviceOptions& options, probes::Twin& twin) {
  if (!options.called.empty()) {
    if (!probes::is_twin_name(options.called)) {
      return fail(Code::usage,
                  "--name {}: only small letters, digits and \"-._\", at most 63, and a letter or "
                  "digit first",
                  text::printable(options.called));
    }
    twin.name = options.called;
  }
  if (!options.title.empty()) twin.title = options.title;
  for (const std::string& doubt : twin.warnings)
    talk(options.common, text::disarm(fmt::format("  doubt: {}", doubt)));
  return {};
}

Result<std::string> descriptions_of_this_machine(const sys::Stop& stop) {
  WEIR_TRY(const sys::Finished finished,
           ask_devices_program({.arguments = {"--describe"},
                                .env = sys::own_environment(),
                                .patience_seconds = k_describe_patience_seconds,
                                .output_limit = k_most_description_bytes},
                               stop));
  if (finished.ended != sys::HowEnded::exited || finished.exit_code != 0) {
    return fail(Code::unavailable,
                "a Vulkan driver crashed or did not answer when asked for its devices");
  }
  return finished.out;
}

Result<ExitCode> record(const DeviceOptions& options) {
  const sys::Interrupts interrupts;
  WEIR_TRY(const std::string text, descriptions_of_this_machine(interrupts.stop()));
  WEIR_TRY(const Json json, parse_json(text, {.bytes = k_most_description_bytes, .depth = 16}));
  JsonReader read(json, "weir-devices");
  const Json& devices = read.array("descriptions");
  const auto error = read.optional_string("error");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (devices.empty()) {
    return fail(Code::unavailable, "this machine has no Vulkan device{}",
                error ? fmt::format(" ({})", text::printable(*error)) : "");
  }
  if (options.index >= devices.size()) {
    return fail(Code::usage, "--index {}: this machine has {} Vulkan device{}, from 0",
                options.index, devices.size(), devices.size() == 1 ? "" : "s");
  }
  WEIR_TRY(probes::Twin twin, probes::read_twin(dump_json(devices[options.index])));
  if (devices.size() > 1)
    talk(options.common, fmt::format("{} devices; this is {}: {}", devices.size(), options.index,
                                     text::disarm(twin.title)));
  twin.source = "recorded";
  WEIR_CHECK(name_it(options, twin));
  return hand_out(options, dump_json(probes::document_of(twin), 2) + "\n", twin.title);
}

Result<ExitCode> import_file(const DeviceOptions& options) {
  const sys::RealFiles files;
  // A path even where it looks like a name.
  const std::string path =
      options.name.find('/') == std::string::npos ? "./" + options.name : options.name;
  WEIR_TRY(probes::Twin twin, probes::load_twin(files, {}, path));
  if (twin.source.empty()) {
    twin.source = "imported: a document of vulkaninfo or of a database, not recorded by weir";
  }
  WEIR_CHECK(name_it(options, twin));
  return hand_out(options, dump_json(probes::document_of(twin), 2) + "\n", twin.title);
}

Result<ExitCode> compile(const DeviceOptions& options) {
  sys::RealFiles files;
  WEIR_TRY(probes::Twin twin, probes::load_twin(files, folders_of(options, files), options.name));
  const std::string blob = probes::compile_twin(twin);
  for (const std::string& doubt : twin.warnings)
    talk(options.common, text::disarm(fmt::format("  doubt: {}", doubt)));
  WEIR_CHECK(files.make_dirs(sys::folder_of(options.out)));
  WEIR_CHECK(files.write_atomic(options.out, blob));
  // The environment that shows a program this device and no other.
  const auto places = probes::locate(files);
  if (!places) return tl::unexpected(places.error());
  const std::string driver = sys::join_path(places->probes, "weir_twin.json");
  fmt::print("{}={}\n", WEIR_TWIN_VARIABLE, sys::absolute(options.out));
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"})
    fmt::print("{}={}\n", variable, driver);
  return ExitCode::pass;
}

CLI::App* add_verb(CLI::App& device, const std::shared_ptr<DeviceOptions>& options,
                   const char* name, const char* what) {
  CLI::App* verb = device.add_subcommand(name, what);
  verb->add_option("-c,--config", options->common.config,
                   "The configuration beside which configs/devices lies")
      ->type_name("FILE")
      ->capture_default_str();
  return verb;
}

void add_json(CLI::App& verb, DeviceOptions& options) {
  verb.add_option("--json", options.common.json,
                  "Write the result as JSON to FILE, or to standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->default_str("-");
}

void add_new(CLI::App& verb, DeviceOptions& options) {
  verb.add_option("--out", options.out, "Write FILE (default: standard output)")->type_name("FILE");
  verb.add_option("--name", options.called, "What twin: shall take (a file's own name wins)");
  verb.add_option("--title", options.title, "What people shall read");
}

}  // namespace

void add_device(CLI::App& app) {
  CLI::App* device = app.add_subcommand("device", "Descriptions of GPUs, for device twins");
  device->require_subcommand(1);
  {
    auto options = std::make_shared<DeviceOptions>();
    CLI::App* verb = add_verb(*device, options, "list", "The descriptions there are");
    add_json(*verb, *options);
    verb->footer(
        "Those of configs/devices beside weir.yaml stand in front of weir's own.\n\n"
        "Example:\n  weir device list");
    set_action(*verb, [options] { return list(*options); });
  }
  {
    auto options = std::make_shared<DeviceOptions>();
    CLI::App* verb = add_verb(*device, options, "show", "What engines decide by, of one device");
    verb->add_option("NAME", options->name, "A description, or a file")->required();
    add_json(*verb, *options);
    verb->footer(
        "--json writes the whole description.\n\n"
        "Example:\n  weir device show amd-rx-7900-xtx");
    set_action(*verb, [options] { return show(*options); });
  }
  {
    auto options = std::make_shared<DeviceOptions>();
    CLI::App* verb =
        device->add_subcommand("record", "Write a description of a GPU of this machine");
    verb->add_option("--index", options->index, "Which of its Vulkan devices, from 0")
        ->capture_default_str();
    add_new(*verb, *options);
    verb->footer(
        "Serial numbers and UUIDs are left out. Exit code 3 where there is no Vulkan device.\n\n"
        "Example:\n  weir device record --out configs/devices/my-gpu.json");
    set_action(*verb, [options] { return record(*options); });
  }
  {
    auto options = std::make_shared<DeviceOptions>();
    CLI::App* verb = device->add_subcommand(
        "import", "Write a description from a file of vulkaninfo --json or of a database");
    verb->add_option("FILE", options->name)->required();
    add_new(*verb, *options);
    verb->footer(
        "Such a file can also be put into configs/devices as it is; what it lacks has defaults\n"
        "then (memory, cooperative matrices), and weir device show tells of them.\n\n"
        "Example:\n  weir device import VP_VULKANINFO_GPU.json --out configs/devices/my-gpu.json");
    set_action(*verb, [options] { return import_file(*options); });
  }
  {
    auto options = std::make_shared<DeviceOptions>();
    CLI::App* verb = add_verb(*device, options, "compile",
                              "Write what the twin driver reads, to use it by hand");
    verb->add_option("NAME", options->name, "A description, or a file")->required();
    verb->add_option("--out", options->out, "The file to write")->required()->type_name("FILE");
    verb->footer(
        "A program that has in its environment what is printed sees this device and no other.\n"
        "The file fits this build of weir alone.\n\n"
        "Example:\n"
        "  env $(weir device compile nvidia-rtx-4090 --out rtx.twin) vulkaninfo --summary");
    set_action(*verb, [options] { return compile(*options); });
  }
  add_device_matrix(*device);
}

}  // namespace weir::app
