// What run, gate and accept share: from the command line to measured profiles.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/flow/allowances.hpp"
#include "gate/flow/base.hpp"
#include "gate/flow/configure.hpp"
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
  std::size_t least_pairs = 0;         // of each cell beside it, decided or not
  std::vector<std::string> results{};  // files of the only cell, which are read; nothing is started
  std::optional<std::string> shard = std::nullopt;  // "3/16"
  std::string plan_file = {};                       // of weir plan
  std::optional<run::ShardFacts> shard_facts = {};  // of the cells that were loaded
  // Measuring that takes longer is ended: Code::unavailable, and no process is left.
  std::optional<double> limit_seconds = std::nullopt;
  // Places that will be written besides the run's folder: checked before the first engine starts.
  std::vector<std::string> output_places;
  bool starts = true;  // false: what would be run is only shown
  // The verb that goes on with an interrupted run: run::k_accept_verb as it is, others with
  // --resume. "": none does, and the run's error names none.
  std::string verb{};
};

// One measured run, whether just now or read from its journal.
struct Measured {
  Configured known;  // what it was measured under
  // In plan order, with their true names; behind the depths of a list the line over them.
  std::vector<profile::Profile> profiles;
  std::string folder;       // of the run
  std::string config_text;  // of a run that was read: its weir.yaml
  double seconds = 0;       // how long measuring took; 0 when read
  bool counts_only = false;
  bool some_cells = false;  // the config has more than these
  // It was read to be judged by a commit's rules: whoever measured it may not be trusted, and all
  // that it says of its base, its rules and itself is a claim.
  bool claimed = false;
  // HEAD of the repository that the configuration lies in, where there is one and nothing in it
  // differed from it: a base's facts say it for a run beside one.
  std::optional<std::string> commit{};
  // Of a run that was read: what the first line of its reports has to admit, and why nothing of
  // it may be stored ("": it is whole, as far as the selected cells go).
  std::vector<std::string> not_judged;
  std::string interrupted;
  std::string verb{};                      // MeasureOptions::verb of a run that was read
  std::optional<Beside> beside{};          // of --against
  std::optional<run::ShardFacts> shard{};  // it is one, or was joined from them
  std::optional<Allowed> allowed{};        // of --allowances-ref
};

// Aliases in place of private names in its profiles, before they are shown.
void redact_profiles(Measured& measured);

// Checks everything that can be checked, then measures. Fails with Code::config before the first
// engine starts, Code::interrupted on Ctrl-C (naming the command that goes on with it).
[[nodiscard]] Result<Measured> measure(const Job& job, const MeasureOptions& wanted);

// The same for what was loaded before, whose settings and cells may be the caller's own. Errors
// may hold private names.
[[nodiscard]] Result<Measured> measure_loaded(Loaded loaded, const Job& job,
                                              const MeasureOptions& wanted);

// What `load` answers, measured: goes on with the newest run below the job's folder of runs, where
// there is one of the same plan.
[[nodiscard]] Result<Measured> measure_or_resume(const std::function<Result<Loaded>()>& load,
                                                 const Job& job, MeasureOptions wanted);

// A finished or interrupted run, from its folder ("" is the newest below --out).
[[nodiscard]] Result<Measured> read_measured(const Job& job, const std::string& run);

// Programs that this session would start, in order, under their true names.
struct PlannedCommand {
  std::string cell;
  profile::Pass pass = profile::Pass::timed;
  sys::ProcessSpec spec;            // its environment: what the config sets
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
[[nodiscard]] Result<std::vector<PlannedCommand>> planned_commands(Loaded loaded, const Job& job,
                                                                   const MeasureOptions& wanted,
                                                                   const PlannedPlaces& places);

// A plan that is checked and can be carried out: what measuring and showing a plan share.
struct Ready {
  Loaded loaded;
  run::Plan plan;
  sys::Machine machine;
  std::optional<PreparedBase> base;
  std::unique_ptr<run::KernelCompiler> compiler{};  // null: no cell has kernels to compile
};

// Looks at devices, programs and places, makes twins and the base's side. Fails with Code::config
// naming all that is wrong; errors may hold private names.
[[nodiscard]] Result<Ready> make_ready(Loaded loaded, const Job& job, const MeasureOptions& wanted,
                                       const sys::Stop& stop);

}  // namespace weir::flow
