// Times and memory: compared with stored samples of this machine class, as far as these show a
// change.
//
// A reference workload that runs beside a session's samples tells how fast the machine was: each
// sample is divided by what it did in the same round. Times of servers stand on requests within a
// start, and on starts.

#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/stats/stored.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

using baseline::Session;
using profile::Reference;
using stats::StoredInterval;
using unit::Kind;

// The relative change that a limit allows. A plain number is divided by the stored value.
double relative_amount(const Amount& amount, double stored) {
  return amount.relative ? amount.value : amount.value / stored;
}

// Says about how many more stored runs would decide, or what else does.
std::string more_runs_text(const StoredInterval& interval, double limit) {
  const auto more = stats::more_stored_runs(interval, limit, baseline::k_sessions_kept);
  return more ? fmt::format("about {} would decide (weir baseline accept)",
                            text::plural(*more, "more stored run"))
              : fmt::format(
                    "even {} stored runs would hardly decide it; runs of a base program beside it "
                    "would (weir gate --against REF)",
                    baseline::k_sessions_kept);
}

// Judges the confidence interval of a change against a limit: `share` downwards if `sign` is -1,
// upwards if it is 1. An interval that includes the limit is inconclusive.
Ruling judge_interval(const StoredInterval& interval, double sign, double share,
                      std::string_view limit_text) {
  const double limit = sign * share;
  const std::string measured = fmt::format(
      "{} ({} to {}), {}", unit::signed_percent(interval.change),
      unit::signed_percent(interval.low), unit::signed_percent(interval.high), limit_text);
  const bool is_above = interval.low > limit, is_below = interval.high < limit;
  const bool is_beyond = sign < 0 ? is_below : is_above;
  if (is_beyond) {
    return {Outcome::fail, measured + ": the whole interval is beyond the limit"};
  }
  if (is_above || is_below) return {Outcome::pass, measured};
  return {Outcome::inconclusive,
          fmt::format("{}: the interval includes the limit ({}); {}", measured, interval.words,
                      more_runs_text(interval, limit))};
}

// Returns the ruling on samples of which some are 0 or below. That is an error for a time, a fail
// for requests a second, and noise for a slope over context.
Ruling ruling_on_bad_samples(const Measurement& current) {
  const unit::Metric& metric = current.metric;
  const auto zeros = std::ranges::count(current.samples, 0.0);
  // A load may really have no request that was fast enough.
  if (metric.unit == unit::Unit::requests_per_second && zeros > 0 &&
      std::ranges::min(current.samples) == 0) {
    return {Outcome::fail,
            zeros == std::ssize(current.samples)
                ? "it is 0"
                : fmt::format("{} of {} samples are 0", zeros, current.samples.size())};
  }
  // Any process takes some time.
  if (!unit::is_over_context(metric))
    return {Outcome::error, "its samples are not positive numbers"};
  // The cost of a token of context is a slope, which noise can turn below 0.
  return {Outcome::inconclusive,
          "some samples are not above 0: what a token of context costs is within the noise"};
}

// Returns the worse of the rulings by max_drop and max_increase; nothing if neither is set.
std::optional<Ruling> judge_against_stored(const Limit& limit, const StoredInterval& interval) {
  std::optional<Ruling> ruling;
  const auto apply_limit = [&](const std::optional<MaxChange>& change, double sign,
                               std::string_view verb) {
    if (!change) return;
    keep_worse(ruling,
               judge_interval(interval, sign, relative_amount(change->amount, interval.stored),
                              fmt::format("may {} {}", verb, show(change->amount))));
  };
  apply_limit(limit.max_drop, -1, "drop");
  apply_limit(limit.max_increase, 1, "rise");
  return ruling;
}

// Judges max and min, which need no baseline: the confidence interval of this run's median is
// compared with the number. Nothing if neither is set.
std::optional<Ruling> judge_max_and_min(const Limit& limit, const Measurement& current,
                                        double level) {
  if (!limit.max && !limit.min) return std::nullopt;
  const auto interval = stats::median_interval(current.samples, level);
  if (!interval) return ruling_on_bad_samples(current);
  const auto number_text = [&](double value) { return unit::show(current.metric, value); };
  const std::string measured = fmt::format("{} ({} to {})", number_text(interval->median),
                                           number_text(interval->low), number_text(interval->high));
  std::optional<Ruling> ruling = Ruling{};
  // Both are distances of the interval's ends beyond the bound; below 0 if an end keeps it.
  const auto apply_bound = [&](double nearest_excess, double furthest_excess, const Amount& bound,
                               std::string_view side) {
    const std::string limit_text = number_text(bound.value);
    if (nearest_excess > 0) {
      keep_worse(ruling, {Outcome::fail, fmt::format("{} is {} {}", measured, side, limit_text)});
    } else if (furthest_excess > 0) {
      keep_worse(ruling, {Outcome::inconclusive,
                          fmt::format("{} holds the limit {}: not decided", measured, limit_text)});
    }
  };
  if (limit.max) {
    apply_bound(interval->low - limit.max->value, interval->high - limit.max->value, *limit.max,
                "above max");
  }
  if (limit.min) {
    apply_bound(limit.min->value - interval->high, limit.min->value - interval->low, *limit.min,
                "below min");
  }
  return ruling;
}

