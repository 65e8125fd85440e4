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

class Search {
 public:
  Search(const CapacityPlan& plan, sys::Streams& streams, const sys::Clock& clock,
         const sys::Stop& stop)
      : plan_(plan), streams_(streams), clock_(clock), stop_(stop) {}

  Result<Capacity> go() {
    double kept = plan_.lowest, missed = plan_.highest;
    WEIR_TRY(found_.below_lowest, is_missed(kept));
    if (found_.below_lowest) return answer(kept);
    WEIR_TRY(const bool highest_missed, is_missed(missed));
    found_.above_highest = !highest_missed;
    if (found_.above_highest) return answer(missed);
    while (missed / kept > 1 + plan_.closeness) {
      const double between = std::sqrt(kept * missed);
      WEIR_TRY(const bool is_too_high, is_missed(between));
      (is_too_high ? missed : kept) = between;
    }
    return answer(std::sqrt(kept * missed));
  }

 private:
  Result<bool> is_missed(double rate) {
    LoadPlan plan = plan_.load;
    plan.loop = OpenLoop{rate, static_cast<std::uint64_t>(plan.seed)};
    WEIR_TRY(Load load, drive(plan, streams_, clock_, stop_));
    for (const auto& request : load.requests) {
      if (!request.failure) continue;
      return fail(Code::data, "at {:.3g} requests/s: {} {}", rate,
                  profile::to_string(request.failure->fault), request.failure->detail);
    }
    if (load.not_sent > 0) return fail(Code::data, "at {:.3g} requests/s: not all were sent", rate);
    found_.tried.push_back(rate_tried(rate, load.requests, plan_.objectives));
    const bool kept = found_.tried.back().is_kept();
    if (kept) found_.last = std::move(load);
    return !kept;
  }

  Capacity answer(double rate) {
    found_.rate = rate;
    found_.low = plan_.lowest;
    found_.high = plan_.highest;
    for (const TriedRate& tried : found_.tried) {
      if (tried.high <= k_may_miss) found_.low = std::max(found_.low, tried.rate);
      if (tried.low > k_may_miss) found_.high = std::min(found_.high, tried.rate);
    }
    found_.low = std::min(found_.low, rate);
    found_.high = std::max(found_.high, rate);
    return std::move(found_);
  }

  const CapacityPlan& plan_;
  sys::Streams& streams_;
  const sys::Clock& clock_;
  const sys::Stop& stop_;
  Capacity found_;
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
