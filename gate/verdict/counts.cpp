// Counts: exact ones may not change; fewer is better only where the work is seen to have stayed.

#include "gate/profile/variation.hpp"
#include "gate/stats/rank_test.hpp"
#include "gate/unit/kernel_cost.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

using profile::Nature;
using unit::Scope;
using Counts = std::map<std::string, Measurement>;

constexpr std::string_view k_instructions = "instructions";
constexpr std::string_view k_engine_marks = "instrument";  // source of an engine's own marks

bool is_count(const Measurement& measured) { return measured.metric.kind == unit::Kind::count; }

// The relative change that a count may show between runs of one program; 0 for an exact one.
double allowed_variation(const Measurement& base) {
  constexpr double k_min_near_share = 0.005, k_near_spreads = 3;
  if (base.nature == Nature::exact) return 0;
  return std::max(k_near_spreads * base.relative_spread.value_or(0), k_min_near_share);
}

// The values of a count that varies, one a process.
struct ValueSets {
  std::vector<double> base, candidate;
  profile::Variation stored;  // of the base
  bool is_run = false;        // the base was counted beside the candidate
};

std::vector<double> values_of(const Measurement& measured, std::size_t processes) {
  if (!measured.exact) return measured.samples;
  return std::vector<double>(processes, *measured.value());
}

// Finds the values of a count that varied in the base, or that varies now beside a base of the same
// run. Nothing for all other counts.
std::optional<ValueSets> find_value_sets(const Comparison& comparison, const Measurement& base,
                                         const Measurement& current) {
  const baseline::BaselineChoice& choice = comparison.baseline_choice;
  ValueSets sets;
  sets.is_run = choice.is_run;
  sets.candidate = values_of(current, profile::count_processes(comparison.candidate));
  if (const auto stored = profile::find_variation(base)) {
    sets.stored = *stored;
    sets.base = base.samples;
  } else if (base.exact && choice.processes > 0 && profile::find_variation(current)) {
    sets.base = values_of(base, choice.processes);
    sets.stored = {sets.base.front(), sets.base.front(), choice.processes, 0};
  }
  if (sets.base.empty() || sets.candidate.empty()) return std::nullopt;
  return sets;
}

// Returns true if a count did not change. An exact count has to be equal in every run, one that
// varied in the base has to lie within its stored range, and others within the allowed variation.
bool same_value(const Measurement& base, const Measurement& current) {
  if (base.exact && current.exact) return *base.exact == *current.exact;
  if (base.exact) {
    return !current.samples.empty() &&
           std::ranges::count(current.samples, *base.value()) == std::ssize(current.samples);
  }
  const double from = *base.value(), to = *current.value();
  if (const auto stored = profile::find_variation(base)) {
    return to >= stored->low && to <= stored->high;
  }
  return std::fabs(to - from) <= allowed_variation(base) * std::fabs(from);
}

// Returns "65 to 67 (+2)".
std::string change_text(const Measurement& base, const Measurement& current) {
  std::string by = fmt::format("{:+.6g}", *current.value() - *base.value());
  if (base.exact && current.exact) {
    if (const auto changed = current.exact->minus(*base.exact)) {
      by = (*changed > Rational(0) ? "+" : "") + changed->str();
    }
  }
  return fmt::format("{} to {} ({})", value_text(base), value_text(current), by);
}

// Returns true if `metric` counts waits, submits or command buffers, which are no work by
// themselves, and the device did the same work in base and candidate: as many dispatches, and as
// many barriers and copies if either run counted them. Command buffers are counted per token.
bool has_equal_device_counts(const Comparison& comparison, const unit::Metric& metric) {
  const bool is_buffer_count = unit::buffer_label(metric.name).has_value();
  if (metric.base != "syncs" && metric.base != "submits" && !is_buffer_count) return false;
  const Scope scope = is_buffer_count ? Scope::per_token : metric.scope;
  const Counts& now = comparison.candidate.metrics;
  for (const char* base : {"dispatches", "barriers", "copies"}) {
    const std::string name = unit::count_metric(base, scope, metric.length).name;
    const auto *before = look_up(comparison.base->counts, name), *after = look_up(now, name);
    if (before == nullptr && after == nullptr && std::string_view(base) != "dispatches") continue;
    if (before == nullptr || after == nullptr || !before->exact || before->exact != after->exact)
      return false;
  }
  return true;
}

