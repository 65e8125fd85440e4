// Time, waiting and chance, as arguments: tests have their own. Seconds everywhere.
#pragma once

#include <random>
#include <string>

#include "gate/sys/interrupts.hpp"

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

// Waiting: tests do not wait.
class Pause {
 public:
  virtual ~Pause() = default;
  // For that many seconds, or until the stop is requested: false then.
  [[nodiscard]] virtual bool wait(double seconds, const Stop& stop) = 0;
};

class RealPause final : public Pause {
 public:
  [[nodiscard]] bool wait(double seconds, const Stop& stop) override;
};

// A fair coin that nobody can know before it falls: what the guarantee of paired times rests on.
class Coin {
 public:
  virtual ~Coin() = default;
  [[nodiscard]] virtual bool flip() = 0;
};

// The operating system's randomness, drawn anew for each flip. Nothing is seeded.
class RealCoin final : public Coin {
 public:
  [[nodiscard]] bool flip() override { return (device_() & 1U) != 0; }

 private:
  std::random_device device_;
};

}  // namespace weir::sys
