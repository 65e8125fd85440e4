#include "gate/app/judging.hpp"

#include <cstdio>
#include <cstdlib>

#include "gate/app/explaining.hpp"
#include "gate/app/shards.hpp"
#include "gate/app/veiled.hpp"
#include "gate/app/version.hpp"
#include "gate/report/formats.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::app {
namespace {

// Where this run is shown, when it is one of GitHub's.
std::optional<std::string> run_url() {
  const auto server = sys::environment_value("GITHUB_SERVER_URL");
  const auto repository = sys::environment_value("GITHUB_REPOSITORY");
  const auto run = sys::environment_value("GITHUB_RUN_ID");
  if (!server || !repository || !run) return std::nullopt;
  return fmt::format("{}/{}/actions/runs/{}", *server, *repository, *run);
}

// The cells folded, with what the run knows of itself, and its twins held against their devices.
verdict::GateVerdict finish(std::vector<verdict::CellVerdict> cells, const verdict::Policy& policy,
                            const Measured& measured) {
  std::vector<std::string> of_twins = verdict::check_twins(measured.profiles, cells);
  std::vector<std::string> of_allowances;
  if (measured.allowed) {
    const Allowed& allowed = *measured.allowed;
    of_allowances = verdict::apply_allowances(
        allowed.list,
        {allowed.pull_request, allowed.head, allowed.today,
         [&](const profile::CellKey& cell) { return measured.veil.cell(cell).str(); }},
        cells);
    of_allowances.insert(of_allowances.end(), allowed.notes.begin(), allowed.notes.end());
  }
  explain_cells(cells, *measured.settings, measured.config_place.value_or(measured.config_file));
  // What is not among some cells may be among the others.
  std::vector<std::string> idle;
  if (!measured.some_cells) {
    idle = verdict::limits_on_nothing(cells, measured.settings->limits, policy);
  }
  verdict::GateVerdict verdict = verdict::judge_gate(std::move(cells), policy);
  verdict.not_judged.insert(verdict.not_judged.end(), idle.begin(), idle.end());
  verdict.weir_version = k_version;
  verdict.config = measured.config_file;
  verdict.some_cells = measured.some_cells;
  verdict.run = measured.folder;
  verdict.not_judged.insert(verdict.not_judged.end(), measured.not_judged.begin(),
                            measured.not_judged.end());
  verdict.notes.insert(verdict.notes.end(), measured.notes.begin(), measured.notes.end());
  for (const auto* told : {&of_twins, &of_allowances}) {
    verdict.notes.insert(verdict.notes.end(), told->begin(), told->end());
  }
  if (measured.seconds > 0) verdict.seconds = measured.seconds;
  if (measured.rules) {
    const RulesUsed& rules = *measured.rules;
    verdict.rules = rules.from;
    verdict.proposals = rules.proposals;
    // First: what is not there at all is missed least.
    verdict.not_judged.insert(verdict.not_judged.begin(), rules.not_judged.begin(),
                              rules.not_judged.end());
    verdict.notes.insert(verdict.notes.end(), rules.notes.begin(), rules.notes.end());
  }
  return verdict;
}

Result<void> tell_github(const CommonOptions& options, const verdict::GateVerdict& verdict) {
  if (sys::environment_value("GITHUB_ACTIONS") != "true") return {};
  // Workflow commands are read from both streams: keep the one that is not a machine's.
  command(options, report::annotations(verdict));
  const auto summary = sys::environment_value("GITHUB_STEP_SUMMARY");
  if (!summary || summary->empty()) return {};
  return append_text(*summary, report::markdown(verdict, {.limit = report::k_summary_limit,
                                                          .verbs = report_hints(),
                                                          .run_url = run_url()}));
}

Result<std::vector<baseline::Baseline>> stored_of(const profile::CellKey& cell,
                                                  const StoredBaselines& stored,
                                                  const Measured& measured) {
  return stored.of_cell(cell).map_error(
      [&](Error error) { return veiled(std::move(error), measured.veil); });
}

// By the cells of `measured.beside`: false_alarm is divided among the metrics that were paired, and
// before that among shards, which knew nothing of each other's.
std::vector<verdict::Policy> policies_beside(const Measured& measured,
                                             const verdict::Policy& policy) {
  const Beside& beside = *measured.beside;
  const std::vector<verdict::LimitEntry>& limits = measured.settings->limits;
  std::map<std::string, std::size_t> shard_of;
  if (measured.shard) {
    for (std::size_t shard = 1; shard <= measured.shard->shards.size(); ++shard) {
      for (const std::string& cell : measured.shard->cells_of(shard)) {
        shard_of[cell] = shard;
        // A line belongs to the shard of its depths.
        if (const auto key = profile::CellKey::parse(cell)) shard_of[key->line().str()] = shard;
      }
    }
  }
  std::map<std::size_t, std::vector<std::size_t>> groups;  // shard (0: none) -> places
  for (std::size_t i = 0; i < beside.cells.size(); ++i) {
    const auto found = shard_of.find(beside.cells[i].cell.str());
    groups[found == shard_of.end() ? 0 : found->second].push_back(i);
  }
  std::vector<verdict::Policy> policies(beside.cells.size(), policy);
  for (const auto& [shard, members] : groups) {
    std::vector<profile::CellFacts> cells;
    std::vector<profile::PairedRuns> pairs;
    for (const std::size_t i : members) {
      cells.push_back(beside.cells[i]);
      pairs.push_back(beside.pairs[i]);
    }
    verdict::Policy one = policy;
    one.timed_metrics = verdict::timed_metrics(cells, pairs, limits);
    if (shard > 0) {
      run::ShardFacts facts = *measured.shard;
      facts.index = shard;
      one.false_alarm = false_alarm_of(facts, policy.false_alarm);
    }
    for (const std::size_t i : members) policies[i] = one;
  }
  return policies;
}

}  // namespace

