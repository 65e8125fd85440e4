// A gate's verdict: its cells folded, the exit code, and what was not judged; which outcomes count.

#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/judging.hpp"
#include "gate/verdict/paired_rule.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::verdict {
namespace {

using Cells = std::vector<CellVerdict>;

bool is_time(const Judgement& metric) { return metric.metric.kind != unit::Kind::count; }

using CellTest = std::function<bool(const CellVerdict&)>;
std::size_t count_cells(const Cells& cells, const CellTest& test) {
  return static_cast<std::size_t>(std::ranges::count_if(cells, test));
}

CellTest has_verdict(Outcome outcome) {
  return [outcome](const CellVerdict& cell) { return cell.verdict == outcome; };
}

// "in 2 of 3 cells".
std::string cells_text(std::size_t some, std::size_t all) {
  return fmt::format("in {} of {}", some, text::plural(all, "cell"));
}

ExitCode exit_code(const Cells& cells, const Policy& policy) {
  const auto any = [&](Outcome outcome) {
    return std::ranges::any_of(cells, has_verdict(outcome));
  };
  if (std::ranges::all_of(cells, has_verdict(Outcome::skipped))) return ExitCode::usage;
  if (any(Outcome::fail)) return ExitCode::fail;
  if (any(Outcome::error)) return ExitCode::unmeasured;
  if (any(Outcome::inconclusive) && policy.fail_on_inconclusive) return ExitCode::inconclusive;
  return ExitCode::pass;
}

// Why cells were skipped or not compared, in order of first sight: "no probe sees cpu" with the
// number of its cells.
using Reasons = Grouped<std::string, std::int64_t>;
void add_reason(Reasons& reasons, const std::string& reason) {
  ++reasons.find_or_add(reason, reason);
}

// Returns one line, "2 kernels have other code", over the cells in which no limit judges code.
// Returns an empty list if there is no such kernel.
std::vector<std::string> describe_changed_kernels(const Cells& cells) {
  std::set<std::string> kernels;
  for (const CellVerdict& cell : cells) {
    const Judgement& code = cell.judgement_of(k_kernel_code);
    if (is_judged(code.verdict)) continue;
    for (const KernelChange& kernel : code.code) {
      if (kernel.code_changed) kernels.insert(kernel.kernel);
    }
  }
  if (kernels.empty()) return {};
  return {fmt::format("{} {} other code", text::plural(kernels.size(), "kernel"),
                      kernels.size() == 1 ? "has" : "have")};
}

// Returns the group that reports name instead of single metrics: counts, memory, quality, CPU use,
// throughput or latency.
std::string_view metric_group(const unit::Metric& metric) {
  switch (metric.kind) {
    case unit::Kind::count:
      return "counts";
    case unit::Kind::memory:
      return "memory";
    case unit::Kind::quality:
      return "quality";
    case unit::Kind::usage:
      return "CPU use";
    case unit::Kind::time:
      break;
  }
  return metric.better == unit::Better::higher ? "throughput" : "latency";
}

using MetricTest = std::function<bool(const CellVerdict&, const Judgement&)>;

// Returns the groups (see metric_group) of which, in one cell, a metric passes `test` and another
// with a limit does not. The group's name would claim too much for these.
std::set<std::string_view> find_split_groups(const Cells& cells, const MetricTest& test) {
  std::set<std::string_view> split;
  for (const CellVerdict& cell : cells) {
    std::set<std::string_view> passing, others;
    for (const Judgement& metric : cell.metrics()) {
      const bool passes = test(cell, metric);
      if (passes) {
        passing.insert(metric_group(metric.metric));
      } else if (metric.limit.is_set()) {
        others.insert(metric_group(metric.metric));
      }
    }
    std::ranges::set_intersection(passing, others, std::inserter(split, split.end()));
  }
  return split;
}

// Adds a line for all metrics that pass `test` in the same cells: "throughput and latency not
// decided in 2 of 3 cells". `what` follows the names of the metrics or groups.
void append_metric_count_line(const Cells& cells, std::string_view what, const MetricTest& test,
                              std::vector<std::string>& lines) {
  const std::set<std::string_view> split = find_split_groups(cells, test);
  Grouped<std::string, std::set<std::size_t>> cells_of_name;  // indices
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    for (const Judgement& metric : cells[cell].metrics()) {
      if (!test(cells[cell], metric)) continue;
      const std::string_view group = metric_group(metric.metric);
      const std::string name =
          split.contains(group) ? unit::display_name(metric.metric) : std::string(group);
      cells_of_name.find_or_add(name, name).insert(cell);
    }
  }
  Grouped<std::size_t, std::vector<std::string>> names_in_same_cells;  // by the number of cells
  for (const auto& [name, in_cells] : cells_of_name.all) {
    names_in_same_cells.find_or_add(fmt::format("{}", fmt::join(in_cells, " ")), in_cells.size())
        .push_back(name);
  }
  for (const auto& [cell_count, group] : names_in_same_cells.all) {
    const std::string subject = group.size() == 2 ? text::join(group, " and ") : list_some(group);
    lines.push_back(fmt::format("{} {} {}", subject, what, cells_text(cell_count, cells.size())));
  }
}

