#include "gate/app/session.hpp"

#include <unistd.h>

#include "gate/adapters/format.hpp"
#include "gate/app/calibrations.hpp"
#include "gate/app/known.hpp"
#include "gate/app/probing.hpp"
#include "gate/app/reference.hpp"
#include "gate/app/session_ready.hpp"
#include "gate/app/shards.hpp"
#include "gate/app/version.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/run/runner.hpp"
#include "gate/source/git.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::app {
namespace {

// The branch that is checked out. CI systems check out commits, and say in variables of theirs
// which branch it is.
std::optional<std::string> branch_of(const source::CommitFacts& head) {
  if (head.branch) return head.branch;
  for (const char* name : {"GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"}) {
    if (auto branch = sys::environment_value(name); branch && !branch->empty()) return branch;
  }
  return std::nullopt;
}

// What was checked out when it was measured: null where that is no repository. The branch stands
// apart, for shards of one commit may differ in it.
void keep_source(const CommonOptions& options, sys::Files& files, const sys::Stop& stop,
                 Json& extra) {
  extra["source"] = nullptr;
  sys::RealProcesses processes;
  const sys::RealClock clock;
  sys::HostLocks locks(sys::HostLocks::default_folder());
  const source::Effects effects{processes, files, clock, locks, {}, stop};
  const auto git = source::Git::open(effects, sys::absolute(sys::folder_of(options.config)));
  if (!git) return;
  const auto head = git->head();
  if (!head || !*head) return;
  extra["source"] = {
      {"commit", (*head)->name}, {"time", (*head)->time}, {"dirty", git->dirty().value_or(true)}};
  if (const auto branch = branch_of(**head)) extra["branch"] = *branch;
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
  if (ready.base) {
    header.extra["against"] = to_json(ready.base->facts);
  } else {
    keep_source(options, files, stop, header.extra);
  }
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
    // It is still the run that was begun, whatever is checked out by now.
    WEIR_TRY(run::RunFile begun, run::read_run(files, folder));
    header.extra = std::move(begun.header.extra);
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
  measured.profiles = profile::assemble_all(header.cells, header.unavailable, *records);
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
  measured.commit = commit_of_run(header.extra);
  measured.shard = wanted.shard_facts;
  tell_shard(measured);
  return measured;
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

void tell_shard(Measured& measured) {
  if (!measured.shard || measured.shard->index == 0) return;
  measured.some_cells = true;
  measured.not_judged.push_back(
      fmt::format("shard {}: a part of the matrix", measured.shard->name()));
}

void veil_profiles(Measured& measured) {
  for (profile::Profile& profile : measured.profiles) {
    profile = veiled(std::move(profile), measured.veil);
  }
}

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

}  // namespace weir::app
