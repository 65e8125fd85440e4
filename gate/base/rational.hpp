// An exact rational number: slopes of counts are kept exactly ("133/2" in a baseline).
//
// Always in lowest terms with a positive denominator. Operations that would leave the range of
// std::int64_t answer nothing (std::optional), never a wrong number. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir {

class Rational {
 public:
  constexpr Rational() = default;
  constexpr Rational(std::int64_t whole) : numerator_(whole) {}  // NOLINT: a whole number is one
  // Nothing when the denominator is 0 or the reduced form does not fit.
  [[nodiscard]] static std::optional<Rational> make(std::int64_t numerator,
                                                    std::int64_t denominator);
  // The sum of the values over `of`. Nothing as make().
  [[nodiscard]] static std::optional<Rational> share(std::span<const std::int64_t> values,
                                                     std::int64_t total);
  // Reads "65", "-3" or "133/2"; nothing on anything else.
  [[nodiscard]] static std::optional<Rational> parse(std::string_view text);

  [[nodiscard]] std::int64_t numerator() const { return numerator_; }
  [[nodiscard]] std::int64_t denominator() const { return denominator_; }
  [[nodiscard]] bool is_integer() const { return denominator_ == 1; }
  [[nodiscard]] double value() const {
    return static_cast<double>(numerator_) / static_cast<double>(denominator_);
  }
  [[nodiscard]] std::string str() const;  // "65" or "133/2"

  [[nodiscard]] std::optional<Rational> plus(const Rational& other) const;
  [[nodiscard]] std::optional<Rational> minus(const Rational& other) const;
  [[nodiscard]] std::optional<Rational> times(const Rational& other) const;

  friend bool operator==(const Rational&, const Rational&) = default;
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);

 private:
  friend struct RationalMaker;
  Rational(std::int64_t numerator, std::int64_t denominator)
      : numerator_(numerator), denominator_(denominator) {}

  std::int64_t numerator_ = 0;
  std::int64_t denominator_ = 1;
};

}  // namespace weir
