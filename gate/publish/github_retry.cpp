// Decides what to do after an attempt to call GitHub, and makes answers safe to show.
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

std::string_view status_name(int status) {
  constexpr std::pair<int, std::string_view> k_names[] = {
      {301, " Moved Permanently"}, {302, " Found"},         {304, " Not Modified"},
      {400, " Bad Request"},       {401, " Unauthorized"},  {403, " Forbidden"},
      {404, " Not Found"},         {409, " Conflict"},      {410, " Gone"},
      {413, " Content Too Large"}, {422, " Unprocessable"}, {429, " Too Many Requests"},
      {500, " Server Error"},      {502, " Bad Gateway"},   {503, " Service Unavailable"},
      {504, " Gateway Timeout"}};
  const auto* entry = find_first(k_names, [&](const auto& name) { return name.first == status; });
  return entry == nullptr ? "" : entry->second;
}

// Describes an answer that is not JSON: `502 Bad Gateway text/html "<html> <head>…"`.
std::string describe_body(const sys::HttpResponse& response, const Masker& masker) {
  const std::string type = safe_text(response.header("content-type").value_or(""), masker, 60);
  return fmt::format("{}{}{} \"{}\"", response.status, status_name(response.status),
                     text::prefix_if_any(" ", type), safe_text(response.body, masker));
}

// Parses a text of digits only.
std::optional<long long> parse_digits(std::string_view text) {
  return text::has_only_digits(text) ? text::to_int(text) : std::nullopt;
}

// Returns how many seconds the server asks to wait; nullopt if it doesn't. `now` is in Unix
// seconds.
std::optional<double> requested_wait(const sys::HttpResponse& response, double now) {
  // Use the server's clock if it sends it: ours may be wrong.
  const double server_time = http_date(response.header("date").value_or("")).value_or(now);
  if (const auto after = response.header("retry-after")) {
    if (const auto seconds = parse_digits(*after)) return static_cast<double>(*seconds);
    if (const auto date = http_date(*after)) return std::max(0.0, *date - server_time);
  }
  if (response.header("x-ratelimit-remaining") == "0") {
    const auto reset = parse_digits(response.header("x-ratelimit-reset").value_or(""));
    // Add a second, as the header has whole seconds.
    if (reset) return std::max(0.0, static_cast<double>(*reset) - server_time) + 1;
  }
  return std::nullopt;
}

// Returns true if the answer says that a rate limit was reached.
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

// Returns the reason in a refusal's JSON: "Validation Failed: body is too long"; "" for none.
std::string reason_in(const Json& body) {
  std::string reason = text_in(body, "message");
  for (const Json& error : list_or_empty(body, "errors")) {
    std::string message = error.is_string() ? error.get<std::string>() : text_in(error, "message");
    if (message.empty()) message = text_in(error, "field") + " " + text_in(error, "code");
    if (message != " ") text::append_item(reason, ": ", message);
  }
  return reason;
}

}  // namespace

// Returns a server's text as one line of at most `max_characters`, without secrets, control
// characters and commands of CI systems.
std::string safe_text(std::string_view text, const Masker& masker, std::size_t max_characters) {
  // Cut a large answer first, to far more than the longest secret and than is shown.
  constexpr std::size_t k_max_bytes = std::size_t{64} << 10;
  const std::string printable = text::printable(masker.mask(text.substr(0, k_max_bytes)));
  const std::string line = report::printable_line(masker.mask(printable), 2 * k_max_bytes);
  std::size_t end = 0, characters = 0;
  while (end < line.size()) {
    const bool begins_character = (static_cast<unsigned char>(line[end]) & 0xC0U) != 0x80U;
    if (begins_character && characters == max_characters) break;
    if (begins_character) ++characters;
    ++end;
  }
  return text::neutralize_ci_commands(line.substr(0, end)) + (end < line.size() ? "..." : "");
}

std::string describe_answer(const sys::HttpResponse& response, const Masker& masker) {
  std::string status = fmt::format("{}{}", response.status, status_name(response.status));
  if (text::trim(response.body).empty()) return status;
  const auto json = parse_json(response.body, k_limits);
  const std::string reason = json ? reason_in(*json) : "";
  return reason.empty() ? describe_body(response, masker)
                        : fmt::format("{}: {}", status, safe_text(reason, masker));
}

Result<Json> parse_answer(const sys::HttpResponse& response, const Masker& masker) {
  if (text::trim(response.body).empty()) return Json(nullptr);
  auto json = parse_json(response.body, k_limits);
  if (json) return json;
  return fail(Code::data, "the answer cannot be read ({}): {}", json.error().message,
              describe_body(response, masker));
}

// Parses "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110) as Unix seconds. Nullopt for other forms and
// times before 1970.
std::optional<double> http_date(std::string_view text) {
  constexpr const char* k_form = "%a, %d %b %Y %H:%M:%S GMT";
  const std::string text_copy(text);
  std::tm parts{};
  const char* end = strptime(text_copy.c_str(), k_form, &parts);
  char written[64];
  const std::size_t size = std::strftime(written, sizeof written, k_form, &parts);
  // strptime() accepts other forms too, so compare with the written form, except the day of the
  // week.
  const bool is_canonical = end != nullptr && size == text_copy.size() && size > 3 &&
                            std::string_view(written, size).substr(3) == text.substr(3);
  if (!is_canonical || parts.tm_year < 70) return std::nullopt;
  return static_cast<double>(timegm(&parts));
}

double back_off(int attempt, double base, double longest, double jitter) {
  const double longest_wait = std::min(longest, base * std::pow(2, std::min(attempt, 60) - 1));
  return longest_wait * (1 - jitter / 2);
}

// Decides what follows an answer: it is final, refused, or worth another attempt. Final are
// successes and answers that say something about the request (403, 404, 409, 422), which the caller
// handles. `is_once`: the request must not be carried out twice.
Next after_answer(const sys::HttpResponse& response, bool is_once, double now,
                  const Masker& masker) {
  const int status = response.status;
  Next next;
  if (status >= 200 && status < 300) return next;
  if (is_limit(response)) {
    // GitHub refuses before it does anything, so any request may be sent again.
    next = {.what = Next::What::again,
            .requested_seconds = requested_wait(response, now),
            .limit = true};
    next.why = "a rate limit: " + describe_answer(response, masker);
    return next;
  }
  if (status == 403 || status == 404 || status == 409 || status == 422) return next;
  next = {.what = Next::What::refused, .why = describe_answer(response, masker)};
  if (status == 408 || (status >= 500 && status != 501 && status != 505)) {
    next.requested_seconds = requested_wait(response, now);
    // A 503 with a wait says that nothing was done; the others leave that open.
    const bool was_not_done = status == 503 && next.requested_seconds.has_value();
    next.maybe_done = !was_not_done;
    if (!is_once || was_not_done) next.what = Next::What::again;
  }
  return next;
}

Next after_failure(const sys::HttpFailure& failure, bool once, const Masker& masker) {
  using What = sys::HttpFailure::What;
  Next next{.what = Next::What::refused, .maybe_done = failure.sent};
  next.why = safe_text(failure.message, masker);
  const bool is_transient = failure.what == What::no_connection ||
                            failure.what == What::timed_out || failure.what == What::cut;
  if (is_transient && (!once || !failure.sent)) next.what = Next::What::again;
  return next;
}

}  // namespace weir::publish
