#include "gate/flow/accept.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/reports.hpp"
#include "gate/report/hints.hpp"
#include "gate/report/layout.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::flow {
namespace {

struct Taken {
  explicit Taken(const Configured& known) : redactor(known.redactor) {}
  std::vector<profile::Profile> profiles;
  std::vector<std::string> notes;
  config::Redactor redactor;  // over all that is said
};

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
  profile::Provenance& now = fresh.provenance;
  const profile::Provenance& then = earlier.provenance;
  if (now.fingerprint != then.fingerprint) {
    notes.push_back(
        fmt::format("{}: {} measured another configuration; its times are left out", cell, run));
    return {};
  }
  const auto differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  // Times belong to one build on one machine class; the session is filed under the fresh run's.
  const bool elsewhere = differ(now.machine_class, then.machine_class) ||
                         differ(now.engine_build.value_or(""), then.engine_build.value_or(""));
  if (elsewhere) {
    notes.push_back(
        fmt::format("{}: {} was measured on another machine class or build; its times are left out",
                    cell, run));
  }
  for (const auto& [name, measurement] : earlier.metrics) {
    const auto* counted = look_up(fresh.metrics, name);
    if (is_count(measurement) && counted != nullptr && measurement.exact && counted->exact &&
        *measurement.exact != *counted->exact) {
      return fail(Code::data,
                  "{}: {} was {} in {} and is {} now: the engine changed since\n"
                  "  measure again (weir gate), then accept",
                  cell, unit::label(measurement.metric), measurement.exact->str(), run,
                  counted->exact->str());
    }
    if (is_count(measurement) || elsewhere) continue;
    fresh.metrics.insert({name, measurement});
    fresh.timed_runs = earlier.timed_runs;
  }
  if (now.machine_class.empty()) now.machine_class = then.machine_class;
  if (!now.engine_build) now.engine_build = then.engine_build;
  if (now.device_class.empty()) now.device_class = then.device_class;
  return {};
}

// They take long: not where they are not to be stored.
bool wants_instructions(const AcceptOptions& options) {
  const auto matches = [](const std::string& glob) {
    return glob.starts_with("instructions") || text::glob_match(glob, "instructions_per_token") ||
           text::glob_match(glob, "instructions_per_prefill") ||
           text::glob_match(glob, "instructions_fixed");
  };
  return options.metrics.empty() || std::ranges::any_of(options.metrics, matches);
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
  Taken taken(loaded.known);
  std::map<std::string, std::set<std::string>> machines;  // and their devices
  for (profile::Profile& profile : measured.profiles) {
    if (!known.contains(profile.cell.str())) {
      taken.notes.push_back(
          fmt::format("{}: no cell of {}; left out", profile.cell.str(), job.asked.config));
      continue;
    }
    const profile::Provenance& from = profile.provenance;
    auto& devices = machines[text::printable(from.machine_name)];
    if (!from.device_name.empty()) devices.insert(text::printable(from.device_name));
    std::erase_if(profile.metrics, [](const auto& metric) { return !is_count(metric.second); });
    profile.timed_runs = 0;
    taken.profiles.push_back(std::move(profile));
  }
  const std::string commit = measured.beside && measured.beside->facts.candidate_commit
                                 ? *measured.beside->facts.candidate_commit
                                 : std::string("a commit that it does not name");
  std::vector<std::string> places;
  for (const auto& [machine, devices] : machines) {
    const std::vector<std::string> names(devices.begin(), devices.end());
    places.push_back(machine + (names.empty() ? "" : " (" + verdict::some_of(names) + ")"));
  }
  taken.notes.push_back(fmt::format(
      "counts alone, as the journal of {} has them: of {}, counted on {}. Nobody counted them "
      "here; look at what changed before you keep it",
      measured.folder, text::printable(commit.substr(0, 40)), text::join(places, "; ")));
  return taken;
}

std::string why_not(const profile::Profile& profile, const std::vector<std::string>& metrics) {
  // Of single metrics only where it is one of them.
  const bool is_answer =
      profile::only_does_not_fit(profile) && (metrics.empty() || holds(metrics, unit::k_fits));
  if (!profile.errors.empty() && !is_answer) return profile.errors.front();
  if (profile.placement.state == profile::Placement::State::refuted) {
    return "its work did not run where it was asked to: " + profile.placement.reason;
  }
  if (profile.metrics.empty()) return profile.counts_skipped.value_or("nothing was measured");
  return "";
}

