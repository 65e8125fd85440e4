// Times and memory: held to stored samples of this machine class, as far as those can tell.
#include <algorithm>
#include <cmath>

#include "gate/base/text.hpp"
#include "gate/stats/stored.hpp"
#include "gate/verdict/judging.hpp"
#include "gate/verdict/reference.hpp"

namespace weir::verdict {
namespace {

using profile::Measurement;
using stats::StoredInterval;

struct JudgedTime {
  Outcome verdict = Outcome::pass;
  std::string reason;
};

// The relative change a limit allows; a plain number is taken of what is stored.
double allowed(const Amount& amount, double stored) {
  return amount.relative ? amount.value : amount.value / stored;
}

// `worse` is the interval of the change for the worse: positive is bad.
JudgedTime within(double low, double high, double limit, std::string_view words,
                  const StoredInterval& interval) {
  const std::string seen = fmt::format("{} ({} to {}), {}", percent(interval.change),
                                       percent(interval.low), percent(interval.high), words);
  if (low > limit) return {Outcome::fail, seen + ": the whole interval is beyond the limit"};
  if (high < limit) return {Outcome::pass, seen};
  return {Outcome::inconclusive,
          fmt::format("{}: the interval holds the limit, so these samples can not tell; {}", seen,
                      interval.words)};
}

// A slope may be anywhere; of all else, no process takes no time.
JudgedTime not_positive(const unit::Metric& metric) {
  if (!unit::over_context(metric)) {
    return {Outcome::error, "its samples are not positive numbers"};
  }
  return {Outcome::inconclusive,
          "some samples are not above 0: what a token of context costs is within the noise"};
}

std::optional<JudgedTime> against_stored(const Limit& limit, const StoredInterval& interval) {
  std::optional<JudgedTime> judged;
  const auto add = [&](const JudgedTime& one) {
    if (!judged || one.verdict < judged->verdict) judged = one;
  };
  if (limit.max_drop) {
    add(within(-interval.high, -interval.low, allowed(limit.max_drop->amount, interval.stored),
               fmt::format("may drop {}", show(limit.max_drop->amount)), interval));
  }
  if (limit.max_increase) {
    add(within(interval.low, interval.high, allowed(limit.max_increase->amount, interval.stored),
               fmt::format("may rise {}", show(limit.max_increase->amount)), interval));
  }
  return judged;
}

// max and min need no baseline: an interval for the median of this run against a plain number.
std::optional<JudgedTime> plain_number(const Limit& limit, const Measurement& current,
                                       double level) {
  if (!limit.max && !limit.min) return std::nullopt;
  const auto interval = stats::median_interval(current.samples, level);
  if (!interval) return not_positive(current.metric);
  const auto number = [&](double value) { return unit::show(current.metric, value); };
  const std::string seen = fmt::format("{} ({} to {})", number(interval->median),
                                       number(interval->low), number(interval->high));
  JudgedTime judged;
  const auto hold = [&](double below, double above, const Amount& bound, std::string_view side) {
    JudgedTime one;
    if (below > 0) {
      one = {Outcome::fail, fmt::format("{} is {} {}", seen, side, number(bound.value))};
    } else if (above > 0) {
      one = {Outcome::inconclusive,
             fmt::format("{} holds the limit {}: not decided", seen, number(bound.value))};
    }
    if (one.verdict < judged.verdict) judged = one;
  };
  if (limit.max) {
    hold(interval->low - limit.max->value, interval->high - limit.max->value, *limit.max, "above");
  }
  if (limit.min) {
    hold(limit.min->value - interval->high, limit.min->value - interval->low, *limit.min, "below");
  }
  return judged;
}

struct Stored {
  std::vector<const baseline::Session*> sessions;
  std::string why_none;
};

Stored stored_samples(const Question& question, const std::string& metric) {
  Stored stored;
  const baseline::Baseline* base = question.judge();
  if (base == nullptr) {
    stored.why_none = question.choice.reason;
    return stored;
  }
  const std::string& machine = question.candidate.provenance.machine_class;
  const auto found = base->sessions.find(machine);
  if (found != base->sessions.end()) {
    for (const baseline::Session& session : found->second) {
      const auto samples = session.samples.find(metric);
      if (samples != session.samples.end() && !samples->second.empty()) {
        stored.sessions.push_back(&session);
      }
    }
  }
  if (!stored.sessions.empty()) return stored;
  stored.why_none = base->sessions.empty() ? "no timed samples are stored"
                    : found == base->sessions.end()
                        ? "stored samples are of other machine classes"
                        : "no samples of this metric are stored for this machine class";
  return stored;
}

std::vector<std::vector<double>> samples_of(const Stored& stored, const std::string& metric) {
  std::vector<std::vector<double>> samples;
  for (const baseline::Session* session : stored.sessions) {
    samples.push_back(session->samples.at(metric));
  }
  return samples;
}

// Limits on the change by pairs, plain numbers by this side's own runs.
void judge_beside_base(const Question& question, const Measurement& current, MetricVerdict& made) {
  const auto& paired = question.pairs->metrics;
  const auto found = std::find_if(paired.begin(), paired.end(), [&](const auto& one) {
    return one.metric.name == current.metric.name;
  });
  if (made.limit.mode == Mode::off) {
    made.reason = "switched off";
    return;
  }
  if (found != paired.end()) {
    judge_pairs(question, *found, made);
  } else if (made.limit.max_drop || made.limit.max_increase) {
    made.verdict = Outcome::fresh;
    made.reason = "the base program does not report it";
  }
  const bool bounded = made.limit.max || made.limit.min;
  if (bounded && current.samples.empty()) {
    if (made.verdict == Outcome::info) {
      made.verdict = Outcome::inconclusive;
      made.reason = "no measured run of the candidate gave it";
    }
  } else if (const auto plain = plain_number(made.limit, current, question.policy.stored_level)) {
    if (made.verdict == Outcome::info || plain->verdict < made.verdict) {
      made.verdict = plain->verdict;
      made.reason = plain->reason;
    }
  }
  show_only(made.limit, made.verdict, made.reason);
}

MetricVerdict judge_time(const Question& question, const Measurement& current) {
  MetricVerdict made;
  made.metric = current.metric;
  made.nature = current.nature;
  made.source = current.source;
  made.warnings = current.warnings;
  if (!is_reference(question.candidate)) {
    made.limit = resolve_limit(question.candidate.cell, current.metric, question.limits);
  }
  if (auto doubt = percentile_doubt(question.candidate, made)) {
    made.warnings.push_back(std::move(*doubt));
  }
  made.current = current.value();
  made.samples = static_cast<std::int64_t>(current.samples.size());
  if (question.pairs != nullptr) {
    judge_beside_base(question, current, made);
    return made;
  }
  const Stored stored = stored_samples(question, current.metric.name);
  const auto even = normalized(question.candidate, current, stored.sessions);
  const auto interval = stats::compare_with_stored(
      even ? even->sessions : samples_of(stored, current.metric.name),
      even ? even->current : current.samples,
      {question.policy.stored_level,
       current.metric.kind == unit::Kind::quality ? 0 : question.policy.assumed_session_sd});
  if (interval) {
    made.baseline = interval->stored;
    made.change = interval->change;
    made.low = interval->low;
    made.high = interval->high;
    made.baseline_sessions = static_cast<std::int64_t>(interval->sessions);
  }
  if (!made.limit.any() || made.limit.mode == Mode::off) {
    if (made.limit.mode == Mode::off) made.reason = "switched off";
    return made;
  }
  std::optional<JudgedTime> judged =
      plain_number(made.limit, current, question.policy.stored_level);
  if (made.limit.max_drop || made.limit.max_increase) {
    JudgedTime compared{Outcome::fresh, stored.why_none};
    if (interval) {
      compared = *against_stored(made.limit, *interval);
    } else if (stored.why_none.empty()) {
      compared = not_positive(current.metric);
    }
    made.suspected = compared.verdict == Outcome::fail && made.limit.mode == Mode::gate &&
                     (!judged || judged->verdict != Outcome::fail);
    if (!judged || compared.verdict < judged->verdict) judged = compared;
  }
  if (judged) {
    made.verdict = judged->verdict;
    made.reason = judged->reason;
  }
  show_only(made.limit, made.verdict, made.reason);
  return made;
}

}  // namespace

std::vector<MetricVerdict> judge_times(const Question& question) {
  std::vector<MetricVerdict> made;
  for (const auto& [name, measured] : question.candidate.metrics) {
    if (measured.metric.kind != unit::Kind::count && !measured.samples.empty()) {
      made.push_back(judge_time(question, measured));
    }
  }
  if (question.pairs == nullptr) return made;
  // Known from warm-ups alone, where the budget never reached this cell: not decided, and said so.
  for (const profile::PairedMetric& paired : question.pairs->metrics) {
    const auto measured = question.candidate.metrics.find(paired.metric.name);
    if (measured != question.candidate.metrics.end() && !measured->second.samples.empty()) continue;
    Measurement none;
    none.metric = paired.metric;
    none.nature = profile::Nature::sampled;
    none.source = paired.source;
    MetricVerdict one = judge_time(question, none);
    if (one.limit.any() && one.limit.mode != Mode::off) made.push_back(std::move(one));
  }
  return made;
}

}  // namespace weir::verdict
