#include <algorithm>

#include "gate/app/session_ready.hpp"
#include "gate/probes/read/instructions.hpp"
#include "gate/run/container.hpp"
#include "gate/run/engine_call.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {

Result<std::vector<PlannedCommand>> planned_commands(Loaded loaded, const CommonOptions& options,
                                                     const MeasureOptions& wanted,
                                                     const PlannedPlaces& places,
                                                     sys::Files& files) {
  const sys::Interrupts interrupts;
  const config::Veil veil = loaded.veil;
  MeasureOptions only_shown = wanted;
  only_shown.starts = false;
  WEIR_TRY(const Ready ready, veil_errors(veil, [&] {
             return make_ready(std::move(loaded), options, only_shown, files, interrupts.stop());
           }));
  std::vector<PlannedCommand> commands;
  for (const run::Step& step : ready.plan.steps) {
    const run::PreparedCell& cell = ready.plan.cells[step.cell];
    const std::optional<config::ServerSettings>& server = cell.cell.engine->server;
    config::CommandLine line =
        run::line_of(cell, step, places.out, places.probe_dir, server ? "{port}" : "");
    if (line.argv.empty() && server) line.argv = {server->url};
    if (step.instructions && cell.instructions == run::CountInstructions::valgrind) {
      line.argv = probes::under_valgrind(cell.valgrind, options.out, line.argv);
    }
    PlannedCommand command{
        .cell = cell.cell.key.str(),
        .pass = step.pass,
        .argv = line.argv,
        .env = {},
        .folder = cell.folder,
        .timeout_seconds = cell.cell.engine->timeout_seconds,
        .output_limit = static_cast<std::uint64_t>(cell.cell.engine->output_limit),
        .probes = step.instructions ? std::vector<std::string>() : cell.probes,
        .length = step.instructions ? 0
                                    : std::max<std::int64_t>(1, step.asked.tokens) *
                                          std::max<std::int64_t>(1, step.asked.repeats)};
    command.on_twin = cell.twin.has_value();
    command.serves = server.has_value();
    for (const auto& [name, value] : line.env) command.env.emplace_back(name, value);
    if (const config::ContainerSettings* container = run::container_of(cell)) {
      command.in_container = true;
      const std::string out = sys::absolute(places.out);
      const run::Carried carried = run::carried_into(
          cell, {.root = out, .out = out, .counts = "", .port = server ? "{port}" : ""},
          cell.twin ? sys::folder_of(cell.twin->driver) : "", "weir", line.env, {});
      WEIR_TRY(run::RuntimeCall call, run::carry_in(container->runtime, command.argv, carried));
      command.argv = std::move(call.argv);
      command.env = std::move(call.env);
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace weir::app
