// Computes quantiles: of samples, of the normal distribution, of Student's t.
#include "gate/stats/quantile.hpp"

#include <cmath>

namespace weir::stats {
namespace {

// Horner's rule, the constant term first.
double polynomial(std::span<const double> coefficients, double x) {
  double sum = 0;
  for (std::size_t i = coefficients.size(); i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// The ratio of two polynomials; the constant term of the one below is 1, and left out.
double polynomial_ratio(std::span<const double> above, std::span<const double> below, double x) {
  return polynomial(above, x) / (polynomial(below, x) * x + 1);
}

// Regularised incomplete beta function I_x(a, b), by the continued fraction of DiDonato and Morris
// evaluated with Lentz's method. It converges fast for x < (a + 1) / (a + b + 2), which the caller
// must ensure.
double beta_fraction(double a, double b, double x) {
  constexpr double k_tiny = 1e-300;
  constexpr int k_steps = 500;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::fabs(d) < k_tiny ? k_tiny : d);
  double fraction = d;
  for (int m = 1; m <= k_steps; ++m) {
    for (const bool is_odd : {false, true}) {
      const double numerator = is_odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                                      : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 + numerator * d;
      c = 1 + numerator / c;
      d = 1 / (std::fabs(d) < k_tiny ? k_tiny : d);
      if (std::fabs(c) < k_tiny) c = k_tiny;
      fraction *= d * c;
    }
    if (std::fabs(d * c - 1) < 1e-15) break;
  }
  const double log_front =
      a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b);
  return std::exp(log_front) * fraction / a;
}

// I_x(a, b) for any x, by its symmetry.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  return x < (a + 1) / (a + b + 2) ? beta_fraction(a, b, x) : 1 - beta_fraction(b, a, 1 - x);
}

}  // namespace

std::optional<double> median(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  return median_in_place(copy);
}

std::optional<double> median_in_place(std::span<double> samples) {
  if (samples.empty()) return std::nullopt;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return (*std::max_element(samples.begin(), middle) + *middle) / 2;
}

std::optional<double> quantile(std::span<const double> samples, double p) {
  if (samples.empty()) return std::nullopt;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  return quantile_of_sorted(sorted, std::clamp(p, 0.0, 1.0));
}

double quantile_of_sorted(std::span<const double> sorted, double p) {
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  // Infinity less infinity is not a number.
  if (part == 0 || sorted[below] == sorted[above]) return sorted[below];
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

// Returns the value below which a standard normal variable lies with probability p, 0 < p < 1.
// Wichura's AS 241: a polynomial ratio for the middle, and two for the tails.
double normal_quantile(double p) {
  constexpr double k_a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                            1.9715909503065514427e+3, 1.3731693765509461125e+4,
                            4.5921953931549871457e+4, 6.7265770927008700853e+4,
                            3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double k_b[] = {4.2313330701600911252e+1, 6.8718700749205790830e+2,
                            5.3941960214247511077e+3, 2.1213794301586595867e+4,
                            3.9307895800092710610e+4, 2.8729085735721942674e+4,
                            5.2264952788528545610e+3};
  constexpr double k_c[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                            5.76949722146069140550e0,  3.64784832476320460504e0,
                            1.27045825245236838258e0,  2.41780725177450611770e-1,
                            2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double k_d[] = {2.05319162663775882187e0,  1.67638483018380384940e0,
                            6.89767334985100004550e-1, 1.48103976427480074590e-1,
                            1.51986665636164571966e-2, 5.47593808499534494600e-4,
                            1.05075007164441684324e-9};
  constexpr double k_e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                            1.78482653991729133580e0,  2.96560571828504891230e-1,
                            2.65321895265761230930e-2, 1.24266094738807843860e-3,
                            2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double k_f[] = {5.99832206555887937690e-1, 1.36929880922735805310e-1,
                            1.48753612908506148525e-2, 7.86869131145613259100e-4,
                            1.84631831751005468180e-5, 1.42151175831644588870e-7,
                            2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(k_a, r) / (polynomial(k_b, r) * r + 1);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  const double size =
      r <= 5 ? polynomial_ratio(k_c, k_d, r - 1.6) : polynomial_ratio(k_e, k_f, r - 5);
  return q < 0 ? -size : size;
}

double student_cdf(double t, double df) {
  const double tail = incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2;
  return t > 0 ? 1 - tail : tail;
}

// Returns the value below which Student's t with `df` degrees of freedom lies with probability p.
// Bisects student_cdf() below 0; the upper half is its mirror.
double student_quantile(double p, double df) {
  if (p == 0.5) return 0;
  if (p > 0.5) return -student_quantile(1 - p, df);
  double low = -1;
  while (student_cdf(low, df) > p && low > -1e150) low *= 2;
  double high = 0;
  constexpr int k_halvings = 200;
  for (int i = 0; i < k_halvings && high - low > 1e-14 * std::fabs(low); ++i) {
    const double middle = (low + high) / 2;
    if (student_cdf(middle, df) < p) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return (low + high) / 2;
}

}  // namespace weir::stats
