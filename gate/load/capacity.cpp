// Searches the highest rate of requests at which a server keeps its objectives.
#include "gate/load/capacity.hpp"

#include <cmath>

#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::load {
namespace {

constexpr double k_allowed_misses = 0.01;

using Objective = std::optional<double> profile::ServedObjectives::*;

// Returns the latency of a request that `objective` limits.
double latency_seconds(const profile::ServedRequest& request, Objective objective) {
  const profile::Latencies latencies = profile::measure_latencies(request);
  if (objective == &profile::ServedObjectives::first_token_seconds) return latencies.first_token;
  if (objective == &profile::ServedObjectives::end_to_end_seconds) return latencies.end_to_end;
  return latencies.per_token.value_or(0);
}

// Returns the share of requests whose latency exceeds `limit` (seconds), with its 95 % interval.
// The interval follows from the shares of 20 stretches of consecutive requests, since neighbours
// wait together.
TriedRate measure_misses(double rate, std::span<const profile::ServedRequest> requests,
                         Objective objective, double limit) {
  constexpr std::size_t k_stretches = 20;
  constexpr double k_level = 0.05;
  std::vector<double> shares;
  const std::size_t stretches = std::min(k_stretches, requests.size());
  for (std::size_t i = 0; i < stretches; ++i) {
    const std::size_t begin = requests.size() * i / stretches,
                      end = requests.size() * (i + 1) / stretches;
    const auto missed = std::ranges::count_if(
        requests.subspan(begin, end - begin),
        [&](const auto& request) { return latency_seconds(request, objective) > limit; });
    shares.push_back(static_cast<double>(missed) / static_cast<double>(end - begin));
  }
  TriedRate tried{.rate = rate};
  const double stretch_count = static_cast<double>(shares.size());
  for (const double share : shares) tried.missed += share / stretch_count;
  if (shares.size() < 2) return tried;
  double sum_of_squares = 0;
  for (const double share : shares)
    sum_of_squares += (share - tried.missed) * (share - tried.missed);
  const double half_interval = stats::student_quantile(1 - k_level / 2, stretch_count - 1) *
                               std::sqrt(sum_of_squares / (stretch_count - 1) / stretch_count);
  tried.low = std::max(0.0, tried.missed - half_interval);
  // Stretches without a miss do not vary. If the true share is ln(0.05) / -n, n requests have no
  // miss in 5 of 100 cases ("rule of three").
  tried.high = std::min(1.0, std::max(tried.missed + half_interval,
                                      -std::log(k_level) / static_cast<double>(requests.size())));
  return tried;
}

struct Crossing {
  double rate = 0, low = 0, high = 0;  // the capacity, and its 95 % interval
};

// Returns the rate at which k_allowed_misses of the requests miss, by logistic regression of the
// shares on the logarithms of the rates near `around`. Each rate is one observation, whatever its
// spread (sandwich estimator of the variance, HC3). Nothing if those rates show no rise.
std::optional<Crossing> fit_crossing(std::span<const TriedRate> tried, double around) {
  constexpr double k_max_log_distance = 0.1, k_level = 0.05;
  constexpr double k_min_missed_share =
      k_allowed_misses / 10;  // no miss is no proof that none will be
  struct Point {
    double x, share;
  };
  std::vector<Point> points;
  double a = 0, b = 0;  // logit(share) = a + b x
  for (const TriedRate& point : tried) {
    const double x = std::log(point.rate / around);
    if (std::fabs(x) > k_max_log_distance) continue;
    points.push_back({x, std::clamp(point.missed, k_min_missed_share, 1 - k_min_missed_share)});
    a += points.back().share;
  }
  const double count = static_cast<double>(points.size());
  if (count < 3) return std::nullopt;
  const auto logit = [](double share) { return std::log(share / (1 - share)); };
  a = logit(a / count);
  const auto deviance = [&](double at, double slope) {
    double sum = 0;
    for (const auto& [x, share] : points) {
      const double value = at + slope * x;
      sum += std::log1p(std::exp(value)) - share * value;
    }
    return sum;
  };
  double aa = 0, ab = 0, bb = 0, determinant = 0;
  constexpr int k_max_steps = 50;
  for (int step = 0; step < k_max_steps; ++step) {  // Newton's, shortened where it overshoots
    double to_a = 0, to_b = 0;
    aa = 0;
    ab = 0;
    bb = 0;
    for (const auto& [x, share] : points) {
      const double fitted = 1 / (1 + std::exp(-a - b * x)), weight = fitted * (1 - fitted);
      to_a += share - fitted;
      to_b += (share - fitted) * x;
      aa += weight;
      ab += weight * x;
      bb += weight * x * x;
    }
    determinant = aa * bb - ab * ab;
    if (!(determinant > 0)) return std::nullopt;
    const double by_a = (bb * to_a - ab * to_b) / determinant;
    const double by_b = (aa * to_b - ab * to_a) / determinant;
    double part = 1;
    while (part > 1e-6 && deviance(a + part * by_a, b + part * by_b) > deviance(a, b)) part /= 2;
    a += part * by_a;
    b += part * by_b;
    if (std::fabs(part * by_b) < 1e-6) break;
  }
  if (!(b > 1)) return std::nullopt;  // half as many again for half as much load again
  const double x = (logit(k_allowed_misses) - a) / b;
  const double on_a = (bb - ab * x) / determinant, on_b = (aa * x - ab) / determinant;
  double variance = 0;  // variance of a + b x
  for (const auto& [at, share] : points) {
    const double fitted = 1 / (1 + std::exp(-a - b * at));
    const double leverage = fitted * (1 - fitted) * (bb - 2 * ab * at + aa * at * at) / determinant;
    const double off = (share - fitted) / std::max(0.1, 1 - leverage) * (on_a + on_b * at);
    variance += off * off;
  }
  const double reach =
      stats::student_quantile(1 - k_level / 2, count - 2) * std::sqrt(variance) / b;
  return Crossing{around * std::exp(x), around * std::exp(x - reach), around * std::exp(x + reach)};
}

// Tries rates until the capacity is known closely enough.
class Search {
 public:
  Search(const CapacityPlan& plan, sys::Streams& streams, const sys::Clock& clock,
         const sys::Stop& stop)
      : plan_(plan), streams_(streams), clock_(clock), stop_(stop) {}

