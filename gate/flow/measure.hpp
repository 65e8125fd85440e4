// Measures cells for run, gate and accept: from the command line to profiles.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/flow/base.hpp"
#include "gate/flow/configure.hpp"
#include "gate/flow/waivers.hpp"
#include "gate/run/kernel_compiler.hpp"
#include "gate/run/merge.hpp"
#include "gate/run/plan.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/process.hpp"

namespace weir::flow {
struct MeasureOptions {
  run::PlanOptions plan;
  std::optional<std::string> resume;  // "" is the newest run
  std::optional<BaseRequest> against = std::nullopt;
  std::optional<std::string> budget{};  // time for all pairs, in place of gate.budget
  std::size_t min_pairs = 0;            // pairs that each cell gets, decided or not
  std::vector<std::string> results{};   // result files, read in place of running their cells
  std::optional<std::string> shard = std::nullopt;  // "3/16"
  std::string plan_file = {};                       // written by weir plan
  std::optional<run::ShardFacts> shard_facts = {};  // describes the loaded cells
  // Ends measuring after this time: Code::unavailable, and no process stays behind.
  std::optional<double> limit_seconds = std::nullopt;
  // Files to write besides the run's folder, checked before the first engine starts.
  std::vector<std::string> output_places;
  bool starts = true;  // false: only show what would run
  // The verb that resumes an interrupted run: run::k_accept_verb by itself, others with --resume.
  // "": none.
  std::string verb{};
  std::string times_option{};  // of the verb: judges times in place of counts. "": none
};

// One measured run, new or read from its journal.
struct MeasuredRun {
  Configuration configuration;  // its configuration
  // In plan order, with true names. The line over depths follows its depths.
  std::vector<profile::Profile> profiles;
  std::string folder;       // the run's folder
  std::string config_text;  // the weir.yaml of a run that was read
  double seconds = 0;       // duration of measuring; 0 if read
  bool counts_only = false;
  bool is_selection = false;  // the config has more than these
  // The run may be by somebody untrusted, and a commit's rules judge it. Everything in it about its
  // base, its rules and itself is a claim.
  bool claimed = false;
  std::uint64_t bytes = 0;  // of the records of a run that was read; 0 if it was measured now
  // HEAD of the configuration's repository, if nothing differed from it. For a run with a base,
  // base_runs->facts has the commit.
  std::optional<std::string> commit{};
  // Admissions for the first line of reports; and the reason why nothing of an interrupted run may
  // be stored ("" if the selected cells are complete).
  std::vector<std::string> not_judged;
  std::string interrupted;
  std::string verb{};                      // MeasureOptions::verb, if the run was read
  std::optional<BaseRuns> base_runs{};     // --against
  std::optional<run::ShardFacts> shard{};  // set for a shard, and for a run joined from shards
  std::optional<Waived> waived{};          // --waivers-ref
};

// Replaces private names in the profiles by aliases, to show them.
void redact_profiles(MeasuredRun& measured);

// Checks everything that can be checked, then measures. Code::config comes before the first engine
// starts; Code::interrupted on Ctrl-C names the command that resumes.
[[nodiscard]] Result<MeasuredRun> measure(const Job& job, const MeasureOptions& wanted);

// Measures a loaded configuration, whose settings and cells the caller may have changed. Errors may
// contain private names.
[[nodiscard]] Result<MeasuredRun> measure_loaded(LoadedConfig loaded, const Job& job,
                                                 const MeasureOptions& wanted);

// Measures what `load` returns. Resumes the newest run in the job's folder of runs if it has the
// same plan.
[[nodiscard]] Result<MeasuredRun> measure_or_resume(
    const std::function<Result<LoadedConfig>()>& load, const Job& job, MeasureOptions wanted);

// Returns the configuration that a run was measured under, with the rules that judged it.
[[nodiscard]] Result<Configuration> read_configuration(const run::RunHeader& header,
                                                       const sys::World& world);

// Reads a finished or interrupted run from its folder ("" is the newest below --out).
[[nodiscard]] Result<MeasuredRun> read_measured(const Job& job, const std::string& run);

struct ReadyPlan;

// A program that a run would start, under its cell's true name.
struct PlannedCommand {
  std::string cell;
  profile::Pass pass = profile::Pass::timed;
  sys::ProcessSpec spec;            // its environment has the config's variables alone
  std::vector<std::string> probes;  // attached in the counted pass
  bool in_container = false;        // argv is docker's, podman's or srun's
  bool serves = false;      // argv contains {port}; for a running server it is the URL alone
  bool on_twin = false;     // the device is a description
  std::int64_t length = 0;  // requested tokens times repeats
  std::shared_ptr<const ReadyPlan> ready{};  // the plan, and the command's step in it
  std::size_t step = 0;
};
// The values of {out} and {probe_dir} in these commands.
struct PlannedPlaces {
  std::string out, probe_dir;
};
struct PlannedCommands {
  std::vector<PlannedCommand> commands;            // in order
  std::map<std::string, std::string> unavailable;  // cell -> why nothing of it can run here
};
// Returns the programs that a run would start. Errors contain no private names.
[[nodiscard]] Result<PlannedCommands> planned_commands(LoadedConfig loaded, const Job& job,
                                                       const MeasureOptions& wanted,
                                                       const PlannedPlaces& places);

// A checked plan, ready to be measured or shown.
struct ReadyPlan {
  LoadedConfig loaded;
  run::Plan plan;
  sys::Machine machine;
  std::optional<PreparedBase> base;
  std::unique_ptr<run::KernelCompiler> compiler{};  // null: no cell has kernels to compile
};

// Checks devices, programs and places, and prepares twins and the base. Code::config lists
// everything that is wrong; errors may contain private names.
[[nodiscard]] Result<ReadyPlan> prepare_plan(LoadedConfig loaded, const Job& job,
                                             const MeasureOptions& wanted, const sys::Stop& stop);

}  // namespace weir::flow
