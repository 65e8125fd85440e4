// What to do after one attempt: take the answer, give up, or try again and when. GitHub's rules are
// at docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "gate/base/json.hpp"
#include "gate/base/secret.hpp"
#include "gate/sys/http.hpp"

namespace weir::publish {

// What a server said, in words that are safe to show: no secret, no control characters, no commands
// of CI systems, short. Pure.

// On one line, at most `most` characters. Masked before it is cut, so that no part of a secret
// stays.
[[nodiscard]] std::string shown(std::string_view text, const Masker& masker,
                                std::size_t most = 200);

// "404 Not Found: no such issue"; for what is not JSON `502 text/html "<html> <head>..."`.
[[nodiscard]] std::string said(const sys::HttpResponse& response, const Masker& masker);

// The JSON of an answer: null where there is none, or an Error that says what came instead.
[[nodiscard]] Result<Json> json_of(const sys::HttpResponse& response, const Masker& masker);

struct Next {
  enum class What { answer, refused, again } what = What::answer;
  // again: seconds that the server asked for; nothing where it left that to us.
  std::optional<double> asked_seconds{};
  bool limit = false;  // a rate limit, primary or secondary
  // refused, or where there is no time to try again: it may have been carried out.
  bool maybe_done = false;
  std::string why{};  // of refused and again, in words that are safe to show
};

// `once`: it must not be carried out twice. `now`: seconds since 1970, used where the answer has no
// Date of its own.
[[nodiscard]] Next after_answer(const sys::HttpResponse& response, bool once, double now,
                                const Masker& masker);
[[nodiscard]] Next after_failure(const sys::HttpFailure& failure, bool once, const Masker& masker);

// The wait before attempt `attempt` (1: the first repetition) where the server named none: doubles
// from `base` up to `longest`, and `jitter` (0 to 1) takes up to half of it away.
[[nodiscard]] double back_off(int attempt, double base, double longest, double jitter);

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110) as seconds since 1970; nothing for other forms.
[[nodiscard]] std::optional<double> http_date(std::string_view text);

}  // namespace weir::publish
