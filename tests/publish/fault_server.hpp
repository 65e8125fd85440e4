// An HTTP server of the tests' own on 127.0.0.1 that answers like GitHub (github_store.hpp) and
// does wrong what a test asks it to: refuses, cuts, drips, redirects, lies, says nothing.
//
//   FaultServer server;                                   // serves until it is destroyed
//   server.store([](GithubStore& s) { s.add_pull(7, "abc"); });
//   server.fault({.method = "POST", .path = "/comments", .times = 1}, faults::cut(true));
//   ... GitHubApi with base URL server.url() ...
//   server.store([](GithubStore& s) { EXPECT_EQ(s.comments(7).size(), 1U); });
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/publish/github_store.hpp"

namespace weir::tests {

// A request as it came. Header names are in lower case.
struct ReceivedRequest {
  std::string method{}, target{}, body{};  // target: path and query
  std::map<std::string, std::string> headers{};
};

// Fault that replaces the store's plain answer to a request.
struct Fault {
  bool carried_out = false;  // the store handles the request; its answer may be lost
  int status = 0;            // 0: the store's own answer (carried_out is true)
  std::vector<std::pair<std::string, std::string>> headers{};  // added
  std::string body{}, content_type = "application/json; charset=utf-8";
  // How the answer is sent. complete: all of it. never: not at all, and the connection stays open.
  // cut: the connection closes instead. half: it closes within the body. drip: byte by byte with
  // `pause` seconds between.
  enum class How { complete, never, cut, half, drip } how = How::complete;
  double pause = 0.02;
};

// Selects requests by method ("": any) and by a part of the target. Skips the first `after`
// matches, then applies `times` times (0: always). The first matching rule applies.
struct When {
  std::string method{}, path{};
  int times = 1, after = 0;
};

namespace faults {
Fault status(int status, const std::string& message = "", bool carried_out = false);
Fault unauthorized();                                        // 401 Bad credentials
Fault rate_limit(double reset_epoch_seconds);                // 403, remaining 0, reset
Fault secondary_limit(const std::string& retry_after = "");  // 403; "" : only the message tells
Fault too_many(const std::string& retry_after);  // 429; seconds or an HTTP date; "": none
Fault not_found();
Fault conflict();                                                       // 409
Fault unprocessable(const std::string& message = "Validation Failed");  // 422
Fault server_error(bool carried_out = false);                           // 500
Fault bad_gateway(bool carried_out = false);             // 502, HTML as gateways send it
Fault unavailable(const std::string& retry_after = "");  // 503
Fault never(bool carried_out);                           // takes the request and never answers
Fault cut(bool carried_out);                             // ends the connection without an answer
Fault half();              // carried out; the answer is cut amid its body
Fault drip(double pause);  // carried out; byte by byte
Fault redirect(const std::string& location, int status = 302);
Fault html(int status = 200);  // a log-in page
Fault body(const std::string& text, const std::string& content_type = "application/json");
Fault endless_pages();  // each page: one new item, a Link to a next page
Fault same_page();      // each page: the first one, a Link to a next page
}  // namespace faults

// Thread-safe; one thread per connection.
class FaultServer {
 public:
  // Answers requests without this token with 401; "" serves all.
  explicit FaultServer(const std::string& token = "");
  ~FaultServer();
  FaultServer(const FaultServer&) = delete;
  FaultServer& operator=(const FaultServer&) = delete;

  [[nodiscard]] std::string url() const;  // "http://127.0.0.1:PORT", no slash at the end
  [[nodiscard]] int port() const;

  void fault(const When& when, const Fault& fault);
  void no_faults();
  // Reads or changes the store while no request is being answered.
  void store(const std::function<void(GithubStore&)>& look);

  [[nodiscard]] std::vector<ReceivedRequest> requests() const;
  [[nodiscard]] int count(const std::string& method, const std::string& path) const;
  // Returns true if any request held this text anywhere: line, headers, body.
  [[nodiscard]] bool saw(const std::string& text) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns a port on 127.0.0.1 that refuses connections.
[[nodiscard]] int closed_port();

}  // namespace weir::tests