bool is_open_time(const Judgement& metric) {
  return is_time(metric) && metric.verdict == Outcome::inconclusive;
}

// Returns about how many seconds a gate needs to decide all times: those spent, plus those of the
// missing pairs. Cells of one list of depths run together, so the longest counts. The
// time spent is estimated by pairs, so it is taken for `budget_seconds` at most.
double estimate_budget(const Cells& cells, double budget_seconds) {
  // Pairs of one cell, or of all depths of a list: these run together.
  struct Round {
    double run = 0, missing = 0, pair_seconds = 0;
  };
  std::map<profile::CellKey, Round> rounds;
  for (const CellVerdict& cell : cells) {
    Round& round = rounds[cell.cell.line()];
    for (const Judgement& metric : cell.metrics()) {
      round.run = std::max(round.run, static_cast<double>(metric.ratios.size()));
      round.missing = std::max(round.missing, metric.missing_pairs.value_or(0));
      // The line over all depths takes as long as they do together.
      round.pair_seconds = std::max(round.pair_seconds, metric.pair_seconds);
    }
  }
  double spent = 0, missing = 0;
  for (const auto& [line, round] : rounds) {
    spent += round.run * round.pair_seconds;
    missing += round.missing * round.pair_seconds;
  }
  return std::min(spent, budget_seconds) + missing;
}

// Returns " (the budget of 60 s was used up, about 90 s would do)"; "" if no undecided time lacks
// pairs for it. No estimate above a day is named.
std::string describe_used_budget(const Cells& cells, const Policy& policy) {
  const auto lacks_pairs = [](const CellVerdict& cell) {
    return std::ranges::any_of(cell.metrics(), [](const Judgement& metric) {
      return is_open_time(metric) && metric.missing_pairs;
    });
  };
  const auto is_open = [](const CellVerdict& cell) {
    return std::ranges::any_of(cell.metrics(), is_open_time);
  };
  const std::size_t cells_without_pairs = count_cells(cells, lacks_pairs);
  if (!policy.budget_seconds || cells_without_pairs == 0) return "";
  const double budget = *policy.budget_seconds;
  const bool is_part = cells_without_pairs < count_cells(cells, is_open);
  std::string text =
      fmt::format(" ({}the budget of {} was used up",
                  is_part ? fmt::format("in {} ", cells_without_pairs) : std::string(),
                  unit::show_duration(budget));
  constexpr double k_margin = 1.1, k_max_seconds = 24 * 3600;
  const double enough = k_margin * estimate_budget(cells, budget);
  if (enough > budget && enough < k_max_seconds)
    text += fmt::format(", about {} would do", budget_text(enough));
  return text + ")";
}

// Lists what the gate did not judge: undecided and new metrics, reported limits, skipped cells and
// missing counts. The first line of every report has to admit these.
std::vector<std::string> list_not_judged(const Cells& cells, const Policy& policy) {
  std::vector<std::string> lines = describe_changed_kernels(cells);
  append_metric_count_line(
      cells, "not decided",
      [](const CellVerdict&, const Judgement& metric) { return is_open_time(metric); }, lines);
  if (!lines.empty()) lines.back() += describe_used_budget(cells, policy);
  const std::size_t new_cells = count_cells(cells, has_verdict(Outcome::new_));
  // If nothing at all was compared, the gate says so by itself
  // (GateVerdict::nothing_judged_reason).
  if (new_cells > 0 && std::ranges::any_of(cells, is_compared)) {
    lines.push_back(text::plural(new_cells, "cell") + " new");
  }
  append_metric_count_line(
      cells, "new",
      [](const CellVerdict& cell, const Judgement& metric) {
        return cell.verdict != Outcome::new_ && is_time(metric) && metric.verdict == Outcome::new_;
      },
      lines);
  append_metric_count_line(
      cells, "reported, not gated,",
      [](const CellVerdict&, const Judgement& metric) {
        return metric.limit.is_set() && metric.limit.mode != Mode::gate;
      },
      lines);
  Reasons skipped, uncounted;
  for (const CellVerdict& cell : cells) {
    if (cell.verdict == Outcome::skipped) {
      add_reason(skipped, text::first_line(cell.reason));
    } else if (cell.counts_skip_reason) {
      add_reason(uncounted, text::first_line(*cell.counts_skip_reason));
    }
  }
  for (const auto& [reason, cell_count] : skipped.all) {
    lines.push_back(fmt::format("{} skipped{}", cell_count, text::prefix_if_any(": ", reason)));
  }
  for (const auto& [reason, cell_count] : uncounted.all) {
    lines.push_back(fmt::format("counts not taken {}: {}",
                                cells_text(static_cast<std::size_t>(cell_count), cells.size()),
                                reason));
  }
  if (policy.counts_only && !std::ranges::all_of(cells, has_verdict(Outcome::skipped))) {
    lines.emplace_back("throughput not measured");
  }
  return lines;
}

