// Parses request targets and builds responses.
#include "gate/serve/http.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/encode.hpp"
#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

namespace weir::serve {

namespace {

// A server behind a proxy may decode a path once more. Deeper nesting has no honest use.
constexpr int k_max_decodings = 4;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_escape(std::string_view text, std::size_t at) {
  return at + 2 < text.size() && hex_digit(text[at + 1]) >= 0 && hex_digit(text[at + 2]) >= 0;
}

enum class Plus { stays, is_space };

// Decodes %-escapes, and "+" as a space if `plus` says so. Keeps a '%' without two hexadecimal
// digits; callers reject it before.
std::string percent_decode(std::string_view text, Plus plus) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && is_escape(text, i)) {
      bytes += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      bytes += text[i] == '+' && plus == Plus::is_space ? ' ' : text[i];
    }
  }
  return bytes;
}

// Returns true for well-formed UTF-8 without control characters (C0, DEL and C1).
bool is_plain_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t point = text::next_code_point(text, at);
    const bool is_invalid = point == 0xFFFD && at == start + 1;
    if (is_invalid || point < 0x20 || (point >= 0x7F && point < 0xA0)) return false;
  }
  return true;
}

// Returns true if a segment is "." or "..". A '\' counts as a '/', as on some systems.
bool has_dot_segment(std::string_view path) {
  while (true) {
    const std::size_t end = path.find_first_of("/\\");
    const std::string_view segment = path.substr(0, end);
    if (segment == "." || segment == "..") return true;
    if (end == std::string_view::npos) return false;
    path.remove_prefix(end + 1);
  }
}

// Decodes a path. Fails if it is ambiguous, or if decoding it again and again would give it a
// segment "." or "..".
Result<std::string> parse_path(std::string_view text) {
  std::string path = percent_decode(text, Plus::stays);
  if (!is_plain_text(path)) return fail(Code::data, "the path is no text");
  if (path.starts_with("//") || path.find('\\') != std::string::npos) {
    return fail(Code::data, "the path is ambiguous");  // in a URL it could name another server
  }
  std::string decoded_path = path;
  for (int i = 0; i < k_max_decodings; ++i) {
    if (has_dot_segment(decoded_path)) return fail(Code::data, "the path has a segment of dots");
    std::string next = percent_decode(decoded_path, Plus::stays);
    if (next == decoded_path) return path;
    decoded_path = std::move(next);
  }
  return fail(Code::data, "the path is encoded too often");
}

// Decodes one "name=value" and adds it to the target's query; without "=" the value is empty. Fails
// if either contains control characters or no UTF-8.
Result<void> add_parameter(std::string_view text, Target& target) {
  const std::size_t equal = text.find('=');
  const std::string name = percent_decode(text.substr(0, equal), Plus::is_space);
  const std::string value = equal == std::string_view::npos
                                ? std::string()
                                : percent_decode(text.substr(equal + 1), Plus::is_space);
  if (!is_plain_text(name) || !is_plain_text(value)) {
    return fail(Code::data, "a parameter of the query is no text");
  }
  target.query[name].push_back(value);
  return {};
}

