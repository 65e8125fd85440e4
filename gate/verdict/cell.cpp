// A cell's verdict: folds its counts, kernels, placement, work and times, and takes in paired runs
// of times that failed against stored samples.

#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

template <class T>
void append(std::vector<T>& list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
}
template <class T>
void append(std::vector<T>& list, const std::optional<T>& item) {
  if (item) list.push_back(*item);
}

// Placement is judged without a base.
bool needs_base(const Judgement& judgement) { return judgement.metric.name != k_placement; }

bool counts_as_judged(const Judgement& judgement) {
  return needs_base(judgement) &&
         (is_judged(judgement.verdict) || judgement.verdict == Outcome::error);
}

// Returns why none of the cell's measurements was compared. Nothing if one was, or if the cell was
// skipped or failed to run.
std::optional<std::string> why_not_compared(const Comparison& comparison, const CellVerdict& cell) {
  if (is_compared(cell) || cell.verdict == Outcome::skipped) return std::nullopt;
  if (!comparison.candidate.errors.empty()) return std::nullopt;
  // A failed process explains more than that the base was not counted.
  if (comparison.pairs != nullptr && comparison.pairs->error) return *comparison.pairs->error;
  if (comparison.base == nullptr && !comparison.baseline_choice.reason.empty())
    return comparison.baseline_choice.reason;
  for (const Judgement& metric : cell.metrics()) {
    if (metric.verdict == Outcome::new_ && !metric.reason.empty()) return metric.reason;
  }
  return "no limit holds for what was measured";
}

// Copies the candidate's identity, requests and warnings into `cell`. Adds notes: which base it is
// compared with, why counts are missing, and what shows that both sides did the same work.
void describe_candidate(const Comparison& comparison, CellVerdict& cell) {
  const Profile& candidate = comparison.candidate;
  const profile::Provenance& provenance = candidate.provenance;
  cell.cell = candidate.cell;
  cell.device = candidate.device;
  cell.device_class = provenance.device_class;
  cell.device_name = provenance.device_name;
  cell.machine_class = provenance.machine_class;
  cell.machine_name = provenance.machine_name;
  cell.stderr_tail = candidate.stderr_tail;
  cell.warnings = candidate.warnings;
  cell.profiling_cost = candidate.profiling_cost;
  cell.server = candidate.server;
  cell.requests = candidate.requests;
  cell.latencies = candidate.latencies;
  cell.batches = profile::batch_bars(candidate.batches);
  cell.counts_skip_reason = candidate.counts_skip_reason;
  cell.instructions_skip_reason = candidate.instructions_skip_reason;
  cell.host_skip_reason = candidate.host_skip_reason;
  for (const auto& skipped : {candidate.instructions_skip_reason, candidate.host_skip_reason}) {
    if (skipped != candidate.counts_skip_reason) append(cell.notes, skipped);
  }
  if (comparison.base == nullptr) return;
  cell.base = comparison.is_other_device() ? "nearest: " + comparison.base->device_class
                                           : "same device class";
  // The choice of a base gives a reason if the base is of another device or of other settings.
  if (!comparison.baseline_choice.reason.empty())
    cell.notes.push_back(comparison.baseline_choice.reason);
  append(cell.notes, output_difference(comparison));
  append(cell.notes, describe_reference_use(comparison));
}

// Says of an improvement that nothing shows the work: less of it would look the same.
void describe_unchecked_work(const Comparison& comparison, CellVerdict& cell) {
  const Profile& candidate = comparison.candidate;
  const auto& work = candidate.work;
  const bool is_unchecked = !work.generated_tokens && !work.prompt_tokens && !work.output_digest &&
                            !work.load && candidate.errors.empty() &&
                            candidate.counted_runs + candidate.timed_runs > 0;
  const bool has_improved = std::ranges::any_of(cell.judgements, [](const Judgement& judgement) {
    return judgement.verdict == Outcome::improved;
  });
  if (comparison.base == nullptr || !is_unchecked || !has_improved) return;
  cell.notes.emplace_back(
      "the engine reports neither tokens nor its output: that both "
      "sides did the same work is not checked");
}

// --- paired runs of times that failed against stored samples -------------------------------------

bool is_suspected(const Judgement& metric) {
  return metric.suspected && metric.verdict == Outcome::fail && !metric.pairs;
}

// Returns true if the paired runs decided about `metric`. A program that fails, or a cell that the
// budget did not reach, gives no answer.
bool has_answer(const Judgement& metric, const CellVerdict& beside) {
  if (metric.verdict == Outcome::fail && metric.pairs) return true;
  return beside.reason.empty() && metric.pairs.value_or(0) > 0 &&
         (metric.verdict == Outcome::pass || metric.verdict == Outcome::improved ||
          metric.verdict == Outcome::inconclusive);
}

