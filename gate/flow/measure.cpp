#include "gate/flow/measure.hpp"

#include <functional>

#include "gate/adapters/format.hpp"
#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/rules.hpp"
#include "gate/flow/calibrate.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/kernel_code.hpp"
#include "gate/flow/shards.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::flow {
namespace {

// The branch that is checked out. CI systems check out commits, and say in variables of theirs
// which branch it is.
std::optional<std::string> branch_of(const source::CommitFacts& head, const sys::World& world) {
  if (head.branch) return head.branch;
  for (const char* name : {"GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"}) {
    if (auto branch = world.environment(name); branch && !branch->empty()) return branch;
  }
  return std::nullopt;
}

// Of a run's header: HEAD when it was measured, where nothing differed from that.
std::optional<std::string> commit_of_run(const Json& extra) {
  JsonReader source(below(extra, "source"), "source");
  const auto commit = source.optional_string("commit");
  return source.optional_boolean("dirty").value_or(true) ? std::nullopt : commit;
}

// Says of a shard that it is a part of the matrix; nothing of another run.
void tell_shard(Measured& measured) {
  if (!measured.shard || measured.shard->index == 0) return;
  measured.some_cells = true;
  measured.not_judged.push_back(
      fmt::format("shard {}: a part of the matrix", measured.shard->name()));
}

// What was checked out when it was measured: null where that is no repository. The branch stands
// apart, for shards of one commit may differ in it.
void keep_source(const Job& job, const sys::Stop& stop, Json& extra) {
  extra["source"] = nullptr;
  const source::Effects effects = effects_of(job.world, stop);
  const auto git = source::Git::open(effects, job.folder());
  if (!git) return;
  const auto head = git->head();
  if (!head || !*head) return;
  extra["source"] = {
      {"commit", (*head)->name}, {"time", (*head)->time}, {"dirty", git->dirty().value_or(true)}};
  if (const auto branch = branch_of(**head, job.world)) extra["branch"] = *branch;
}

run::AgainstOptions against_options(const Ready& ready, const MeasureOptions& wanted,
                                    const Job& job) {
  const config::Settings& settings = *ready.loaded.known.settings;
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
  options.calibrated_pairs =
      calibrated_pairs(Calibrations(job.files()), ready.plan.cells, settings);
  const BaseFacts& facts = ready.base->facts;
  options.rotation =
      std::stoull(short_hash(facts.candidate_commit.value_or(facts.words)), nullptr, 16);
  return options;
}

Result<Measured> measure_until(Loaded loaded, const Job& job, const MeasureOptions& wanted,
                               const sys::Stop& stop) {
  const double started = job.world.clock.steady();
  WEIR_TRY(Ready ready, make_ready(std::move(loaded), job, wanted, stop));

  run::RunHeader header = run::make_header(ready.plan);
  header.weir_version = k_version;
  header.started_at = job.world.clock.now();
  header.config_file = job.asked.config;
  header.config_text = ready.loaded.text;
  header.machine = ready.machine;
  header.notes = ready.loaded.known.notes;
  header.extra["counts_only"] = !wanted.plan.times;
  if (!wanted.verb.empty()) header.extra["verb"] = wanted.verb;
  if (wanted.shard_facts) header.extra["shard"] = run::to_json(*wanted.shard_facts);
  if (ready.base) {
    header.extra["against"] = write_fields(ready.base->facts);
  } else {
    keep_source(job, stop, header.extra);
  }
  if (ready.loaded.known.rules) header.extra["rules"] = write_fields(*ready.loaded.known.rules);
  if (job.allowed) header.extra["allowances"] = write_fields(*job.allowed);

  std::string folder;
  std::optional<run::Journal> journal;
  if (wanted.resume) {
    folder = *wanted.resume;
    if (folder.empty()) WEIR_SET(folder, run::newest_run(job.files(), job.asked.out));
    WEIR_TRY(journal, run::Journal::resume(job.files(), folder, ready.plan));
    // It is still the run that was begun, whatever is checked out by now.
    WEIR_TRY(run::RunFile begun, run::read_run(job.files(), folder));
    header.extra = std::move(begun.header.extra);
    for (const std::string& warning : begun.warnings) job.talk(warning);
  } else {
    WEIR_TRY(folder, run::make_run_folder(job.files(), job.asked.out, header.started_at));
    WEIR_TRY(journal, run::Journal::create(job.files(), folder, header));
  }
  if (job.rules) {
    auto keys = collect<profile::CellKey>(header.cells, &profile::CellFacts::cell);
    for (const verdict::HeldCell& held : ready.loaded.known.rules->held) {
      if (held.now != held.cell) WEIR_SET(keys.emplace_back(), profile::CellKey::parse(held.cell));
    }
    WEIR_CHECK(keep_baselines(*job.rules, job, keys, folder));
  }

  WEIR_TRY(const auto probing, make_probing(job.world));
  const auto progress = run::make_progress(job.world.clock, job.shown.quiet, job.colored(2));
  RedactedProgress shown(*progress, ready.loaded.known.redactor);
  const run::CodeStore codes = code_store();
  run::Runner runner({job.world.processes, job.files(), job.world.clock, job.world.locks,
                      job.world.load, *probing, shown, stop, ready.compiler.get(), &codes},
                     ready.machine.usable_cores);
  const CachedCounts known(job.files(), ready.base ? ready.base->counts_folder : std::string());
  std::unique_ptr<run::Sequel> against;
  if (ready.base) {
    const auto show = [&](const run::PairsPlan& plan) {
      const config::Redactor& redactor = ready.loaded.known.redactor;
      for (const std::string& line : words_of(plan, ready.base->facts, redactor)) {
        progress->say(line);
      }
    };
    against = run::make_against(ready.plan, against_options(ready, wanted, job), known,
                                job.world.coin, show);
  }
  auto records = runner.run(ready.plan, *journal, against.get());
  progress->finish();
  if (!records) {
    Error error = std::move(records).error();
    if (!wanted.verb.empty() && (error.code == Code::interrupted || error.code == Code::io)) {
      error.message =
          fmt::format("{}; what was measured is kept. Go on with: {} and the same options",
                      error.code == Code::io ? error.message : "interrupted",
                      run::resume_command(wanted.verb, folder, header.extra));
    }
    return tl::unexpected(std::move(error));
  }
  Measured measured;
  measured.profiles = profile::assemble_all(header.cells, header.unavailable, *records);
  if (ready.base) {
    measured.beside =
        measured_beside(ready.base->facts, header, measured.profiles, *records, known);
    for (std::string& line : keep_base_counts(*ready.base, header, *records, folder, job.files())) {
      measured.beside->facts.notes.push_back(std::move(line));
    }
  }
  take_reference(*ready.loaded.known.settings, measured.profiles);
  measured.profiles = verdict::with_fits(std::move(measured.profiles));
  measured.known = std::move(ready.loaded.known);
  if (job.allowed) measured.allowed = *job.allowed;
  measured.folder = folder;
  measured.seconds = job.world.clock.steady() - started;
  measured.counts_only = !wanted.plan.times;
  measured.some_cells = !job.asked.cells.empty();
  measured.commit = commit_of_run(header.extra);
  measured.shard = wanted.shard_facts;
  tell_shard(measured);
  return measured;
}

}  // namespace