// "1 of 1000" for a share of 0.001.
std::string share_text(double part) {
  return part >= 1 ? "1" : fmt::format("1 of {:.6g}", std::round(1 / part));
}

// The text of a limit -> the metrics that have it.
using LimitedBy = std::map<std::string, std::set<std::string>>;

// Returns "decode tok/s, prefill tok/s may drop 5 %", a line for each limit.
std::vector<std::string> limit_lines(const LimitedBy& limits) {
  std::vector<std::string> lines;
  for (const auto& [words, metrics] : limits) {
    lines.push_back(list_some({metrics.begin(), metrics.end()}, 6) + " " + words);
  }
  return lines;
}

// The amount of a limit and what it tolerates -> the groups of metrics that pairs judge by it.
using PairedLimits = std::map<std::pair<std::string, std::string>, std::set<std::string>>;

// Returns the error rates that the paired test promises for each limit: "a change of throughput
// for the worse of 5 % and more passes in at most 1 of 100; …".
std::string describe_paired_rule(const PairedLimits& limits, const Policy& policy) {
  std::string rule = "Pairs with the base program: ";
  const std::string false_alarms =
      policy.strict ? share_text(policy.false_alarm) + " gates" : share_text(0.01);
  for (const auto& [limit, groups] : limits) {
    const auto& [amount, tolerated] = limit;
    rule += fmt::format(
        "a change of {} for the worse of {} and more passes in at most {}; one of {} and less is "
        "blamed in at most {}; ",
        text::join(std::vector<std::string>(groups.begin(), groups.end()), " or "), amount,
        share_text(policy.missed), tolerated, false_alarms);
  }
  return rule + fmt::format(
                    "where nothing changed, at most {} gates fails by chance, whatever the "
                    "machine does meanwhile. ",
                    share_text(policy.false_alarm));
}

// Returns how this gate decides, in prose: exact counts, counts with an allowed change, times in
// pairs, and times against stored samples. "" if no limit gates.
std::string describe_decision_rule(const Cells& cells, const Policy& policy) {
  LimitedBy times;
  PairedLimits paired;
  bool has_exact_counts = false, has_allowed_changes = false;
  for (const CellVerdict& cell : cells) {
    for (const Judgement& metric : cell.metrics()) {
      if (metric.limit.mode != Mode::gate || !metric.limit.is_set()) continue;
      if (is_time(metric) && metric.pairs) {
        const auto& change =
            metric.limit.max_drop ? metric.limit.max_drop : metric.limit.max_increase;
        if (change) {
          paired[{show(change->amount), show(change->tolerate)}].emplace(
              metric_group(metric.metric));
        }
      } else if (is_time(metric)) {
        if (!metric.current) continue;  // it was not measured
        times[metric.limit.words()].insert(unit::display_name(metric.metric));
      } else {
        has_exact_counts = has_exact_counts || metric.limit.exact;
        has_allowed_changes = has_allowed_changes || !metric.limit.exact;
      }
    }
  }
  std::string rule;
  if (has_exact_counts) {
    rule +=
        "Counts are exact: one that changed fails, in either direction, unless all work is seen "
        "to have stayed where it was. ";
  }
  if (has_allowed_changes) rule += "Counts with a limit of their own may change within it. ";
  if (!paired.empty()) rule += describe_paired_rule(paired, policy);
  if (!times.empty()) {
    rule += fmt::format(
        "Against stored samples: {}. A {:.3g} % interval is made for each of these alone; it fails "
        "only when the whole interval is beyond the limit and is inconclusive when the interval "
        "holds it. One run is off by what the machine did that day: by an assumed {:.2g} %, which "
        "gives way to what stored runs show. This is outside false_alarm, which holds against a "
        "base program beside it.",
        text::join(limit_lines(times), "; "), (1 - policy.stored_level) * 100,
        policy.assumed_session_sd * 100);
  }
  return std::string(text::trim(rule));
}

std::optional<double> median_profiling_cost(const Cells& cells) {
  std::vector<double> costs;
  for (const CellVerdict& cell : cells) {
    if (cell.profiling_cost) costs.push_back(*cell.profiling_cost);
  }
  return stats::median(costs);
}

