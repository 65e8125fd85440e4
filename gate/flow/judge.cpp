// Judges measured cells: against stored baselines, a base program, or another run.
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

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

// gate.on_removed: returns true if a removed cell fails the gate.
bool fails_on_removed(const MeasuredRun& measured) {
  return measured.configuration.settings->gate.fail_on_removed;
}

// Returns the cells of the base's matrix that the run lacks; none without a commit's rules.
std::vector<const verdict::BaseCell*> find_removed_cells(const MeasuredRun& measured) {
  std::vector<const verdict::BaseCell*> removed;
  if (!measured.configuration.rules) return removed;
  for (const verdict::BaseCell& required_cell : measured.configuration.rules->required_cells) {
    if (required_cell.current_name.empty()) removed.push_back(&required_cell);
  }
  return removed;
}

// Returns true for a cell that is not judged because the pull request edits it.
bool is_edited(const verdict::CellVerdict& cell) {
  const verdict::Judgement& judgement = cell.judgement_of(verdict::k_cell_metric);
  return cell.verdict == verdict::Outcome::error && judgement.verdict == verdict::Outcome::error &&
         judgement.current_text.value_or("").starts_with(verdict::k_edited);
}

// Folds judged cells into the gate's verdict. Adds waivers, explanations and notes, and checks
// device twins against their devices.
verdict::GateVerdict finish(std::vector<verdict::CellVerdict> cells, const verdict::Policy& policy,
                            const MeasuredRun& measured, const verdict::LimitTable& limits,
                            const sys::Files& files,
                            const std::vector<const verdict::BaseCell*>& removed = {}) {
  std::vector<std::string> twin_notes = verdict::check_twins(measured.profiles, cells);
  for (const verdict::BaseCell* required_cell : removed) {
    if (fails_on_removed(measured)) cells.push_back(verdict::removed_cell(*required_cell));
  }
  std::vector<std::string> waiver_notes;
  if (measured.waived) {
    const Waived& waivers = *measured.waived;
    const auto shown = [&](const profile::CellKey& cell) {
      return measured.configuration.redactor.cell(cell).str();
    };
    verdict::WaiverContext context = waivers.context();
    context.shown = shown;
    waiver_notes = verdict::apply_waivers(waivers.all(), context, cells);
    append(waiver_notes, waivers.notes);
  }
  // A run of others names code by hashes of its choice, so we look none of them up.
  if (!measured.claimed) add_code_differences(cells, files);
  for (verdict::CellVerdict& cell : cells) {
    if (measured.configuration.redactor.cell(cell.cell) == cell.cell) continue;
    // For a private engine only hashes and numbers may leave the machine.
    for (verdict::Judgement& judgement : cell.judgements) {
      for (verdict::KernelChange& code : judgement.code) code.metadata_differences.clear();
    }
  }
  explain_cells(cells, *measured.configuration.settings,
                measured.configuration.file_path.value_or(measured.configuration.file), files);
  // If only some cells were measured, a limit may apply to the others.
  std::vector<std::string> unused_limits, unmeasured_limits;
  if (!measured.is_selection) {
    unused_limits = verdict::limits_on_nothing(cells, limits, policy);
    unmeasured_limits = verdict::unmeasured_bounds(cells, limits, policy);
  }
  verdict::GateVerdict verdict = verdict::judge_gate(std::move(cells), policy);
  explain::find_causes(verdict);
  if (const auto edited = std::ranges::count_if(verdict.cells, is_edited); edited > 0) {
    verdict::mark_unjudged(
        verdict,
        fmt::format("the pull request edits how {} of {} measured", edited,
                    verdict.cells.size() == 1 ? "1 cell is"
                                              : fmt::format("{} cells are", verdict.cells.size())));
  }
  append(verdict.not_judged, unused_limits);
  if (!unmeasured_limits.empty())
    verdict::mark_unjudged(verdict, text::join(unmeasured_limits, "; "));
  verdict.weir_version = k_version;
  verdict.config = measured.configuration.file;
  if (verdict.config == config::k_command_line) {
    // weir ab attaches each probe that sees something: nobody left any out.
    std::erase_if(verdict.not_judged, [](const std::string& gap) {
      return gap.ends_with(": the engine has no probes and reports no counts");
    });
  }
  verdict.is_selection = measured.is_selection;
  verdict.run = measured.folder;
  append(verdict.not_judged, measured.not_judged);
  append(verdict.notes, measured.configuration.notes);
  append(verdict.notes, profile::missing_kernel_costs(measured.profiles));
  append(verdict.notes, twin_notes);
  append(verdict.notes, verdict::describe_thread_scaling(measured.profiles));
  append(verdict.notes, waiver_notes);
  if (measured.seconds > 0) verdict.seconds = measured.seconds;
  if (measured.configuration.rules) {
    const AppliedRules& rules = *measured.configuration.rules;
    verdict.rules = rules.from;
    verdict.proposals = rules.proposals;
    if (verdict::brings_rules(verdict.rules)) verdict::mark_brought(verdict);
    // Listed first: a cell that is missing altogether is overlooked most easily.
    verdict.not_judged.insert(verdict.not_judged.begin(), rules.not_judged.begin(),
                              rules.not_judged.end());
    if (!removed.empty()) {
      verdict.not_judged.insert(verdict.not_judged.begin(),
                                fmt::format("{} of the base's matrix not measured",
                                            text::plural(removed.size(), "cell")));
    }
    append(verdict.notes, rules.notes);
  }
  return verdict;
}

