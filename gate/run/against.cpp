#include "gate/run/against.hpp"

#include "gate/base/find.hpp"
#include "gate/verdict/paired_rule.hpp"

namespace weir::run {

using profile::PairedMetric;
using profile::PairedRuns;
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

class Against final : public Sequel {
 public:
  Against(const Plan& plan, AgainstOptions options, const KnownCounts& known, sys::Coin& coin,
          std::function<void(const PairsPlan&)> show_plan)
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

  Result<Next> next(std::span<const RunRecord> fresh) override {
    for (const RunRecord& record : fresh) {
      const std::size_t* cell = look_up(cell_by_name_, record.cell);
      if (cell == nullptr || record.probed) continue;
      CellRecords& mine = records_[*cell];
      mine.fresh = true;
      if (record.pass == Pass::counted) {
        mine.counted.push_back(record);
      } else {
        mine.paired.push_back(record);
      }
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

 private:
  struct CellRecords {
    std::vector<RunRecord> counted, paired;
    bool fresh = false;  // some are not noted yet
    bool out = false;    // runs no pairs, or no more of them
  };
  // What runs its pairs together: one cell, or the depths of a list.
  struct Round {
    std::vector<std::size_t> cells;           // by rising depth
    std::optional<verdict::DepthGroup> line;  // over `cells`, as places in it
    std::int64_t noted = 0;                   // rounds that the scheduler knows of
    double noted_seconds = 0;                 // of all their processes
    // What each rule judges: a place in `cells`, or behind it the line; and of its metrics which.
    struct Judged {
      std::size_t of = 0, metric = 0;
    };
    std::vector<Judged> judged;
  };

  // --- counts

  void count_again(std::size_t cell, Side side, std::int64_t rounds,
                   std::vector<Step>& steps) const {
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (const Step& step : plan_.steps) {
        if (step.cell != cell || step.pass != Pass::counted) continue;
        steps.push_back(step);
        steps.back().side = side;
      }
    }
  }

  std::int64_t rounds(std::size_t cell, Side side) const {
    const auto planned = std::ranges::count_if(plan_.steps, [&](const Step& step) {
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

  std::vector<Step> base_counts() const {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (rounds(i, Side::base) > 0) continue;
      const auto known = known_.of(plan_.cells[i].cell.key);
      if (!known.empty()) {
        const auto candidate = profile::assemble(plan_.cells[i].facts, records_[i].counted);
        const baseline::Choice choice = baseline::choose(candidate, known);
        // Costs by another compiler say nothing.
        if (choice.match == baseline::Choice::Match::same &&
            choice.baseline->compiler == candidate.compiler) {
          continue;
        }
      }
      count_again(i, Side::base, 1, steps);
    }
    return steps;
  }

  bool counts_differ(std::size_t cell) const {
    const auto& records = records_[cell].counted;
    const profile::Profile candidate = profile::assemble(plan_.cells[cell].facts, records);
    const auto choice = base_counts_of(candidate, plan_.base_cells[cell].facts, records,
                                       known_.of(plan_.cells[cell].cell.key));
    if (!candidate.errors.empty() || choice.match == baseline::Choice::Match::none) return false;
    const verdict::CellVerdict judged =
        verdict::judge_cell(candidate, {choice}, options_.limits, options_.policy);
    return std::ranges::any_of(judged.judgements, [](const verdict::Judgement& one) {
      return one.metric.kind == unit::Kind::count && one.metric.name != verdict::k_placement &&
             differs(one.verdict);
    });
  }

  std::vector<Step> counts_to_confirm() const {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const std::int64_t base = rounds(i, Side::base), mine = rounds(i, Side::candidate);
      if (mine == 0 || std::min(base, mine) >= k_rounds_to_be_exact || !counts_differ(i)) continue;
      const bool failed = std::ranges::any_of(
          records_[i].counted, [](const RunRecord& record) { return record.error.has_value(); });
      if (failed) continue;
      count_again(i, Side::base, k_rounds_to_be_exact - base, steps);
      count_again(i, Side::candidate, k_rounds_to_be_exact - mine, steps);
    }
    return steps;
  }

  // --- pairs: rounds of them, and what they show

  // A cell whose counts could not be taken is an error already: its times would change nothing.
  bool timed_cell(std::size_t cell) const {
    const PreparedCell& prepared = plan_.cells[cell];
    if (prepared.unavailable || prepared.cell.twin || plan_.base_cells[cell].unavailable)
      return false;
    const auto& counted = records_[cell].counted;
    return std::ranges::none_of(counted, [](const RunRecord& record) {
      return record.error && record.side == Side::candidate;
    });
  }

  Step timed(std::size_t cell, std::int64_t pair, Side side) const {
    return {.cell = cell,
            .asked = config::timed_asked(plan_.cells[cell].cell, options_.gate),
            .side = side,
            .pair = pair};
  }

  std::vector<Step> warm_ups() const {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (!timed_cell(i)) continue;
      std::vector<Side> sides{Side::base, Side::candidate};
      if (!records_[i].paired.empty()) {
        // One that failed may have had bad luck; twice is the cell's error.
        const auto runs = profile::paired_runs(plan_.cells[i].facts, records_[i].paired);
        if (runs.error) continue;
        sides = runs.warm_up_failed;
      }
      for (const Side side : sides) steps.push_back(timed(i, 0, side));
    }
    return steps;
  }

  double seconds_of(std::size_t cell, bool warm_ups) const {
    std::vector<const RunRecord*> wanted;
    for (const RunRecord& record : records_[cell].paired) {
      if ((record.pair.value_or(0) == 0) == warm_ups) wanted.push_back(&record);
    }
    return profile::wall_seconds_of(wanted);
  }

  std::vector<Round> make_rounds() const {
    const auto keys =
        collect<profile::CellKey>(plan_.cells, [](const auto& one) { return one.cell.key; });
    std::vector<Round> rounds;
    std::vector<bool> placed(keys.size(), false);
    const std::vector<verdict::DepthGroup> groups = verdict::depth_groups(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (placed[i]) continue;
      const auto* group = first_of(groups, [&](const auto& one) { return holds(one.members, i); });
      Round round;
      round.cells = {i};
      if (group != nullptr) {
        round.cells = group->members;
        round.line = *group;
        for (std::size_t k = 0; k < round.cells.size(); ++k) {
          placed[round.cells[k]] = true;
          round.line->members[k] = k;
        }
      }
      rounds.push_back(std::move(round));
    }
    return rounds;
  }

  std::vector<PairedRuns> runs_of(const Round& round) const {
    std::vector<PairedRuns> runs;
    for (const std::size_t i : round.cells) {
      runs.push_back(profile::paired_runs(plan_.cells[i].facts, records_[i].paired));
    }
    if (round.line) runs.push_back(verdict::fit_pairs(*round.line, runs));
    return runs;
  }

  PairingCell rules_of(Round& round) const {
    PairingCell made;
    made.name = (round.line ? round.line->fit : plan_.cells[round.cells.front()].cell.key).str();
    for (const std::size_t i : round.cells) {
      made.pair_seconds += seconds_of(i, true);
    }
    const std::vector<PairedRuns> runs = runs_of(round);
    for (std::size_t of = 0; of < runs.size(); ++of) {
      const profile::CellKey& cell =
          of < round.cells.size() ? plan_.cells[round.cells[of]].cell.key : round.line->fit;
      for (std::size_t k = 0; k < runs[of].metrics.size(); ++k) {
        const PairedMetric& metric = runs[of].metrics[k];
        const auto limit = verdict::resolve_limit(cell, metric.metric, options_.limits);
        const auto rule = verdict::paired_rule(limit, metric, options_.policy);
        // What is only reported is measured as well: it is how one finds out what a limit would do.
        if (!rule) continue;
        made.rules.push_back(*rule);
        round.judged.push_back({of, k});
      }
    }
    return made;
  }

  Result<void> begin_pairs() {
    rounds_ = make_rounds();
    std::vector<PairedRuns> all;
    std::vector<profile::CellFacts> facts;
    for (const Round& round : rounds_) {
      std::vector<PairedRuns> runs = runs_of(round);
      for (std::size_t k = 0; k < round.cells.size(); ++k) {
        const std::size_t i = round.cells[k];
        facts.push_back(plan_.cells[i].facts);
        records_[i].out = !timed_cell(i) || runs[k].error;
      }
      if (round.line) facts.emplace_back().cell = round.line->fit;
      std::move(runs.begin(), runs.end(), std::back_inserter(all));
    }
    options_.policy.timed_metrics = verdict::timed_metrics(facts, all, options_.limits);
    std::vector<PairingCell> cells;
    for (Round& round : rounds_) cells.push_back(rules_of(round));
    pairing_ = std::make_unique<Pairing>(cells, options_.gate.budget_seconds, options_.rotation,
                                         options_.least_pairs);
    return plan_pairs(cells);
  }

  Result<void> plan_pairs(const std::vector<PairingCell>& cells) {
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
                             std::max(options_.least_pairs, Pairing::fewest(cells[i].rules)),
                             shares[i].now});
      const double* known = look_up(options_.calibrated_pairs, cells[i].name);
      if (known != nullptr) shown.cells.back().calibrated = *known;
    }
    const bool nothing_else =
        !options_.counts || std::ranges::count(plan_.steps, Pass::counted, &Step::pass) == 0;
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

