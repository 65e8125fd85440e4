// The REST API for posting: single calls and whole lists. github.hpp has the real one; tests have
// one in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"
#include "gate/report/layout.hpp"

namespace weir::publish {

struct ApiRequest {
  std::string method;         // "GET", "POST", "PATCH", "PUT", "DELETE"
  std::string path;           // below the API's base URL: "/repos/o/r/issues/1/comments"; no host
  Json body = Json(nullptr);  // null: none
  // True if it must not be carried out twice although its method allows that: a PATCH that adds to
  // a list. It is treated like a POST.
  bool once = false;
};

struct ApiResponse {
  int status = 0;  // HTTP status of the last attempt
  Json body;       // null for an empty one
};

// Not thread-safe. No Error holds a token.
class Api {
 public:
  virtual ~Api() = default;
  // Sends one request with its retries. A 2xx is an answer, and so are those that the caller can
  // handle: 404, 409, 422, and a 403 that is no rate limit (the token may not do this). All else is
  // an Error once retries and time are used up.
  //
  // A request whose answer was lost may have been carried out. A POST is only sent again if it
  // surely was not; callers look before they repeat it.
  [[nodiscard]] virtual Result<ApiResponse> call(const ApiRequest& request) = 0;
  // Gets a list page by page and returns it as an array. A list with more than `max_items` items,
  // or pages that repeat themselves, are an Error.
  [[nodiscard]] virtual Result<Json> list(const std::string& path, std::size_t max_items) = 0;

  [[nodiscard]] Result<ApiResponse> get(const std::string& path) {
    return call({.method = "GET", .path = path});
  }
  [[nodiscard]] Result<ApiResponse> send(const std::string& method, const std::string& path,
                                         Json body) {
    return call({.method = method, .path = path, .body = std::move(body)});
  }
};

// Parts of an answer, which may be any JSON: a part that is missing or malformed is empty. Pure.
[[nodiscard]] std::string text_in(const Json& json, const char* key);
[[nodiscard]] std::int64_t number_in(const Json& json, const char* key);  // 0
// Returns a link to show: "" unless it is http or https without white space.
[[nodiscard]] std::string link_in(const Json& json, const char* key);

// Returns a text as it was sent: GitHub's web editor turns line ends into "\r\n", and may trim the
// ends.
[[nodiscard]] std::string normalize_body(std::string_view body);

using report::printable_line;

[[nodiscard]] inline bool is_success(const ApiResponse& answer) {
  return answer.status >= 200 && answer.status < 300;
}
// Returns one line: "HTTP 403, Resource not accessible by integration".
[[nodiscard]] std::string refusal_text(const ApiResponse& answer);
// Returns Code::unavailable with refusal_text(); for a 403 also what the token needs.
[[nodiscard]] inline tl::unexpected<Error> refusal_error(const ApiResponse& answer,
                                                         std::string_view needed = "") {
  return fail(Code::unavailable, "{}{}", refusal_text(answer), answer.status == 403 ? needed : "");
}

// The login of the token. Anybody may write weir's marker, so only posts by this login are edited.
class OwnLogin {
 public:
  OwnLogin(Api& api, std::string app) : api_(api), app_(std::move(app)) {}

  // Returns true if `json` (an issue or a comment with {"user": {"login", "type"}}) is ours. Asks
  // the API for the login once. A token of an installation (the runner's own) may not ask: then the
  // login is "APP[bot]", which nobody else can have.
  [[nodiscard]] Result<bool> is_own(const Json& json);
  // Takes the login from the answer to a creation.
  void learn(const Json& user);

 private:
  Api& api_;
  std::string app_, login_;  // login_ "": unknown so far
};

// An Api that sends nothing and records what would be sent to a GitHub without any posts of ours.
class Rehearsal final : public Api {
 public:
  // Answers as GitHub does to requests that are fine, and remembers those that change something.
  [[nodiscard]] Result<ApiResponse> call(const ApiRequest& request) override;
  // Always empty.
  [[nodiscard]] Result<Json> list(const std::string& path, std::size_t max_items) override;

  [[nodiscard]] const std::vector<ApiRequest>& sent() const { return sent_; }

 private:
  std::vector<ApiRequest> sent_;
};

// [{"method": "POST", "url": "https://api.github.com/repos/…", "body": {…}}, …]
[[nodiscard]] Json to_json(const std::vector<ApiRequest>& sent, const std::string& api_url);

}  // namespace weir::publish
