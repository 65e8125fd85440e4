#include "gate/publish/github_retry.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"

namespace weir::publish {

namespace {

constexpr JsonLimits k_limits{.bytes = std::size_t{64} << 20, .depth = 32};

std::string_view name_of(int status) {
  switch (status) {
    case 301:
      return " Moved Permanently";
    case 302:
      return " Found";
    case 304:
      return " Not Modified";
    case 400:
      return " Bad Request";
    case 401:
      return " Unauthorized";
    case 403:
      return " Forbidden";
    case 404:
      return " Not Found";
    case 409:
      return " Conflict";
    case 410:
      return " Gone";
    case 413:
      return " Content Too Large";
    case 422:
      return " Unprocessable";
    case 429:
      return " Too Many Requests";
    case 500:
      return " Server Error";
    case 502:
      return " Bad Gateway";
    case 503:
      return " Service Unavailable";
    case 504:
      return " Gateway Timeout";
    default:
      return "";
  }
}

std::string string_in(const Json& json, const char* key) {
  if (!json.is_object()) return "";
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// "GET this" of something that is not JSON.
std::string came(const sys::HttpResponse& response, const Masker& masker) {
  const std::string type = shown(response.header("content-type").value_or(""), masker, 60);
  return fmt::format("{}{}{}{} \"{}\"", response.status, name_of(response.status),
                     type.empty() ? "" : " ", type, shown(response.body, masker));
}

}  // namespace

std::string shown(std::string_view text, const Masker& masker, std::size_t most) {
  // No more of a large answer is looked at than can matter; the longest secret is far shorter.
  std::string line = masker.mask(text.substr(0, std::size_t{64} << 10));
  line = masker.mask(text::printable(line));
  std::string squeezed;
  for (const char c : line) {
    const bool space = c == '\n' || c == '\t' || c == ' ';
    if (!space) squeezed += c;
    if (space && !squeezed.empty() && squeezed.back() != ' ') squeezed += ' ';
  }
  while (!squeezed.empty() && squeezed.back() == ' ') squeezed.pop_back();
  std::size_t end = 0;
  std::size_t characters = 0;
  while (end < squeezed.size()) {
    if ((static_cast<unsigned char>(squeezed[end]) & 0xC0U) != 0x80U && characters++ == most) break;
    ++end;
  }
  const bool cut = end < squeezed.size();
  return text::disarm(squeezed.substr(0, end)) + (cut ? "..." : "");
}

std::string reason_in(const Json& body) {
  std::string reason = string_in(body, "message");
  if (!body.is_object() || !body.contains("errors") || !body["errors"].is_array()) return reason;
  for (const Json& error : body["errors"]) {
    std::string one = error.is_string() ? error.get<std::string>() : string_in(error, "message");
    if (one.empty()) one = string_in(error, "field") + " " + string_in(error, "code");
    if (one != " ") reason += (reason.empty() ? "" : ": ") + one;
  }
  return reason;
}

std::string said(const sys::HttpResponse& response, const Masker& masker) {
  std::string status = fmt::format("{}{}", response.status, name_of(response.status));
  if (text::trim(response.body).empty()) return status;
  const auto json = parse_json(response.body, k_limits);
  const std::string reason = json ? reason_in(*json) : "";
  return reason.empty() ? came(response, masker)
                        : fmt::format("{}: {}", status, shown(reason, masker));
}

Result<Json> json_of(const sys::HttpResponse& response, const Masker& masker) {
  if (text::trim(response.body).empty()) return Json(nullptr);
  auto json = parse_json(response.body, k_limits);
  if (json) return json;
  return fail(Code::data, "the answer can not be read ({}): {}", json.error().message,
              came(response, masker));
}

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
