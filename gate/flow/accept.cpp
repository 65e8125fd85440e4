// weir baseline accept: measures or reads the counts and times of cells, and stores them.
#include "gate/flow/accept.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/accepted_changes.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/reports.hpp"
#include "gate/report/hints.hpp"
#include "gate/report/layout.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/declared_metric.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::flow {
namespace {

// Measured cells that may become baselines.
struct Candidates {
  explicit Candidates(const Configuration& configuration) : redactor(configuration.redactor) {}
  std::vector<profile::Profile> profiles;
  std::vector<std::string> notes;
  config::Redactor redactor;  // for everything that is printed
};

// A stored count is "exact" only if so many fresh processes of the engine agreed.
constexpr std::int64_t k_processes_that_agree = 3;
// A count that varies is stored with its spread over so many processes.
constexpr std::int64_t k_processes_that_vary = 10;

bool is_count(const profile::Measurement& measurement) {
  return measurement.metric.kind == unit::Kind::count;
}

// Adds the times of an earlier run to counts taken just now. Leaves out times of another
// configuration, machine or build, with a note. Fails with Code::data if an exact count differs:
// then the engine changed.
Result<void> add_times(profile::Profile& counted_profile, const profile::Profile& earlier,
                       const std::string& run, std::vector<std::string>& notes) {
  const std::string cell = counted_profile.cell.str();
  profile::Provenance& provenance = counted_profile.provenance;
  const profile::Provenance& earlier_provenance = earlier.provenance;
  if (provenance.fingerprint != earlier_provenance.fingerprint) {
    notes.push_back(
        fmt::format("{}: {} measured another configuration; its times are left out", cell, run));
    return {};
  }
  const auto both_differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  // Times belong to one build on one machine class, and are stored under the new run's.
  const bool is_elsewhere =
      both_differ(provenance.machine_class, earlier_provenance.machine_class) ||
      both_differ(provenance.engine_build.value_or(""),
                  earlier_provenance.engine_build.value_or(""));
  if (is_elsewhere) {
    notes.push_back(
        fmt::format("{}: {} was measured on another machine class or build; its times are left out",
                    cell, run));
  }
  for (const auto& [name, measurement] : earlier.metrics) {
    const auto* counted = look_up(counted_profile.metrics, name);
    if (is_count(measurement) && counted != nullptr && measurement.exact && counted->exact &&
        *measurement.exact != *counted->exact) {
      return fail(Code::data,
                  "{}: {} was {} in {} and is {} now: the engine changed since\n"
                  "  measure again (weir gate), then accept",
                  cell, unit::display_name(measurement.metric), measurement.exact->str(), run,
                  counted->exact->str());
    }
    if (is_count(measurement) || is_elsewhere) continue;
    counted_profile.metrics.insert({name, measurement});
    counted_profile.timed_runs = earlier.timed_runs;
  }
  if (provenance.machine_class.empty()) provenance.machine_class = earlier_provenance.machine_class;
  if (!provenance.engine_build) provenance.engine_build = earlier_provenance.engine_build;
  if (provenance.device_class.empty()) provenance.device_class = earlier_provenance.device_class;
  return {};
}

// Returns true if instructions are to be stored: counting them takes long.
bool wants_instructions(const AcceptOptions& options) {
  const auto selects_instructions = [](const std::string& glob) {
    return glob.starts_with("instructions") || text::glob_match(glob, "instructions_per_token") ||
           text::glob_match(glob, "instructions_per_prefill") ||
           text::glob_match(glob, "instructions_fixed");
  };
  return options.metrics.empty() || std::ranges::any_of(options.metrics, selects_instructions);
}

// Reads the counts of a run that was measured elsewhere. The run's origin is its own claim, so only
// cells of this configuration count, and a note names the machines.
Result<Candidates> read_artifact(const Job& job, const AcceptOptions& options) {
  const std::string& run = *options.artifact;
  if (run.empty()) return fail(Code::usage, "--from-artifact needs the folder of a run");
  WEIR_TRY(const LoadedConfig loaded, load_config(job));
  WEIR_TRY(MeasuredRun measured, read_measured(job, run));
  if (!measured.interrupted.empty()) return fail(Code::usage, "{}", measured.interrupted);
  const std::set<std::string> configured_cells = cell_names(loaded.cells);
  Candidates candidates(loaded.configuration);
  std::map<std::string, std::set<std::string>> machines;  // and their devices
  for (profile::Profile& profile : measured.profiles) {
    if (!configured_cells.contains(profile.cell.str())) {
      candidates.notes.push_back(
          fmt::format("{}: no cell of {}; left out", profile.cell.str(), job.selection.config));
      continue;
    }
    const profile::Provenance& from = profile.provenance;
    auto& devices = machines[text::printable(from.machine_name)];
    if (!from.device_name.empty()) devices.insert(text::printable(from.device_name));
    std::erase_if(profile.metrics, [](const auto& metric) { return !is_count(metric.second); });
    profile.timed_runs = 0;
    candidates.profiles.push_back(std::move(profile));
  }
  const std::string commit = measured.base_runs && measured.base_runs->facts.candidate_commit
                                 ? *measured.base_runs->facts.candidate_commit
                                 : std::string("a commit that it does not name");
  std::vector<std::string> places;
  for (const auto& [machine, devices] : machines) {
    const std::vector<std::string> names(devices.begin(), devices.end());
    places.push_back(machine + (names.empty() ? "" : " (" + verdict::list_some(names) + ")"));
  }
  candidates.notes.push_back(fmt::format(
      "counts alone, as the journal of {} has them: of {}, counted on {}. Nobody counted them "
      "here; look at what changed before you keep it",
      measured.folder, text::printable(commit.substr(0, 40)), text::join(places, "; ")));
  return candidates;
}

// Returns the reason why a measured cell cannot become a baseline; "" if it can.
std::string rejection(const profile::Profile& profile, const std::vector<std::string>& metrics) {
  const bool does_not_fit =
      profile::only_does_not_fit(profile) && (metrics.empty() || holds(metrics, unit::k_fits));
  if (!profile.errors.empty() && !does_not_fit) return profile.errors.front();
  if (profile.placement.state == profile::Placement::State::ran_elsewhere) {
    return "its work did not run where it was asked to: " + profile.placement.reason;
  }
  if (profile.metrics.empty()) return profile.counts_skip_reason.value_or("nothing was measured");
  return "";
}

// Returns the cells of `earlier` that measuring again would reject again: those with an error, and
// those whose work ran elsewhere under the same configuration.
std::vector<profile::Profile> find_rejected(const MeasuredRun& earlier, const Job& job,
                                            const std::vector<std::string>& metrics) {
  const auto config_text = job.files().read(job.selection.config, std::uint64_t{1} << 22);
  const bool same_config = config_text && *config_text == earlier.config_text;
  std::vector<profile::Profile> list;
  for (const profile::Profile& profile : earlier.profiles) {
    const bool ran_elsewhere =
        same_config && profile.placement.state == profile::Placement::State::ran_elsewhere;
    const bool is_final = !profile.errors.empty() || ran_elsewhere;
    if (is_final && !rejection(profile, metrics).empty()) list.push_back(profile);
  }
  return list;
}

// Measures by `start`, and resumes `run` if it is an interrupted run of the same plan.
Result<MeasuredRun> resume_or_start(
    const Job& job, const std::string& run, MeasureOptions wanted,
    const std::function<Result<MeasuredRun>(const MeasureOptions&)>& start) {
  const auto interrupted_run = read_measured(job, run);
  if (interrupted_run && interrupted_run->verb == run::k_accept_verb &&
      !interrupted_run->interrupted.empty()) {
    wanted.resume = interrupted_run->folder;
    auto resumed = start(wanted);
    if (resumed || resumed.error().code != Code::usage) return resumed;
    wanted.resume.reset();
  }
  return start(wanted);
}

// Fails with Code::usage if `run` was measured under another configuration file than the job's.
Result<void> check_configuration(const MeasuredRun& run, const Job& job) {
  const std::string& measured = run.configuration.file;
  const std::string& wanted = job.selection.config;
  if (sys::absolute(measured) == sys::absolute(wanted)) return {};
  return fail(Code::usage,
              "{} was measured under {}, not {}\n  run \"weir gate -c {}\" first, or name one of "
              "its runs",
              run.folder, measured, wanted, wanted);
}

// Obtains the cells to store: reads a run, or measures what it lacks. Fails with Code::data if the
// run that the times come from counted something else.
Result<Candidates> obtain_candidates(const Job& job, const AcceptOptions& options) {
  if (options.artifact) return read_artifact(job, options);
  MeasureOptions wanted;
  wanted.verb = run::k_accept_verb;
  wanted.plan.counted_processes = options.processes.value_or(k_processes_that_agree);
  wanted.plan.overlapping_processes =
      std::max(options.processes.value_or(0), k_processes_that_vary);
  wanted.plan.instruction_processes = wants_instructions(options) ? k_processes_that_vary : 0;
  WEIR_TRY(wanted.output_places, report_places(job));
  wanted.output_places.push_back(job.selection.baselines);
  const bool have_run = !options.run.empty() || newest_run(job).has_value();
  // A run that only counts for acceptance is neither judged nor used for times: it has a folder of
  // its own.
  const Job counting = job.below("accept");
  const bool counts_only = job.selection.counts_only;
  MeasuredRun earlier;
  if (have_run && !counts_only) {
    WEIR_TRY_SET(earlier, read_measured(job, options.run));
    WEIR_CHECK(check_configuration(earlier, job));
  }
  const bool resumes = !earlier.interrupted.empty() && earlier.verb == run::k_accept_verb;
  if (counts_only || !have_run || resumes) {
    wanted.plan.times = !counts_only;
    const Job& measuring_job = counts_only ? counting : job;
    WEIR_TRY(MeasuredRun measured, resume_or_start(measuring_job, counts_only ? "" : options.run,
                                                   wanted, [&](const auto& measure_options) {
                                                     return measure(measuring_job, measure_options);
                                                   }));
    Candidates candidates(measured.configuration);
    candidates.profiles = std::move(measured.profiles);
    return candidates;
  }
  if (!earlier.interrupted.empty()) return fail(Code::usage, "{}", earlier.interrupted);
  const bool countable = std::ranges::any_of(earlier.profiles, [](const profile::Profile& profile) {
    return !profile.counts_skip_reason;
  });
  if (!countable) {
    Candidates candidates(earlier.configuration);
    candidates.profiles = std::move(earlier.profiles);
    return candidates;
  }
  wanted.plan.times = false;
  std::vector<profile::Profile> rejected = find_rejected(earlier, job, options.metrics);
  const auto load = [&]() -> Result<LoadedConfig> {
    WEIR_TRY(LoadedConfig loaded, load_config(job));
    std::erase_if(loaded.cells, [&](const config::Cell& cell) {
      return std::ranges::count(rejected, cell.key, &profile::Profile::cell) > 0;
    });
    return loaded;
  };
  WEIR_TRY(const LoadedConfig loaded, load());
  Candidates candidates(loaded.configuration);
  if (!loaded.cells.empty()) {
    const auto count_cells = [&](const MeasureOptions& how) {
      return load().and_then(
          [&](LoadedConfig cells) { return measure_loaded(std::move(cells), counting, how); });
    };
    WEIR_TRY(MeasuredRun counted_run, resume_or_start(counting, "", wanted, count_cells)
                                          .map_error(redacting(candidates.redactor)));
    candidates.profiles = std::move(counted_run.profiles);
  }
  for (profile::Profile& profile : candidates.profiles) {
    const auto same_cell =
        std::ranges::find(earlier.profiles, profile.cell, &profile::Profile::cell);
    if (same_cell == earlier.profiles.end()) continue;
    WEIR_CHECK(add_times(profile, *same_cell, earlier.folder, candidates.notes)
                   .map_error(redacting(candidates.redactor)));
  }
  std::ranges::move(rejected, std::back_inserter(candidates.profiles));
  return candidates;
}

// Returns the config line that lets a cell's ops stay on the CPU; "" if such ops are not the reason
// for its rejection.
std::string cpu_ops_hint(const profile::Profile& profile) {
  std::map<std::string, std::set<std::string>> backends;  // by op
  for (const std::string& op : profile.placement.not_allowed) backends[op] = {profile.cell.backend};
  const std::string line = report::allowed_ops({{profile.cell.engine, std::move(backends)}});
  if (line.empty()) return "";
  return fmt::format("    If they belong there, say why in the config:\n      {}\n", line);
}

// Stores each candidate or says why not, as text and as JSON.
Result<Acceptance> store_candidates(const AcceptOptions& options, const Candidates& candidates,
                                    int width, StoredBaselines& stored) {
  Acceptance acceptance;
  const auto redact_error = redacting(candidates.redactor);
  const auto add_text = [&](const std::string& text) {
    acceptance.text += candidates.redactor.text(text);
  };
  const auto add_json = [&](const profile::Profile& profile, std::string_view outcome,
                            const char* key, const std::string& words) {
    acceptance.cells.push_back({{"cell", candidates.redactor.cell(profile.cell).str()},
                                {"outcome", outcome},
                                {key, candidates.redactor.text(words)}});
  };
  for (const profile::Profile& profile : candidates.profiles) {
    const std::string cell = profile.cell.str();
    if (const std::string reason = rejection(profile, options.metrics); !reason.empty()) {
      const bool skipped = profile.errors.empty() && profile.metrics.empty();
      add_text(fmt::format("{}  {}\n    {}\n", skipped ? "skipped " : "left out", cell, reason));
      add_json(profile, skipped ? "skipped" : "left out", "reason", reason);
      if (profile.errors.empty()) add_text(cpu_ops_hint(profile));
      acceptance.left_out += skipped ? 0 : 1;
      continue;
    }
    WEIR_TRY(
        const std::optional<baseline::Baseline> before,
        stored.of_class(profile.cell, profile.provenance.device_class).map_error(redact_error));
    const baseline::Baseline after =
        baseline::accept(profile, before, options.metrics, options.reason);
    if (before && baseline::to_text(*before) == baseline::to_text(after)) {
      add_text(fmt::format("same      {}\n", cell));
      add_json(profile, "same", "changes", "");
    } else {
      WEIR_TRY(const std::string path, stored.put(after).map_error(redact_error));
      add_text(
          fmt::format("accepted  {}\n{}    {}\n", cell, changes_text(before, after, width), path));
      if (!profile.errors.empty()) {
        add_text(fmt::format("    does not fit: {}\n    {} held before are gone\n",
                             profile.errors.front(),
                             text::plural(before ? before->counts.size() : 0, "count")));
      }
      add_json(profile, "accepted", "changes", describe_changes(before, after));
      acceptance.cells.back()["path"] = candidates.redactor.text(path);
      if (const std::string warning = spread_warning(after); !warning.empty()) {
        add_text(fmt::format("    warning: {}\n", warning));
        acceptance.cells.back()["warning"] = candidates.redactor.text(warning);
      }
      acceptance.names.push_back(cell);
      LargestChange largest = find_largest_change(before, after);
      if (largest.share > acceptance.largest.share) acceptance.largest = std::move(largest);
    }
    if (const std::vector<std::string> varying = varying_counts(after); !varying.empty()) {
      for (const std::string& line : varying) add_text(fmt::format("    varies  {}\n", line));
      const bool is_few =
          options.processes.value_or(k_processes_that_agree) < k_processes_that_vary;
      add_text(fmt::format(
          "    A gate compares all values of both runs by rank.{}\n",
          is_few ? fmt::format(" More of them decide more: --processes {}", k_processes_that_vary)
                 : ""));
      acceptance.cells.back()["varies"] = collect<std::string>(
          varying, [&](const auto& line) { return candidates.redactor.text(line); });
    }
    ++acceptance.accepted;
  }
  return acceptance;
}

// Returns the subject of the commit: its cells, and the largest change.
std::string commit_subject(const Acceptance& acceptance) {
  const auto& names = acceptance.names;
  constexpr std::size_t k_longest = 100;  // of a name or a change that somebody chose
  std::string cells = names.empty() ? "no cell" : text::shortened(names.front(), k_longest);
  if (names.size() > 1) cells += fmt::format(" and {} more", names.size() - 1);
  return fmt::format("Accept {}: {}", cells, text::shortened(acceptance.largest.text, k_longest));
}

}  // namespace