// Returns the verdict of paired runs on a metric that stored samples made suspect, with both
// reasons. Paired runs confirm the suspicion, leave it open, or clear it; `result` counts which.
Judgement merge_paired_verdict(const Judgement& stored, Judgement paired, const std::string& base,
                               Confirmed& result) {
  const std::string stored_reason = "against stored samples it was " + stored.reason;
  paired.warnings.insert(paired.warnings.begin(), stored.warnings.begin(), stored.warnings.end());
  if (paired.verdict == Outcome::fail) {
    ++result.confirmed;
    paired.reason = fmt::format("{}; beside {}; {}", paired.reason, base, stored_reason);
  } else if (paired.verdict == Outcome::inconclusive) {
    ++result.inconclusive;
    paired.reason = fmt::format("suspected, not confirmed: {}; beside {}; {}", paired.reason, base,
                                stored_reason);
  } else {
    ++result.cleared;
    // Better than the base is not better than what is stored.
    paired.verdict = Outcome::pass;
    paired.reason = fmt::format("not slower than {}: {}; {}", base, paired.reason, stored_reason);
  }
  return paired;
}

// Takes the verdicts of `paired`, the same cell judged by paired runs, into `cell`. Suspected
// metrics without an answer are listed in result.not_asked. A time that fails in pairs alone fails
// too.
void confirm_cell(CellVerdict& cell, const CellVerdict& paired, const std::string& base,
                  Confirmed& result) {
  std::map<std::string_view, const Judgement*> by_metric;
  for (const Judgement& judgement : paired.judgements) {
    by_metric.try_emplace(judgement.metric.name, &judgement);
  }
  for (Judgement& metric : cell.metrics()) {
    const bool is_suspect = is_suspected(metric);
    const Judgement* paired_metric = look_up(by_metric, metric.metric.name, nullptr);
    if (paired_metric == nullptr || !has_answer(*paired_metric, paired)) {
      if (!is_suspect) continue;
      std::string why = paired.reason;
      if (why.empty() && paired_metric != nullptr) why = paired_metric->reason;
      if (why.empty() && paired_metric == nullptr) why = "the base does not report it";
      result.not_asked.push_back(fmt::format(
          "{}, {}: {}", cell.cell.str(), unit::display_name(metric.metric), text::first_line(why)));
    } else if (is_suspect) {
      metric = merge_paired_verdict(metric, *paired_metric, base, result);
    } else if (metric.metric.kind != unit::Kind::count && paired_metric->verdict == Outcome::fail) {
      metric = *paired_metric;
      metric.reason = fmt::format("{}; beside {}", metric.reason, base);
    }
  }
  append(cell.warnings, paired.warnings);
  fold_judgements(cell);
}

// Returns true if the model does not fit the device, and a baseline of the same device class says
// so too.
bool is_accepted_misfit(const Comparison& comparison, const CellVerdict& cell) {
  const Judgement* const fits = find_by_metric(cell.judgements, unit::k_fits);
  return fits != nullptr && fits->verdict == Outcome::pass && !comparison.is_other_device() &&
         fits->baseline == 0 && fits->current == 0 &&
         profile::only_does_not_fit(comparison.candidate);
}

}  // namespace

static std::map<std::string_view, const profile::PairedMetric*> metrics_by_name(
    const profile::PairedRuns* pairs) {
  std::map<std::string_view, const profile::PairedMetric*> metrics;
  if (pairs == nullptr) return metrics;
  for (const profile::PairedMetric& metric : pairs->metrics) {
    metrics.try_emplace(metric.metric.name, &metric);
  }
  return metrics;
}

Comparison::Comparison(const Profile& profile, const Base& compared, const LimitTable& table,
                       const Policy& rules)
    : candidate(profile),
      baseline_choice(compared.choice),
      limits(table),
      fitting_limits(table.fitting(profile.cell)),
      policy(rules),
      pairs(compared.pairs ? &*compared.pairs : nullptr),
      paired_metrics(metrics_by_name(pairs)),
      base(baseline_choice.match >= baseline::BaselineChoice::Match::nearest &&
                   baseline_choice.baseline
               ? &*baseline_choice.baseline
               : nullptr),
      base_kinds(base == nullptr ? CountKinds() : CountKinds(base->counts)) {}

// The place of a subject in a cell's list: metrics come first.
static std::size_t subject_rank(std::string_view subject) {
  constexpr std::array<std::string_view, 3> k_rules{k_kernels, k_kernel_code, k_placement};
  const auto at = std::ranges::find(k_rules, subject);
  return at == k_rules.end() ? 0 : static_cast<std::size_t>(at - k_rules.begin()) + 1;
}

