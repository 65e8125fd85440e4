// What a server said, in words that are safe to show: no secret, no control characters, no commands
// of CI systems, short. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gate/base/json.hpp"
#include "gate/base/secret.hpp"
#include "gate/sys/http.hpp"

namespace weir::publish {

// On one line, at most `most` characters. Masked before it is cut, so that no part of a secret
// stays.
[[nodiscard]] std::string shown(std::string_view text, const Masker& masker,
                                std::size_t most = 200);

// The reason in a refusal's JSON, "Validation Failed: body is too long"; "" when there is none.
[[nodiscard]] std::string reason_in(const Json& body);

// "404 Not Found: no such issue"; for what is not JSON `502 text/html "<html> <head>..."`.
[[nodiscard]] std::string said(const sys::HttpResponse& response, const Masker& masker);

// The JSON of an answer: null where there is none, or an Error that says what came instead.
[[nodiscard]] Result<Json> json_of(const sys::HttpResponse& response, const Masker& masker);

}  // namespace weir::publish
