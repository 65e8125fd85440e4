// Reads HTTP requests with Beast's parser, stricter than it where readers could disagree.
#include "gate/serve/server_reader.hpp"

#include <algorithm>
#include <ctime>
#include <limits>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>
#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::serve {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using BeastText = boost::beast::string_view;

std::string_view view(BeastText text) { return {text.data(), text.size()}; }

// Headers that frame the connection; a response may not set them itself.
constexpr std::string_view k_framing[] = {"connection", "content-length", "transfer-encoding",
                                          "date",       "keep-alive",     "trailer"};

// Headers that must not be repeated, because readers disagree on which value counts.
constexpr std::string_view k_single[] = {
    "host",         "content-length", "transfer-encoding", "authorization",
    "content-type", "expect",         "idempotency-key",   "origin",
    "cookie",
};

// Returns true if the text looks like a Host header: "name", "name:80" or "[::1]:80". Only the
// characters are checked.
bool is_host(std::string_view text) {
  constexpr std::string_view k_name =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()*+;=";
  const bool is_bracketed = text.starts_with('[');
  const std::size_t end = is_bracketed ? text.find(']') : text.find(':');
  std::string_view name = text.substr(0, end);
  std::string_view rest = end == std::string_view::npos ? "" : text.substr(end);
  if (is_bracketed) {
    if (rest.empty()) return false;
    name.remove_prefix(1);
    rest.remove_prefix(1);
    if (name.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos) return false;
  } else if (name.find_first_not_of(k_name) != std::string_view::npos) {
    return false;
  }
  return !name.empty() &&
         (rest.empty() || rest == ":" || (rest[0] == ':' && text::has_only_digits(rest.substr(1))));
}

Refusal malformed(std::string message) { return {400, "malformed", std::move(message)}; }

// Checks the head byte by byte before it is parsed, so that all readers agree on where lines end.
class HeadScan {
 public:
  explicit HeadScan(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns true once `bytes` contain the complete head, which is size() bytes long. Sets `refusal`
  // if it is malformed or too long.
  bool find_end(std::string_view bytes, std::optional<Refusal>& refusal) {
    for (; position_ < bytes.size() && !refusal; ++position_) {
      if (position_ >= max_bytes_) {
        refusal = too_long();
      } else if (bytes[position_] == '\0') {
        refusal = malformed("a zero octet in the head");
      } else if (position_ == line_start_ && line_start_ > 0 &&
                 (bytes[position_] == ' ' || bytes[position_] == '\t')) {
        refusal = malformed("a header that goes on in the next line");
      } else if ((bytes[position_] == '\n') != after_cr_) {
        refusal = malformed("a line that does not end in CR LF");
      } else if (bytes[position_] == '\n') {
        if (position_ == line_start_ + 1) {
          ++position_;
          return true;
        }
        line_start_ = position_ + 1;
        ++lines_;
        if (lines_ > k_max_headers + 1) refusal = too_long();
      }
      after_cr_ = bytes[position_] == '\r';
    }
    return false;
  }
  [[nodiscard]] std::size_t size() const { return position_; }

 private:
  [[nodiscard]] Refusal too_long() const {
    if (lines_ == 0) return {414, "target_too_long", "the request line is too long"};
    return {431, "headers_too_large", "the headers are too many or too long"};
  }

  std::size_t max_bytes_;
  std::size_t position_ = 0, line_start_ = 0, lines_ = 0;
  bool after_cr_ = false;
};

// Returns true if the first line, between chunks, contains a quote. Beast 1.74 would search for its
// end in the following lines, and count the chunk against the body's limit with every attempt.
bool has_open_quote(std::string_view bytes) {
  if (bytes.starts_with("\r\n")) bytes.remove_prefix(2);
  const std::size_t end = bytes.find("\r\n");
  return end != std::string_view::npos && bytes.substr(0, end).find('"') != std::string_view::npos;
}

// Turns an error of the HTTP parser into the answer that the client gets: 413, 505, or 400 for all
// others.
Refusal make_refusal(error_code error, std::string_view first_line) {
  if (error == http::error::body_limit) {
    return {413, "too_large", "the body is larger than it may be"};
  }
  if (error == http::error::bad_version) {
    const std::size_t version_at = first_line.rfind(" HTTP/");
    const std::string_view version =
        version_at == std::string_view::npos ? "" : first_line.substr(version_at + 6);
    const bool two_spaces = std::ranges::count(first_line, ' ') == 2;
    if (two_spaces && version.size() == 3 && text::has_only_digits(version.substr(0, 1)) &&
        version[1] == '.') {
      return {505, "version", "this server speaks HTTP/1.1 and HTTP/1.0"};
    }
  }
  return malformed(error.message());
}

class Parser final : public RequestReader, private http::basic_parser<true> {
 public:
  explicit Parser(std::size_t header_bytes) : scan_(header_bytes), max_line_bytes_(header_bytes) {
    eager(false);  // one part at a time, so that the result does not depend on how bytes arrive
    // No real limit until the head is admitted. "No limit" itself fails: to Beast 1.74 any length
    // is larger.
    body_limit(std::numeric_limits<std::uint64_t>::max());
    header_limit(static_cast<std::uint32_t>(
        std::min<std::size_t>(header_bytes, std::numeric_limits<std::uint32_t>::max())));
  }

