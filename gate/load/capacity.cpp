#include "gate/load/capacity.hpp"

#include <cmath>

#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::load {
namespace {

constexpr double k_may_miss = 0.01;

using Objective = std::optional<double> profile::ServedObjectives::*;

double seconds_of(const profile::ServedRequest& request, Objective objective) {
  const profile::Latencies found = profile::latencies_of(request);
  if (objective == &profile::ServedObjectives::first_token_seconds) return found.first_token;
  if (objective == &profile::ServedObjectives::end_to_end_seconds) return found.end_to_end;
  return found.per_token.value_or(0);
}

TriedRate share_missed(double rate, std::span<const profile::ServedRequest> requests,
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
        [&](const auto& request) { return seconds_of(request, objective) > limit; });
    shares.push_back(static_cast<double>(missed) / static_cast<double>(end - begin));
  }
  TriedRate tried{.rate = rate};
  const double count = static_cast<double>(shares.size());
  for (const double share : shares) tried.missed += share / count;
  if (shares.size() < 2) return tried;
  double squares = 0;
  for (const double share : shares) squares += (share - tried.missed) * (share - tried.missed);
  const double reach = stats::student_quantile(1 - k_level / 2, count - 1) *
                       std::sqrt(squares / (count - 1) / count);
  tried.low = std::max(0.0, tried.missed - reach);
  // Stretches without a miss do not vary, and say no more than their number does: of n requests
  // none is missed in 5 of 100 cases where ln(0.05) / -n miss ("rule of three").
  tried.high = std::min(1.0, std::max(tried.missed + reach,
                                      -std::log(k_level) / static_cast<double>(requests.size())));
  return tried;
}

struct Crossing {
  double rate = 0, low = 0, high = 0;  // the capacity, and its 95 % interval
};

// Where k_may_miss of the requests miss, by logistic regression of the shares on the logarithms of
// the rates near `around`. Each rate is one observation, whatever its spread (sandwich estimator of
// the variance, HC3). Nothing where those rates show no rise.
std::optional<Crossing> crossing(std::span<const TriedRate> tried, double around) {
  constexpr double k_near = 0.1, k_level = 0.05;
  constexpr double k_least = k_may_miss / 10;  // no miss is no proof that none will be
  struct Point {
    double x, share;
  };
  std::vector<Point> points;
  double a = 0, b = 0;  // logit(share) = a + b x
  for (const TriedRate& one : tried) {
    const double x = std::log(one.rate / around);
    if (std::fabs(x) > k_near) continue;
    points.push_back({x, std::clamp(one.missed, k_least, 1 - k_least)});
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
  constexpr int k_most_steps = 50;
  for (int step = 0; step < k_most_steps; ++step) {  // Newton's, shortened where it overshoots
    double to_a = 0, to_b = 0;
    aa = ab = bb = 0;
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
  const double x = (logit(k_may_miss) - a) / b;
  const double on_a = (bb - ab * x) / determinant, on_b = (aa * x - ab) / determinant;
  double variance = 0;  // of a + b x
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

class Search {
 public:
  Search(const CapacityPlan& plan, sys::Streams& streams, const sys::Clock& clock,
         const sys::Stop& stop)
      : plan_(plan), streams_(streams), clock_(clock), stop_(stop) {}

  Result<Capacity> go() {
    constexpr double k_coarse = 0.04;  // between the rates where bisection ends
    constexpr double k_apart = 0.02;   // of rates beyond, from what is the capacity so far
    constexpr int k_least = 4, k_most = 10;
    double kept = plan_.lowest, missed = plan_.highest;
    WEIR_TRY(found_.below_lowest, is_missed(kept));
    if (found_.below_lowest) return unbounded(kept);
    WEIR_TRY(const bool highest_missed, is_missed(missed));
    found_.above_highest = !highest_missed;
    if (found_.above_highest) return unbounded(missed);
    while (missed / kept > 1 + k_coarse) {
      const double between = std::sqrt(kept * missed);
      WEIR_TRY(const bool is_too_high, is_missed(between));
      if (is_too_high) {
        missed = between;
      } else {
        kept = between;
      }
    }
    (void)unbounded(std::sqrt(kept * missed));
    for (int more = 0; !(narrow() && more >= k_least) && more < k_most; ++more) {
      const double beside = found_.rate * (more % 2 == 0 ? 1 - k_apart : 1 + k_apart);
      WEIR_CHECK(is_missed(std::clamp(beside, plan_.lowest, plan_.highest)));
    }
    return std::move(found_);
  }

 private:
  Result<bool> is_missed(double rate) {
    LoadPlan plan = plan_.load;
    plan.loop = OpenLoop{rate, (static_cast<std::uint64_t>(plan.seed) << 16) + found_.tried.size()};
    WEIR_TRY(Load load, drive(plan, streams_, clock_, stop_));
    for (const auto& request : load.requests) {
      if (!request.failure) continue;
      return fail(Code::data, "at {:.3g} requests/s: {} {}", rate,
                  profile::to_string(request.failure->fault), request.failure->detail);
    }
    if (load.not_sent > 0) return fail(Code::data, "at {:.3g} requests/s: not all were sent", rate);
    found_.tried.push_back(rate_tried(rate, load.requests, plan_.objectives));
    const bool kept = found_.tried.back().is_kept();
    if (kept && rate > last_rate_) {
      found_.last = std::move(load);
      last_rate_ = rate;
    }
    return !kept;
  }

  // Moves the capacity to where all rates near it put it. True if its interval is narrow enough.
  bool narrow() {
    constexpr double k_longest = 0.03;  // by what a few rates at the edge say
    const double least = std::max(plan_.lowest, found_.rate / (1 + k_longest));
    const double most = std::min(plan_.highest, found_.rate * (1 + k_longest));
    const auto at = crossing(found_.tried, found_.rate);
    if (!at) {
      (void)unbounded(found_.tried.back().is_kept() ? most : least);
      return false;
    }
    found_.rate = std::clamp(at->rate, least, most);
    found_.low = std::clamp(at->low, plan_.lowest, found_.rate);
    found_.high = std::clamp(at->high, found_.rate, plan_.highest);
    return found_.high / found_.low < 1 + 2 * plan_.closeness;
  }

  // A capacity of which nothing more is known.
  const Capacity& unbounded(double rate) {
    found_.rate = rate;
    found_.low = plan_.lowest;
    found_.high = plan_.highest;
    return found_;
  }

  const CapacityPlan& plan_;
  sys::Streams& streams_;
  const sys::Clock& clock_;
  const sys::Stop& stop_;
  Capacity found_;
  double last_rate_ = 0;  // of found_.last
};

}  // namespace

bool TriedRate::is_kept() const { return missed <= k_may_miss; }

TriedRate rate_tried(double rate, std::span<const profile::ServedRequest> requests,
                     const profile::ServedObjectives& objectives) {
  TriedRate worst{.rate = rate, .missed = 0, .low = 0, .high = 0};
  for (const Objective objective : {&profile::ServedObjectives::first_token_seconds,
                                    &profile::ServedObjectives::per_token_seconds,
                                    &profile::ServedObjectives::end_to_end_seconds}) {
    if (!(objectives.*objective)) continue;
    const TriedRate tried = share_missed(rate, requests, objective, *(objectives.*objective));
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
  return Search(plan, streams, clock, stop).go();
}

}  // namespace weir::load
