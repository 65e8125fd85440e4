// A cell's verdict: its counts, kernels, placement, work and times, folded; and what pairs say of
// times that failed against stored samples.

#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

template <class T>
void append(std::vector<T>& list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
}
template <class T>
void append(std::vector<T>& list, const std::optional<T>& one) {
  if (one) list.push_back(*one);
}

// Where work ran is judged without a base.
bool needs_base(const Judgement& one) { return one.metric.name != k_placement; }

bool counts_as_judged(const Judgement& one) {
  return needs_base(one) && (judges(one.verdict) || one.verdict == Outcome::error);
}

// Why nothing of a cell that was measured was compared.
std::optional<std::string> why_not_compared(const Question& question, const CellVerdict& cell) {
  if (is_compared(cell) || cell.verdict == Outcome::skipped) return std::nullopt;
  if (!question.candidate.errors.empty()) return std::nullopt;
  if (question.base == nullptr && !question.choice.reason.empty()) return question.choice.reason;
  for (const Judgement& metric : cell.metrics()) {
    if (metric.verdict == Outcome::new_ && !metric.reason.empty()) return metric.reason;
  }
  return "no limit holds for what was measured";
}

void describe(const Question& question, CellVerdict& cell) {
  const Profile& candidate = question.candidate;
  const profile::Provenance& from = candidate.provenance;
  cell.cell = candidate.cell;
  cell.device = candidate.device;
  cell.device_class = from.device_class;
  cell.device_name = from.device_name;
  cell.machine_class = from.machine_class;
  cell.machine_name = from.machine_name;
  cell.stderr_tail = candidate.stderr_tail;
  cell.warnings = candidate.warnings;
  cell.profiling_cost = candidate.profiling_cost;
  cell.server = candidate.server;
  cell.requests = candidate.requests;
  cell.latencies = candidate.latencies;
  cell.batches = profile::batch_bars(candidate.batches);
  cell.counts_skipped = candidate.counts_skipped;
  cell.instructions_skipped = candidate.instructions_skipped;
  cell.host_skipped = candidate.host_skipped;
  for (const auto& skipped : {candidate.instructions_skipped, candidate.host_skipped}) {
    if (skipped != candidate.counts_skipped) append(cell.notes, skipped);
  }
  if (question.base == nullptr) return;
  cell.base = question.nearest() ? "nearest: " + question.base->device_class : "same device class";
  // For the nearest class this says that equal counts pass here, for a run what differs in it.
  if (!question.choice.reason.empty()) cell.notes.push_back(question.choice.reason);
  append(cell.notes, other_output(question));
  append(cell.notes, reference_note(question));
  const auto& work = candidate.work;
  if (!work.generated_tokens && !work.prompt_tokens && !work.output_digest &&
      candidate.errors.empty() && candidate.counted_runs + candidate.timed_runs > 0) {
    cell.notes.emplace_back(
        "the engine reports neither tokens nor its output: that both "
        "sides did the same work is not checked");
  }
}

// --- pairs beside stored samples -----------------------------------------------------------------

bool is_suspected(const Judgement& metric) {
  return metric.suspected && metric.verdict == Outcome::fail && !metric.pairs;
}

// A side that breaks, or a cell that the budget did not reach, answers nothing.
bool asked(const Judgement& metric, const CellVerdict& beside) {
  if (metric.verdict == Outcome::fail && metric.pairs) return true;
  return beside.reason.empty() && metric.pairs.value_or(0) > 0 &&
         (metric.verdict == Outcome::pass || metric.verdict == Outcome::improved ||
          metric.verdict == Outcome::inconclusive);
}

// The numbers are those of the pairs; what stored samples said stays as words.
Judgement told_by_pairs(const Judgement& stored, Judgement paired, const std::string& base,
                        Confirmed& told) {
  const std::string stored_words = "against stored samples it was " + stored.reason;
  paired.warnings.insert(paired.warnings.begin(), stored.warnings.begin(), stored.warnings.end());
  if (paired.verdict == Outcome::fail || paired.verdict == Outcome::inconclusive) {
    const bool fails = paired.verdict == Outcome::fail;
    if (fails) {
      ++told.confirmed;
    } else {
      ++told.inconclusive;
    }
    paired.reason =
        fmt::format("{}{}; beside {}; {}", fails ? "" : "suspected, not confirmed: ", paired.reason,
                    base, stored_words);
    return paired;
  }
  ++told.cleared;
  // Better than the base is not better than what is stored.
  paired.verdict = Outcome::pass;
  paired.reason = fmt::format("not slower than {}: {}; {}", base, paired.reason, stored_words);
  return paired;
}

