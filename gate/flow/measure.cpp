// Measures a matrix of cells, or reads a measured run again: from configuration to profiles.
#include "gate/flow/measure.hpp"

#include <functional>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/rules.hpp"
#include "gate/flow/calibrate.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/input_edits.hpp"
#include "gate/flow/kernel_code.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/result_files.hpp"
#include "gate/flow/shards.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::flow {
namespace {

// Returns the checked-out branch. CI systems check out commits, so their variables name it.
std::optional<std::string> current_branch(const source::CommitFacts& head,
                                          const sys::World& world) {
  if (head.branch) return head.branch;
  for (const char* name : {"GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"}) {
    if (auto branch = world.environment(name); branch && !branch->empty()) return branch;
  }
  return std::nullopt;
}

// Returns the commit that a run measured; nothing if its checkout had changes.
std::optional<std::string> measured_commit(const Json& extra) {
  JsonReader source(member_or_null(extra, "source"), "source");
  const auto commit = source.optional_string("commit");
  return source.optional_boolean("dirty").value_or(true) ? std::nullopt : commit;
}

// Returns the commit that a run says it measured, without changes; "" if it says none.
std::string claimed_commit(const Json& extra) {
  JsonReader against(member_or_null(extra, "against"), "against");
  const auto candidate = against.optional_string("candidate_commit");
  if (candidate && !against.optional_boolean("candidate_dirty").value_or(true)) return *candidate;
  return measured_commit(extra).value_or("");
}

// Returns true if a run says that tracked files of its checkout were edited.
bool was_edited(const Json& extra) {
  JsonReader against(member_or_null(extra, "against"), "against");
  JsonReader source(member_or_null(extra, "source"), "source");
  return against.optional_boolean("candidate_dirty").value_or(false) ||
         source.optional_boolean("dirty").value_or(false);
}

// Returns the files of a run's checkout that its commit does not show; nothing if it had edits and
// does not list them.
std::optional<std::vector<std::string>> claimed_uncommitted(const Json& extra) {
  const Json& listed = member_or_null(extra, "uncommitted");
  if (!listed.is_array() && was_edited(extra)) return std::nullopt;
  std::vector<std::string> files;
  for (const Json& file : listed) {
    if (file.is_string()) files.push_back(file.get<std::string>());
  }
  return files;
}

// Notes that a shard is only a part of the matrix; does nothing for another run.
void add_shard_note(MeasuredRun& measured) {
  if (!measured.shard || measured.shard->index == 0) return;
  measured.is_selection = true;
  measured.not_judged.push_back(
      fmt::format("shard {}: a part of the matrix", measured.shard->name()));
}

// Records the files of the checkout that its commit does not show; nothing if they are too many.
void record_uncommitted(const Job& job, const source::Git& git, Json& extra) {
  constexpr std::size_t k_max_listed = 1000;
  auto files = find_uncommitted(job, git);
  if (files && files->size() <= k_max_listed) extra["uncommitted"] = *std::move(files);
}

// Records the checked-out commit in a run's header. The branch has a field of its own: shards of
// one commit may differ in it.
void record_commit(const Job& job, const source::Git& git, Json& extra) {
  const auto head = git.head();
  if (!head || !*head) return;
  extra["source"] = {
      {"commit", (*head)->name}, {"time", (*head)->time}, {"dirty", git.dirty().value_or(true)}};
  if (const auto branch = current_branch(**head, job.world)) extra["branch"] = *branch;
}

// Returns the names of cells that the base's matrix does not have; none without a base's rules.
std::set<std::string> find_added_cells(const ReadyPlan& ready) {
  std::set<std::string> added;
  const std::optional<AppliedRules>& rules = ready.loaded.configuration.rules;
  if (!rules || !rules->from || rules->config_text.empty()) return added;
  for (const run::PreparedCell& cell : ready.plan.cells) added.insert(cell.cell.key.str());
  for (const verdict::BaseCell& base_cell : rules->required_cells)
    added.erase(base_cell.current_name);
  return added;
}

// Returns the limits, the budget and the number of pairs for paired runs of candidate and base.
run::AgainstOptions paired_run_options(const ReadyPlan& ready, const MeasureOptions& wanted,
                                       const Job& job) {
  const config::Settings& settings = *ready.loaded.configuration.settings;
  run::AgainstOptions options;
  options.limits = settings.limits;
  options.gate = settings.gate;
  options.policy = gate_policy(settings.gate);
  if (wanted.shard_facts) {
    options.policy.false_alarm = shard_false_alarm(*wanted.shard_facts, options.policy.false_alarm);
  }
  options.counts = wanted.plan.counts;
  options.times = wanted.plan.times;
  options.min_pairs = wanted.min_pairs;
  options.added_cells = find_added_cells(ready);
  options.calibrated_pairs =
      calibrated_pairs(Calibrations(job.files()), ready.plan.cells, settings);
  const BaseFacts& facts = ready.base->facts;
  options.order_rotation =
      std::stoull(short_hash(facts.candidate_commit.value_or(facts.words)), nullptr, 16);
  return options;
}

// Returns the header of a new run: its configuration and machine, and what else judging it needs
// (commit, rules, waivers).
run::RunHeader describe_run(const ReadyPlan& ready, const Job& job, const MeasureOptions& options,
                            const sys::Stop& stop) {
  run::RunHeader header = run::make_header(ready.plan);
  header.weir_version = k_version;
  header.started_at = job.world.clock.now();
  header.config_file = job.selection.config;
  header.config_text = ready.loaded.text;
  header.machine = ready.machine;
  header.notes = ready.loaded.configuration.notes;
  header.extra["counts_only"] = !options.plan.times;
  if (!options.verb.empty()) header.extra["verb"] = options.verb;
  if (options.shard_facts) header.extra["shard"] = run::to_json(*options.shard_facts);
  const source::Effects effects = source_effects(job.world, stop);
  const auto git = source::Git::open(effects, job.folder());
  if (git) record_uncommitted(job, *git, header.extra);
  if (ready.base) {
    header.extra["against"] = write_fields(ready.base->facts);
  } else {
    header.extra["source"] = nullptr;
    if (git) record_commit(job, *git, header.extra);
  }
  if (ready.loaded.configuration.rules)
    header.extra["rules"] = write_fields(*ready.loaded.configuration.rules);
  if (job.waived) header.extra["waivers"] = write_fields(*job.waived);
  return header;
}

// Resumes the run that --resume names, or begins a new one, and sets `folder` to the run's. A
// resumed run keeps the facts in its own header, whatever is checked out by now.
Result<run::Journal> open_journal(const run::Plan& plan, const Job& job,
                                  const MeasureOptions& options, run::RunHeader& header,
                                  std::string& folder) {
  if (!options.resume) {
    WEIR_TRY(folder,
             run::make_run_folder(job.files(), job.selection.runs_folder, header.started_at));
    return run::Journal::create(job.files(), folder, header);
  }
  folder = *options.resume;
  if (folder.empty()) WEIR_TRY_SET(folder, newest_run(job));
  WEIR_TRY(run::Journal journal, run::Journal::resume(job.files(), folder, plan));
  WEIR_TRY(run::RunFile resumed_run, run::read_run(job.files(), folder));
  header.extra = std::move(resumed_run.header.extra);
  for (const std::string& warning : resumed_run.warnings) job.log(warning);
  return journal;
}

// Copies the baselines of a commit's rules into the run, also those of renamed cells.
Result<void> keep_rules_baselines(const std::vector<verdict::BaseCell>& held_cells,
                                  const run::RunHeader& header, const Job& job,
                                  const std::string& folder) {
  auto keys = collect<profile::CellKey>(header.cells, &profile::CellFacts::cell);
  for (const verdict::BaseCell& required_cell : held_cells) {
    if (required_cell.current_name != required_cell.cell)
      WEIR_TRY_SET(keys.emplace_back(), profile::CellKey::parse(required_cell.cell));
  }
  return keep_baselines(*job.rules, job, keys, folder);
}

// Adds to the error of an unfinished run the command that resumes it.
Error with_resume_command(Error error, const std::string& verb, const std::string& folder,
                          const Json& extra) {
  if (verb.empty() || (error.code != Code::interrupted && error.code != Code::io)) return error;
  error.message = fmt::format("{}; what was measured is kept. Go on with: {} and the same options",
                              error.code == Code::io ? error.message : "interrupted",
                              run::resume_command(verb, folder, extra));
  return error;
}

// Prepares the plan, runs it or resumes an interrupted run, and assembles the profiles. Ends with
// Code::interrupted when `stop` is requested.
Result<MeasuredRun> measure_until(LoadedConfig loaded, const Job& job, const MeasureOptions& wanted,
                                  const sys::Stop& stop) {
  const double started = job.world.clock.steady();
  WEIR_TRY(ReadyPlan ready, prepare_plan(std::move(loaded), job, wanted, stop));
  run::RunHeader header = describe_run(ready, job, wanted, stop);
  std::string folder;
  WEIR_TRY(run::Journal journal, open_journal(ready.plan, job, wanted, header, folder));
  if (job.rules) {
    WEIR_CHECK(keep_rules_baselines(ready.loaded.configuration.rules->required_cells, header, job,
                                    folder));
  }

  WEIR_TRY(const auto probing, make_probing(job.world, wanted.results.empty()));
  const auto progress =
      run::make_progress(job.world.clock, job.output.quiet, job.bar_columns(), job.colored(2));
  RedactedProgress redacted_progress(*progress, ready.loaded.configuration.redactor);
  const run::CodeStore codes = code_store();
  run::Effects effects{job.world.processes,  job.files(), job.world.clock,   job.world.locks,
                       job.world.load,       *probing,    redacted_progress, stop,
                       ready.compiler.get(), &codes};
  const auto check_seal = [&] { return ready.base->seal.check(job.files()); };
  if (ready.base && !ready.base->seal.empty()) effects.check = check_seal;
  run::Runner runner(effects, ready.machine.usable_cores);
  const CachedCounts cached_counts(job.files(),
                                   ready.base ? ready.base->counts_folder : std::string());
  std::unique_ptr<run::Sequel> against;
  if (ready.base) {
    const auto show = [&](const run::PairsPlan& plan) {
      const config::Redactor& redactor = ready.loaded.configuration.redactor;
      for (const std::string& line : describe_pairs(plan, ready.base->facts, redactor)) {
        progress->say(line);
      }
    };
    against = run::make_against(ready.plan, paired_run_options(ready, wanted, job), cached_counts,
                                job.world.coin, show);
  }
  auto records = runner.run(ready.plan, journal, against.get());
  progress->finish();
  if (!records) {
    return tl::unexpected(
        with_resume_command(std::move(records).error(), wanted.verb, folder, header.extra));
  }
  if (effects.check) WEIR_CHECK(effects.check());
  const profile::RecordsByCell by_cell(std::move(*records));
  MeasuredRun measured;
  measured.profiles = profile::assemble_all(header.cells, header.unavailable, by_cell);
  if (ready.base) {
    measured.base_runs =
        assemble_base_runs(ready.base->facts, header, measured.profiles, by_cell, cached_counts);
    for (std::string& line : keep_base_counts(*ready.base, header, by_cell, folder, job.files())) {
      measured.base_runs->facts.notes.push_back(std::move(line));
    }
  }
  set_reference_rates(*ready.loaded.configuration.settings, measured.profiles);
  measured.profiles = verdict::add_depth_fits(std::move(measured.profiles));
  measured.configuration = std::move(ready.loaded.configuration);
  if (job.waived) measured.waived = *job.waived;
  measured.folder = folder;
  measured.seconds = job.world.clock.steady() - started;
  measured.counts_only = !wanted.plan.times;
  measured.is_selection = !job.selection.cells.empty();
  measured.commit = measured_commit(header.extra);
  measured.shard = wanted.shard_facts;
  add_shard_note(measured);
  return measured;
}

}  // namespace