// The lowest and the highest value of a count over all processes.
struct Extremes {
  double low = 0, high = 0;
  bool vary = false;
};

Extremes find_extremes(const Measurement& current) {
  if (current.exact || current.samples.empty()) return {*current.value(), *current.value()};
  const auto [low, high] = std::ranges::minmax(current.samples);
  // Slopes of processes that agree differ by rounding.
  constexpr double k_rounding = 1e-9;
  if (high - low <= k_rounding * std::max(std::fabs(low), std::fabs(high)))
    return {*current.value(), *current.value()};
  return {low, high, true};
}

// Finds the extremes of a count that was the same in every process of the base; both are its one
// value if it varied there.
Extremes find_extremes(const Measurement& base, const Measurement& current) {
  if (!base.exact) return {*current.value(), *current.value()};
  return find_extremes(current);
}

std::string range_text(const Extremes& values) {
  return fmt::format("{:.10g}{}{:.10g}", values.low, k_range_to, values.high);
}

std::string varies_text(const Measurement& base, const Extremes& now) {
  return fmt::format("{} in every process before, now it varies: {}", value_text(base),
                     range_text(now));
}

// Judges a count that got better although its limit allows no change. It passes only if its work
// is seen not to have moved elsewhere: no op moved, or the device did the same work.
Ruling judge_better_count(const Comparison& comparison, const Measurement& base,
                          const Measurement& current) {
  const std::string changed = change_text(base, current);
  const bool is_host_count = current.source == profile::k_python;
  if (is_host_count || current.metric.name == unit::k_fits) return {Outcome::improved, changed};
  if (has_no_moved_ops(comparison)) {
    const std::string dropped = describe_dropped_ops(comparison);
    return {Outcome::improved,
            changed + (dropped.empty() ? ", with all work where it was" : ": " + dropped)};
  }
  if (comparison.candidate.placement.state == profile::Placement::State::ran_elsewhere) {
    return {Outcome::fail, changed + ": the work ran elsewhere, see placement"};
  }
  if (has_equal_device_counts(comparison, current.metric)) {
    return {Outcome::improved, changed + ", with the same work on the device"};
  }
  const bool rose = *current.value() > *base.value();
  const bool is_of_buffers = unit::buffer_label(current.metric.name).has_value();
  return {Outcome::fail, fmt::format("{}: {} {}, and nothing here sees where the work went",
                                     changed, rose ? "more" : "fewer",
                                     is_of_buffers ? "command buffers" : current.metric.base)};
}

// Judges a change of a count that must not change. A count that got worse, or that varies now,
// fails.
Ruling judge_exact_change(const Comparison& comparison, const Limit& limit, const Measurement& base,
                          const Measurement& current) {
  const Extremes values = find_extremes(base, current);
  if (values.vary) return {Outcome::fail, varies_text(base, values)};
  const bool rose = *current.value() > *base.value();
  const bool is_worse = unit::got_worse(current.metric.better, rose);
  if (!is_worse) return judge_better_count(comparison, base, current);
  const std::string changed = change_text(base, current);
  if (base.nature == Nature::nearly_exact) {
    return {Outcome::fail,
            fmt::format("{}, may vary by {:.2g} %", changed, 100 * allowed_variation(base))};
  }
  // Only the configuration adds a limit of changes to a count per token that must not change.
  const bool has_other_limit = limit.max_increase || limit.max_decrease;
  const char* other_limit = has_other_limit && current.metric.scope != Scope::whole_run
                                ? " (max_increase and max_decrease need exact: false)"
                                : "";
  return {Outcome::fail, changed + ", must not change" + other_limit};
}

// Says how many processes would decide.
std::string processes_text(const ValueSets& sets, bool watches_rise) {
  const auto find = [&](bool repeats_base) {
    return stats::values_to_decide(sets.base, sets.candidate, watches_rise, repeats_base);
  };
  if (sets.is_run) {
    const auto count = find(/*repeats_base=*/true);
    return count ? fmt::format("about --processes {} would decide", *count)
                 : "--processes 100 would hardly decide it: remove what makes it vary";
  }
  if (const auto count = find(/*repeats_base=*/false))
    return fmt::format("about --processes {} would decide", *count);
  const auto count = find(/*repeats_base=*/true);
  return count ? fmt::format("about --processes {} would decide, in weir baseline accept and here",
                             *count)
               : "--processes 100 would hardly decide it: remove what makes it vary";
}

