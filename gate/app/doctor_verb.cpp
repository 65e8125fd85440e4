// weir doctor: what probes can see of a program, and what makes this machine's times worse.
// No engine is started.
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "gate/app/command_line.hpp"
#include "gate/app/doctor_look.hpp"
#include "gate/app/session.hpp"
#include "gate/app/version.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/report/doctor.hpp"
#include "gate/sys/machine_health.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/perf_events.hpp"

namespace weir::app {
namespace {

// Long enough for a share of one per cent of two processors to be a tick of theirs.
constexpr auto k_moment = std::chrono::milliseconds(500);

struct DoctorOptions {
  CommonOptions common;
  std::vector<std::string> engines;
};

// An engine to look at: what it is called, and what weir.yaml says of it.
struct Patient {
  std::string name, program;
  std::string folder = ".";
  config::Environment env;
  std::vector<std::string> probes;
  config::InstructionsBy instructions = config::InstructionsBy::automatic;
  bool in_container = false;
};

Patient patient_of(const config::EngineSettings& engine, const std::string& folder) {
  // A server that runs already has no command.
  const std::string program = engine.command.empty() ? "" : engine.command.front();
  return {engine.name,
          program,
          folder,
          engine.extra.env,
          engine.probes,
          engine.instructions,
          engine.container.has_value()};
}

// Those asked for, else those of weir.yaml, where there is one.
Result<std::vector<Patient>> patients(const DoctorOptions& options, const sys::Files& files) {
  std::vector<Patient> found;
  std::optional<Loaded> loaded;
  const bool all_by_path =
      !options.engines.empty() &&
      std::all_of(options.engines.begin(), options.engines.end(),
                  [](const std::string& name) { return name.find('/') != std::string::npos; });
  if (!all_by_path && files.exists(options.common.config)) {
    WEIR_TRY(loaded, load_config(options.common, files));
  }
  const std::string folder = sys::folder_of(options.common.config);
  const auto configured = [&](const std::string& name) -> const config::EngineSettings* {
    if (!loaded) return nullptr;
    for (const config::EngineSettings& engine : loaded->settings->engines) {
      if (engine.name == name) return &engine;
    }
    return nullptr;
  };
  for (const std::string& name : options.engines) {
    const config::EngineSettings* engine = configured(name);
    found.push_back(engine != nullptr ? patient_of(*engine, folder)
                                      : Patient{name, name, ".", {}, {}, {}, {}});
  }
  if (options.engines.empty() && loaded) {
    for (const config::EngineSettings& engine : loaded->settings->engines) {
      found.push_back(patient_of(engine, folder));
    }
  }
  return found;
}

const char* word_of(probes::Fit::State state) {
  switch (state) {
    case probes::Fit::State::sees:
      return "sees";
    case probes::Fit::State::perhaps:
      return "perhaps";
    case probes::Fit::State::blind:
      return "blind";
    case probes::Fit::State::absent:
      return "absent";
    case probes::Fit::State::unused:
      break;
  }
  return "unused";
}

report::DoctorEngine examine(const Patient& patient, const std::vector<std::string>& installed,
                             const sys::Files& files) {
  report::DoctorEngine engine;
  engine.name = patient.name;
  if (patient.program.empty()) {
    engine.error = "is a server that runs already: there is no program to look at";
    return engine;
  }
  if (patient.in_container) {
    engine.error =
        "runs in a container, where nothing can be looked at from here; take the program and its "
        "libraries out of the image (docker cp) and name its path";
    return engine;
  }
  if (!config::placeholders_in(patient.program).empty()) {
    engine.error =
        fmt::format("{}: which program this is depends on the cell; name it", patient.program);
    return engine;
  }
  const std::string path_variable = sys::environment_value("PATH").value_or("/usr/bin:/bin");
  auto path = sys::find_program(files, patient.program, patient.folder, path_variable);
  // A library or a program without the right to run it can be looked at just as well.
  const std::string as_file = sys::join_path(patient.folder, patient.program);
  if (!path && files.kind(as_file) == sys::Kind::file) path = as_file;
  if (!path) {
    engine.error =
        fmt::format("{}: no such program{}", patient.program,
                    patient.program.find('/') == std::string::npos ? " here or in PATH" : "");
    return engine;
  }
  engine.path = *path;
  const auto facts = probes::look_at_program(
      *path, files, [&](std::string_view name) -> std::optional<std::string> {
        const auto own = patient.env.find(std::string(name));
        if (own != patient.env.end()) return own->second;
        return sys::environment_value(std::string(name));
      });
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
  ways.wants_valgrind = patient.instructions == config::InstructionsBy::valgrind;
  ways.wants_perf = patient.instructions == config::InstructionsBy::perf;
  std::vector<probes::Fit> fits = probes::judge_fit(*facts, installed);
  fits.push_back(probes::judge_instructions(*facts, ways));
  for (probes::Fit& fit : fits) {
    const bool asked =
        std::find(patient.probes.begin(), patient.probes.end(), fit.probe) != patient.probes.end();
    engine.fits.push_back({fit.probe, word_of(fit.state), fit.how, fit.cure, asked});
  }
  return engine;
}

void examine_machine(const sys::Files& files, const sys::Stop& stop, report::Diagnosis& diagnosis) {
  const sys::RealMachineLoad load;
  const auto before = load.ticks();
  std::this_thread::sleep_for(k_moment);
  const auto after = load.ticks();
  sys::MachineHealth health = sys::read_machine_health(files);
  if (before && after) sys::add_activity(health, *before, *after);
  for (sys::GpuHealth& gpu : look_at_nvidia_gpus(files, stop))
    health.gpus.push_back(std::move(gpu));
  sys::HealthReport judged = sys::judge_health(health);
  diagnosis.machine = sys::read_machine(files).name();
  for (sys::HealthFinding& one : judged.findings) {
    diagnosis.findings.push_back(
        {one.subject,
         one.weight == sys::Weight::worse ? report::Health::worse : report::Health::note,
         std::move(one.what), std::move(one.cure)});
  }
  diagnosis.fine = std::move(judged.fine);
  diagnosis.unknown = std::move(judged.unknown);
}

Result<ExitCode> doctor(const DoctorOptions& options) {
  const sys::RealFiles files;
  WEIR_TRY(const std::vector<Patient> to_see, patients(options, files));
  const sys::Interrupts interrupts;
  report::Diagnosis diagnosis;
  diagnosis.weir_version = k_version;
  // First, while nothing of ours runs.
  examine_machine(files, interrupts.stop(), diagnosis);
  look_at_probes(files, diagnosis);
  look_at_devices(files, interrupts.stop(), diagnosis);
  look_at_layers(files, diagnosis);
  bool all_seen = true;
  for (const Patient& patient : to_see) {
    diagnosis.engines.push_back(examine(patient, diagnosis.probes, files));
    all_seen = all_seen && diagnosis.engines.back().error.empty();
  }
  const int stream = answer_stream(options.common);
  answer(options.common,
         report::doctor_text(diagnosis, {width_of(stream), colored(options.common, stream)}));
  WEIR_CHECK(write_json(options.common, report::doctor_json(diagnosis)));
  return all_seen ? ExitCode::pass : ExitCode::unmeasured;
}

}  // namespace

Result<ExitCode> doctor_of(const CommonOptions& common) { return doctor({common, {}}); }

void add_doctor(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "doctor", "What probes can see, and what makes this machine's times worse");
  auto options = std::make_shared<DoctorOptions>();
  verb->add_option("ENGINE", options->engines,
                   "Programs, or engines of weir.yaml (default: all of its engines)");
  CommonOptions& common = options->common;
  verb->add_option("-c,--config", common.config, "The configuration")
      ->type_name("FILE")
      ->capture_default_str();
  verb->add_option("--json", common.json, "Write the result as JSON to FILE, or to standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->default_str("-");
  verb->add_option("--color", common.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  verb->footer(
      "No engine is started: programs are read. Exit code 0, or 3 when one could not be.\n\n"
      "Example:\n  weir doctor build/bin/llama-bench");
  set_action(*verb, [options] { return doctor(*options); });
}

}  // namespace weir::app
