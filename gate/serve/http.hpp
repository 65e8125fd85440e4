// Requests and answers as the service sees them: whole, checked and without a connection. What
// stands between them and a socket is server.hpp; what they mean is service.hpp.
//
// Everything in a Request was said by somebody who may be anybody.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"

namespace weir::serve {

// The parts of a request's target, "/api/v1/series?project=a&cell=b%2Fc". Pure.

inline constexpr std::size_t k_longest_target = 8192;  // bytes
inline constexpr std::size_t k_max_parameters = 64;

struct Target {
  // Decoded once, beginning with '/': UTF-8 without control characters, and no segment is "." or
  // "..", also not in a form that somebody might decode again; no '\\' and no "//" in front. An
  // encoded '/' is one like the others. Not a name of a file.
  std::string path = "/";
  // Decoded, '+' as a space; in the order in which they stood for each name. UTF-8 without control
  // characters, too. One without '=' has the value "".
  std::map<std::string, std::vector<std::string>, std::less<>> query;

  // The only value, or nothing where there is none or several.
  [[nodiscard]] std::optional<std::string> value(std::string_view name) const;
};

// An origin-form target alone ("/path?query"). Code::data says what is wrong with another one, and
// repeats nothing of it.
[[nodiscard]] Result<Target> parse_target(std::string_view text);

enum class Method { get, head, post, put, remove, options, other };
inline constexpr auto k_methods =
    names_in_order<Method>("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "OTHER");

// A request without its body.
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
  std::uint64_t max_body_bytes = 0;   // octets; 0: none is expected
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

// The server's own counts since its start, for /metrics. Thread-safe.
struct Traffic {
  using Count = std::atomic<std::uint64_t>;
  Count connections{0}, open{0};  // accepted in all; now
  Count refused{0};               // over the limit of connections
  Count requests{0};
  Count malformed{0}, timed_out{0}, too_large{0};
  Count bytes_in{0}, bytes_out{0};
};

// Answers in the forms that the service has. Pure.

[[nodiscard]] Response json_answer(int status, const Json& json);
[[nodiscard]] Response text_answer(int status, std::string type, std::string text);
// {"error": {"code", "message", "hint"}}; the code is of the status ("not_found"). Texts may be
// anything.
[[nodiscard]] Response error_answer(int status, std::string_view message,
                                    std::string_view hint = "");
// The same with a code of its own, of requests that never came to the service; with Retry-After
// where waiting may help (503).
[[nodiscard]] Response error_response(int status, std::string_view code, std::string_view message);
// … with Retry-After, in whole seconds.
[[nodiscard]] Response later_answer(int status, std::string_view message, double seconds);

void set_header(Response& response, std::string name, std::string value);

// Adds what every answer needs beyond the server's headers: a policy for browsers, an ETag where
// the client may ask again, and 304 if If-None-Match has it.
struct ResponseOptions {
  bool secure = false;     // it came by TLS
  bool page = false;       // pages may load their own scripts and styles; all else may do nothing
  bool is_public = false;  // everybody gets the same
};
void add_standard_headers(const Head& head, const ResponseOptions& options, Response& response);

// "/api/v1/series" + "?cursor=…", with all parameters of `target` but the cursor.
[[nodiscard]] std::string address_with_cursor(const Target& target, std::string_view cursor);

}  // namespace weir::serve
