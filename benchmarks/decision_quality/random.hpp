// Random numbers of a trial: the same on every machine, for any number of threads. Pure.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>

namespace weir::quality {

// SplitMix64's finaliser: nearby keys give unrelated seeds.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// One key out of several: of a seed, a name, a number.
[[nodiscard]] constexpr std::uint64_t key_of(std::uint64_t key, std::uint64_t number) {
  return mixed(key ^ mixed(number));
}
[[nodiscard]] constexpr std::uint64_t key_of(std::uint64_t key, std::string_view name) {
  for (const char letter : name) key = key_of(key, static_cast<unsigned char>(letter));
  return key_of(key, name.size());
}

// std::mt19937_64 is the same everywhere; the distributions of <random> are not, hence these.
class Random {
 public:
  explicit Random(std::uint64_t key) : engine_(mixed(key)) {}

  // Inside (0, 1), never at its ends.
  [[nodiscard]] double uniform() {
    constexpr double k_step = 0x1p-53;
    return (static_cast<double>(engine_() >> 11) + 0.5) * k_step;
  }
  [[nodiscard]] bool chance(double share) { return uniform() < share; }
  [[nodiscard]] bool coin() { return (engine_() >> 63) != 0; }
  // Below `count`, which is not 0.
  [[nodiscard]] std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(uniform() * static_cast<double>(count)) % count;
  }
  [[nodiscard]] double exponential(double mean) { return -mean * std::log(uniform()); }
  [[nodiscard]] double normal() {  // Box and Muller
    if (spare_is_) {
      spare_is_ = false;
      return spare_;
    }
    constexpr double k_turn = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = k_turn * uniform();
    spare_ = radius * std::sin(angle);
    spare_is_ = true;
    return radius * std::cos(angle);
  }

 private:
  std::mt19937_64 engine_;
  double spare_ = 0;
  bool spare_is_ = false;
};

}  // namespace weir::quality