void redact_profiles(MeasuredRun& measured) {
  for (profile::Profile& profile : measured.profiles) {
    profile = redacted(std::move(profile), measured.configuration.redactor);
  }
}

// Measures a loaded configuration within the time limit. Errors may contain private names.
Result<MeasuredRun> measure_loaded(LoadedConfig loaded, const Job& job,
                                   const MeasureOptions& options) {
  if (options.budget) {
    WEIR_TRY_SET(loaded.configuration.settings->gate.budget_seconds,
                 unit::parse_duration_seconds(*options.budget));
  }
  const sys::Interrupts interrupts(options.limit_seconds);
  auto measured = measure_until(std::move(loaded), job, options, interrupts.stop());
  if (!measured && interrupts.over()) {
    return fail(Code::unavailable, "it was not done within what was left of the time");
  }
  return measured;
}

// Measures what `load` returns, and resumes the newest run if it has the same plan.
Result<MeasuredRun> measure_or_resume(const std::function<Result<LoadedConfig>()>& load,
                                      const Job& job, MeasureOptions options) {
  const auto start = [&] {
    return load().and_then(
        [&](LoadedConfig loaded) { return measure_loaded(std::move(loaded), job, options); });
  };
  const auto earlier = run::list_runs(job.files(), job.selection.runs_folder);
  if (earlier.empty()) return start();
  options.resume = earlier.back();
  auto resumed = start();
  if (resumed || resumed.error().code != Code::usage) return resumed;
  options.resume.reset();
  return start();
}

