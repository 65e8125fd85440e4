// What run, gate and accept share: from the command line to measured profiles.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/app/allowed.hpp"
#include "gate/app/beside.hpp"
#include "gate/app/command_line.hpp"
#include "gate/app/rules.hpp"
#include "gate/config/matrix.hpp"
#include "gate/config/veil.hpp"
#include "gate/profile/profile.hpp"
#include "gate/run/journal.hpp"
#include "gate/run/merge.hpp"
#include "gate/run/plan.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {

struct MeasureOptions {
  run::PlanOptions plan;
  std::optional<std::string> resume;  // "" is the newest run
  std::optional<AgainstWanted> against = std::nullopt;
  std::size_t least_pairs = 0;                      // of each cell beside it, decided or not
  std::optional<std::string> shard = std::nullopt;  // "3/16"
  std::string plan_file = {};                       // of weir plan
  std::optional<run::ShardFacts> shard_facts = {};  // of the cells that were loaded
  // Measuring that takes longer is ended: Code::unavailable, and no process is left.
  std::optional<double> limit_seconds = std::nullopt;
  // Places that will be written besides the run's folder: checked before the first engine starts.
  std::vector<std::string> output_places;
  bool starts = true;  // false: what would be run is only shown
};

// --shard and --plan.
void add_shard_options(CLI::App& verb, MeasureOptions& wanted);

// weir.yaml, read and expanded. Cells point into `settings`.
struct Loaded {
  std::unique_ptr<config::Settings> settings;
  std::string text;
  std::vector<config::Cell> cells;  // those selected with --cell
  std::vector<std::string> notes;   // of the matrix
  config::Veil veil;
  std::optional<RulesUsed> rules{};  // in place of the configuration's own
};
[[nodiscard]] Result<Loaded> load_config(const CommonOptions& options, const sys::Files& files);

// One measured run, whether just now or read from its journal.
struct Measured {
  std::unique_ptr<config::Settings> settings;
  // In plan order, with their true names; behind the depths of a list the line over them.
  std::vector<profile::Profile> profiles;
  std::string folder;       // of the run
  std::string config_file;  // as reports name it
  std::vector<std::string> notes;
  config::Veil veil;   // over all that is shown of it
  double seconds = 0;  // how long measuring took; 0 when read
  bool counts_only = false;
  bool some_cells = false;  // the config has more than these
  // HEAD of the repository that the configuration lies in, where there is one and nothing in it
  // differed from it: a base's facts say it for a run beside one.
  std::optional<std::string> commit{};
  // Of a run that was read: what the first line of its reports has to admit, and why nothing of
  // it may be stored ("": it is whole, as far as the selected cells go).
  std::vector<std::string> not_judged;
  std::string interrupted;
  std::optional<Beside> beside{};          // of --against
  std::optional<run::ShardFacts> shard{};  // it is one, or was joined from them
  std::optional<RulesUsed> rules{};
  std::optional<Allowed> allowed{};  // of --allowances-ref
  // Where config_file lies, where reports name it by something else.
  std::optional<std::string> config_place{};
};

// What a gate's settings say of how it judges.
[[nodiscard]] verdict::Policy policy_of(const config::GateSettings& gate);

// Aliases in place of private names in its profiles, before they are shown.
void veil_profiles(Measured& measured);

// Says of a shard that it is a part of the matrix; nothing of another run.
void tell_shard(Measured& measured);

// Checks everything that can be checked, then measures. Fails with Code::config before the first
// engine starts, Code::interrupted on Ctrl-C (saying how to go on).
[[nodiscard]] Result<Measured> measure(const CommonOptions& options, const MeasureOptions& wanted,
                                       sys::Files& files);

// The same for what was loaded before, whose settings and cells may be the caller's own. Errors
// may hold private names.
[[nodiscard]] Result<Measured> measure_loaded(Loaded loaded, const CommonOptions& options,
                                              const MeasureOptions& wanted, sys::Files& files);

// A finished or interrupted run, from its folder ("" is the newest below --out).
[[nodiscard]] Result<Measured> read_measured(const CommonOptions& options, const std::string& run,
                                             const sys::Files& files);

// Programs that this session would start, in order, under their true names.
struct PlannedCommand {
  std::string cell;
  profile::Pass pass = profile::Pass::timed;
  std::vector<std::string> argv;
  sys::EnvironmentList env;  // what the config sets
  std::string folder;        // to run in
  double timeout_seconds = 0;
  std::uint64_t output_limit = 0;
  std::vector<std::string> probes;  // of the counted pass
  bool in_container = false;        // argv is docker's, podman's or srun's
  bool serves = false;              // argv holds {port}; of one that runs already, its URL alone
  bool on_twin = false;             // the device is a description
  std::int64_t length = 0;          // tokens and repeats asked for, multiplied
};
// What {out} and {probe_dir} stand for in them.
struct PlannedPlaces {
  std::string out, probe_dir;
};
// Errors show no private names.
[[nodiscard]] Result<std::vector<PlannedCommand>> planned_commands(Loaded loaded,
                                                                   const CommonOptions& options,
                                                                   const MeasureOptions& wanted,
                                                                   const PlannedPlaces& places,
                                                                   sys::Files& files);

}  // namespace weir::app