void redact_profiles(Measured& measured) {
  for (profile::Profile& profile : measured.profiles) {
    profile = redacted(std::move(profile), measured.known.redactor);
  }
}

Result<Measured> measure_loaded(Loaded loaded, const Job& job, const MeasureOptions& wanted) {
  const sys::Interrupts interrupts(wanted.limit_seconds);
  auto measured = measure_until(std::move(loaded), job, wanted, interrupts.stop());
  if (!measured && interrupts.over()) {
    return fail(Code::unavailable, "it was not done within what was left of the time");
  }
  return measured;
}

Result<Measured> measure_or_resume(const std::function<Result<Loaded>()>& load, const Job& job,
                                   MeasureOptions wanted) {
  const auto measured = [&] {
    return load().and_then(
        [&](Loaded loaded) { return measure_loaded(std::move(loaded), job, wanted); });
  };
  const auto earlier = run::list_runs(job.files(), job.asked.out);
  if (earlier.empty()) return measured();
  wanted.resume = earlier.back();
  auto resumed = measured();
  if (resumed || resumed.error().code != Code::usage) return resumed;
  wanted.resume.reset();
  return measured();
}

namespace {

bool takes_results(const config::Cell& cell) {
  const adapters::Adapter* adapter = adapters::find(cell.adapter);
  return adapter != nullptr && adapter->counts == adapters::Counts::results;
}

// Cells that only result files have say nothing of a gate that starts engines.
void leave_out_results(Loaded& loaded) {
  const auto alone = [](const config::Cell& cell) {
    return cell.command.empty() && takes_results(cell);
  };
  if (std::ranges::all_of(loaded.cells, alone)) return;  // which says what is missing
  if (const auto count = std::erase_if(loaded.cells, alone); count > 0) {
    loaded.known.notes.push_back(
        fmt::format("{} of result files left out: weir gate --results judges {}",
                    report::plural(count, "cell"), count == 1 ? "it" : "them"));
  }
}

Result<void> take_results(const std::vector<std::string>& files, Loaded& loaded,
                          run::PlanOptions& plan) {
  std::erase_if(loaded.cells, std::not_fn(takes_results));
  if (loaded.cells.size() != 1) {
    return fail(Code::usage, "--results: {} of the cells of {} take results: {}",
                loaded.cells.empty() ? "none" : std::to_string(loaded.cells.size()),
                loaded.known.file,
                loaded.cells.empty() ? "they need output: aiperf, guidellm or vllm-bench"
                                     : "name one with --cell");
  }
  loaded.cells.front().results = files;
  plan.counts = false;
  plan.runs = std::ssize(files);
  return {};
}

}  // namespace

