#include "gate/serve/http.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/encode.hpp"
#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

namespace weir::serve {

namespace {

// Who stands behind a proxy may see a path that was decoded once more there; deeper nesting than
// this has no honest use.
constexpr int k_most_decodings = 4;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool escape_at(std::string_view text, std::size_t at) {
  return at + 2 < text.size() && hex_digit(text[at + 1]) >= 0 && hex_digit(text[at + 2]) >= 0;
}

enum class Plus { stays, is_space };

// A '%' without two hexadecimal digits stays as it is: who may not have one looks for it before.
std::string decoded(std::string_view text, Plus plus) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && escape_at(text, i)) {
      bytes += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      bytes += text[i] == '+' && plus == Plus::is_space ? ' ' : text[i];
    }
  }
  return bytes;
}

// Well-formed, and without control characters (those of ISO 6429's second set included).
bool plain_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    const char32_t point = text::next_code_point(text, at);
    const bool none = point == 0xFFFD && at == from + 1;
    if (none || point < 0x20 || (point >= 0x7F && point < 0xA0)) return false;
  }
  return true;
}

// With '\' as a '/', as some systems take it.
bool has_dot_segment(std::string_view path) {
  while (true) {
    const std::size_t end = path.find_first_of("/\\");
    const std::string_view segment = path.substr(0, end);
    if (segment == "." || segment == "..") return true;
    if (end == std::string_view::npos) return false;
    path.remove_prefix(end + 1);
  }
}

Result<std::string> path_of(std::string_view text) {
  std::string path = decoded(text, Plus::stays);
  if (!plain_text(path)) return fail(Code::data, "the path is no text");
  if (path.starts_with("//") || path.find('\\') != std::string::npos) {
    return fail(Code::data, "the path is ambiguous");  // as an address it may name another server
  }
  std::string deeper = path;
  for (int i = 0; i < k_most_decodings; ++i) {
    if (has_dot_segment(deeper)) return fail(Code::data, "the path has a segment of dots");
    std::string next = decoded(deeper, Plus::stays);
    if (next == deeper) return path;
    deeper = std::move(next);
  }
  return fail(Code::data, "the path is encoded too often");
}

Result<void> add_parameter(std::string_view text, Target& target) {
  const std::size_t equal = text.find('=');
  const std::string name = decoded(text.substr(0, equal), Plus::is_space);
  const std::string value = equal == std::string_view::npos
                                ? std::string()
                                : decoded(text.substr(equal + 1), Plus::is_space);
  if (!plain_text(name) || !plain_text(value)) {
    return fail(Code::data, "a parameter of the query is no text");
  }
  target.query[name].push_back(value);
  return {};
}

Result<void> add_query(std::string_view text, Target& target) {
  std::size_t count = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    if (end > 0) {
      if (++count > k_most_parameters) {
        return fail(Code::data, "the query has more than {} parameters", k_most_parameters);
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

std::string_view word_of(int status) {
  constexpr std::pair<int, std::string_view> k_words[] = {
      {400, "bad_request"},         {401, "unauthorized"},           {403, "forbidden"},
      {404, "not_found"},           {405, "method_not_allowed"},     {411, "length_required"},
      {413, "too_large"},           {415, "unsupported_media_type"}, {421, "misdirected_request"},
      {422, "unprocessable"},       {429, "too_many_requests"},      {503, "unavailable"},
      {507, "insufficient_storage"}};
  const auto* found = first_of(k_words, [&](const auto& one) { return one.first == status; });
  return found == nullptr ? "internal" : found->second;
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

std::optional<std::string> Target::one(std::string_view name) const {
  const auto found = query.find(name);
  if (found == query.end() || found->second.size() != 1) return std::nullopt;
  return found->second.front();
}

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
    if (c == '%' && !escape_at(text, i)) {
      return fail(Code::data, "the target has a % without two hexadecimal digits");
    }
  }
  const std::size_t mark = std::min(text.find('?'), text.size());
  Target target;
  WEIR_TRY(target.path, path_of(text.substr(0, mark)));
  if (mark < text.size()) WEIR_CHECK(add_query(text.substr(mark + 1), target));
  return target;
}

const std::string* Head::header(std::string_view name) const {
  const auto* found = first_of(headers, [&](const auto& one) { return one.first == name; });
  return found == nullptr ? nullptr : &found->second;
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
  Json error{{"code", word_of(status)}, {"message", text::printable(message)}};
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
  const double whole = std::clamp(std::ceil(seconds), 1.0, 86'400.0);
  set_header(response, "Retry-After", fmt::format("{}", static_cast<int>(whole)));
  return response;
}

void set_header(Response& response, std::string name, std::string value) {
  response.headers.emplace_back(std::move(name), header_value(value));
}

void finish(const Head& head, const Finish& how, Response& response) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(response.headers,
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
