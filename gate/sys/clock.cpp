// Clocks, text of times, and waiting that a stop interrupts.
#include "gate/sys/clock.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <poll.h>
#include <time.h>

namespace weir::sys {
namespace {

std::string format(double seconds, const char* pattern) {
  const auto whole_seconds = static_cast<time_t>(std::floor(seconds));
  std::tm parts{};
  if (gmtime_r(&whole_seconds, &parts) == nullptr) return "";
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, pattern, &parts));
}

}  // namespace

double RealClock::now() const {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double RealClock::steady() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string date_of(double seconds_since_epoch) { return format(seconds_since_epoch, "%Y-%m-%d"); }

std::string file_time_of(double seconds_since_epoch) {
  return format(seconds_since_epoch, "%Y%m%d-%H%M%S");
}

std::string time_of(double seconds_since_epoch) {
  return format(seconds_since_epoch, "%Y-%m-%dT%H:%M:%SZ");
}

// Waits for so many seconds; returns false if the stop was requested first.
bool RealPause::wait(double seconds, const Stop& stop) {
  constexpr double k_step_seconds = 0.2;  // used if the system had no pipe for the stop
  const RealClock clock;
  const double end = clock.steady() + seconds;
  while (!stop.requested()) {
    const double seconds_left = end - clock.steady();
    if (seconds_left <= 0) return true;
    const double step_seconds = std::min(seconds_left, stop.fd() >= 0 ? 3600.0 : k_step_seconds);
    pollfd stop_event{stop.fd(), POLLIN, 0};
    poll(&stop_event, stop.fd() >= 0 ? 1 : 0, static_cast<int>(std::ceil(step_seconds * 1000)));
  }
  return false;
}

}  // namespace weir::sys
