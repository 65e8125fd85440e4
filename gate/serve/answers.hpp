// Answers in the forms that the service has. Pure.
#pragma once

#include <string>
#include <string_view>

#include "gate/base/json.hpp"
#include "gate/serve/http.hpp"

namespace weir::serve {

[[nodiscard]] Response json_answer(int status, const Json& json);
[[nodiscard]] Response text_answer(int status, std::string type, std::string text);
// {"error": {"code", "message", "hint"}}; the code is of the status ("not_found"). Texts may be
// anything.
[[nodiscard]] Response error_answer(int status, std::string_view message,
                                    std::string_view hint = "");
// … with Retry-After, in whole seconds.
[[nodiscard]] Response later_answer(int status, std::string_view message, double seconds);

void set_header(Response& response, std::string name, std::string value);

// What every answer has besides what the server adds: a policy of what a browser may do with it; an
// ETag where it may be asked for again, and 304 where If-None-Match has it.
struct Finish {
  bool secure = false;     // it came by TLS
  bool page = false;       // pages may load their own scripts and styles; all else may do nothing
  bool is_public = false;  // everybody gets the same
};
void finish(const Head& head, const Finish& how, Response& response);

// "/api/v1/series" + "?cursor=…", with all parameters of `target` but the cursor.
[[nodiscard]] std::string address_with_cursor(const Target& target, std::string_view cursor);

}  // namespace weir::serve
