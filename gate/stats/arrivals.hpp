// Due times of requests in an open loop: a Poisson process. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::stats {

// Seconds from the start, rising: `count` arrivals whose gaps are independent and exponential with
// mean 1/rate, by inversion (−log(u)/rate; the first comes after a gap as well). Requires rate > 0.
// The same seed gives the same arrivals everywhere, but for the last bit of a machine's log():
// std::mt19937_64 is the same in every library, the distributions of <random> are not. Nothing is
// stretched to end after count/rate seconds, as vLLM's bench does: that would be no Poisson
// process.
[[nodiscard]] std::vector<double> poisson_arrivals(double rate, std::size_t count,
                                                   std::uint64_t seed);

}  // namespace weir::stats
