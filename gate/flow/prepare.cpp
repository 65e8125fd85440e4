// Prepares a plan: checks programs, devices and models, and lists the commands that a run starts.
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
#include "gate/stats/rank_test.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/perf_events.hpp"

namespace weir::flow {
namespace {

// Checks cells and returns them prepared, in the same order. Devices depend on the environment
// (another driver, say), so each pair of device and environment is queried once, for all its cells.
// Errors of the configuration are collected over all groups; any other error ends it at once.
Result<std::vector<run::PreparedCell>> prepare_cells(const std::vector<config::Cell>& cells,
                                                     const run::Surroundings& shared,
                                                     sys::World& world, const sys::Stop& stop) {
  std::map<std::string, std::vector<std::size_t>> cells_by_environment;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string key = cells[i].twin ? "twin" : cells[i].device;
    for (const auto& [name, value] : cells[i].env) key += fmt::format("\n{}={}", name, value);
    if (cells[i].device == "cpu") key = "cpu";
    if (cells[i].engine->container) key = "container";
    if (!cells[i].results.empty()) key = "results";
    cells_by_environment[key].push_back(i);
  }
  std::vector<run::PreparedCell> prepared(cells.size());
  std::vector<std::string> problems;
  for (const auto& [key, cell_indices] : cells_by_environment) {
    run::Surroundings surroundings = shared;
    const auto group = collect<config::Cell>(
        cell_indices, [&](std::size_t i) -> const auto& { return cells[i]; });
    // The devices inside a container are visible only to a program that runs in it.
    const config::Cell& first = group.front();
    if (!first.twin && !first.engine->container && first.results.empty())
      WEIR_TRY_SET(surroundings.devices, find_devices(first, shared.machine, world, stop));
    auto checked = run::preflight(group, surroundings, world.files);
    if (!checked) {
      if (checked.error().code != Code::config) return tl::unexpected(std::move(checked).error());
      for (std::string& line : text::lines(checked.error().message)) {
        if (!holds(problems, line)) problems.push_back(std::move(line));
      }
      continue;
    }
    for (std::size_t k = 0; k < cell_indices.size(); ++k)
      prepared[cell_indices[k]] = std::move((*checked)[k]);
  }
  if (!problems.empty()) return fail(Code::config, "{}", text::join(problems, "\n"));
  return prepared;
}

// Sets the GPUs of cells in containers and on nodes of Slurm, as times depend on them. Asks once
// for cells that are started in the same way.
Result<void> find_container_gpus(LoadedConfig& loaded, const Job& job, const sys::Stop& stop) {
  std::map<config::Arguments, std::string> gpus;
  for (config::Cell& cell : loaded.cells) {
    const bool is_inside = cell.engine->container && !cell.twin && cell.device != "cpu";
    if (!is_inside || !cell.gpu.empty() || !cell.results.empty()) continue;
    const auto key = config::command_inside(cell.command, cell.engine->container->runtime, {"gpu"});
    const auto [entry, is_new] = gpus.try_emplace(key.value_or(cell.command));
    if (is_new) {
      job.log(fmt::format("asking the container of {} for its GPU", cell.key.engine));
      auto gpu = container_gpus(cell, job, stop);
      if (!gpu && gpu.error().code == Code::interrupted) return tl::unexpected(gpu.error());
      if (gpu) {
        entry->second = std::move(*gpu);
      } else if (cell.device == "cuda" || cell.device == "hip") {
        loaded.configuration.notes.push_back(fmt::format(
            "{}: its GPU is not part of the machine class: {}; write \"gpu: NAME\" at the backend",
            cell.key.engine, text::first_line(gpu.error().message)));
      }
    }
    cell.gpu = entry->second;
  }
  return {};
}

// Returns the tokens of inference servers, by the variable that holds each.
std::map<std::string, Secret> read_tokens(const std::vector<config::Cell>& cells,
                                          const sys::World& world) {
  std::map<std::string, Secret> tokens;
  for (const config::Cell& cell : cells) {
    const std::string variable = cell.engine->server ? cell.engine->server->token_env : "";
    auto token = variable.empty() ? std::nullopt : world.environment(variable);
    if (token) tokens[variable] = Secret(std::move(*token));
  }
  return tokens;
}

}  // namespace

