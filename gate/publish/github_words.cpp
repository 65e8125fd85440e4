#include "gate/publish/github_words.hpp"

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

}  // namespace weir::publish
