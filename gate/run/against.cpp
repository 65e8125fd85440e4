// Compares with a base build: counts both programs, then runs timed pairs until every limit is
// decided or the budget is spent.
#include "gate/run/against.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/verdict/paired_rule.hpp"

namespace weir::run {

using profile::PairedMetric;
using profile::PairedRuns;
using profile::Pass;
using profile::RunRecord;
using profile::Side;
using verdict::Outcome;

namespace {

// Processes of each side that make a count exact if they agree. A count that shows either of two
// values half the time agrees so, on two different ones, in 1 of 128 comparisons.
constexpr std::int64_t k_processes_to_be_exact = 4;
// Processes of each side that can decide a count that varies, see stats/rank_test.hpp.
constexpr std::int64_t k_processes_that_vary = 5;
// Pairs of a cell that cost the budget no more than two of the base's processes. A candidate that
// is far slower fails within them.
constexpr std::int64_t k_max_pairs_at_base_cost = 24;

// The beginning of an error about the budget.
constexpr std::string_view k_budget_setting = "gate.budget: ";

// Returns true if the outcome may change when both sides are counted again.
bool is_difference(Outcome outcome) {
  return outcome == Outcome::fail || outcome == Outcome::improved ||
         outcome == Outcome::inconclusive || outcome == Outcome::error;
}

class Against final : public Sequel {
 public:
  Against(const Plan& plan, AgainstOptions options, const KnownCounts& known_counts,
          sys::Coin& coin, std::function<void(const PairsPlan&)> show_plan)
      : plan_(plan),
        options_(std::move(options)),
        limits_(options_.limits),
        known_counts_(known_counts),
        coin_(coin),
        show_plan_(std::move(show_plan)),
        records_(plan.cells.size()) {
    for (std::size_t i = 0; i < plan.cells.size(); ++i) {
      cell_by_name_[plan.cells[i].cell.key.str()] = i;
    }
  }

  // Returns the next steps: the base's counts, repeated counts that differ, warm-ups, then pairs.
  Result<Next> next(std::span<const RunRecord> fresh) override {
    for (const RunRecord& record : fresh) {
      const std::size_t* cell = look_up(cell_by_name_, record.cell);
      if (cell == nullptr || record.with_probes) continue;
      CellRecords& mine = records_[*cell];
      mine.fresh = true;
      if (record.pass == Pass::counted) {
        mine.counted.push_back(record);
      } else {
        mine.paired.push_back(record);
      }
    }
    // Once pairs have begun, all counts are in. Nothing is judged between timed processes.
    if (!pairing_) {
      if (options_.counts) {
        if (auto steps = steps_for_base_counts(); !steps.empty()) return Next{std::move(steps)};
        if (auto steps = steps_to_confirm_counts(); !steps.empty()) return Next{std::move(steps)};
      }
      if (!options_.times) return Next{};
      if (auto steps = steps_for_warm_ups(); !steps.empty()) return Next{std::move(steps)};
      WEIR_CHECK(begin_pairs());
    }
    for (std::size_t place = 0; place < rounds_.size(); ++place) {
      bool has_fresh = false;
      for (const std::size_t i : rounds_[place].cells) {
        has_fresh = has_fresh || records_[i].fresh;
        records_[i].fresh = false;
      }
      if (has_fresh) note_pairs(place);
    }
    const auto place = pairing_->next();
    if (!place) return Next{steps_for_bounds()};
    Next next;
    next.steps = next_round(rounds_[*place]);
    next.seconds_left = std::max(0.0, pairing_->seconds_left());
    return next;
  }

 private:
  struct CellRecords {
    std::vector<RunRecord> counted, paired;
    bool fresh = false;      // has records that note_pairs() has not seen
    bool out = false;        // runs no pairs, or no more of them
    bool has_bound = false;  // an absolute limit judges one of its times
  };
  // The cells that run their pairs together: one cell, or all depths of a list.
  struct Round {
    std::vector<std::size_t> cells;           // by rising depth
    std::optional<verdict::DepthGroup> line;  // over `cells`; its members index `cells`
    std::int64_t noted_pairs = 0;             // pairs that the scheduler knows of
    double noted_seconds = 0;                 // seconds of theirs that the budget pays for
    // The metric that a rule judges. `member` is an index into `cells`; one past its end means the
    // line. `metric` is an index into that member's metrics.
    struct RuleTarget {
      std::size_t member = 0, metric = 0;
    };
    std::vector<RuleTarget> targets;
  };

