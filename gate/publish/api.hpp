// What posting needs of a REST API: single calls and whole lists. GitHub's real form is in
// github.hpp; tests have one in memory.
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
  // Not to be carried out twice although its method could be: a PATCH that adds to a list. It is
  // treated as a POST is.
  bool once = false;
};

struct ApiResponse {
  int status = 0;  // of HTTP, as the last attempt got it
  Json body;       // null where there was none
};

// Not thread-safe. No Error holds a token.
class Api {
 public:
  virtual ~Api() = default;
  // One request with its retries. A 2xx or, where the caller can do something about it, a 403 that
  // is no limit (the token may not do this: much can be posted without), a 404, 409 or 422 is an
  // answer; all else is an Error once retries and time are used up. A request whose answer was lost
  // may have been carried out: the caller looks before it asks again, so a POST is only sent again
  // where it was surely not carried out.
  [[nodiscard]] virtual Result<ApiResponse> call(const ApiRequest& request) = 0;
  // GET of a list, page by page, at most `most` items: an array. A list that goes on behind that,
  // or pages that repeat themselves, are an Error.
  [[nodiscard]] virtual Result<Json> list(const std::string& path, std::size_t most) = 0;

  [[nodiscard]] Result<ApiResponse> get(const std::string& path) {
    return call({.method = "GET", .path = path});
  }
  [[nodiscard]] Result<ApiResponse> send(const std::string& method, const std::string& path,
                                         Json body) {
    return call({.method = method, .path = path, .body = std::move(body)});
  }
};

// Parts of what the API answered, which may be anything: what is not there or not as it should be
// is empty. Pure.
[[nodiscard]] std::string text_in(const Json& json, const char* key);
[[nodiscard]] std::int64_t number_in(const Json& json, const char* key);  // 0
// A link to show: "" unless it is http or https without white space.
[[nodiscard]] std::string link_in(const Json& json, const char* key);

// A text as it was sent: GitHub's web editor makes "\r\n" of line ends, and ends may be trimmed.
[[nodiscard]] std::string as_written(std::string_view body);

using report::one_line;

[[nodiscard]] inline bool fine(const ApiResponse& answer) {
  return answer.status >= 200 && answer.status < 300;
}
// "403: Resource not accessible by integration", one line.
[[nodiscard]] std::string refusal(const ApiResponse& answer);
// Code::unavailable with refusal(), and what the token needs where that is what it lacks (403).
[[nodiscard]] inline tl::unexpected<Error> refused(const ApiResponse& answer,
                                                   std::string_view needed = "") {
  return fail(Code::unavailable, "{}{}", refusal(answer), answer.status == 403 ? needed : "");
}

// Whose token this is: of what bears weir's marker, only what this login wrote is edited. Anybody
// may write the marker.
class OwnLogin {
 public:
  OwnLogin(Api& api, std::string app) : api_(api), app_(std::move(app)) {}

  // Whether `json` (an issue, a comment: {"user": {"login", "type"}}) is ours. Asked of the API
  // once. A token of an installation (the runner's own) may not ask: then it is "APP[bot]", a login
  // that nobody else can have.
  [[nodiscard]] Result<bool> wrote(const Json& json);
  // The answer to a creation tells it too.
  void learn(const Json& made);

 private:
  Api& api_;
  std::string app_, login_;  // login_ "": not known yet
};

// An Api that sends nothing: what would be sent, where GitHub had nothing of ours yet.
class Rehearsal final : public Api {
 public:
  // Answers as GitHub does to requests that are fine, and remembers those that change something.
  [[nodiscard]] Result<ApiResponse> call(const ApiRequest& request) override;
  // Only what was created here before.
  [[nodiscard]] Result<Json> list(const std::string& path, std::size_t most) override;

  [[nodiscard]] const std::vector<ApiRequest>& sent() const { return sent_; }

 private:
  std::vector<ApiRequest> sent_;
};

// [{"method": "POST", "url": "https://api.github.com/repos/…", "body": {…}}, …]
[[nodiscard]] Json to_json(const std::vector<ApiRequest>& sent, const std::string& api_url);

}  // namespace weir::publish