// What a run says cannot be accepted, which measuring again would find again: cells with an error,
// and under the same configuration those whose work ran elsewhere.
std::vector<profile::Profile> refused(const Measured& earlier, const Job& job,
                                      const std::vector<std::string>& metrics) {
  const auto now = job.files().read(job.asked.config, std::uint64_t{1} << 22);
  const bool same = now && *now == earlier.config_text;
  std::vector<profile::Profile> list;
  for (const profile::Profile& profile : earlier.profiles) {
    const bool elsewhere = same && profile.placement.state == profile::Placement::State::refuted;
    const bool known = !profile.errors.empty() || elsewhere;
    if (known && !why_not(profile, metrics).empty()) list.push_back(profile);
  }
  return list;
}

// Measures; goes on with `run` where that is an interrupted one of the same plan.
Result<Measured> measure_on(const Job& job, const std::string& run, MeasureOptions wanted,
                            const std::function<Result<Measured>(const MeasureOptions&)>& start) {
  const auto begun = read_measured(job, run);
  if (begun && begun->verb == run::k_accept_verb && !begun->interrupted.empty()) {
    wanted.resume = begun->folder;
    auto resumed = start(wanted);
    if (resumed || resumed.error().code != Code::usage) return resumed;
    wanted.resume.reset();
  }
  return start(wanted);
}

// Measures what has to be measured for it. Fails with Code::data where the run that times are taken
// from counted something else.
Result<Taken> take(const Job& job, const AcceptOptions& options) {
  if (options.artifact) return take_artifact(job, options);
  MeasureOptions wanted;
  wanted.verb = run::k_accept_verb;
  wanted.plan.counted_processes = k_processes_that_agree;
  wanted.plan.overlapping_processes = k_processes_that_vary;
  wanted.plan.instruction_processes = wants_instructions(options) ? k_processes_that_vary : 0;
  WEIR_TRY(wanted.output_places, places_of(job));
  wanted.output_places.push_back(job.asked.baselines);
  const bool have_run =
      !options.run.empty() || run::newest_run(job.files(), job.asked.out).has_value();
  // Counting to accept is no run to judge or to take times from: it is kept apart.
  const Job counting = job.below("accept");
  const bool counts_only = job.asked.counts_only;
  Measured earlier;
  if (have_run && !counts_only) WEIR_SET(earlier, read_measured(job, options.run));
  const bool begun = !earlier.interrupted.empty() && earlier.verb == run::k_accept_verb;
  if (counts_only || !have_run || begun) {
    wanted.plan.times = !counts_only;
    const Job& place = counts_only ? counting : job;
    WEIR_TRY(Measured measured, measure_on(place, counts_only ? "" : options.run, wanted,
                                           [&](const auto& how) { return measure(place, how); }));
    Taken taken(measured.known);
    taken.profiles = std::move(measured.profiles);
    return taken;
  }
  if (!earlier.interrupted.empty()) return fail(Code::usage, "{}", earlier.interrupted);
  const bool countable = std::ranges::any_of(
      earlier.profiles, [](const profile::Profile& profile) { return !profile.counts_skipped; });
  if (!countable) {
    Taken taken(earlier.known);
    taken.profiles = std::move(earlier.profiles);
    return taken;
  }
  wanted.plan.times = false;
  std::vector<profile::Profile> out = refused(earlier, job, options.metrics);
  const auto load = [&]() -> Result<Loaded> {
    WEIR_TRY(Loaded loaded, load_config(job));
    std::erase_if(loaded.cells, [&](const config::Cell& cell) {
      return std::ranges::count(out, cell.key, &profile::Profile::cell) > 0;
    });
    return loaded;
  };
  WEIR_TRY(const Loaded loaded, load());
  Taken taken(loaded.known);
  if (!loaded.cells.empty()) {
    const auto count = [&](const MeasureOptions& how) {
      return load().and_then(
          [&](Loaded cells) { return measure_loaded(std::move(cells), counting, how); });
    };
    WEIR_TRY(Measured fresh,
             measure_on(counting, "", wanted, count).map_error(redacting(taken.redactor)));
    taken.profiles = std::move(fresh.profiles);
  }
  for (profile::Profile& profile : taken.profiles) {
    const auto same_cell =
        std::ranges::find(earlier.profiles, profile.cell, &profile::Profile::cell);
    if (same_cell == earlier.profiles.end()) continue;
    WEIR_CHECK(add_times(profile, *same_cell, earlier.folder, taken.notes)
                   .map_error(redacting(taken.redactor)));
  }
  std::ranges::move(out, std::back_inserter(taken.profiles));
  return taken;
}

// What to write in the config so that the ops a cell ran on the CPU may stay there; "" when that is
// not what keeps it out.
std::string proposal(const profile::Profile& profile) {
  std::map<std::string, std::set<std::string>> backends;  // by op
  for (const std::string& op : profile.placement.not_allowed) backends[op] = {profile.cell.backend};
  const std::string line = report::allowed_ops({{profile.cell.engine, std::move(backends)}});
  if (line.empty()) return "";
  return fmt::format("    If they belong there, say why in the config:\n      {}\n", line);
}

