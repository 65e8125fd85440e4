// Times and memory: compared with stored samples of this machine class, as far as those can tell.
//
// A reference workload that ran beside stored samples and beside this run says how much faster or
// slower the machine was then: samples are divided by what it did in the same round. Times of
// engines that serve stand on requests within a start, and on starts.

#include "gate/stats/quantile.hpp"
#include "gate/stats/stored.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

using baseline::Session;
using profile::Reference;
using stats::StoredInterval;
using unit::Kind;

// The relative change a limit allows; a plain number is taken of what is stored.
double allowed(const Amount& amount, double stored) {
  return amount.relative ? amount.value : amount.value / stored;
}

// About how many more stored runs it would take, or what else decides.
std::string what_decides(const StoredInterval& interval, double limit) {
  const auto more = stats::more_stored_runs(interval, limit, baseline::k_sessions_kept);
  return more ? fmt::format("about {} more stored run{} would decide (weir baseline accept)", *more,
                            *more == 1 ? "" : "s")
              : fmt::format(
                    "{} stored runs would hardly decide, a base program beside it does "
                    "(weir gate --against)",
                    baseline::k_sessions_kept);
}

// The change may go as far as `share` downwards (`sign` -1) or upwards (1).
Ruling within(const StoredInterval& interval, double sign, double share, std::string_view words) {
  const double limit = sign * share;
  const std::string seen = fmt::format("{} ({} to {}), {}", percent(interval.change),
                                       percent(interval.low), percent(interval.high), words);
  const bool above = interval.low > limit, below = interval.high < limit;
  if (sign < 0 ? below : above) {
    return {Outcome::fail, seen + ": the whole interval is beyond the limit"};
  }
  if (above || below) return {Outcome::pass, seen};
  return {Outcome::inconclusive, fmt::format("{}: the interval includes the limit ({}); {}", seen,
                                             interval.words, what_decides(interval, limit))};
}

// A slope may be anywhere; of all else, no process takes no time.
Ruling not_positive(const unit::Metric& metric) {
  if (!unit::over_context(metric)) return {Outcome::error, "its samples are not positive numbers"};
  return {Outcome::inconclusive,
          "some samples are not above 0: what a token of context costs is within the noise"};
}

std::optional<Ruling> against_stored(const Limit& limit, const StoredInterval& interval) {
  std::optional<Ruling> ruling;
  const auto hold = [&](const std::optional<MaxChange>& change, double sign,
                        std::string_view verb) {
    if (!change) return;
    take_worse(ruling, within(interval, sign, allowed(change->amount, interval.stored),
                              fmt::format("may {} {}", verb, show(change->amount))));
  };
  hold(limit.max_drop, -1, "drop");
  hold(limit.max_increase, 1, "rise");
  return ruling;
}

// max and min need no baseline: an interval for the median of this run against a plain number.
std::optional<Ruling> plain_number(const Limit& limit, const Measurement& current, double level) {
  if (!limit.max && !limit.min) return std::nullopt;
  const auto interval = stats::median_interval(current.samples, level);
  if (!interval) return not_positive(current.metric);
  const auto number = [&](double value) { return unit::show(current.metric, value); };
  const std::string seen = fmt::format("{} ({} to {})", number(interval->median),
                                       number(interval->low), number(interval->high));
  std::optional<Ruling> ruling = Ruling{};
  const auto hold = [&](double below, double above, const Amount& bound, std::string_view side) {
    const std::string shown = number(bound.value);
    if (below > 0) {
      take_worse(ruling, {Outcome::fail, fmt::format("{} is {} {}", seen, side, shown)});
    } else if (above > 0) {
      take_worse(ruling, {Outcome::inconclusive,
                          fmt::format("{} holds the limit {}: not decided", seen, shown)});
    }
  };
  if (limit.max) {
    hold(interval->low - limit.max->value, interval->high - limit.max->value, *limit.max, "above");
  }
  if (limit.min) {
    hold(limit.min->value - interval->high, limit.min->value - interval->low, *limit.min, "below");
  }
  return ruling;
}

// The sessions of this machine class; null where none are stored.
const std::vector<Session>* sessions_here(const Question& question) {
  if (question.base == nullptr) return nullptr;
  return look_up(question.base->sessions, question.candidate.provenance.machine_class);
}

struct Stored {
  std::vector<const Session*> sessions;
  std::string why_none;
};

Stored stored_samples(const Question& question, const std::string& metric) {
  const auto* here = sessions_here(question);
  Stored stored;
  for (const Session& session : here != nullptr ? std::span(*here) : std::span<const Session>()) {
    const auto* samples = look_up(session.samples, metric);
    if (samples != nullptr && !samples->empty()) stored.sessions.push_back(&session);
  }
  if (!stored.sessions.empty()) return stored;
  stored.why_none = question.base == nullptr          ? question.choice.reason
                    : question.base->sessions.empty() ? "no timed samples are stored"
                    : here == nullptr
                        ? "stored samples are of other machine classes"
                        : "no samples of this metric are stored for this machine class";
  return stored;
}