// Loads the configuration, applies --results and --shard, and measures. Errors show no private
// names.
Result<MeasuredRun> measure(const Job& job, const MeasureOptions& wanted) {
  WEIR_CHECK(check_runs_folder(job));
  WEIR_TRY(LoadedConfig loaded, load_config(job));
  MeasureOptions options = wanted;
  if (wanted.results.empty()) {
    leave_out_results(loaded);
  } else {
    WEIR_CHECK(use_result_files(wanted.results, job, loaded, options.plan));
    options.verb.clear();
  }
  if (wanted.shard)
    WEIR_TRY_SET(options.shard_facts, choose_shard(loaded, *wanted.shard, wanted.plan_file,
                                                   wanted.plan.times, job.files()));
  const config::Redactor redactor = loaded.configuration.redactor;
  return measure_loaded(std::move(loaded), job, options).map_error(redacting(redactor));
}

namespace {

// Processes that an interrupted run did not start, by cell. A counted pass that lacks a process
// gives no counts: two points of three fit a line that nobody planned. Times use the samples that
// exist, and the first line of a report says that some are missing.
using UnfinishedCells = std::map<std::string, run::Unfinished>;

std::string process_count_text(std::int64_t missing, std::int64_t planned) {
  return fmt::format("{} of {} processes ran: the run was interrupted", planned - missing, planned);
}

// Adds an error to each cell that an interrupted run left without results. Notes which times are
// missing, and why nothing of the run may be stored.
void report_interruption(const UnfinishedCells& unfinished, const std::string& resume_command,
                         MeasuredRun& measured) {
  std::size_t without_times = 0;
  std::int64_t missing = 0, planned = 0;
  for (profile::Profile& profile : measured.profiles) {
    const run::Unfinished unfinished_cell =
        look_up(unfinished, profile.cell.str(), run::Unfinished{});
    missing += unfinished_cell.counted + unfinished_cell.timed;
    planned += unfinished_cell.counted_planned + unfinished_cell.timed_planned;
    if (unfinished_cell.timed > 0) ++without_times;
    const bool has_no_time =
        unfinished_cell.timed > 0 && unfinished_cell.timed == unfinished_cell.timed_planned;
    if (unfinished_cell.counted == 0 && !(has_no_time && unfinished_cell.counted_planned == 0))
      continue;
    std::erase(profile.errors, profile::k_no_record);
    profile.errors.push_back(
        unfinished_cell.counted > 0
            ? "counted: " +
                  process_count_text(unfinished_cell.counted, unfinished_cell.counted_planned)
            : "timed: " + process_count_text(unfinished_cell.timed, unfinished_cell.timed_planned));
  }
  if (without_times > 0) {
    measured.not_judged.push_back(
        fmt::format("timed processes missing in {} of {} cells: the run was interrupted",
                    without_times, measured.profiles.size()));
  }
  if (missing > 0) {
    measured.interrupted = fmt::format(
        "{} lacks {} of {} processes of its cells: it was interrupted\n"
        "  {} goes on with it",
        measured.folder, missing, planned, resume_command);
  }
}

// A run that is judged by a commit's rules (weir gate --from RUN --rules-from REF) may come from a
// fork: every byte of its folder is a claim. We take its numbers as they are. Everything else comes
// from the text of its weir.yaml under the commit's rules, as for a new run: what a cell is, its
// limits, which ops may stay on the CPU.

constexpr std::size_t k_max_entries = 100'000;

// Fails if `path` or anything below it is a link, or if there are too many files.
Result<void> check_no_links(const std::string& path, const sys::Files& files,
                            std::size_t& entries) {
  const auto folder = sys::real_path(sys::folder_of(path));
  const auto real = sys::real_path(path);
  if (!folder || !real || *real != sys::join_path(*folder, sys::file_name_of(path))) {
    return fail(Code::data, "{}: is a link: what is read of a run lies in its folder",
                text::printable(path));
  }
  ++entries;
  if (entries > k_max_entries) {
    return fail(Code::data, "{}: more than {} files", text::printable(path), k_max_entries);
  }
  if (files.kind(path) != sys::Kind::folder) return {};
  WEIR_TRY(const std::vector<std::string> names, files.list(path));
  for (const std::string& name : names) {
    WEIR_CHECK(check_no_links(sys::join_path(path, name), files, entries));
  }
  return {};
}

// Recomputes the parts of a fingerprint (hashes that identify a cell) that the configuration
// determines. The other parts describe files that lie elsewhere, and stay as claimed.
void set_fingerprint(const config::Cell& cell, profile::Provenance& claimed) {
  const auto& configured_parts = run::fingerprint_parts(cell, {}, "");
  std::erase_if(claimed.fingerprint_parts, [&](const auto& part) {
    return !configured_parts.contains(part.first) && part.first != run::k_device_description;
  });
  for (const auto& [name, text] : cell.identity) {
    claimed.fingerprint_parts[name] = short_hash(text);
  }
  claimed.fingerprint_parts[run::k_counting_rules_part] = short_hash(run::k_counting_rules);
  if (const std::string* variables = look_up(configured_parts, profile::k_variables)) {
    claimed.fingerprint_parts[profile::k_variables] = *variables;
  }
  claimed.fingerprint = run::combine_fingerprint(claimed.fingerprint_parts);
}

// Fails with Code::data if a cell was counted by other rules than this weir's: nothing else could
// tell such a run from one that says so of itself.
Result<void> check_counting_rules(const profile::CellFacts& facts) {
  const std::string own = short_hash(run::k_counting_rules);
  if (look_up(facts.provenance.fingerprint_parts, run::k_counting_rules_part, own) == own)
    return {};
  return fail(Code::data,
              "{} was counted by another version of weir: measure it with the version that judges",
              facts.cell.str());
}

// Replaces what a journal claims about its cells by what the configuration says. Fails with
// Code::data if the configuration lacks a cell, or it was counted by other rules.
Result<void> replace_claimed_facts(const std::map<std::string, const config::Cell*>& cells,
                                   const Job& job, std::vector<profile::CellFacts>& cell_facts) {
  for (profile::CellFacts& facts : cell_facts) {
    const std::string name = facts.cell.str();
    const config::Cell* cell = look_up(cells, name, nullptr);
    if (cell != nullptr) {
      WEIR_CHECK(check_counting_rules(facts));
      run::describe(*cell, facts);
      facts.twin = cell->twin;
      set_fingerprint(*cell, facts.provenance);
    } else if (job.selection.cells.empty()) {  // else it is not looked at
      return fail(Code::data, "its journal has the cell {}, which its configuration lacks", name);
    }
  }
  return {};
}

// Returns true if `job` judges what it reads by a commit's rules.
bool judges_claims(const Job& job) { return job.rules && job.rules->used.from; }

// Fails with Code::data if a link in a run's folder leads elsewhere.
Result<void> check_run_folder(const std::string& run, const sys::Files& files) {
  if (files.kind(run) != sys::Kind::folder) return {};
  std::size_t entries = 0;
  for (const std::string& name :
       {std::string(run::k_journal_name), sys::file_name_of(base_counts_folder(run)),
        std::string("confirm")}) {
    const std::string path = sys::join_path(run, name);
    if (files.exists(path)) WEIR_CHECK(check_no_links(path, files, entries));
  }
  return {};
}

// Returns the run's own configuration under the rules of `job`, and corrects `header` by it. Cells
// that the rules require and the run lacks are marked as gone. Fails with Code::data if the journal
// does not fit the configuration, with Code::usage for a single shard.
Result<Configuration> apply_commit_rules(const Job& job, run::RunHeader& header) {
  WEIR_TRY(const auto shard, run::parse_shard_facts(header.extra));
  if (shard && shard->index > 0) {
    return fail(Code::usage,
                "--rules-from judges whole runs, and this is shard {}: weir merge joins shards",
                shard->name());
  }
  Job run_job = job;
  run_job.selection.config_text = header.config_text;
  run_job.selection.claimed_commit = claimed_commit(header.extra);
  run_job.selection.claimed_uncommitted = claimed_uncommitted(header.extra);
  WEIR_TRY(LoadedConfig loaded, load_config(run_job));
  std::map<std::string, const config::Cell*> unmatched_cells;
  for (const config::Cell& cell : loaded.cells) unmatched_cells[cell.key.str()] = &cell;
  for (std::size_t i = 0; i < header.base_cells.size(); ++i) {
    if (header.base_cells[i].cell != header.cells[i].cell) {
      return fail(Code::data, "its journal has a base of other cells");
    }
  }
  WEIR_CHECK(replace_claimed_facts(unmatched_cells, job, header.cells));
  WEIR_CHECK(replace_claimed_facts(unmatched_cells, job, header.base_cells));
  std::set<std::string> measured_cells;
  for (const profile::CellFacts& facts : header.cells) measured_cells.insert(facts.cell.str());
  AppliedRules& rules = *loaded.configuration.rules;
  drop_reference_cell("its rates are the run's own claims", *loaded.configuration.settings, rules);
  for (verdict::BaseCell& required_cell : rules.required_cells) {
    const std::string& name = required_cell.current_name;
    unmatched_cells.erase(name);
    if (name.empty() || measured_cells.contains(name)) continue;
    required_cell.current_name.clear();
    required_cell.why = "the run does not hold it";
  }
  for (const std::string& cell : measured_cells) unmatched_cells.erase(cell);
  if (!unmatched_cells.empty()) {
    rules.not_judged.push_back(fmt::format("{} of the run's own matrix not in it",
                                           text::plural(unmatched_cells.size(), "cell")));
  }
  // Nothing that its configuration names is opened.
  loaded.configuration.file_path = "";
  return std::move(loaded.configuration);
}

// Reads the configuration that a run was measured under. For an untrusted run the commit's rules
// come first, and `header` is corrected by them.
Result<void> read_run_configuration(const Job& job, run::RunHeader& header, MeasuredRun& measured) {
  if (measured.claimed) {
    WEIR_TRY(measured.configuration,
             apply_commit_rules(job, header).map_error(with_prefix(measured.folder)));
    return {};
  }
  WEIR_TRY(measured.configuration, read_configuration(header, job.world));
  const Json& waivers = member_or_null(header.extra, "waivers");
  if (!waivers.is_null()) WEIR_TRY_SET(measured.waived, read_fields<Waived>(waivers, "waivers"));
  return {};
}

// Leaves the records that can be used: a counted pass that lacks a process gives no counts.
void drop_unfinished_counts(const UnfinishedCells& unfinished,
                            std::vector<profile::RunRecord>& records) {
  std::erase_if(records, [&](const profile::RunRecord& record) {
    const run::Unfinished* missing = look_up(unfinished, record.cell);
    return record.pass == profile::Pass::counted && missing != nullptr && missing->counted > 0;
  });
}

// Reads the base's runs from a run's file; does nothing for a run without a base.
Result<void> read_base_runs(const Job& job, const run::RunFile& file,
                            const profile::RecordsByCell& records, MeasuredRun& measured) {
  if (file.header.base_cells.empty()) return {};
  const auto facts =
      read_fields<BaseFacts>(member_or_null(file.header.extra, "against"), "against");
  if (!facts) {
    return fail(Code::data, "{}: it ran beside a base that its journal does not describe",
                measured.folder);
  }
  measured.base_runs =
      assemble_base_runs(*facts, file.header, measured.profiles, records,
                         CachedCounts(job.files(), base_counts_folder(measured.folder)));
  return {};
}

// Removes the profiles that --cell does not select, now or by their names in the base. Fails if
// none is left.
Result<void> select_profiles(const Job& job, MeasuredRun& measured) {
  if (job.selection.cells.empty()) return {};
  measured.is_selection = true;
  const config::Redactor& redactor = measured.configuration.redactor;
  const std::optional<AppliedRules>& rules = measured.configuration.rules;
  const config::FormerNames former = rules ? former_names(*rules) : config::FormerNames();
  const auto is_selected = [&](const profile::CellKey& cell) {
    return job.selection.wants_any(config::selecting_names(cell, redactor));
  };
  std::erase_if(measured.profiles, [&](const profile::Profile& profile) {
    const profile::CellKey* former_key = look_up(former, profile.cell.str());
    return !is_selected(profile.cell) && (former_key == nullptr || !is_selected(*former_key));
  });
  if (!measured.profiles.empty()) return {};
  return fail(Code::usage, "{}: no cell matches {}", measured.folder,
              text::join(job.selection.cells));
}

// Notes that pairs may be missing in an interrupted run beside a base.
void report_missing_pairs(const run::RunFile& file, const std::string& resume_command,
                          MeasuredRun& measured) {
  if (file.header.base_cells.empty() || file.ended) return;
  measured.not_judged.emplace_back("pairs may be missing: the run was interrupted");
  if (!measured.interrupted.empty()) return;
  measured.interrupted =
      fmt::format("{} was interrupted beside its base\n  {} and the same --against go on with it",
                  measured.folder, resume_command);
}

}  // namespace