std::string stored_value(const profile::Measurement& measurement) {
  if (measurement.exact) return measurement.exact->str();
  if (!measurement.value() || !measurement.repeatability) return "varies";
  return fmt::format("{} (within {} %)", unit::show(measurement.metric, *measurement.value()),
                     report::about(100 * *measurement.repeatability));
}

std::string kernels_that_changed(const profile::KernelSet& before, const profile::KernelSet& now) {
  std::vector<std::pair<std::string, Rational>> differ;  // one that has another count stands twice
  std::ranges::set_symmetric_difference(before.counts, now.counts, std::back_inserter(differ));
  std::set<std::string> names;
  for (const auto& [name, count] : differ) names.insert(name);
  return names.empty() ? "kernels changed" : report::plural(names.size(), "kernel") + " changed";
}

std::string changes(const std::optional<baseline::Baseline>& old, const baseline::Baseline& now) {
  std::vector<std::string> parts;
  for (const auto& [name, measurement] : now.counts) {
    if (measurement.metric.scope == unit::Scope::fixed) continue;
    const std::string value = stored_value(measurement);
    const auto* then = old ? look_up(old->counts, name) : nullptr;
    const std::string before = then == nullptr ? "" : stored_value(*then);
    if (before == value) continue;
    const std::string change = before.empty() ? value : fmt::format("{} → {}", before, value);
    parts.push_back(fmt::format("{} {}", unit::label(measurement.metric), change));
  }
  if (old && old->kernels && now.kernels && !(*old->kernels == *now.kernels)) {
    parts.push_back(kernels_that_changed(*old->kernels, *now.kernels));
  }
  if (parts.empty()) return old ? "gated counts and kernels as they were" : "no gated counts";
  return text::join(parts);
}

// For people: of a first baseline how much it holds, for the file has the values.
std::string shown_changes(const std::optional<baseline::Baseline>& old,
                          const baseline::Baseline& now, int width) {
  std::string words = changes(old, now);
  if (!old && !now.counts.empty()) {
    words = report::plural(now.counts.size(), "count");
    if (now.kernels) words += ", " + report::plural(now.kernels->counts.size(), "kernel");
  }
  report::Page page(report::columns_of(width));
  page.paragraph("    ", words, 4);
  return page.finish();
}

// Counts that lie so far apart that no limit on them tells much.
std::string blind(const baseline::Baseline& now) {
  constexpr double k_too_far = 0.2;  // three times that is allowed
  std::vector<std::string> names;
  for (const auto& [name, measurement] : now.counts) {
    if (measurement.repeatability.value_or(0) > k_too_far && measurement.value() != 0)
      names.push_back(unit::label(measurement.metric));
  }
  if (names.empty()) return "";
  return fmt::format(
      "{} of its runs lie so far apart that a gate can hardly tell a regression from this\n"
      "    machine's noise: accept the cell again when fewer other programs run",
      text::join(names));
}

Result<Acceptance> store(const AcceptOptions& options, const Taken& taken, int width,
                         StoredBaselines& stored) {
  Acceptance acceptance;
  const auto redact_error = redacting(taken.redactor);
  const auto say = [&](const std::string& text) { acceptance.said += taken.redactor.text(text); };
  const auto keep = [&](const profile::Profile& profile, std::string_view outcome, const char* what,
                        const std::string& words) {
    acceptance.cells.push_back({{"cell", taken.redactor.cell(profile.cell).str()},
                                {"outcome", outcome},
                                {what, taken.redactor.text(words)}});
  };
  for (const profile::Profile& profile : taken.profiles) {
    const std::string cell = profile.cell.str();
    if (const std::string why = why_not(profile, options.metrics); !why.empty()) {
      const bool skipped = profile.errors.empty() && profile.metrics.empty();
      say(fmt::format("{}  {}\n    {}\n", skipped ? "skipped " : "left out", cell, why));
      keep(profile, skipped ? "skipped" : "left out", "reason", why);
      if (profile.errors.empty()) say(proposal(profile));
      acceptance.left_out += skipped ? 0 : 1;
      continue;
    }
    WEIR_TRY(
        const std::optional<baseline::Baseline> old,
        stored.of_class(profile.cell, profile.provenance.device_class).map_error(redact_error));
    const baseline::Baseline now = baseline::accept(profile, old, options.metrics, options.reason);
    if (old && baseline::to_text(*old) == baseline::to_text(now)) {
      say(fmt::format("same      {}\n", cell));
      keep(profile, "same", "changes", "");
    } else {
      WEIR_TRY(const std::string path, stored.put(now).map_error(redact_error));
      say(fmt::format("accepted  {}\n{}    {}\n", cell, shown_changes(old, now, width), path));
      if (!profile.errors.empty()) {
        say(fmt::format("    does not fit: {}\n    {} held before are gone\n",
                        profile.errors.front(),
                        report::plural(old ? old->counts.size() : 0, "count")));
      }
      keep(profile, "accepted", "changes", changes(old, now));
      acceptance.cells.back()["path"] = taken.redactor.text(path);
      if (const std::string why = blind(now); !why.empty()) {
        say(fmt::format("    warning: {}\n", why));
        acceptance.cells.back()["warning"] = taken.redactor.text(why);
      }
      acceptance.names.push_back(cell);
    }
    ++acceptance.accepted;
  }
  return acceptance;
}

}  // namespace

