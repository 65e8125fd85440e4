// Draws the arrivals of a Poisson process.
#include "gate/stats/arrivals.hpp"

#include <cmath>
#include <random>

namespace weir::stats {

// Draws `count` rising arrival times in seconds, of a Poisson process: gaps are exponential with
// mean 1 / rate. The same seed gives the same times on every system.
std::vector<double> poisson_arrivals(double rate, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<double> arrivals;
  arrivals.reserve(count);
  double time = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // 53 random bits plus a half step: inside (0, 1), so that the logarithm is finite.
    const double uniform = (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53;
    time += -std::log(uniform) / rate;
    arrivals.push_back(time);
  }
  return arrivals;
}

}  // namespace weir::stats