  // Reads from `bytes` and returns how many were consumed.
  std::size_t feed(std::string_view bytes) override {
    if (bytes.empty()) return 0;
    if (read_state_ == State::body) return read_body(bytes);
    if (read_state_ != State::head) return 0;
    if (!skipped_line_ && scan_.size() == 0) {
      // Skip one empty line in front: some clients send it after a body (RFC 9112, 2.2).
      if (bytes == "\r") return 0;
      skipped_line_ = true;
      if (bytes.starts_with("\r\n")) return 2;
    }
    std::optional<Refusal> refusal;
    const bool is_complete = scan_.find_end(bytes, refusal);
    if (refusal) refuse(std::move(*refusal));
    if (!is_complete) return 0;
    read_head(bytes.substr(0, scan_.size()));
    return scan_.size();
  }

  void set_body_limit(std::uint64_t max_body_bytes) override {
    if (read_state_ != State::waiting) return;
    if (head_.length && *head_.length > max_body_bytes) {
      return refuse(make_refusal(http::error::body_limit, ""));
    }
    body_limit(max_body_bytes);
    read_state_ = is_done() ? State::done : State::body;
  }

  [[nodiscard]] bool keep_alive() const override {
    return is_header_done() && basic_parser::keep_alive();
  }

 private:
  // Parses the complete head and checks its target and headers.
  void read_head(std::string_view bytes) {
    error_code error;
    put({bytes.data(), bytes.size()}, error);
    if (error) return refuse(make_refusal(error, bytes.substr(0, bytes.find('\r'))));
    if (!is_header_done()) return refuse(malformed("a head that is none"));
    if (auto refusal = check_target()) return refuse(std::move(*refusal));
    if (auto refusal = check_fields()) return refuse(std::move(*refusal));
    if (const auto length = content_length()) head_.length = *length;
    read_state_ = State::waiting;
  }

  // Parses bytes of the body and returns how many were consumed.
  std::size_t read_body(std::string_view bytes) {
    // Beast 1.74 asserts that a last chunk which it has seen in part comes as at least five bytes
    // ("0\r\n\r\n"). No chunked body ends with fewer, so we wait for five.
    const std::size_t min_bytes = chunked() ? 5 : 1;
    const std::size_t size = bytes.size();
    error_code error;
    while (!error && !is_done() && bytes.size() >= min_bytes) {
      bytes.remove_prefix(put({bytes.data(), bytes.size()}, error));
    }
    if (error == http::error::need_more && chunked() && has_open_quote(bytes)) {
      error = http::error::bad_chunk_extension;
    }
    if (is_done()) {
      read_state_ = State::done;
    } else if (error && error != http::error::need_more) {
      refuse(make_refusal(error, ""));
    } else if (bytes.size() > max_line_bytes_) {
      refuse(malformed("a line between chunks is too long"));
    }
    return size - bytes.size();
  }

  void refuse(Refusal refusal) {
    refusal_ = std::move(refusal);
    read_state_ = State::refused;
  }

  std::optional<Refusal> check_target() {
    if (target_.size() > k_longest_target) {
      return Refusal{414, "target_too_long", "the target is too long"};
    }
    auto target = serve::parse_target(target_);
    if (!target) return malformed(target.error().message);
    head_.target = std::move(*target);
    return std::nullopt;
  }

