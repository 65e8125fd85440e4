// Made-up series of nights, with and without changes. README.md describes the noises. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/decision_quality/random.hpp"

namespace weir::changes {

using quality::Random;

// A change of a series. A point is a night.
struct Event {
  std::size_t place = 0;  // index of the first changed point
  double step = 0;        // in standard deviations of the noise
  double drift = 0;       // per night from `place` on, as a share of the first value: linear
  double growth = 0;      // per night from `place` on, as a share of the night before: exponential
};

// Logarithms of recorded times, in time order.
struct Recording {
  std::vector<double> logs;
  double spread = 1;  // their standard deviation
};
[[nodiscard]] Recording make_recording(std::vector<double> logs);

// A noise's name, "t3-0.6@0.005": shape, correlation from night to night (default 0), standard
// deviation (default 0.02).
struct NoiseName {
  std::string shape;
  double memory = 0, spread = 0.02;
};
[[nodiscard]] NoiseName parse_noise_name(std::string_view noise);
// In the order of the tables. The last two need recorded times.
[[nodiscard]] std::vector<std::string> noise_names();
[[nodiscard]] bool needs_recording(std::string_view noise);

// Makes a series of `count` nights around 100. `noise` must be a valid name, and `recordings` must
// not be empty if the noise needs them.
[[nodiscard]] std::vector<double> make_series(std::string_view noise, std::size_t count,
                                              const std::vector<Event>& events,
                                              const std::vector<Recording>& recordings,
                                              Random& random);

}  // namespace weir::changes