// Calls `store` on the folder of baselines, or on the files of `branch`, which it then commits with
// the message that `finish` sets.
Result<Acceptance> store_baselines(const Job& job, const std::optional<std::string>& branch,
                                   const std::function<Result<Acceptance>(StoredBaselines&)>& store,
                                   const FinishEdit& finish) {
  if (!branch) {
    StoredBaselines stored(job.files(), job.selection.baselines);
    return store(stored);
  }
  WEIR_TRY(const BaselinesPlace place, baselines_place(*branch));
  WEIR_TRY(const auto repository, Repository::containing(job.world, job.folder()));
  Acceptance acceptance;
  const auto edit = [&](const std::optional<std::string>& parent) -> Result<BranchEdit> {
    std::unique_ptr<source::TreeFiles> files;
    std::string folder =
        place.path.value_or("baselines");  // paths are shown as the branch has them
    if (parent) {
      WEIR_TRY_SET(folder, baselines_folder(repository->git(), *parent, place));
      WEIR_TRY(files, source::TreeFiles::open(repository->git(), *parent, folder, folder));
    } else {
      files = source::TreeFiles::nothing(repository->git(), folder, folder);
    }
    StoredBaselines stored(*files, folder);
    WEIR_TRY(acceptance, store(stored));
    BranchEdit branch_edit{files->changes(), ""};
    WEIR_CHECK(finish(place.ref, parent, acceptance, branch_edit));
    return branch_edit;
  };
  WEIR_TRY(const std::string commit, edit_branch(*repository, place.ref, edit));
  acceptance.text += written_text(place.ref, commit);
  return acceptance;
}

