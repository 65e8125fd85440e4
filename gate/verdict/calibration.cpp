#include "gate/verdict/calibration.hpp"

#include <cmath>
#include <limits>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/stats/replay.hpp"
#include "gate/verdict/over_depth.hpp"
#include "gate/verdict/paired_rule.hpp"

namespace weir::verdict {
namespace {

using stats::ReplayAs;

constexpr double k_share = 0.95;  // of gates that have to end within the budget
constexpr double k_fewest_tried = 200, k_most_tried = 1000;  // pairs of a replay
// Where half of the first replays bring no verdict, the limit is not held, and more of them would
// only take time: 1 in 10^8 where 95 of 100 do.
constexpr std::size_t k_pilot = 20;

// One cell with what its replays need.
struct Series {
  CalibratedCell cell;
  stats::CellPairs pairs;
  std::vector<stats::PairedRule> rules;
};

CalibratedMetric calibrated(const profile::PairedMetric& paired, const Limit& limit,
                            const stats::PairedRule& rule, std::span<const stats::Pair> pairs) {
  const unit::Metric& metric = paired.metric;
  CalibratedMetric made;
  made.metric = metric;
  made.limit = limit.words();
  made.amount = show(change_in(limit, metric)->amount);
  made.tolerated = show(change_in(limit, metric)->tolerate);
  made.tolerate = rule.tolerate;
  made.worst = rule.limit;
  made.noise = stats::pair_noise(pairs);
  made.base = run_spread(paired, pairs, &stats::Pair::base);
  made.candidate = run_spread(paired, pairs, &stats::Pair::candidate);
  stats::PairedTest test(rule);
  for (const stats::Pair& pair : pairs) test.add(pair);
  made.decision = test.decision();
  made.decided_after = static_cast<std::int64_t>(test.decided_after());
  made.log_slower = test.log_slower();
  made.log_beyond = test.log_beyond();
  made.log_within = test.log_within();
  return made;
}

std::optional<Series> series_of(const profile::CellFacts& facts, const profile::PairedRuns& runs,
                                std::span<const LimitEntry> limits, const Policy& policy,
                                const std::string& date) {
  Series series;
  CalibratedCell& cell = series.cell;
  cell.cell = facts.cell;
  cell.fingerprint = facts.provenance.fingerprint;
  cell.machine_class = facts.provenance.machine_class;
  cell.machine_name = facts.provenance.machine_name;
  cell.date = date;
  cell.pairs = runs.pairs;
  const std::int64_t ran = runs.pairs + (runs.warm ? 1 : 0);  // the warm-up is a pair as well
  cell.pair_seconds = runs.seconds / static_cast<double>(std::max<std::int64_t>(1, ran));
  for (const profile::PairedMetric& metric : runs.metrics) {
    const Limit limit = resolve_limit(facts.cell, metric.metric, limits);
    if (limit.mode != Mode::gate || !change_in(limit, metric.metric)) continue;
    const auto rule = paired_rule(limit, metric, policy);
    if (!rule) {
      cell.error = fmt::format("{}: the limit cannot be held to its warm-up: {}",
                               unit::label(metric.metric), limit.words());
      continue;
    }
    std::vector<stats::Pair> pairs = rule_pairs(metric);
    cell.metrics.push_back(calibrated(metric, limit, *rule, pairs));
    series.pairs.push_back(std::move(pairs));
    series.rules.push_back(*rule);
  }
  if (runs.error) {
    cell.error = runs.error;
  } else if (!runs.warm) {
    cell.error = "it was not run";
  } else if (runs.metrics.empty()) {
    cell.error = runs.warnings.empty() ? "its warm-ups reported no time" : runs.warnings.front();
  } else if (cell.metrics.empty() && !cell.error) {
    return std::nullopt;  // no timed limit that gates
  } else if (cell.pairs < k_fewest_replayed && !cell.error) {
    cell.error =
        fmt::format("{} of {} pairs that it takes ran within the budget of the calibration",
                    cell.pairs, k_fewest_replayed);
  }
  return series;
}

double p95(std::vector<double> values) { return stats::quantile(values, k_share).value_or(0); }

double mean(std::span<const double> values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

// Every replay of all cells as one gate.
struct Gates {
  std::vector<double> seconds;  // of each
  std::vector<bool> failed, decided;
  explicit Gates(std::size_t number)
      : seconds(number, 0), failed(number, false), decided(number, true) {}

  [[nodiscard]] GateSeconds needed() const { return {mean(seconds), p95(seconds)}; }
  [[nodiscard]] bool within(double budget) const {
    std::size_t number = 0;
    for (std::size_t k = 0; k < seconds.size(); ++k) {
      number += decided[k] && seconds[k] <= budget ? 1 : 0;
    }
    return static_cast<double>(number) >= k_share * static_cast<double>(seconds.size());
  }
};

// Replays `series` into every gate, and says what it took. `replayed`: at most so many of the gates
// are different ones.
PairsNeeded replay(Series& series, ReplayAs as, std::uint64_t seed, Gates& gates,
                   const CalibrationFacts& facts, std::size_t& replayed) {
  const auto most = static_cast<std::size_t>(series.cell.most_pairs);
  std::vector<stats::CellReplay> all;
  std::vector<double> pairs;
  std::size_t decided = 0, within = 0;
  while (all.size() < gates.seconds.size()) {
    if (all.size() == k_pilot && 2 * decided <= k_pilot) break;
    const auto one = stats::replay_cell(series.pairs, series.rules, as, seed + all.size(), most);
    all.push_back(one);
    pairs.push_back(static_cast<double>(one.pairs));
    decided += one.decided ? 1 : 0;
    const double seconds = pairs.back() * series.cell.pair_seconds;
    within += one.decided && seconds <= facts.budget_seconds ? 1 : 0;
  }
  for (std::size_t k = 0; k < gates.seconds.size(); ++k) {
    const stats::CellReplay& one = all[k % all.size()];
    gates.seconds[k] += static_cast<double>(one.pairs) * series.cell.pair_seconds;
    gates.failed[k] = gates.failed[k] || one.failed;
    gates.decided[k] = gates.decided[k] && one.decided;
  }
  const auto ran = static_cast<double>(all.size());
  if (as != ReplayAs::seen) {
    series.cell.holds = series.cell.holds && static_cast<double>(within) >= k_share * ran;
  }
  replayed = std::min(replayed, all.size());
  return {mean(pairs), p95(pairs), static_cast<double>(decided) / ran};
}

// Of the first `number`.
std::int64_t count(const std::vector<bool>& values, std::size_t number) {
  return std::count(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(number), true);
}

std::string limits_of(const std::vector<CalibratedMetric>& metrics) {
  std::set<std::string> amounts;
  for (const CalibratedMetric& metric : metrics) amounts.insert(metric.amount);
  return text::join(std::vector<std::string>(amounts.begin(), amounts.end()), " and ");
}

bool too_loud(const CalibratedCell& cell) {
  return std::min(cell.unchanged.decided, cell.at_limit.decided) < 0.95;
}

// A budget that would do, as people write one.
std::string budget_of(double seconds) {
  const double rounded = seconds < 60 ? std::ceil(seconds) : 60 * std::ceil(seconds / 60);
  return unit::show_duration(std::max(10.0, rounded));
}

// What stands out in the gate that was run itself.
std::vector<std::string> surprises(const Calibration& calibration) {
  std::vector<std::string> notes;
  for (const CalibratedCell& cell : calibration.cells) {
    for (const CalibratedMetric& metric : cell.metrics) {
      if (metric.decision != stats::Decision::fail) continue;
      const std::string what = fmt::format("{} of {}", unit::label(metric.metric), cell.cell.str());
      notes.push_back(
          calibration.two_builds
              ? fmt::format("two builds of one source differ: {} fails beside the other build",
                            what)
              : fmt::format("{} failed beside itself, which chance does in at most {:.2g} % of "
                            "gates: calibrate again, and ask weir doctor",
                            what, 100 * calibration.false_alarm));
    }
  }
  return notes;
}

// Whether this machine can hold these limits within gate.budget, and if not, what would help.
std::string answer_words(const Calibration& calibration) {
  const std::string budget = unit::show_duration(calibration.budget_seconds);
  if (calibration.cells.empty()) return "No timed limit gates here: there is nothing to hold.";
  std::vector<std::string> unmeasured, loud, alone;
  for (const CalibratedCell& cell : calibration.cells) {
    if (cell.error) {
      unmeasured.push_back(cell.cell.str());
    } else if (too_loud(cell)) {
      loud.push_back(fmt::format("{} after {} pairs", cell.cell.str(), cell.most_pairs));
    } else if (!cell.holds) {
      alone.push_back(cell.cell.str());
    }
  }
  if (unmeasured.size() == calibration.cells.size()) {
    return "Nothing can be said: no cell could be measured.";
  }
  std::string said;
  const std::string these =
      calibration.cells.size() == 1 ? limits_of(calibration.cells.front().metrics) : "these limits";
  const double most = std::max(calibration.unchanged.p95, calibration.at_limit.p95);
  if (calibration.holds) {
    return fmt::format(
        "This machine can hold {} within gate.budget ({}): verdicts take {} when nothing changed, "
        "{} when all is as slow as its limit, and in 95 of 100 gates no more than {}.",
        these, budget, unit::show_duration(calibration.unchanged.mean),
        unit::show_duration(calibration.at_limit.mean), unit::show_duration(most));
  }
  if (!loud.empty()) {
    said = fmt::format(
        "This machine is too noisy for {}: in more than 5 of 100 gates there is no verdict on {}. "
        "A looser limit, longer prompts, more repeats or a quieter machine (weir doctor) help.",
        these, some_of(loud));
  } else if (most > calibration.budget_seconds || !alone.empty()) {
    said = fmt::format(
        "This machine cannot hold {} within gate.budget ({}): 95 of 100 gates take up to {}; "
        "gate.budget: {} would do.",
        these, budget, unit::show_duration(most), budget_of(1.1 * most));
    if (!alone.empty()) said += fmt::format(" Too long even alone: {}.", some_of(alone));
  }
  if (!unmeasured.empty()) {
    said +=
        fmt::format("{}Nothing can be said of {}.", said.empty() ? "" : " ", some_of(unmeasured));
  }
  return said;
}

}  // namespace

double CalibratedCell::typical_pairs() const { return std::max(unchanged.mean, at_limit.mean); }

Calibration calibrate(const CalibrationFacts& facts, std::span<const profile::CellFacts> cells,
                      std::span<const profile::PairedRuns> runs, std::span<const LimitEntry> limits,
                      Policy policy) {
  Calibration made;
  static_cast<CalibrationFacts&>(made) = facts;
  made.false_alarm = policy.false_alarm;
  made.timed_metrics = policy.timed_metrics = timed_metrics(cells, runs, limits);
  const auto number = static_cast<std::size_t>(std::max<std::int64_t>(1, facts.replays));
  std::size_t replayed = number;
  Gates unchanged(number), at_limit(number), seen(number);
  std::vector<std::string> lines;
  const auto keys = collect<profile::CellKey>(cells, &profile::CellFacts::cell);
  std::set<profile::CellKey> over_depths;
  for (const DepthGroup& group : depth_groups(keys)) over_depths.insert(group.fit);
  // Seeds of different cells and kinds lie far apart.
  std::uint64_t seed = facts.seed << 40U;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].twin) continue;  // has no times
    if (over_depths.contains(cells[i].cell)) {
      lines.push_back(
          fmt::format("{}: the line over its depths is not calibrated, and a round runs all depths "
                      "until the last is decided",
                      cells[i].cell.str()));
      continue;
    }
    auto series = series_of(cells[i], runs[i], limits, policy, facts.date);
    if (!series) continue;
    CalibratedCell& cell = series->cell;
    if (!cell.error) {
      const double budget = facts.budget_seconds;
      constexpr std::uint64_t k_apart = std::uint64_t{1} << 24U;
      cell.holds = true;
      const double paid = budget / std::max(cell.pair_seconds, 1e-6);
      cell.most_pairs = std::llround(std::clamp(2 * paid, k_fewest_tried, k_most_tried));
      cell.unchanged =
          replay(*series, ReplayAs::unchanged, seed += k_apart, unchanged, facts, replayed);
      cell.at_limit =
          replay(*series, ReplayAs::at_limit, seed += k_apart, at_limit, facts, replayed);
      if (facts.two_builds) {
        (void)replay(*series, ReplayAs::seen, seed += k_apart, seen, facts, replayed);
      }
    }
    made.cells.push_back(std::move(cell));
  }
  made.replays = static_cast<std::int64_t>(replayed);
  made.failed = count(unchanged.failed, replayed);
  made.failed_at_most = stats::share_at_most(static_cast<std::size_t>(made.failed), replayed);
  made.seen_failed = count(seen.failed, replayed);
  made.unchanged = unchanged.needed();
  made.at_limit = at_limit.needed();
  const bool measured = std::ranges::none_of(
      made.cells, [](const CalibratedCell& cell) { return cell.error.has_value(); });
  made.holds = measured && !made.cells.empty() && unchanged.within(facts.budget_seconds) &&
               at_limit.within(facts.budget_seconds);
  made.answer = answer_words(made);
  made.notes = surprises(made);
  made.notes.insert(made.notes.end(), lines.begin(), lines.end());
  return made;
}