Judgement::Judgement(const char* subject, Limit wanted)
    : Ruling{Outcome::info}, limit(std::move(wanted)) {
  metric.name = subject;
  metric.base = subject;
}

bool Judgement::is_metric() const { return subject_rank(metric.name) == 0; }

std::span<Judgement> CellVerdict::metrics() {
  return {judgements.begin(), std::ranges::find_if_not(judgements, &Judgement::is_metric)};
}
std::span<const Judgement> CellVerdict::metrics() const {
  return {judgements.begin(), std::ranges::find_if_not(judgements, &Judgement::is_metric)};
}

const Judgement& CellVerdict::judgement_of(std::string_view subject) const {
  static const Judgement k_none;
  const Judgement* judgement = find_by_metric(judgements, subject);
  return judgement == nullptr ? k_none : *judgement;
}

Judgement& CellVerdict::put(const char* subject) {
  if (Judgement* judgement = find_by_metric(judgements, subject)) return *judgement;
  Limit exact;
  exact.exact = true;
  const auto after = std::ranges::find_if(judgements, [&](const Judgement& judgement) {
    return subject_rank(judgement.metric.name) > subject_rank(subject);
  });
  return *judgements.emplace(after, subject, std::move(exact));
}

Judgement Comparison::start_judgement(const Measurement& measured) const {
  Judgement judgement;
  judgement.metric = measured.metric;
  judgement.nature = measured.nature;
  judgement.source = measured.source;
  judgement.limit = limits.resolve(fitting_limits, measured.metric);
  return judgement;
}

Ruling Comparison::ruling_without_base(bool exact, const std::string& why) const {
  if (base != nullptr && base->counts.contains(std::string(unit::k_fits))) {
    return {Outcome::info, "the model did not fit before: accept it as the new baseline"};
  }
  // Many metrics may have this reason, which quotes what was wrong with the base.
  constexpr std::size_t k_longest = 600;
  const std::string brief = text::shortened(why, k_longest);
  if (policy.require_baseline && exact) return {Outcome::error, "a baseline is required: " + brief};
  return {Outcome::new_, brief};
}

bool is_compared(const CellVerdict& cell) {
  return std::ranges::any_of(cell.judgements, [](const Judgement& judgement) {
    return needs_base(judgement) && is_judged(judgement.verdict);
  });
}

void make_new_if_other_device(const Comparison& comparison, bool exact, Ruling& ruling) {
  if (!comparison.is_other_device()) return;
  ruling = comparison.ruling_without_base(
      exact, fmt::format("{}: {}", ruling.reason, comparison.baseline_choice.reason));
}

// Returns the worst outcome of a cell's judgements; `info` if nothing was judged. `new_` means
// that there is no base to compare with.
Outcome fold(std::span<const Judgement> judgements) {
  Outcome worst_count = Outcome::info, worst_time = Outcome::info, compared_times = Outcome::info;
  bool has_judged_count = false;
  for (const Judgement& judgement : judgements) {
    if (judgement.metric.kind == unit::Kind::count) {
      worst_count = worst(worst_count, judgement.verdict);
      has_judged_count = has_judged_count || counts_as_judged(judgement);
    } else {
      worst_time = worst(worst_time, judgement.verdict);
      if (judgement.verdict != Outcome::new_) {
        compared_times = worst(compared_times, judgement.verdict);
      }
    }
  }
  // A new time changes nothing if something else was judged.
  const bool is_anything_judged = has_judged_count || is_judged(compared_times);
  if (is_anything_judged && worst_time == Outcome::new_) worst_time = compared_times;
  return worst(worst_count, worst_time);
}

bool fold_judgements(CellVerdict& cell) {
  Outcome folded = fold(cell.judgements);
  if (!cell.reason.empty()) folded = worst(folded, Outcome::error);
  if (folded == Outcome::info) return false;
  cell.verdict = folded;
  return true;
}

// Judges all subjects of the cell: counts, times, kernels, their code, and placement (where ops
// ran). Metrics without a limit come after those with one; subjects with nothing to report are
// left out.
static void judge_subjects(const Comparison& comparison, CellVerdict& cell) {
  cell.judgements = judge_counts(comparison);
  append(cell.judgements, judge_kernel_calls(comparison, cell.warnings));
  append(cell.judgements, judge_kernel_costs(comparison, cell.warnings));
  append(cell.judgements, judge_likely_tokens(comparison));
  append(cell.judgements, judge_times(comparison));
  append(cell.judgements, judge_missing_times(comparison));
  list_changed_functions(comparison, cell);
  std::ranges::stable_partition(cell.judgements, [](const Judgement& metric) {
    return metric.verdict != Outcome::info || metric.limit.is_set();
  });
  for (const auto& judge : {judge_kernels, judge_kernel_code, judge_placement}) {
    Judgement judgement = judge(comparison, cell);
    const bool has_no_result = judgement.verdict == Outcome::info && judgement.reason.empty();
    if (!has_no_result || !judgement.changed.empty() || !judgement.code.empty()) {
      cell.judgements.push_back(std::move(judgement));
    }
  }
}