  // --- counts

  // Adds the cell's counted steps for `side`, repeated for the given number of rounds.
  void add_counted_steps(std::size_t cell, Side side, std::int64_t rounds,
                         std::vector<Step>& steps) const {
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (const Step& step : plan_.steps) {
        if (step.cell != cell || step.pass != Pass::counted) continue;
        steps.push_back(step);
        steps.back().side = side;
      }
    }
  }

  // Returns how many times a side of the cell has been counted.
  std::int64_t rounds_run(std::size_t cell, Side side) const {
    const auto per_round = std::ranges::count_if(plan_.steps, [&](const Step& step) {
      return step.cell == cell && step.pass == Pass::counted;
    });
    const auto& counted = records_[cell].counted;
    // A process that was retried because it did not start counts once.
    std::set<std::int64_t> orders;
    for (const RunRecord& record : counted) {
      if (record.side == side) orders.insert(record.order);
    }
    const auto processes = static_cast<std::ptrdiff_t>(orders.size());
    return per_round == 0 ? 0 : (processes + per_round - 1) / per_round;
  }

  // Returns the steps that count the base, for cells without usable stored counts of it.
  std::vector<Step> steps_for_base_counts() const {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (rounds_run(i, Side::base) > 0) continue;
      const auto stored_counts = known_counts_.find_counts(plan_.cells[i].cell.key);
      if (!stored_counts.empty()) {
        const auto candidate = profile::assemble(plan_.cells[i].facts, records_[i].counted);
        const baseline::BaselineChoice choice = baseline::choose_baseline(candidate, stored_counts);
        // Costs of kernels that another compiler built are not comparable.
        if (choice.match == baseline::BaselineChoice::Match::same &&
            choice.baseline->compiler == candidate.compiler) {
          continue;
        }
      }
      add_counted_steps(i, Side::base, 1, steps);
    }
    return steps;
  }

  // Returns true if a count of the candidate has one of these verdicts, beside the base's.
  template <class Test>
  bool has_count(std::size_t cell, const Test& test) const {
    const auto& records = records_[cell].counted;
    const profile::Profile candidate = profile::assemble(plan_.cells[cell].facts, records);
    const auto choice = choose_base_counts(candidate, plan_.base_cells[cell].facts, records,
                                           known_counts_.find_counts(plan_.cells[cell].cell.key));
    if (!candidate.errors.empty() || choice.match == baseline::BaselineChoice::Match::none)
      return false;
    const verdict::CellVerdict cell_verdict =
        verdict::judge_cell(candidate, {choice}, limits_, options_.policy);
    return std::ranges::any_of(cell_verdict.judgements, [&](const verdict::Judgement& judgement) {
      return judgement.metric.kind == unit::Kind::count &&
             judgement.metric.name != verdict::k_placement && test(judgement.verdict);
    });
  }
  // Returns true if the candidate's counts differ from the base's in a way that a limit judges.
  bool counts_differ(std::size_t cell) const { return has_count(cell, is_difference); }
  bool counts_fail(std::size_t cell) const {
    return has_count(cell,
                     [](verdict::Outcome outcome) { return outcome == verdict::Outcome::fail; });
  }

  // Returns how many processes count each length of the cell in one round.
  std::int64_t processes_per_round(std::size_t cell) const {
    const Step* first = nullptr;
    std::int64_t processes = 0;
    for (const Step& step : plan_.steps) {
      if (step.cell != cell || step.pass != Pass::counted) continue;
      if (first == nullptr) first = &step;
      if (step.parameters == first->parameters && step.counts == first->counts &&
          step.twin_fill == first->twin_fill)
        ++processes;
    }
    return std::max<std::int64_t>(1, processes);
  }

  // Returns how often both sides are to be counted in all: more often where a count varies that is
  // not decided.
  std::int64_t rounds_to_decide(std::size_t cell, std::int64_t rounds) const {
    const std::int64_t per_round = processes_per_round(cell);
    const auto rounds_of = [&](std::int64_t processes) {
      return (processes + per_round - 1) / per_round;
    };
    const bool varies =
        rounds >= rounds_of(k_processes_to_be_exact) &&
        has_count(cell, [](Outcome outcome) { return outcome == Outcome::inconclusive; });
    return rounds_of(varies ? k_processes_that_vary : k_processes_to_be_exact);
  }

