#include "gate/app/session_ready.hpp"

#include <algorithm>

#include "gate/app/devices.hpp"
#include "gate/app/reference.hpp"
#include "gate/app/stored_baselines.hpp"
#include "gate/app/twins.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/preflight.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/perf_events.hpp"

namespace weir::app {
namespace {

// Cells whose environments differ may see different devices (another driver, say): each distinct
// pair of device and environment is asked about once, and its cells are checked together.
Result<std::vector<run::PreparedCell>> prepare(const std::vector<config::Cell>& cells,
                                               const run::Surroundings& shared,
                                               const sys::Files& files, const sys::Stop& stop) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string key = cells[i].twin ? "twin" : cells[i].device;
    for (const auto& [name, value] : cells[i].env) key += fmt::format("\n{}={}", name, value);
    if (cells[i].device == "cpu") key = "cpu";
    if (cells[i].engine->container) key = "container";
    groups[key].push_back(i);
  }
  std::vector<run::PreparedCell> prepared(cells.size());
  std::vector<std::string> problems;
  for (const auto& [key, members] : groups) {
    run::Surroundings surroundings = shared;
    std::vector<config::Cell> group;
    for (const std::size_t i : members) group.push_back(cells[i]);
    // What devices there are in a container, only what runs in it can tell.
    if (!group.front().twin && !group.front().engine->container) {
      WEIR_TRY(surroundings.devices, look_for_devices(group.front(), shared.machine, stop));
    }
    auto ready = run::preflight(group, surroundings, files);
    if (!ready) {
      if (ready.error().code != Code::config) return tl::unexpected(std::move(ready).error());
      for (std::string& line : text::lines(ready.error().message)) {
        if (std::find(problems.begin(), problems.end(), line) == problems.end()) {
          problems.push_back(std::move(line));
        }
      }
      continue;
    }
    for (std::size_t k = 0; k < members.size(); ++k) prepared[members[k]] = std::move((*ready)[k]);
  }
  if (!problems.empty()) return fail(Code::config, "{}", text::join(problems, "\n"));
  return prepared;
}

}  // namespace

std::optional<std::string> commit_of_run(const Json& extra) {
  if (!extra.is_object() || !extra.value("source", Json()).is_object()) return std::nullopt;
  JsonReader source(extra["source"], "source");
  const auto commit = source.optional_string("commit");
  return source.optional_boolean("dirty").value_or(true) ? std::nullopt : commit;
}

config::Veil veil_of(const config::Settings& settings, const std::string& config_file) {
  return {settings, sys::absolute(sys::folder_of(config_file))};
}

namespace {

std::map<std::string, Secret> tokens_of(const std::vector<config::Cell>& cells) {
  std::map<std::string, Secret> tokens;
  for (const config::Cell& cell : cells) {
    const std::string variable = cell.engine->server ? cell.engine->server->token_env : "";
    if (variable.empty()) continue;
    if (auto held = sys::environment_value(variable)) tokens[variable] = Secret(std::move(*held));
  }
  return tokens;
}

}  // namespace

Result<Ready> make_ready(Loaded loaded, const CommonOptions& options, const MeasureOptions& wanted,
                         sys::Files& files, const sys::Stop& stop) {
  Ready ready;
  WEIR_CHECK(choose_reference(loaded, wanted.plan.times, wanted.against.has_value()));
  ready.loaded = std::move(loaded);
  ready.machine = sys::read_machine(files);
  run::Surroundings surroundings;
  surroundings.config_folder = sys::absolute(sys::folder_of(options.config));
  surroundings.path_variable = sys::environment_value("PATH").value_or("/usr/bin:/bin");
  surroundings.machine = ready.machine;
  surroundings.probe_devices = probes::probe_devices_here();
  surroundings.no_perf = sys::why_not_counted(sys::instructions_event());
  if (wanted.against && wanted.against->commits) {
    const TwoCommits& commits = *wanted.against->commits;
    surroundings.programs = {commits.own_roots, commits.base.candidate_root};
  }
  surroundings.tokens = tokens_of(ready.loaded.cells);
  surroundings.starts = wanted.starts;
  WEIR_TRY(surroundings.twins,
           make_twins(ready.loaded.cells, surroundings.config_folder, options.out, files));
  surroundings.output_places = wanted.output_places;
  surroundings.output_places.push_back(options.out);
  WEIR_TRY(std::vector<run::PreparedCell> cells,
           prepare(ready.loaded.cells, surroundings, files, stop));
  run::PlanOptions plan = wanted.plan;
  const StoredBaselines stored = baselines_of(options, files);
  for (const run::PreparedCell& cell : cells) {
    WEIR_TRY(const auto baselines, stored.of_cell(cell.cell.key));
    auto lengths = baseline::kept_lengths(cell.cell.key, cell.facts.provenance, baselines);
    if (!lengths.empty()) plan.lengths[cell.cell.key.str()] = std::move(lengths);
  }
  if (wanted.against) {
    const auto prepare_more = [&](const std::vector<config::Cell>& more) {
      return prepare(more, surroundings, files, stop);
    };
    WEIR_TRY(ready.base, make_base_side(*wanted.against, options, *ready.loaded.settings,
                                        ready.loaded.veil, cells, prepare_more, files, stop));
    plan.pairs = true;
  }
  const bool nothing_to_do =
      !plan.times && std::all_of(cells.begin(), cells.end(), [](const run::PreparedCell& cell) {
        return cell.facts.counts_skipped.has_value() && !cell.unavailable;
      });
  if (nothing_to_do) {
    return fail(Code::config, "{}: with --counts-only every cell would be skipped: {}",
                options.config, *cells.front().facts.counts_skipped);
  }
  ready.plan = run::make_plan(std::move(cells), *ready.loaded.settings, plan,
                              ready.base ? ready.base->cells : std::vector<run::PreparedCell>());
  if (const auto& used = ready.loaded.rules) {
    ready.plan.identity["rules"] =
        short_hash((used->from ? used->from->commit : "") + " " + used->baselines_commit);
  }
  return ready;
}

}  // namespace weir::app