// The cells that the base's rules hold, by their names in the run, and by the lines over depths
// that they belong to.
struct HeldCells {
  explicit HeldCells(const MeasuredRun& measured) {
    if (!measured.configuration.rules) return;
    for (const verdict::BaseCell& required_cell : measured.configuration.rules->required_cells) {
      const std::string& name = required_cell.current_name;
      cells[name] = &required_cell;
      const std::size_t depth = name.find("@d", name.rfind('/') + 1);
      if (depth == std::string::npos) continue;
      const std::string line = name.substr(0, depth);
      lines[line] = &required_cell;
      if (!required_cell.edited.empty()) edited_lines[line] = &required_cell;
    }
  }
  std::map<std::string, const verdict::BaseCell*> cells, lines;
  std::map<std::string, const verdict::BaseCell*> edited_lines;  // by an edited cell of the line
};

// A profile under the name that the base's rules know it by. A renamed cell is judged by the limits
// and baselines of its old name, and shown under its own.
class HeldProfile {
 public:
  // Looks up the name by which the base's rules know the cell.
  HeldProfile(const profile::Profile& profile, const MeasuredRun& measured, const HeldCells& held)
      : measured_(measured), profile_(profile), own_name_(profile.cell) {
    const std::string name = own_name_.str();
    // The line over depths follows the cells that it is made of.
    const verdict::BaseCell* line = look_up(held.lines, name, nullptr);
    held_cell_ = look_up(held.cells, name, nullptr);
    const verdict::BaseCell* by_name = held_cell_ != nullptr ? held_cell_ : line;
    edited_depth_ = look_up(held.edited_lines, name, nullptr);
    is_known_ = by_name != nullptr;
    if (!is_known_) return;
    if (const auto held_key = profile::CellKey::parse(by_name->cell)) {
      profile_.cell = held_cell_ == nullptr ? held_key->line() : *held_key;
    }
  }