Result<ReadyPlan> prepare_plan(LoadedConfig loaded, const Job& job, const MeasureOptions& wanted,
                               const sys::Stop& stop) {
  ReadyPlan ready;
  WEIR_CHECK(choose_reference(loaded, wanted.plan.times && wanted.results.empty(),
                              wanted.against.has_value()));
  if (wanted.starts) WEIR_CHECK(find_container_gpus(loaded, job, stop));
  ready.loaded = std::move(loaded);
  ready.machine = sys::read_machine(job.files());
  run::Surroundings surroundings;
  surroundings.config_folder = job.folder();
  surroundings.path_variable = job.world.environment("PATH").value_or("/usr/bin:/bin");
  surroundings.machine = ready.machine;
  surroundings.probe_devices = probes::probe_devices_here();
  surroundings.no_perf = sys::counter_problem(sys::instructions_event());
  const auto uses_host_probe = [](const config::Cell& cell) {
    return holds(cell.engine->probes, "host");
  };
  if (std::ranges::any_of(ready.loaded.cells, uses_host_probe)) {
    surroundings.no_trace = sys::trace_problem(job.world.processes);
  }
  if (wanted.against && wanted.against->commits) {
    const TwoCommits& commits = *wanted.against->commits;
    surroundings.programs = {commits.own_roots, commits.base.candidate_root};
  }
  surroundings.tokens = read_tokens(ready.loaded.cells, job.world);
  surroundings.starts = wanted.starts;
  WEIR_TRY(surroundings.twins, make_twins(ready.loaded.cells, surroundings.config_folder,
                                          job.selection.runs_folder, job.world));
  ProgramCode programs;
  surroundings.runtime_files = [&](const std::string& program, const std::string& library,
                                   const run::DeviceTwin& twin) {
    return write_runtime_files(program, library, twin, job, programs);
  };
  surroundings.output_places = wanted.output_places;
  surroundings.output_places.push_back(job.selection.runs_folder);
  WEIR_TRY(std::vector<run::PreparedCell> cells,
           prepare_cells(ready.loaded.cells, surroundings, job.world, stop));
  WEIR_TRY(const std::vector<std::string> notes, check_compilers(cells, job, stop, ready.compiler));
  auto& all_notes = ready.loaded.configuration.notes;
  all_notes.insert(all_notes.end(), notes.begin(), notes.end());
  all_notes.insert(all_notes.end(), programs.notes.begin(), programs.notes.end());
  run::PlanOptions plan = wanted.plan;
  const StoredBaselines stored = stored_baselines(job);
  for (const run::PreparedCell& cell : cells) {
    WEIR_TRY(const auto baselines, stored.of_cell(cell.cell.key));
    auto lengths = baseline::comparable_lengths(cell.cell.key, cell.facts.provenance, baselines);
    if (!lengths.empty()) plan.lengths[cell.cell.key.str()] = std::move(lengths);
    if (const auto values = baseline::fewest_varying_values(cell.facts.provenance, baselines)) {
      const auto processes = stats::fewest_values(*values, stats::RankPolicy{}.false_alarm);
      plan.varying_cells[cell.cell.key.str()] = static_cast<std::int64_t>(processes);
    }
  }
  if (wanted.against) {
    const auto prepare_base_cells = [&](const std::vector<config::Cell>& base_cells) {
      return prepare_cells(base_cells, surroundings, job.world, stop);
    };
    WEIR_TRY(ready.base,
             prepare_base(*wanted.against, job, *ready.loaded.configuration.settings,
                          ready.loaded.configuration.redactor, cells, prepare_base_cells, stop));
    plan.pairs = true;
  }
  ready.plan = run::make_plan(std::move(cells), *ready.loaded.configuration.settings, plan,
                              ready.base ? ready.base->cells : std::vector<run::PreparedCell>());
  const auto absent = [](const run::PreparedCell& cell) { return cell.unavailable.has_value(); };
  if (!plan.times && ready.plan.steps.empty() && std::ranges::none_of(ready.plan.cells, absent)) {
    std::string other_way;
    if (job.selection.counts_only) {
      other_way = ", or leave out --counts-only: times need no probe";
    } else if (!wanted.times_option.empty()) {
      other_way = fmt::format(", or judge times: {}", wanted.times_option);
    }
    const auto& skipped = ready.plan.cells.front().facts.counts_skip_reason;
    return fail(
        Code::config,
        "{}: {}nothing can be counted: {}\n  name a probe that sees it (probes; weir doctor "
        "has them), or what turns the engine's own profile on (profile_args){}",
        job.selection.config,
        job.selection.counts_only ? "with --counts-only every cell would be skipped, for " : "",
        skipped.value_or("there is no cell"), other_way);
  }
  if (const auto& rules = ready.loaded.configuration.rules) {
    ready.plan.identity["rules"] =
        short_hash((rules->from ? rules->from->commit : "") + " " + rules->baselines_commit);
  }
  return ready;
}

