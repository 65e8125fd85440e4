// A cell's verdict: its counts, kernels, placement, work and times, folded; names of outcomes; and
// what pairs say of times that failed against stored samples.
#include <algorithm>
#include <array>

#include "gate/base/text.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

using profile::Profile;

bool counts_as_judged(Outcome outcome) {
  return outcome != Outcome::fresh && outcome != Outcome::skipped && outcome != Outcome::info;
}

std::string base_words(const baseline::Choice& choice) {
  if (choice.match == baseline::Choice::Match::same) return "same device class";
  return fmt::format("nearest: {}", choice.baseline->device_class);
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
  cell.counts_skipped = candidate.counts_skipped;
  cell.instructions_skipped = candidate.instructions_skipped;
  if (candidate.instructions_skipped &&
      candidate.instructions_skipped != candidate.counts_skipped) {
    cell.notes.push_back(*candidate.instructions_skipped);
  }
  if (question.judge() == nullptr) return;
  cell.base = base_words(question.choice);
  // For the nearest class this says that equal counts pass here, for a run what differs in it.
  if (!question.choice.reason.empty()) cell.notes.push_back(question.choice.reason);
  if (auto note = other_output(question)) cell.notes.push_back(std::move(*note));
  if (auto note = reference_note(question)) cell.notes.push_back(std::move(*note));
  const auto& work = candidate.work;
  if (!work.generated_tokens && !work.prompt_tokens && !work.output_digest &&
      candidate.errors.empty() && candidate.counted_runs + candidate.timed_runs > 0) {
    cell.notes.emplace_back(
        "the engine reports neither tokens nor its output: that both "
        "sides did the same work is not checked");
  }
}

// What the baseline of this machine held as a time and this run lacks, although it was timed.
void add_missing_times(const Question& question, CellVerdict& cell) {
  const baseline::Baseline* base = question.judge();
  const Profile& candidate = question.candidate;
  if (base == nullptr || question.pairs != nullptr || candidate.timed_runs == 0 ||
      !candidate.errors.empty() || is_reference(candidate))
    return;
  const auto sessions = base->sessions.find(candidate.provenance.machine_class);
  if (sessions == base->sessions.end() || sessions->second.empty()) return;
  for (const auto& [name, samples] : sessions->second.back().samples) {
    const auto metric = unit::find_metric(name);
    if (candidate.metrics.contains(name) || !metric || metric->kind == unit::Kind::count) continue;
    MetricVerdict made;
    made.metric = *metric;
    made.limit = resolve_limit(cell.cell, *metric, question.limits);
    if (!made.limit.any() || made.limit.mode == Mode::off) continue;
    made.verdict = Outcome::error;
    made.reason = "could not be measured: samples are stored, this run gave none";
    show_only(made.limit, made.verdict, made.reason);
    cell.metrics.push_back(std::move(made));
  }
}

// What is said where nothing could be judged.
void nothing_judged(const Profile& candidate, CellVerdict& cell) {
  if (candidate.counts_skipped && candidate.timed_runs == 0) {
    cell.verdict = Outcome::skipped;
    cell.reason = *candidate.counts_skipped;
    return;
  }
  cell.verdict = Outcome::pass;
  cell.notes.emplace_back("no limit applies here: nothing was judged");
}

constexpr std::array<std::pair<Outcome, std::string_view>, 9> k_outcomes{{
    {Outcome::fail, "fail"},
    {Outcome::error, "error"},
    {Outcome::inconclusive, "inconclusive"},
    {Outcome::fresh, "new"},
    {Outcome::improved, "improved"},
    {Outcome::accepted, "accepted"},
    {Outcome::pass, "pass"},
    {Outcome::skipped, "skipped"},
    {Outcome::info, "info"},
}};

bool is_suspected(const MetricVerdict& metric) {
  return metric.suspected && metric.verdict == Outcome::fail && !metric.pairs;
}

// A side that breaks, or a cell that the budget did not reach, answers nothing.
bool asked(const MetricVerdict& metric, const CellVerdict& beside) {
  if (metric.verdict == Outcome::fail && metric.pairs) return true;
  return beside.reason.empty() && metric.pairs.value_or(0) > 0 &&
         (metric.verdict == Outcome::pass || metric.verdict == Outcome::improved ||
          metric.verdict == Outcome::inconclusive);
}

// The numbers are those of the pairs; what stored samples said stays as words.
MetricVerdict told_by_pairs(const MetricVerdict& stored, MetricVerdict paired,
                            const std::string& base, Confirmed& told) {
  const std::string stored_words = "against stored samples it was " + stored.reason;
  paired.warnings.insert(paired.warnings.begin(), stored.warnings.begin(), stored.warnings.end());
  switch (paired.verdict) {
    case Outcome::fail:
      ++told.confirmed;
      paired.reason = fmt::format("{}; beside {}; {}", paired.reason, base, stored_words);
      break;
    case Outcome::inconclusive:
      ++told.open;
      paired.reason = fmt::format("suspected, not confirmed: {}; beside {}; {}", paired.reason,
                                  base, stored_words);
      break;
    default:
      ++told.cleared;
      // Better than the base is not better than what is stored.
      paired.verdict = Outcome::pass;
      paired.reason = fmt::format("not slower than {}: {}; {}", base, paired.reason, stored_words);
      break;
  }
  return paired;
}