  // Chooses the stored baseline for this cell.
  [[nodiscard]] Result<baseline::BaselineChoice> stored(const StoredBaselines& stored) const {
    WEIR_TRY(const std::vector<baseline::Baseline> baselines,
             stored.of_cell(profile_.cell).map_error(redacting(measured_.configuration.redactor)));
    return baseline::choose_baseline(profile_, baselines);
  }
  // Returns true if the base's rules know the cell.
  [[nodiscard]] bool is_held() const { return held_cell_ != nullptr; }
  // Calls verdict::describe_gain() under the name that the base's rules know.
  [[nodiscard]] std::string describe_gain(const baseline::BaselineChoice& stored,
                                          const baseline::Baseline& counted,
                                          const verdict::LimitTable& limits,
                                          const verdict::Policy& policy,
                                          const std::string& branch) const {
    return verdict::describe_gain(profile_, stored, counted, limits, policy, branch);
  }
  // `stored`: the choice of stored(), which shows whether the cell is still the base's.
  [[nodiscard]] verdict::CellVerdict judge(const verdict::Base& base,
                                           const verdict::LimitTable& limits,
                                           const verdict::Policy& policy,
                                           const baseline::BaselineChoice& stored) const {
    verdict::Policy own_policy = policy;
    own_policy.require_times = policy.require_times && is_known_;
    verdict::CellVerdict cell = verdict::judge_cell(profile_, base, limits, own_policy);
    if (held_cell_ != nullptr) {
      verdict::check_removed(profile_, base.choice, limits, fails_on_removed(measured_), cell);
    }
    const verdict::BaseCell* base_cell = held_cell_ != nullptr ? held_cell_ : edited_depth_;
    if (base_cell != nullptr) {
      if (const auto edit = verdict::find_edit(profile_, stored, *base_cell))
        verdict::mark_edited(*edit, cell);
    }
    cell.cell = own_name_;
    return cell;
  }

 private:
  const MeasuredRun& measured_;
  profile::Profile profile_;
  profile::CellKey own_name_;
  bool is_known_ = false;  // to the base's rules, itself or the line's depths
  const verdict::BaseCell* held_cell_ = nullptr;
  const verdict::BaseCell* edited_depth_ = nullptr;  // of a line over depths
};

// The judged cells of a gate. Lengths, pairs and limits that name kernels multiply with cells, so
// judgements are bounded: a record is small, and its verdict must be so too.
class JudgedCells {
 public:
  // `bytes`: of the records that are judged; 0 if they were measured now. `limits` judge them.
  JudgedCells(std::uint64_t bytes, const verdict::LimitTable& limits)
      : limits_(limits),
        max_judgements_(bytes == 0
                            ? k_max_judgements
                            : std::clamp<std::uint64_t>(bytes / k_bytes_per_judgement,
                                                        k_min_judgements, k_max_judgements)) {}

  // Fails if what a cell has alone makes too many judgements. Call it before it is judged.
  [[nodiscard]] Result<void> check_room(const profile::Profile& candidate,
                                        const baseline::BaselineChoice& base) const {
    std::size_t more = candidate.metrics.size();
    if (base.baseline) more = std::max(more, base.baseline->counts.size());
    return check(judgement_count_ + more);
  }
  [[nodiscard]] Result<void> add(verdict::CellVerdict cell) {
    if (limits_.has_given_up()) {
      return fail(Code::data,
                  "limits: {} different names and patterns of metrics would be matched with more "
                  "names than {} times in all: gate fewer cells at once, with --cell, or write "
                  "fewer patterns",
                  limits_.patterns().size(), verdict::LimitTable::k_max_compared);
    }
    judgement_count_ += cell.judgements.size();
    WEIR_CHECK(check(judgement_count_));
    list.push_back(std::move(cell));
    return {};
  }
  std::vector<verdict::CellVerdict> list;

 private:
  static constexpr std::uint64_t k_max_judgements = 100'000, k_min_judgements = 20'000;
  static constexpr std::uint64_t k_bytes_per_judgement = 40;  // of records, for each judgement

  [[nodiscard]] Result<void> check(std::size_t judgements) const {
    if (judgements <= max_judgements_) return {};
    return fail(Code::data,
                "more than {} judgements{}: gate fewer cells at once, with --cell, or let fewer "
                "limits name single kernels and ops",
                max_judgements_,
                max_judgements_ < k_max_judgements ? ", too many for records of this size" : "");
  }

  const verdict::LimitTable& limits_;
  std::uint64_t max_judgements_, judgement_count_ = 0;
};

