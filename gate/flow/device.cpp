#include "gate/flow/device.hpp"

#include "gate/base/text.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/program.hpp"
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
constexpr std::uint64_t k_most_description_bytes = std::uint64_t{16} << 20;

std::vector<std::string> folders_of(const Job& job) {
  return probes::twin_folders(job.files(), sys::folder_of(job.asked.config));
}

}  // namespace

Result<Answer> list_devices(const Job& job, const DeviceOptions& /*options*/) {
  WEIR_TRY(const auto found, probes::list_twins(job.files(), folders_of(job)));
  std::vector<report::DeviceLine> lines;
  for (const probes::FoundTwin& one : found) {
    lines.push_back({one.name, one.title, one.source, one.error});
    if (one.vulkan) lines.back().apis.emplace_back("vulkan");
    if (one.cuda) lines.back().apis.emplace_back("cuda");
  }
  return Answer{report::device_list_text(lines, job.width()), report::device_list_json(lines)};
}

Result<Answer> show_device(const Job& job, const DeviceOptions& options) {
  WEIR_TRY(probes::Twin twin, probes::load_twin(job.files(), folders_of(job), options.name));
  if (twin.has_vulkan()) static_cast<void>(probes::compile_twin(twin));  // for its doubts
  const report::DeviceSheet sheet{twin.name,    twin.title,    twin.source,
                                  twin.assumed, twin.warnings, probes::facts_of(twin)};
  return Answer{report::device_text(sheet, job.width()), document(probes::document_of(twin), 2)};
}

namespace {

void talk_of_doubts(const Job& job, const probes::Twin& twin) {
  for (const std::string& doubt : twin.warnings) job.talk(fmt::format("  warning: {}", doubt));
}

Result<void> write_out(const Job& job, const DeviceOptions& options, const std::string& text) {
  WEIR_CHECK(job.files().make_dirs(sys::folder_of(options.out)));
  return job.files().write_atomic(options.out, text);
}

// The new description, its name and title as asked for, else as they are: where --out says, which
// is then said; else to standard output.
Result<Answer> hand_out(const Job& job, const DeviceOptions& options, probes::Twin& twin) {
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
  talk_of_doubts(job, twin);
  const std::string text = document(probes::document_of(twin), 2);
  if (options.out.empty()) {
    job.world.terminal.write(1, text);
    return Answer{};
  }
  WEIR_CHECK(write_out(job, options, text));
  job.talk(fmt::format("{}: {}", options.out, twin.title));
  return Answer{};
}

}  // namespace

Result<Answer> record_device(const Job& job, const DeviceOptions& options) {
  const sys::Interrupts interrupts;
  sys::ProcessSpec spec;
  spec.argv = {"--describe"};
  spec.timeout_seconds = k_describe_patience_seconds;
  spec.output_limit = k_most_description_bytes;
  WEIR_TRY(const sys::Finished described, ask_devices_program(spec, job.world, interrupts.stop()));
  if (!failure_words(described, spec).empty()) {
    return fail(Code::unavailable,
                "a driver of Vulkan or CUDA crashed or did not answer when asked for its devices");
  }
  WEIR_TRY(const Json json,
           parse_json(described.out, {.bytes = k_most_description_bytes, .depth = 16}));
  JsonReader read(json, "weir-devices");
  const Json& devices = read.array("descriptions");
  const auto error = read.optional_string("error");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (devices.empty()) {
    return fail(Code::unavailable, "this machine has no device of Vulkan or CUDA{}",
                error ? fmt::format(" ({})", text::printable(*error)) : "");
  }
  if (options.index >= devices.size()) {
    return fail(Code::usage, "--index {}: this machine has {}, from 0", options.index,
                report::plural(devices.size(), "device"));
  }
  WEIR_TRY(probes::Twin twin, probes::read_twin(dump_json(devices[options.index])));
  if (devices.size() > 1)
    job.talk(fmt::format("{} devices; this is {}: {}", devices.size(), options.index,
                         text::disarm(twin.title)));
  twin.source = "recorded";
  return hand_out(job, options, twin);
}

Result<Answer> import_device(const Job& job, const DeviceOptions& options) {
  // A path even where it looks like a name.
  const std::string path =
      options.name.find('/') == std::string::npos ? "./" + options.name : options.name;
  WEIR_TRY(probes::Twin twin, probes::load_twin(job.files(), {}, path));
  if (twin.source.empty()) {
    twin.source = "imported: a document of vulkaninfo or of a database, not recorded by weir";
  }
  return hand_out(job, options, twin);
}

Result<Answer> compile_device(const Job& job, const DeviceOptions& options) {
  WEIR_TRY(probes::Twin twin, probes::load_twin(job.files(), folders_of(job), options.name));
  if (!twin.has_vulkan()) {
    return fail(Code::usage,
                "{} is described for CUDA alone, and weir compile is for Vulkan's driver; a run "
                "with device: cuda prepares the rest by itself",
                twin.name);
  }
  const std::string blob = probes::compile_twin(twin);
  talk_of_doubts(job, twin);
  WEIR_CHECK(write_out(job, options, blob));
  // The environment that shows a program this device and no other.
  WEIR_TRY(const probes::Places places, probe_places(job.world));
  const std::string driver = sys::join_path(places.probes, "weir_twin.json");
  std::string lines = fmt::format("{}={}\n", WEIR_TWIN_VARIABLE, sys::absolute(options.out));
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"})
    lines += fmt::format("{}={}\n", variable, driver);
  job.world.terminal.write(1, lines);
  return Answer{};
}

namespace {

// The backends of the config give way to one for each twin, with the arguments and the environment
// of the first that asks for Vulkan.
Result<void> put_twins_in(config::Settings& settings, const std::vector<std::string>& globs,
                          const std::vector<probes::FoundTwin>& known) {
  const auto base =
      std::ranges::find(settings.backends, std::string("vulkan"), &config::BackendSettings::device);
  if (base == settings.backends.end()) {
    return fail(Code::config,
                "{}: no backend with device: vulkan, whose arguments twins could take",
                settings.file);
  }
  std::vector<config::BackendSettings> backends;
  for (const probes::FoundTwin& twin : known) {
    if (!twin.vulkan || !matches(globs, twin.name)) continue;
    config::BackendSettings& backend = backends.emplace_back(*base);
    backend.name = backend.twin.emplace(twin.name);
    backend.compile = config::k_no_compiler;  // counts are shown, alike ones together
  }
  if (backends.empty()) {
    return fail(Code::usage, "no description matches {}; weir device list shows those there are",
                text::join(globs));
  }
  settings.backends = std::move(backends);
  settings.include.clear();  // they name backends that are not there now
  settings.exclude.clear();
  return {};
}

}  // namespace

Result<Answer> show_device_matrix(const Job& job, const DeviceMatrixOptions& options) {
  Job whole = job;
  whole.asked.cells.clear();  // they name twins, which are no backends yet
  WEIR_TRY(Loaded loaded, load_config(whole));
  config::Settings& settings = *loaded.known.settings;
  WEIR_TRY(const auto known, probes::list_twins(job.files(), folders_of(job)));
  WEIR_CHECK(put_twins_in(settings, options.twins, known));
  WEIR_TRY(config::Matrix matrix, config::expand(settings));
  const config::Redactor redactor = loaded.known.redactor;
  WEIR_TRY(loaded.cells, config::select(matrix, job.asked.cells, redactor));
  MeasureOptions wanted;
  wanted.plan.times = false;
  wanted.plan.instruction_processes = 0;
  WEIR_TRY(Measured measured, measure_loaded(std::move(loaded), job.below("devices"), wanted)
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
