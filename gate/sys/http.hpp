// One HTTP request and its answer. What to do about an answer (redirects, retries, limits) is the
// caller's to decide.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "gate/base/secret.hpp"
#include "gate/sys/interrupts.hpp"

namespace weir::sys {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string url{};       // http or https
  HttpHeaders headers{};   // all but Authorization; no line ends in them
  Secret authorization{};  // the whole value ("Bearer ..."); empty: none
  std::optional<std::string> body{};
};

struct HttpLimits {
  double connect_seconds = 10;  // name, connection and TLS handshake
  double total_seconds = 30;    // all of it, to the last byte of the answer
  std::size_t body_bytes = std::size_t{8} << 20;
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers{};  // names in lower case; in the order they came
  std::string body{};
  // The value of the first header of that (lower-case) name.
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
};

// Why there is no answer. Not an Error yet: most of these are worth another try.
struct HttpFailure {
  enum class What {
    invalid,        // the request cannot be sent as it is
    no_connection,  // no such name, refused, a handshake that broke off, or no connection in time
    tls,            // the other side is not who it should be
    timed_out,      // no whole answer in time
    cut,            // the connection ended before the answer did
    too_large,      // the headers or the body
    stopped,        // the stop was requested
    other,
  };
  What what = What::other;
  bool sent = false;      // the other side may have got the request, or a part of it
  std::string message{};  // libcurl's words, without line ends; never the authorization
};

class Http {
 public:
  virtual ~Http() = default;
  // Sends once. Blocks until the answer, a limit, or the stop.
  [[nodiscard]] virtual tl::expected<HttpResponse, HttpFailure> send(const HttpRequest& request,
                                                                     const HttpLimits& limits,
                                                                     const Stop& stop) = 0;
};

// Over libcurl. TLS is always verified, against what the system trusts; redirects are not followed;
// nothing is sent twice; no cookies, no .netrc, no decompression. Proxies are taken from the
// environment, but not for this machine's own addresses. One thread at a time may use one object.
class RealHttp final : public Http {
 public:
  RealHttp();
  ~RealHttp() override;
  RealHttp(const RealHttp&) = delete;
  RealHttp& operator=(const RealHttp&) = delete;
  [[nodiscard]] tl::expected<HttpResponse, HttpFailure> send(const HttpRequest& request,
                                                             const HttpLimits& limits,
                                                             const Stop& stop) override;

 private:
  void* multi_;  // libcurl's, which keeps connections open between requests
};

}  // namespace weir::sys
