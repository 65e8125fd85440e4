// Times and memory: held to stored samples of this machine class, as far as those can tell.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/stats/stored.hpp"
#include "gate/verdict/judging.hpp"

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
  const auto found = std::ranges::find_if(
      paired, [&](const auto& one) { return one.metric.name == current.metric.name; });
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

using profile::Reference;

bool same_workload(const Reference& a, const std::optional<Reference>& b) {
  return b && a.cell == b->cell && a.fingerprint == b->fingerprint &&
         a.engine_build == b->engine_build && a.metric == b->metric;
}

bool positive(const std::vector<double>& rates) {
  return !rates.empty() &&
         std::ranges::all_of(rates, [](double rate) { return std::isfinite(rate) && rate > 0; });
}

// Sample by sample; nothing where a round lacks one of the two.
std::optional<std::vector<double>> at_speed(const std::vector<double>& samples,
                                            const std::vector<double>& rates, double speed,
                                            unit::Better better) {
  if (samples.size() != rates.size() || !positive(rates)) return std::nullopt;
  std::vector<double> made;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double faster = rates[i] / speed;
    made.push_back(better == unit::Better::higher ? samples[i] / faster : samples[i] * faster);
  }
  return made;
}

const std::vector<baseline::Session>* sessions_here(const Question& question) {
  const baseline::Baseline* base = question.judge();
  if (base == nullptr) return nullptr;
  const auto found = base->sessions.find(question.candidate.provenance.machine_class);
  return found == base->sessions.end() || found->second.empty() ? nullptr : &found->second;
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

bool is_reference(const profile::Profile& candidate) {
  return candidate.reference && candidate.reference->cell == candidate.cell.str();
}

std::optional<Normalized> normalized(const profile::Profile& candidate,
                                     const profile::Measurement& current,
                                     const std::vector<const baseline::Session*>& sessions) {
  if (!candidate.reference || current.metric.kind != unit::Kind::time || sessions.empty()) {
    return std::nullopt;
  }
  const Reference& now = *candidate.reference;
  if (!positive(now.rates)) return std::nullopt;
  const double speed = *stats::median(now.rates);
  const auto plain = [&](const std::vector<double>& samples, const Reference& beside) {
    return at_speed(samples, beside.rates, speed, current.metric.better);
  };
  Normalized made;
  for (const baseline::Session* session : sessions) {
    if (!same_workload(now, session->reference)) return std::nullopt;
    auto samples = plain(session->samples.at(current.metric.name), *session->reference);
    if (!samples) return std::nullopt;
    made.sessions.push_back(std::move(*samples));
  }
  auto samples = plain(current.samples, now);
  if (!samples) return std::nullopt;
  made.current = std::move(*samples);
  return made;
}

std::optional<std::string> reference_note(const Question& question) {
  const auto& now = question.candidate.reference;
  if (!now || question.pairs != nullptr) return std::nullopt;
  if (is_reference(question.candidate)) {
    return "the reference workload: its times tell how fast the machine is, and are not judged";
  }
  const auto* sessions = sessions_here(question);
  if (sessions == nullptr) return std::nullopt;
  std::vector<double> then;
  for (const baseline::Session& session : *sessions) {
    if (!same_workload(*now, session.reference) || !positive(session.reference->rates)) {
      return fmt::format(
          "the reference workload {} as it is did not run beside the stored samples: times are "
          "held "
          "to them as they are, until this cell is accepted again",
          now->cell);
    }
    then.push_back(*stats::median(session.reference->rates));
  }
  const auto speed = stats::median(now->rates);
  const auto whole = [&](const auto& samples) {
    return std::all_of(sessions->begin(), sessions->end(), [&](const baseline::Session& session) {
      const auto stored = session.samples.find(samples.metric.name);
      return stored == session.samples.end() ||
             stored->second.size() == session.reference->rates.size();
    });
  };
  for (const auto& [name, measured] : question.candidate.metrics) {
    if (measured.metric.kind != unit::Kind::time || measured.samples.empty()) continue;
    if (measured.samples.size() == now->rates.size() && whole(measured)) continue;
    return fmt::format(
        "a round lacks a process of this cell or of the reference workload {}: {} is held to "
        "stored "
        "samples as they are",
        now->cell, unit::label(measured.metric));
  }
  if (!speed || !positive(now->rates)) return std::nullopt;
  return fmt::format(
      "times are held to stored ones by the reference workload {}, which runs at {:.2f} of its "
      "stored speed",
      now->cell, *speed / *stats::median(then));
}

std::optional<std::string> percentile_doubt(const profile::Profile& candidate,
                                            const MetricVerdict& metric) {
  const Limit& limit = metric.limit;
  if (!candidate.requests || limit.mode == Mode::off || !limit.any()) return std::nullopt;
  // Gaps between tokens are many more than requests.
  if (metric.metric.name.starts_with("inter_token_latency")) return std::nullopt;
  struct Percentile {
    const char* in_name;
    const char* words;
    std::int64_t requests;  // of k requests those above 1 - 1/k lie between the two largest
  };
  constexpr Percentile k_percentiles[] = {{"_p90_", "p90", 10}, {"_p99_", "p99", 100}};
  for (const Percentile& one : k_percentiles) {
    if (metric.metric.name.find(one.in_name) == std::string::npos) continue;
    if (*candidate.requests >= one.requests) return std::nullopt;
    return fmt::format(
        "{} of {} requests a start lies between the two slowest of them: {} requests are the "
        "fewest that it needs (requests on the prompt)",
        one.words, *candidate.requests, one.requests);
  }
  return std::nullopt;
}

std::optional<std::string> starts_note(const Question& question) {
  const auto& requests = question.candidate.requests;
  if (!requests || question.pairs == nullptr || question.pairs->pairs == 0) return std::nullopt;
  return fmt::format(
      "times are of {} fresh starts of each server, {} requests each: a start is one number, "
      "however many requests it has, and what is rarer than one start in {} has hardly been seen",
      question.pairs->pairs, *requests, question.pairs->pairs);
}

}  // namespace weir::verdict