void confirm_cell(CellVerdict& cell, const CellVerdict& beside, const std::string& base,
                  Confirmed& told) {
  for (MetricVerdict& metric : cell.metrics) {
    const bool suspect = is_suspected(metric);
    const auto found = std::ranges::find_if(beside.metrics, [&](const MetricVerdict& other) {
      return other.metric.name == metric.metric.name;
    });
    if (found == beside.metrics.end() || !asked(*found, beside)) {
      if (!suspect) continue;
      const std::string why = !beside.reason.empty()          ? beside.reason
                              : found == beside.metrics.end() ? "the base does not report it"
                                                              : found->reason;
      told.not_asked.push_back(fmt::format("{}, {}: {}", cell.cell.str(),
                                           unit::label(metric.metric), text::first_line(why)));
      continue;
    }
    if (suspect) {
      metric = told_by_pairs(metric, *found, base, told);
    } else if (metric.metric.kind != unit::Kind::count && found->verdict == Outcome::fail) {
      metric = *found;
      metric.reason = fmt::format("{}; beside {}", metric.reason, base);
    }
  }
  cell.warnings.insert(cell.warnings.end(), beside.warnings.begin(), beside.warnings.end());
  fold(cell);
}

}  // namespace

bool fold(CellVerdict& cell) {
  Outcome counts = worst(cell.kernels_verdict, cell.placement_verdict);
  Outcome times = Outcome::info;
  for (const MetricVerdict& metric : cell.metrics) {
    Outcome& kind = metric.metric.kind == unit::Kind::count ? counts : times;
    kind = worst(kind, metric.verdict);
  }
  // A time that is new beside counts that were judged is told, and changes nothing.
  const bool counts_judged =
      counts_as_judged(cell.kernels_verdict) ||
      std::ranges::any_of(cell.metrics, [](const MetricVerdict& metric) {
        return metric.metric.kind == unit::Kind::count && counts_as_judged(metric.verdict);
      });
  if (counts_judged && times == Outcome::fresh) {
    times = Outcome::info;
    for (const MetricVerdict& metric : cell.metrics) {
      if (metric.metric.kind != unit::Kind::count && metric.verdict != Outcome::fresh) {
        times = worst(times, metric.verdict);
      }
    }
  }
  Outcome folded = worst(counts, times);
  if (!cell.reason.empty()) folded = worst(folded, Outcome::error);
  if (folded == Outcome::info) return false;
  cell.verdict = folded;
  return true;
}

CellVerdict judge_cell(const Profile& candidate, const Base& base,
                       std::span<const LimitEntry> limits, const Policy& policy) {
  const Question question{candidate, base.choice, limits, policy,
                          base.pairs ? &*base.pairs : nullptr};
  CellVerdict cell;
  describe(question, cell);
  cell.metrics = judge_counts(question);
  for (MetricVerdict& work : judge_works(question, cell.warnings)) {
    cell.metrics.push_back(std::move(work));
  }
  judge_kernels(question, cell);
  explain_instructions(question, cell);
  judge_placement(question, cell);
  for (MetricVerdict& metric : judge_times(question)) cell.metrics.push_back(std::move(metric));
  add_missing_times(question, cell);
  // Counts first, then times; what has no limit last.
  std::stable_partition(cell.metrics.begin(), cell.metrics.end(), [](const MetricVerdict& metric) {
    return metric.verdict != Outcome::info || metric.limit.any();
  });

  std::vector<std::string> reasons = candidate.errors;
  if (base.pairs) {
    if (auto note = starts_note(question)) cell.notes.push_back(std::move(*note));
    if (base.pairs->error) reasons.push_back(*base.pairs->error);
    if (cell.stderr_tail.empty()) cell.stderr_tail = base.pairs->stderr_tail;
    cell.warnings.insert(cell.warnings.end(), base.pairs->warnings.begin(),
                         base.pairs->warnings.end());
    cell.notes.insert(cell.notes.end(), base.pairs->notes.begin(), base.pairs->notes.end());
  }
  if (candidate.errors.empty()) {
    if (auto other = other_work(question)) reasons.push_back(std::move(*other));
  }
  cell.reason = text::join(reasons, "\n");
  if (!fold(cell)) nothing_judged(candidate, cell);
  return cell;
}

std::string_view to_string(Outcome outcome) {
  for (const auto& [known, name] : k_outcomes) {
    if (known == outcome) return name;
  }
  return "info";
}

std::optional<Outcome> parse_outcome(std::string_view text) {
  for (const auto& [known, name] : k_outcomes) {
    if (name == text) return known;
  }
  return std::nullopt;
}

Outcome worst(Outcome a, Outcome b) { return std::min(a, b); }

void show_only(const Limit& limit, Outcome& verdict, std::string& reason) {
  if (limit.mode == Mode::gate || verdict == Outcome::info) return;
  const std::string why = limit.reason ? ": " + *limit.reason : "";
  if (limit.mode == Mode::off) {
    reason = "switched off" + why;
  } else if (verdict == Outcome::pass) {
    reason = "reported, not gated" + why;
  } else {
    reason = fmt::format("reported, not gated{} (would be {}{}{})", why, to_string(verdict),
                         reason.empty() ? "" : ": ", reason);
  }
  verdict = Outcome::info;
}

std::vector<profile::CellKey> suspected(std::span<const CellVerdict> cells) {
  std::vector<profile::CellKey> keys;
  for (const CellVerdict& cell : cells) {
    if (std::ranges::any_of(cell.metrics, is_suspected)) {
      keys.push_back(cell.cell);
    }
  }
  return keys;
}

Confirmed confirm(std::vector<CellVerdict>& cells, std::span<const CellVerdict> beside,
                  const std::string& base) {
  Confirmed told;
  for (CellVerdict& cell : cells) {
    const auto found = std::ranges::find_if(
        beside, [&](const CellVerdict& other) { return other.cell.str() == cell.cell.str(); });
    if (found != beside.end()) confirm_cell(cell, *found, base, told);
  }
  return told;
}

}  // namespace weir::verdict