  // Returns the steps that count both sides again where they differ.
  std::vector<Step> steps_to_confirm_counts() const {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const std::int64_t base_rounds = rounds_run(i, Side::base),
                         candidate_rounds = rounds_run(i, Side::candidate);
      if (candidate_rounds == 0 || !counts_differ(i)) continue;
      const std::int64_t rounds = rounds_to_decide(i, std::min(base_rounds, candidate_rounds));
      if (std::min(base_rounds, candidate_rounds) >= rounds) continue;
      const bool failed = std::ranges::any_of(
          records_[i].counted, [](const RunRecord& record) { return record.error.has_value(); });
      if (failed) continue;
      add_counted_steps(i, Side::base, rounds - base_rounds, steps);
      add_counted_steps(i, Side::candidate, rounds - candidate_rounds, steps);
    }
    return steps;
  }

  // --- pairs: rounds of them, and what they show

  // Returns true if pairs of the cell can be timed. A cell whose candidate could not be counted is
  // an error already, so its times would change nothing.
  bool is_timed(std::size_t cell) const {
    const PreparedCell& prepared = plan_.cells[cell];
    if (prepared.unavailable || prepared.cell.twin || plan_.base_cells[cell].unavailable)
      return false;
    const auto& counted = records_[cell].counted;
    return std::ranges::none_of(counted, [](const RunRecord& record) {
      return record.error && record.side == Side::candidate;
    });
  }

  Step timed_step(std::size_t cell, std::int64_t pair, Side side) const {
    return {.cell = cell,
            .parameters = config::timed_request(plan_.cells[cell].cell, options_.gate),
            .side = side,
            .pair = pair};
  }

  // Returns a warm-up for each side of every timed cell; one that failed is run once more.
  std::vector<Step> steps_for_warm_ups() const {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (!is_timed(i)) continue;
      std::vector<Side> sides{Side::base, Side::candidate};
      if (!records_[i].paired.empty()) {
        // A failed warm-up is retried once; a second failure is the cell's error.
        const auto runs = profile::paired_runs(plan_.cells[i].facts, records_[i].paired);
        if (runs.error) continue;
        sides = runs.warm_up_failed;
      }
      for (const Side side : sides) steps.push_back(timed_step(i, 0, side));
    }
    return steps;
  }

  // Returns the seconds that the cell's processes took: those of warm-ups, or those of pairs.
  // `for_budget`: as far as the budget pays for them. Otherwise a slower candidate would get fewer
  // pairs, and would not be decided for being slow.
  double wall_seconds(std::size_t cell, bool warm_ups, bool for_budget) const {
    std::vector<const RunRecord*> early, early_of_base, late;
    for (const RunRecord& record : records_[cell].paired) {
      const std::int64_t pair = record.pair.value_or(0);
      if ((pair == 0) != warm_ups) continue;
      if (pair > k_max_pairs_at_base_cost) {
        late.push_back(&record);
        continue;
      }
      early.push_back(&record);
      if (record.side == Side::base) early_of_base.push_back(&record);
    }
    const double seconds = profile::total_wall_seconds(early);
    const double at_base_cost = 2 * profile::total_wall_seconds(early_of_base);
    return (for_budget ? std::min(seconds, at_base_cost) : seconds) +
           profile::total_wall_seconds(late);
  }

  // Groups the cells into rounds: the depths of one list together, every other cell alone.
  std::vector<Round> make_rounds() const {
    const auto keys = collect<profile::CellKey>(
        plan_.cells, [](const auto& prepared) { return prepared.cell.key; });
    std::vector<Round> rounds;
    std::vector<bool> placed(keys.size(), false);
    const std::vector<verdict::DepthGroup> groups = verdict::depth_groups(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (placed[i]) continue;
      const auto* group =
          find_first(groups, [&](const auto& depths) { return holds(depths.members, i); });
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

  // Returns the paired runs of each cell of the round, and those of the line last.
  std::vector<PairedRuns> paired_runs(const Round& round) const {
    std::vector<PairedRuns> runs;
    for (const std::size_t i : round.cells) {
      runs.push_back(profile::paired_runs(plan_.cells[i].facts, records_[i].paired));
    }
    if (round.line) runs.push_back(verdict::fit_pairs(*round.line, runs));
    return runs;
  }

  // Returns what the scheduler needs of a round: the seconds of a pair, and a rule for each metric
  // with a limit. Fills `round.targets` to match.
  PairingCell make_pairing_cell(Round& round) const {
    PairingCell pairing_cell;
    pairing_cell.name =
        (round.line ? round.line->fit : plan_.cells[round.cells.front()].cell.key).str();
    pairing_cell.is_added = std::ranges::all_of(round.cells, [&](std::size_t i) {
      return options_.added_cells.contains(plan_.cells[i].cell.key.str());
    });
    for (const std::size_t i : round.cells) {
      pairing_cell.pair_seconds += wall_seconds(i, /*warm_ups=*/true, /*for_budget=*/true);
    }
    const std::vector<PairedRuns> runs = paired_runs(round);
    for (std::size_t member = 0; member < runs.size(); ++member) {
      const profile::CellKey& cell =
          member < round.cells.size() ? plan_.cells[round.cells[member]].cell.key : round.line->fit;
      for (std::size_t k = 0; k < runs[member].metrics.size(); ++k) {
        const PairedMetric& metric = runs[member].metrics[k];
        const auto limit = verdict::resolve_limit(cell, metric.metric, limits_);
        const auto rule = verdict::paired_rule(limit, metric, options_.policy);
        // Metrics that are only reported are measured too, but need no decision.
        if (!rule) continue;
        pairing_cell.rules.push_back(*rule);
        round.targets.push_back({member, k});
      }
    }
    return pairing_cell;
  }

  // Returns true if an absolute limit judges a time that the candidate's warm-up gave.
  bool has_bound(std::size_t cell) const {
    std::vector<RunRecord> warm_ups;
    for (const RunRecord& record : records_[cell].paired) {
      if (record.side != Side::candidate) continue;
      // Warm-ups of pairs are not measured, other runs are.
      warm_ups.push_back(record);
      warm_ups.back().pair.reset();
    }
    const profile::Profile measured = profile::assemble(plan_.cells[cell].facts, warm_ups);
    return std::ranges::any_of(measured.metrics, [&](const auto& entry) {
      const unit::Metric& metric = entry.second.metric;
      const auto limit = verdict::resolve_limit(measured.cell, metric, limits_);
      return metric.kind != unit::Kind::count && limit.mode != verdict::Mode::off &&
             (limit.max || limit.min);
    });
  }

  // Returns a run of the candidate for each cell that an absolute limit judges and that got no
  // pair. Such a limit needs no base.
  std::vector<Step> steps_for_bounds() const {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const bool is_measured = std::ranges::any_of(records_[i].paired, [](const RunRecord& record) {
        return record.side == Side::candidate && record.pair != 0;
      });
      if (!records_[i].has_bound || records_[i].out || is_measured) continue;
      steps.push_back(timed_step(i, 0, Side::candidate));
      steps.back().pair.reset();
    }
    return steps;
  }

  // Forms rounds and rules once the warm-ups are done, and plans the budget.
  Result<void> begin_pairs() {
    rounds_ = make_rounds();
    std::vector<PairedRuns> all_runs;
    std::vector<profile::CellFacts> facts;
    for (const Round& round : rounds_) {
      std::vector<PairedRuns> runs = paired_runs(round);
      for (std::size_t k = 0; k < round.cells.size(); ++k) {
        const std::size_t i = round.cells[k];
        facts.push_back(plan_.cells[i].facts);
        records_[i].out = !is_timed(i) || runs[k].error;
        records_[i].has_bound = !records_[i].out && has_bound(i);
      }
      if (round.line) facts.emplace_back().cell = round.line->fit;
      std::move(runs.begin(), runs.end(), std::back_inserter(all_runs));
    }
    options_.policy.timed_metrics = verdict::timed_metrics(facts, all_runs, limits_);
    std::vector<PairingCell> cells;
    for (Round& round : rounds_) cells.push_back(make_pairing_cell(round));
    pairing_ = std::make_unique<Pairing>(cells, options_.gate.budget_seconds,
                                         options_.order_rotation, options_.min_pairs);
    return plan_pairs(cells);
  }

  // Shows what the budget can decide. Fails if it can decide nothing and no counts are taken.
  Result<void> plan_pairs(const std::vector<PairingCell>& cells) {
    const std::vector<Pairing::Share> shares = pairing_->plan();
    PairsPlan pairs_plan;
    pairs_plan.budget_seconds = options_.gate.budget_seconds;
    pairs_plan.seconds_for_all = pairing_->seconds_for_all();
    bool has_rules = false;
    bool has_share = std::ranges::any_of(records_, &CellRecords::has_bound);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].rules.empty()) continue;
      has_rules = true;
      has_share = has_share || shares[i].now;
      double pair_seconds = 0;
      for (const std::size_t cell : rounds_[i].cells)
        pair_seconds += wall_seconds(cell, /*warm_ups=*/true, /*for_budget=*/false);
      pairs_plan.cells.push_back({cells[i].name, pair_seconds, cells[i].rules.size(),
                                  std::max(options_.min_pairs, Pairing::fewest(cells[i].rules)),
                                  shares[i].now});
      const double* calibrated = look_up(options_.calibrated_pairs, cells[i].name);
      if (calibrated != nullptr) pairs_plan.cells.back().calibrated = *calibrated;
    }
    const bool times_only =
        !options_.counts || std::ranges::count(plan_.steps, Pass::counted, &Step::pass) == 0;
    if (has_rules && !has_share && times_only) {
      return fail(Code::config, "{}{} can decide none of {}: one needs {} at least, all of them {}",
                  k_budget_setting, unit::show_duration(options_.gate.budget_seconds),
                  text::plural(pairs_plan.cells.size(), "cell"),
                  unit::show_duration(pairing_->seconds_for_one()),
                  unit::show_duration(pairing_->seconds_for_all()));
    }
    if (!has_rules || !show_plan_) return {};
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (counts_fail(i)) pairs_plan.failed_cells.push_back(plan_.cells[i].cell.key.str());
    }
    show_plan_(pairs_plan);
    return {};
  }

  // Returns the steps of one pair of each cell of the round.
  std::vector<Step> next_round(const Round& round) {
    std::vector<Step> steps;
    // One coin for all depths, so that an effect of the order cannot bend the line over them.
    const bool swapped = coin_.flip();
    for (const std::size_t i : round.cells) {
      if (records_[i].out) continue;
      steps.push_back(timed_step(i, round.noted_pairs + 1, swapped ? Side::candidate : Side::base));
      steps.push_back(timed_step(i, round.noted_pairs + 1, swapped ? Side::base : Side::candidate));
    }
    return steps;
  }

  // Drops cells whose programs fail, and the line if any of its depths is dropped.
  void drop_failed_cells(std::size_t place, const std::vector<PairedRuns>& runs) {
    const Round& round = rounds_[place];
    bool has_active = false, has_dropped = false;
    for (std::size_t k = 0; k < round.cells.size(); ++k) {
      bool& out = records_[round.cells[k]].out;
      out = out || runs[k].error;
      has_active = has_active || !out;
      has_dropped = has_dropped || out;
    }
    if (!has_active) pairing_->give_up(place);
    std::vector<std::size_t> rules;
    for (std::size_t r = 0; has_dropped && r < round.targets.size(); ++r) {
      const std::size_t member = round.targets[r].member;
      if (member == round.cells.size() || records_[round.cells[member]].out) rules.push_back(r);
    }
    pairing_->give_up(place, rules);
  }

  // Passes the pairs of a round that are new and complete in all its cells on to the scheduler.
  void note_pairs(std::size_t place) {
    Round& round = rounds_[place];
    const std::vector<PairedRuns> runs = paired_runs(round);
    drop_failed_cells(place, runs);
    const bool all_out =
        std::ranges::all_of(round.cells, [&](std::size_t i) { return records_[i].out; });
    std::optional<std::int64_t> complete_pairs;
    double seconds = -round.noted_seconds;
    for (std::size_t k = 0; k < round.cells.size(); ++k) {
      const CellRecords& mine = records_[round.cells[k]];
      if (!mine.out || all_out)
        complete_pairs = std::min(complete_pairs.value_or(runs[k].pairs), runs[k].pairs);
      seconds += wall_seconds(round.cells[k], /*warm_ups=*/false, /*for_budget=*/true);
    }
    const std::int64_t new_pairs = complete_pairs.value_or(0) - round.noted_pairs;
    if (new_pairs <= 0) return;
    round.noted_seconds += seconds;
    for (std::int64_t k = round.noted_pairs; k < *complete_pairs; ++k) {
      std::vector<stats::Pair> pairs;
      for (const Round::RuleTarget& target : round.targets) {
        const PairedMetric& metric = runs[target.member].metrics[target.metric];
        const auto index = static_cast<std::size_t>(k);
        // Dropped cells may have fewer pairs.
        pairs.push_back(index < metric.pairs.size()
                            ? verdict::rule_pair(metric, metric.pairs[index])
                            : stats::Pair{});
      }
      pairing_->note(place, pairs, seconds / static_cast<double>(new_pairs));
    }
    round.noted_pairs = *complete_pairs;
  }

  const Plan& plan_;
  AgainstOptions options_;
  const verdict::LimitTable limits_;  // over those of options_
  const KnownCounts& known_counts_;
  sys::Coin& coin_;
  std::function<void(const PairsPlan&)> show_plan_;
  std::vector<CellRecords> records_;
  std::map<std::string, std::size_t> cell_by_name_;
  std::vector<Round> rounds_;
  std::unique_ptr<Pairing> pairing_;  // its cells are our rounds
};

}  // namespace

