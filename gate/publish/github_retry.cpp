#include "gate/publish/github_retry.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/publish/github_words.hpp"

namespace weir::publish {
namespace {

// Days from 1970-01-01 in the calendar that HTTP uses; month 1 to 12.
long long days_from_civil(long long year, long long month, long long day) {
  // Years that begin in March put the leap day at their end.
  const long long y = month <= 2 ? year - 1 : year;
  const long long m = month <= 2 ? month + 9 : month - 3;
  return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 719'469;
}

std::optional<long long> digits(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return text::to_int(text);
}

// How long the server asks to wait.
std::optional<double> asked(const sys::HttpResponse& response, double now) {
  // Its own clock, where it tells it: ours may be wrong.
  const double then = http_date(response.header("date").value_or("")).value_or(now);
  if (const auto after = response.header("retry-after")) {
    if (const auto seconds = digits(*after)) return static_cast<double>(*seconds);
    if (const auto date = http_date(*after)) return std::max(0.0, *date - then);
  }
  if (response.header("x-ratelimit-remaining") == "0") {
    const auto reset = digits(response.header("x-ratelimit-reset").value_or(""));
    // A second more: the header has whole seconds.
    if (reset) return std::max(0.0, static_cast<double>(*reset) - then) + 1;
  }
  return std::nullopt;
}

bool speaks_of_a_limit(const sys::HttpResponse& response) {
  if (response.body.size() > 64 << 10) return false;
  const std::string body = text::lower(response.body);
  return body.find("rate limit") != std::string::npos ||
         body.find("abuse detection") != std::string::npos;
}

bool is_limit(const sys::HttpResponse& response) {
  if (response.status == 429) return true;
  if (response.status != 403) return false;
  return response.header("retry-after") || response.header("x-ratelimit-remaining") == "0" ||
         speaks_of_a_limit(response);
}

}  // namespace

std::optional<double> http_date(std::string_view text) {
  constexpr std::array k_months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT" ||
      text[7] != ' ' || text[11] != ' ' || text[16] != ' ' || text[19] != ':' || text[22] != ':') {
    return std::nullopt;
  }
  const auto month = std::find(k_months.begin(), k_months.end(), text.substr(8, 3));
  const auto day = digits(text.substr(5, 2));
  const auto year = digits(text.substr(12, 4));
  const auto hour = digits(text.substr(17, 2));
  const auto minute = digits(text.substr(20, 2));
  const auto second = digits(text.substr(23, 2));
  if (month == k_months.end() || !day || !year || !hour || !minute || !second) return std::nullopt;
  if (*day < 1 || *day > 31 || *year < 1970 || *hour > 23 || *minute > 59 || *second > 60) {
    return std::nullopt;
  }
  const long long days = days_from_civil(*year, month - k_months.begin() + 1, *day);
  return static_cast<double>(days * 86'400 + *hour * 3600 + *minute * 60 + *second);
}

double back_off(int attempt, double base, double longest, double jitter) {
  const double whole = std::min(longest, base * std::pow(2, std::min(attempt, 60) - 1));
  return whole * (1 - jitter / 2);
}

Next after_answer(const sys::HttpResponse& response, bool once, double now, const Masker& masker) {
  const int status = response.status;
  Next next;
  if (status >= 200 && status < 300) return next;
  if (is_limit(response)) {
    // Refused before anything was done: it may be sent again, whatever it is.
    next = {.what = Next::What::again, .asked_seconds = asked(response, now), .limit = true};
    next.why = "a rate limit: " + said(response, masker);
    return next;
  }
  if (status == 403 || status == 404 || status == 409 || status == 422) return next;
  next = {.what = Next::What::refused, .why = said(response, masker)};
  if (status == 408 || (status >= 500 && status != 501 && status != 505)) {
    next.asked_seconds = asked(response, now);
    // "Come again later" (503) says that it was not done; the others leave that open.
    const bool not_done = status == 503 && next.asked_seconds.has_value();
    next.maybe_done = !not_done;
    if (!once || not_done) next.what = Next::What::again;
  }
  return next;
}

Next after_failure(const sys::HttpFailure& failure, bool once, const Masker& masker) {
  using What = sys::HttpFailure::What;
  Next next{.what = Next::What::refused, .maybe_done = failure.sent};
  next.why = shown(failure.message, masker);
  switch (failure.what) {
    case What::no_connection:
    case What::timed_out:
    case What::cut:
      if (!once || !failure.sent) next.what = Next::What::again;
      break;
    case What::tls:
    case What::invalid:
    case What::too_large:
    case What::stopped:
    case What::other:
      break;
  }
  return next;
}

}  // namespace weir::publish