// The reference workload tells of the machine: its times are shown and never judged.
bool is_reference(const Profile& candidate) {
  return candidate.reference && candidate.reference->cell == candidate.cell.str();
}

bool same_workload(const Reference& a, const std::optional<Reference>& b) {
  return b && a.cell == b->cell && a.fingerprint == b->fingerprint &&
         a.engine_build == b->engine_build && a.metric == b->metric;
}

bool positive(const std::vector<double>& rates) {
  return !rates.empty() &&
         std::ranges::all_of(rates, [](double rate) { return std::isfinite(rate) && rate > 0; });
}

// Samples of one metric, of stored sessions and of this run.
struct Samples {
  std::vector<std::vector<double>> sessions;
  std::vector<double> current;
};

Samples plain_samples(const Measurement& current, const std::vector<const Session*>& sessions) {
  Samples samples{{}, current.samples};
  for (const Session* session : sessions) {
    samples.sessions.push_back(session->samples.at(current.metric.name));
  }
  return samples;
}

// Divided by what the reference workload did in the same round and brought to its median speed in
// this run. Absent, and the plain samples are compared, unless this run and every session have a
// rate of the same reference beside each sample.
std::optional<Samples> normalized(const Profile& candidate, const Measurement& current,
                                  const std::vector<const Session*>& sessions) {
  if (!candidate.reference || current.metric.kind != Kind::time || sessions.empty()) {
    return std::nullopt;
  }
  const Reference& now = *candidate.reference;
  if (!positive(now.rates)) return std::nullopt;
  const double speed = *stats::median(now.rates);
  // Sample by sample; false where a round lacks one of the two.
  const auto to_speed = [&](std::vector<double>& samples, const std::vector<double>& rates) {
    if (samples.size() != rates.size() || !positive(rates)) return false;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double faster = rates[i] / speed;
      const bool higher = current.metric.better == unit::Better::higher;
      samples[i] = higher ? samples[i] / faster : samples[i] * faster;
    }
    return true;
  };
  Samples made = plain_samples(current, sessions);
  for (std::size_t k = 0; k < sessions.size(); ++k) {
    const auto& reference = sessions[k]->reference;
    if (!same_workload(now, reference) || !to_speed(made.sessions[k], reference->rates)) {
      return std::nullopt;
    }
  }
  return to_speed(made.current, now.rates) ? std::optional(std::move(made)) : std::nullopt;
}

// A percentile of so few requests that it lies between the two largest, where a limit is on it.
std::optional<std::string> percentile_doubt(const Profile& candidate, const Judgement& metric) {
  const Limit& limit = metric.limit;
  const std::string& name = metric.metric.name;
  if (!candidate.requests || limit.mode == Mode::off || !limit.any()) return std::nullopt;
  // Gaps between tokens are many more than requests.
  if (name.starts_with("inter_token_latency")) return std::nullopt;
  // Of k requests those above 1 - 1/k lie between the two largest.
  const bool p90 = name.find("_p90_") != std::string::npos;
  const std::int64_t least = p90 ? 10 : name.find("_p99_") != std::string::npos ? 100 : 0;
  if (*candidate.requests >= least) return std::nullopt;
  return fmt::format(
      "{} of {} requests a start lies between the two slowest of them: {} requests are the fewest "
      "that it needs (requests on the prompt)",
      p90 ? "p90" : "p99", *candidate.requests, least);
}

// Limits on the change by pairs, plain numbers by this side's own runs.
void judge_beside_base(const Question& question, const Measurement& current, Judgement& made) {
  const auto* found = of_metric(question.pairs->metrics, current.metric.name);
  Ruling& ruling = made;
  if (made.limit.mode == Mode::off) {
    ruling.reason = "switched off";
    return;
  }
  if (found != nullptr) {
    judge_pairs(question, *found, made);
  } else if (made.limit.max_drop || made.limit.max_increase) {
    ruling = {Outcome::new_, "the base program does not report it"};
  }
  const bool bounded = made.limit.max || made.limit.min;
  if (bounded && current.samples.empty()) {
    if (ruling.verdict == Outcome::info) {
      ruling = {Outcome::inconclusive, "no measured run of the candidate gave it"};
    }
  } else if (auto plain = plain_number(made.limit, current, question.policy.stored_level)) {
    if (ruling.verdict == Outcome::info || plain->verdict < ruling.verdict) ruling = *plain;
  }
  show_only(made.limit, ruling);
}

