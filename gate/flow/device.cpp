// weir device: lists, shows, records, imports and compiles descriptions of GPUs.
#include "gate/flow/device.hpp"

#include "gate/base/text.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/program.hpp"
#include "gate/probes/read/runtime_twin.hpp"
#include "gate/probes/read/twin_facts.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/probes/twin/blob.h"
#include "gate/report/device_matrix.hpp"
#include "gate/report/device_text.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr double k_describe_patience_seconds = 60;
constexpr std::uint64_t k_max_description_bytes = std::uint64_t{16} << 20;

std::vector<std::string> description_folders(const Job& job) {
  return probes::twin_folders(job.files(), sys::folder_of(job.selection.config));
}

}  // namespace

Result<Answer> list_devices(const Job& job, const DeviceOptions& /*options*/) {
  WEIR_TRY(const auto descriptions, probes::list_twins(job.files(), description_folders(job)));
  std::vector<report::DeviceLine> lines;
  for (const probes::TwinEntry& description : descriptions) {
    lines.push_back({description.name, description.title, description.source, description.error,
                     description.apis});
  }
  return Answer{report::device_list_text(lines, job.width()), report::device_list_json(lines)};
}

// Prints the description of a simulated GPU. Compiles it for each API, so that warnings show.
Result<Answer> show_device(const Job& job, const DeviceOptions& options) {
  WEIR_TRY(probes::Twin twin,
           probes::load_twin(job.files(), description_folders(job), options.name));
  if (twin.has_vulkan()) static_cast<void>(probes::compile_twin(twin));  // for its warnings
  for (const probes::RuntimeApi* api : probes::runtime_apis()) {
    if (!(twin.*api->section).is_object()) continue;
    const auto compiled = probes::compile_runtime_twin(twin, api->name, 1);
    if (!compiled) twin.warnings.push_back(compiled.error().message);
  }
  const report::DeviceSheet sheet{twin.name,    twin.title,    twin.source,
                                  twin.assumed, twin.warnings, probes::facts_of(twin)};
  return Answer{report::device_text(sheet, job.width()),
                json_document(probes::document_of(twin), 2)};
}

namespace {

void print_warnings(const Job& job, const probes::Twin& twin) {
  for (const std::string& warning : twin.warnings) job.log(fmt::format("  warning: {}", warning));
}

Result<void> write_out(const Job& job, const DeviceOptions& options, const std::string& text) {
  WEIR_CHECK(job.files().make_dirs(sys::folder_of(options.out)));
  return job.files().write_atomic(options.out, text);
}

// Writes a description to --out, or to standard output, with --name and --title applied.
Result<Answer> write_description(const Job& job, const DeviceOptions& options, probes::Twin& twin) {
  if (!options.new_name.empty()) {
    if (!probes::is_twin_name(options.new_name)) {
      return fail(Code::usage,
                  "--name {}: only small letters, digits and \"-._\", at most 63, and a letter or "
                  "digit first",
                  text::printable(options.new_name));
    }
    twin.name = options.new_name;
  }

  if (!options.title.empty()) twin.title = options.title;
  print_warnings(job, twin);
  const std::string text = json_document(probes::document_of(twin), 2);
  if (options.out.empty()) {
    job.world.terminal.write(1, text);
    return Answer{};
  }
  WEIR_CHECK(write_out(job, options, text));
  job.log(fmt::format("{}: {}", options.out, twin.title));
  return Answer{};
}

}  // namespace

// Records a description of one GPU of this machine with weir-devices, which asks the drivers.
Result<Answer> record_device(const Job& job, const DeviceOptions& options) {
  const sys::Interrupts interrupts;
  sys::ProcessSpec spec;
  spec.argv = {"--describe"};
  spec.timeout_seconds = k_describe_patience_seconds;
  spec.output_limit = k_max_description_bytes;
  WEIR_TRY(const sys::Finished described, run_devices_program(spec, job.world, interrupts.stop()));
  if (!failure_text(described, spec).empty()) {
    return fail(Code::unavailable,
                "a driver of Vulkan or CUDA crashed or did not answer when asked for its devices");
  }
  WEIR_TRY(const Json json,
           parse_json(described.out, {.bytes = k_max_description_bytes, .depth = 16}));
  JsonReader fields(json, "weir-devices");
  const Json& devices = fields.array("descriptions");
  const auto error = fields.optional_string("error");
  if (auto problem = fields.problem()) return tl::unexpected(*problem);
  if (devices.empty()) {
    return fail(Code::unavailable, "this machine has no device of Vulkan or CUDA{}",
                error ? fmt::format(" ({})", text::printable(*error)) : "");
  }
  if (options.index >= devices.size()) {
    return fail(Code::usage, "--index {}: this machine has {}, from 0", options.index,
                text::plural(devices.size(), "device"));
  }
  WEIR_TRY(probes::Twin twin, probes::read_twin(dump_json(devices[options.index])));
  if (devices.size() > 1)
    job.log(fmt::format("{} devices; this is {}: {}", devices.size(), options.index,
                        text::neutralize_ci_commands(twin.title)));
  twin.source = "recorded";
  return write_description(job, options, twin);
}

