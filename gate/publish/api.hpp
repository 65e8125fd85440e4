// What posting needs of a REST API: single calls and whole lists. GitHub's real form is in
// github.hpp; tests have one in memory.
#pragma once

#include <cstddef>
#include <string>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"

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
};

}  // namespace weir::publish
