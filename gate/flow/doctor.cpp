#include "gate/flow/doctor.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/flow/configure.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/program.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/report/doctor.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/machine_health.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/perf_events.hpp"
#include "gate/sys/system.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::flow {
namespace {

constexpr double k_doctor_patience_seconds = 30;

// What it printed; an Error in words for people where it did not end well.
Result<std::string> output_of(sys::World& world, std::vector<std::string> argv,
                              const sys::Stop& stop) {
  sys::ProcessSpec spec;
  spec.argv = std::move(argv);
  spec.timeout_seconds = k_doctor_patience_seconds;
  spec.output_limit = std::uint64_t{1} << 20;
  WEIR_TRY(sys::Finished finished, run_program(world, spec, stop));
  const std::string how = failure_words(finished, spec);
  if (how.empty()) return std::move(finished.out);
  return fail(Code::data, "{}, which asks the driver: {}", sys::file_name_of(spec.argv.front()),
              how);
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
    if (!json) continue;
    const Json& layer = below(*json, "layer");
    if (!layer.is_object()) continue;
    const auto layer_name = JsonReader(layer, name).optional_string("name");
    if (layer_name && !holds(out, *layer_name)) out.push_back(*layer_name);
  }
}

void look_at_probes(const sys::World& world, report::Diagnosis& diagnosis) {
  const auto places = probe_places(world);
  if (!places) {
    diagnosis.probes_error = places.error().message;
    return;
  }
  for (const auto& [name, devices] : probes::probe_devices()) {
    const auto there =
        probes::environment_for(name, *places, "/", world.files, variables_of(world));
    if (there) {
      diagnosis.probes.push_back(name);
    } else {
      diagnosis.probes_error +=
          (diagnosis.probes_error.empty() ? "" : "; ") + there.error().message;
    }
  }
}

void look_at_devices(sys::World& world, const sys::Stop& stop, report::Diagnosis& diagnosis) {
  const auto places = probe_places(world);
  if (!places || places->devices_program.empty()) {
    diagnosis.device_errors.emplace_back(
        "vulkan", sys::k_on_macos ? "weir-devices, which would ask, is not on macOS"
                                  : "nobody to ask: weir-devices is not beside the probes");
    return;
  }
  const auto text = output_of(world, {places->devices_program}, stop);
  const auto read = text ? read_devices(*text, diagnosis) : tl::unexpected(text.error());
  if (!read) diagnosis.device_errors.emplace_back("vulkan", read.error().message);
}

void look_at_layers(const sys::World& world, report::Diagnosis& diagnosis) {
  std::vector<std::string> roots{"/etc", "/usr/local/etc", "/usr/local/share", "/usr/share"};
  if (const auto home = world.environment("HOME")) {
    roots.push_back(sys::join_path(*home, ".config"));
    roots.push_back(sys::join_path(*home, ".local/share"));
  }
  for (const std::string& root : roots) {
    add_layers(world.files, root + "/vulkan/implicit_layer.d", diagnosis.always_layers);
    add_layers(world.files, root + "/vulkan/explicit_layer.d", diagnosis.layers);
  }
}

std::vector<sys::GpuHealth> look_at_nvidia_gpus(sys::World& world, const sys::Stop& stop) {
  const std::string path = world.environment("PATH").value_or("/usr/bin:/bin");
  const auto program = sys::find_program(world.files, "nvidia-smi", ".", path);
  if (!program) return {};
  const auto text = output_of(world,
                              {*program, fmt::format("--query-gpu={}", sys::k_nvidia_fields),
                               "--format=csv,noheader,nounits"},
                              stop);
  return text ? sys::parse_nvidia_smi(*text) : std::vector<sys::GpuHealth>();
}

// Long enough for a share of one per cent of two processors to be a tick of theirs.
constexpr double k_moment_seconds = 0.5;

// An engine to look at, as weir.yaml has it; a program that it does not have is one by its path.
struct Patient {
  config::EngineSettings engine;
  std::string folder = ".";
};

// Those asked for, else those of weir.yaml, where there is one.
Result<std::vector<Patient>> patients(const Job& job, const DoctorOptions& options) {
  std::vector<Patient> found;
  std::optional<Loaded> loaded;
  const bool all_by_path =
      !options.engines.empty() && std::ranges::all_of(options.engines, [](const std::string& name) {
        return name.find('/') != std::string::npos;
      });
  if (!all_by_path && job.files().exists(job.asked.config)) WEIR_SET(loaded, load_config(job));
  const std::string folder = sys::folder_of(job.asked.config);
  const std::vector<config::EngineSettings> none;
  const auto& engines = loaded ? loaded->known.settings->engines : none;
  for (const std::string& name : options.engines) {
    Patient& patient = found.emplace_back();
    if (const auto* engine = find_named(engines, name)) {
      patient = {*engine, folder};
    } else {
      patient.engine.name = name;
      patient.engine.command = {name};
    }
  }
  if (!options.engines.empty()) return found;
  for (const config::EngineSettings& engine : engines) found.push_back({engine, folder});
  return found;
}