const report::Verbs& report_hints() {
  static const report::Verbs k_hints{
      "baseline accept", "gate --counts-only", "gate --resume", "doctor", "explain", "profile"};
  return k_hints;
}

verdict::Policy policy_of(const Measured& measured, bool require_baseline) {
  verdict::Policy policy = policy_of(measured.settings->gate);
  policy.require_baseline = require_baseline;
  policy.counts_only = measured.counts_only;
  return policy;
}

Result<verdict::GateVerdict> judge_beside(const Measured& measured, const StoredBaselines& stored,
                                          const verdict::Policy& policy) {
  const Beside& beside = *measured.beside;
  const std::vector<verdict::Policy> policies = policies_beside(measured, policy);
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < beside.cells.size(); ++i) places[beside.cells[i].cell.str()] = i;
  std::vector<verdict::CellVerdict> cells;
  for (const profile::Profile& profile : measured.profiles) {
    const std::size_t i = places.at(profile.cell.str());
    verdict::Base base{beside.counts[i], std::nullopt};
    if (!measured.counts_only) base.pairs = beside.pairs[i];
    if (base.choice.match == baseline::Choice::Match::none && !profile.counts_skipped) {
      // Cached counts, then the base that was built, then what is stored.
      WEIR_TRY(const std::vector<baseline::Baseline> known,
               stored_of(profile.cell, stored, measured));
      baseline::Choice fallback = baseline::choose(profile, known);
      const std::string why = base.choice.reason;
      if (fallback.match >= baseline::Choice::Match::nearest) base.choice = std::move(fallback);
      base.choice.reason = why + (base.choice.reason == why || base.choice.reason.empty()
                                      ? std::string("; the stored baseline judges")
                                      : "; the stored baseline judges: " + base.choice.reason);
      if (base.choice.match == baseline::Choice::Match::none) base.choice.reason = why;
    }
    cells.push_back(verdict::judge_cell(profile, base, measured.settings->limits, policies[i]));
  }
  verdict::GateVerdict verdict = finish(std::move(cells), policy, measured);
  verdict.base_source = beside.facts.words;
  verdict.against = beside.facts.against;
  verdict.base_commit = beside.facts.commit;
  verdict.commit = beside.facts.candidate_commit;
  verdict.budget_seconds = measured.settings->gate.budget_seconds;
  if (beside.facts.candidate_dirty && beside.facts.candidate_commit) {
    verdict.notes.push_back(fmt::format("the working tree differs from {}",
                                        beside.facts.candidate_commit->substr(0, 7)));
  }
  verdict.notes.insert(verdict.notes.end(), beside.facts.notes.begin(), beside.facts.notes.end());
  return verdict;
}

namespace {

// What pairs beside a base say of suspected cells, into these; in words for the gate.
Result<std::vector<std::string>> take_in(const Measured& pairs, const StoredBaselines& stored,
                                         const verdict::Policy& policy,
                                         std::vector<verdict::CellVerdict>& cells) {
  WEIR_TRY(const verdict::GateVerdict beside, judge_beside(pairs, stored, policy));
  const verdict::Confirmed told = verdict::confirm(cells, beside.cells, pairs.beside->facts.words);
  std::vector<std::string> said{fmt::format(
      "slower than stored samples, looked at again in pairs beside {}: {} confirmed, {} cleared, "
      "{} still open ({})",
      pairs.beside->facts.words, told.confirmed, told.cleared, told.open, pairs.folder)};
  for (const std::string& line : told.not_asked) said.push_back("not confirmed by pairs: " + line);
  said.insert(said.end(), beside.notes.begin(), beside.notes.end());
  return said;
}

}  // namespace

