// Exact fractions of 64-bit integers.
#include "gate/base/rational.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "gate/base/text.hpp"

namespace weir {

__extension__ typedef __int128 Wide;

// Makes fractions in lowest terms; nothing if they do not fit.
struct RationalMaker {
  // Reduces a fraction; nothing if its terms do not fit 64 bits or the denominator is 0.
  static std::optional<Rational> terms(Wide numerator, Wide denominator) {
    if (denominator == 0) return std::nullopt;
    // Euclid's algorithm.
    Wide divisor = numerator, rest = denominator;
    while (rest != 0) {
      const Wide next_rest = divisor % rest;
      divisor = rest;
      rest = next_rest;
    }
    // Give the divisor the denominator's sign, so that the result's denominator is positive.
    const bool is_negative = divisor < 0, should_be_negative = denominator < 0;
    if (is_negative != should_be_negative) divisor = -divisor;
    numerator /= divisor;
    denominator /= divisor;
    if (!fits(numerator) || !fits(denominator)) return std::nullopt;
    return Rational(static_cast<std::int64_t>(numerator), static_cast<std::int64_t>(denominator));
  }

 private:
  static bool fits(Wide value) {
    return value >= std::numeric_limits<std::int64_t>::min() &&
           value <= std::numeric_limits<std::int64_t>::max();
  }
};

std::optional<Rational> Rational::make(std::int64_t numerator, std::int64_t denominator) {
  return RationalMaker::terms(numerator, denominator);
}

std::optional<Rational> Rational::share(std::span<const std::int64_t> values, std::int64_t total) {
  Wide sum = 0;
  for (const std::int64_t value : values) sum += value;
  return RationalMaker::terms(sum, total);
}

std::optional<Rational> Rational::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto numerator = text::to_int(text.substr(0, slash));
  if (!numerator) return std::nullopt;
  if (slash == std::string_view::npos) return Rational(*numerator);
  const auto denominator = text::to_int(text.substr(slash + 1));
  if (!denominator || *denominator <= 0) return std::nullopt;
  return make(*numerator, *denominator);
}

std::string Rational::str() const {
  return is_integer() ? fmt::format("{}", numerator_)
                      : fmt::format("{}/{}", numerator_, denominator_);
}

std::optional<Rational> Rational::plus(const Rational& other) const {
  return RationalMaker::terms(
      Wide{numerator_} * other.denominator_ + Wide{other.numerator_} * denominator_,
      Wide{denominator_} * other.denominator_);
}

std::optional<Rational> Rational::minus(const Rational& other) const {
  return RationalMaker::terms(
      Wide{numerator_} * other.denominator_ - Wide{other.numerator_} * denominator_,
      Wide{denominator_} * other.denominator_);
}

std::optional<Rational> Rational::times(const Rational& other) const {
  return RationalMaker::terms(Wide{numerator_} * other.numerator_,
                              Wide{denominator_} * other.denominator_);
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  return Wide{a.numerator_} * b.denominator_ <=> Wide{b.numerator_} * a.denominator_;
}

}  // namespace weir