Judgement judge_time(const Question& question, const Measurement& current) {
  Judgement made = question.about(current);
  made.warnings = current.warnings;
  if (is_reference(question.candidate)) made.limit = {};
  if (auto doubt = percentile_doubt(question.candidate, made)) {
    made.warnings.push_back(std::move(*doubt));
  }
  made.current = current.value();
  made.samples = std::ssize(current.samples);
  if (question.pairs != nullptr) {
    judge_beside_base(question, current, made);
    return made;
  }
  if (current.metric.kind == Kind::usage) {
    made.reason = "sampled: judged beside a base program alone (--against)";
    const auto plain = plain_number(made.limit, current, question.policy.stored_level);
    if (plain && made.limit.mode != Mode::off) static_cast<Ruling&>(made) = *plain;
    show_only(made.limit, made);
    return made;
  }
  const Stored stored = stored_samples(question, current.metric.name);
  const auto even = normalized(question.candidate, current, stored.sessions);
  const Samples samples = even ? *even : plain_samples(current, stored.sessions);
  const auto interval = stats::compare_with_stored(
      samples.sessions, samples.current,
      {question.policy.stored_level,
       current.metric.kind == Kind::quality ? 0 : question.policy.assumed_session_sd});
  if (interval) {
    made.baseline = interval->stored;
    made.change = interval->change;
    made.low = interval->low;
    made.high = interval->high;
    made.baseline_sessions = static_cast<std::int64_t>(interval->sessions);
  }
  if (made.limit.mode == Mode::off) made.reason = "switched off";
  if (!made.limit.any() || made.limit.mode == Mode::off) return made;
  std::optional<Ruling> ruling = plain_number(made.limit, current, question.policy.stored_level);
  if (made.limit.max_drop || made.limit.max_increase) {
    const Ruling compared = interval                  ? *against_stored(made.limit, *interval)
                            : stored.why_none.empty() ? not_positive(current.metric)
                                                      : Ruling{Outcome::new_, stored.why_none};
    made.suspected = compared.verdict == Outcome::fail && made.limit.mode == Mode::gate &&
                     (!ruling || ruling->verdict != Outcome::fail);
    take_worse(ruling, compared);
  }
  if (ruling) static_cast<Ruling&>(made) = *ruling;
  show_only(made.limit, made);
  return made;
}

}  // namespace

std::vector<Judgement> judge_times(const Question& question) {
  std::vector<Judgement> made;
  const auto& metrics = question.candidate.metrics;
  for (const auto& [name, measured] : metrics) {
    if (measured.metric.kind != Kind::count && !measured.samples.empty()) {
      made.push_back(judge_time(question, measured));
    }
  }
  if (question.pairs == nullptr) return made;
  // Known from warm-ups alone, where the budget never reached this cell: not decided, and said so.
  for (const profile::PairedMetric& paired : question.pairs->metrics) {
    const Measurement* measured = look_up(metrics, paired.metric.name);
    if (measured != nullptr && !measured->samples.empty()) continue;
    Measurement none;
    none.metric = paired.metric;
    none.source = paired.source;
    Judgement one = judge_time(question, none);
    if (one.limit.any() && one.limit.mode != Mode::off) made.push_back(std::move(one));
  }
  return made;
}

std::vector<Judgement> missing_times(const Question& question) {
  const Profile& candidate = question.candidate;
  const auto* sessions = sessions_here(question);
  if (sessions == nullptr || sessions->empty() || question.pairs != nullptr ||
      candidate.timed_runs == 0 || !candidate.errors.empty() || is_reference(candidate)) {
    return {};
  }
  std::vector<Judgement> made;
  for (const auto& [name, samples] : sessions->back().samples) {
    const auto metric = unit::find_metric(name);
    if (candidate.metrics.contains(name) || !metric || metric->kind == Kind::count) continue;
    Measurement none;
    none.metric = *metric;
    Judgement one = question.about(none);
    if (!one.limit.any() || one.limit.mode == Mode::off) continue;
    static_cast<Ruling&>(one) = {Outcome::error,
                                 "could not be measured: samples are stored, this run gave none"};
    show_only(one.limit, one);
    made.push_back(std::move(one));
  }
  return made;
}

std::optional<std::string> reference_note(const Question& question) {
  const auto& now = question.candidate.reference;
  if (!now || question.pairs != nullptr) return std::nullopt;
  if (is_reference(question.candidate)) {
    return "the reference workload: its times tell how fast the machine is, and are not judged";
  }
  const auto* sessions = sessions_here(question);
  if (sessions == nullptr || sessions->empty()) return std::nullopt;
  std::vector<double> then;
  for (const Session& session : *sessions) {
    if (!same_workload(*now, session.reference) || !positive(session.reference->rates)) {
      return fmt::format(
          "the reference workload {} as it is did not run beside the stored samples: times are "
          "held to them as they are, until this cell is accepted again",
          now->cell);
    }
    then.push_back(*stats::median(session.reference->rates));
  }
  const auto whole = [&](const Measurement& measured) {
    return measured.samples.size() == now->rates.size() &&
           std::ranges::all_of(*sessions, [&](const Session& session) {
             const auto* stored = look_up(session.samples, measured.metric.name);
             return stored == nullptr || stored->size() == session.reference->rates.size();
           });
  };
  for (const auto& [name, measured] : question.candidate.metrics) {
    if (measured.metric.kind != Kind::time || measured.samples.empty() || whole(measured)) continue;
    return fmt::format(
        "a round lacks a process of this cell or of the reference workload {}: {} is held to "
        "stored samples as they are",
        now->cell, unit::label(measured.metric));
  }
  if (!positive(now->rates)) return std::nullopt;
  return fmt::format(
      "times are held to stored ones by the reference workload {}, which runs at {:.2f} of its "
      "stored speed",
      now->cell, *stats::median(now->rates) / *stats::median(then));
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
