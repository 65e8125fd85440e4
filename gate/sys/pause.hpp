// Waiting, as an argument: tests do not wait.
#pragma once

#include "gate/sys/interrupts.hpp"

namespace weir::sys {

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

}  // namespace weir::sys