Result<Measured> measure(const Job& job, const MeasureOptions& wanted) {
  WEIR_TRY(Loaded loaded, load_config(job));
  MeasureOptions whole = wanted;
  if (wanted.results.empty()) {
    leave_out_results(loaded);
  } else {
    WEIR_CHECK(take_results(wanted.results, loaded, whole.plan));
    whole.verb.clear();
  }
  if (wanted.shard)
    WEIR_SET(whole.shard_facts,
             choose_shard(loaded, *wanted.shard, wanted.plan_file, wanted.plan.times, job.files()));
  const config::Redactor redactor = loaded.known.redactor;
  return measure_loaded(std::move(loaded), job, whole).map_error(redacting(redactor));
}

namespace {

// What a run that was cut off lacks, by cell, in the profiles and words of what was read of it.
// A counted pass that lacks a process gives no counts: two points of three fit a line that nobody
// planned. Times that are missing leave those that are there; the first line of a report tells.
using Lacking = std::map<std::string, run::Unfinished>;

std::string ran(std::int64_t missing, std::int64_t planned) {
  return fmt::format("{} of {} processes ran: the run was interrupted", planned - missing, planned);
}

// Errors of cells, what was not judged, and why nothing of it may be stored.
void tell_interrupted(const Lacking& cells, const std::string& resume, Measured& measured) {
  std::size_t without_times = 0;
  std::int64_t missing = 0, planned = 0;
  for (profile::Profile& profile : measured.profiles) {
    const run::Unfinished lacks = look_up(cells, profile.cell.str(), run::Unfinished{});
    missing += lacks.counted + lacks.timed;
    planned += lacks.counted_planned + lacks.timed_planned;
    if (lacks.timed > 0) ++without_times;
    const bool no_time = lacks.timed > 0 && lacks.timed == lacks.timed_planned;
    if (lacks.counted == 0 && !(no_time && lacks.counted_planned == 0)) continue;
    std::erase(profile.errors, profile::k_no_record);
    profile.errors.push_back(lacks.counted > 0
                                 ? "counted: " + ran(lacks.counted, lacks.counted_planned)
                                 : "timed: " + ran(lacks.timed, lacks.timed_planned));
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
        measured.folder, missing, planned, resume);
  }
}

// The rules that a run was judged by, where these were not the configuration's own, and what it was
// allowed.
Result<void> take_rules_of_run(const run::RunHeader& header, const config::Known& known,
                               Measured& measured) {
  if (!header.extra.is_object()) return {};
  if (header.extra.contains("allowances"))
    WEIR_SET(measured.allowed, read_fields<Allowed>(header.extra["allowances"], "allowances"));
  if (!header.extra.contains("rules")) return {};
  WEIR_TRY(measured.known.rules, read_fields<RulesUsed>(header.extra["rules"], "rules"));
  const std::string& text = measured.known.rules->config_text;
  if (text.empty()) return {};
  WEIR_TRY(const BaseSettings base, parse_base_settings(text, header.config_file, known));
  config::take_rules(base.settings, *measured.known.settings);
  return {};
}

// --- a run that is judged by a commit's rules (weir gate --from RUN --rules-from REF): a fork may
// have written it, so that every byte of its folder is a claim. Its numbers are taken as they are,
// and nothing else that a configuration says by itself: what a cell is, which ops it may leave on
// the CPU, and what holds it come from the text of its weir.yaml under the commit's rules, by the
// way that a run about to be measured takes.

