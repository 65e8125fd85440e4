// Works that take longer, or less long, each time they run. Also rates, times and memory that
// changed beyond their noise and that nothing before explains.

#include "gate/explain/patterns.hpp"
#include "gate/observed/totals.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/unit/metric.hpp"

namespace weir::explain {
namespace {

// The time of one work on both sides. The times of one run vary, and all of them together when the
// machine does. So a work counts as slower only if it stands out among the others of the same pair
// of runs, and if it matters.
struct TimedWork {
  const WorkChange* change = nullptr;
  double before = 0, after = 0;  // seconds of one of its runs
  double log_ratio = 0;          // logarithm of after / before
  double share = 0;              // share of the larger side's time
  bool of_buffers = false;       // command buffers of one label
};

double seconds_per_run(double seconds, const Rational& times) {
  return times.value() > 0 ? seconds / times.value() : seconds;
}

// Returns the works (ops, or command buffers if `of_buffers`) that have times on both sides:
// seconds of one run, and the share of the total time.
std::vector<TimedWork> time_works(const std::vector<WorkChange>& timed, bool of_buffers) {
  double total_before = 0, total_after = 0;
  for (const WorkChange& change : timed) {
    total_before += *change.seconds_before;
    total_after += *change.seconds_after;
  }
  const double total = std::max(total_before, total_after);
  std::vector<TimedWork> list;
  for (const WorkChange& change : timed) {
    if (*change.seconds_before <= 0 || *change.seconds_after <= 0 || total <= 0) continue;
    const double before_each = seconds_per_run(*change.seconds_before, change.before);
    const double after_each = seconds_per_run(*change.seconds_after, change.after);
    list.push_back({&change, before_each, after_each, std::log(after_each / before_each),
                    std::max(*change.seconds_before, *change.seconds_after) / total, of_buffers});
  }
  return list;
}

// Returns true for command buffers if the mean of each side lies outside of all times of the other
// side, and there are many of these.
bool ranges_are_disjoint(const TimedWork& work) {
  constexpr double k_many_times = 8;
  const auto outside = [](double mean, const std::optional<TimeRange>& range) {
    return range && (mean < range->min_seconds || mean > range->max_seconds);
  };
  const WorkChange& change = *work.change;
  return work.of_buffers && std::min(change.before.value(), change.after.value()) >= k_many_times &&
         outside(work.before, change.range_after) && outside(work.after, change.range_before);
}

// Returns true if the work changed by a factor that no run varies by (less if its ranges are
// disjoint), also relative to the other works.
bool changed_by_factor(const TimedWork& work, const std::vector<double>& others) {
  constexpr double k_factor = 3, k_factor_apart = 1.1;
  const double min_log_ratio = std::log(ranges_are_disjoint(work) ? k_factor_apart : k_factor);
  const double sign = work.log_ratio < 0 ? -1 : 1;
  const double usual = stats::median(others).value_or(0);
  return sign * work.log_ratio >= min_log_ratio && sign * (work.log_ratio - usual) >= min_log_ratio;
}

// Returns true if the work's change of time lies outside of the prediction interval that the other
// works give, `others` as logarithms of ratios. Chance does that in one of a thousand runs, over
// all works.
bool is_beyond_chance(const TimedWork& work, const std::vector<double>& others) {
  constexpr std::size_t k_min_kinds_of_work = 4;
  constexpr double k_false_alarm = 0.001;
  constexpr double k_min_deviation = 0.03;
  if (others.size() < k_min_kinds_of_work) return false;  // too few to estimate how much times vary
  const auto count = static_cast<double>(others.size());
  double mean = 0, squares = 0;
  for (const double other : others) {
    mean += other / count;
    squares += other * other;
  }
  const double deviation = std::sqrt(std::max(0.0, squares - count * mean * mean) / (count - 1));
  const double min_log_ratio = std::log(1.2);
  const double step = std::fabs(work.log_ratio - mean);
  if (step < min_log_ratio || std::fabs(work.log_ratio) < min_log_ratio) return false;
  const double t = stats::student_quantile(1 - k_false_alarm / (2 * (count + 1)), count - 1);
  return step > t * std::max(deviation, k_min_deviation) * std::sqrt(1 + 1 / count);
}

// The share of the time from which on a work matters.
constexpr double k_min_share = 0.03;

// Returns the chance that all times of one side lie above all of the other if nothing changed: one
// order of all, or its reverse (Wilcoxon's rank sum at its largest; Biometrics 1, 1945). 1 if they
// do not, or if a side has no times.
double chance_of_order(const WorkChange& change, bool slower) {
  const auto& below = slower ? change.range_before : change.range_after;
  const auto& above = slower ? change.range_after : change.range_before;
  if (!below || !above || below->max_seconds >= above->min_seconds) return 1;
  const double below_count = below->times, above_count = above->times;
  return 2 * std::exp(std::lgamma(below_count + 1) + std::lgamma(above_count + 1) -
                      std::lgamma(below_count + above_count + 1));
}

// Returns true if all times of this work lie on one side of those before, while the other works
// stayed as they were. Without times of single calls, those of its command buffers count.
bool is_ordered_and_alone(const TimedWork& work, const std::vector<TimedWork>& works,
                          const std::vector<WorkChange>& buffers) {
  constexpr double k_false_alarm = 0.001;
  constexpr double k_min_ratio = 1.2, k_max_ratio_of_others = 1.1;
  const bool slower = work.log_ratio > 0;
  if (std::fabs(work.log_ratio) < std::log(k_min_ratio)) return false;
  const auto matters = [&](const TimedWork& other) {
    return &other != &work && other.share >= k_min_share;
  };
  const bool only_this_changed =
      std::ranges::any_of(works, matters) &&
      std::ranges::all_of(works, [&](const TimedWork& other) {
        return !matters(other) || std::fabs(other.log_ratio) <= std::log(k_max_ratio_of_others);
      });
  const double max_chance = k_false_alarm / static_cast<double>(works.size());
  const auto is_ordered = [&](const WorkChange& change) {
    return chance_of_order(change, slower) <= max_chance;
  };
  const auto is_buffer_ordered = [&](const std::string& label) {
    const WorkChange* buffer =
        find_first(buffers, [&](const WorkChange& other) { return other.name == label; });
    return buffer != nullptr && is_ordered(*buffer);
  };
  const bool in_ordered_buffers = !work.change->range_before && !work.change->range_after &&
                                  !work.change->labels.empty() &&
                                  std::ranges::all_of(work.change->labels, is_buffer_ordered);
  return only_this_changed && (is_ordered(*work.change) || in_ordered_buffers);
}

// Returns true if the work stands out among all works of `list`, by one of three tests.
bool stands_out(const TimedWork& work, const std::vector<TimedWork>& list,
                const std::vector<WorkChange>& buffers) {
  constexpr std::size_t k_few = 5;
  if (list.size() < 2 || work.share < k_min_share) return false;
  std::vector<double> others;  // logarithms of ratios
  for (const TimedWork& other : list) {
    if (&other != &work) others.push_back(other.log_ratio);
  }
  return changed_by_factor(work, others) || is_beyond_chance(work, others) ||
         (list.size() < k_few && is_ordered_and_alone(work, list, buffers));
}

// Returns true if four or more works all changed in one direction by a fifth or more, and by about
// the same factor.
bool changed_together(const std::vector<TimedWork>& list) {
  constexpr std::size_t k_min_works = 4;
  constexpr double k_min_ratio = 1.2, k_max_spread = 1.5;
  std::vector<double> log_ratios;  // logarithms of ratios, of what matters
  for (const TimedWork& work : list) {
    if (work.share >= k_min_share) log_ratios.push_back(work.log_ratio);
  }
  if (list.size() < k_min_works || log_ratios.empty()) return false;
  const auto [low, high] = std::ranges::minmax(log_ratios);
  const double sign = low < 0 ? -1 : 1;
  return high - low <= std::log(k_max_spread) &&
         std::ranges::all_of(list, [&](const TimedWork& timed) {
           return sign * timed.log_ratio >= std::log(k_min_ratio);
         });
}

struct LayerTimes {
  std::int64_t layer = 0;
  double before = 0, after = 0;  // seconds

