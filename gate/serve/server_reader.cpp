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

// What a connection is framed by: never an answer's own.
constexpr std::string_view k_framing[] = {"connection", "content-length", "transfer-encoding",
                                          "date",       "keep-alive",     "trailer"};

// What means something else to each reader when it is said twice.
constexpr std::string_view k_single[] = {
    "host",         "content-length", "transfer-encoding", "authorization",
    "content-type", "expect",         "idempotency-key",   "origin",
    "cookie",
};

bool digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "name", "name:80", "[::1]:80": the characters alone; nobody is looked up by it.
bool host_like(std::string_view text) {
  constexpr std::string_view k_name =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()*+;=";
  const bool bracketed = text.starts_with('[');
  const std::size_t end = bracketed ? text.find(']') : text.find(':');
  std::string_view name = text.substr(0, end);
  std::string_view rest = end == std::string_view::npos ? "" : text.substr(end);
  if (bracketed) {
    if (rest.empty()) return false;
    name.remove_prefix(1);
    rest.remove_prefix(1);
    if (name.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos) return false;
  } else if (name.find_first_not_of(k_name) != std::string_view::npos) {
    return false;
  }
  return !name.empty() &&
         (rest.empty() || rest == ":" || (rest[0] == ':' && digits(rest.substr(1))));
}

Refusal malformed(std::string message) { return {400, "malformed", std::move(message)}; }

// The head byte by byte, before anybody parses it: where lines end is the same for all readers
// then.
class HeadScan {
 public:
  explicit HeadScan(std::size_t most) : most_(most) {}

  // True when `bytes` hold the whole head, which is size() bytes long.
  bool whole(std::string_view bytes, std::optional<Refusal>& refusal) {
    for (; at_ < bytes.size() && !refusal; ++at_) {
      if (at_ >= most_) {
        refusal = too_long();
      } else if (bytes[at_] == '\0') {
        refusal = malformed("a zero octet in the head");
      } else if (at_ == line_ && line_ > 0 && (bytes[at_] == ' ' || bytes[at_] == '\t')) {
        refusal = malformed("a header that goes on in the next line");
      } else if ((bytes[at_] == '\n') != after_return_) {
        refusal = malformed("a line that does not end in CR LF");
      } else if (bytes[at_] == '\n') {
        if (at_ == line_ + 1) return ++at_ > 0;
        line_ = at_ + 1;
        if (++lines_ > k_most_headers + 1) refusal = too_long();
      }
      after_return_ = bytes[at_] == '\r';
    }
    return false;
  }
  [[nodiscard]] std::size_t size() const { return at_; }

 private:
  [[nodiscard]] Refusal too_long() const {
    if (lines_ == 0) return {414, "target_too_long", "the request line is too long"};
    return {431, "headers_too_large", "the headers are too many or too long"};
  }

  std::size_t most_;
  std::size_t at_ = 0, line_ = 0, lines_ = 0;
  bool after_return_ = false;
};

// A whole line between chunks with a quote in it. Beast 1.74 would look for its end in the lines
// behind, and take the size of the chunk from what a body may have each time that it looks.
bool open_quote(std::string_view bytes) {
  if (bytes.starts_with("\r\n")) bytes.remove_prefix(2);
  const std::size_t end = bytes.find("\r\n");
  return end != std::string_view::npos && bytes.substr(0, end).find('"') != std::string_view::npos;
}

Refusal refusal_of(error_code error, std::string_view first_line) {
  if (error == http::error::body_limit) {
    return {413, "too_large", "the body is larger than it may be"};
  }
  if (error == http::error::bad_version) {
    const std::size_t at = first_line.rfind(" HTTP/");
    const std::string_view version = at == std::string_view::npos ? "" : first_line.substr(at + 6);
    const bool two_spaces = std::ranges::count(first_line, ' ') == 2;
    if (two_spaces && version.size() == 3 && digits(version.substr(0, 1)) && version[1] == '.') {
      return {505, "version", "this server speaks HTTP/1.1 and HTTP/1.0"};
    }
  }
  return malformed(error.message());
}

class Parser final : public RequestReader, private http::basic_parser<true> {
 public:
  explicit Parser(std::size_t header_bytes) : scan_(header_bytes), most_line_(header_bytes) {
    eager(false);  // one part at a time, so that each is read the same however it comes
    // Until the head is admitted. "No limit" would not do: Beast 1.74 takes any length for larger.
    body_limit(std::numeric_limits<std::uint64_t>::max());
    header_limit(static_cast<std::uint32_t>(
        std::min<std::size_t>(header_bytes, std::numeric_limits<std::uint32_t>::max())));
  }

  std::size_t feed(std::string_view bytes) override {
    if (bytes.empty()) return 0;
    if (read_state_ == State::body) return read_body(bytes);
    if (read_state_ != State::head) return 0;
    if (!skipped_line_ && scan_.size() == 0) {
      // One empty line in front: some send it behind a body (RFC 9112, 2.2).
      if (bytes == "\r") return 0;
      skipped_line_ = true;
      if (bytes.starts_with("\r\n")) return 2;
    }
    std::optional<Refusal> refusal;
    const bool whole = scan_.whole(bytes, refusal);
    if (refusal) refuse(std::move(*refusal));
    if (!whole) return 0;
    read_head(bytes.substr(0, scan_.size()));
    return scan_.size();
  }

