// An HTTP server of the tests' own on 127.0.0.1 that answers by a script: which bytes at which
// moment, and what becomes of the connection. Whatever a server of models does, well or badly, is a
// script (scripts.hpp); how well the driver keeps time is seen by scripts whose moments are known.
//
//   StreamServer server([](const ReceivedPost& post) { return scripts::tokens(8); });
//   ... server.url() ...
//
// One thread. Knows as much HTTP as a POST with a Content-Length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::tests {

struct ReceivedPost {
  std::string target, body;
  std::map<std::string, std::string> headers;  // names in lower case
  std::int64_t number = 0;                     // from 0, over all connections
  std::int64_t on_connection = 0;              // from 0
};

struct Script {
  struct Step {
    double at = 0;  // seconds after the request was there; not before the step before it
    std::string bytes;
  };
  std::vector<Step> steps;
  enum class End {
    keep,   // waits for the next request
    close,  // after the last byte
    reset,  // so that the other side sees an error
    hang,   // says nothing more, reads nothing more
  } end = End::keep;
  std::optional<std::int64_t> keeps_moments_as{};  // StreamServer::moments has them under this
};

class StreamServer {
 public:
  using Answer = std::function<Script(const ReceivedPost&)>;  // called on the server's thread
  explicit StreamServer(Answer answer);
  ~StreamServer();
  StreamServer(const StreamServer&) = delete;
  StreamServer& operator=(const StreamServer&) = delete;

  [[nodiscard]] std::string url() const;  // "http://127.0.0.1:PORT"
  [[nodiscard]] int port() const;
  [[nodiscard]] std::int64_t connections() const;  // accepted so far
  [[nodiscard]] std::int64_t requests() const;
  // When each step of a script was really sent (steady clock, seconds). Of scripts that keep theirs
  // and came to their end.
  [[nodiscard]] std::map<std::int64_t, std::vector<double>> moments() const;
  // From now on connections are closed as soon as they are accepted.
  void die();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace weir::tests