// Judges a count that varies by the values of all processes on both sides: a rise or fall is what
// chance shows in 0.4 % of two equal programs, or a candidate that lies far outside. Where neither
// that nor its absence is shown, the values are too few.
Ruling judge_varying(const Comparison& comparison, const ValueSets& sets, const Measurement& base,
                     const Measurement& current) {
  const double base_value = *base.value();
  const bool has_one_value = sets.stored.low == sets.stored.high;
  const bool watches_rise = current.metric.better == unit::Better::lower;
  const auto [low, high] = std::ranges::minmax(sets.candidate);
  const std::string now = profile::range_text(low, high);
  const std::string side = sets.is_run ? "base" : "baseline";
  std::string changed = *current.value() == base_value ? "" : change_text(base, current) + ", ";
  changed += fmt::format("in the {} it is {}", side, sets.stored.str());
  if (sets.candidate.size() > 1)
    changed += fmt::format(", now {} in {}", now, sets.candidate.size());
  stats::SetComparison compared;
  if (has_one_value) {
    // A count that varies now is as bad in either direction.
    const auto distances = collect<double>(
        sets.candidate, [&](double value) { return std::fabs(value - base_value); });
    const std::vector<double> none(sets.base.size(), 0.0);
    compared = stats::compare_sets(none, distances, /*watches_rise=*/true);
    if (compared.shift == stats::Shift::none) compared.shift = stats::Shift::undecided;
  } else {
    compared = stats::compare_sets(sets.base, sets.candidate, watches_rise);
  }
  if (compared.shift == stats::Shift::none) return {Outcome::pass, changed};
  if (compared.shift == stats::Shift::undecided && compared.far_values > 0) {
    return {Outcome::inconclusive,
            fmt::format("{}: {} of {} processes far outside, which ranks do not judge", changed,
                        compared.far_values, sets.candidate.size())};
  }
  if (compared.shift == stats::Shift::undecided) {
    return {Outcome::inconclusive,
            fmt::format("{}: too few values to tell a change by {:.2g} from chance; {}", changed,
                        stats::change_to_find(sets.base), processes_text(sets, watches_rise))};
  }
  if (has_one_value) {
    return {Outcome::fail, fmt::format("{} in every process of the base, now it varies: {} in {}",
                                       value_text(base), now, sets.candidate.size())};
  }
  const bool rose = compared.shift == stats::Shift::rose;
  if (!unit::got_worse(current.metric.better, rose))
    return judge_better_count(comparison, base, current);
  return {Outcome::fail, changed};
}

// Judges a count by max_increase and max_decrease, absolute or relative to the base. If it varies
// between the candidate's processes, each process has to keep the limits.
Ruling judge_allowed_change(const Limit& limit, const Measurement& base,
                            const Measurement& current) {
  const double base_value = *base.value();
  const Extremes now = find_extremes(base, current);
  const auto is_beyond = [&](const std::optional<MaxChange>& change, double by) {
    // A rounding error must not fail 20 -> 21 under 5 %.
    constexpr double k_rounding = 1e-9;
    if (!change) return false;
    const Amount& amount = change->amount;
    const double room = amount.relative ? amount.value * std::fabs(base_value) : amount.value;
    return by > room + k_rounding * std::max(std::fabs(base_value), std::fabs(now.high));
  };
  const std::string changed = now.vary ? varies_text(base, now) : change_text(base, current);
  if (is_beyond(limit.max_increase, now.high - base_value)) {
    return {Outcome::fail,
            fmt::format("{}, may rise {}", changed, show(limit.max_increase->amount))};
  }
  if (is_beyond(limit.max_decrease, base_value - now.low)) {
    return {Outcome::fail,
            fmt::format("{}, may fall {}", changed, show(limit.max_decrease->amount))};
  }
  const bool is_same = now.low == base_value && now.high == base_value;
  return {Outcome::pass, is_same ? "" : changed + ", as the limit allows"};
}