  // Bisects between the lowest and the highest rate, then tries rates near the result. May be
  // called once.
  Result<Capacity> run() {
    constexpr double k_coarse = 0.04;  // relative distance of the rates when bisection ends
    constexpr double k_apart = 0.02;   // relative distance of later rates from the capacity so far
    constexpr int k_min_steps = 4, k_max_steps = 10;
    double passing = plan_.lowest, missed = plan_.highest;
    WEIR_TRY(capacity_.below_lowest, misses_at(passing));
    if (capacity_.below_lowest) return set_unbounded(passing);
    WEIR_TRY(const bool highest_missed, misses_at(missed));
    capacity_.above_highest = !highest_missed;
    if (capacity_.above_highest) return set_unbounded(missed);
    while (missed / passing > 1 + k_coarse) {
      const double between = std::sqrt(passing * missed);
      WEIR_TRY(const bool is_too_high, misses_at(between));
      if (is_too_high) {
        missed = between;
      } else {
        passing = between;
      }
    }
    (void)set_unbounded(std::sqrt(passing * missed));
    for (int more = 0; !(refine() && more >= k_min_steps) && more < k_max_steps; ++more) {
      const double beside = capacity_.rate * (more % 2 == 0 ? 1 - k_apart : 1 + k_apart);
      WEIR_CHECK(misses_at(std::clamp(beside, plan_.lowest, plan_.highest)));
    }
    return std::move(capacity_);
  }