Result<PlannedCommands> planned_commands(LoadedConfig loaded, const Job& job,
                                         const MeasureOptions& wanted,
                                         const PlannedPlaces& places) {
  const sys::Interrupts interrupts;
  const config::Redactor redactor = loaded.configuration.redactor;
  MeasureOptions options = wanted;
  options.starts = false;
  WEIR_TRY(ReadyPlan plan, prepare_plan(std::move(loaded), job, options, interrupts.stop())
                               .map_error(redacting(redactor)));
  const auto ready = std::make_shared<const ReadyPlan>(std::move(plan));
  PlannedCommands planned;
  for (const run::PreparedCell& cell : ready->plan.cells) {
    if (cell.unavailable) planned.unavailable[cell.cell.key.str()] = *cell.unavailable;
  }
  for (const run::Step& step : ready->plan.steps) {
    const run::PreparedCell& cell = ready->plan.cells[step.cell];
    const std::optional<config::ServerSettings>& server = cell.cell.engine->server;
    config::CommandLine line =
        run::make_command_line(cell, step, places.out, places.probe_dir, server ? "{port}" : "");
    if (line.argv.empty() && server) line.argv = {server->url};
    if (step.counts == profile::Counts::instructions &&
        cell.instructions == run::CountInstructions::valgrind) {
      line.argv = probes::under_valgrind(cell.valgrind, job.selection.runs_folder, line.argv);
    }
    PlannedCommand command;
    command.ready = ready;
    command.step = planned.commands.size();
    command.cell = cell.cell.key.str();
    command.pass = step.pass;
    command.spec.argv = line.argv;
    command.spec.env.assign(line.env.begin(), line.env.end());
    command.spec.passed_variables = run::passed_variables(cell);
    if (!step.is_counted_apart()) {
      command.probes = cell.probes;
      command.length = std::max<std::int64_t>(1, step.parameters.tokens) *
                       std::max<std::int64_t>(1, step.parameters.repeats);
    }
    command.on_twin = cell.twin.has_value();
    command.serves = server.has_value();
    if (const config::ContainerSettings* container = run::find_container(cell)) {
      command.in_container = true;
      const std::string out = sys::absolute(places.out);
      const run::ContainerInputs carried = run::make_container_inputs(
          cell, {.root = out, .out = out, .counts = "", .port = server ? "{port}" : ""},
          cell.twin ? sys::folder_of(cell.twin->driver) : "", "weir", line.env, {});
      WEIR_TRY(command.spec, run::container_command(container->runtime, line.argv, carried));
    }
    command.spec.folder = cell.folder;
    command.spec.timeout_seconds = cell.cell.engine->timeout_seconds;
    command.spec.output_limit = static_cast<std::uint64_t>(cell.cell.engine->output_limit);
    planned.commands.push_back(std::move(command));
  }
  return planned;
}

}  // namespace weir::flow