Answer acceptance_answer(Acceptance acceptance, const std::string& summary) {
  return {acceptance.text + summary,
          json_document({{"schema", "weir.accepted/1"}, {"cells", std::move(acceptance.cells)}}),
          acceptance.left_out == 0 ? ExitCode::pass : ExitCode::unmeasured};
}

Result<Answer> accept(const Job& given_job, const AcceptOptions& options) {
  for (const std::string& glob : options.metrics) {
    const bool is_name = glob != "kernels" && glob.find('*') == std::string::npos;
    const std::string meant = unit::suggest_metric(glob);
    if (is_name && !unit::find_metric(glob) && !meant.empty())
      return fail(Code::usage, "unknown metric \"{}\"{}", glob, meant);
  }
  if (!options.reason.empty() && !baseline::valid_reason(options.reason)) {
    return fail(Code::usage, "--reason: expected one line of at most 1000 bytes");
  }
  if (options.waivers) {
    const char* unused = nullptr;
    if (!options.run.empty()) unused = "RUN";
    if (given_job.selection.counts_only) unused = "--counts-only";
    if (options.artifact) unused = "--from-artifact";
    if (options.processes) unused = "--processes";
    if (unused != nullptr) {
      return fail(Code::usage, "--waivers measures nothing: leave {} out", unused);
    }
    return accept_waived(given_job, options);
  }
  if (options.artifact && options.processes) {
    return fail(Code::usage, "--from-artifact counts nothing: leave --processes out");
  }
  if (options.artifact && !options.run.empty()) {
    return fail(Code::usage, "--from-artifact names the run itself: leave RUN out");
  }
  Job job = given_job;
  if (options.baselines_ref)
    WEIR_TRY_SET(job.rules, read_branch_rules(*options.baselines_ref, job));
  WEIR_TRY(const Candidates candidates, obtain_candidates(job, options));
  WEIR_TRY(Acceptance acceptance, store_baselines(
                                      job, options.baselines_ref,
                                      [&](StoredBaselines& stored) {
                                        return store_candidates(options, candidates, job.width(),
                                                                stored);
                                      },
                                      [&](const auto&, const auto&, const Acceptance& result,
                                          BranchEdit& edit) -> Result<void> {
                                        edit.message = commit_subject(result);
                                        if (!options.reason.empty())
                                          edit.message += "\n\n" + options.reason;
                                        return {};
                                      }));
  for (const std::string& note : candidates.notes)
    acceptance.text += candidates.redactor.text(note + "\n");
  const std::string summary = fmt::format(
      "{} accepted, {} left out\n", text::plural(acceptance.accepted, "cell"), acceptance.left_out);
  return acceptance_answer(std::move(acceptance), summary);
}

}  // namespace weir::flow
