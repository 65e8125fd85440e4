#include "gate/app/session.hpp"

#include <algorithm>

#include <unistd.h>

#include "gate/adapters/adapter.hpp"
#include "gate/app/calibrations.hpp"
#include "gate/app/devices.hpp"
#include "gate/app/interrupted.hpp"
#include "gate/app/known.hpp"
#include "gate/app/probing.hpp"
#include "gate/app/reference.hpp"
#include "gate/app/shards.hpp"
#include "gate/app/stored_baselines.hpp"
#include "gate/app/twins.hpp"
#include "gate/app/veiled.hpp"
#include "gate/app/version.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/instructions.hpp"
#include "gate/probes/locate.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/preflight.hpp"
#include "gate/run/runner.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/perf_events.hpp"
#include "gate/sys/process.hpp"
#include "gate/verdict/over_depth.hpp"

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
    groups[cells[i].device == "cpu" ? "cpu" : key].push_back(i);
  }
  std::vector<run::PreparedCell> prepared(cells.size());
  std::vector<std::string> problems;
  for (const auto& [key, members] : groups) {
    run::Surroundings surroundings = shared;
    std::vector<config::Cell> group;
    for (const std::size_t i : members) group.push_back(cells[i]);
    if (!group.front().twin) {
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

config::Veil veil_of(const config::Settings& settings, const std::string& config_file) {
  return {settings, sys::absolute(sys::folder_of(config_file))};
}

// What an error of `work` says of private names stays here.
template <class Work>
auto veil_errors(const config::Veil& veil, const Work& work) {
  return work().map_error([&](Error error) { return veiled(std::move(error), veil); });
}

struct Ready {
  Loaded loaded;
  run::Plan plan;
  sys::Machine machine;
  std::optional<BaseSide> base;
};

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
  surroundings.probe_devices = probes::probe_devices();
  surroundings.no_perf = sys::why_not_counted(sys::instructions_event());
  if (wanted.against && wanted.against->commits) {
    const TwoCommits& commits = *wanted.against->commits;
    surroundings.programs = {commits.own_roots, commits.base.candidate_root};
  }
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

run::AgainstOptions against_options(const Ready& ready, const MeasureOptions& wanted,
                                    sys::Files& files) {
  const config::Settings& settings = *ready.loaded.settings;
  run::AgainstOptions options;
  options.limits = settings.limits;
  options.gate = settings.gate;
  options.policy = policy_of(settings.gate);
  if (wanted.shard_facts) {
    options.policy.false_alarm = false_alarm_of(*wanted.shard_facts, options.policy.false_alarm);
  }
  options.counts = wanted.plan.counts;
  options.times = wanted.plan.times;
  options.least_pairs = wanted.least_pairs;
  options.calibrated_pairs = calibrated_pairs(Calibrations(files), ready.plan.cells, settings);
  const auto& commit = ready.base->facts.candidate_commit;
  options.rotation =
      std::stoull(short_hash(commit ? *commit : ready.base->facts.words), nullptr, 16);
  return options;
}

std::vector<profile::Profile> assemble_all(const std::vector<profile::CellFacts>& cells,
                                           const std::map<std::string, std::string>& unavailable,
                                           const std::vector<profile::RunRecord>& records) {
  std::map<std::string, std::vector<profile::RunRecord>> by_cell;
  for (const profile::RunRecord& record : records) by_cell[record.cell].push_back(record);
  std::vector<profile::Profile> profiles;
  for (const profile::CellFacts& facts : cells) {
    const std::string name = facts.cell.str();
    profiles.push_back(profile::assemble(facts, by_cell[name]));
    if (const auto why = unavailable.find(name); why != unavailable.end()) {
      profiles.back().errors = {why->second};
    }
  }
  return profiles;
}

}  // namespace

Result<Loaded> load_config(const CommonOptions& options, const sys::Files& files) {
  Loaded loaded;
  if (!files.exists(options.config)) {
    return fail(Code::config,
                "{}: no such file\n  weir init writes a starter one; -c names another",
                options.config);
  }
  WEIR_TRY(loaded.text, files.read(options.config, k_largest_config));
  WEIR_TRY(config::Settings settings,
           config::parse_settings(loaded.text, options.config, known_now(files, options.config)));
  loaded.settings = std::make_unique<config::Settings>(std::move(settings));
  WEIR_TRY(config::Matrix matrix, config::expand(*loaded.settings));
  loaded.veil = veil_of(*loaded.settings, options.config);
  if (options.rules) {
    loaded.rules =
        apply_rules(*options.rules, matrix, sys::absolute(sys::folder_of(options.config)),
                    options.cells, *loaded.settings);
  }
  WEIR_TRY(loaded.cells, veil_errors(loaded.veil, [&] {
             return config::select(matrix, options.cells, loaded.veil);
           }));
  loaded.notes = std::move(matrix.notes);
  return loaded;
}

verdict::Policy policy_of(const config::GateSettings& gate) {
  verdict::Policy policy;
  policy.fail_on_inconclusive = gate.fail_on_inconclusive;
  policy.stored_level = gate.stored_level;
  policy.false_alarm = gate.false_alarm;
  policy.missed = gate.missed;
  policy.strict = gate.strict;
  return policy;
}

void veil_profiles(Measured& measured) {
  for (profile::Profile& profile : measured.profiles) {
    profile = veiled(std::move(profile), measured.veil);
  }
}

namespace {

Result<Measured> measure_until(Loaded loaded, const CommonOptions& options,
                               const MeasureOptions& wanted, sys::Files& files,
                               const sys::Stop& stop) {
  const sys::RealClock clock;
  const double started = clock.steady();
  WEIR_TRY(Ready ready, make_ready(std::move(loaded), options, wanted, files, stop));

  run::RunHeader header = run::make_header(ready.plan);
  header.weir_version = k_version;
  header.started_at = clock.now();
  header.config_file = options.config;
  header.config_text = ready.loaded.text;
  header.machine = ready.machine;
  header.notes = ready.loaded.notes;
  header.extra["counts_only"] = !wanted.plan.times;
  if (wanted.shard_facts) header.extra["shard"] = run::to_json(*wanted.shard_facts);
  if (ready.base) header.extra["against"] = to_json(ready.base->facts);
  if (ready.loaded.rules) header.extra["rules"] = to_json(*ready.loaded.rules);
  if (options.allowed) header.extra["allowances"] = to_json(*options.allowed);

  std::string folder;
  std::optional<run::Journal> journal;
  if (wanted.resume) {
    folder = *wanted.resume;
    if (folder.empty()) {
      WEIR_TRY(folder, run::newest_run(files, options.out));
    }
    WEIR_TRY(journal, run::Journal::resume(files, folder, ready.plan));
  } else {
    WEIR_TRY(folder, run::make_run_folder(files, options.out, header.started_at));
    WEIR_TRY(journal, run::Journal::create(files, folder, header));
  }
  if (options.rules) {
    std::vector<profile::CellKey> keys;
    for (const profile::CellFacts& facts : header.cells) keys.push_back(facts.cell);
    WEIR_CHECK(keep_baselines(*options.rules, options, keys, folder, files));
  }

  sys::RealProcesses processes;
  sys::HostLocks locks(sys::HostLocks::default_folder());
  const sys::RealMachineLoad load;
  WEIR_TRY(const auto probing, make_probing(files));
  const auto progress = run::make_progress(clock, options.quiet, colored(options, STDERR_FILENO));
  VeiledProgress shown(*progress, ready.loaded.veil);
  run::Runner runner({processes, files, clock, locks, load, *probing, shown, stop},
                     ready.machine.usable_cores);
  sys::RealCoin coin;
  const CachedCounts known(files, ready.base ? ready.base->counts_folder : std::string());
  std::optional<run::Against> against;
  if (ready.base) {
    against.emplace(ready.plan, against_options(ready, wanted, files), known, coin,
                    [&](const run::PairsPlan& plan) {
                      for (const std::string& line : words_of(plan, ready.loaded.veil)) {
                        progress->say(line);
                      }
                    });
  }
  auto records = runner.run(ready.plan, *journal, against ? &*against : nullptr);
  progress->finish();
  if (!records) {
    Error error = std::move(records).error();
    if (error.code == Code::interrupted) {
      error.message =
          fmt::format("interrupted; what was measured is kept. Go on with: --resume {}{}", folder,
                      ready.base ? " and the same --against" : "");
    }
    return tl::unexpected(std::move(error));
  }
  Measured measured;
  measured.profiles = assemble_all(header.cells, header.unavailable, *records);
  if (ready.base) {
    measured.beside =
        measured_beside(ready.base->facts, header, measured.profiles, *records, known);
    for (std::string& line : keep_base_counts(*ready.base, header, *records, folder, files)) {
      measured.beside->facts.notes.push_back(std::move(line));
    }
  }
  take_reference(*ready.loaded.settings, measured.profiles);
  measured.profiles = verdict::with_fits(std::move(measured.profiles));
  measured.settings = std::move(ready.loaded.settings);
  measured.rules = std::move(ready.loaded.rules);
  if (options.allowed) measured.allowed = *options.allowed;
  measured.veil = std::move(ready.loaded.veil);
  measured.folder = folder;
  measured.config_file = options.config;
  measured.notes = std::move(ready.loaded.notes);
  measured.seconds = clock.steady() - started;
  measured.counts_only = !wanted.plan.times;
  measured.some_cells = !options.cells.empty();
  measured.shard = wanted.shard_facts;
  if (measured.shard) {
    measured.some_cells = true;
    measured.not_judged.push_back(
        fmt::format("shard {}: a part of the matrix", measured.shard->name()));
  }
  return measured;
}

}  // namespace

Result<Measured> measure_loaded(Loaded loaded, const CommonOptions& options,
                                const MeasureOptions& wanted, sys::Files& files) {
  const sys::Interrupts interrupts(wanted.limit_seconds);
  auto measured = measure_until(std::move(loaded), options, wanted, files, interrupts.stop());
  if (!measured && interrupts.over()) {
    return fail(Code::unavailable, "it was not done within what was left of the time");
  }
  return measured;
}

Result<Measured> measure(const CommonOptions& options, const MeasureOptions& wanted,
                         sys::Files& files) {
  WEIR_TRY(Loaded loaded, load_config(options, files));
  MeasureOptions whole = wanted;
  if (wanted.shard) {
    WEIR_TRY(whole.shard_facts,
             choose_shard(loaded, *wanted.shard, wanted.plan_file, wanted.plan.times, files));
  }
  const config::Veil veil = loaded.veil;
  return veil_errors(veil,
                     [&] { return measure_loaded(std::move(loaded), options, whole, files); });
}

namespace {

// The rules that a run was judged by, where these were not the configuration's own, and what it was
// allowed.
Result<void> take_rules_of_run(const run::RunHeader& header, config::Known known,
                               Measured& measured) {
  if (header.extra.is_object() && header.extra.contains("allowances")) {
    WEIR_TRY(measured.allowed, allowed_from_json(header.extra["allowances"]));
  }
  if (!header.extra.is_object() || !header.extra.contains("rules")) return {};
  WEIR_TRY(measured.rules, rules_used_from_json(header.extra["rules"]));
  const std::string& text = measured.rules->config_text;
  if (text.empty()) return {};
  const std::string today = known.today;
  known.today.clear();
  WEIR_TRY(config::Settings base, config::parse_settings(text, header.config_file, known));
  (void)config::drop_expired(base, today);
  config::take_rules(base, *measured.settings);
  return {};
}

}  // namespace

Result<Measured> read_measured(const CommonOptions& options, const std::string& run,
                               const sys::Files& files) {
  Measured measured;
  measured.folder = run;
  if (run.empty()) {
    WEIR_TRY(measured.folder, run::newest_run(files, options.out));
  }
  WEIR_TRY(run::RunFile file, run::read_run(files, measured.folder));
  // Limits that expired since then still hold for what was measured under them.
  config::Known known = known_now(files, file.header.config_file);
  known.today = sys::date_of(file.header.started_at);
  WEIR_TRY(config::Settings settings,
           config::parse_settings(file.header.config_text, file.header.config_file, known));
  measured.settings = std::make_unique<config::Settings>(std::move(settings));
  measured.veil = veil_of(*measured.settings, file.header.config_file);
  WEIR_TRY(measured.shard, run::shard_facts(file.header.extra));
  WEIR_CHECK(take_rules_of_run(file.header, known, measured));
  const Interrupted interrupted(file);
  interrupted.leave_out_counts(file.records);
  measured.profiles = assemble_all(file.header.cells, file.header.unavailable, file.records);
  take_reference(*measured.settings, measured.profiles);
  const auto matrix = config::expand(*measured.settings);
  measured.some_cells = matrix && file.header.cells.size() < matrix->cells.size();
  if (!file.header.base_cells.empty()) {
    const Json& said = file.header.extra.value("against", Json());
    const auto facts = base_facts_from_json(said.is_object() ? said : Json::object());
    if (!facts) {
      return fail(Code::data, "{}: it ran beside a base that its journal does not describe",
                  measured.folder);
    }
    sys::RealFiles reading;
    measured.beside = measured_beside(*facts, file.header, measured.profiles, file.records,
                                      CachedCounts(reading, base_counts_folder(measured.folder)));
  }
  measured.config_file = file.header.config_file;
  measured.notes = file.header.notes;
  JsonReader extra(file.header.extra, "extra");
  measured.counts_only = extra.optional_boolean("counts_only").value_or(false);
  if (file.torn) measured.notes.push_back("the journal's last line was cut short and left out");
  if (!options.cells.empty()) {
    measured.some_cells = true;
    std::erase_if(measured.profiles, [&](const profile::Profile& profile) {
      const profile::CellKey line = profile.cell.line();  // it selects all of its depths
      return std::none_of(options.cells.begin(), options.cells.end(), [&](const std::string& glob) {
        return text::glob_match(glob, profile.cell.str()) ||
               text::glob_match(glob, measured.veil.cell(profile.cell).str()) ||
               text::glob_match(glob, line.str()) ||
               text::glob_match(glob, measured.veil.cell(line).str());
      });
    });
    if (measured.profiles.empty()) {
      return fail(Code::usage, "{}: no cell matches {}", measured.folder,
                  text::join(options.cells));
    }
  }
  interrupted.tell(measured);
  if (!file.header.base_cells.empty() && !file.ended) {
    measured.not_judged.emplace_back("pairs may be missing: the run was interrupted");
    if (measured.interrupted.empty()) {
      measured.interrupted = fmt::format(
          "{} was interrupted beside its base\n  --resume {} and the "
          "same --against go on with it",
          measured.folder, measured.folder);
    }
  }
  if (measured.shard && measured.shard->index > 0) {
    measured.some_cells = true;
    measured.not_judged.push_back(
        fmt::format("shard {}: a part of the matrix", measured.shard->name()));
  }
  measured.profiles = verdict::with_fits(std::move(measured.profiles));
  return measured;
}

Result<std::vector<PlannedCommand>> planned_commands(Loaded loaded, const CommonOptions& options,
                                                     const MeasureOptions& wanted,
                                                     const PlannedPlaces& places,
                                                     sys::Files& files) {
  const sys::Interrupts interrupts;
  const config::Veil veil = loaded.veil;
  WEIR_TRY(const Ready ready, veil_errors(veil, [&] {
             return make_ready(std::move(loaded), options, wanted, files, interrupts.stop());
           }));
  std::vector<PlannedCommand> commands;
  for (const run::Step& step : ready.plan.steps) {
    const run::PreparedCell& cell = ready.plan.cells[step.cell];
    config::CommandLine line = config::fill(cell.cell, {.asked = step.asked,
                                                        .model = cell.model,
                                                        .prompt_file = cell.prompt_file,
                                                        .out = places.out,
                                                        .probe_dir = places.probe_dir,
                                                        .threads = cell.threads_in(step.pass),
                                                        .pass = step.pass,
                                                        .instructions = step.instructions});
    line.argv.front() = cell.program;
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
    if (cell.twin) {
      for (auto& [name, value] : run::twin_environment(*cell.twin, step.twin_fill)) {
        line.env[name] = value;
      }
    }
    for (const auto& [name, value] : line.env) command.env.emplace_back(name, value);
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace weir::app