// Returns one policy (error rates) for each cell of `measured.base_runs`. false_alarm is divided
// among shards, and within each among the metrics that were measured in pairs.
std::vector<verdict::Policy> policies_per_cell(const MeasuredRun& measured,
                                               const verdict::LimitTable& limits,
                                               const verdict::Policy& policy) {
  const BaseRuns& base_runs = *measured.base_runs;
  std::map<std::string, std::size_t> shard_by_cell;
  if (measured.shard) {
    for (std::size_t shard = 1; shard <= measured.shard->shards.size(); ++shard) {
      for (const std::string& cell : measured.shard->cells_of(shard)) {
        shard_by_cell[cell] = shard;
        // The line over depths belongs to the shard of its depths.
        if (const auto key = profile::CellKey::parse(cell))
          shard_by_cell[key->line().str()] = shard;
      }
    }
  }
  std::map<std::size_t, std::vector<std::size_t>> cells_by_shard;  // shard (0: none) -> places
  for (std::size_t i = 0; i < base_runs.cells.size(); ++i) {
    cells_by_shard[look_up(shard_by_cell, base_runs.cells[i].cell.str(), 0)].push_back(i);
  }
  std::vector<verdict::Policy> policies(base_runs.cells.size(), policy);
  for (const auto& [shard, cell_indices] : cells_by_shard) {
    std::vector<profile::CellFacts> cells;
    std::vector<profile::PairedRuns> pairs;
    for (const std::size_t i : cell_indices) {
      cells.push_back(base_runs.cells[i]);
      pairs.push_back(base_runs.pairs[i]);
    }
    verdict::Policy shard_policy = policy;
    shard_policy.timed_metrics = verdict::timed_metrics(cells, pairs, limits);
    if (shard > 0) {
      run::ShardFacts facts = *measured.shard;
      facts.index = shard;
      shard_policy.false_alarm = shard_false_alarm(facts, policy.false_alarm);
    }
    for (const std::size_t i : cell_indices) policies[i] = shard_policy;
  }
  return policies;
}

// Returns the branch whose rules judge, if the candidate lacks its tip; else "".
std::string find_newer_branch(const MeasuredRun& measured) {
  const std::optional<AppliedRules>& rules = measured.configuration.rules;
  if (!rules || !rules->from || !measured.base_runs->facts.is_behind) return "";
  return text::printable(rules->from->ref);
}

}  // namespace

verdict::Policy gate_policy(const MeasuredRun& measured, bool require_baseline) {
  verdict::Policy policy = gate_policy(measured.configuration.settings->gate);
  const std::optional<AppliedRules>& rules = measured.configuration.rules;
  policy.require_baseline = require_baseline && !(rules && verdict::brings_rules(rules->from));
  policy.counts_only = measured.counts_only;
  if (measured.interrupted.empty())
    policy.budget_seconds = measured.configuration.settings->gate.budget_seconds;
  return policy;
}

