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
struct SeenRequest {
  std::string method{}, target{}, body{};  // target: path and query
  std::map<std::string, std::string> headers{};
};

// What happens to a request instead of a plain answer of the store.
struct Fault {
  bool carried_out = false;  // the store sees the request all the same; its answer may be lost
  int status = 0;            // 0: the store's own answer (then carried_out is true)
  std::vector<std::pair<std::string, std::string>> headers{};  // added
  std::string body{}, content_type = "application/json; charset=utf-8";
  // How the answer comes. whole: as it should. never: not at all, the connection stays open. cut:
  // the connection ends instead. half: it ends amid the body. drip: byte by byte, `pause` seconds
  // between.
  enum class How { whole, never, cut, half, drip } how = How::whole;
  double pause = 0.02;
};

// Which requests a fault befalls: those of this method ("" any) whose target contains `path`, but
// the first `after` of them, `times` times (0: for ever). The first rule that matches is taken.
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
Fault endless_pages();  // every page of a list has one fresh item and a Link to a next one
Fault same_page();      // every page of a list is the first one, and links to a next one
}  // namespace faults

// Thread-safe. A thread a connection.
class FaultServer {
 public:
  // token: requests without it are answered with 401; "": all are served.
  explicit FaultServer(const std::string& token = "");
  ~FaultServer();
  FaultServer(const FaultServer&) = delete;
  FaultServer& operator=(const FaultServer&) = delete;

  [[nodiscard]] std::string url() const;  // "http://127.0.0.1:PORT", no slash at the end
  [[nodiscard]] int port() const;

  void fault(const When& when, const Fault& fault);
  void no_faults();
  // Looks at or changes the store, while no request is being answered.
  void store(const std::function<void(GithubStore&)>& look);

  [[nodiscard]] std::vector<SeenRequest> seen() const;
  [[nodiscard]] int count(const std::string& method, const std::string& path) const;
  // Whether any request held this text anywhere: line, headers, body.
  [[nodiscard]] bool saw(const std::string& text) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A port on 127.0.0.1 where nobody listens: connecting is refused.
[[nodiscard]] int closed_port();

}  // namespace weir::tests
