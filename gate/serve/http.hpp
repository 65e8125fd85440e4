// Requests and answers as the service sees them: whole, checked and without a connection. What
// stands between them and a socket is server.hpp; what they mean is service.hpp.
//
// Everything in a Request was said by somebody who may be anybody.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/serve/target.hpp"

namespace weir::serve {

enum class Method { get, head, post, put, remove, options, other };

// What stands before a body.
struct Head {
  Method method = Method::get;
  Target target;
  // Names in lower case, each at most once: of one that may not be repeated a second makes the
  // request malformed, and of others they are joined with ", ".
  std::vector<std::pair<std::string, std::string>> headers;
  std::string peer;     // the other end's address, without its port; behind a trusted proxy the one
                        // that this names
  bool secure = false;  // it came by TLS, here or at a trusted proxy
  // Octets of the body where they were announced; chunked ones are not.
  std::optional<std::uint64_t> length;

  [[nodiscard]] const std::string* header(std::string_view name) const;
};

struct Request {
  Head head;
  std::string body;
};

struct Response {
  int status = 200;
  std::string type;  // Content-Type; "" where there is no body
  // Others. Names and values are the program's own or went through header_value().
  std::vector<std::pair<std::string, std::string>> headers{};
  std::shared_ptr<const std::string> body{};  // shared: pages are the same for all
};

// A text as a value of a header: what could end a line or is no printable ASCII becomes '?'.
[[nodiscard]] std::string header_value(std::string_view text);

// May its body be read, and how much of it?
struct Admission {
  std::uint64_t most_body = 0;        // octets; 0: none is expected
  std::optional<Response> refused{};  // then at once this, and nothing more is read
};

// Who answers. Called on the threads of the server, which wait for it: neither may block for longer
// than a table look-up; what does (databases, files) goes to Workers and answers from there.
// Thread-safe.
class Handler {
 public:
  virtual ~Handler() = default;

  [[nodiscard]] virtual Admission admit(const Head& head) = 0;
  // Exactly one answer for each; from any thread; also after the other end has gone. To a HEAD it
  // is what a GET would have got: the server leaves out the body.
  using Answer = std::function<void(Response)>;
  virtual void handle(Request request, Answer answer) = 0;
};

// What the server has seen, for /metrics. Counted since its start.
struct Traffic {
  std::uint64_t connections = 0, open = 0;  // accepted in all; now
  std::uint64_t refused = 0;                // over the limit of connections
  std::uint64_t requests = 0;
  std::uint64_t malformed = 0, timed_out = 0, too_large = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
};

}  // namespace weir::serve
