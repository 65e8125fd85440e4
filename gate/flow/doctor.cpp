// weir doctor: examines probes, devices, layers, engines and the noise of this machine.
#include "gate/flow/doctor.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/flow/configure.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/program.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/probes/read/runtime_api.hpp"
#include "gate/report/doctor.hpp"
#include "gate/run/engine_call.hpp"
#include "gate/run/engine_run.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/machine_health.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/perf_events.hpp"
#include "gate/sys/system.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::flow {
namespace {

constexpr double k_doctor_patience_seconds = 30;

// Runs a program and returns its output; an error for people if it does not end well.
Result<std::string> read_output(sys::World& world, std::vector<std::string> argv,
                                const sys::Stop& stop) {
  sys::ProcessSpec spec;
  spec.argv = std::move(argv);
  spec.timeout_seconds = k_doctor_patience_seconds;
  spec.output_limit = std::uint64_t{1} << 20;
  WEIR_TRY(sys::Finished finished, run_program(world, spec, stop));
  const std::string failure = failure_text(finished, spec);
  if (failure.empty()) return std::move(finished.out);
  return fail(Code::data, "{}, which asks the driver: {}", sys::file_name_of(spec.argv.front()),
              failure);
}

// Reads the JSON that weir-devices printed: devices and errors for each API.
Result<void> read_devices(const std::string& text, report::Diagnosis& diagnosis) {
  WEIR_TRY(const Json json, parse_json(text, {.bytes = std::size_t{1} << 20, .depth = 8}));
  JsonReader read(json, "weir-devices");
  for (const unit::DeviceApi& device_api : unit::device_apis()) {
    const char* api = device_api.name;
    if (!read.has(api)) continue;  // an older weir-devices does not list this API
    const std::size_t before = diagnosis.devices.size();
    for (const Json& device : read.array(api)) {
      JsonReader fields(device, fmt::format("weir-devices: {}", api));
      diagnosis.devices.push_back({api, fields.string("name"),
                                   fields.optional_string("type").value_or(""),
                                   fields.optional_string("driver").value_or("")});
      if (auto problem = fields.problem()) return tl::unexpected(*problem);
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

// Adds the names of the Vulkan layers whose manifests lie in `folder`.
void add_layers(const sys::Files& files, const std::string& folder,
                std::vector<std::string>& layers) {
  constexpr std::size_t k_max_layers = 64;
  const auto names = files.list(folder);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.ends_with(".json") || layers.size() == k_max_layers) continue;
    const auto text = files.read(sys::join_path(folder, name), std::uint64_t{1} << 20);
    const auto json = text ? parse_json(*text) : tl::unexpected(text.error());
    if (!json) continue;
    const Json& layer = member_or_null(*json, "layer");
    if (!layer.is_object()) continue;
    const auto layer_name = JsonReader(layer, name).optional_string("name");
    if (layer_name && !holds(layers, *layer_name)) layers.push_back(*layer_name);
  }
}

// Lists the probes (libraries that count an engine's work) that can be attached here, and why
// others cannot.
void examine_probes(const sys::World& world, report::Diagnosis& diagnosis) {
  const auto places = probe_places(world);
  if (!places) {
    diagnosis.probes_error = places.error().message;
    return;
  }
  for (const auto& [name, devices] : probes::probe_devices()) {
    const auto environment =
        probes::environment_for(name, *places, "/", world.files, environment_reader(world));
    if (environment) {
      diagnosis.probes.push_back(name);
    } else {
      diagnosis.probes_error +=
          (diagnosis.probes_error.empty() ? "" : "; ") + environment.error().message;
    }
  }
}

// Lists the devices of the drivers on this machine, or why they cannot be asked.
void examine_devices(sys::World& world, const sys::Stop& stop, report::Diagnosis& diagnosis) {
  const auto places = probe_places(world);
  if (!places || places->devices_program.empty()) {
    diagnosis.device_errors.emplace_back(
        "vulkan", sys::k_on_macos ? "weir-devices, which would ask, is not on macOS"
                                  : "nobody to ask: weir-devices is not beside the probes");
    return;
  }
  const auto text = read_output(world, {places->devices_program}, stop);
  const auto parsed = text ? read_devices(*text, diagnosis) : tl::unexpected(text.error());
  if (!parsed) diagnosis.device_errors.emplace_back("vulkan", parsed.error().message);
}

// Lists the Vulkan layers that are installed on this machine.
void examine_layers(const sys::World& world, report::Diagnosis& diagnosis) {
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

std::vector<sys::GpuHealth> read_nvidia_gpus(sys::World& world, const sys::Stop& stop) {
  const std::string path = world.environment("PATH").value_or("/usr/bin:/bin");
  const auto program = sys::find_program(world.files, "nvidia-smi", ".", path);
  if (!program) return {};
  const auto text = read_output(world,
                                {*program, fmt::format("--query-gpu={}", sys::k_nvidia_fields),
                                 "--format=csv,noheader,nounits"},
                                stop);
  return text ? sys::parse_nvidia_smi(*text) : std::vector<sys::GpuHealth>();
}

// One per cent of two processors over this time is at least one tick of their load counters.
constexpr double k_moment_seconds = 0.5;

// An engine to examine: one of weir.yaml, or a program given by its path.
struct EngineToCheck {
  config::EngineSettings engine;
  std::string folder = ".";
};

// Returns the engines that the options name, else all of weir.yaml that the selected cells use.
Result<std::vector<EngineToCheck>> engines_to_check(const Job& job, const DoctorOptions& options) {
  std::vector<EngineToCheck> result;
  std::optional<LoadedConfig> loaded;
  const bool all_by_path =
      !options.engines.empty() && std::ranges::all_of(options.engines, [](const std::string& name) {
        return name.find('/') != std::string::npos;
      });
  if (!all_by_path && job.files().exists(job.selection.config))
    WEIR_TRY_SET(loaded, load_config(job));
  const std::string folder = sys::folder_of(job.selection.config);
  const std::vector<config::EngineSettings> no_engines;
  const auto& engines = loaded ? loaded->configuration.settings->engines : no_engines;
  for (const std::string& name : options.engines) {
    EngineToCheck& engine_to_check = result.emplace_back();
    if (const auto* engine = find_named(engines, name)) {
      engine_to_check = {*engine, folder};
    } else {
      engine_to_check.engine.name = name;
      engine_to_check.engine.command = {name};
    }
  }
  if (!options.engines.empty()) return result;
  for (const config::EngineSettings& engine : engines) {
    const bool is_selected = std::ranges::any_of(loaded->cells, [&](const config::Cell& cell) {
      return cell.engine != nullptr && cell.engine->name == engine.name;
    });
    // A request shows what a server does, unless probes are to see it.
    const bool is_asked_alone = engine.server && engine.probes.empty();
    const bool is_left_out = is_asked_alone || !is_selected;
    if (job.selection.cells.empty() || !is_left_out) result.push_back({engine, folder});
  }
  return result;
}

constexpr auto k_fit_names =
    names_in_order<probes::Fit::State>("sees", "perhaps", "blind", "absent", "unused");

// Returns the path of the engine's program; an error that says why there is none to examine.
Result<std::string> find_program(const EngineToCheck& engine_to_check,
                                 const std::string& path_variable, const sys::Files& files) {
  const config::EngineSettings& settings = engine_to_check.engine;
  if (settings.command.empty()) {
    return fail(Code::data, "is a server that runs already: there is no program to look at");
  }
  const std::string& program = settings.command.front();
  if (settings.container) {
    return fail(
        Code::data,
        "runs in a container, where nothing can be looked at from here; take the program and its "
        "libraries out of the image (docker cp) and name its path");
  }
  if (!config::placeholders_in(program).empty()) {
    return fail(Code::data, "{}: which program this is depends on the cell; name it", program);
  }
  if (auto path = sys::find_program(files, program, engine_to_check.folder, path_variable))
    return *path;
  // A library, or a program without permission to run, can be examined as well.
  const std::string as_file = sys::join_path(engine_to_check.folder, program);
  if (files.kind(as_file) == sys::Kind::file) return as_file;
  return fail(Code::data, "{}: no such program{}", program,
              program.find('/') == std::string::npos ? " here or in PATH" : "");
}

// Returns true for libraries of a GPU's API that its device twins stand in for.
bool is_brought_by_a_twin(const std::string& library) {
  return std::ranges::any_of(probes::runtime_apis(), [&](const probes::RuntimeApi* api) {
    return probes::is_library_of(*api, library);
  });
}

// Examines one engine: its program, the libraries it needs, and which probes fit.
report::DoctorEngine examine(const EngineToCheck& engine_to_check,
                             const std::vector<std::string>& installed, sys::World& world) {
  const sys::Files& files = world.files;
  const config::EngineSettings& settings = engine_to_check.engine;
  report::DoctorEngine engine;
  engine.name = settings.name;
  const std::string path_variable = world.environment("PATH").value_or("/usr/bin:/bin");
  const auto path = find_program(engine_to_check, path_variable, files);
  engine.path = path.value_or("");
  const auto variable = [&](std::string_view name) -> std::optional<std::string> {
    const std::string* engine_value = look_up(settings.extra.env, std::string(name));
    return engine_value != nullptr ? *engine_value : world.environment(std::string(name));
  };
  const auto facts = path.and_then([&](const std::string& program_path) {
    return probes::read_program_facts(program_path, files, variable);
  });
  if (!facts) {
    engine.error = facts.error().message;
    return engine;
  }
  std::vector<std::string> missing = facts->missing, of_gpu;
  std::ranges::copy_if(missing, std::back_inserter(of_gpu), is_brought_by_a_twin);
  std::erase_if(missing, is_brought_by_a_twin);
  if (!missing.empty()) {
    engine.findings.push_back({"libraries", report::Health::worse,
                               fmt::format("not found: {}", text::join(missing)),
                               "Install them, or set LD_LIBRARY_PATH in the engine's env"});
  }
  if (!of_gpu.empty()) {
    engine.findings.push_back({"libraries", report::Health::note,
                               fmt::format("not found: {}", text::join(of_gpu)),
                               "A device twin brings them; a real GPU needs them installed"});
  }
  for (const std::string& why : facts->unreadable) {
    engine.findings.push_back(
        {"libraries", report::Health::note, why, "Build or install it again"});
  }
  probes::InstructionSupport ways;
  ways.no_perf = sys::counter_problem(sys::instructions_event());
  ways.has_valgrind = sys::find_program(files, "valgrind", ".", path_variable).has_value();
  ways.wants_valgrind = settings.instructions == config::InstructionsBy::valgrind;
  ways.wants_perf = settings.instructions == config::InstructionsBy::perf;
  std::vector<probes::Fit> fits = probes::judge_fit(*facts, installed);
  fits.push_back(probes::judge_instructions(*facts, ways));
  fits.push_back(probes::judge_host(*facts, sys::trace_problem(world.processes)));
  // A server takes no such probe.
  if (auto fit = probes::judge_python(*facts); fit && !settings.server) {
    fits.push_back(*std::move(fit));
  }
  for (probes::Fit& fit : fits) {
    engine.fits.push_back({fit.probe, std::string(name_of(k_fit_names, fit.state)), fit.how,
                           fit.cure, holds(settings.probes, fit.probe)});
  }
  return engine;
}

// Returns the main counts, such as "counted 585 dispatches, 414 barriers, 9 syncs on llvmpipe"; ""
// if nothing was counted.
std::string count_text(const profile::ProbeCounts& counts, const std::string& devices) {
  std::vector<std::string> parts;
  for (const char* count : {"dispatches", "barriers", "syncs", "graphs"}) {
    const std::int64_t number = look_up(counts.counts, count, 0);
    if (number > 0) parts.push_back(fmt::format("{} {}", number, count));
  }
  if (parts.empty()) return "";
  return fmt::format("counted {}{}", text::join(parts), text::prefix_if_any(" on ", devices));
}

// Runs the command with its probes. What each probe counted replaces the guess from the program's
// file.
Result<void> check_by_running(const Job& job, const DoctorOptions& options, const sys::Stop& stop,
                              report::DoctorEngine& engine) {
  constexpr double k_patience = 600;
  WEIR_TRY(sys::ProcessSpec spec, command_spec(job, options.trailing_arguments, k_patience));
  WEIR_TRY(const auto probing, make_probing(job.world));
  WEIR_TRY(const sys::ScratchFolder scratch,
           sys::ScratchFolder::make_temporary(job.files(), "weir-doctor-"));
  const std::string& folder = scratch.path();
  const auto probes = fitting_probes(job, spec.argv.front(), *probing, folder);
  WEIR_CHECK(attach_probes(*probing, probes, folder, {}, spec));
  job.log(fmt::format("running {} with {}", text::join(options.trailing_arguments, " "),
                      text::join(probes)));
  auto finished = run_program(job.world, spec, stop, /*has_to=*/true);
  auto counts = probing->collect(probes, folder, {});
  WEIR_CHECK(finished);
  WEIR_TRY(const auto collected, std::move(counts));
  if (const std::string failure = failure_text(*finished, spec); !failure.empty()) {
    talk_output(job, sys::error_output(*finished));
    engine.findings.push_back(
        {"command", report::Health::worse, failure, "See what it said above"});
  }
  for (report::DoctorFit& fit : engine.fits) {
    if (!holds(probes, fit.probe)) continue;
    using State = probes::Fit::State;
    const auto* probe_counts =
        find_first(collected, [&](const auto& of_probe) { return of_probe.probe == fit.probe; });
    const std::string devices =
        probe_counts == nullptr
            ? ""
            : text::join(collect<std::string>(probe_counts->devices, &profile::ProbedDevice::name));
    fit.how = probe_counts == nullptr ? "" : count_text(*probe_counts, devices);
    State state = State::unused;
    if (!fit.how.empty()) {
      state = State::sees;
    } else if (!devices.empty()) {
      state = State::may_see;
      fit.how = "the command opened " + devices + " and gave it no work";
    }
    fit.state = name_of(k_fit_names, state);
    fit.cure.clear();
  }
  return {};
}

// Returns a command as a shell takes it, with the variables that the cell sets.
std::string shell_line(const sys::ProcessSpec& spec) {
  std::vector<std::string> words;
  for (const auto& [name, value] : spec.env) {
    words.push_back(name + "=" + text::shell_word(value));
  }
  for (const std::string& word : spec.argv) words.push_back(text::shell_word(word));
  return text::join(words, " ");
}

// Starts the server of a command, without probes, and sends it one request after its warm-up.
// Stores the outcome in `result`.
Result<void> ask_server(const Job& job, const PlannedCommand& command, const std::string& folder,
                        const config::Redactor& redactor, const sys::Stop& stop,
                        report::DoctorCommand& result) {
  const run::Plan& plan = command.ready->plan;
  run::Step step = plan.steps[command.step];
  run::PreparedCell cell = plan.cell_of(step);
  step.pass = profile::Pass::counted;  // neither a duration nor a search of the capacity
  step.parameters.repeats = 1;
  cell.probes.clear();
  WEIR_TRY(const auto probing, make_probing(job.world, /*needed=*/false));
  run::NoProgress progress;
  const run::Effects effects{job.world.processes, job.files(), job.world.clock, job.world.locks,
                             job.world.load,      *probing,    progress,        stop};
  WEIR_TRY(auto record, run::run_engine(effects, folder, cell, step, /*attempt=*/1));
  if (!record) return fail(Code::interrupted, "interrupted");
  if (record->error) {
    result.outcome = redactor.text(text::first_line(*record->error));
    const auto lines = text::lines(*record->error);
    for (std::size_t i = 1; i < lines.size(); ++i)
      result.unread.push_back(redactor.text(std::string(lines[i])));
  } else {
    result.answered = true;
    // Judged as a timed run is.
    record->pass = profile::Pass::timed;
    const profile::Profile measured = profile::assemble(cell.facts, {&*record, 1});
    for (const std::string& line : measured.errors) result.unread.push_back(redactor.text(line));
    for (const std::string& line : measured.warnings)
      result.warnings.push_back(redactor.text(line));
  }
  result.err = text::lines(redactor.text(record->stderr_tail));
  return {};
}

// Runs the first command of each selected cell as a gate does, without probes, and returns how each
// ended and what it printed.
Result<std::vector<report::DoctorCommand>> run_cells(const Job& job, const sys::Stop& stop) {
  constexpr std::size_t k_max_cells = 8;
  WEIR_TRY(LoadedConfig loaded, load_config(job));
  const config::Redactor redactor = loaded.configuration.redactor;
  if (loaded.cells.size() > k_max_cells) {
    return fail(Code::usage, "--cell: {} cells; doctor runs at most {}", loaded.cells.size(),
                k_max_cells);
  }
  WEIR_TRY(const sys::ScratchFolder scratch,
           sys::ScratchFolder::make_temporary(job.files(), "weir-doctor-"));
  const std::string out = scratch.path() + "/out", probes = scratch.path() + "/probes";
  WEIR_TRY(const PlannedCommands planned,
           planned_commands(std::move(loaded), job, {}, {out, probes}));
  std::vector<report::DoctorCommand> commands;
  for (const auto& [cell, reason] : planned.unavailable) {
    report::DoctorCommand result;
    result.cell = redactor.cell_name(cell);
    result.unread = text::lines(redactor.text(reason));
    commands.push_back(std::move(result));
  }
  for (const PlannedCommand& command : planned.commands) {
    const std::string cell = redactor.cell_name(command.cell);
    if (find_first(commands, [&](const auto& other) { return other.cell == cell; })) continue;
    report::DoctorCommand result;
    result.cell = cell;
    result.line = redactor.text(shell_line(command.spec));
    result.folder = redactor.text(command.spec.folder);
    job.log("running " + cell);
    if (command.serves) {
      WEIR_CHECK(ask_server(job, command, scratch.path(), redactor, stop, result));
    } else {
      for (const std::string& folder : {out, probes}) WEIR_CHECK(job.files().make_dirs(folder));
      WEIR_TRY(const sys::Finished finished, run_program(job.world, command.spec, stop));
      result.outcome = failure_text(finished, command.spec);
      result.out = text::lines(redactor.text(run::last_lines(finished.out)));
      result.err = text::lines(redactor.text(run::last_lines(finished.err)));
      const run::Plan& plan = command.ready->plan;
      const run::Step& step = plan.steps[command.step];
      const auto report = run::read_report(plan.cell_of(step), step, finished);
      if (result.outcome.empty() && !report)
        result.unread = text::lines(redactor.text(report.error().message));
    }
    commands.push_back(std::move(result));
  }
  return commands;
}

// Judges the health of this machine for measuring times: load, frequencies, GPUs.
void examine_machine(sys::World& world, const sys::Stop& stop, report::Diagnosis& diagnosis) {
  const auto before = world.load.ticks();
  (void)world.pause.wait(k_moment_seconds, sys::Stop());
  const auto after = world.load.ticks();
  sys::MachineHealth health = sys::read_machine_health(world.files);
  if (before && after) sys::add_activity(health, *before, *after);
  for (sys::GpuHealth& gpu : read_nvidia_gpus(world, stop)) {
    health.gpus.push_back(std::move(gpu));
  }
  sys::HealthReport judged = sys::judge_health(health);
  diagnosis.machine = sys::read_machine(world.files).name();
  for (sys::HealthFinding& finding : judged.findings) {
    diagnosis.findings.push_back(
        {finding.subject,
         finding.weight == sys::Weight::worse ? report::Health::worse : report::Health::note,
         std::move(finding.what), std::move(finding.cure)});
  }
  diagnosis.fine = std::move(judged.fine);
  diagnosis.unknown = std::move(judged.unknown);
}

}  // namespace

// Examines the machine, its devices and probes, and each engine. With a command after "--" also
// what the probes see in it; with --cell how the cell's command ends.
Result<Answer> doctor(const Job& job, const DoctorOptions& options) {
  DoctorOptions resolved = options;
  if (!options.trailing_arguments.empty()) {
    if (!options.engines.empty()) {
      return fail(Code::usage, "name programs, or a command after --, not both");
    }
    // A path, so that no engine of weir.yaml has this name.
    WEIR_TRY(const sys::ProcessSpec spec, command_spec(job, options.trailing_arguments, 1));
    resolved.engines = {spec.argv.front()};
  }
  WEIR_TRY(const std::vector<EngineToCheck> to_check, engines_to_check(job, resolved));
  const sys::Interrupts interrupts;
  report::Diagnosis diagnosis;
  diagnosis.weir_version = k_version;
  // First, while none of our processes runs.
  examine_machine(job.world, interrupts.stop(), diagnosis);
  if (job.selection.cells.empty() || !to_check.empty()) {
    examine_probes(job.world, diagnosis);
    examine_devices(job.world, interrupts.stop(), diagnosis);
    examine_layers(job.world, diagnosis);
  }
  if (const std::string names = sys::withheld_names({}); !names.empty()) {
    diagnosis.findings.push_back({"environment", report::Health::note,
                                  "withheld from engines and builds: " + names,
                                  std::string(k_pass_through)});
  }
  if (!job.selection.cells.empty()) {
    WEIR_TRY(diagnosis.commands, run_cells(job, interrupts.stop()));
  }
  bool all_found = std::ranges::none_of(diagnosis.commands, &report::DoctorCommand::has_failed);
  for (const EngineToCheck& engine_to_check : to_check) {
    diagnosis.engines.push_back(examine(engine_to_check, diagnosis.probes, job.world));
    if (!options.trailing_arguments.empty()) {
      WEIR_CHECK(check_by_running(job, options, interrupts.stop(), diagnosis.engines.back()));
    }
    all_found = all_found && diagnosis.engines.back().error.empty();
  }
  diagnosis.is_idle =
      resolved.engines.empty() && job.selection.cells.empty() && !diagnosis.engines.empty();
  return Answer{report::doctor_text(diagnosis, {job.width(), job.colored()}),
                report::doctor_json(diagnosis), all_found ? ExitCode::pass : ExitCode::unmeasured};
}

}  // namespace weir::flow
