#include "gate/sys/clock.hpp"

#include <chrono>
#include <cmath>

#include <time.h>

namespace weir::sys {
namespace {

std::string format(double seconds, const char* pattern) {
  const auto whole = static_cast<time_t>(std::floor(seconds));
  std::tm parts{};
  if (gmtime_r(&whole, &parts) == nullptr) return "";
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

}  // namespace weir::sys
