#include "gate/publish/github_retry.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/api.hpp"
#include "gate/report/layout.hpp"

namespace weir::publish {

namespace {

constexpr JsonLimits k_limits{.bytes = std::size_t{64} << 20, .depth = 32};

std::string_view name_of_status(int status) {
  constexpr std::pair<int, std::string_view> k_names[] = {
      {301, " Moved Permanently"}, {302, " Found"},         {304, " Not Modified"},
      {400, " Bad Request"},       {401, " Unauthorized"},  {403, " Forbidden"},
      {404, " Not Found"},         {409, " Conflict"},      {410, " Gone"},
      {413, " Content Too Large"}, {422, " Unprocessable"}, {429, " Too Many Requests"},
      {500, " Server Error"},      {502, " Bad Gateway"},   {503, " Service Unavailable"},
      {504, " Gateway Timeout"}};
  const auto* found = first_of(k_names, [&](const auto& one) { return one.first == status; });
  return found == nullptr ? "" : found->second;
}

// What is not JSON.
std::string came(const sys::HttpResponse& response, const Masker& masker) {
  const std::string type = shown(response.header("content-type").value_or(""), masker, 60);
  return fmt::format("{}{}{}{} \"{}\"", response.status, name_of_status(response.status),
                     type.empty() ? "" : " ", type, shown(response.body, masker));
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

bool is_limit(const sys::HttpResponse& response) {
  if (response.status == 429) return true;
  if (response.status != 403) return false;
  if (response.header("retry-after") || response.header("x-ratelimit-remaining") == "0")
    return true;
  if (response.body.size() > 64 << 10) return false;
  const std::string body = text::lower(response.body);
  return body.find("rate limit") != std::string::npos ||
         body.find("abuse detection") != std::string::npos;
}

// The reason in a refusal's JSON, "Validation Failed: body is too long"; "" when there is none.
std::string reason_in(const Json& body) {
  std::string reason = text_in(body, "message");
  for (const Json& error : list_in(body, "errors")) {
    std::string one = error.is_string() ? error.get<std::string>() : text_in(error, "message");
    if (one.empty()) one = text_in(error, "field") + " " + text_in(error, "code");
    if (one != " ") reason += (reason.empty() ? "" : ": ") + one;
  }
  return reason;
}

}  // namespace

std::string shown(std::string_view text, const Masker& masker, std::size_t most) {
  // No more of a large answer is looked at than can matter; the longest secret is far shorter.
  constexpr std::size_t k_looked_at = std::size_t{64} << 10;
  const std::string plain = text::printable(masker.mask(text.substr(0, k_looked_at)));
  const std::string squeezed = report::one_line(masker.mask(plain), 2 * k_looked_at);
  std::size_t end = 0, characters = 0;
  while (end < squeezed.size()) {
    if ((static_cast<unsigned char>(squeezed[end]) & 0xC0U) != 0x80U && characters++ == most) break;
    ++end;
  }
  return text::disarm(squeezed.substr(0, end)) + (end < squeezed.size() ? "..." : "");
}

std::string said(const sys::HttpResponse& response, const Masker& masker) {
  std::string status = fmt::format("{}{}", response.status, name_of_status(response.status));
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
  return fail(Code::data, "the answer cannot be read ({}): {}", json.error().message,
              came(response, masker));
}

std::optional<double> http_date(std::string_view text) {
  constexpr const char* k_form = "%a, %d %b %Y %H:%M:%S GMT";
  const std::string given(text);
  std::tm parts{};
  const char* end = strptime(given.c_str(), k_form, &parts);
  char written[64];
  const std::size_t size = std::strftime(written, sizeof written, k_form, &parts);
  // strptime() takes other forms, too. The day of the week may be any.
  const bool same = end != nullptr && size == given.size() && size > 3 &&
                    std::string_view(written, size).substr(3) == text.substr(3);
  if (!same || parts.tm_year < 70) return std::nullopt;
  return static_cast<double>(timegm(&parts));
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
  const bool passing = failure.what == What::no_connection || failure.what == What::timed_out ||
                       failure.what == What::cut;
  if (passing && (!once || !failure.sent)) next.what = Next::What::again;
  return next;
}

}  // namespace weir::publish
