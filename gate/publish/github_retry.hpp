// The decision after one attempt: take the answer, give up, or try again and when. GitHub's rules
// are at docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "gate/base/json.hpp"
#include "gate/base/secret.hpp"
#include "gate/sys/http.hpp"

namespace weir::publish {

// Returns a server's text in a form that is safe to show: one line of at most `max_characters`
// characters, without secrets, control characters and commands of CI systems. It is masked before
// it is cut, so that no part of a secret stays.
[[nodiscard]] std::string safe_text(std::string_view text, const Masker& masker,
                                    std::size_t max_characters = 200);

// Describes an answer, safe to show: "404 Not Found: no such issue"; for one that is not JSON `502
// text/html "<html> <head>..."`.
[[nodiscard]] std::string describe_answer(const sys::HttpResponse& response, const Masker& masker);

// Returns the JSON of an answer, null for an empty one, or an Error that describes it.
[[nodiscard]] Result<Json> parse_answer(const sys::HttpResponse& response, const Masker& masker);

struct Next {
  enum class What { answer, refused, again } what = What::answer;
  // For `again`: seconds that the server asked for, if it did.
  std::optional<double> requested_seconds{};
  bool limit = false;  // a rate limit, primary or secondary
  // True if the request may have been carried out.
  bool maybe_done = false;
  std::string why{};  // reason for `refused` and `again`, safe to show
};

// `once`: the request must not be carried out twice. `now`: seconds since 1970, used if the answer
// has no Date.
[[nodiscard]] Next after_answer(const sys::HttpResponse& response, bool once, double now,
                                const Masker& masker);
[[nodiscard]] Next after_failure(const sys::HttpFailure& failure, bool once, const Masker& masker);

// Returns the wait before repetition number `attempt` (from 1) if the server named none. It doubles
// from `base` up to `longest`, and `jitter` (0 to 1) takes up to half of it away.
[[nodiscard]] double back_off(int attempt, double base, double longest, double jitter);

// Parses "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110) to seconds since 1970; nothing for other forms.
[[nodiscard]] std::optional<double> http_date(std::string_view text);

}  // namespace weir::publish