bool still_holds(const CalibratedCell& cell, std::span<const LimitEntry> limits) {
  return !cell.error && !cell.metrics.empty() &&
         std::ranges::all_of(cell.metrics, [&](const CalibratedMetric& one) {
           const Limit limit = resolve_limit(cell.cell, one.metric, limits);
           const auto& change = change_in(limit, one.metric);
           return limit.mode == Mode::gate && change && show(change->amount) == one.amount &&
                  show(change->tolerate) == one.tolerated;
         });
}

std::string words(const CalibratedCell& cell) {
  return fmt::format("calibrated {} on this machine: {} takes about {:.0f} pairs, {}", cell.date,
                     limits_of(cell.metrics), std::ceil(cell.typical_pairs()),
                     unit::show_duration(cell.typical_pairs() * cell.pair_seconds));
}

// --- weir.calibration/1, and weir.calibrated_cell/1 as it is stored

namespace {

using stats::Decision;

constexpr auto k_decisions = names_in_order<Decision>("inconclusive", "pass", "fail", "unlike");
constexpr std::string_view k_schema = "weir.calibrated_cell/1";

}  // namespace

static void fields(Fields& io, PairsNeeded& needed) {
  io("mean", needed.mean);
  io("p95", needed.p95);
  io("decided", needed.decided);
}