 private:
  // Runs a load at `rate` and returns true if it misses an objective too often. Keeps the load of
  // the highest rate that passed.
  Result<bool> misses_at(double rate) {
    LoadPlan plan = plan_.load;
    plan.loop =
        OpenLoop{rate, (static_cast<std::uint64_t>(plan.seed) << 16) + capacity_.tried.size()};
    WEIR_TRY(Load load, drive(plan, streams_, clock_, stop_));
    for (const auto& request : load.requests) {
      if (!request.failure) continue;
      return fail(Code::data, "at {:.3g} requests/s: {} {}", rate,
                  profile::to_string(request.failure->fault), request.failure->detail);
    }
    if (load.not_sent > 0) return fail(Code::data, "at {:.3g} requests/s: not all were sent", rate);
    capacity_.tried.push_back(evaluate_rate(rate, load.requests, plan_.objectives));
    const bool is_kept = capacity_.tried.back().is_kept();
    if (is_kept && rate > last_rate_) {
      capacity_.last = std::move(load);
      last_rate_ = rate;
    }
    return !is_kept;
  }

  // Moves the capacity to the crossing that all rates near it give. Returns true if its interval is
  // narrow enough.
  bool refine() {
    constexpr double k_max_step = 0.03;  // largest relative step, as few rates decide it
    const double min_rate = std::max(plan_.lowest, capacity_.rate / (1 + k_max_step));
    const double max_rate = std::min(plan_.highest, capacity_.rate * (1 + k_max_step));
    const auto at = fit_crossing(capacity_.tried, capacity_.rate);
    if (!at) {
      (void)set_unbounded(capacity_.tried.back().is_kept() ? max_rate : min_rate);
      return false;
    }
    capacity_.rate = std::clamp(at->rate, min_rate, max_rate);
    capacity_.low = std::clamp(at->low, plan_.lowest, capacity_.rate);
    capacity_.high = std::clamp(at->high, capacity_.rate, plan_.highest);
    return capacity_.high / capacity_.low < 1 + 2 * plan_.closeness;
  }

  // Sets the capacity to `rate`, with the whole range of the search as its interval.
  const Capacity& set_unbounded(double rate) {
    capacity_.rate = rate;
    capacity_.low = plan_.lowest;
    capacity_.high = plan_.highest;
    return capacity_;
  }

  const CapacityPlan& plan_;
  sys::Streams& streams_;
  const sys::Clock& clock_;
  const sys::Stop& stop_;
  Capacity capacity_;
  double last_rate_ = 0;  // the rate of capacity_.last
};

}  // namespace

bool TriedRate::is_kept() const { return missed <= k_allowed_misses; }

// Returns the share of requests that miss the latency objective which is missed most, at `rate`
// requests a second.
TriedRate evaluate_rate(double rate, std::span<const profile::ServedRequest> requests,
                        const profile::ServedObjectives& objectives) {
  TriedRate worst{.rate = rate, .missed = 0, .low = 0, .high = 0};
  for (const Objective objective : {&profile::ServedObjectives::first_token_seconds,
                                    &profile::ServedObjectives::per_token_seconds,
                                    &profile::ServedObjectives::end_to_end_seconds}) {
    if (!(objectives.*objective)) continue;
    const TriedRate tried = measure_misses(rate, requests, objective, *(objectives.*objective));
    if (tried.missed >= worst.missed) worst = tried;
  }
  return worst;
}

Result<Capacity> find_capacity(const CapacityPlan& plan, sys::Streams& streams,
                               const sys::Clock& clock, const sys::Stop& stop) {
  if (!plan.objectives.any()) return fail(Code::usage, "a capacity needs an objective");
  if (!(plan.lowest > 0) || !(plan.highest > plan.lowest) || !(plan.closeness > 0)) {
    return fail(Code::usage, "a capacity between {} and {} requests a second", plan.lowest,
                plan.highest);
  }
  return Search(plan, streams, clock, stop).run();
}

}  // namespace weir::load
