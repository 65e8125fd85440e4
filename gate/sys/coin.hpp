// A fair coin that nobody can know before it falls: what the guarantee of paired times rests on.
#pragma once

#include <random>

namespace weir::sys {

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