bool is_about_budget(const Error& error) {
  return error.code == Code::config && error.message.starts_with(k_budget_setting);
}

Error name_budget_option(Error error) {
  if (is_about_budget(error)) error.message.replace(0, k_budget_setting.size(), "--budget ");
  return error;
}

bool base_was_counted(const profile::CellKey& cell, std::span<const RunRecord> records) {
  const std::string name = cell.str();
  return std::ranges::any_of(records, [&](const RunRecord& record) {
    return record.cell == name && record.side == Side::base && record.pass == Pass::counted;
  });
}

// Chooses the counts of a base that ran in this run, on the same machine. Base and candidate must
// use one device; another version of that device excuses no difference.
static baseline::BaselineChoice choose_same_run_counts(const profile::Profile& candidate,
                                                       const profile::Profile& base) {
  using Match = baseline::BaselineChoice::Match;
  baseline::BaselineChoice choice = baseline::choose_run(candidate, base);
  const std::string &base_class = base.provenance.device_class,
                    &candidate_class = candidate.provenance.device_class;
  if (base_class.empty() || candidate_class.empty()) return choice;
  const std::string classes =
      fmt::format("{} and {}", text::printable(base_class), text::printable(candidate_class));
  if (choice.match == Match::nearest) {
    choice.match = Match::same;
    choice.reason = "base and candidate ran on different versions of one device: " + classes;
  } else if (choice.match == Match::other_class) {
    choice.reason = "base and candidate ran on different devices: " + classes;
    choice.base_failed = true;
    choice.devices_differ = true;
  }
  return choice;
}

// Chooses the counts that the candidate is compared with: those of the base if it was counted in
// this run. Else stored ones of the same device class, or none, with the reason.
baseline::BaselineChoice choose_base_counts(const profile::Profile& candidate,
                                            const profile::CellFacts& base_facts,
                                            std::span<const RunRecord> records,
                                            std::span<const baseline::Baseline> stored) {
  if (base_was_counted(base_facts.cell, records)) {
    return choose_same_run_counts(candidate, profile::assemble(base_facts, records, Side::base));
  }
  baseline::BaselineChoice choice = baseline::choose_baseline(candidate, stored);
  if (choice.match != baseline::BaselineChoice::Match::same) {
    choice.match = baseline::BaselineChoice::Match::none;
    choice.baseline.reset();
    choice.reason = "the base program was not counted";
  }
  return choice;
}

std::unique_ptr<Sequel> make_against(const Plan& plan, AgainstOptions options,
                                     const KnownCounts& known_counts, sys::Coin& coin,
                                     std::function<void(const PairsPlan&)> show_plan) {
  return std::make_unique<Against>(plan, std::move(options), known_counts, coin,
                                   std::move(show_plan));
}

}  // namespace weir::run
