#include "gate/serve/server_answer.hpp"

#include <algorithm>
#include <ctime>

#include <boost/beast/http/status.hpp>
#include <fmt/format.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir::serve {
namespace {

namespace http = boost::beast::http;

constexpr std::string_view k_framing[] = {"connection", "content-length", "transfer-encoding",
                                          "date",       "keep-alive",     "trailer"};

bool own_header(std::string_view name) {
  return std::find(std::begin(k_framing), std::end(k_framing), text::lower(name)) !=
         std::end(k_framing);
}

}  // namespace

Response error_response(int status, std::string_view code, std::string_view message) {
  const Json json = {{"error", {{"code", code}, {"message", message}}}};
  Response response;
  response.status = status;
  response.type = "application/json";
  response.body = std::make_shared<const std::string>(dump_json(json) + "\n");
  if (status == 503) response.headers.emplace_back("Retry-After", "5");
  return response;
}

std::string http_date(double seconds_since_epoch) {
  constexpr const char* k_days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* k_months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto seconds = static_cast<std::time_t>(seconds_since_epoch);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", k_days[utc.tm_wday], utc.tm_mday,
                     k_months[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string head_text(const Response& response, const Framing& framing) {
  const auto reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status,
                  std::string_view(reason.data(), reason.size()), http_date(framing.now));
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}: {}\r\n", header_value(name), header_value(value));
  };
  if (!response.type.empty()) add("Content-Type", response.type);
  if (has_body(response.status)) {
    add("Content-Length", fmt::format("{}", response.body ? response.body->size() : 0));
  }
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  for (const auto& [name, value] : response.headers) {
    if (!own_header(name)) add(name, value);
  }
  if (framing.close) {
    add("Connection", "close");
  } else if (framing.http_1_0) {
    add("Connection", "keep-alive");
  }
  return text + "\r\n";
}

}  // namespace weir::serve