// Returns the configuration that a run was measured under, with the rules that judged it.
Result<Configuration> read_configuration(const run::RunHeader& header, const sys::World& world) {
  // Limits that expired since then still hold for what was measured under them.
  config::Supported context = config_context(world, header.config_file);
  context.today = sys::date_of(header.started_at);
  WEIR_TRY(Configuration configuration,
           parse_configuration(header.config_text, header.config_file, context));
  configuration.notes = header.notes;
  const Json& rules = member_or_null(header.extra, "rules");
  if (rules.is_null()) return configuration;
  WEIR_TRY(configuration.rules, read_fields<AppliedRules>(rules, "rules"));
  const std::string& text = configuration.rules->config_text;
  if (text.empty()) return configuration;
  WEIR_TRY(const BaseSettings base, parse_base_settings(text, header.config_file, context));
  hide_private_names(base.settings, configuration);
  config::copy_rules(base.settings, *configuration.settings);
  if (configuration.rules->no_reference) configuration.settings->gate.reference.reset();
  return configuration;
}

// Reads a run from its journal: its configuration, its profiles, and what is missing in it. "" is
// the newest run.
Result<MeasuredRun> read_measured(const Job& job, const std::string& run) {
  MeasuredRun measured;
  measured.folder = run;
  if (run.empty()) WEIR_TRY_SET(measured.folder, newest_run(job));
  measured.claimed = judges_claims(job);
  if (measured.claimed) WEIR_CHECK(check_run_folder(measured.folder, job.files()));
  WEIR_TRY(run::RunFile file, run::read_run(job.files(), measured.folder));
  measured.bytes = file.whole_bytes;
  const run::RunHeader& header = file.header;
  WEIR_TRY(measured.shard, run::parse_shard_facts(header.extra));
  WEIR_CHECK(read_run_configuration(job, file.header, measured));
  measured.config_text = header.config_text;
  const UnfinishedCells unfinished = run::unfinished(file);
  drop_unfinished_counts(unfinished, file.records);
  const profile::RecordsByCell records(std::move(file.records));
  measured.profiles = profile::assemble_all(header.cells, header.unavailable, records);
  set_reference_rates(*measured.configuration.settings, measured.profiles);
  const auto matrix = config::expand(*measured.configuration.settings);
  measured.is_selection = !measured.claimed && matrix && header.cells.size() < matrix->cells.size();
  WEIR_CHECK(read_base_runs(job, file, records, measured));
  JsonReader extra(header.extra, "extra");
  measured.commit = measured_commit(header.extra);
  measured.counts_only = extra.optional_boolean("counts_only").value_or(false);
  measured.verb = run::verb_of_run(header.extra);
  for (std::string& warning : file.warnings)
    measured.configuration.notes.push_back(std::move(warning));
  WEIR_CHECK(select_profiles(job, measured));
  const std::string resume = run::resume_command(measured.verb, measured.folder, header.extra);
  report_interruption(unfinished, resume, measured);
  report_missing_pairs(file, resume, measured);
  add_shard_note(measured);
  measured.profiles = verdict::add_depth_fits(std::move(measured.profiles));
  return measured;
}

}  // namespace weir::flow