// Judges by cached or fresh counts of the base and by pairs. A stored baseline judges counts that
// the base lacks, and those of runs and cells that are not to be trusted.
Result<verdict::GateVerdict> judge_against_base(const MeasuredRun& measured,
                                                const StoredBaselines& stored,
                                                const verdict::Policy& policy,
                                                const sys::Files& files) {
  const BaseRuns& base_runs = *measured.base_runs;
  const verdict::LimitTable limits(measured.configuration.settings->limits);
  const std::vector<verdict::Policy> policies = policies_per_cell(measured, limits, policy);
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < base_runs.cells.size(); ++i)
    places[base_runs.cells[i].cell.str()] = i;
  const HeldCells held(measured);
  JudgedCells cells(measured.bytes, limits);
  std::size_t judged_by_stored = 0;  // cells whose counts a stored baseline judges
  std::size_t without_base = 0;      // of these, cells that the base could not measure
  std::size_t cells_behind = 0;      // cells in which the branch of the rules gained
  bool is_judged_by_base = false;
  const std::string newer_branch = find_newer_branch(measured);
  for (const profile::Profile& profile : measured.profiles) {
    const std::size_t i = places.at(profile.cell.str());
    const HeldProfile held_profile(profile, measured, held);
    verdict::Base base{base_runs.counts[i], std::nullopt};
    if (!measured.counts_only) base.pairs = base_runs.pairs[i];
    // The order is: cached counts, the built base, the stored baseline. In a run of others the
    // claims about its base come last.
    const bool has_no_base_counts = base.choice.match == baseline::BaselineChoice::Match::none;
    bool is_stored = false;
    const bool needs_stored =
        !base.choice.devices_differ &&
        (measured.claimed || (has_no_base_counts && !profile.counts_skip_reason));
    baseline::BaselineChoice stored_choice;
    if (needs_stored || held_profile.is_held() || !newer_branch.empty())
      WEIR_TRY_SET(stored_choice, held_profile.stored(stored));
    if (needs_stored && stored_choice.match >= baseline::BaselineChoice::Match::nearest) {
      base.choice = stored_choice;
      base.choice.reason =
          "the stored baseline judges" + text::prefix_if_any(": ", stored_choice.reason);
      if (has_no_base_counts) {
        if (base_runs.counts[i].base_failed) ++without_base;
        base.choice.reason = base_runs.counts[i].reason + "; " + base.choice.reason;
      }
      is_stored = true;
    }
    if (is_stored) ++judged_by_stored;
    const bool base_judges_counts =
        !is_stored && base.choice.match >= baseline::BaselineChoice::Match::nearest;
    const bool base_judges_times = base.pairs && !base.pairs->error && !base.pairs->metrics.empty();
    is_judged_by_base = is_judged_by_base || base_judges_counts || base_judges_times;
    WEIR_CHECK(cells.check_room(profile, base.choice));
    verdict::CellVerdict cell = held_profile.judge(base, limits, policies[i], stored_choice);
    cell.is_stored = is_stored;
    if (base_judges_counts && base.choice.baseline && !newer_branch.empty()) {
      const std::string gain = held_profile.describe_gain(stored_choice, *base.choice.baseline,
                                                          limits, policies[i], newer_branch);
      if (!gain.empty()) {
        verdict::mark_behind(gain, cell);
        ++cells_behind;
      }
    }
    WEIR_CHECK(cells.add(std::move(cell)));
  }
  verdict::GateVerdict verdict =
      finish(std::move(cells.list), policy, measured, limits, files, find_removed_cells(measured));
  if (without_base > 0 && !measured.claimed) {
    verdict.not_judged.insert(
        verdict.not_judged.begin(),
        fmt::format("the base could not be measured in {} of {}: stored baselines judge",
                    without_base, text::plural(measured.profiles.size(), "cell")));
  }
  if (cells_behind > 0) {
    verdict::mark_unjudged(
        verdict, fmt::format("{} gained in {} since the branch left it: update the branch",
                             newer_branch, text::plural(cells_behind, "cell")));
  }
  verdict.against = base_runs.facts.against;
  if (judged_by_stored > 0 && !is_judged_by_base) {
    verdict.base_origin = stored.words();
  } else {
    verdict.base_origin = base_runs.facts.words;
    verdict.base_commit = base_runs.facts.commit;
    if (judged_by_stored > 0) {
      verdict.base_origin += fmt::format("; {} judge the counts of {} of {} cells", stored.words(),
                                         judged_by_stored, measured.profiles.size());
    }
  }
  verdict.commit = base_runs.facts.candidate_commit;
  verdict.budget_seconds = measured.configuration.settings->gate.budget_seconds;
  if (base_runs.facts.candidate_dirty && base_runs.facts.candidate_commit) {
    verdict.notes.push_back(fmt::format("the working tree differs from {}",
                                        text::short_commit(*base_runs.facts.candidate_commit)));
  }
  append(verdict.notes, base_runs.facts.notes);
  return verdict;
}