  std::vector<Step> next_round(const Round& round) {
    std::vector<Step> steps;
    // One coin for all depths: what makes the second process of a pair slower then bends no line.
    const bool swapped = coin_.flip();
    for (const std::size_t i : round.cells) {
      if (records_[i].out) continue;
      steps.push_back(timed(i, round.noted + 1, swapped ? Side::candidate : Side::base));
      steps.push_back(timed(i, round.noted + 1, swapped ? Side::base : Side::candidate));
    }
    return steps;
  }

  // Cells whose programs fail run no more pairs, and there is no line without them.
  void leave_out(std::size_t place, const std::vector<PairedRuns>& runs) {
    const Round& round = rounds_[place];
    bool any_left = false, any_out = false;
    for (std::size_t k = 0; k < round.cells.size(); ++k) {
      bool& out = records_[round.cells[k]].out;
      out = out || runs[k].error;
      any_left = any_left || !out;
      any_out = any_out || out;
    }
    if (!any_left) pairing_->give_up(place);
    std::vector<std::size_t> rules;
    for (std::size_t r = 0; any_out && r < round.judged.size(); ++r) {
      const std::size_t of = round.judged[r].of;
      if (of == round.cells.size() || records_[round.cells[of]].out) rules.push_back(r);
    }
    pairing_->give_up(place, rules);
  }