// What a later gate asks of a stored one: which metrics, limits and how loud.
static void fields(Fields& io, CalibratedMetric& metric) {
  io("metric", unit::MetricField{metric.metric, "\"metric\" should be a metric"});
  io("limit", metric.limit);
  io("amount", metric.amount);
  io("tolerate", metric.tolerated);
  if (io.reads()) metric.noise = std::numeric_limits<double>::infinity();
  io.always("noise", Short{metric.noise});
  if (io.reads()) return;
  io("base_runs", metric.base);
  io("candidate_runs", metric.candidate);
  io.derived("verdict", name_of(k_decisions, metric.decision));
  io("decided_after", metric.decided_after);
  io.object("log_evidence", [&](Fields& of) {
    of("slower", Short{metric.log_slower});
    of("beyond", Short{metric.log_beyond});
    of("within", Short{metric.log_within});
  });
}

void fields(Fields& io, CalibratedCell& cell) {
  io.derived("schema", k_schema);
  io("cell", cell.cell);
  io("fingerprint", cell.fingerprint);
  io("machine_class", cell.machine_class);
  io("machine_name", cell.machine_name);
  io("date", cell.date);
  io("pairs", cell.pairs);
  io.sparse("error", cell.error);
  if (cell.error) return;
  io("pair_seconds", cell.pair_seconds);
  io.check(cell.pair_seconds >= 0, "\"pair_seconds\" cannot be negative");
  const auto needed = [&](Fields& of) {
    for (const auto& [key, pairs] :
         {std::pair("unchanged", &cell.unchanged), {"at_limit", &cell.at_limit}}) {
      of(key, *pairs, fmt::format(" {}", key).c_str());
      of.check(pairs->mean >= 0 && pairs->p95 >= 0, "pairs cannot be fewer than none");
    }
  };
  io.object("pairs_needed", needed, " pairs_needed");
  io.derived("most_pairs", cell.most_pairs);
  io("holds", cell.holds);
  io("metrics", cell.metrics, "metrics");
}

