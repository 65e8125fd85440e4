// Counts: exact ones may not change; fewer is better only where the work is seen to have stayed.

#include "gate/unit/kernel_cost.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

using profile::Nature;
using unit::Scope;
using Counts = std::map<std::string, Measurement>;

constexpr std::string_view k_instructions = "instructions";

bool is_count(const Measurement& measured) { return measured.metric.kind == unit::Kind::count; }

// How far a count that only nearly repeats may move, relative; 0 for an exact one.
double allowed_share(const Measurement& base) {
  constexpr double k_nearly_least = 0.005, k_nearly_times = 3;
  if (base.nature == Nature::exact) return 0;
  return std::max(k_nearly_times * base.repeatability.value_or(0), k_nearly_least);
}

bool same_value(const Measurement& base, const Measurement& current) {
  if (base.exact) return current.exact && *base.exact == *current.exact;
  const double from = *base.value(), to = *current.value();
  return std::fabs(to - from) <= allowed_share(base) * std::fabs(from);
}

// "65 to 67 (+2)".
std::string changed_words(const Measurement& base, const Measurement& current) {
  std::string by = fmt::format("{:+.6g}", *current.value() - *base.value());
  if (base.exact && current.exact) {
    if (const auto changed = current.exact->minus(*base.exact)) {
      by = (*changed > Rational(0) ? "+" : "") + changed->str();
    }
  }
  return fmt::format("{} to {} ({})", shown(base), shown(current), by);
}

// The device got the same work: as many dispatches, and as many barriers and copies where they were
// counted. Then a wait that is gone took no work along.
bool same_device_work(const Question& question, const unit::Metric& metric) {
  const bool buffers = unit::buffer_label(metric.name).has_value();
  if (metric.base != "syncs" && metric.base != "submits" && !buffers) return false;
  const Scope scope = buffers ? Scope::per_token : metric.scope;
  const Counts& now = question.candidate.metrics;
  for (const char* base : {"dispatches", "barriers", "copies"}) {
    const std::string name = unit::count_metric(base, scope, metric.length).name;
    const auto *from = look_up(question.base->counts, name), *to = look_up(now, name);
    if (from == nullptr && to == nullptr && std::string_view(base) != "dispatches") continue;
    if (from == nullptr || to == nullptr || !from->exact || from->exact != to->exact) return false;
  }
  return true;
}

// What a change in either direction means when the count may not change at all.
Ruling exact_change(const Question& question, const Measurement& base, const Measurement& current) {
  if (base.exact && !current.exact) {
    const auto [low, high] = std::ranges::minmax(current.samples);
    return {Outcome::fail,
            fmt::format("{} in every process before, now it varies: {:.10g} to {:.10g}",
                        shown(base), low, high)};
  }
  const bool rose = *current.value() > *base.value();
  const bool better = rose == (current.metric.better == unit::Better::higher);
  const std::string changed = changed_words(base, current);
  if (!better && base.nature == Nature::nearly_exact) {
    return {Outcome::fail,
            fmt::format("{}, may vary by {:.2g} %", changed, 100 * allowed_share(base))};
  }
  if (!better) return {Outcome::fail, changed + ", must not change"};
  if (current.metric.name == unit::k_fits) return {Outcome::improved, changed};
  if (work_stayed(question)) return {Outcome::improved, changed + ", with all work where it was"};
  if (question.candidate.placement.state == profile::Placement::State::refuted) {
    return {Outcome::fail, changed + ": the work ran elsewhere, see placement"};
  }
  if (same_device_work(question, current.metric)) {
    return {Outcome::improved, changed + ", with the same work on the device"};
  }
  return {
      Outcome::fail,
      fmt::format(
          "{}: {} {}, and nothing here sees where the work went", changed, rose ? "more" : "fewer",
          unit::buffer_label(current.metric.name) ? "command buffers" : current.metric.base)};
}

// A count held by an allowance rather than exactly.
Ruling allowed_change(const Limit& limit, const Measurement& base, const Measurement& current) {
  const double from = *base.value(), to = *current.value();
  const auto breaks = [&](const std::optional<MaxChange>& change, double by) {
    // A rounding error must not fail 20 -> 21 under 5 %.
    constexpr double k_rounding = 1e-9;
    if (!change) return false;
    const Amount& amount = change->amount;
    const double room = amount.relative ? amount.value * std::fabs(from) : amount.value;
    return by > room + k_rounding * std::max(std::fabs(from), std::fabs(to));
  };
  const std::string changed = changed_words(base, current);
  for (const auto& [change, by, verb] : {std::tuple(&limit.max_increase, to - from, "rise"),
                                         {&limit.max_decrease, from - to, "fall"}}) {
    if (!breaks(*change, by)) continue;
    return {Outcome::fail, fmt::format("{}, may {} {}", changed, verb, show((*change)->amount))};
  }
  return {Outcome::pass, from == to ? "" : changed + ", as the limit allows"};
}

