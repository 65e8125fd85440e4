// HTTP/1.1 on sockets (Boost.Beast): a few threads for all connections, each with bounds on what it
// may hold and how long it may take. What is no request is refused as
// {"error": {"code": "...", "message": "..."}}, and the connection closed.
// docs/reference/serve-limits.md has the limits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/serve/http.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/interrupts.hpp"

namespace weir::serve {

struct Limits {
  // Open at once. listen() raises the process' limit of open files for them as far as it may, and
  // warns where that leaves fewer.
  std::size_t connections = 1024;
  // IPv4 address or IPv6 network of 64 bits. Those of a trusted proxy are not counted; its clients
  // may have so many requests under way.
  std::size_t connections_a_peer = 256;
  // If all are taken, a new connection takes the place of one that has waited for the head of a
  // request for longer than this: of the same peer, or of the one with most. Else it is answered
  // 503 and closed.
  double patience_seconds = 1;
  std::uint64_t header_bytes = 16 << 10;  // request line and all headers; more is 431
  double header_seconds = 10;    // from the first octet (or the last answer) to the end of headers
  double idle_seconds = 60;      // between requests
  double body_seconds = 60;      // for a whole body; and it has to come at `min_rate`
  double min_rate = 1024;        // bytes a second, after the first few seconds
  double answer_seconds = 60;    // for an answer to be taken; also at `min_rate`
  double shutdown_seconds = 20;  // for what is under way when it has to stop
  // Bodies of all requests under way, and what of answers that are not yet taken is more than
  // 16 KiB each; one peer has at most half. Else 503.
  std::uint64_t buffered_bytes = std::uint64_t{48} << 20;
};

struct Tls {
  std::string certificate_file, key_file;  // PEM; read again when the files change (SIGHUP stops)
  double look_again_seconds = 1;           // at most so often
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any that is free
  std::size_t threads = 2;
  std::optional<Tls> tls;
  // Addresses ("127.0.0.1", "10.0.0.0/8", "::1") whose X-Forwarded-For and -Proto are believed.
  std::vector<std::string> trusted_proxies;
  Limits limits;
  const sys::Clock* clock = nullptr;  // that deadlines go by (steady()); default: the machine's
  // Told of each request that the handler never saw or did not see whole: the status that it got,
  // and whose it was. Called by several threads; may be empty. Connections over the limit are only
  // counted.
  std::function<void(int status, const std::string& peer)> refused;
};

class Server {
 public:
  // Listens when it returns. Code::config for an address, certificate or key that is none;
  // Code::unavailable where the port is taken.
  [[nodiscard]] static Result<std::unique_ptr<Server>> listen(const ServerOptions& options,
                                                              Handler& handler);
  // run() has returned, or was never called. An answer that is given later goes nowhere.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] const Traffic& traffic() const;

  // Serves until `stop` is requested. Then it accepts no more, closes idle connections, lets
  // requests whose headers have come be answered (with Connection: close) for at most
  // Limits::shutdown_seconds, and returns; a second request ends that wait. `on_drain` is called
  // once, by the thread that called run(), before that wait.
  void run(const sys::Stop& stop, const std::function<void()>& on_drain = {});

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::serve