constexpr std::size_t k_most_entries = 100'000;

// No link at `path` and below it.
Result<void> no_links(const std::string& path, const sys::Files& files, std::size_t& entries) {
  const auto folder = sys::real_path(sys::folder_of(path));
  const auto real = sys::real_path(path);
  if (!folder || !real || *real != sys::join_path(*folder, sys::file_name_of(path))) {
    return fail(Code::data, "{}: is a link: what is read of a run lies in its folder",
                text::printable(path));
  }
  if (++entries > k_most_entries) {
    return fail(Code::data, "{}: more than {} files", text::printable(path), k_most_entries);
  }
  if (files.kind(path) != sys::Kind::folder) return {};
  WEIR_TRY(const std::vector<std::string> names, files.list(path));
  for (const std::string& name : names) {
    WEIR_CHECK(no_links(sys::join_path(path, name), files, entries));
  }
  return {};
}

// The parts of a fingerprint that a configuration says; the others are of files that lie elsewhere.
void take_identity(const config::Cell& cell, profile::Provenance& claimed) {
  const auto& known = run::fingerprint_parts(cell, {}, "");
  std::erase_if(claimed.fingerprint_parts, [&](const auto& part) {
    return !known.contains(part.first) && part.first != run::k_device_description;
  });
  for (const auto& [name, text] : cell.identity) {
    claimed.fingerprint_parts[name] = short_hash(text);
  }
  if (const std::string* variables = look_up(known, profile::k_variables)) {
    claimed.fingerprint_parts[profile::k_variables] = *variables;
  }
  claimed.fingerprint = run::fingerprint_of(claimed.fingerprint_parts);
}

// What its configuration does not say of `facts` stays a claim.
Result<void> take_facts(const std::map<std::string, const config::Cell*>& cells, const Job& job,
                        std::vector<profile::CellFacts>& all) {
  std::set<std::string> seen;
  for (profile::CellFacts& facts : all) {
    const std::string name = facts.cell.str();
    if (!seen.insert(name).second)
      return fail(Code::data, "its journal has the cell {} twice", name);
    const config::Cell* cell = look_up(cells, name, nullptr);
    if (cell != nullptr) {
      run::describe(*cell, facts);
      facts.twin = cell->twin;
      take_identity(*cell, facts.provenance);
    } else if (job.asked.cells.empty()) {  // else it is not looked at
      return fail(Code::data, "its journal has the cell {}, which its configuration lacks", name);
    }
  }
  return {};
}

// Whether `job` judges what it reads by a commit's rules.
bool judges_claims(const Job& job) { return job.rules && job.rules->used.from; }

// What is read of a run's folder lies in it: Code::data where a link leads elsewhere.
Result<void> stays_inside(const std::string& run, const sys::Files& files) {
  if (files.kind(run) != sys::Kind::folder) return {};
  std::size_t entries = 0;
  for (const std::string& name :
       {std::string(run::k_journal_name), sys::file_name_of(base_counts_folder(run)),
        std::string("confirm")}) {
    const std::string path = sys::join_path(run, name);
    if (files.exists(path)) WEIR_CHECK(no_links(path, files, entries));
  }
  return {};
}

// Its configuration under the rules of `job`, and `header` in accordance with that: facts that are
// not measured are the configuration's. Cells that the rules hold and the run has not are gone.
// Code::data where it has a cell that its configuration does not have, or one of them twice;
// Code::usage of a single shard.
Result<Configured> configured_by_rules(const Job& job, run::RunHeader& header) {
  WEIR_TRY(const auto shard, run::shard_facts(header.extra));
  if (shard && shard->index > 0) {
    return fail(Code::usage,
                "--rules-from judges whole runs, and this is shard {}: weir merge joins shards",
                shard->name());
  }
  Job itself = job;
  itself.asked.config_text = header.config_text;
  WEIR_TRY(Loaded loaded, load_config(itself));
  std::map<std::string, const config::Cell*> cells;
  for (const config::Cell& cell : loaded.cells) cells[cell.key.str()] = &cell;
  for (std::size_t i = 0; i < header.base_cells.size(); ++i) {
    if (header.base_cells[i].cell != header.cells[i].cell) {
      return fail(Code::data, "its journal has a base of other cells");
    }
  }
  WEIR_CHECK(take_facts(cells, job, header.cells));
  WEIR_CHECK(take_facts(cells, job, header.base_cells));
  std::set<std::string> there;
  for (const profile::CellFacts& facts : header.cells) there.insert(facts.cell.str());
  RulesUsed& rules = *loaded.known.rules;
  for (verdict::HeldCell& held : rules.held) {
    cells.erase(held.now);
    if (held.now.empty() || there.contains(held.now)) continue;
    held.now.clear();
    held.why = "the run does not hold it";
  }
  std::erase_if(cells, [&](const auto& cell) { return there.contains(cell.first); });
  if (!cells.empty()) {
    rules.not_judged.push_back(
        fmt::format("{} of the run's own matrix not in it", report::plural(cells.size(), "cell")));
  }
  // Nothing that its configuration names is opened.
  loaded.known.place = "";
  return std::move(loaded.known);
}

}  // namespace