  // Checks headers that decide how the request is framed, and Host and Expect.
  std::optional<Refusal> check_fields() {
    if (has_repeated_header_)
      return malformed("a header that may stand there once stands there twice");
    const std::string* host = head_.header("host");
    if (host == nullptr && version_ != 10) return malformed("there is no Host");
    if (host != nullptr && !is_host(*host)) return malformed("the Host is none");
    const std::string* length = head_.header("content-length");
    if (length != nullptr && !text::has_only_digits(*length))
      return malformed("the Content-Length is no number");
    if (const std::string* coding = head_.header("transfer-encoding")) {
      if (version_ == 10) return malformed("HTTP/1.0 has no Transfer-Encoding");
      if (length != nullptr) return malformed("both Content-Length and Transfer-Encoding");
      if (text::lower(*coding) != "chunked") {
        return malformed("a Transfer-Encoding other than chunked");
      }
    }
    const std::string* expect = head_.header("expect");
    if (expect != nullptr && version_ != 10 && text::lower(*expect) != "100-continue") {
      return Refusal{417, "expectation_failed", "what is expected is not known here"};
    }
    return std::nullopt;
  }

  void on_request_impl(http::verb, BeastText method, BeastText target, int number,
                       error_code&) override {
    head_.method = value_of(k_methods, view(method)).value_or(Method::other);
    target_ = view(target);
    version_ = number;
  }
  void on_response_impl(int, BeastText, int, error_code&) override {}
  // Adds a header. A repeated one is joined to the first by ", ", unless it must not be repeated.
  void on_field_impl(http::field, BeastText field_name, BeastText value, error_code&) override {
    if (read_state_ != State::head) return;  // ignore trailers after chunks
    std::string name = text::lower(view(field_name));
    const auto existing = std::ranges::find_if(
        head_.headers, [&](const auto& header) { return header.first == name; });
    if (existing == head_.headers.end()) {
      head_.headers.emplace_back(std::move(name), view(value));
    } else if (holds(k_single, name)) {
      has_repeated_header_ = true;
    } else {
      existing->second.append(", ").append(view(value));
    }
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(BeastText bytes, error_code&) override {
    // Reserve room as bytes arrive, not as announced: a large number costs the client nothing.
    if (bytes.size() > body_.capacity() - body_.size()) {
      const std::uint64_t announced_bytes =
          head_.length.value_or(std::numeric_limits<std::uint64_t>::max());
      const std::uint64_t needed = std::max<std::uint64_t>(body_.size() + bytes.size(), 4096);
      body_.reserve(static_cast<std::size_t>(std::max(
          needed, std::min<std::uint64_t>(announced_bytes, std::uint64_t{2} * body_.size()))));
    }
    body_.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, BeastText extensions, error_code& error) override {
    // Unknown extensions are ignored, except where another reader could see a line end in them.
    // Quoted values could contain one, and no client sends them.
    for (const char c : extensions) {
      const bool is_control = static_cast<unsigned char>(c) < ' ' && c != '\t';
      if (is_control || c == '"') error = http::error::bad_chunk_extension;
    }
  }
  std::size_t on_chunk_body_impl(std::uint64_t, BeastText bytes, error_code& error) override {
    return on_body_impl(bytes, error);
  }
  void on_finish_impl(error_code&) override {}

  HeadScan scan_;
  const std::size_t max_line_bytes_;
  bool skipped_line_ = false, has_repeated_header_ = false;
  std::string target_;
};

}  // namespace

std::unique_ptr<RequestReader> RequestReader::make(std::size_t header_bytes) {
  return std::make_unique<Parser>(header_bytes);
}

std::string http_date(double seconds_since_epoch) {
  const auto seconds = static_cast<std::time_t>(seconds_since_epoch);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  return {text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

// Returns the status line and headers of a response, ending with an empty line. Line breaks in
// header values are removed.
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
    if (!holds(k_framing, text::lower(name))) add(name, value);
  }
  if (framing.close) {
    add("Connection", "close");
  } else if (framing.http_1_0) {
    add("Connection", "keep-alive");
  }
  return text + "\r\n";
}

}  // namespace weir::serve
