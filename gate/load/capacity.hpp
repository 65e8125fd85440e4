// The highest rate of requests at which a server keeps its objectives: bisection over rates, then
// more rates near its end, and what all of those say together.
//
// A rate is kept where no objective is missed by more than 1 of 100 requests, which is what a p99
// within it says. Each rate has seeded arrivals of its own: so what chance does at one of them is
// evened out by the others.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gate/load/load.hpp"

namespace weir::load {

struct CapacityPlan {
  LoadPlan load;  // `requests` of each rate; its loop is not looked at
  profile::ServedObjectives objectives;
  double lowest = 1, highest = 100;  // requests a second
  double closeness = 0.01;  // the search may end when the interval reaches so far to each side
};

struct TriedRate {
  double rate = 0;
  double missed = 0;         // share of requests, of the objective that was missed most
  double low = 0, high = 1;  // where that share lies, with probability 0.95
  [[nodiscard]] bool is_kept() const;
};
struct Capacity {
  double rate = 0;
  // 95 % interval; the ends of the search where the rates that were tried do not say.
  double low = 0, high = 0;
  bool below_lowest = false, above_highest = false;  // it lies outside of what was tried
  std::vector<TriedRate> tried;                      // in their order
  Load last;                                         // of the highest rate that was kept
};

// Fails as drive(), and with Code::data where a request fails: an overloaded server answers late.
[[nodiscard]] Result<Capacity> find_capacity(const CapacityPlan& plan, sys::Streams& streams,
                                             const sys::Clock& clock, const sys::Stop& stop);

// How many missed each objective at most, and how sure that is: requests near each other wait
// together, so shares of 20 stretches in a row are what is compared (Student's t).
[[nodiscard]] TriedRate rate_tried(double rate, std::span<const profile::ServedRequest> requests,
                                   const profile::ServedObjectives& objectives);

}  // namespace weir::load
