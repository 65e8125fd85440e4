#include "gate/base/rational.hpp"

#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace weir {
namespace {

__extension__ typedef __int128 Wide;

Wide gcd(Wide a, Wide b) {
  if (a < 0) a = -a;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

bool fits(Wide value) {
  return value >= std::numeric_limits<std::int64_t>::min() &&
         value <= std::numeric_limits<std::int64_t>::max();
}

std::optional<Rational> reduce(Wide numerator, Wide denominator) {
  if (denominator == 0) return std::nullopt;
  if (denominator < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  if (const Wide divisor = gcd(numerator, denominator < 0 ? -denominator : denominator);
      divisor > 1) {
    numerator /= divisor;
    denominator /= divisor;
  }
  if (!fits(numerator) || !fits(denominator)) return std::nullopt;
  return Rational::make(static_cast<std::int64_t>(numerator),
                        static_cast<std::int64_t>(denominator));
}

std::optional<std::int64_t> read_int(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Rational> Rational::make(std::int64_t numerator, std::int64_t denominator) {
  if (denominator == 0) return std::nullopt;
  Wide top = numerator;
  Wide bottom = denominator;
  if (bottom < 0) {
    top = -top;
    bottom = -bottom;
  }
  const Wide divisor = gcd(top, bottom);
  top /= divisor;
  bottom /= divisor;
  if (!fits(top) || !fits(bottom)) return std::nullopt;
  Rational made;
  made.numerator_ = static_cast<std::int64_t>(top);
  made.denominator_ = static_cast<std::int64_t>(bottom);
  return made;
}

std::optional<Rational> Rational::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto numerator = read_int(text.substr(0, slash));
  if (!numerator) return std::nullopt;
  if (slash == std::string_view::npos) return Rational(*numerator);
  const auto denominator = read_int(text.substr(slash + 1));
  if (!denominator || *denominator <= 0) return std::nullopt;
  return make(*numerator, *denominator);
}

std::string Rational::str() const {
  return whole() ? fmt::format("{}", numerator_) : fmt::format("{}/{}", numerator_, denominator_);
}

std::optional<Rational> Rational::plus(const Rational& other) const {
  return reduce(Wide{numerator_} * other.denominator_ + Wide{other.numerator_} * denominator_,
                Wide{denominator_} * other.denominator_);
}

std::optional<Rational> Rational::minus(const Rational& other) const {
  return reduce(Wide{numerator_} * other.denominator_ - Wide{other.numerator_} * denominator_,
                Wide{denominator_} * other.denominator_);
}

std::optional<Rational> Rational::times(const Rational& other) const {
  return reduce(Wide{numerator_} * other.numerator_, Wide{denominator_} * other.denominator_);
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  const Wide left = Wide{a.numerator_} * b.denominator_;
  const Wide right = Wide{b.numerator_} * a.denominator_;
  if (left < right) return std::strong_ordering::less;
  return left == right ? std::strong_ordering::equal : std::strong_ordering::greater;
}

}  // namespace weir
