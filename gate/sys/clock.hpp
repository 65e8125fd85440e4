// Time, as an argument. Seconds everywhere.
#pragma once

#include <string>

namespace weir::sys {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual double now() const = 0;     // since 1970-01-01 UTC
  [[nodiscard]] virtual double steady() const = 0;  // since some moment; never goes back
};

class RealClock final : public Clock {
 public:
  [[nodiscard]] double now() const override;
  [[nodiscard]] double steady() const override;
};

// "2026-11-20" and "20261120-093015", in UTC.
[[nodiscard]] std::string date_of(double seconds_since_epoch);
[[nodiscard]] std::string file_time_of(double seconds_since_epoch);
// "2026-11-20T09:30:15Z", as web services write it.
[[nodiscard]] std::string time_of(double seconds_since_epoch);

}  // namespace weir::sys