void confirm_cell(CellVerdict& cell, const CellVerdict& beside, const std::string& base,
                  Confirmed& told) {
  for (Judgement& metric : cell.metrics()) {
    const bool suspect = is_suspected(metric);
    const Judgement* found = of_metric(beside.judgements, metric.metric.name);
    if (found == nullptr || !asked(*found, beside)) {
      if (!suspect) continue;
      const std::string why = !beside.reason.empty() ? beside.reason
                              : found == nullptr     ? "the base does not report it"
                                                     : found->reason;
      told.not_asked.push_back(fmt::format("{}, {}: {}", cell.cell.str(),
                                           unit::label(metric.metric), text::first_line(why)));
    } else if (suspect) {
      metric = told_by_pairs(metric, *found, base, told);
    } else if (metric.metric.kind != unit::Kind::count && found->verdict == Outcome::fail) {
      metric = *found;
      metric.reason = fmt::format("{}; beside {}", metric.reason, base);
    }
  }
  append(cell.warnings, beside.warnings);
  fold(cell);
}

// A baseline of the same device class says so.
bool does_not_fit_as_accepted(const Question& question, const CellVerdict& cell) {
  const Judgement* const fits = of_metric(cell.judgements, unit::k_fits);
  return fits != nullptr && fits->verdict == Outcome::pass && !question.nearest() &&
         fits->baseline == 0 && fits->current == 0 &&
         profile::only_does_not_fit(question.candidate);
}

}  // namespace

Question::Question(const Profile& profile, const Base& compared,
                   std::span<const LimitEntry> entries, const Policy& rules)
    : candidate(profile),
      choice(compared.choice),
      limits(entries),
      policy(rules),
      pairs(compared.pairs ? &*compared.pairs : nullptr),
      base(choice.match >= baseline::Choice::Match::nearest && choice.baseline ? &*choice.baseline
                                                                               : nullptr) {}

// Place of a subject in a cell's list: metrics come first.
static std::size_t rank_of(std::string_view subject) {
  constexpr std::array<std::string_view, 3> k_rules{k_kernels, k_kernel_code, k_placement};
  const auto at = std::ranges::find(k_rules, subject);
  return at == k_rules.end() ? 0 : static_cast<std::size_t>(at - k_rules.begin()) + 1;
}

Judgement::Judgement(const char* subject, Limit wanted)
    : Ruling{Outcome::info}, limit(std::move(wanted)) {
  metric.name = metric.base = subject;
}

bool Judgement::is_metric() const { return rank_of(metric.name) == 0; }

std::span<Judgement> CellVerdict::metrics() {
  return {judgements.begin(), std::ranges::find_if_not(judgements, &Judgement::is_metric)};
}
std::span<const Judgement> CellVerdict::metrics() const {
  return {judgements.begin(), std::ranges::find_if_not(judgements, &Judgement::is_metric)};
}

const Judgement& CellVerdict::of(std::string_view subject) const {
  static const Judgement k_none;
  const Judgement* found = of_metric(judgements, subject);
  return found == nullptr ? k_none : *found;
}

Judgement& CellVerdict::put(const char* subject) {
  if (Judgement* found = of_metric(judgements, subject)) return *found;
  Limit exact;
  exact.exact = true;
  const auto behind = std::ranges::find_if(judgements, [&](const Judgement& one) {
    return rank_of(one.metric.name) > rank_of(subject);
  });
  return *judgements.emplace(behind, subject, std::move(exact));
}

Judgement Question::about(const Measurement& measured) const {
  Judgement made;
  made.metric = measured.metric;
  made.nature = measured.nature;
  made.source = measured.source;
  made.limit = resolve_limit(candidate.cell, measured.metric, limits);
  return made;
}

Ruling Question::fresh(bool exact, const std::string& why) const {
  if (base != nullptr && base->counts.contains(std::string(unit::k_fits))) {
    return {Outcome::info, "the model did not fit before: accept it as the new baseline"};
  }
  if (policy.require_baseline && exact) return {Outcome::error, "a baseline is required: " + why};
  return {Outcome::new_, why};
}

bool is_compared(const CellVerdict& cell) {
  return std::ranges::any_of(
      cell.judgements, [](const Judgement& one) { return needs_base(one) && judges(one.verdict); });
}