// The sessions of this machine class; null if none are stored.
const std::vector<Session>* find_sessions(const Comparison& comparison) {
  if (comparison.base == nullptr) return nullptr;
  return look_up(comparison.base->sessions, comparison.candidate.provenance.machine_class);
}

// The stored sessions that have samples of a metric; if there are none, the reason.
struct StoredSamples {
  std::vector<const Session*> sessions;
  std::string why_none;
};

// Returns the stored sessions (gate runs) of this machine class that have samples of a metric; if
// there are none, the reason.
StoredSamples stored_samples(const Comparison& comparison, const std::string& metric) {
  const auto* sessions = find_sessions(comparison);
  StoredSamples stored;
  if (sessions != nullptr) {
    for (const Session& session : *sessions) {
      const auto* samples = look_up(session.samples, metric);
      if (samples != nullptr && !samples->empty()) stored.sessions.push_back(&session);
    }
  }
  if (!stored.sessions.empty()) return stored;
  if (comparison.base == nullptr) {
    stored.why_none = comparison.baseline_choice.reason;
  } else if (comparison.base->sessions.empty()) {
    stored.why_none = "no timed samples are stored";
  } else if (sessions == nullptr) {
    stored.why_none = "stored samples are of other machine classes";
  } else {
    stored.why_none = "no samples of this metric are stored for this machine class";
  }
  return stored;
}

// Returns true for the cell of the reference workload. Its times show how fast the machine is, and
// are never judged.
bool is_reference(const Profile& candidate) {
  return candidate.reference && candidate.reference->cell == candidate.cell.str();
}

bool same_workload(const Reference& a, const std::optional<Reference>& b) {
  return b && a.cell == b->cell && a.fingerprint == b->fingerprint &&
         a.engine_build == b->engine_build && a.metric == b->metric;
}

bool are_positive(const std::vector<double>& rates) {
  return !rates.empty() &&
         std::ranges::all_of(rates, [](double rate) { return std::isfinite(rate) && rate > 0; });
}

// The samples of one metric, of stored sessions and of this run.
struct Samples {
  std::vector<std::vector<double>> sessions;
  std::vector<double> current;
};

Samples uncorrected_samples(const Measurement& current,
                            const std::vector<const Session*>& sessions) {
  Samples samples{{}, current.samples};
  for (const Session* session : sessions) {
    samples.sessions.push_back(session->samples.at(current.metric.name));
  }
  return samples;
}

// Scales `samples` to the machine speed `speed`, each by the rate of the reference workload in the
// same round. False if a round lacks a sample or a rate.
bool scale_to_speed(std::vector<double>& samples, const std::vector<double>& rates, double speed,
                    bool higher_is_better) {
  if (samples.size() != rates.size() || !are_positive(rates)) return false;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double faster = rates[i] / speed;
    samples[i] = higher_is_better ? samples[i] / faster : samples[i] * faster;
  }
  return true;
}

// Scales all samples to the machine's median speed in this run, which the reference workload
// measures. Nothing unless this run and every session ran that workload beside each sample.
std::optional<Samples> correct_for_speed(const Profile& candidate, const Measurement& current,
                                         const std::vector<const Session*>& sessions) {
  if (!candidate.reference || current.metric.kind != Kind::time || sessions.empty()) {
    return std::nullopt;
  }
  const Reference& reference = *candidate.reference;
  if (!are_positive(reference.rates)) return std::nullopt;
  const double speed = *stats::median(reference.rates);
  const bool higher = current.metric.better == unit::Better::higher;
  Samples samples = uncorrected_samples(current, sessions);
  for (std::size_t session = 0; session < sessions.size(); ++session) {
    const auto& stored = sessions[session]->reference;
    if (!same_workload(reference, stored)) return std::nullopt;
    if (!scale_to_speed(samples.sessions[session], stored->rates, speed, higher))
      return std::nullopt;
  }
  if (!scale_to_speed(samples.current, reference.rates, speed, higher)) return std::nullopt;
  return samples;
}