constexpr auto k_fit_words =
    names_in_order<probes::Fit::State>("sees", "perhaps", "blind", "absent", "unused");

// Where its program is, or why there is none to look at.
Result<std::string> program_of(const Patient& patient, const std::string& path_variable,
                               const sys::Files& files) {
  const config::EngineSettings& asked = patient.engine;
  if (asked.command.empty()) {
    return fail(Code::data, "is a server that runs already: there is no program to look at");
  }
  const std::string& program = asked.command.front();
  if (asked.container) {
    return fail(
        Code::data,
        "runs in a container, where nothing can be looked at from here; take the program and its "
        "libraries out of the image (docker cp) and name its path");
  }
  if (!config::placeholders_in(program).empty()) {
    return fail(Code::data, "{}: which program this is depends on the cell; name it", program);
  }
  if (auto path = sys::find_program(files, program, patient.folder, path_variable)) return *path;
  // A library or a program without the right to run it can be looked at just as well.
  const std::string as_file = sys::join_path(patient.folder, program);
  if (files.kind(as_file) == sys::Kind::file) return as_file;
  return fail(Code::data, "{}: no such program{}", program,
              program.find('/') == std::string::npos ? " here or in PATH" : "");
}

report::DoctorEngine examine(const Patient& patient, const std::vector<std::string>& installed,
                             sys::World& world) {
  const sys::Files& files = world.files;
  const config::EngineSettings& asked = patient.engine;
  report::DoctorEngine engine;
  engine.name = asked.name;
  const std::string path_variable = world.environment("PATH").value_or("/usr/bin:/bin");
  const auto path = program_of(patient, path_variable, files);
  engine.path = path.value_or("");
  const auto variable = [&](std::string_view name) -> std::optional<std::string> {
    const std::string* own = look_up(asked.extra.env, std::string(name));
    return own != nullptr ? *own : world.environment(std::string(name));
  };
  const auto facts = path.and_then(
      [&](const std::string& at) { return probes::look_at_program(at, files, variable); });
  if (!facts) {
    engine.error = facts.error().message;
    return engine;
  }
  if (!facts->missing.empty()) {
    engine.findings.push_back({"libraries", report::Health::worse,
                               fmt::format("not found: {}", text::join(facts->missing)),
                               "Install them, or set LD_LIBRARY_PATH in the engine's env"});
  }
  for (const std::string& why : facts->unreadable) {
    engine.findings.push_back(
        {"libraries", report::Health::note, why, "Build or install it again"});
  }
  probes::InstructionWays ways;
  ways.no_perf = sys::why_not_counted(sys::instructions_event());
  ways.has_valgrind = sys::find_program(files, "valgrind", ".", path_variable).has_value();
  ways.wants_valgrind = asked.instructions == config::InstructionsBy::valgrind;
  ways.wants_perf = asked.instructions == config::InstructionsBy::perf;
  std::vector<probes::Fit> fits = probes::judge_fit(*facts, installed);
  fits.push_back(probes::judge_instructions(*facts, ways));
  fits.push_back(probes::judge_host(*facts, sys::why_not_traced(world.processes)));
  for (probes::Fit& fit : fits) {
    engine.fits.push_back({fit.probe, std::string(name_of(k_fit_words, fit.state)), fit.how,
                           fit.cure, holds(asked.probes, fit.probe)});
  }
  return engine;
}

// "counted 585 dispatches, 414 barriers, 9 syncs on llvmpipe": what tells most; "" of no work.
std::string seen_words(const profile::ProbeCounts& seen, const std::string& devices) {
  std::vector<std::string> words;
  for (const char* count : {"dispatches", "barriers", "syncs", "graphs"}) {
    const std::int64_t number = look_up(seen.counts, count, 0);
    if (number > 0) words.push_back(fmt::format("{} {}", number, count));
  }
  if (words.empty()) return "";
  return fmt::format("counted {}{}", text::join(words), devices.empty() ? "" : " on " + devices);
}