std::string plural(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

void new_beside_nearest(const Question& question, bool exact, Ruling& ruling) {
  if (!question.nearest()) return;
  ruling = question.fresh(exact, fmt::format("{}: {}", ruling.reason, question.choice.reason));
}

bool fold(CellVerdict& cell) {
  Outcome counts = Outcome::info, times = Outcome::info, times_not_new = Outcome::info;
  bool counts_judged = false;
  for (const Judgement& one : cell.judgements) {
    if (one.metric.kind == unit::Kind::count) {
      counts = worst(counts, one.verdict);
      counts_judged = counts_judged || counts_as_judged(one);
    } else {
      times = worst(times, one.verdict);
      if (one.verdict != Outcome::new_) times_not_new = worst(times_not_new, one.verdict);
    }
  }
  // A time that is new beside counts that were judged is told, and changes nothing.
  if (counts_judged && times == Outcome::new_) times = times_not_new;
  Outcome folded = worst(counts, times);
  if (!cell.reason.empty()) folded = worst(folded, Outcome::error);
  if (folded == Outcome::info) return false;
  cell.verdict = folded;
  return true;
}

CellVerdict judge_cell(const Profile& candidate, const Base& base,
                       std::span<const LimitEntry> limits, const Policy& policy) {
  const Question question(candidate, base, limits, policy);
  CellVerdict cell;
  describe(question, cell);
  cell.judgements = judge_counts(question);
  append(cell.judgements, judge_works(question, cell.warnings));
  append(cell.judgements, judge_kernel_costs(question, cell.warnings));
  append(cell.judgements, judge_likely_tokens(question));
  append(cell.judgements, judge_times(question));
  append(cell.judgements, missing_times(question));
  explain_instructions(question, cell);
  // Counts first, then times; what has no limit last.
  std::ranges::stable_partition(cell.judgements, [](const Judgement& metric) {
    return metric.verdict != Outcome::info || metric.limit.any();
  });
  for (const auto& judge : {judge_kernels, judge_kernel_code, judge_placement}) {
    Judgement one = judge(question, cell);
    const bool silent = one.verdict == Outcome::info && one.reason.empty();
    if (!silent || !one.changed.empty() || !one.code.empty()) {
      cell.judgements.push_back(std::move(one));
    }
  }

  std::vector<std::string> reasons = candidate.errors;
  if (does_not_fit_as_accepted(question, cell)) {
    cell.notes.push_back("does not fit, as accepted: " + reasons.front());
    reasons.clear();
  }
  if (base.pairs) {
    append(cell.notes, starts_note(question));
    append(reasons, base.pairs->error);
    if (candidate.errors.empty()) cell.stderr_tail = base.pairs->stderr_tail;
    append(cell.warnings, base.pairs->warnings);
    append(cell.notes, base.pairs->notes);
  }
  if (candidate.errors.empty()) append(reasons, other_work(question));
  if (reasons.empty() && base.choice.base_failed) reasons.push_back(base.choice.reason);
  cell.reason = text::join(reasons, "\n");
  if (!fold(cell)) {  // nothing could be judged
    if (candidate.counts_skipped && candidate.timed_runs == 0) {
      cell.verdict = Outcome::skipped;
      cell.reason = *candidate.counts_skipped;
    } else {
      cell.verdict = Outcome::pass;
      cell.notes.emplace_back("no limit applies here: nothing was judged");
    }
  }
  // Of a cell that fails for another reason, nothing is to be accepted.
  if (cell.verdict == Outcome::improved) {
    for (Judgement& metric : cell.metrics()) {
      if (metric.verdict != Outcome::improved || metric.metric.kind != unit::Kind::count) continue;
      metric.reason += ": accept it as the new baseline";
    }
  }
  if (question.base != nullptr && !question.base->reason.empty() && cell.verdict == Outcome::fail) {
    cell.notes.push_back("the baseline was accepted with the reason: " + question.base->reason);
  }
  cell.not_compared = why_not_compared(question, cell);
  return cell;
}

std::vector<profile::CellKey> suspected(std::span<const CellVerdict> cells) {
  std::vector<profile::CellKey> keys;
  for (const CellVerdict& cell : cells) {
    if (std::ranges::any_of(cell.judgements, is_suspected)) keys.push_back(cell.cell);
  }
  return keys;
}

Confirmed confirm(std::vector<CellVerdict>& cells, std::span<const CellVerdict> beside,
                  const std::string& base) {
  Confirmed told;
  for (CellVerdict& cell : cells) {
    const CellVerdict* found = first_of(
        beside, [&](const CellVerdict& other) { return other.cell.str() == cell.cell.str(); });
    if (found != nullptr) confirm_cell(cell, *found, base, told);
  }
  return told;
}

}  // namespace weir::verdict
