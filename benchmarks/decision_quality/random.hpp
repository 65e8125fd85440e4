// Random numbers of a trial: the same on every machine, for any number of threads. Pure.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>

namespace weir::quality {

// SplitMix64's finaliser: nearby keys give unrelated seeds.
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Derives a key from a key and a number or a name.
[[nodiscard]] constexpr std::uint64_t derive_key(std::uint64_t key, std::uint64_t number) {
  return mix_bits(key ^ mix_bits(number));
}
[[nodiscard]] constexpr std::uint64_t derive_key(std::uint64_t key, std::string_view name) {
  for (const char letter : name) key = derive_key(key, static_cast<unsigned char>(letter));
  return derive_key(key, name.size());
}

// std::mt19937_64 is the same everywhere; the distributions of <random> are not, hence these.
class Random {
 public:
  explicit Random(std::uint64_t key) : engine_(mix_bits(key)) {}

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
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    constexpr double k_turn = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = k_turn * uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  std::mt19937_64 engine_;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace weir::quality