namespace {

// Puts the verdicts of paired runs into the suspected `cells`, and returns notes for the gate.
Result<std::vector<std::string>> merge_paired_verdicts(const MeasuredRun& pairs,
                                                       const StoredBaselines& stored,
                                                       const verdict::Policy& policy,
                                                       const sys::Files& files,
                                                       std::vector<verdict::CellVerdict>& cells) {
  WEIR_TRY(const verdict::GateVerdict paired_verdict,
           judge_against_base(pairs, stored, policy, files));
  const verdict::Confirmed confirmed =
      verdict::confirm(cells, paired_verdict.cells, pairs.base_runs->facts.words);
  std::vector<std::string> notes{fmt::format(
      "slower than stored runs, re-tested in pairs with {}: {} confirmed, {} cleared, {} "
      "inconclusive ({})",
      pairs.base_runs->facts.words, confirmed.confirmed, confirmed.cleared, confirmed.inconclusive,
      pairs.folder)};
  for (const std::string& line : confirmed.not_asked)
    notes.push_back("not confirmed by pairs: " + line);
  append(notes, paired_verdict.notes);
  return notes;
}

}  // namespace

// Judges each cell by its stored baseline. Verdicts of `pairs`, if not null, replace those on
// slower times.
Result<verdict::GateVerdict> judge_stored(const MeasuredRun& measured,
                                          const StoredBaselines& stored,
                                          const verdict::Policy& policy, const sys::Files& files,
                                          const MeasuredRun* pairs) {
  const HeldCells held(measured);
  const verdict::LimitTable limits(measured.configuration.settings->limits);
  JudgedCells cells(measured.bytes, limits);
  for (const profile::Profile& profile : measured.profiles) {
    const HeldProfile held_profile(profile, measured, held);
    WEIR_TRY(const baseline::BaselineChoice choice, held_profile.stored(stored));
    WEIR_CHECK(cells.check_room(profile, choice));
    verdict::CellVerdict cell = held_profile.judge({choice}, limits, policy, choice);
    cell.is_stored = true;
    WEIR_CHECK(cells.add(std::move(cell)));
  }
  std::vector<std::string> pair_notes;
  if (pairs != nullptr)
    WEIR_TRY_SET(pair_notes, merge_paired_verdicts(*pairs, stored, policy, files, cells.list));
  verdict::GateVerdict verdict =
      finish(std::move(cells.list), policy, measured, limits, files, find_removed_cells(measured));
  verdict.base_origin = stored.words();
  verdict.commit = measured.commit;
  append(verdict.notes, pair_notes);
  if (pairs != nullptr)
    verdict.budget_seconds = measured.configuration.settings->gate.budget_seconds;
  return verdict;
}

// Judges each cell against the cell of the same name in another run.
Result<verdict::GateVerdict> judge_against(const MeasuredRun& measured, const MeasuredRun& base,
                                           const verdict::Policy& policy, const sys::Files& files) {
  std::map<std::string, const profile::Profile*> base_by_name;
  for (const profile::Profile& profile : base.profiles) base_by_name[profile.cell.str()] = &profile;
  const verdict::LimitTable limits(measured.configuration.settings->limits);
  JudgedCells cells(std::max(measured.bytes, base.bytes), limits);
  for (const profile::Profile& profile : measured.profiles) {
    const std::string name = profile.cell.str();
    baseline::BaselineChoice choice;
    choice.reason = fmt::format("{} has no such cell", base.folder);
    if (const auto* base_profile = look_up(base_by_name, name))
      choice = baseline::choose_run(profile, **base_profile);
    base_by_name.erase(name);
    WEIR_CHECK(cells.check_room(profile, choice));
    WEIR_CHECK(cells.add(verdict::judge_cell(profile, {choice}, limits, policy)));
  }
  verdict::GateVerdict verdict = finish(std::move(cells.list), policy, measured, limits, files);
  verdict.base_origin = fmt::format("run {}", base.folder);
  for (const auto& [name, profile] : base_by_name) {
    verdict.notes.push_back(fmt::format("{} is only in {}", name, base.folder));
  }
  return verdict;
}