// Returns a warning if a limit is on p90 or p99 of so few requests that it lies between the two
// slowest.
std::optional<std::string> percentile_warning(const Profile& candidate, const Judgement& metric) {
  const Limit& limit = metric.limit;
  const std::string& name = metric.metric.name;
  if (!candidate.requests || limit.mode == Mode::off || !limit.is_set()) return std::nullopt;
  // Gaps between tokens are many more than requests.
  if (name.starts_with("inter_token_latency")) return std::nullopt;
  // A percentile of k requests above 1 - 1/k lies between the two largest.
  const bool is_p90 = name.find("_p90_") != std::string::npos;
  const bool is_p99 = name.find("_p99_") != std::string::npos;
  if (!is_p90 && !is_p99) return std::nullopt;
  const std::int64_t min_requests = is_p90 ? 10 : 100;
  if (*candidate.requests >= min_requests) return std::nullopt;
  return fmt::format(
      "{} of {} requests a start lies between the two slowest of them: {} requests are the fewest "
      "that it needs (requests on the prompt)",
      is_p90 ? "p90" : "p99", *candidate.requests, min_requests);
}

// Judges limits on a change by pairs with the base program, and max and min by the candidate's
// runs. A metric that only the base reports is an error; one that it lacks is new.
void judge_with_pairs(const Comparison& comparison, const Measurement& current,
                      Judgement& judgement) {
  const Limit& limit = judgement.limit;
  Ruling& ruling = judgement;
  if (limit.mode == Mode::off) {
    ruling.reason = "switched off";
    return;
  }
  const auto* paired = look_up(comparison.paired_metrics, current.metric.name, nullptr);
  const auto* base_only = find_by_metric(comparison.pairs->missing, current.metric.name);
  if (paired != nullptr) {
    judge_pairs(comparison, *paired, judgement);
  } else if (base_only != nullptr && limit.is_set()) {
    judgement.baseline = base_only->warm_up.base;
    ruling = {Outcome::error,
              fmt::format("could not be measured: the base's warm-up gave {}, the candidate's "
                          "nothing",
                          unit::show(base_only->metric, base_only->warm_up.base.value_or(0)))};
  } else if (limit.max_drop || limit.max_increase) {
    ruling = {Outcome::new_, "the base program does not report it"};
  }
  const bool has_bound = limit.max || limit.min;
  if (has_bound && current.samples.empty()) {
    if (ruling.verdict == Outcome::info) {
      ruling = {Outcome::inconclusive, "no measured run of the candidate gave it"};
    }
  } else if (auto bound_ruling =
                 judge_max_and_min(limit, current, comparison.policy.stored_level)) {
    if (ruling.verdict != Outcome::info) keep_worse(bound_ruling, ruling);
    ruling = *bound_ruling;
  }
  apply_limit_mode(limit, ruling);
}

// Returns how much runs are assumed to differ before several are stored. Memory is taken in pieces
// by each process, and hardly depends on the machine's day: runs are assumed to differ as far as
// the processes of the stored runs lie apart. A quality does not depend on the machine.
double assumed_run_sd(const Policy& policy, Kind kind,
                      const std::vector<std::vector<double>>& sessions) {
  if (kind == Kind::quality) return 0;
  if (kind != Kind::memory) return policy.assumed_session_sd;
  constexpr double k_least = 0.005;  // printed digits and a rare page more
  constexpr std::size_t k_enough = 3;
  double widest = k_least;
  for (const std::vector<double>& samples : sessions) {
    const auto [low, high] = std::ranges::minmax(samples);
    if (samples.size() < k_enough || !(low > 0)) return policy.assumed_session_sd;
    widest = std::max(widest, high / low - 1);
  }
  return std::min(widest, policy.assumed_session_sd);
}

// Returns the interval of the change against stored samples.
std::optional<StoredInterval> stored_interval(const Comparison& comparison,
                                              const Measurement& current,
                                              const std::vector<const Session*>& sessions) {
  const auto corrected = correct_for_speed(comparison.candidate, current, sessions);
  const Samples samples = corrected ? *corrected : uncorrected_samples(current, sessions);
  return stats::compare_with_stored(
      samples.sessions, samples.current,
      {comparison.policy.stored_level,
       assumed_run_sd(comparison.policy, current.metric.kind, samples.sessions)});
}

