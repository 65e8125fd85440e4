// Reads requests from the bytes of a connection: one reader a request, fed as bytes arrive.
// Boost.Beast parses them. Requests that it accepts but others read differently (and so smuggle
// requests past each other) are refused here. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gate/serve/http.hpp"

namespace weir::serve {

inline constexpr std::size_t k_max_headers = 100;

// Why a request is not taken; the connection is closed after this answer.
struct Refusal {
  int status = 400;
  std::string code, message;  // for programs; for people. Nothing of the request is in them
};

class RequestReader {
 public:
  // header_bytes: of the request line and all headers; of each line between chunks, too.
  [[nodiscard]] static std::unique_ptr<RequestReader> make(std::size_t header_bytes);
  virtual ~RequestReader() = default;

  enum class State {
    head,     // feed() it
    waiting,  // the head is whole: set_body_limit() or leave it
    body,     // feed() it
    done,
    refused,
  };
  [[nodiscard]] State state() const { return read_state_; }

  // Takes what belongs to the part that is read, and says how many bytes that was: they may go.
  // What it did not take has to be in front of the next bytes. Never goes on to the next request.
  virtual std::size_t feed(std::string_view bytes) = 0;
  // The body may be that long: to be called once, in `waiting`.
  virtual void set_body_limit(std::uint64_t max_body_bytes) = 0;

  // From `waiting` on; `peer` and `secure` are not said by bytes. take_head() leaves it empty.
  [[nodiscard]] const Head& head() const { return head_; }
  [[nodiscard]] Head take_head() { return std::move(head_); }
  [[nodiscard]] bool http_1_0() const { return version_ == 10; }
  [[nodiscard]] virtual bool keep_alive() const = 0;
  [[nodiscard]] bool expects_continue() const {  // not by HTTP/1.0
    return !http_1_0() && head_.header("expect") != nullptr;
  }
  [[nodiscard]] bool body_announced() const {  // one of at least one octet, or chunks
    return head_.length.value_or(0) > 0 || head_.header("transfer-encoding") != nullptr;
  }
  // Bytes of the body so far.
  [[nodiscard]] std::size_t body_bytes() const { return body_.size(); }
  [[nodiscard]] std::string take_body() { return std::move(body_); }
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }  // in `refused`

 protected:
  State read_state_ = State::head;
  Head head_;
  int version_ = 11;
  std::string body_;
  Refusal refusal_;
};

// Answers as text.

// "Fri, 20 Nov 2026 09:30:15 GMT".
[[nodiscard]] std::string http_date(double seconds_since_epoch);

struct Framing {
  bool close = false;
  bool http_1_0 = false;  // how the request was framed: it has to be told that its connection stays
  double now = 0;         // seconds since 1970
};

// The status line and all headers with the empty line behind them. What the connection is framed by
// (Content-Length, Transfer-Encoding, Connection, Date) is never the answer's own.
[[nodiscard]] std::string head_text(const Response& response, const Framing& framing);
// True if answers with this status have a body.
[[nodiscard]] bool has_body(int status);

}  // namespace weir::serve
