// Calibrates timed limits: replays the pairs of one program with itself as gates to come.
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

constexpr double k_min_share_within_budget =
    0.95;  // the share of gates that have to end within the budget
constexpr double k_min_replay_pairs = 200, k_max_replay_pairs = 1000;  // pairs of a replay
// If half of the first replays bring no verdict, the limit is not held, and more replays would
// only take time. Where 95 of 100 replays do bring one, that happens once in 10^8 times.
constexpr std::size_t k_pilot_replays = 20;

// One cell with what its replays need.
struct Series {
  CalibratedCell cell;
  stats::CellPairs pairs;
  std::vector<stats::PairedRule> rules;
};

// Returns the metric's entry in the calibration report: its limit, the noise of its pairs, and the
// verdict that the pairs alone give. A pair is one run of the base and one of the candidate.
CalibratedMetric calibrate_metric(const profile::PairedMetric& paired, const Limit& limit,
                                  const stats::PairedRule& rule,
                                  std::span<const stats::Pair> pairs) {
  const unit::Metric& metric = paired.metric;
  CalibratedMetric result;
  result.metric = metric;
  result.limit = limit.words();
  result.amount = show(change_limit(limit, metric)->amount);
  result.tolerated = show(change_limit(limit, metric)->tolerate);
  result.tolerate = rule.tolerate;
  result.worst = rule.limit;
  result.noise = stats::pair_noise(pairs);
  result.base = run_spread(paired, pairs, &stats::Pair::base);
  result.candidate = run_spread(paired, pairs, &stats::Pair::candidate);
  stats::PairedTest test(rule);
  for (const stats::Pair& pair : pairs) test.add(pair);
  result.decision = test.decision();
  result.decided_after = static_cast<std::int64_t>(test.decided_after());
  result.log_slower = test.log_slower();
  result.log_beyond = test.log_beyond();
  result.log_within = test.log_within();
  return result;
}

// Collects the pairs and rules of the cell's metrics whose limit on a time gates. Nothing if no
// such limit exists. A cell that cannot be replayed, for lack of pairs say, gets an error.
std::optional<Series> make_series(const profile::CellFacts& facts, const profile::PairedRuns& runs,
                                  const LimitTable& limits, const Policy& policy,
                                  const std::string& date) {
  Series series;
  CalibratedCell& cell = series.cell;
  cell.cell = facts.cell;
  cell.fingerprint = facts.provenance.fingerprint;
  cell.machine_class = facts.provenance.machine_class;
  cell.machine_name = facts.provenance.machine_name;
  cell.date = date;
  cell.pairs = runs.pairs;
  const std::int64_t pairs_with_warm_up = runs.pairs + (runs.warm ? 1 : 0);
  cell.pair_seconds =
      runs.seconds / static_cast<double>(std::max<std::int64_t>(1, pairs_with_warm_up));
  for (const profile::PairedMetric& metric : runs.metrics) {
    const Limit metric_limit = resolve_limit(facts.cell, metric.metric, limits);
    if (metric_limit.mode != Mode::gate || !change_limit(metric_limit, metric.metric)) continue;
    const auto metric_rule = paired_rule(metric_limit, metric, policy);
    if (!metric_rule) {
      cell.error = fmt::format("{}: the limit cannot be held to its warm-up: {}",
                               unit::display_name(metric.metric), metric_limit.words());
      continue;
    }
    std::vector<stats::Pair> pairs = rule_pairs(metric);
    cell.metrics.push_back(calibrate_metric(metric, metric_limit, *metric_rule, pairs));
    series.pairs.push_back(std::move(pairs));
    series.rules.push_back(*metric_rule);
  }
  if (runs.error) {
    cell.error = runs.error;
  } else if (!runs.warm) {
    cell.error = "it was not run";
  } else if (runs.metrics.empty()) {
    cell.error = runs.warnings.empty() ? "its warm-ups reported no time" : runs.warnings.front();
  } else if (cell.metrics.empty() && !cell.error) {
    return std::nullopt;  // no timed limit that gates
  } else if (cell.pairs < k_min_replays && !cell.error) {
    cell.error =
        fmt::format("{} of {} pairs that it takes ran within the budget of the calibration",
                    cell.pairs, k_min_replays);
  }
  return series;
}

