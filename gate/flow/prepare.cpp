
#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/kernel_code.hpp"
#include "gate/flow/measure.hpp"
#include "gate/probes/read/instructions.hpp"
#include "gate/run/container.hpp"
#include "gate/run/engine_call.hpp"
#include "gate/run/environment.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/perf_events.hpp"

namespace weir::flow {
namespace {

// Cells whose environments differ may see different devices (another driver, say): each distinct
// pair of device and environment is asked about once, and its cells are checked together.
Result<std::vector<run::PreparedCell>> prepare(const std::vector<config::Cell>& cells,
                                               const run::Surroundings& shared, sys::World& world,
                                               const sys::Stop& stop) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string key = cells[i].twin ? "twin" : cells[i].device;
    for (const auto& [name, value] : cells[i].env) key += fmt::format("\n{}={}", name, value);
    if (cells[i].device == "cpu") key = "cpu";
    if (cells[i].engine->container) key = "container";
    if (!cells[i].results.empty()) key = "results";
    groups[key].push_back(i);
  }
  std::vector<run::PreparedCell> prepared(cells.size());
  std::vector<std::string> problems;
  for (const auto& [key, members] : groups) {
    run::Surroundings surroundings = shared;
    const auto group = collect<config::Cell>(
        members, [&](std::size_t i) -> const auto& { return cells[i]; });
    // What devices there are in a container, only what runs in it can tell.
    const config::Cell& first = group.front();
    if (!first.twin && !first.engine->container && first.results.empty())
      WEIR_SET(surroundings.devices, look_for_devices(first, shared.machine, world, stop));
    auto ready = run::preflight(group, surroundings, world.files);
    if (!ready) {
      if (ready.error().code != Code::config) return tl::unexpected(std::move(ready).error());
      for (std::string& line : text::lines(ready.error().message)) {
        if (!holds(problems, line)) problems.push_back(std::move(line));
      }
      continue;
    }
    for (std::size_t k = 0; k < members.size(); ++k) prepared[members[k]] = std::move((*ready)[k]);
  }
  if (!problems.empty()) return fail(Code::config, "{}", text::join(problems, "\n"));
  return prepared;
}

// Asks containers, and nodes of Slurm, which GPUs they have: times depend on them, and counts that
// are accepted take times along. Once for cells that are started in the same way.
Result<void> name_gpus(Loaded& loaded, const Job& job, const sys::Stop& stop) {
  std::map<config::Arguments, std::string> known;
  for (config::Cell& cell : loaded.cells) {
    const bool is_inside = cell.engine->container && !cell.twin && cell.device != "cpu";
    if (!is_inside || !cell.gpu.empty() || !cell.results.empty()) continue;
    const auto key = config::asking_inside(cell.command, cell.engine->container->runtime, {"gpu"});
    const auto [at, is_new] = known.try_emplace(key.value_or(cell.command));
    if (is_new) {
      job.talk(fmt::format("asking the container of {} for its GPU", cell.key.engine));
      auto gpu = gpu_inside(cell, job, stop);
      if (!gpu && gpu.error().code == Code::interrupted) return tl::unexpected(gpu.error());
      if (gpu) {
        at->second = std::move(*gpu);
      } else if (cell.device == "cuda" || cell.device == "hip") {
        loaded.known.notes.push_back(fmt::format(
            "{}: its GPU is not part of the machine class: {}; write \"gpu: NAME\" at the backend",
            cell.key.engine, text::first_line(gpu.error().message)));
      }
    }
    cell.gpu = at->second;
  }
  return {};
}

std::map<std::string, Secret> tokens_of(const std::vector<config::Cell>& cells,
                                        const sys::World& world) {
  std::map<std::string, Secret> tokens;
  for (const config::Cell& cell : cells) {
    const std::string variable = cell.engine->server ? cell.engine->server->token_env : "";
    auto held = variable.empty() ? std::nullopt : world.environment(variable);
    if (held) tokens[variable] = Secret(std::move(*held));
  }
  return tokens;
}

}  // namespace