std::optional<Ruling> plain_number(const Limit& limit, const Measurement& current) {
  if (!limit.max && !limit.min) return std::nullopt;
  const double value = *current.value();
  if (limit.max && value > limit.max->value) {
    return Ruling{Outcome::fail, fmt::format("{} is above {}", shown(current), show(*limit.max))};
  }
  if (limit.min && value < limit.min->value) {
    return Ruling{Outcome::fail, fmt::format("{} is below {}", shown(current), show(*limit.min))};
  }
  return Ruling{};
}

// Instructions counted in two ways are two counts, which say nothing of each other; and so are
// costs by two compilers.
bool depends_on_source(const unit::Metric& metric) {
  return metric.base == k_instructions || unit::find_kernel_cost(metric.name) != nullptr ||
         unit::is_summed_cost(metric.base);
}

// A probe writes all of its counts, 0 as well: what a baseline by the same probe lacks came with a
// later weir.
bool is_older(const Counts& base, const Measurement& current) {
  return unit::may_be_missing(current.metric.base) &&
         std::ranges::any_of(
             base, [&](const auto& item) { return item.second.source == current.source; });
}

Ruling against_base(const Question& question, const Limit& limit,
                    const std::optional<Measurement>& base, const Measurement& current) {
  if (question.base == nullptr) return question.fresh(limit.exact, question.choice.reason);
  if (!base && is_older(question.base->counts, current)) {
    return {Outcome::info, "the baseline is older than this count: accept it to compare"};
  }
  if (!base) return question.fresh(limit.exact, "the baseline does not hold this count");
  if (depends_on_source(current.metric) && !base->source.empty() &&
      base->source != current.source) {
    return question.fresh(
        limit.exact,
        fmt::format("the baseline was counted by {}, this run by {}: accept it to compare",
                    base->source, current.source));
  }
  const bool same = same_value(*base, current);
  if (question.nearest()) {
    // Instructions of two instruction sets, or of two drivers, are as many by chance alone.
    const bool comparable = current.metric.base != k_instructions;
    Ruling ruling;
    if (same && comparable) return ruling;
    ruling.reason = fmt::format("{} to {}", shown(*base), shown(current));
    if (!comparable) ruling.reason += ", which no other device class judges";
    new_beside_nearest(question, limit.exact, ruling);
    return ruling;
  }
  // Kinds add up: an allowance beside `exact` makes nothing looser, and may be the tighter one.
  Ruling allowed = allowed_change(limit, *base, current);
  if (!limit.exact) return allowed;
  Ruling exactly = same ? Ruling{} : exact_change(question, *base, current);
  return allowed.verdict < exactly.verdict ? allowed : exactly;
}

// The value at length n of a count that is known as a line.
std::optional<Measurement> on_line(const Counts& counts, const unit::Metric& at) {
  const auto* fixed = look_up(counts, unit::count_metric(at.base, Scope::fixed).name);
  if (fixed == nullptr || !fixed->exact || !at.length) return std::nullopt;
  for (const Scope scope : {Scope::per_token, Scope::per_prefill}) {
    const auto* slope = look_up(counts, unit::count_metric(at.base, scope).name);
    if (slope == nullptr || !slope->exact) continue;
    const auto risen = slope->exact->times(*at.length);
    const auto value = risen ? risen->plus(*fixed->exact) : std::nullopt;
    if (!value) return std::nullopt;
    Measurement made = *slope;
    made.metric = at;
    made.exact = value;
    return made;
  }
  return std::nullopt;
}

bool has_lengths(const Counts& counts, const std::string& base) {
  return std::ranges::any_of(counts, [&](const auto& item) {
    return item.second.metric.base == base && item.second.metric.scope == Scope::at_length;
  });
}

// What a side that was counted says by not having `other`, which the other side has.
// - An engine's own marks (weir/instrument.h): of a kind that never did there is no count, since an
//   engine may mark some kinds alone. Beside other counts of theirs on the same side, none was
//   none: the first copy a token is one more than before, not one that is new.
// - An engine that counts command buffers by label lists all labels of a token.
// - A side that was counted fits.
std::optional<Measurement> unsaid(const Counts& side, const Measurement& other) {
  constexpr std::string_view k_marks = "instrument";
  const bool fits = other.metric.name == unit::k_fits;
  const bool buffers = unit::buffer_label(other.metric.name).has_value();
  const auto says = [&](const auto& item) {
    if (fits) return true;
    if (buffers) return unit::buffer_label(item.first).has_value();
    return other.exact && other.source == k_marks && item.second.source == k_marks &&
           item.second.metric.scope == other.metric.scope &&
           item.second.metric.length == other.metric.length;
  };
  if (!std::ranges::any_of(side, says)) return std::nullopt;
  Measurement count = other;
  count.exact = Rational(fits ? 1 : 0);
  count.samples.clear();
  return count;
}

}  // namespace

std::string shown(const Measurement& measured) {
  if (measured.exact) return measured.exact->str();
  const auto value = measured.value();
  return value ? fmt::format("{:.10g}", *value) : "nothing";
}