// Judges a count by max and min, in every process of the candidate; nothing if neither is set. A
// relative max is a share of all requests, and is judged by the typical process.
std::optional<Ruling> judge_plain_number(const Limit& limit, const Measurement& current,
                                         std::int64_t answered_requests) {
  if (!limit.max && !limit.min) return std::nullopt;
  const double value = *current.value();
  const Extremes values = find_extremes(current);
  const auto fail_with = [&](double extreme, std::string_view side, const auto& bound) {
    const std::string shown =
        extreme == value ? value_text(current) : fmt::format("{:.10g} in a process", extreme);
    return Ruling{Outcome::fail, fmt::format("{} is {} {}", shown, side, show(bound))};
  };
  const double high = limit.max && limit.max->relative ? value : values.high;
  if (limit.max && high > limit.max->of(static_cast<double>(answered_requests) + value))
    return fail_with(high, "above max", *limit.max);
  if (limit.min && values.low < limit.min->value)
    return fail_with(values.low, "below min", *limit.min);
  return Ruling{};
}

// Returns true for counts that are only comparable if the same source counted them: instructions
// counted in two ways, and costs by two compilers.
bool depends_on_source(const unit::Metric& metric) {
  return metric.base == k_instructions || unit::find_kernel_cost(metric.name) != nullptr ||
         unit::is_summed_cost(metric.base);
}

// Returns true if the baseline lacks `current` because a later weir added that count. A probe
// writes all of its counts, 0 as well, so a baseline by the same probe would have it otherwise.
bool is_newer_than_baseline(const CountKinds& base, const Measurement& current) {
  return unit::may_be_missing(current.metric.base) && base.sources.contains(current.source);
}

// Judges a count by the baseline's: by `exact`, by an allowed change, or by the stricter of both.
// It is new if the baseline lacks it, counted it by another probe, or is of another device.
Ruling judge_against_base(const Comparison& comparison, const Limit& limit,
                          const std::optional<Measurement>& base, const Measurement& current) {
  if (comparison.base == nullptr)
    return comparison.ruling_without_base(limit.exact, comparison.baseline_choice.reason);
  if (!base && is_newer_than_baseline(comparison.base_kinds, current)) {
    return {Outcome::info, "the baseline is older than this count: accept it to compare"};
  }
  if (!base)
    return comparison.ruling_without_base(limit.exact, "the baseline does not hold this count");
  if (depends_on_source(current.metric) && !base->source.empty() &&
      base->source != current.source) {
    return comparison.ruling_without_base(
        limit.exact,
        fmt::format("the baseline was counted by {}, this run by {}: accept it to compare",
                    base->source, current.source));
  }
  const bool is_same = same_value(*base, current);
  if (comparison.is_other_device()) {
    // Two instruction sets, or two drivers, have equal numbers of instructions by chance alone.
    const bool is_comparable = current.metric.base != k_instructions;
    Ruling ruling;
    if (is_same && is_comparable) return ruling;
    ruling.reason = fmt::format("{} to {}", value_text(*base), value_text(current));
    if (!is_comparable) ruling.reason += ", which no other device class judges";
    make_new_if_other_device(comparison, limit.exact, ruling);
    return ruling;
  }
  // Limits add up: max_increase beside `exact` makes nothing looser, and may be the tighter one.
  Ruling allowed = judge_allowed_change(limit, *base, current);
  if (!limit.exact) return allowed;
  Ruling exactly;
  if (const auto sets = find_value_sets(comparison, *base, current)) {
    exactly = judge_varying(comparison, *sets, *base, current);
  } else if (!is_same) {
    exactly = judge_exact_change(comparison, limit, *base, current);
  }
  return allowed.verdict < exactly.verdict ? allowed : exactly;
}

// Returns the name of the same count, of the same role of processes, in another scope.
std::string name_in_scope(const unit::Metric& metric, Scope scope,
                          std::optional<std::int64_t> length = std::nullopt) {
  const std::string own = unit::count_metric(metric.base, metric.scope, metric.length).name;
  const std::size_t role_bytes = metric.name.size() - std::min(own.size(), metric.name.size());
  return metric.name.substr(0, role_bytes) + unit::count_metric(metric.base, scope, length).name;
}

// Returns the count of `metric` at its number of tokens: fixed part plus slope times tokens.
// Nothing if these two are not exact, or the result overflows.
std::optional<Measurement> value_on_line(const Counts& counts, const unit::Metric& metric) {
  const auto* fixed = look_up(counts, name_in_scope(metric, Scope::fixed));
  if (fixed == nullptr || !fixed->exact || !metric.length) return std::nullopt;
  for (const Scope scope : {Scope::per_token, Scope::per_prefill}) {
    const auto* slope = look_up(counts, name_in_scope(metric, scope));
    if (slope == nullptr || !slope->exact) continue;
    const auto growth = slope->exact->times(*metric.length);
    const auto value = growth ? growth->plus(*fixed->exact) : std::nullopt;
    if (!value) return std::nullopt;
    Measurement count = *slope;
    count.metric = metric;
    count.exact = value;
    return count;
  }
  return std::nullopt;
}

