// The highest rate of requests at which a server keeps its objectives: bisection over rates, then
// more rates near its end, and what all of those say together.
//
// A rate passes if no objective is missed by more than 1 of 100 requests, as its p99 is then within
// the objective. Each rate has its own seeded arrivals, so that chance at one rate is evened out by
// the others.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gate/load/load.hpp"

namespace weir::load {

struct CapacityPlan {
  LoadPlan load;  // `requests` per rate; its loop is ignored
  profile::ServedObjectives objectives;
  double lowest = 1, highest = 100;  // requests a second
  double closeness = 0.01;  // the search may end when the interval reaches so far to each side
};

struct TriedRate {
  double rate = 0;
  double missed = 0;         // share of requests that miss the objective that is missed most
  double low = 0, high = 1;  // 95 % interval of that share
  [[nodiscard]] bool is_kept() const;
};
struct Capacity {
  double rate = 0;
  // 95 % interval; the ends of the search if the rates that were tried do not narrow it.
  double low = 0, high = 0;
  bool below_lowest = false, above_highest = false;  // it lies outside of what was tried
  std::vector<TriedRate> tried;                      // in their order
  Load last;                                         // load at the highest rate that passed
};

// Fails as drive(), and with Code::data where a request fails: an overloaded server answers late.
[[nodiscard]] Result<Capacity> find_capacity(const CapacityPlan& plan, sys::Streams& streams,
                                             const sys::Clock& clock, const sys::Stop& stop);

// Returns the share of requests that miss the worst objective, with its 95 % interval. Neighbouring
// requests wait together, so the shares of 20 consecutive stretches are compared (Student's t).
[[nodiscard]] TriedRate evaluate_rate(double rate, std::span<const profile::ServedRequest> requests,
                                      const profile::ServedObjectives& objectives);

}  // namespace weir::load