Result<Answer> import_device(const Job& job, const DeviceOptions& options) {
  // Read as a path, even if it looks like the name of a stored description.
  const std::string path =
      options.name.find('/') == std::string::npos ? "./" + options.name : options.name;
  WEIR_TRY(probes::Twin twin, probes::load_twin(job.files(), {}, path));
  if (twin.source.empty()) {
    twin.source = "imported: a document of vulkaninfo or of a database, not recorded by weir";
  }
  return write_description(job, options, twin);
}

// Compiles a description for the Vulkan driver of device twins (simulated GPUs), and prints the
// environment that selects it.
Result<Answer> compile_device(const Job& job, const DeviceOptions& options) {
  WEIR_TRY(probes::Twin twin,
           probes::load_twin(job.files(), description_folders(job), options.name));
  if (!twin.has_vulkan()) {
    return fail(
        Code::usage,
        "{} is not described for Vulkan, whose driver weir device compile is for; a run with "
        "device: {} prepares the rest by itself",
        twin.name, text::join(twin.apis(), " or "));
  }
  const std::string blob = probes::compile_twin(twin);
  print_warnings(job, twin);
  WEIR_CHECK(write_out(job, options, blob));
  // Prints the environment that shows a program this device alone.
  WEIR_TRY(const probes::Places places, probe_places(job.world));
  const std::string driver = sys::join_path(places.probes, "weir_twin.json");
  std::string lines = fmt::format("{}={}\n", WEIR_TWIN_VARIABLE, sys::absolute(options.out));
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"})
    lines += fmt::format("{}={}\n", variable, driver);
  job.world.terminal.write(1, lines);
  return Answer{};
}

namespace {

// Replaces the config's backends by one for each device twin whose name matches. Each takes the
// arguments and the environment of the first backend for Vulkan.
Result<void> replace_backends(config::Settings& settings, const std::vector<std::string>& globs,
                              const std::vector<probes::TwinEntry>& descriptions) {
  const auto base =
      std::ranges::find(settings.backends, std::string("vulkan"), &config::BackendSettings::device);
  if (base == settings.backends.end()) {
    return fail(Code::config,
                "{}: no backend with device: vulkan, whose arguments twins could take",
                settings.file);
  }
  std::vector<config::BackendSettings> backends;
  for (const probes::TwinEntry& twin : descriptions) {
    if (!holds(twin.apis, "vulkan") || !text::matches_any(globs, twin.name)) continue;
    config::BackendSettings& backend = backends.emplace_back(*base);
    backend.name = backend.twin.emplace(twin.name);
    backend.compile = config::k_no_compiler;  // the matrix shows counts alone
  }
  if (backends.empty()) {
    return fail(Code::usage, "no description matches {}; weir device list shows those there are",
                text::join(globs));
  }
  settings.backends = std::move(backends);
  settings.include.clear();  // they name the replaced backends
  settings.exclude.clear();
  return {};
}

}  // namespace

// Counts the engine on each device twin (simulated GPU) that matches, and shows the counts as a
// matrix.
Result<Answer> show_device_matrix(const Job& job, const DeviceMatrixOptions& options) {
  Job all_cells_job = job;
  all_cells_job.selection.cells.clear();  // --cell names twins, which become backends below
  WEIR_TRY(LoadedConfig loaded, load_config(all_cells_job));
  config::Settings& settings = *loaded.configuration.settings;
  WEIR_TRY(const auto descriptions, probes::list_twins(job.files(), description_folders(job)));
  WEIR_CHECK(replace_backends(settings, options.twins, descriptions));
  WEIR_TRY(config::Matrix matrix, config::expand(settings));
  const config::Redactor redactor = loaded.configuration.redactor;
  WEIR_TRY(loaded.cells, config::select(matrix, job.selection.cells, redactor));
  MeasureOptions wanted;
  wanted.plan.times = false;
  wanted.plan.instruction_processes = 0;
  WEIR_TRY(MeasuredRun measured, measure_loaded(std::move(loaded), job.below("devices"), wanted)
                                     .map_error(redacting(redactor)));
  redact_profiles(measured);
  if (!options.html.empty()) {
    WEIR_CHECK(
        job.files().write_atomic(options.html, report::device_matrix_html(measured.profiles)));
  }
  return profiles_answer(report::device_matrix_text(measured.profiles, options.all, job.width()),
                         measured.profiles);
}

}  // namespace weir::flow