  void admit(std::uint64_t most_body) override {
    if (read_state_ != State::waiting) return;
    if (head_.length && *head_.length > most_body) {
      return refuse(refusal_of(http::error::body_limit, ""));
    }
    body_limit(most_body);
    read_state_ = is_done() ? State::done : State::body;
  }

  [[nodiscard]] bool keep_alive() const override {
    return is_header_done() && basic_parser::keep_alive();
  }

 private:
  void read_head(std::string_view bytes) {
    error_code error;
    put({bytes.data(), bytes.size()}, error);
    if (error) return refuse(refusal_of(error, bytes.substr(0, bytes.find('\r'))));
    if (!is_header_done()) return refuse(malformed("a head that is none"));
    if (auto wrong = check_target()) return refuse(std::move(*wrong));
    if (auto wrong = check_fields()) return refuse(std::move(*wrong));
    if (const auto length = content_length()) head_.length = *length;
    read_state_ = State::waiting;
  }

  std::size_t read_body(std::string_view bytes) {
    // Beast 1.74 asserts that the last chunk comes as five bytes or more ("0\r\n\r\n"), when it has
    // seen a part of it before. No chunked body ends with fewer, so waiting for them loses nothing.
    const std::size_t least = chunked() ? 5 : 1;
    const std::size_t size = bytes.size();
    error_code error;
    while (!error && !is_done() && bytes.size() >= least) {
      bytes.remove_prefix(put({bytes.data(), bytes.size()}, error));
    }
    if (error == http::error::need_more && chunked() && open_quote(bytes)) {
      error = http::error::bad_chunk_extension;
    }
    if (is_done()) {
      read_state_ = State::done;
    } else if (error && error != http::error::need_more) {
      refuse(refusal_of(error, ""));
    } else if (bytes.size() > most_line_) {
      refuse(malformed("a line between chunks is too long"));
    }
    return size - bytes.size();
  }

  void refuse(Refusal why) {
    refusal_ = std::move(why);
    read_state_ = State::refused;
  }

  std::optional<Refusal> check_target() {
    if (target_.size() > k_longest_target) {
      return Refusal{414, "target_too_long", "the target is too long"};
    }
    auto parsed = serve::parse_target(target_);
    if (!parsed) return malformed(parsed.error().message);
    head_.target = std::move(*parsed);
    return std::nullopt;
  }

  std::optional<Refusal> check_fields() {
    if (repeated_) return malformed("a header that may stand there once stands there twice");
    const std::string* host = head_.header("host");
    if (host == nullptr && version_ != 10) return malformed("there is no Host");
    if (host != nullptr && !host_like(*host)) return malformed("the Host is none");
    const std::string* length = head_.header("content-length");
    if (length != nullptr && !digits(*length)) return malformed("the Content-Length is no number");
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

  void on_request_impl(http::verb, BeastText method, BeastText said, int number,
                       error_code&) override {
    head_.method = value_of(k_methods, view(method)).value_or(Method::other);
    target_ = view(said);
    version_ = number;
  }
  void on_response_impl(int, BeastText, int, error_code&) override {}
  void on_field_impl(http::field, BeastText said, BeastText value, error_code&) override {
    if (read_state_ != State::head) return;  // behind chunks: nobody asks for them
    std::string name = text::lower(view(said));
    const auto found = std::ranges::find_if(
        head_.headers, [&](const auto& header) { return header.first == name; });
    if (found == head_.headers.end()) {
      head_.headers.emplace_back(std::move(name), view(value));
    } else if (holds(k_single, name)) {
      repeated_ = true;
    } else {
      found->second.append(", ").append(view(value));
    }
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(BeastText bytes, error_code&) override {
    // Room for all that was announced is made only as it comes: saying a number is cheap.
    if (bytes.size() > body_.capacity() - body_.size()) {
      const std::uint64_t most = head_.length.value_or(std::numeric_limits<std::uint64_t>::max());
      const std::uint64_t wanted = std::max<std::uint64_t>(body_.size() + bytes.size(), 4096);
      body_.reserve(static_cast<std::size_t>(
          std::max(wanted, std::min<std::uint64_t>(most, std::uint64_t{2} * body_.size()))));
    }
    body_.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, BeastText extensions, error_code& error) override {
    // Unknown ones are to be ignored, but not those in which somebody else may see lines; quoted
    // values may hold some, and nobody sends them.
    for (const char c : extensions) {
      const bool control = static_cast<unsigned char>(c) < ' ' && c != '\t';
      if (control || c == '"') error = http::error::bad_chunk_extension;
    }
  }
  std::size_t on_chunk_body_impl(std::uint64_t, BeastText bytes, error_code& error) override {
    return on_body_impl(bytes, error);
  }
  void on_finish_impl(error_code&) override {}

  HeadScan scan_;
  const std::size_t most_line_;
  bool skipped_line_ = false, repeated_ = false;
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