// Returns the count that a side implies by not listing `other`, which only the other side lists;
// nothing if it implies no number.
// - An engine's own marks (weir/instrument.h): beside other marks on the same side, a kind that is
//   missing was counted 0 times. Without any other, the engine may not mark that kind.
// - An engine that counts command buffers by label lists all labels of a token.
// - A side that was counted fits.
std::optional<Measurement> implied_count(const CountKinds& side, const Measurement& other) {
  const bool fits = other.metric.name == unit::k_fits;
  bool is_implied = false;
  if (fits) {
    is_implied = !side.sources.empty();
  } else if (unit::buffer_label(other.metric.name)) {
    is_implied = side.has_buffers;
  } else {
    is_implied = other.exact && other.source == k_engine_marks &&
                 side.marks.contains({other.metric.scope, other.metric.length});
  }
  if (!is_implied) return std::nullopt;
  Measurement count = other;
  count.exact = Rational(fits ? 1 : 0);
  count.samples.clear();
  return count;
}

// Returns 0 for a count of a role of processes that did not use the device in the base, where a run
// counted that. A run of an older weir lacks some counts of a role, and has no `processes` of it.
std::optional<Measurement> implied_count_of_role(const Comparison& comparison,
                                                 const Measurement& current) {
  const std::string role(profile::role_of_probe(current.source));
  if (role.empty() || comparison.base == nullptr || !comparison.baseline_choice.is_run)
    return std::nullopt;
  const std::string probe = current.source.substr(0, current.source.find('@'));
  const std::set<std::string>& sources = comparison.base_kinds.sources;
  const bool has_all_counts =
      comparison.base->counts.contains(unit::role_metric_name(role, "processes"));
  if (!sources.contains(probe) || (sources.contains(current.source) && !has_all_counts))
    return std::nullopt;
  Measurement count = current;
  count.nature = Nature::exact;
  count.exact = Rational(0);
  count.samples.clear();
  return count;
}

}  // namespace

CountKinds::CountKinds(const std::map<std::string, Measurement>& counts) {
  for (const auto& [name, count] : counts) {
    sources.insert(count.source);
    has_buffers = has_buffers || unit::buffer_label(name).has_value();
    if (count.metric.scope == Scope::at_length)
      counts_at_lengths.insert(name_in_scope(count.metric, Scope::fixed));
    if (count.source == k_engine_marks) marks.insert({count.metric.scope, count.metric.length});
  }
}

std::string value_text(const Measurement& measured) {
  if (measured.exact) return measured.exact->str();
  const auto value = measured.value();
  return value ? fmt::format("{:.10g}", *value) : "nothing";
}

// Returns true if both sides report where their ops ran, and none ran more often off the requested
// device than in the base.
bool has_no_moved_ops(const Comparison& comparison) {
  using State = profile::Placement::State;
  if (comparison.base == nullptr) return false;
  const profile::Placement& current = comparison.candidate.placement;
  const profile::Placement& before = comparison.base->placement;
  if (current.state != State::shown) return false;
  // A base whose ops ran elsewhere will do if it lists them.
  const auto ops_before = before.ops_elsewhere();
  const bool lists_ops = before.state == State::ran_elsewhere && !ops_before.empty();
  if (before.state != State::shown && !lists_ops) return false;
  return std::ranges::all_of(current.ops_elsewhere(), [&](const auto& op_calls) {
    const auto* calls = look_up(ops_before, op_calls.first);
    return calls != nullptr && op_calls.second <= *calls;
  });
}