// Returns the verdict's file for a file or a run's folder. The error names the command that makes
// one.
Result<std::string> find_verdict(const std::string& place, const sys::Files& files) {
  const auto verdict_path = [](const std::string& folder) {
    return sys::join_path(folder, run::k_verdict_name);
  };
  const auto is_judged = [&](const std::string& folder) {
    return files.kind(verdict_path(folder)) == sys::Kind::file;
  };
  if (files.kind(place) != sys::Kind::folder) {
    if (files.exists(place)) return place;
    return fail(Code::usage, "{}: there is no such file", place);
  }
  if (is_judged(place)) return verdict_path(place);
  if (holds_run(place, files)) {
    return fail(
        Code::usage,
        "{}: this run was not judged, so it has no verdict\n  weir gate --from {} judges it", place,
        text::shell_word(place));
  }
  const auto runs = run::list_runs(files, place);
  if (runs.empty()) return run::no_run(place);
  const auto judged = std::find_if(runs.rbegin(), runs.rend(), is_judged);
  return fail(Code::usage, "{}: a folder of runs, and no run itself\n  {}", place,
              judged != runs.rend()
                  ? fmt::format("name one of them: {} is the newest that was judged", *judged)
                  : fmt::format("none of them was judged: weir gate --from {} judges the newest",
                                text::shell_word(runs.back())));
}

Result<verdict::GateVerdict> read_verdict(const std::string& file, const sys::Files& files) {
  constexpr std::uint64_t k_largest_verdict = std::uint64_t{64} << 20;
  WEIR_TRY(const std::string text, files.read(file, k_largest_verdict));
  return parse_json(text)
      .and_then(reading<verdict::GateVerdict>("verdict"))
      .map_error(with_prefix(file));
}

namespace {

using verdict::CellVerdict;
using verdict::Outcome;

// Returns the first line of text from an engine, safe to print.
std::string first_line(const std::string& text) { return text::printable(text::first_line(text)); }

// Lists what failed in a cell, on one line.
std::string failure_reason(const CellVerdict& cell) {
  std::vector<std::string> reasons;
  for (const verdict::Judgement& judgement : cell.judgements) {
    if (judgement.verdict != Outcome::fail) continue;
    const report::Number number = report::words(judgement);
    reasons.push_back(judgement.is_metric() ? number.label + " " + number.from_to()
                                            : judgement.reason);
  }
  return fmt::format("{}: {}", cell.cell.str(), first_line(text::join(reasons)));
}

const CellVerdict* first_with(const verdict::GateVerdict& verdict, Outcome outcome) {
  return find_first(verdict.cells, [&](const auto& cell) { return cell.verdict == outcome; });
}

}  // namespace

// Returns a bisection's outcome: bad if any cell failed, skipped if a cell has an error, is
// inconclusive or nothing was judged, else good.
StepVerdict judge_step(const verdict::GateVerdict& verdict) {
  using source::TrialOutcome;
  if (const CellVerdict* cell = first_with(verdict, Outcome::fail)) {
    return {TrialOutcome::bad, failure_reason(*cell)};
  }
  if (const CellVerdict* cell = first_with(verdict, Outcome::error)) {
    return {TrialOutcome::skipped, fmt::format("{} could not be measured: {}", cell->cell.str(),
                                               first_line(cell->reason))};
  }
  if (const CellVerdict* cell = first_with(verdict, Outcome::inconclusive)) {
    return {TrialOutcome::skipped,
            fmt::format("{} is not decided; a longer budget may do", cell->cell.str())};
  }
  const bool judged = std::ranges::any_of(verdict.cells, [](const CellVerdict& cell) {
    return cell.verdict == Outcome::pass || cell.verdict == Outcome::improved ||
           cell.verdict == Outcome::waived;
  });
  if (!judged) return {TrialOutcome::skipped, "nothing could be judged", /*nothing=*/true};
  return {TrialOutcome::good, ""};
}

}  // namespace weir::flow
