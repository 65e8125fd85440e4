#include "gate/run/against.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace weir::run {

using profile::Pass;
using profile::RunRecord;
using profile::Side;
using verdict::Outcome;

namespace {

constexpr std::int64_t k_rounds_to_be_exact = 3;

// A difference that a second look may explain: anything but "as it was".
bool differs(Outcome outcome) {
  return outcome == Outcome::fail || outcome == Outcome::improved ||
         outcome == Outcome::inconclusive || outcome == Outcome::error;
}

}  // namespace

bool base_was_counted(const profile::CellKey& cell, std::span<const RunRecord> records) {
  const std::string name = cell.str();
  return std::any_of(records.begin(), records.end(), [&](const RunRecord& record) {
    return record.cell == name && record.side == Side::base && record.pass == Pass::counted;
  });
}

baseline::Choice base_counts_of(const profile::Profile& candidate,
                                const profile::CellFacts& base_facts,
                                std::span<const RunRecord> records,
                                std::span<const baseline::Baseline> known) {
  if (base_was_counted(base_facts.cell, records)) {
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
  // Once pairs have begun all counts are in: between timed processes nothing is read or judged
  // anew.
  if (!pairing_) {
    if (options_.counts) {
      if (auto steps = base_counts(); !steps.empty()) return Next{std::move(steps)};
      if (auto steps = counts_to_confirm(); !steps.empty()) return Next{std::move(steps)};
    }
    if (!options_.times) return Next{};
    if (auto steps = warm_ups(); !steps.empty()) return Next{std::move(steps)};
    WEIR_CHECK(begin_pairs());
  }
  for (std::size_t place = 0; place < rounds_.size(); ++place) {
    bool any = false;
    for (const std::size_t i : rounds_[place].cells) {
      any = std::exchange(records_[i].fresh, false) || any;
    }
    if (any) note_pairs(place);
  }
  const auto place = pairing_->next();
  if (!place) return Next{};
  Next next;
  next.steps = next_round(rounds_[*place]);
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
  // A process that did not start and was tried again is one.
  std::set<std::int64_t> orders;
  for (const RunRecord& record : counted) {
    if (record.side == side) orders.insert(record.order);
  }
  const auto ran = static_cast<std::ptrdiff_t>(orders.size());
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

}  // namespace weir::run