// Judges one count by its limit. Without `base`, only max and min can judge it. An engine's own
// word does not take the place of a probe's count.
Judgement judge_count(const Comparison& comparison, const Measurement& current,
                      const std::optional<Measurement>& base) {
  if (base && profile::counts_from_outside(base->source) &&
      !profile::counts_from_outside(current.source)) {
    if (auto missing = judge_missing(comparison, *base, &current)) return *std::move(missing);
  }
  Judgement judgement = comparison.start_judgement(current);
  Limit& limit = judgement.limit;
  if (base && base->nature == Nature::nearly_exact) judgement.nature = base->nature;
  judgement.warnings = current.warnings;
  // A count that was exact before must not change, whatever it does now.
  const Measurement& repeats = base ? *base : current;
  if (limit.exact && repeats.nature == Nature::nearly_exact && !profile::find_variation(repeats)) {
    limit.allowed_variation = allowed_variation(repeats);
  }
  judgement.current = current.value();
  if (current.exact) judgement.current_text = current.exact->str();
  if (base) judgement.baseline = base->value();
  if (base && base->exact) judgement.baseline_text = base->exact->str();
  if (base && judgement.current) {
    const Extremes values = find_extremes(*base, current);
    if (values.low < values.high) judgement.current_text = range_text(values);
  }
  if (judgement.baseline && judgement.current && *judgement.baseline != 0) {
    judgement.change = (*judgement.current - *judgement.baseline) / std::fabs(*judgement.baseline);
  }
  if (limit.mode == Mode::off) judgement.reason = "switched off";
  const bool sampled = current.nature == Nature::sampled && !(base && base->exact);
  if (sampled) judgement.reason = "threads and time enter into it: shown, not judged";
  if (!judgement.current || !limit.is_set() || limit.mode == Mode::off) return judgement;
  std::optional<Ruling> ruling =
      judge_plain_number(limit, current, comparison.candidate.requests.value_or(0));
  if (!sampled && (limit.exact || limit.max_increase || limit.max_decrease)) {
    keep_worse(ruling, judge_against_base(comparison, limit, base, current));
  }
  if (!ruling) return judgement;
  judgement.set_ruling(*ruling);
  apply_limit_mode(limit, judgement);
  return judgement;
}

// Judges a count that the baseline has and the candidate lacks: an error, or skipped if no probe
// ran. `own` is the engine's own number for it, or null. Nothing if no limit is on the count.
std::optional<Judgement> judge_missing(const Comparison& comparison, const Measurement& base,
                                       const Measurement* engine_count) {
  Judgement judgement = comparison.start_judgement(base);
  judgement.baseline = base.value();
  if (base.exact) judgement.baseline_text = base.exact->str();
  if (!judgement.limit.is_set() || judgement.limit.mode == Mode::off) return std::nullopt;
  Ruling& ruling = judgement;
  const Profile& candidate = comparison.candidate;
  constexpr std::size_t k_longest = 600;  // of a reason that many metrics may have
  if (auto why = profile::skip_reason(candidate, base.metric, base.source)) {
    ruling = {Outcome::skipped, text::shortened(std::move(*why), k_longest)};
  } else if (candidate.counted_runs == 0) {
    ruling = {
        Outcome::skipped,
        text::shortened(candidate.counts_skip_reason.value_or("nothing was counted in this run"),
                        k_longest)};
  } else if (unit::is_over_context(base.metric)) {
    // Nothing passes in silence: each depth's own cell judges its count, or misses it.
    ruling = {Outcome::info, "the depths lie on no line any more: each is compared alone"};
    return judgement;
  } else {
    const std::string reason =
        engine_count == nullptr
            ? fmt::format("the baseline holds {}, this run nothing", value_text(base))
            : fmt::format(
                  "{} counted {} in the baseline and nothing in this run; the engine's own "
                  "{} does not replace it",
                  base.source, value_text(base), value_text(*engine_count));
    ruling = {Outcome::error, "could not be measured: " + reason};
    make_new_if_other_device(comparison, judgement.limit.exact, ruling);
  }
  apply_limit_mode(judgement.limit, ruling);
  return judgement;
}

// Judges a count of the candidate by the same count of the baseline. If one side has a line (slope
// and fixed part) and the other numbers at lengths, the line is evaluated there.
static Judgement judge_measured(const Comparison& comparison, const Counts& base,
                                const CountKinds& base_kinds, const std::string& name,
                                const Measurement& measured) {
  if (const auto* stored = look_up(base, name)) {
    return judge_count(comparison, measured, *stored);
  }
  if (const auto from_line = value_on_line(base, measured.metric)) {
    return judge_count(comparison, measured, from_line);
  }
  const Scope scope = measured.metric.scope;
  const bool is_slope = scope == Scope::per_token || scope == Scope::per_prefill;
  const bool is_at_lengths =
      comparison.base != nullptr && is_slope &&
      base_kinds.counts_at_lengths.contains(name_in_scope(measured.metric, Scope::fixed));
  std::optional<Measurement> implied = implied_count(base_kinds, measured);
  if (!implied && !is_at_lengths) implied = implied_count_of_role(comparison, measured);
  Judgement judgement = judge_count(comparison, measured, implied);
  if (is_at_lengths) {
    judgement.set_ruling({Outcome::info, "compared at the lengths that the baseline holds"});
  }
  return judgement;
}