Result<Ready> make_ready(Loaded loaded, const Job& job, const MeasureOptions& wanted,
                         const sys::Stop& stop) {
  Ready ready;
  WEIR_CHECK(choose_reference(loaded, wanted.plan.times && wanted.results.empty(),
                              wanted.against.has_value()));
  if (wanted.starts) WEIR_CHECK(name_gpus(loaded, job, stop));
  ready.loaded = std::move(loaded);
  ready.machine = sys::read_machine(job.files());
  run::Surroundings surroundings;
  surroundings.config_folder = job.folder();
  surroundings.path_variable = job.world.environment("PATH").value_or("/usr/bin:/bin");
  surroundings.machine = ready.machine;
  surroundings.probe_devices = probes::probe_devices_here();
  surroundings.no_perf = sys::why_not_counted(sys::instructions_event());
  const auto traces = [](const config::Cell& cell) { return holds(cell.engine->probes, "host"); };
  if (std::ranges::any_of(ready.loaded.cells, traces)) {
    surroundings.no_trace = sys::why_not_traced(job.world.processes);
  }
  if (wanted.against && wanted.against->commits) {
    const TwoCommits& commits = *wanted.against->commits;
    surroundings.programs = {commits.own_roots, commits.base.candidate_root};
  }
  surroundings.tokens = tokens_of(ready.loaded.cells, job.world);
  surroundings.starts = wanted.starts;
  WEIR_TRY(surroundings.twins,
           make_twins(ready.loaded.cells, surroundings.config_folder, job.asked.out, job.world));
  std::map<std::string, probes::CudaCode> cuda_code;
  surroundings.cuda_kernels = [&](const std::string& program, const std::string& library,
                                  const run::DeviceTwin& twin) {
    return cuda_kernels_of(program, library, twin, job.asked.out, job.world, cuda_code);
  };
  surroundings.output_places = wanted.output_places;
  surroundings.output_places.push_back(job.asked.out);
  WEIR_TRY(std::vector<run::PreparedCell> cells,
           prepare(ready.loaded.cells, surroundings, job.world, stop));
  WEIR_TRY(const std::vector<std::string> notes,
           check_compilers(cells, job.world, stop, ready.compiler));
  auto& known = ready.loaded.known.notes;
  known.insert(known.end(), notes.begin(), notes.end());
  run::PlanOptions plan = wanted.plan;
  const StoredBaselines stored = baselines_of(job);
  for (const run::PreparedCell& cell : cells) {
    WEIR_TRY(const auto baselines, stored.of_cell(cell.cell.key));
    auto lengths = baseline::kept_lengths(cell.cell.key, cell.facts.provenance, baselines);
    if (!lengths.empty()) plan.lengths[cell.cell.key.str()] = std::move(lengths);
  }
  if (wanted.against) {
    const auto prepare_more = [&](const std::vector<config::Cell>& more) {
      return prepare(more, surroundings, job.world, stop);
    };
    WEIR_TRY(ready.base, prepare_base(*wanted.against, job, *ready.loaded.known.settings,
                                      ready.loaded.known.redactor, cells, prepare_more, stop));
    plan.pairs = true;
  }
  ready.plan = run::make_plan(std::move(cells), *ready.loaded.known.settings, plan,
                              ready.base ? ready.base->cells : std::vector<run::PreparedCell>());
  const auto absent = [](const run::PreparedCell& cell) { return cell.unavailable.has_value(); };
  if (!plan.times && ready.plan.steps.empty() && std::ranges::none_of(ready.plan.cells, absent)) {
    const auto& skipped = ready.plan.cells.front().facts.counts_skipped;
    return fail(
        Code::config,
        "{}: {}nothing can be counted: {}\n  name a probe that sees it (probes; weir doctor "
        "has them), or what turns the engine's own profile on (profile_args)",
        job.asked.config,
        job.asked.counts_only ? "with --counts-only every cell would be skipped, for " : "",
        skipped.value_or("there is no cell"));
  }
  if (const auto& used = ready.loaded.known.rules) {
    ready.plan.identity["rules"] =
        short_hash((used->from ? used->from->commit : "") + " " + used->baselines_commit);
  }
  return ready;
}

Result<std::vector<PlannedCommand>> planned_commands(Loaded loaded, const Job& job,
                                                     const MeasureOptions& wanted,
                                                     const PlannedPlaces& places) {
  const sys::Interrupts interrupts;
  const config::Redactor redactor = loaded.known.redactor;
  MeasureOptions only_shown = wanted;
  only_shown.starts = false;
  WEIR_TRY(const Ready ready, make_ready(std::move(loaded), job, only_shown, interrupts.stop())
                                  .map_error(redacting(redactor)));
  std::vector<PlannedCommand> commands;
  for (const run::Step& step : ready.plan.steps) {
    const run::PreparedCell& cell = ready.plan.cells[step.cell];
    const std::optional<config::ServerSettings>& server = cell.cell.engine->server;
    config::CommandLine line =
        run::line_of(cell, step, places.out, places.probe_dir, server ? "{port}" : "");
    if (line.argv.empty() && server) line.argv = {server->url};
    if (step.instructions && cell.instructions == run::CountInstructions::valgrind) {
      line.argv = probes::under_valgrind(cell.valgrind, job.asked.out, line.argv);
    }
    PlannedCommand command;
    command.cell = cell.cell.key.str();
    command.pass = step.pass;
    command.spec.argv = line.argv;
    command.spec.env.assign(line.env.begin(), line.env.end());
    command.spec.passed = run::handed_on(cell);
    if (!step.bare()) {
      command.probes = cell.probes;
      command.length = std::max<std::int64_t>(1, step.asked.tokens) *
                       std::max<std::int64_t>(1, step.asked.repeats);
    }
    command.on_twin = cell.twin.has_value();
    command.serves = server.has_value();
    if (const config::ContainerSettings* container = run::container_of(cell)) {
      command.in_container = true;
      const std::string out = sys::absolute(places.out);
      const run::Carried carried = run::carried_into(
          cell, {.root = out, .out = out, .counts = "", .port = server ? "{port}" : ""},
          cell.twin ? sys::folder_of(cell.twin->driver) : "", "weir", line.env, {});
      WEIR_TRY(command.spec, run::carry_in(container->runtime, line.argv, carried));
    }
    command.spec.folder = cell.folder;
    command.spec.timeout_seconds = cell.cell.engine->timeout_seconds;
    command.spec.output_limit = static_cast<std::uint64_t>(cell.cell.engine->output_limit);
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace weir::flow
