// Many requests at once on one thread, whose answers are handed on as their bytes come. What to do
// about an answer, and how long to wait for what, is the caller's to decide: it drops a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gate/base/secret.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/http.hpp"
#include "gate/sys/interrupts.hpp"

namespace weir::sys {

// A POST.
struct StreamRequest {
  std::string url{};       // http or https
  HttpHeaders headers{};   // all but Authorization
  Secret authorization{};  // the whole value ("Bearer ..."); empty: none
  std::string body{};
};

struct StreamEnd {
  enum class What {
    complete,       // the answer came whole, as HTTP has it
    invalid,        // the request cannot be sent as it is
    no_connection,  // no such name, unreachable, or not in time
    refused,
    tls,
    cut,       // the connection ended before the answer did
    bad_http,  // not to be understood, or a header beyond all measure
    dropped,   // its sink asked for no more
    other,
  };
  What what = What::other;
  std::string message{};  // libcurl's words, fit to show, without the authorization; "" if complete
};

// Who takes what a stream says, in this order; moments are those of Clock::steady(). Not called any
// more after ended(). May call Streams::drop and Streams::post.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  virtual void connected(double at, bool reused) = 0;  // reused: an earlier request opened it
  // The header of the answer (1xx are passed over), names in lower case. False: no more of it.
  [[nodiscard]] virtual bool answered(double at, int status, const HttpHeaders& headers) = 0;
  [[nodiscard]] virtual bool bytes(double at, std::string_view chunk) = 0;  // a piece of the body
  virtual void ended(double at, const StreamEnd& end) = 0;
};

struct StreamOptions {
  double connect_seconds = 10;  // name, connection and TLS handshake
  // Connections are used again by later requests, as clients of such servers do. A request on a
  // kept one that dies without an answer is not sent again (libcurl would).
  bool keep_connections = true;
};

class Streams {
 public:
  using Id = std::uint64_t;
  virtual ~Streams() = default;
  // Begins one. The sink outlives it and hears nothing before the next wait(), not even of an
  // error.
  virtual Id post(const StreamRequest& request, StreamSink& sink) = 0;
  // Has the system taken all of its request?
  [[nodiscard]] virtual bool has_sent(Id) const { return true; }
  // Ends one at once, with its connection; its sink hears no more. Of one that ended: nothing.
  virtual void drop(Id id) = 0;
  // Calls sinks with what came; blocks until something did, or until `until` (on Clock::steady(),
  // to well below a millisecond), or the stop.
  virtual void wait(double until, const Stop& stop) = 0;
};

// Over libcurl's multi interface and poll(2). HTTP/1.1, TCP_NODELAY; no redirect is followed, no
// proxy used, whatever the environment says; nothing is decoded but chunks. One thread at a time.
[[nodiscard]] std::unique_ptr<Streams> real_streams(const Clock& clock, StreamOptions options = {});

}  // namespace weir::sys