  [[nodiscard]] std::string text() const {
    return fmt::format("{} → {}", unit::show_seconds(before), unit::show_seconds(after));
  }
};

// Returns the layers whose time changed by a fifth or more, the largest change first. Empty if all
// layers did, as then no single one is the place.
std::vector<LayerTimes> find_changed_layers(const Evidence& evidence, bool slower) {
  constexpr double k_min_ratio = 1.2;
  std::vector<LayerTimes> changed;
  for (const auto& [layer, after] : evidence.after.layers) {
    const double before = look_up(evidence.before.layers, layer, 0.0);
    const double shorter = slower ? before : after;
    const double longer = slower ? after : before;
    if (shorter > 0 && longer >= k_min_ratio * shorter) changed.push_back({layer, before, after});
  }
  if (changed.size() == evidence.after.layers.size()) return {};
  std::ranges::stable_sort(changed, std::greater(), [](const LayerTimes& times) {
    return std::fabs(times.after - times.before);
  });
  return changed;
}

// Returns "2", "0.5" or "12" times.
std::string factor_text(double factor) {
  return factor < 10 ? fmt::format("{:.3g}", factor) : fmt::format("{:.0f}", factor);
}

// Rewrites a finding about time that is in no listed op, so that it names the layers that take it.
void name_layers(const std::vector<LayerTimes>& layers, bool slower, Finding& finding) {
  constexpr std::size_t k_max_layers_listed = 4;
  const LayerTimes& first = layers.front();
  if (layers.size() == 1) {
    finding.headline = fmt::format("Layer {} takes {} times as long{} ({}).", first.layer,
                                   factor_text(first.after / first.before),
                                   slower ? "" : " as before", first.text());
  } else {
    finding.headline = fmt::format("{} layers take {}, most of all layer {} ({}).", layers.size(),
                                   slower ? "longer" : "less long", first.layer, first.text());
  }
  finding.lines.front().insert(0, "in no op that is listed: ");
  for (std::size_t i = 1; i < std::min(layers.size(), k_max_layers_listed); ++i) {
    finding.lines.push_back(fmt::format("layer {}: {}", layers[i].layer, layers[i].text()));
  }
  if (layers.size() > k_max_layers_listed) {
    finding.lines.push_back(fmt::format("and {} more layers", layers.size() - k_max_layers_listed));
  }
  for (const LayerTimes& times : layers) finding.layers.push_back(times.layer);
  std::ranges::sort(finding.layers);
}

// Adds a finding that one work takes longer or less long each time; `what` stands before its name.
void add_slow(ExplainState& state, const TimedWork& work, const char* prefix) {
  const bool slower = work.log_ratio > 0;
  Finding finding = make_finding(slower ? kind::op_slower : kind::op_faster);
  finding.ops = {work.change->name};
  finding.headline =
      fmt::format("{}{} takes {} times as long", prefix, safe_name(work.change->name),
                  factor_text(std::exp(work.log_ratio)));
  finding.headline += slower ? "." : " as before.";
  finding.lines.push_back(fmt::format("{} → {} each time, {:.0f} % of all time",
                                      unit::show_seconds(work.before),
                                      unit::show_seconds(work.after), 100 * work.share));
  if (slower) finding.cause = "another shape, type or kernel, or memory further away.";
  if (work.change->name == observed::k_not_listed) {
    const auto layers = find_changed_layers(state.evidence, slower);
    if (!layers.empty()) name_layers(layers, slower, finding);
  }
  state.add(std::move(finding), 100 * work.share);
}

// Adds the finding that all ops became slower or faster together: the device or the machine is
// another.
void add_changed_together(ExplainState& state, const std::vector<TimedWork>& list) {
  const auto [low, high] = std::ranges::minmax(list, {}, &TimedWork::log_ratio);
  const bool slower = low.log_ratio > 0;
  double before = 0, after = 0;
  for (const TimedWork& work : list) {
    before += *work.change->seconds_before;
    after += *work.change->seconds_after;
  }
  Finding finding = make_finding(kind::time_changed);
  finding.headline = fmt::format("All {} ops take {}, {:.3g} to {:.3g} times", list.size(),
                                 slower ? "longer" : "less time", std::exp(low.log_ratio),
                                 std::exp(high.log_ratio));
  finding.headline += slower ? "." : " as long as before.";
  finding.lines.push_back(fmt::format("all of them: {} → {}{}", unit::show_seconds(before),
                                      unit::show_seconds(after), state.per_unit_text()));
  finding.cause = "the device's clock or power limit, another machine, or the speed of memory.";
  finding.look_at = "clocks, temperature, and what else runs there.";
  state.add(std::move(finding), /*units=*/1, /*rank=*/2);
}

// Returns a metric's values before and after: "decode tok/s 28.6 → 25.1 (−12.2 %)". `ratio` is
// after / before.
std::string time_change_text(const Evidence& evidence, const std::string& name, double ratio) {
  const auto metric = metric_by_name(evidence, name);
  const auto value_text = [&](const Side& side) {
    const double value = side.metrics.at(name).value();
    return metric ? unit::show(*metric, value) : fmt::format("{:g}", value);
  };
  const double percent = 100 * (ratio - 1);
  const int digits = std::fabs(percent) >= 99.95 ? 0 : 1;  // as in the rows of reports
  const std::string label = metric ? unit::display_name(*metric) : safe_name(name);
  const char* sign = percent < 0 ? "\u2212" : "+";
  return fmt::format("{} {} → {} ({}{:.{}f} %)", label, value_text(evidence.before),
                     value_text(evidence.after), sign, std::fabs(percent), digits);
}

// Returns true if both sides have an exact count. Only then "counts unchanged" means anything.
bool has_common_count(const Evidence& evidence) {
  return std::ranges::any_of(evidence.before.metrics, [&](const auto& entry) {
    const auto metric = metric_by_name(evidence, entry.first);
    return metric && metric->kind == unit::Kind::count && entry.second.exact &&
           evidence.after.metrics.contains(entry.first);
  });
}

// Returns true if Python's calls were counted on both sides, and not the lines that ran.
bool counts_calls_alone(const Evidence& evidence) {
  const auto is_counted = [&](const char* base) {
    const std::string name = metric_name(evidence, base);
    return evidence.before.metrics.contains(name) && evidence.after.metrics.contains(name);
  };
  return is_counted("python_calls") && !is_counted("python_lines");
}

}  // namespace

// Adds a finding for each op, and each label of command buffers, whose time stands out; or one
// finding if all ops changed together.
void find_slow(ExplainState& state) {
  for (const auto& [timed, prefix] :
       {std::pair(&state.differences.timed, ""),
        {&state.differences.timed_buffers, "A command buffer labelled "}}) {
    const std::vector<TimedWork> list =
        time_works(*timed, timed == &state.differences.timed_buffers);
    bool any_stands_out = false;
    for (const TimedWork& work : list) {
      if (!stands_out(work, list, state.differences.timed_buffers)) continue;
      add_slow(state, work, prefix);
      any_stands_out = true;
    }
    if (!any_stands_out && timed == &state.differences.timed && changed_together(list)) {
      add_changed_together(state, list);
    }
  }
}

// Adds a finding about rates, times and memory that changed, if no other finding explains them and
// no work changed.
void find_times(ExplainState& state) {
  // A change at the start explains no rate; any other finding may.
  const bool is_explained = std::ranges::any_of(
      state.entries,
      [](const ExplainState::Entry& entry) { return !entry.finding.metric.ends_with("_fixed"); });
  if (state.differences.times.empty() || is_explained || state.differences.work_changed()) return;
  std::vector<std::pair<std::string, double>> times(state.differences.times.begin(),
                                                    state.differences.times.end());
  std::ranges::stable_sort(times, std::greater(),
                           [](const auto& time) { return std::fabs(std::log(time.second)); });
  const bool has_counts = has_common_count(state.evidence);
  Finding finding = make_finding(kind::time_changed, times.front().first);
  for (const auto& [name, ratio] : std::span(times).first(std::min<std::size_t>(times.size(), 6))) {
    finding.lines.push_back(time_change_text(state.evidence, name, ratio));
  }
  finding.headline = finding.lines.front() + (has_counts ? ", counts unchanged." : ".");
  const auto metric = metric_by_name(state.evidence, times.front().first);
  if (metric && metric->kind == unit::Kind::time) {
    const bool slower = unit::got_worse(metric->better, /*rose=*/times.front().second > 1);
    finding.summary = fmt::format("{} {}.", has_counts ? "The same work takes" : "The engine takes",
                                  slower ? "longer" : "less time");
  }
  finding.lines.erase(finding.lines.begin());
  if (has_counts) {
    finding.cause =
        "the same work takes another time: other code in the kernels, another compiler or driver, "
        "memory, or the machine.";
    finding.look_at = counts_calls_alone(state.evidence)
                          ? "loops that call nothing: python_lines: true on the engine, beside "
                            "probes: [python], counts the lines that run."
                          : "times by op, which weir profile lists for base and candidate.";
  } else {
    finding.look_at =
        "what changed in the source: nothing was counted here, so no cause is known. "
        "probes: [host], or [python] for a script, counts calls by name (weir ab: --probes host "
        "--counts-only).";
  }
  state.add(std::move(finding), /*units=*/1);
}

}  // namespace weir::explain
