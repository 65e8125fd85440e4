// Draws the arrivals of a Poisson process.
#include "gate/stats/arrivals.hpp"

#include <cmath>
#include <random>

namespace weir::stats {

// Draws `count` arrival times in seconds, with exponential gaps of mean 1 / rate.
std::vector<double> poisson_arrivals(double rate, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<double> arrivals;
  arrivals.reserve(count);
  double at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // 53 bits, in the middle of their step: inside (0, 1), never at its ends.
    const double uniform = (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53;
    at += -std::log(uniform) / rate;
    arrivals.push_back(at);
  }
  return arrivals;
}

}  // namespace weir::stats