double p95(std::vector<double> values) {
  return stats::quantile(values, k_min_share_within_budget).value_or(0);
}

double mean(std::span<const double> values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

// Every replay of all cells as one gate.
struct SimulatedGates {
  std::vector<double> seconds;  // per replay
  std::vector<bool> failed, decided;
  explicit SimulatedGates(std::size_t number)
      : seconds(number, 0), failed(number, false), decided(number, true) {}

  [[nodiscard]] GateSeconds needed() const { return {mean(seconds), p95(seconds)}; }
  // True if enough replays are decided within `budget` seconds.
  [[nodiscard]] bool decided_within_budget(double budget) const {
    std::size_t number = 0;
    for (std::size_t k = 0; k < seconds.size(); ++k) {
      if (decided[k] && seconds[k] <= budget) ++number;
    }
    return static_cast<double>(number) >=
           k_min_share_within_budget * static_cast<double>(seconds.size());
  }
};

// Replays a cell's pairs in random order, once for each simulated gate, and adds the seconds and
// verdicts to `gates`. Stops early if few replays decide, and reuses those. Returns the pairs that
// they took; lowers `replayed` to the number of replays.
PairsNeeded replay(Series& series, ReplayAs change, std::uint64_t seed, SimulatedGates& gates,
                   const CalibrationFacts& facts, std::size_t& replayed) {
  const auto max_pairs = static_cast<std::size_t>(series.cell.max_pairs);
  std::vector<stats::CellReplay> replays;
  std::vector<double> pairs;
  std::size_t decided = 0, decided_within_budget = 0;
  while (replays.size() < gates.seconds.size()) {
    if (replays.size() == k_pilot_replays && 2 * decided <= k_pilot_replays) break;
    const auto replay =
        stats::replay_cell(series.pairs, series.rules, change, seed + replays.size(), max_pairs);
    replays.push_back(replay);
    pairs.push_back(static_cast<double>(replay.pairs));
    if (replay.decided) ++decided;
    const double seconds = pairs.back() * series.cell.pair_seconds;
    if (replay.decided && seconds <= facts.budget_seconds) ++decided_within_budget;
  }
  for (std::size_t gate = 0; gate < gates.seconds.size(); ++gate) {
    const stats::CellReplay& replay = replays[gate % replays.size()];
    gates.seconds[gate] += static_cast<double>(replay.pairs) * series.cell.pair_seconds;
    gates.failed[gate] = gates.failed[gate] || replay.failed;
    gates.decided[gate] = gates.decided[gate] && replay.decided;
  }
  const auto replay_count = static_cast<double>(replays.size());
  if (change != ReplayAs::measured) {
    series.cell.keeps_budget =
        series.cell.keeps_budget &&
        static_cast<double>(decided_within_budget) >= k_min_share_within_budget * replay_count;
  }
  replayed = std::min(replayed, replays.size());
  return {mean(pairs), p95(pairs), static_cast<double>(decided) / replay_count};
}

// How many of the first `number` values are true.
std::int64_t count_true(const std::vector<bool>& values, std::size_t number) {
  return std::count(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(number), true);
}

// The amounts of all limits, each once: "2 % and 5 %".
std::string limit_amounts(const std::vector<CalibratedMetric>& metrics) {
  std::set<std::string> amounts;
  for (const CalibratedMetric& metric : metrics) amounts.insert(metric.amount);
  return text::join(std::vector<std::string>(amounts.begin(), amounts.end()), " and ");
}

bool is_too_noisy(const CalibratedCell& cell) {
  return std::min(cell.unchanged.decided, cell.at_limit.decided) < 0.95;
}

// Returns a note on each metric that failed in the calibration's own pairs. Both sides run one
// source there, so each failure is noise, or differs by the build.
std::vector<std::string> describe_failures(const Calibration& calibration) {
  std::vector<std::string> notes;
  for (const CalibratedCell& cell : calibration.cells) {
    for (const CalibratedMetric& metric : cell.metrics) {
      if (metric.decision != stats::Decision::fail) continue;
      const std::string subject =
          fmt::format("{} of {}", unit::display_name(metric.metric), cell.cell.str());
      if (calibration.two_builds) {
        notes.push_back(fmt::format(
            "two builds of one source differ: {} fails beside the other build", subject));
      } else {
        notes.push_back(
            fmt::format("{} failed beside itself, which chance does in at most {:.2g} % of "
                        "gates: calibrate again, and ask weir doctor",
                        subject, 100 * calibration.false_alarm));
      }
    }
  }
  return notes;
}

// "Nothing can be said of a, b." after what `answer` says already.
void add_unmeasured(const std::vector<std::string>& unmeasured, std::string& answer) {
  if (unmeasured.empty()) return;
  if (!answer.empty()) answer += " ";
  answer += fmt::format("Nothing can be said of {}.", list_some(unmeasured));
}

// Says if this machine can hold these limits within gate.budget; if not, what would help.
std::string answer_text(const Calibration& calibration) {
  const std::string budget = unit::show_duration(calibration.budget_seconds);
  if (calibration.cells.empty()) return "No timed limit gates here: there is nothing to hold.";
  std::vector<std::string> unmeasured, noisy, too_long;
  for (const CalibratedCell& cell : calibration.cells) {
    if (cell.error) {
      unmeasured.push_back(cell.cell.str());
    } else if (is_too_noisy(cell)) {
      noisy.push_back(fmt::format("{} after {} pairs", cell.cell.str(), cell.max_pairs));
    } else if (!cell.keeps_budget) {
      too_long.push_back(cell.cell.str());
    }
  }
  if (unmeasured.size() == calibration.cells.size()) {
    return "Nothing can be said: no cell could be measured.";
  }
  const std::string limits = calibration.cells.size() == 1
                                 ? limit_amounts(calibration.cells.front().metrics)
                                 : "these limits";
  const double longest_seconds = std::max(calibration.unchanged.p95, calibration.at_limit.p95);
  if (calibration.keeps_budget) {
    return fmt::format(
        "This machine can hold {} within gate.budget ({}): verdicts take {} when nothing "
        "changed, "
        "{} when all is as slow as its limit, and in 95 of 100 gates no more than {}.",
        limits, budget, unit::show_duration(calibration.unchanged.mean),
        unit::show_duration(calibration.at_limit.mean), unit::show_duration(longest_seconds));
  }
  std::string answer;
  if (!noisy.empty()) {
    answer = fmt::format(
        "This machine is too noisy for {}: in more than 5 of 100 gates there is no verdict on "
        "{}. "
        "A looser limit, longer prompts, more repeats or a quieter machine (weir doctor) help.",
        limits, list_some(noisy));
  } else if (longest_seconds > calibration.budget_seconds || !too_long.empty()) {
    answer = fmt::format(
        "This machine cannot hold {} within gate.budget ({}): 95 of 100 gates take up to {}; "
        "gate.budget: {} would do.",
        limits, budget, unit::show_duration(longest_seconds), budget_text(1.1 * longest_seconds));
    if (!too_long.empty()) {
      answer += fmt::format(" Too long even alone: {}.", list_some(too_long));
    }
  }
  add_unmeasured(unmeasured, answer);
  return answer;
}

// All replays of a calibration, as gates: nothing changed, all at their limits, and the two builds
// as different as they were seen.
struct AllGates {
  SimulatedGates unchanged, at_limit, measured;
  std::size_t replayed = 0;  // so many of the gates are different ones
  std::uint64_t seed = 0;
};

// Replays a cell's pairs as gates that find no change, one as large as the limit, and with two
// builds the measured one. Fills in how many pairs a verdict takes: at most twice what the budget
// affords.
void replay_all(Series& series, const CalibrationFacts& facts, AllGates& gates) {
  constexpr std::uint64_t k_seed_step = std::uint64_t{1} << 24U;  // more than the replays of a cell
  constexpr double k_min_seconds = 1e-6;
  CalibratedCell& cell = series.cell;
  cell.keeps_budget = true;
  const double pairs_within_budget =
      facts.budget_seconds / std::max(cell.pair_seconds, k_min_seconds);
  cell.max_pairs =
      std::llround(std::clamp(2 * pairs_within_budget, k_min_replay_pairs, k_max_replay_pairs));
  gates.seed += k_seed_step;
  cell.unchanged =
      replay(series, ReplayAs::unchanged, gates.seed, gates.unchanged, facts, gates.replayed);
  gates.seed += k_seed_step;
  cell.at_limit =
      replay(series, ReplayAs::at_limit, gates.seed, gates.at_limit, facts, gates.replayed);
  if (!facts.two_builds) return;
  gates.seed += k_seed_step;
  (void)replay(series, ReplayAs::measured, gates.seed, gates.measured, facts, gates.replayed);
}

}  // namespace

