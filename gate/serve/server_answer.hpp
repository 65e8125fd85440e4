// Answers as text. Pure.
#pragma once

#include <string>
#include <string_view>

#include "gate/serve/http.hpp"

namespace weir::serve {

// {"error": {"code": "...", "message": "..."}}, with Retry-After where waiting may help (503).
[[nodiscard]] Response error_response(int status, std::string_view code, std::string_view message);

// "Fri, 20 Nov 2026 09:30:15 GMT".
[[nodiscard]] std::string http_date(double seconds_since_epoch);

struct Framing {
  bool close = false;
  bool http_1_0 = false;  // how the request was framed: it has to be told that its connection stays
  double now = 0;         // seconds since 1970
};

// The status line and all headers with the empty line behind them. What the connection is framed by
// (Content-Length, Transfer-Encoding, Connection, Date) is never the answer's own.
[[nodiscard]] std::string head_text(const Response& response, const Framing& framing);
// Whether a body goes with that status at all.
[[nodiscard]] bool has_body(int status);

}  // namespace weir::serve