std::vector<NotCompared> reasons_not_compared(const Cells& cells) {
  Reasons reasons;
  for (const CellVerdict& cell : cells) {
    if (cell.not_compared) add_reason(reasons, text::first_line(*cell.not_compared));
  }
  return collect<NotCompared>(reasons.all, [](const auto& item) {
    return NotCompared{item.first, item.second};
  });
}

// Returns "nothing was compared: no baseline is stored".
std::string unjudged_reason(const std::vector<NotCompared>& all) {
  const auto reasons = collect<std::string>(all, [&](const NotCompared& item) {
    const auto cells = static_cast<std::size_t>(item.cells);
    return (all.size() > 1 ? text::plural(cells, "cell") + ": " : "") + item.reason;
  });
  return "nothing was compared: " + text::join(reasons, "; ");
}

}  // namespace

Outcome worst(Outcome a, Outcome b) { return std::min(a, b); }

bool is_judged(Outcome outcome) {
  return outcome != Outcome::info && outcome != Outcome::skipped && outcome != Outcome::new_ &&
         outcome != Outcome::error;
}

void mark_brought(GateVerdict& gate) {
  gate.nothing_judged_reason =
      gate.verdict == Outcome::fail
          ? "this pull request brings weir along, and breaks a limit that it brings"
      : gate.against
          ? "this pull request brings weir along; merge it, and the next one is judged"
          : "this pull request brings weir along; merge it, and the next one is judged by stored "
            "baselines, or with --against";
  gate.verdict = worst(gate.verdict, Outcome::new_);
}

void mark_unjudged(GateVerdict& gate, std::string why) {
  if (!gate.nothing_judged_reason) gate.nothing_judged_reason = std::move(why);
  gate.verdict = worst(gate.verdict, Outcome::error);
  if (gate.exit_code != ExitCode::fail && gate.exit_code != ExitCode::usage) {
    gate.exit_code = ExitCode::unmeasured;
  }
}

void keep_worse(std::optional<Ruling>& ruling, Ruling other) {
  if (!ruling || other.verdict < ruling->verdict) {
    ruling = std::move(other);
  } else if (ruling->verdict == Outcome::fail && other.verdict == Outcome::fail) {
    const std::string_view between = ruling->reason.empty() ? "" : "; ";
    ruling->reason += text::prefix_if_any(between, other.reason);
  }
}

// Turns the ruling into `info` if the limit's mode is report or off. The reason then says what the
// ruling would have been.
void apply_limit_mode(const Limit& limit, Ruling& ruling) {
  auto& [verdict, reason] = ruling;
  if (limit.mode == Mode::gate || verdict == Outcome::info) return;
  const std::string why = limit.reason ? ": " + *limit.reason : "";
  if (limit.mode == Mode::off) {
    reason = "switched off" + why;
  } else if (verdict == Outcome::pass) {
    reason = "reported, not gated" + why;
  } else {
    reason = fmt::format("reported, not gated{} (would be {}{})", why, to_string(verdict),
                         text::prefix_if_any(": ", reason));
  }
  verdict = Outcome::info;
}

// Combines all cells into the gate's verdict: exit code, totals, and lists of what was not judged
// or compared.
GateVerdict judge_gate(std::vector<CellVerdict> cells, const Policy& policy) {
  GateVerdict gate;
  gate.verdict = Outcome::skipped;
  for (int outcome = 0; outcome < static_cast<int>(Outcome::info); ++outcome) {
    gate.totals[std::string(to_string(static_cast<Outcome>(outcome)))] = 0;
  }
  for (const CellVerdict& cell : cells) {
    gate.verdict = worst(gate.verdict, cell.verdict);
    ++gate.totals[std::string(to_string(cell.verdict))];
    gate.metrics_judged += std::ranges::count_if(
        cell.metrics(), [](const Judgement& metric) { return is_judged(metric.verdict); });
    if (is_compared(cell)) ++gate.compared;
  }
  gate.not_compared = reasons_not_compared(cells);
  gate.exit_code = exit_code(cells, policy);
  if (gate.compared == 0 && !gate.not_compared.empty()) {
    gate.nothing_judged_reason = unjudged_reason(gate.not_compared);
    if (policy.require_baseline) mark_unjudged(gate, *gate.nothing_judged_reason);
  }
  gate.counts_only = policy.counts_only;
  gate.fail_on_inconclusive = policy.fail_on_inconclusive;
  gate.comment = policy.comment;
  gate.not_judged = list_not_judged(cells, policy);
  gate.decision_rule = describe_decision_rule(cells, policy);
  gate.profiling_cost = median_profiling_cost(cells);
  gate.cells = std::move(cells);
  return gate;
}

}  // namespace weir::verdict