// Returns the ruling on a time that no stored sample is comparable with. An untrusted run may have
// been measured so, but for a metric that is newer than the samples of its machine class.
Ruling ruling_without_samples(const Comparison& comparison, const StoredSamples& stored) {
  const bool is_newer = find_sessions(comparison) != nullptr;
  if (!comparison.policy.require_times || is_newer) return {Outcome::new_, stored.why_none};
  return {
      Outcome::inconclusive,
      fmt::format("nothing to compare with: the run has no pairs with the base, and {}; measure "
                  "with --against, or judge counts alone",
                  stored.why_none)};
}

// Judges a time against stored samples of earlier runs, and by max and min. A fail against stored
// samples alone only makes it suspected, so that paired runs can confirm it.
void judge_with_samples(const Comparison& comparison, const Measurement& current,
                        Judgement& judgement) {
  const Limit& limit = judgement.limit;
  const StoredSamples stored = stored_samples(comparison, current.metric.name);
  const auto interval = stored_interval(comparison, current, stored.sessions);
  if (interval) {
    judgement.baseline = interval->stored;
    judgement.change = interval->change;
    judgement.low = interval->low;
    judgement.high = interval->high;
    judgement.baseline_sessions = static_cast<std::int64_t>(interval->sessions);
  }
  if (limit.mode == Mode::off) judgement.reason = "switched off";
  if (!limit.is_set() || limit.mode == Mode::off) return;
  std::optional<Ruling> ruling = judge_max_and_min(limit, current, comparison.policy.stored_level);
  if (limit.max_drop || limit.max_increase) {
    Ruling change_ruling = ruling_without_samples(comparison, stored);
    if (interval) {
      change_ruling = *judge_against_stored(limit, *interval);
    } else if (stored.why_none.empty()) {
      change_ruling = ruling_on_bad_samples(current);
    }
    // A plain number is a judgement, also where nothing is stored to compare with.
    if (ruling && change_ruling.verdict == Outcome::new_) {
      judgement.warnings.push_back("its change is not judged: " + change_ruling.reason);
    } else {
      judgement.suspected = change_ruling.verdict == Outcome::fail && limit.mode == Mode::gate &&
                            (!ruling || ruling->verdict != Outcome::fail);
      keep_worse(ruling, change_ruling);
    }
  }
  if (ruling) judgement.set_ruling(*ruling);
  apply_limit_mode(limit, judgement);
}

// Judges one time: by pairs of runs with the base program if there are any, else against stored
// samples. CPU use is compared in pairs alone; without them only its limits `max` and `min` apply.
// A reference workload, which only measures the machine, has no limits.
Judgement judge_time(const Comparison& comparison, const Measurement& current) {
  Judgement judgement = comparison.start_judgement(current);
  judgement.warnings = current.warnings;
  if (is_reference(comparison.candidate)) judgement.limit = {};
  if (auto warning = percentile_warning(comparison.candidate, judgement)) {
    judgement.warnings.push_back(std::move(*warning));
  }
  judgement.current = current.value();
  judgement.samples = std::ssize(current.samples);
  if (comparison.pairs != nullptr) {
    judge_with_pairs(comparison, current, judgement);
  } else if (current.metric.kind == Kind::usage) {
    judgement.reason = "sampled: judged beside a base program alone (--against)";
    const auto ruling = judge_max_and_min(judgement.limit, current, comparison.policy.stored_level);
    if (ruling && judgement.limit.mode != Mode::off) judgement.set_ruling(*ruling);
    apply_limit_mode(judgement.limit, judgement);
  } else {
    judge_with_samples(comparison, current, judgement);
  }
  return judgement;
}

}  // namespace

// Judges all times of the candidate. Metrics that only the pairs' warm-ups reported are
// inconclusive, and are listed too.
std::vector<Judgement> judge_times(const Comparison& comparison) {
  std::vector<Judgement> judgements;
  const auto& metrics = comparison.candidate.metrics;
  for (const auto& [name, measured] : metrics) {
    if (measured.metric.kind != Kind::count && !measured.samples.empty()) {
      judgements.push_back(judge_time(comparison, measured));
    }
  }
  if (comparison.pairs == nullptr) return judgements;
  // If the budget never reached this cell, its metrics are known from the warm-ups alone. They are
  // inconclusive, and have to be listed; so have those that only the base reported.
  for (const auto* paired_metrics : {&comparison.pairs->metrics, &comparison.pairs->missing}) {
    for (const profile::PairedMetric& paired : *paired_metrics) {
      const Measurement* measured = look_up(metrics, paired.metric.name);
      if (measured != nullptr && !measured->samples.empty()) continue;
      Measurement without_samples;
      without_samples.metric = paired.metric;
      without_samples.source = paired.source;
      Judgement judgement = judge_time(comparison, without_samples);
      if (judgement.limit.is_set() && judgement.limit.mode != Mode::off) {
        judgements.push_back(std::move(judgement));
      }
    }
  }
  return judgements;
}