bool work_stayed(const Question& question) {
  using State = profile::Placement::State;
  const profile::Placement& now = question.candidate.placement;
  if (question.base == nullptr || now.state != State::shown) return false;
  // Ops that a probe saw on the CPU, where they should not be, were seen all the same.
  const profile::Placement& then = question.base->placement;
  const bool seen_on_cpu = then.state == State::refuted && !then.cpu_ops.empty();
  if (then.state != State::shown && !seen_on_cpu) return false;
  return std::ranges::all_of(now.cpu_ops, [&](const auto& op) {
    const auto* before = look_up(question.base->placement.cpu_ops, op.first);
    return before != nullptr && op.second <= *before;
  });
}

Judgement judge_count(const Question& question, const Measurement& current,
                      const std::optional<Measurement>& base) {
  Judgement made = question.about(current);
  Limit& limit = made.limit;
  if (base && base->nature == Nature::nearly_exact) made.nature = base->nature;
  made.warnings = current.warnings;
  // A count that was exact before must not change, whatever it does now.
  const Measurement& repeats = base ? *base : current;
  if (limit.exact && repeats.nature == Nature::nearly_exact) {
    limit.repeats_within = allowed_share(repeats);
  }
  made.current = current.value();
  if (current.exact) made.current_text = current.exact->str();
  if (base) made.baseline = base->value();
  if (base && base->exact) made.baseline_text = base->exact->str();
  if (made.baseline && made.current && *made.baseline != 0) {
    made.change = (*made.current - *made.baseline) / std::fabs(*made.baseline);
  }
  if (limit.mode == Mode::off) made.reason = "switched off";
  const bool sampled = current.nature == Nature::sampled && !(base && base->exact);
  if (sampled) made.reason = "threads and time enter into it: shown, not judged";
  if (!made.current || !limit.any() || limit.mode == Mode::off) return made;
  std::optional<Ruling> ruling = plain_number(limit, current);
  if (!sampled && (limit.exact || limit.max_increase || limit.max_decrease)) {
    take_worse(ruling, against_base(question, limit, base, current));
  }
  if (!ruling) return made;
  static_cast<Ruling&>(made) = *ruling;
  show_only(limit, made);
  return made;
}

std::optional<Judgement> judge_missing(const Question& question, const Measurement& base) {
  Judgement made = question.about(base);
  made.baseline = base.value();
  if (base.exact) made.baseline_text = base.exact->str();
  if (!made.limit.any() || made.limit.mode == Mode::off) return std::nullopt;
  Ruling& ruling = made;
  const Profile& candidate = question.candidate;
  if (auto why = profile::why_skipped(candidate, base.metric, base.source)) {
    ruling = {Outcome::skipped, std::move(*why)};
  } else if (candidate.counted_runs == 0) {
    ruling = {Outcome::skipped,
              candidate.counts_skipped.value_or("nothing was counted in this run")};
  } else if (unit::over_context(base.metric)) {
    // Nothing passes in silence: each depth's own cell judges its count, or misses it.
    ruling = {Outcome::info, "the depths lie on no line any more: each is compared alone"};
    return made;
  } else {
    ruling = {
        Outcome::error,
        fmt::format("could not be measured: the baseline holds {}, this run nothing", shown(base))};
    new_beside_nearest(question, made.limit.exact, ruling);
  }
  show_only(made.limit, ruling);
  return made;
}

std::vector<Judgement> judge_counts(const Question& question) {
  static const Counts k_none;
  const Counts& base = question.choice.baseline ? question.choice.baseline->counts : k_none;
  const Counts& current = question.candidate.metrics;
  std::vector<Judgement> made;
  for (const auto& [name, measured] : current) {
    if (!is_count(measured)) continue;
    if (const auto* stored = look_up(base, name)) {
      made.push_back(judge_count(question, measured, *stored));
      continue;
    }
    // One side has a line, the other numbers at lengths: a line gives numbers at lengths too.
    if (const auto from_line = on_line(base, measured.metric)) {
      made.push_back(judge_count(question, measured, from_line));
      continue;
    }
    made.push_back(judge_count(question, measured, unsaid(base, measured)));
    const Scope scope = measured.metric.scope;
    const bool slope = scope == Scope::per_token || scope == Scope::per_prefill;
    if (question.base != nullptr && slope && has_lengths(base, measured.metric.base)) {
      static_cast<Ruling&>(made.back()) = {Outcome::info,
                                           "compared at the lengths that the baseline holds"};
    }
  }
  if (question.base == nullptr) return made;
  const bool unmeasured = !question.candidate.errors.empty();
  for (const auto& [name, stored] : base) {
    if (current.contains(name)) continue;
    if (const auto from_line = on_line(current, stored.metric)) {
      made.push_back(judge_count(question, *from_line, stored));
      continue;
    }
    const bool at_lengths =
        stored.metric.scope != Scope::at_length && has_lengths(current, stored.metric.base) &&
        on_line(base, unit::count_metric(stored.metric.base, Scope::at_length, 1));
    // A pass that ended in an error has said so already, once.
    if (at_lengths || unmeasured) continue;
    if (const auto said = unsaid(current, stored)) {
      made.push_back(judge_count(question, *said, stored));
    } else if (auto verdict = judge_missing(question, stored)) {
      made.push_back(std::move(*verdict));
    }
  }
  return made;
}

}  // namespace weir::verdict
