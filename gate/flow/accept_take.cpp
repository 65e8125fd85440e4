#include <algorithm>
#include <set>

#include "gate/base/text.hpp"
#include "gate/flow/accept.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/veiled.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/metric.hpp"

namespace weir::flow {
namespace {

// "exact" is a promise: so many fresh processes of this engine agreed.
constexpr std::int64_t k_processes_that_agree = 3;
// What only nearly repeats says how nearly.
constexpr std::int64_t k_processes_that_vary = 10;

bool is_count(const profile::Measurement& measurement) {
  return measurement.metric.kind == unit::Kind::count;
}

// Times of an earlier run beside counts taken just now; both must be of the same engine.
Result<void> add_times(profile::Profile& fresh, const profile::Profile& earlier,
                       const std::string& run, std::vector<std::string>& notes) {
  const std::string cell = fresh.cell.str();
  if (fresh.provenance.fingerprint != earlier.provenance.fingerprint) {
    notes.push_back(
        fmt::format("{}: {} measured another configuration; its times are left out", cell, run));
    return {};
  }
  const auto differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  // Times belong to one build on one machine class; the session is filed under the fresh run's.
  const bool elsewhere = differ(fresh.provenance.machine_class, earlier.provenance.machine_class) ||
                         differ(fresh.provenance.engine_build.value_or(""),
                                earlier.provenance.engine_build.value_or(""));
  if (elsewhere) {
    notes.push_back(
        fmt::format("{}: {} was measured on another machine class or build; its times are left out",
                    cell, run));
  }
  for (const auto& [name, measurement] : earlier.metrics) {
    if (!is_count(measurement) && elsewhere) continue;
    if (is_count(measurement)) {
      const auto now = fresh.metrics.find(name);
      const bool same = now == fresh.metrics.end() || !measurement.exact || !now->second.exact ||
                        *measurement.exact == *now->second.exact;
      if (!same) {
        return fail(Code::data,
                    "{}: {} was {} in {} and is {} now: the engine changed since\n"
                    "  measure again (weir gate), then accept",
                    cell, unit::label(measurement.metric), measurement.exact->str(), run,
                    now->second.exact->str());
      }
    } else {
      fresh.metrics.insert({name, measurement});
      fresh.timed_runs = earlier.timed_runs;
    }
  }
  if (fresh.provenance.machine_class.empty()) {
    fresh.provenance.machine_class = earlier.provenance.machine_class;
  }
  if (!fresh.provenance.engine_build)
    fresh.provenance.engine_build = earlier.provenance.engine_build;
  if (fresh.provenance.device_class.empty()) {
    fresh.provenance.device_class = earlier.provenance.device_class;
  }
  return {};
}

std::map<std::string, AllowedOps> allowed_ops(const config::Settings& settings) {
  std::map<std::string, AllowedOps> allowed;
  for (const config::EngineSettings& engine : settings.engines) {
    allowed[engine.name] = engine.cpu_ops_allowed;
  }
  return allowed;
}

// They take long: not where they are not to be stored.
bool wants_instructions(const AcceptOptions& options) {
  const auto matches = [](const std::string& glob) {
    for (const char* name :
         {"instructions_per_token", "instructions_per_prefill", "instructions_fixed"}) {
      if (text::glob_match(glob, name)) return true;
    }
    return glob.starts_with("instructions");
  };
  return options.metrics.empty() ||
         std::any_of(options.metrics.begin(), options.metrics.end(), matches);
}

// The counts of a run that was measured elsewhere, as its journal has them. What it is of is its
// own claim, so only cells of this configuration are taken, and it is said whose they are.
Result<Taken> take_artifact(const Job& job, const AcceptOptions& options) {
  const std::string& run = *options.artifact;
  if (run.empty()) return fail(Code::usage, "--from-artifact needs the folder of a run");
  WEIR_TRY(const Loaded loaded, load_config(job));
  WEIR_TRY(Measured measured, read_measured(job, run));
  if (!measured.interrupted.empty()) return fail(Code::usage, "{}", measured.interrupted);
  const std::set<std::string> known = names_of(loaded.cells);
  Taken taken;
  taken.allowed = allowed_ops(*loaded.known.settings);
  taken.veil = loaded.known.veil;
  std::set<std::string> machines;
  for (profile::Profile& profile : measured.profiles) {
    if (!known.contains(profile.cell.str())) {
      taken.notes.push_back(
          fmt::format("{}: no cell of {}; left out", profile.cell.str(), job.asked.config));
      continue;
    }
    const profile::Provenance& from = profile.provenance;
    machines.insert(text::printable(
        from.machine_name + (from.device_name.empty() ? "" : " (" + from.device_name + ")")));
    std::erase_if(profile.metrics, [](const auto& metric) { return !is_count(metric.second); });
    profile.timed_runs = 0;
    taken.profiles.push_back(std::move(profile));
  }
  const std::string commit = measured.beside && measured.beside->facts.candidate_commit
                                 ? *measured.beside->facts.candidate_commit
                                 : std::string("a commit that it does not name");
  taken.notes.push_back(fmt::format(
      "counts alone, as the journal of {} has them: of {}, counted on {}. Nobody counted them "
      "here; look at what changed before you keep it",
      measured.folder, text::printable(commit.substr(0, 40)),
      text::join(std::vector<std::string>(machines.begin(), machines.end()), "; ")));
  return taken;
}

}  // namespace

Result<Taken> take(const Job& job, const AcceptOptions& options) {
  if (options.artifact) return take_artifact(job, options);
  Taken taken;
  MeasureOptions wanted;
  wanted.plan.counted_processes = k_processes_that_agree;
  wanted.plan.overlapping_processes = k_processes_that_vary;
  wanted.plan.instruction_processes = wants_instructions(options) ? k_processes_that_vary : 0;
  wanted.output_places = json_places(job);
  wanted.output_places.push_back(job.asked.baselines);
  const bool have_run =
      !options.run.empty() || run::newest_run(job.files(), job.asked.out).has_value();
  // Counting to accept is no run to judge or to take times from: it is kept apart.
  const Job counting = job.below("accept");
  if (job.asked.counts_only || !have_run) {
    wanted.plan.times = !job.asked.counts_only;
    WEIR_TRY(Measured measured, measure(job.asked.counts_only ? counting : job, wanted));
    taken.allowed = allowed_ops(*measured.known.settings);
    taken.veil = std::move(measured.known.veil);
    taken.profiles = std::move(measured.profiles);
    return taken;
  }
  WEIR_TRY(Measured earlier, read_measured(job, options.run));
  if (!earlier.interrupted.empty()) return fail(Code::usage, "{}", earlier.interrupted);
  const bool countable =
      std::any_of(earlier.profiles.begin(), earlier.profiles.end(),
                  [](const profile::Profile& profile) { return !profile.counts_skipped; });
  taken.allowed = allowed_ops(*earlier.known.settings);
  taken.veil = earlier.known.veil;
  if (!countable) {
    taken.profiles = std::move(earlier.profiles);
    return taken;
  }
  wanted.plan.times = false;
  WEIR_TRY(Measured fresh, measure(counting, wanted));
  taken.allowed = allowed_ops(*fresh.known.settings);
  taken.veil = std::move(fresh.known.veil);
  for (profile::Profile& profile : fresh.profiles) {
    const auto same_cell =
        std::find_if(earlier.profiles.begin(), earlier.profiles.end(),
                     [&](const profile::Profile& one) { return one.cell == profile.cell; });
    if (same_cell != earlier.profiles.end()) {
      if (!same_cell->errors.empty()) profile.errors = same_cell->errors;
      WEIR_CHECK(
          add_times(profile, *same_cell, earlier.folder, taken.notes).map_error([&](Error error) {
            return veiled(std::move(error), taken.veil);
          }));
    }
    taken.profiles.push_back(std::move(profile));
  }
  return taken;
}

}  // namespace weir::flow