Result<Measured> read_measured(const Job& job, const std::string& run) {
  Measured measured;
  measured.folder = run;
  if (run.empty()) WEIR_SET(measured.folder, run::newest_run(job.files(), job.asked.out));
  measured.claimed = judges_claims(job);
  if (measured.claimed) WEIR_CHECK(stays_inside(measured.folder, job.files()));
  WEIR_TRY(run::RunFile file, run::read_run(job.files(), measured.folder));
  WEIR_TRY(measured.shard, run::shard_facts(file.header.extra));
  if (measured.claimed) {
    WEIR_TRY(measured.known,
             configured_by_rules(job, file.header).map_error(in_context(measured.folder)));
  } else {
    // Limits that expired since then still hold for what was measured under them.
    config::Known known = known_now(job.world, file.header.config_file);
    known.today = sys::date_of(file.header.started_at);
    WEIR_TRY(measured.known, configured(file.header.config_text, file.header.config_file, known));
    WEIR_CHECK(take_rules_of_run(file.header, known, measured));
    measured.known.notes = file.header.notes;
  }
  measured.config_text = file.header.config_text;
  const Lacking lacking = run::unfinished(file);
  std::erase_if(file.records, [&](const profile::RunRecord& record) {
    const run::Unfinished* lacks = look_up(lacking, record.cell);
    return record.pass == profile::Pass::counted && lacks != nullptr && lacks->counted > 0;
  });
  measured.profiles =
      profile::assemble_all(file.header.cells, file.header.unavailable, file.records);
  take_reference(*measured.known.settings, measured.profiles);
  const auto matrix = config::expand(*measured.known.settings);
  measured.some_cells =
      !measured.claimed && matrix && file.header.cells.size() < matrix->cells.size();
  if (!file.header.base_cells.empty()) {
    const auto facts = read_fields<BaseFacts>(below(file.header.extra, "against"), "against");
    if (!facts) {
      return fail(Code::data, "{}: it ran beside a base that its journal does not describe",
                  measured.folder);
    }
    measured.beside =
        measured_beside(*facts, file.header, measured.profiles, file.records,
                        CachedCounts(job.files(), base_counts_folder(measured.folder)));
  }
  JsonReader extra(file.header.extra, "extra");
  measured.commit = commit_of_run(file.header.extra);
  measured.counts_only = extra.optional_boolean("counts_only").value_or(false);
  measured.verb = run::verb_of_run(file.header.extra);
  const std::string resume = run::resume_command(measured.verb, measured.folder, file.header.extra);
  for (std::string& warning : file.warnings) measured.known.notes.push_back(std::move(warning));
  if (!job.asked.cells.empty()) {
    measured.some_cells = true;
    std::erase_if(measured.profiles, [&](const profile::Profile& profile) {
      const profile::CellKey line = profile.cell.line();  // it selects all of its depths
      return std::ranges::none_of(std::array{profile.cell, line}, [&](const auto& cell) {
        return job.asked.wants(cell.str()) ||
               job.asked.wants(measured.known.redactor.cell(cell).str());
      });
    });
    if (measured.profiles.empty()) {
      return fail(Code::usage, "{}: no cell matches {}", measured.folder,
                  text::join(job.asked.cells));
    }
  }
  tell_interrupted(lacking, resume, measured);
  if (!file.header.base_cells.empty() && !file.ended) {
    measured.not_judged.emplace_back("pairs may be missing: the run was interrupted");
    if (measured.interrupted.empty()) {
      measured.interrupted = fmt::format(
          "{} was interrupted beside its base\n  {} and the same --against go on with it",
          measured.folder, resume);
    }
  }
  tell_shard(measured);
  measured.profiles = verdict::with_fits(std::move(measured.profiles));
  return measured;
}

}  // namespace weir::flow