double CalibratedCell::typical_pairs() const { return std::max(unchanged.mean, at_limit.mean); }

// Replays every cell's pairs as gates, and says if the machine can hold the limits.
Calibration calibrate(const CalibrationFacts& facts, std::span<const profile::CellFacts> cells,
                      std::span<const profile::PairedRuns> runs, const LimitTable& limits,
                      Policy policy) {
  Calibration calibration;
  static_cast<CalibrationFacts&>(calibration) = facts;
  calibration.false_alarm = policy.false_alarm;
  calibration.timed_metrics = timed_metrics(cells, runs, limits);
  policy.timed_metrics = calibration.timed_metrics;
  const auto number = static_cast<std::size_t>(std::max<std::int64_t>(1, facts.replays));
  AllGates gates{SimulatedGates(number), SimulatedGates(number), SimulatedGates(number), number,
                 facts.seed << 40U};
  std::vector<std::string> depth_notes;
  const auto keys = collect<profile::CellKey>(cells, &profile::CellFacts::cell);
  std::set<profile::CellKey> over_depths;
  for (const DepthGroup& group : depth_groups(keys)) over_depths.insert(group.fit);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].twin) continue;  // has no times
    if (over_depths.contains(cells[i].cell)) {
      depth_notes.push_back(
          fmt::format("{}: the line over its depths is not calibrated, and a round runs all depths "
                      "until the last is decided",
                      cells[i].cell.str()));
      continue;
    }
    auto series = make_series(cells[i], runs[i], limits, policy, facts.date);
    if (!series) continue;
    if (!series->cell.error) replay_all(*series, facts, gates);
    calibration.cells.push_back(std::move(series->cell));
  }
  calibration.replays = static_cast<std::int64_t>(gates.replayed);
  calibration.failed = count_true(gates.unchanged.failed, gates.replayed);
  calibration.max_failed_share =
      stats::max_share(static_cast<std::size_t>(calibration.failed), gates.replayed);
  calibration.measured_failed = count_true(gates.measured.failed, gates.replayed);
  calibration.unchanged = gates.unchanged.needed();
  calibration.at_limit = gates.at_limit.needed();
  const bool measured = std::ranges::none_of(
      calibration.cells, [](const CalibratedCell& cell) { return cell.error.has_value(); });
  calibration.keeps_budget = measured && !calibration.cells.empty() &&
                             gates.unchanged.decided_within_budget(facts.budget_seconds) &&
                             gates.at_limit.decided_within_budget(facts.budget_seconds);
  calibration.answer = answer_text(calibration);
  calibration.notes = describe_failures(calibration);
  calibration.notes.insert(calibration.notes.end(), depth_notes.begin(), depth_notes.end());
  return calibration;
}