Result<Acceptance> store_baselines(const Job& job, const std::optional<std::string>& branch,
                                   const std::function<Result<Acceptance>(StoredBaselines&)>& store,
                                   const FinishEdit& finish) {
  if (!branch) {
    StoredBaselines stored(job.files(), job.asked.baselines);
    return store(stored);
  }
  WEIR_TRY(const BaselinesPlace place, baselines_place(*branch));
  WEIR_TRY(const auto repository, Repository::around(job.world, job.folder()));
  Acceptance acceptance;
  const auto edit = [&](const std::optional<std::string>& parent) -> Result<BranchEdit> {
    std::unique_ptr<source::TreeFiles> files;
    if (parent) {
      WEIR_TRY(const std::string folder, baselines_folder(repository->git(), *parent, place));
      WEIR_TRY(files,
               source::TreeFiles::open(repository->git(), *parent, folder, job.asked.baselines));
    } else {
      files = source::TreeFiles::nothing(repository->git(), place.path.value_or("baselines"),
                                         job.asked.baselines);
    }
    StoredBaselines stored(*files, job.asked.baselines);
    WEIR_TRY(acceptance, store(stored));
    BranchEdit made{files->changes(), ""};
    WEIR_CHECK(finish(place.ref, parent, acceptance, made));
    return made;
  };
  WEIR_TRY(const std::string commit, edit_branch(*repository, place.ref, edit));
  acceptance.said += written_words(place.ref, commit);
  return acceptance;
}

Answer answer_of(Acceptance acceptance, const std::string& summary) {
  return {acceptance.said + summary,
          document({{"schema", "weir.accepted/1"}, {"cells", std::move(acceptance.cells)}}),
          acceptance.left_out == 0 ? ExitCode::pass : ExitCode::unmeasured};
}

Result<Answer> accept(const Job& asked, const AcceptOptions& options) {
  for (const std::string& glob : options.metrics) {
    const auto& names = unit::metric_names();
    if (glob != "kernels" && glob.find('*') == std::string::npos && !unit::find_metric(glob) &&
        text::nearest(glob, names)) {
      return fail(Code::usage, "unknown metric \"{}\"{}", glob, text::did_you_mean(glob, names));
    }
  }
  if (!options.reason.empty() && !baseline::valid_reason(options.reason)) {
    return fail(Code::usage, "--reason: expected one line of at most 1000 bytes");
  }
  if (options.allowances) {
    if (options.artifact || !options.run.empty() || asked.asked.counts_only) {
      return fail(Code::usage, "--allowances measures nothing: leave {} out",
                  options.artifact          ? "--from-artifact"
                  : asked.asked.counts_only ? "--counts-only"
                                            : "RUN");
    }
    return accept_allowed(asked, options);
  }
  if (options.artifact && !options.run.empty()) {
    return fail(Code::usage, "--from-artifact names the run itself: leave RUN out");
  }
  Job job = asked;
  if (options.baselines_ref) WEIR_SET(job.rules, rules_of_branch(*options.baselines_ref, job));
  WEIR_TRY(const Taken taken, take(job, options));
  WEIR_TRY(
      Acceptance acceptance,
      store_baselines(
          job, options.baselines_ref,
          [&](StoredBaselines& stored) { return store(options, taken, job.width(), stored); },
          [&](const auto&, const auto&, const Acceptance& made, BranchEdit& edit) -> Result<void> {
            edit.message = made.names.size() == 1
                               ? "Accept " + made.names.front() + " as the baseline"
                               : fmt::format("Accept {} cells as baselines", made.names.size());
            if (!options.reason.empty()) edit.message += "\n\n" + options.reason;
            return {};
          }));
  for (const std::string& note : taken.notes) acceptance.said += taken.redactor.text(note + "\n");
  const std::string summary =
      fmt::format("{} accepted, {} left out\n", report::plural(acceptance.accepted, "cell"),
                  acceptance.left_out);
  return answer_of(std::move(acceptance), summary);
}

}  // namespace weir::flow
