#include "gate/flow/judge.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/causes.hpp"
#include "gate/flow/explain.hpp"
#include "gate/flow/kernel_code.hpp"
#include "gate/flow/profile_files.hpp"
#include "gate/flow/shards.hpp"
#include "gate/profile/assemble.hpp"
#include "gate/report/layout.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

void add(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

// gate.on_removed: only what a commit's rules hold can be missed.
bool fails_on_removed(const Measured& measured) {
  return measured.known.settings->gate.fail_on_removed;
}

// Cells of the base's matrix that are gone. A comparison with another run knows of none.
std::vector<const verdict::HeldCell*> gone_of(const Measured& measured) {
  std::vector<const verdict::HeldCell*> gone;
  if (!measured.known.rules) return gone;
  for (const verdict::HeldCell& held : measured.known.rules->held) {
    if (held.now.empty()) gone.push_back(&held);
  }
  return gone;
}

// The cells folded, with what the run knows of itself, and its twins held against their devices.
verdict::GateVerdict finish(std::vector<verdict::CellVerdict> cells, const verdict::Policy& policy,
                            const Measured& measured, const sys::Files& files,
                            const std::vector<const verdict::HeldCell*>& gone = {}) {
  std::vector<std::string> of_twins = verdict::check_twins(measured.profiles, cells);
  for (const verdict::HeldCell* held : gone) {
    if (fails_on_removed(measured)) cells.push_back(verdict::removed_cell(*held));
  }
  std::vector<std::string> of_allowances;
  if (measured.allowed) {
    const Allowed& allowed = *measured.allowed;
    of_allowances = verdict::apply_allowances(
        allowed.list,
        {allowed.pull_request, allowed.head, allowed.today,
         [&](const profile::CellKey& cell) { return measured.known.redactor.cell(cell).str(); },
         allowed.base},
        cells);
    add(of_allowances, allowed.notes);
  }
  // A stranger's run names code by hashes of its choice.
  if (!measured.claimed) add_code_differences(cells, files);
  for (verdict::CellVerdict& cell : cells) {
    if (measured.known.redactor.cell(cell.cell) == cell.cell) continue;
    // Of a private engine hashes and figures alone may leave the machine.
    for (verdict::Judgement& judged : cell.judgements) {
      for (verdict::OtherCode& one : judged.code) one.differences.clear();
    }
  }
  explain_cells(cells, *measured.known.settings, measured.known.place.value_or(measured.known.file),
                files);
  // What is not among some cells may be among the others.
  std::vector<std::string> idle;
  if (!measured.some_cells) {
    idle = verdict::limits_on_nothing(cells, measured.known.settings->limits, policy);
  }
  verdict::GateVerdict verdict = verdict::judge_gate(std::move(cells), policy);
  explain::find_causes(verdict);
  add(verdict.not_judged, idle);
  verdict.weir_version = k_version;
  verdict.config = measured.known.file;
  verdict.some_cells = measured.some_cells;
  verdict.run = measured.folder;
  add(verdict.not_judged, measured.not_judged);
  add(verdict.notes, measured.known.notes);
  add(verdict.notes, profile::missing_kernel_costs(measured.profiles));
  add(verdict.notes, of_twins);
  add(verdict.notes, verdict::over_threads(measured.profiles));
  add(verdict.notes, of_allowances);
  if (measured.seconds > 0) verdict.seconds = measured.seconds;
  if (measured.known.rules) {
    const RulesUsed& rules = *measured.known.rules;
    verdict.rules = rules.from;
    verdict.proposals = rules.proposals;
    if (rules.from && rules.config_text.empty()) {
      verdict::leave_unjudged(verdict,
                              fmt::format("{} has no {}: the rules are the pull request's own",
                                          rules.from->ref, text::printable(measured.known.file)));
    }
    // First: what is not there at all is missed least.
    verdict.not_judged.insert(verdict.not_judged.begin(), rules.not_judged.begin(),
                              rules.not_judged.end());
    if (!gone.empty()) {
      verdict.not_judged.insert(
          verdict.not_judged.begin(),
          fmt::format("{} of the base's matrix not measured", report::plural(gone.size(), "cell")));
    }
    add(verdict.notes, rules.notes);
  }
  return verdict;
}

// What judges one profile: a cell that the base holds under another name is judged as that one, by
// its limits and baselines, and shown by its own.
class AsHeld {
 public:
  AsHeld(const profile::Profile& profile, const Measured& measured)
      : measured_(measured), as_(profile), shown_(profile.cell) {
    if (!measured.known.rules) return;
    const std::string name = shown_.str();
    for (const verdict::HeldCell& held : measured.known.rules->held) {
      // A line over depths goes with its cells.
      const bool of_line = held.now.starts_with(name + "@d");
      if (held.now != name && !of_line) continue;
      if (!of_line) held_ = &held;
      if (const auto then = profile::CellKey::parse(held.cell)) {
        as_.cell = of_line ? then->line() : *then;
      }
    }
  }

  [[nodiscard]] Result<baseline::Choice> stored(const StoredBaselines& stored) const {
    WEIR_TRY(const std::vector<baseline::Baseline> known,
             stored.of_cell(as_.cell).map_error(redacting(measured_.known.redactor)));
    return baseline::choose(as_, known);
  }
  // The pull request changed what the cell is, or took away what counted it: beside a base that is
  // measured by the same configuration that shows nowhere, so what is stored is asked.
  [[nodiscard]] bool edited() const {
    return held_ != nullptr && !(held_->changed.empty() && held_->lost.empty());
  }
  // `held_to`: what the base holds of an edited cell, where something else judges its numbers.
  [[nodiscard]] verdict::CellVerdict judge(const verdict::Base& base, const verdict::Policy& policy,
                                           const baseline::Choice* held_to = nullptr) const {
    const auto& limits = measured_.known.settings->limits;
    verdict::CellVerdict cell = verdict::judge_cell(as_, base, limits, policy);
    if (held_ != nullptr) {
      verdict::hold_measured(as_, held_to != nullptr ? *held_to : base.choice, limits, *held_,
                             fails_on_removed(measured_), cell);
    }
    cell.cell = shown_;
    return cell;
  }

 private:
  const Measured& measured_;
  profile::Profile as_;
  profile::CellKey shown_;
  const verdict::HeldCell* held_ = nullptr;
};

// By the cells of `measured.beside`: false_alarm is divided among the metrics that were paired, and
// before that among shards, which knew nothing of each other's.
std::vector<verdict::Policy> policies_beside(const Measured& measured,
                                             const verdict::Policy& policy) {
  const Beside& beside = *measured.beside;
  const std::vector<verdict::LimitEntry>& limits = measured.known.settings->limits;
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
    groups[look_up(shard_of, beside.cells[i].cell.str(), 0)].push_back(i);
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

verdict::Policy policy_of(const Measured& measured, bool require_baseline) {
  verdict::Policy policy = policy_of(measured.known.settings->gate);
  policy.require_baseline = require_baseline;
  policy.counts_only = measured.counts_only;
  return policy;
}

Result<verdict::GateVerdict> judge_beside(const Measured& measured, const StoredBaselines& stored,
                                          const verdict::Policy& policy, const sys::Files& files) {
  const Beside& beside = *measured.beside;
  const std::vector<verdict::Policy> policies = policies_beside(measured, policy);
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < beside.cells.size(); ++i) places[beside.cells[i].cell.str()] = i;
  std::vector<verdict::CellVerdict> cells;
  std::size_t by_stored = 0;  // cells whose counts a stored baseline judges
  bool by_base = false;
  for (const profile::Profile& profile : measured.profiles) {
    const std::size_t i = places.at(profile.cell.str());
    const AsHeld held(profile, measured);
    verdict::Base base{beside.counts[i], std::nullopt};
    if (!measured.counts_only) base.pairs = beside.pairs[i];
    // Cached counts, then the base that was built, then what is stored; but what a run of others
    // says of its base comes last.
    const bool none = base.choice.match == baseline::Choice::Match::none;
    bool is_stored = false;
    std::optional<baseline::Choice> held_to;
    if (measured.claimed || held.edited() || (none && !profile.counts_skipped)) {
      WEIR_TRY(baseline::Choice fallback, held.stored(stored));
      if (fallback.match >= baseline::Choice::Match::nearest) {
        fallback.reason =
            fmt::format("{}the stored baseline judges{}{}", none ? base.choice.reason + "; " : "",
                        fallback.reason.empty() ? "" : ": ", fallback.reason);
        base.choice = std::move(fallback);
        is_stored = true;
      } else if (held.edited()) {
        // Where nothing is stored either, the base's matrix is all that holds the cell as it was.
        fallback.match = baseline::Choice::Match::fingerprint;
        held_to = std::move(fallback);
      }
    }
    by_stored += is_stored ? 1 : 0;
    by_base |= (!is_stored && base.choice.match >= baseline::Choice::Match::nearest) ||
               (base.pairs && !base.pairs->error && !base.pairs->metrics.empty());
    cells.push_back(held.judge(base, policies[i], held_to ? &*held_to : nullptr));
  }
  verdict::GateVerdict verdict =
      finish(std::move(cells), policy, measured, files, gone_of(measured));
  verdict.against = beside.facts.against;
  if (by_stored > 0 && !by_base) {
    verdict.base_source = stored.words();
  } else {
    verdict.base_source = beside.facts.words;
    verdict.base_commit = beside.facts.commit;
    if (by_stored > 0) {
      verdict.base_source += fmt::format("; {} judge the counts of {} of {} cells", stored.words(),
                                         by_stored, measured.profiles.size());
    }
  }
  verdict.commit = beside.facts.candidate_commit;
  verdict.budget_seconds = measured.known.settings->gate.budget_seconds;
  if (beside.facts.candidate_dirty && beside.facts.candidate_commit) {
    verdict.notes.push_back(fmt::format("the working tree differs from {}",
                                        beside.facts.candidate_commit->substr(0, 7)));
  }
  add(verdict.notes, beside.facts.notes);
  return verdict;
}

namespace {

// What pairs beside a base say of suspected cells, into these; in words for the gate.
Result<std::vector<std::string>> take_in(const Measured& pairs, const StoredBaselines& stored,
                                         const verdict::Policy& policy, const sys::Files& files,
                                         std::vector<verdict::CellVerdict>& cells) {
  WEIR_TRY(const verdict::GateVerdict beside, judge_beside(pairs, stored, policy, files));
  const verdict::Confirmed told = verdict::confirm(cells, beside.cells, pairs.beside->facts.words);
  std::vector<std::string> said{fmt::format(
      "slower than stored runs, re-tested in pairs with {}: {} confirmed, {} cleared, {} "
      "inconclusive ({})",
      pairs.beside->facts.words, told.confirmed, told.cleared, told.inconclusive, pairs.folder)};
  for (const std::string& line : told.not_asked) said.push_back("not confirmed by pairs: " + line);
  add(said, beside.notes);
  return said;
}

}  // namespace

Result<verdict::GateVerdict> judge_stored(const Measured& measured, const StoredBaselines& stored,
                                          const verdict::Policy& policy, const sys::Files& files,
                                          const Measured* pairs) {
  std::vector<verdict::CellVerdict> cells;
  for (const profile::Profile& profile : measured.profiles) {
    const AsHeld held(profile, measured);
    WEIR_TRY(const baseline::Choice choice, held.stored(stored));
    cells.push_back(held.judge({choice}, policy));
  }
  std::vector<std::string> said;
  if (pairs != nullptr) WEIR_SET(said, take_in(*pairs, stored, policy, files, cells));
  verdict::GateVerdict verdict =
      finish(std::move(cells), policy, measured, files, gone_of(measured));
  verdict.base_source = stored.words();
  verdict.commit = measured.commit;
  add(verdict.notes, said);
  if (pairs != nullptr) verdict.budget_seconds = measured.known.settings->gate.budget_seconds;
  return verdict;
}

verdict::GateVerdict judge_against(const Measured& measured, const Measured& base,
                                   const verdict::Policy& policy, const sys::Files& files) {
  std::map<std::string, const profile::Profile*> by_name;
  for (const profile::Profile& profile : base.profiles) by_name[profile.cell.str()] = &profile;
  std::vector<verdict::CellVerdict> cells;
  for (const profile::Profile& profile : measured.profiles) {
    const std::string name = profile.cell.str();
    baseline::Choice choice;
    choice.reason = fmt::format("{} has no such cell", base.folder);
    if (const auto* found = look_up(by_name, name)) choice = baseline::choice_of(profile, **found);
    by_name.erase(name);
    cells.push_back(
        verdict::judge_cell(profile, {choice}, measured.known.settings->limits, policy));
  }
  verdict::GateVerdict verdict = finish(std::move(cells), policy, measured, files);
  verdict.base_source = fmt::format("run {}", base.folder);
  for (const auto& [name, profile] : by_name) {
    verdict.notes.push_back(fmt::format("{} is only in {}", name, base.folder));
  }
  return verdict;
}

Result<std::string> find_verdict(const std::string& place, const sys::Files& files) {
  const auto verdict_of = [](const std::string& folder) {
    return sys::join_path(folder, run::k_verdict_name);
  };
  const auto is_judged = [&](const std::string& folder) {
    return files.kind(verdict_of(folder)) == sys::Kind::file;
  };
  if (files.kind(place) != sys::Kind::folder) {
    if (files.exists(place)) return place;
    return fail(Code::usage, "{}: there is no such file", place);
  }
  if (is_judged(place)) return verdict_of(place);
  if (holds_run(place, files)) {
    return fail(
        Code::usage,
        "{}: this run was not judged, so it has no verdict\n  weir gate --from {} judges it", place,
        text::shell_word(place));
  }
  WEIR_TRY(const std::string newest, run::newest_run(files, place));
  const auto runs = run::list_runs(files, place);
  const auto judged = std::find_if(runs.rbegin(), runs.rend(), is_judged);
  return fail(Code::usage, "{}: a folder of runs, and no run itself\n  {}", place,
              judged != runs.rend()
                  ? fmt::format("name one of them: {} is the newest that was judged", *judged)
                  : fmt::format("none of them was judged: weir gate --from {} judges the newest",
                                text::shell_word(newest)));
}

Result<verdict::GateVerdict> read_verdict(const std::string& file, const sys::Files& files) {
  constexpr std::uint64_t k_largest_verdict = std::uint64_t{64} << 20;
  WEIR_TRY(const std::string text, files.read(file, k_largest_verdict));
  return parse_json(text)
      .and_then(reading<verdict::GateVerdict>("verdict"))
      .map_error(in_context(file));
}

namespace {

using verdict::CellVerdict;
using verdict::Outcome;

// What engines say is in it.
std::string headline(const std::string& text) { return text::printable(text::first_line(text)); }

std::string why_failed(const CellVerdict& cell) {
  std::vector<std::string> why;
  for (const verdict::Judgement& one : cell.judgements) {
    if (one.verdict != Outcome::fail) continue;
    const report::Number said = report::words(one);
    why.push_back(one.is_metric() ? said.label + " " + said.from_to() : one.reason);
  }
  return fmt::format("{}: {}", cell.cell.str(), headline(text::join(why)));
}

const CellVerdict* first_with(const verdict::GateVerdict& verdict, Outcome outcome) {
  return first_of(verdict.cells, [&](const auto& cell) { return cell.verdict == outcome; });
}

}  // namespace

Judged judged_step(const verdict::GateVerdict& verdict) {
  using source::Tried;
  if (const CellVerdict* cell = first_with(verdict, Outcome::fail)) {
    return {Tried::bad, why_failed(*cell)};
  }
  if (const CellVerdict* cell = first_with(verdict, Outcome::error)) {
    return {Tried::skipped,
            fmt::format("{} could not be measured: {}", cell->cell.str(), headline(cell->reason))};
  }
  if (const CellVerdict* cell = first_with(verdict, Outcome::inconclusive)) {
    return {Tried::skipped, fmt::format("{} is not decided", cell->cell.str())};
  }
  const bool judged = std::ranges::any_of(verdict.cells, [](const CellVerdict& cell) {
    return cell.verdict == Outcome::pass || cell.verdict == Outcome::improved ||
           cell.verdict == Outcome::accepted;
  });
  if (!judged) return {Tried::skipped, "nothing could be judged", true};
  return {Tried::good, ""};
}

}  // namespace weir::flow