// Judges a count that the baseline lists and the candidate does not, by its line or by an implied
// 0. Nothing if the run failed, or the count is judged at single lengths.
static std::optional<Judgement> judge_unlisted(const Comparison& comparison, const Counts& base,
                                               const CountKinds& current_kinds,
                                               const Measurement& stored) {
  const Counts& current = comparison.candidate.metrics;
  // A slope and a fixed part of the candidate give its number at the baseline's length.
  if (const auto from_line = value_on_line(current, stored.metric)) {
    return judge_count(comparison, *from_line, stored);
  }
  // A baseline's slope is compared where the candidate has numbers, at single lengths.
  unit::Metric at_one_token = unit::count_metric(stored.metric.base, Scope::at_length, 1);
  at_one_token.name = name_in_scope(stored.metric, Scope::at_length, 1);
  const std::string in_all = name_in_scope(stored.metric, Scope::fixed);
  const bool is_judged_at_lengths = stored.metric.scope != Scope::at_length &&
                                    current_kinds.counts_at_lengths.contains(in_all) &&
                                    value_on_line(base, at_one_token);
  if (is_judged_at_lengths) return std::nullopt;
  // The error of a run that failed is reported once, not for each count that it lacks.
  if (!comparison.candidate.errors.empty()) return std::nullopt;
  if (const auto implied = implied_count(current_kinds, stored)) {
    return judge_count(comparison, *implied, stored);
  }
  return judge_missing(comparison, stored);
}

// Returns how often a token, or a run, calls functions in C that give up the processor and that the
// base does not call: nothing shows whether others waited there.
static Rational count_new_waits(const Comparison& comparison, const unit::Metric& metric) {
  const Rational k_least = *Rational::make(1, 4);  // a rarer call depends on the lengths
  const auto& now = comparison.candidate.functions;
  Rational sum(0);
  if (comparison.base == nullptr || !comparison.base->functions || !now) return sum;
  const profile::KernelSet& before = *comparison.base->functions;
  const bool is_same = now->scope == metric.scope && now->length == metric.length;
  const bool is_at_length = metric.scope == Scope::at_length && now->scope != Scope::at_length;
  if (before.scope != now->scope || before.length != now->length || (!is_same && !is_at_length))
    return sum;
  for (const auto& [name, rate] : now->counts) {
    const std::string function(profile::function_of(name));
    const bool is_new = name.starts_with(profile::k_host_wait) && rate >= k_least &&
                        !before.counts.contains(std::string(profile::k_host_call) + function);
    if (is_new) sum = sum.plus(rate).value_or(sum);
  }
  return is_at_length ? sum.times(metric.length.value_or(0)).value_or(sum) : sum;
}

// Returns the costly calls of the candidate with those that wait and are new.
static Measurement add_new_waits(const Comparison& comparison, const Measurement& measured) {
  Measurement sum = measured;
  if (measured.metric.base != "costly_calls" || !measured.exact) return sum;
  sum.exact = measured.exact->plus(count_new_waits(comparison, measured.metric));
  if (!sum.exact) sum.exact = measured.exact;
  return sum;
}

// Judges all counts of the candidate, then those that only the baseline lists. Without a baseline,
// limits on plain numbers alone can judge.
std::vector<Judgement> judge_counts(const Comparison& comparison) {
  static const Counts k_none;
  const Counts& base =
      comparison.baseline_choice.baseline ? comparison.baseline_choice.baseline->counts : k_none;
  const Counts& current = comparison.candidate.metrics;
  const CountKinds base_kinds(base), current_kinds(current);
  std::vector<Judgement> judgements;
  for (const auto& [name, measured] : current) {
    if (!is_count(measured)) continue;
    judgements.push_back(
        judge_measured(comparison, base, base_kinds, name, add_new_waits(comparison, measured)));
  }
  if (comparison.base == nullptr) return judgements;
  for (const auto& [name, stored] : base) {
    if (current.contains(name)) continue;
    if (auto judgement = judge_unlisted(comparison, base, current_kinds, stored)) {
      judgements.push_back(std::move(*judgement));
    }
  }
  return judgements;
}

}  // namespace weir::verdict