// Runs the command, and says of each probe what it saw in place of what its file lets hope for.
Result<void> try_out(const Job& job, const DoctorOptions& options, const sys::Stop& stop,
                     report::DoctorEngine& engine) {
  constexpr double k_patience = 600;
  WEIR_TRY(sys::ProcessSpec spec, command_spec(job, options.words, k_patience));
  WEIR_TRY(const auto probing, make_probing(job.world));
  WEIR_TRY(const sys::ScratchFolder scratch,
           sys::ScratchFolder::make_temporary(job.files(), "weir-doctor-"));
  const std::string& folder = scratch.path();
  const auto probes = fitting_probes(job, spec.argv.front(), *probing, folder);
  WEIR_CHECK(attach_probes(*probing, probes, folder, {}, spec));
  job.talk(fmt::format("running {} with {}", text::join(options.words, " "), text::join(probes)));
  auto finished = run_program(job.world, spec, stop, true);
  auto counts = probing->collect(probes, folder);
  WEIR_CHECK(finished);
  WEIR_TRY(const auto all, std::move(counts));
  if (const std::string how = failure_words(*finished, spec); !how.empty()) {
    talk_of(job, finished->err);
    engine.findings.push_back({"command", report::Health::worse, how, "See what it said above"});
  }
  for (report::DoctorFit& fit : engine.fits) {
    if (!holds(probes, fit.probe)) continue;
    using State = probes::Fit::State;
    const auto* seen = first_of(all, [&](const auto& one) { return one.probe == fit.probe; });
    const std::string devices =
        seen == nullptr
            ? ""
            : text::join(collect<std::string>(seen->devices, &profile::DeviceSeen::name));
    fit.how = seen == nullptr ? "" : seen_words(*seen, devices);
    const State state = !fit.how.empty()   ? State::sees
                        : !devices.empty() ? State::perhaps
                                           : State::unused;
    if (state == State::perhaps) fit.how = "the command opened " + devices + " and gave it no work";
    fit.state = name_of(k_fit_words, state);
    fit.cure.clear();
  }
  return {};
}

void examine_machine(sys::World& world, const sys::Stop& stop, report::Diagnosis& diagnosis) {
  const auto before = world.load.ticks();
  (void)world.pause.wait(k_moment_seconds, sys::Stop());
  const auto after = world.load.ticks();
  sys::MachineHealth health = sys::read_machine_health(world.files);
  if (before && after) sys::add_activity(health, *before, *after);
  for (sys::GpuHealth& gpu : look_at_nvidia_gpus(world, stop)) {
    health.gpus.push_back(std::move(gpu));
  }
  sys::HealthReport judged = sys::judge_health(health);
  diagnosis.machine = sys::read_machine(world.files).name();
  for (sys::HealthFinding& one : judged.findings) {
    diagnosis.findings.push_back(
        {one.subject,
         one.weight == sys::Weight::worse ? report::Health::worse : report::Health::note,
         std::move(one.what), std::move(one.cure)});
  }
  diagnosis.fine = std::move(judged.fine);
  diagnosis.unknown = std::move(judged.unknown);
}

}  // namespace

Result<Answer> doctor(const Job& job, const DoctorOptions& options) {
  DoctorOptions asked = options;
  if (!options.words.empty()) {
    if (!options.engines.empty()) {
      return fail(Code::usage, "name programs, or a command after --, not both");
    }
    // A path, so that it is no engine of weir.yaml.
    WEIR_TRY(const sys::ProcessSpec spec, command_spec(job, options.words, 1));
    asked.engines = {spec.argv.front()};
  }
  WEIR_TRY(const std::vector<Patient> to_see, patients(job, asked));
  const sys::Interrupts interrupts;
  report::Diagnosis diagnosis;
  diagnosis.weir_version = k_version;
  // First, while nothing of ours runs.
  examine_machine(job.world, interrupts.stop(), diagnosis);
  look_at_probes(job.world, diagnosis);
  look_at_devices(job.world, interrupts.stop(), diagnosis);
  look_at_layers(job.world, diagnosis);
  if (const std::string names = sys::withheld_names({}); !names.empty()) {
    diagnosis.findings.push_back({"environment", report::Health::note,
                                  "withheld from engines and builds: " + names,
                                  std::string(k_pass_through)});
  }
  bool all_seen = true;
  for (const Patient& patient : to_see) {
    diagnosis.engines.push_back(examine(patient, diagnosis.probes, job.world));
    if (!options.words.empty()) {
      WEIR_CHECK(try_out(job, options, interrupts.stop(), diagnosis.engines.back()));
    }
    all_seen = all_seen && diagnosis.engines.back().error.empty();
  }
  return Answer{report::doctor_text(diagnosis, {job.width(), job.colored()}),
                report::doctor_json(diagnosis), all_seen ? ExitCode::pass : ExitCode::unmeasured};
}

}  // namespace weir::flow
