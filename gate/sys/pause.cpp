#include "gate/sys/pause.hpp"

#include <algorithm>
#include <cmath>

#include <poll.h>

#include "gate/sys/clock.hpp"

namespace weir::sys {

bool RealPause::wait(double seconds, const Stop& stop) {
  constexpr double k_step = 0.2;  // where the system had no pipe for the stop
  const RealClock clock;
  const double end = clock.steady() + seconds;
  while (!stop.requested()) {
    const double left = end - clock.steady();
    if (left <= 0) return true;
    const double step = std::min(left, stop.fd() >= 0 ? 3600.0 : k_step);
    pollfd until{stop.fd(), POLLIN, 0};
    poll(&until, stop.fd() >= 0 ? 1 : 0, static_cast<int>(std::ceil(step * 1000)));
  }
  return false;
}

}  // namespace weir::sys