static void fields(Fields& io, GateSeconds& seconds) {
  io("mean", seconds.mean);
  io("p95", seconds.p95);
}

Json to_json(const Calibration& calibration) {
  Json json = {{"schema", "weir.calibration/1"},
               {"weir", calibration.weir_version},
               {"date", calibration.date},
               {"config", calibration.config},
               {"base", calibration.base},
               {"two_builds", calibration.two_builds},
               {"budget_seconds", calibration.budget_seconds},
               {"false_alarm", calibration.false_alarm},
               {"timed_metrics", calibration.timed_metrics},
               {"cells", write_fields(calibration.cells)},
               {"replays", calibration.replays},
               {"failed", calibration.failed},
               {"failed_at_most", calibration.failed_at_most},
               {"seconds_needed",
                {{"unchanged", write_fields(calibration.unchanged)},
                 {"at_limit", write_fields(calibration.at_limit)}}},
               {"holds", calibration.holds},
               {"answer", calibration.answer},
               {"notes", calibration.notes}};
  if (calibration.two_builds) json["seen_failed"] = calibration.seen_failed;
  return json;
}

Result<CalibratedCell> calibrated_cell_from_json(const Json& json) {
  if (!json.is_object() || json.value("schema", Json()) != k_schema) {
    return fail(Code::data, "calibration: \"schema\" should be \"{}\"", k_schema);
  }
  return read_fields<CalibratedCell>(json, "calibration");
}

}  // namespace weir::verdict