bool still_holds(const CalibratedCell& cell, const LimitTable& limits) {
  if (cell.error || cell.metrics.empty()) return false;
  return std::ranges::all_of(cell.metrics, [&](const CalibratedMetric& metric) {
    const Limit limit = resolve_limit(cell.cell, metric.metric, limits);
    const auto& change = change_limit(limit, metric.metric);
    return limit.mode == Mode::gate && change && show(change->amount) == metric.amount &&
           show(change->tolerate) == metric.tolerated;
  });
}

std::string words(const CalibratedCell& cell) {
  return fmt::format("calibrated {} on this machine: {} takes about {:.0f} pairs, {}", cell.date,
                     limit_amounts(cell.metrics), std::ceil(cell.typical_pairs()),
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

// Writes a calibrated metric, or reads of a stored one what a later gate needs: its name, its limit
// and its noise.
static void fields(Fields& io, CalibratedMetric& metric) {
  io("metric", unit::MetricField{metric.metric, "\"metric\" should be a metric"});
  io("limit", metric.limit);
  io("amount", metric.amount);
  io("tolerate", metric.tolerated);
  if (io.is_reading()) metric.noise = std::numeric_limits<double>::infinity();
  io.always("noise", RoundedNumber{metric.noise});
  if (io.is_reading()) return;
  io("base_runs", metric.base);
  io("candidate_runs", metric.candidate);
  io.write_only("verdict", name_of(k_decisions, metric.decision));
  io("decided_after", metric.decided_after);
  io.object("log_evidence", [&](Fields& log_evidence) {
    log_evidence("slower", RoundedNumber{metric.log_slower});
    log_evidence("beyond", RoundedNumber{metric.log_beyond});
    log_evidence("within", RoundedNumber{metric.log_within});
  });
}

// Writes or reads one cell. A cell with an error has nothing but its names.
void fields(Fields& io, CalibratedCell& cell) {
  io.write_only("schema", k_schema);
  io("cell", cell.cell);
  io("fingerprint", cell.fingerprint);
  io("machine_class", cell.machine_class);
  io("machine_name", cell.machine_name);
  io("date", cell.date);
  io("pairs", cell.pairs);
  io.optional("error", cell.error);
  if (cell.error) return;
  io("pair_seconds", cell.pair_seconds);
  io.check(cell.pair_seconds >= 0, "\"pair_seconds\" cannot be negative");
  const auto needed = [&](Fields& pairs_needed) {
    for (const auto& [key, pairs] :
         {std::pair("unchanged", &cell.unchanged), {"at_limit", &cell.at_limit}}) {
      pairs_needed(key, *pairs, fmt::format(" {}", key).c_str());
      pairs_needed.check(pairs->mean >= 0 && pairs->p95 >= 0, "pairs cannot be fewer than none");
    }
  };
  io.object("pairs_needed", needed, " pairs_needed");
  io.write_only("most_pairs", cell.max_pairs);
  io("holds", cell.keeps_budget);
  io("metrics", cell.metrics, "metrics");
}

static void fields(Fields& io, GateSeconds& seconds) {
  io("mean", seconds.mean);
  io("p95", seconds.p95);
}

// Returns the report of a calibration (weir.calibration/1).
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
               {"failed_at_most", calibration.max_failed_share},
               {"seconds_needed",
                {{"unchanged", write_fields(calibration.unchanged)},
                 {"at_limit", write_fields(calibration.at_limit)}}},
               {"holds", calibration.keeps_budget},
               {"answer", calibration.answer},
               {"notes", calibration.notes}};
  if (calibration.two_builds) json["seen_failed"] = calibration.measured_failed;
  return json;
}

Result<CalibratedCell> calibrated_cell_from_json(const Json& json) {
  if (!json.is_object() || json.value("schema", Json()) != k_schema) {
    return fail(Code::data, "calibration: \"schema\" should be \"{}\"", k_schema);
  }
  return read_fields<CalibratedCell>(json, "calibration");
}

}  // namespace weir::verdict