  void note_pairs(std::size_t place) {
    Round& round = rounds_[place];
    const std::vector<PairedRuns> runs = runs_of(round);
    leave_out(place, runs);
    const bool all_out =
        std::ranges::all_of(round.cells, [&](std::size_t i) { return records_[i].out; });
    std::optional<std::int64_t> whole;
    double seconds = -round.noted_seconds;
    for (std::size_t k = 0; k < round.cells.size(); ++k) {
      const CellRecords& mine = records_[round.cells[k]];
      if (!mine.out || all_out) whole = std::min(whole.value_or(runs[k].pairs), runs[k].pairs);
      seconds += seconds_of(round.cells[k], false);
    }
    const std::int64_t fresh = whole.value_or(0) - round.noted;
    if (fresh <= 0) return;
    round.noted_seconds += seconds;
    for (std::int64_t k = round.noted; k < *whole; ++k) {
      std::vector<stats::Pair> pairs;
      for (const Round::Judged& judged : round.judged) {
        const PairedMetric& metric = runs[judged.of].metrics[judged.metric];
        const auto at = static_cast<std::size_t>(k);
        // Of what was left out there may be fewer.
        pairs.push_back(at < metric.pairs.size() ? verdict::rule_pair(metric, metric.pairs[at])
                                                 : stats::Pair{});
      }
      pairing_->note(place, pairs, seconds / static_cast<double>(fresh));
    }
    round.noted = *whole;
  }

  const Plan& plan_;
  AgainstOptions options_;
  const KnownCounts& known_;
  sys::Coin& coin_;
  std::function<void(const PairsPlan&)> show_plan_;
  std::vector<CellRecords> records_;
  std::map<std::string, std::size_t> cell_by_name_;
  std::vector<Round> rounds_;
  std::unique_ptr<Pairing> pairing_;  // a cell there is a round here
};

}  // namespace

bool base_was_counted(const profile::CellKey& cell, std::span<const RunRecord> records) {
  const std::string name = cell.str();
  return std::ranges::any_of(records, [&](const RunRecord& record) {
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

std::unique_ptr<Sequel> make_against(const Plan& plan, AgainstOptions options,
                                     const KnownCounts& known, sys::Coin& coin,
                                     std::function<void(const PairsPlan&)> show_plan) {
  return std::make_unique<Against>(plan, std::move(options), known, coin, std::move(show_plan));
}

}  // namespace weir::run