Result<verdict::GateVerdict> judge_stored(const Measured& measured, const StoredBaselines& stored,
                                          const verdict::Policy& policy, const Measured* pairs) {
  std::vector<verdict::CellVerdict> cells;
  for (const profile::Profile& profile : measured.profiles) {
    WEIR_TRY(const std::vector<baseline::Baseline> known,
             stored_of(profile.cell, stored, measured));
    cells.push_back(verdict::judge_cell(profile, {baseline::choose(profile, known)},
                                        measured.settings->limits, policy));
  }
  std::vector<std::string> said;
  if (pairs != nullptr) {
    WEIR_TRY(said, take_in(*pairs, stored, policy, cells));
  }
  verdict::GateVerdict verdict = finish(std::move(cells), policy, measured);
  verdict.base_source = stored.words();
  verdict.commit = measured.commit;
  verdict.notes.insert(verdict.notes.end(), said.begin(), said.end());
  if (pairs != nullptr) verdict.budget_seconds = measured.settings->gate.budget_seconds;
  return verdict;
}

verdict::GateVerdict judge_against(const Measured& measured, const Measured& base,
                                   const verdict::Policy& policy) {
  std::map<std::string, const profile::Profile*> by_name;
  for (const profile::Profile& profile : base.profiles) by_name[profile.cell.str()] = &profile;
  std::vector<verdict::CellVerdict> cells;
  for (const profile::Profile& profile : measured.profiles) {
    const auto found = by_name.find(profile.cell.str());
    baseline::Choice choice;
    if (found == by_name.end()) {
      choice.reason = fmt::format("{} has no such cell", base.folder);
    } else {
      choice = baseline::choice_of(profile, *found->second);
      by_name.erase(found);
    }
    cells.push_back(verdict::judge_cell(profile, {choice}, measured.settings->limits, policy));
  }
  verdict::GateVerdict verdict = finish(std::move(cells), policy, measured);
  verdict.base_source = fmt::format("run {}", base.folder);
  for (const auto& [name, profile] : by_name) {
    verdict.notes.push_back(fmt::format("{} is only in {}", name, base.folder));
  }
  return verdict;
}

void add_report_files(CLI::App& verb, ReportFiles& files) {
  verb.add_option("--markdown", files.markdown, "Write the report as Markdown")->type_name("FILE");
  verb.add_option("--junit", files.junit, "Write the report as JUnit XML")->type_name("FILE");
  verb.add_option("--html", files.html, "Write the report as one HTML page")->type_name("FILE");
  verb.add_option("--openmetrics", files.open_metrics, "Write the numbers as OpenMetrics text")
      ->type_name("FILE");
}

Result<ExitCode> publish(const CommonOptions& options, const ReportFiles& wanted,
                         const verdict::GateVerdict& judged, const config::Veil& veil,
                         sys::Files& files) {
  const verdict::GateVerdict verdict = veiled(judged, veil);
  const std::string json = dump_json(verdict::to_json(verdict), 1) + "\n";
  if (verdict.run && files.kind(*verdict.run) == sys::Kind::folder) {
    WEIR_CHECK(files.write_atomic(sys::join_path(*verdict.run, "verdict.json"), json));
  }
  const int stream = answer_stream(options);
  answer(options, report::terminal(verdict, {.color = colored(options, stream),
                                             .width = width_of(stream),
                                             .verbs = report_hints()}));
  WEIR_CHECK(write_json(options, json));
  if (wanted.markdown) {
    WEIR_CHECK(files.write_atomic(*wanted.markdown,
                                  report::markdown(verdict, {.limit = report::k_comment_limit,
                                                             .verbs = report_hints(),
                                                             .run_url = run_url()})));
  }
  if (wanted.junit) WEIR_CHECK(files.write_atomic(*wanted.junit, report::junit(verdict)));
  if (wanted.html) WEIR_CHECK(files.write_atomic(*wanted.html, report::html(verdict)));
  if (wanted.open_metrics) {
    WEIR_CHECK(files.write_atomic(*wanted.open_metrics, report::open_metrics(verdict)));
  }
  WEIR_CHECK(tell_github(options, verdict));
  return verdict.exit_code;
}

}  // namespace weir::app
