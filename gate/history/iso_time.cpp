#include "gate/history/iso_time.hpp"

#include <cstdint>
#include <string>

#include "gate/base/text.hpp"

namespace weir::history {
namespace {

// Days since 1970-01-01 of the Gregorian calendar: years counted from March, so that the day that
// leap years have is the last of them.
std::int64_t days_of(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t of_era = year - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
}

std::int64_t days_in(std::int64_t year, std::int64_t month) {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

// Takes what stands at the front of a text.
class Front {
 public:
  explicit Front(std::string_view text) : text_(text) {}
  [[nodiscard]] bool done() const { return text_.empty(); }
  bool take(char wanted) {
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Exactly so many digits, for a number between these two.
  std::optional<std::int64_t> number(std::size_t digits, std::int64_t least, std::int64_t most) {
    if (text_.size() < digits) return std::nullopt;
    std::int64_t value = 0;
    for (const char c : text_.substr(0, digits)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    text_.remove_prefix(digits);
    return value < least || value > most ? std::nullopt : std::optional(value);
  }
  // ".25" or ",25"; 0 without it.
  std::optional<double> fraction() {
    if (!take('.') && !take(',')) return 0;
    std::size_t digits = 0;
    while (digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9') ++digits;
    if (digits == 0) return std::nullopt;
    const auto value = text::to_double("0." + std::string(text_.substr(0, digits)));
    text_.remove_prefix(digits);
    return value;
  }
  // Seconds that the zone is ahead of UTC.
  std::optional<std::int64_t> zone() {
    if (done() || ((take('Z') || take('z')) && done())) return 0;
    const bool ahead = take('+');
    if (!ahead && !take('-')) return std::nullopt;
    const auto hours = number(2, 0, 23);
    if (!hours) return std::nullopt;
    std::int64_t seconds = *hours * 3600;
    if (!done()) {
      (void)take(':');
      const auto minutes = number(2, 0, 59);
      if (!minutes || !done()) return std::nullopt;
      seconds += *minutes * 60;
    }
    return ahead ? seconds : -seconds;
  }

 private:
  std::string_view text_;
};

std::optional<double> parse_iso(std::string_view text) {
  Front front(text);
  const auto year = front.number(4, 0, 9999);
  if (!year || !front.take('-')) return std::nullopt;
  const auto month = front.number(2, 1, 12);
  if (!month || !front.take('-')) return std::nullopt;
  const auto day = front.number(2, 1, days_in(*year, *month));
  if (!day) return std::nullopt;
  const double midnight = static_cast<double>(days_of(*year, *month, *day)) * 86'400;
  if (front.done()) return midnight;
  if (!front.take('T') && !front.take('t') && !front.take(' ')) return std::nullopt;
  const auto hour = front.number(2, 0, 23);
  if (!hour || !front.take(':')) return std::nullopt;
  const auto minute = front.number(2, 0, 59);
  if (!minute) return std::nullopt;
  double seconds = static_cast<double>(*hour * 3600 + *minute * 60);
  if (front.take(':')) {
    const auto second = front.number(2, 0, 60);  // 60: a leap second
    const auto fraction = second ? front.fraction() : std::nullopt;
    if (!fraction) return std::nullopt;
    seconds += static_cast<double>(*second) + *fraction;
  }
  const auto zone = front.zone();
  if (!zone) return std::nullopt;
  return midnight + seconds - static_cast<double>(*zone);
}

}  // namespace

std::optional<double> parse_time(std::string_view text) {
  text = text::trim(text);
  if (const auto seconds = text::to_double(text)) return seconds;
  return parse_iso(text);
}

}  // namespace weir::history
