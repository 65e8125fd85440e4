#include "gate/run/against.hpp"

#include <algorithm>
#include <utility>

#include "gate/verdict/paired_rule.hpp"

namespace weir::run {

using profile::Pass;
using profile::RunRecord;
using profile::Side;
using verdict::Outcome;

namespace {

constexpr std::int64_t k_rounds_to_be_exact = 3;

bool counted_of(const RunRecord& record, Side side) {
  return record.pass == Pass::counted && record.side == side;
}

// A difference that a second look may explain: anything but "as it was".
bool differs(Outcome outcome) {
  return outcome == Outcome::fail || outcome == Outcome::improved ||
         outcome == Outcome::inconclusive || outcome == Outcome::error;
}

}  // namespace

baseline::Choice base_counts_of(const profile::Profile& candidate,
                                const profile::CellFacts& base_facts,
                                std::span<const RunRecord> records,
                                std::span<const baseline::Baseline> known) {
  const bool counted = std::any_of(records.begin(), records.end(), [&](const RunRecord& record) {
    return record.cell == base_facts.cell.str() && counted_of(record, Side::base);
  });
  if (counted) {
    return baseline::choice_of(candidate, profile::assemble(base_facts, records, Side::base));
  }
  baseline::Choice choice = baseline::choose(candidate, known);
  if (choice.match != baseline::Choice::Match::same) {
    choice.match = baseline::Choice::Match::none;
    choice.baseline.reset();
    choice.reason = "the base program was not counted";
  }
  return choice;
}

Against::Against(const Plan& plan, AgainstOptions options, const KnownCounts& known,
                 sys::Coin& coin, std::function<void(const PairsPlan&)> show_plan)
    : plan_(plan),
      options_(std::move(options)),
      known_(known),
      coin_(coin),
      show_plan_(std::move(show_plan)),
      records_(plan.cells.size()) {
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    cell_by_name_[plan.cells[i].cell.key.str()] = i;
  }
}

Result<Sequel::Next> Against::next(std::span<const RunRecord> fresh) {
  for (const RunRecord& record : fresh) {
    const auto found = cell_by_name_.find(record.cell);
    if (found == cell_by_name_.end()) continue;
    CellRecords& mine = records_[found->second];
    mine.fresh = true;
    (record.pass == Pass::counted ? mine.counted : mine.paired).push_back(record);
  }
  if (options_.counts) {
    if (auto steps = base_counts(); !steps.empty()) return Next{std::move(steps)};
    if (auto steps = counts_to_confirm(); !steps.empty()) return Next{std::move(steps)};
  }
  if (!options_.times) return Next{};
  if (auto steps = warm_ups(); !steps.empty()) return Next{std::move(steps)};
  if (!pairing_) {
    WEIR_CHECK(begin_pairs());
  }
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (std::exchange(records_[i].fresh, false)) note_pairs(i);
  }
  const auto cell = pairing_->next();
  if (!cell) return Next{};
  const std::int64_t pair = records_[*cell].noted + 1;
  Next next;
  next.steps = {timed(*cell, pair, Side::base), timed(*cell, pair, Side::candidate)};
  if (coin_.flip()) std::swap(next.steps[0], next.steps[1]);
  next.seconds_left = std::max(0.0, pairing_->left());
  return next;
}

// --- counts

std::vector<Step> Against::counts_again(std::size_t cell, Side side, std::int64_t rounds) const {
  std::vector<Step> steps;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const Step& step : plan_.steps) {
      if (step.cell != cell || step.pass != Pass::counted) continue;
      steps.push_back(step);
      steps.back().side = side;
    }
  }
  return steps;
}

std::int64_t Against::rounds(std::size_t cell, Side side) const {
  const auto planned = std::count_if(plan_.steps.begin(), plan_.steps.end(), [&](const Step& step) {
    return step.cell == cell && step.pass == Pass::counted;
  });
  const auto& counted = records_[cell].counted;
  const auto ran = std::count_if(counted.begin(), counted.end(),
                                 [&](const RunRecord& record) { return record.side == side; });
  return planned == 0 ? 0 : (ran + planned - 1) / planned;
}

std::vector<Step> Against::base_counts() const {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (rounds(i, Side::base) > 0) continue;
    const auto known = known_.of(plan_.cells[i].cell.key);
    if (!known.empty()) {
      const auto candidate = profile::assemble(plan_.cells[i].facts, records_[i].counted);
      if (baseline::choose(candidate, known).match == baseline::Choice::Match::same) continue;
    }
    const auto more = counts_again(i, Side::base, 1);
    steps.insert(steps.end(), more.begin(), more.end());
  }
  return steps;
}

bool Against::counts_differ(std::size_t cell) const {
  const auto& records = records_[cell].counted;
  const profile::Profile candidate = profile::assemble(plan_.cells[cell].facts, records);
  const auto choice = base_counts_of(candidate, plan_.base_cells[cell].facts, records,
                                     known_.of(plan_.cells[cell].cell.key));
  if (!candidate.errors.empty() || choice.match == baseline::Choice::Match::none) return false;
  const verdict::CellVerdict judged =
      verdict::judge_cell(candidate, {choice}, options_.limits, options_.policy);
  return differs(judged.kernels_verdict) ||
         std::any_of(judged.metrics.begin(), judged.metrics.end(), [](const auto& metric) {
           return metric.metric.kind == unit::Kind::count && differs(metric.verdict);
         });
}