// Returns the errors of the cell: the candidate's, the paired runs', a failed base, or different
// work on the two sides. A model that does not fit, as in its baseline, becomes a note.
static std::vector<std::string> collect_errors(const Comparison& comparison, const Base& base,
                                               CellVerdict& cell) {
  const Profile& candidate = comparison.candidate;
  std::vector<std::string> errors = candidate.errors;
  if (is_accepted_misfit(comparison, cell)) {
    cell.notes.push_back("does not fit, as accepted: " + errors.front());
    errors.clear();
  }
  if (base.pairs) {
    append(cell.notes, describe_starts(comparison));
    append(errors, base.pairs->error);
    if (candidate.errors.empty()) cell.stderr_tail = base.pairs->stderr_tail;
    append(cell.warnings, base.pairs->warnings);
    append(cell.notes, base.pairs->notes);
  }
  if (candidate.errors.empty()) append(errors, work_difference(comparison));
  if (errors.empty() && base.choice.base_failed) errors.push_back(base.choice.reason);
  return errors;
}

// Judges one benchmark cell, a combination of engine, model, backend and prompt. Its metrics,
// kernels, placement and errors make one verdict; it is skipped if nothing could be counted or
// timed.
CellVerdict judge_cell(const Profile& candidate, const Base& base, const LimitTable& limits,
                       const Policy& policy) {
  const Comparison comparison(candidate, base, limits, policy);
  CellVerdict cell;
  describe_candidate(comparison, cell);
  judge_subjects(comparison, cell);
  cell.reason = text::join(collect_errors(comparison, base, cell), "\n");
  const bool any_judged = fold_judgements(cell);
  if (!any_judged && candidate.counts_skip_reason && candidate.timed_runs == 0) {
    cell.verdict = Outcome::skipped;
    cell.reason = *candidate.counts_skip_reason;
  } else if (!any_judged) {
    cell.verdict = Outcome::pass;
    cell.notes.emplace_back("no limit applies here: nothing was judged");
  }
  // Improved counts of a cell that fails for another reason are not to be accepted.
  if (cell.verdict == Outcome::improved) {
    for (Judgement& metric : cell.metrics()) {
      if (metric.verdict != Outcome::improved || metric.metric.kind != unit::Kind::count) continue;
      metric.reason += ": accept it as the new baseline";
    }
  }
  const Baseline* baseline = comparison.base;
  // A time, or a bound, does not fail by the counts that the reason is about.
  const bool has_failed_count =
      std::ranges::any_of(cell.judgements, [](const Judgement& judgement) {
        const bool is_changed_count = judgement.metric.kind == unit::Kind::count &&
                                      judgement.baseline && judgement.baseline != judgement.current;
        return judgement.verdict == Outcome::fail && (!judgement.is_metric() || is_changed_count);
      });
  if (baseline != nullptr && !baseline->reason.empty() && has_failed_count) {
    cell.notes.push_back("the stored counts were accepted earlier, with the reason: " +
                         baseline->reason);
  }
  describe_unchecked_work(comparison, cell);
  cell.not_compared = why_not_compared(comparison, cell);
  return cell;
}

std::vector<profile::CellKey> suspected(std::span<const CellVerdict> cells) {
  std::vector<profile::CellKey> keys;
  for (const CellVerdict& cell : cells) {
    if (std::ranges::any_of(cell.judgements, is_suspected)) keys.push_back(cell.cell);
  }
  return keys;
}

// Takes the verdicts of paired runs into the cells that they measured again. Returns how many
// suspected changes they confirmed, cleared or left open. `base` names the base program.
Confirmed confirm(std::vector<CellVerdict>& cells, std::span<const CellVerdict> paired,
                  const std::string& base) {
  constexpr std::size_t k_longest_base = 300;
  const std::string brief_base = text::shortened(base, k_longest_base);
  Confirmed result;
  std::map<profile::CellKey, const CellVerdict*> by_cell;
  for (const CellVerdict& paired_cell : paired) by_cell.try_emplace(paired_cell.cell, &paired_cell);
  for (CellVerdict& cell : cells) {
    const CellVerdict* match = look_up(by_cell, cell.cell, nullptr);
    if (match != nullptr) confirm_cell(cell, *match, brief_base, result);
  }
  return result;
}

}  // namespace weir::verdict
