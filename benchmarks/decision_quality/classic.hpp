// Tests with a number of runs fixed in advance. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace weir::quality {

// P-values against "b is not larger than a" (greater) and "b is not smaller" (less).
struct OneSided {
  double greater = 1, less = 1;
  [[nodiscard]] double two_sided() const;
};

// Mann and Whitney's test. U is the number of pairs (a, b) with a < b; ties count half. P-values
// are exact without ties and with at most k_exact_runs values each. Otherwise they are normal,
// corrected for ties and continuity. Both samples are sorted and not empty; `shift` is added to
// each of `a`.
inline constexpr std::size_t k_exact_runs = 20;
struct MannWhitney {
  double u = 0;
  bool ties = false;
  OneSided p;
};
[[nodiscard]] MannWhitney mann_whitney(std::span<const double> a, std::span<const double> b,
                                       double shift = 0);

// Welch's t for mean(b) - mean(a) - shift; each sample has two or more values. Without any spread t
// is infinite, or 0 if there is no difference either.
struct Welch {
  double t = 0, df = 1;
};
[[nodiscard]] Welch welch(std::span<const double> a, std::span<const double> b, double shift = 0);

// The chance that at least one of `metrics` metrics fails, if each fails with chance `share`.
[[nodiscard]] double share_per_gate(double share, int metrics);

}  // namespace weir::quality