std::vector<Step> Against::counts_to_confirm() const {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const std::int64_t base = rounds(i, Side::base), mine = rounds(i, Side::candidate);
    if (mine == 0 || std::min(base, mine) >= k_rounds_to_be_exact || !counts_differ(i)) continue;
    const bool failed =
        std::any_of(records_[i].counted.begin(), records_[i].counted.end(),
                    [](const RunRecord& record) { return record.error.has_value(); });
    if (failed) continue;
    for (const auto& [side, have] :
         {std::pair(Side::base, base), std::pair(Side::candidate, mine)}) {
      const auto more = counts_again(i, side, k_rounds_to_be_exact - have);
      steps.insert(steps.end(), more.begin(), more.end());
    }
  }
  return steps;
}

// --- pairs

// A cell whose counts could not be taken is an error already: its times would change nothing.
bool Against::timed_cell(std::size_t cell) const {
  const PreparedCell& prepared = plan_.cells[cell];
  if (prepared.unavailable || prepared.cell.twin || plan_.base_cells[cell].unavailable)
    return false;
  const auto& counted = records_[cell].counted;
  return std::none_of(counted.begin(), counted.end(), [](const RunRecord& record) {
    return record.error && record.side == Side::candidate;
  });
}

Step Against::timed(std::size_t cell, std::int64_t pair, Side side) const {
  Step step;
  step.cell = cell;
  step.pass = Pass::timed;
  step.asked = config::timed_asked(plan_.cells[cell].cell, options_.gate);
  step.side = side;
  step.pair = pair;
  return step;
}

std::vector<Step> Against::warm_ups() const {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (pairing_ || !timed_cell(i)) continue;
    if (records_[i].paired.empty()) {
      steps.push_back(timed(i, 0, Side::base));
      steps.push_back(timed(i, 0, Side::candidate));
      continue;
    }
    // One that failed may have had bad luck; twice is the cell's error.
    const auto runs = profile::paired_runs(plan_.cells[i].facts, records_[i].paired);
    if (runs.error) continue;
    for (const Side side : runs.warm_up_failed) steps.push_back(timed(i, 0, side));
  }
  return steps;
}

Result<void> Against::begin_pairs() {
  std::vector<profile::PairedRuns> runs;
  std::vector<profile::CellFacts> facts;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    facts.push_back(plan_.cells[i].facts);
    runs.push_back(profile::paired_runs(facts.back(), records_[i].paired));
  }
  options_.policy.timed_metrics = verdict::timed_metrics(facts, runs, options_.limits);
  std::vector<PairingCell> cells;
  judged_.assign(records_.size(), {});
  for (std::size_t i = 0; i < records_.size(); ++i) {
    PairingCell cell;
    cell.name = facts[i].cell.str();
    for (const RunRecord& record : records_[i].paired) {
      if (record.pair == 0) cell.pair_seconds += record.wall_seconds;
    }
    for (std::size_t k = 0; k < runs[i].metrics.size(); ++k) {
      const profile::PairedMetric& metric = runs[i].metrics[k];
      const auto limit = verdict::resolve_limit(facts[i].cell, metric.metric, options_.limits);
      const auto rule =
          verdict::paired_rule(limit, metric.metric, metric.warm_up.base, options_.policy);
      if (!rule || limit.mode != verdict::Mode::gate) continue;
      cell.rules.push_back(*rule);
      judged_[i].push_back(k);
    }
    records_[i].noted_seconds = 0;
    cells.push_back(std::move(cell));
  }
  pairing_ = std::make_unique<Pairing>(cells, options_.gate.budget_seconds, options_.rotation);
  const std::vector<Pairing::Share> shares = pairing_->plan();
  PairsPlan shown;
  shown.budget_seconds = options_.gate.budget_seconds;
  shown.seconds_for_all = pairing_->seconds_for_all();
  bool any = false, some = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].rules.empty()) continue;
    any = true;
    some = some || shares[i].now;
    shown.cells.push_back({cells[i].name, cells[i].pair_seconds, cells[i].rules.size(),
                           Pairing::fewest(cells[i].rules), shares[i].now});
  }
  const bool nothing_else =
      !options_.counts || std::none_of(plan_.steps.begin(), plan_.steps.end(),
                                       [](const Step& step) { return step.pass == Pass::counted; });
  if (any && !some && nothing_else) {
    return fail(
        Code::config,
        "gate.budget: {} can decide none of {} cell{}: one needs {} at least, all of them {}",
        unit::show_duration(options_.gate.budget_seconds), shown.cells.size(),
        shown.cells.size() == 1 ? "" : "s", unit::show_duration(pairing_->seconds_for_one()),
        unit::show_duration(pairing_->seconds_for_all()));
  }
  if (any && show_plan_) show_plan_(shown);
  return {};
}

void Against::note_pairs(std::size_t cell) {
  CellRecords& mine = records_[cell];
  if (mine.paired.empty()) return;
  const profile::PairedRuns runs = profile::paired_runs(plan_.cells[cell].facts, mine.paired);
  if (runs.error) pairing_->give_up(cell);
  const auto fresh = runs.pairs - mine.noted;
  if (fresh <= 0) return;
  double seconds = -mine.noted_seconds;
  for (const RunRecord& record : mine.paired) {
    if (record.pair.value_or(0) > 0) seconds += record.wall_seconds;
  }
  mine.noted_seconds += seconds;
  for (std::int64_t k = mine.noted; k < runs.pairs; ++k) {
    std::vector<stats::Pair> pairs;
    for (const std::size_t i : judged_[cell]) {
      const profile::PairedMetric& metric = runs.metrics[i];
      pairs.push_back(verdict::log_pair(metric.metric, metric.pairs[static_cast<std::size_t>(k)]));
    }
    pairing_->note(cell, pairs, seconds / static_cast<double>(fresh));
  }
  mine.noted = runs.pairs;
}

}  // namespace weir::run
