// Made-up series of nights, with and without changes. README.md has the noises in words. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/decision_quality/random.hpp"

namespace weir::changes {

using quality::Random;

// What happens to a series; points are nights.
struct Event {
  std::size_t place = 0;  // of the first changed point
  double step = 0;        // in standard deviations of the noise
  double drift = 0;       // a night, from `place` on, of the first value: a straight line
  double growth = 0;      // a night, from `place` on, of the night before: a line in logarithms
};

// Logarithms of recorded times, in time order.
struct Recorded {
  std::vector<double> logs;
  double spread = 1;  // their standard deviation
};
[[nodiscard]] Recorded recorded(std::vector<double> logs);

// "t3-0.6@0.005": its shape, correlation from night to night (0), standard deviation (0.02).
struct NoiseName {
  std::string shape;
  double memory = 0, spread = 0.02;
};
[[nodiscard]] NoiseName name_of(std::string_view noise);
// In the order of the tables. The last two need recorded times.
[[nodiscard]] std::vector<std::string> noises();
[[nodiscard]] bool needs_recorded(std::string_view noise);

// `count` nights; comes from `random` alone. Requires a known noise, and times if it needs them.
[[nodiscard]] std::vector<double> make_series(std::string_view noise, std::size_t count,
                                              const std::vector<Event>& events,
                                              const std::vector<Recorded>& times, Random& random);

}  // namespace weir::changes