// Splits a query at '&' and adds its parameters to the target. Empty ones are skipped; fails if
// there are too many.
Result<void> add_query(std::string_view text, Target& target) {
  std::size_t parameter_count = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    if (end > 0) {
      ++parameter_count;
      if (parameter_count > k_max_parameters) {
        return fail(Code::data, "the query has more than {} parameters", k_max_parameters);
      }
      WEIR_CHECK(add_parameter(text.substr(0, end), target));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

constexpr const char* k_page_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types weir";
constexpr const char* k_other_policy = "default-src 'none'; frame-ancestors 'none'; sandbox";

// Returns the error code for programs that goes with a status.
std::string_view error_code(int status) {
  constexpr std::pair<int, std::string_view> k_words[] = {
      {400, "bad_request"},         {401, "unauthorized"},           {403, "forbidden"},
      {404, "not_found"},           {405, "method_not_allowed"},     {411, "length_required"},
      {413, "too_large"},           {415, "unsupported_media_type"}, {421, "misdirected_request"},
      {422, "unprocessable"},       {429, "too_many_requests"},      {503, "unavailable"},
      {507, "insufficient_storage"}};
  const auto* entry = find_first(k_words, [&](const auto& word) { return word.first == status; });
  return entry == nullptr ? "internal" : entry->second;
}

// Returns true if an If-None-Match list like `"a", W/"b"` contains `tag`, or is "*".
bool matches_tag(std::string_view list, std::string_view tag) {
  for (const std::string& part : text::split(list, ',')) {
    std::string_view candidate = text::trim(part);
    if (candidate.starts_with("W/")) candidate.remove_prefix(2);
    if (candidate == tag || candidate == "*") return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> Target::value(std::string_view name) const {
  const auto entry = query.find(name);
  if (entry == query.end() || entry->second.size() != 1) return std::nullopt;
  return entry->second.front();
}

// Parses a request's target, its path and query ("/a?b=c"). Fails if it is too long, malformed or
// ambiguous.
Result<Target> parse_target(std::string_view text) {
  if (text.size() > k_longest_target) {
    return fail(Code::data, "the target is longer than {} bytes", k_longest_target);
  }
  if (text.empty() || text.front() != '/') {
    return fail(Code::data, "the target does not begin with /");
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c <= ' ' || c > '~' || c == '#') {
      return fail(Code::data, "the target has a character that may not stand in it");
    }
    if (c == '%' && !is_escape(text, i)) {
      return fail(Code::data, "the target has a % without two hexadecimal digits");
    }
  }
  const std::size_t path_end = std::min(text.find('?'), text.size());
  Target target;
  WEIR_TRY(target.path, parse_path(text.substr(0, path_end)));
  if (path_end < text.size()) WEIR_CHECK(add_query(text.substr(path_end + 1), target));
  return target;
}

const std::string* Head::header(std::string_view name) const {
  const auto* entry = find_first(headers, [&](const auto& header) { return header.first == name; });
  return entry == nullptr ? nullptr : &entry->second;
}

std::string header_value(std::string_view text) {
  std::string value(text);
  for (char& c : value) {
    if (c < ' ' || c > '~') c = '?';
  }
  return value;
}

Response text_answer(int status, std::string type, std::string text) {
  return {status, std::move(type), {}, std::make_shared<const std::string>(std::move(text))};
}

Response json_answer(int status, const Json& json) {
  return text_answer(status, "application/json", dump_json(json) + "\n");
}

Response error_answer(int status, std::string_view message, std::string_view hint) {
  Json error{{"code", error_code(status)}, {"message", text::printable(message)}};
  if (!hint.empty()) error["hint"] = text::printable(hint);
  return json_answer(status, {{"error", std::move(error)}});
}

Response error_response(int status, std::string_view code, std::string_view message) {
  Response response = json_answer(status, {{"error", {{"code", code}, {"message", message}}}});
  if (status == 503) set_header(response, "Retry-After", "5");
  return response;
}

Response later_answer(int status, std::string_view message, double seconds) {
  Response response = error_answer(status, message);
  const double whole_seconds = std::clamp(std::ceil(seconds), 1.0, 86'400.0);
  set_header(response, "Retry-After", fmt::format("{}", static_cast<int>(whole_seconds)));
  return response;
}

void set_header(Response& response, std::string name, std::string value) {
  response.headers.emplace_back(std::move(name), header_value(value));
}

// Adds the security and caching headers. Turns a response to GET or HEAD into 304 without a body if
// the client's If-None-Match shows that it has this version.
void add_standard_headers(const Head& head, const ResponseOptions& options, Response& response) {
  const auto has_header = [&](std::string_view name) {
    return std::ranges::any_of(response.headers,
                               [&](const auto& header) { return header.first == name; });
  };
  set_header(response, "Content-Security-Policy", options.page ? k_page_policy : k_other_policy);
  if (!has_header("Cross-Origin-Resource-Policy")) {
    set_header(response, "Cross-Origin-Resource-Policy", "same-origin");
  }
  if (options.secure) set_header(response, "Strict-Transport-Security", "max-age=31536000");
  if (!options.is_public) set_header(response, "Vary", "Authorization");
  if (response.status != 200 || !response.body || has_header("Cache-Control")) {
    if (!has_header("Cache-Control")) set_header(response, "Cache-Control", "no-store");
    return;
  }
  const bool is_read = head.method == Method::get || head.method == Method::head;
  set_header(response, "Cache-Control", options.is_public ? "no-cache" : "private, no-cache");
  if (!is_read) return;
  const std::string version_tag = "\"" + hash_hex(*response.body) + "\"";
  set_header(response, "ETag", version_tag);
  const std::string* client_tags = head.header("if-none-match");
  if (client_tags == nullptr || !matches_tag(*client_tags, version_tag)) return;
  response.status = 304;
  response.type.clear();
  response.body.reset();
}

std::string address_with_cursor(const Target& target, std::string_view cursor) {
  std::string address = target.path + "?";
  for (const auto& [name, values] : target.query) {
    if (name == "cursor") continue;
    for (const std::string& value : values) {
      address += percent_encode(name) + "=" + percent_encode(value) + "&";
    }
  }
  return address + "cursor=" + percent_encode(cursor);
}

}  // namespace weir::serve