// Lists times with a limit that the last stored session has and this run lacks, as errors. Empty
// if this run failed, took no times or is the reference workload.
std::vector<Judgement> judge_missing_times(const Comparison& comparison) {
  const Profile& candidate = comparison.candidate;
  const auto* sessions = find_sessions(comparison);
  if (sessions == nullptr || sessions->empty() || candidate.timed_runs == 0 ||
      !candidate.errors.empty() || is_reference(candidate)) {
    return {};
  }
  std::vector<Judgement> judgements;
  for (const auto& [name, samples] : sessions->back().samples) {
    const auto metric = unit::find_metric(name);
    if (candidate.metrics.contains(name) || !metric || metric->kind == Kind::count) continue;
    // Pairs have judged it already.
    if (comparison.pairs != nullptr && (comparison.paired_metrics.contains(name) ||
                                        find_by_metric(comparison.pairs->missing, name) != nullptr))
      continue;
    Measurement without_samples;
    without_samples.metric = *metric;
    Judgement judgement = comparison.start_judgement(without_samples);
    if (!judgement.limit.is_set() || judgement.limit.mode == Mode::off) continue;
    judgement.set_ruling(
        {Outcome::error, "could not be measured: samples are stored, this run gave none"});
    apply_limit_mode(judgement.limit, judgement);
    judgements.push_back(std::move(judgement));
  }
  return judgements;
}

// Returns how the reference workload, which shows the machine's speed, was used to correct times;
// or why it was not. Nothing without one, or with pairs.
std::optional<std::string> describe_reference_use(const Comparison& comparison) {
  const auto& reference = comparison.candidate.reference;
  if (!reference || comparison.pairs != nullptr) return std::nullopt;
  if (is_reference(comparison.candidate)) {
    return "the reference workload: its times tell how fast the machine is, and are not judged";
  }
  const auto* sessions = find_sessions(comparison);
  if (sessions == nullptr || sessions->empty()) return std::nullopt;
  std::vector<double> stored_rates;
  for (const Session& session : *sessions) {
    const auto& stored = session.reference;
    if (!same_workload(*reference, stored) || !are_positive(stored->rates)) {
      return fmt::format(
          "the reference workload {} as it is did not run beside the stored samples: times are "
          "held to them as they are, until this cell is accepted again",
          reference->cell);
    }
    stored_rates.push_back(*stats::median(stored->rates));
  }
  // True if every round has both a sample of the metric and a rate of the reference workload.
  const auto is_complete = [&](const Measurement& measured) {
    if (measured.samples.size() != reference->rates.size()) return false;
    return std::ranges::all_of(*sessions, [&](const Session& session) {
      const auto* samples = look_up(session.samples, measured.metric.name);
      return samples == nullptr || samples->size() == session.reference->rates.size();
    });
  };
  for (const auto& [name, measured] : comparison.candidate.metrics) {
    if (measured.metric.kind != Kind::time || measured.samples.empty()) continue;
    if (is_complete(measured)) continue;
    return fmt::format(
        "a round lacks a process of this cell or of the reference workload {}: {} is held to "
        "stored samples as they are",
        reference->cell, unit::display_name(measured.metric));
  }
  if (!are_positive(reference->rates)) return std::nullopt;
  return fmt::format(
      "times are held to stored ones by the reference workload {}, which runs at {:.2f} of its "
      "stored speed",
      reference->cell, *stats::median(reference->rates) / *stats::median(stored_rates));
}

std::optional<std::string> describe_starts(const Comparison& comparison) {
  const auto& requests = comparison.candidate.requests;
  if (!requests || comparison.pairs == nullptr || comparison.pairs->pairs == 0) return std::nullopt;
  return fmt::format(
      "times are of {} fresh starts of each server, {} requests each: a start is one number, "
      "however many requests it has, and what is rarer than one start in {} has hardly been seen",
      comparison.pairs->pairs, *requests, comparison.pairs->pairs);
}

}  // namespace weir::verdict
