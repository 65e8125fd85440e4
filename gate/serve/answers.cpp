#include "gate/serve/answers.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/encode.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

namespace weir::serve {
namespace {

constexpr const char* k_page_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types weir";
constexpr const char* k_other_policy = "default-src 'none'; frame-ancestors 'none'; sandbox";

std::string_view word_of(int status) {
  switch (status) {
    case 400:
      return "bad_request";
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      return "not_found";
    case 405:
      return "method_not_allowed";
    case 411:
      return "length_required";
    case 413:
      return "too_large";
    case 415:
      return "unsupported_media_type";
    case 421:
      return "misdirected_request";
    case 422:
      return "unprocessable";
    case 429:
      return "too_many_requests";
    case 503:
      return "unavailable";
    default:
      return "internal";
  }
}

// Is `tag` one of a list like `"a", W/"b"`, or is that "*"?
bool names_tag(std::string_view list, std::string_view tag) {
  for (const std::string& part : text::split(list, ',')) {
    std::string_view one = text::trim(part);
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == tag || one == "*") return true;
  }
  return false;
}

}  // namespace

Response text_answer(int status, std::string type, std::string text) {
  return {status, std::move(type), {}, std::make_shared<const std::string>(std::move(text))};
}

Response json_answer(int status, const Json& json) {
  return text_answer(status, "application/json", dump_json(json) + "\n");
}

Response error_answer(int status, std::string_view message, std::string_view hint) {
  Json error{{"code", word_of(status)}, {"message", text::printable(message)}};
  if (!hint.empty()) error["hint"] = text::printable(hint);
  return json_answer(status, {{"error", std::move(error)}});
}

Response later_answer(int status, std::string_view message, double seconds) {
  Response response = error_answer(status, message);
  const double whole = std::clamp(std::ceil(seconds), 1.0, 3600.0);
  set_header(response, "Retry-After", fmt::format("{}", static_cast<int>(whole)));
  return response;
}

void set_header(Response& response, std::string name, std::string value) {
  response.headers.emplace_back(std::move(name), header_value(value));
}

void finish(const Head& head, const Finish& how, Response& response) {
  const auto has = [&](std::string_view name) {
    return std::any_of(response.headers.begin(), response.headers.end(),
                       [&](const auto& header) { return header.first == name; });
  };
  set_header(response, "Content-Security-Policy", how.page ? k_page_policy : k_other_policy);
  if (!has("Cross-Origin-Resource-Policy")) {
    set_header(response, "Cross-Origin-Resource-Policy", "same-origin");
  }
  if (how.secure) set_header(response, "Strict-Transport-Security", "max-age=31536000");
  if (!how.is_public) set_header(response, "Vary", "Authorization");
  if (response.status != 200 || !response.body || has("Cache-Control")) {
    if (!has("Cache-Control")) set_header(response, "Cache-Control", "no-store");
    return;
  }
  const bool reading = head.method == Method::get || head.method == Method::head;
  set_header(response, "Cache-Control", how.is_public ? "no-cache" : "private, no-cache");
  if (!reading) return;
  const std::string tag = "\"" + hash_hex(*response.body) + "\"";
  set_header(response, "ETag", tag);
  const std::string* known = head.header("if-none-match");
  if (known == nullptr || !names_tag(*known, tag)) return;
  response.status = 304;
  response.type.clear();
  response.body.reset();
}

std::string address_with_cursor(const Target& target, std::string_view cursor) {
  std::string address = target.path + "?";
  for (const auto& [name, values] : target.query) {
    if (name == "cursor") continue;
    for (const std::string& value : values) {
      address += percent_encoded(name) + "=" + percent_encoded(value) + "&";
    }
  }
  return address + "cursor=" + percent_encoded(cursor);
}

}  // namespace weir::serve
