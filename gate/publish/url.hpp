// Addresses of a REST API: which server one names, and which one is the next page of a list. A
// server's text is hostile until it is parsed here. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::publish {

struct Url {
  std::string scheme{};  // "http" or "https"
  std::string host{};    // lower case; [::1] with its brackets
  int port = 0;          // always set: 80 or 443 where none stood
  std::string target{};  // path and query, beginning with '/'; no fragment

  [[nodiscard]] std::string origin() const;  // "https://host", with ":port" where it is not usual
  [[nodiscard]] std::string text() const { return origin() + target; }
  [[nodiscard]] std::string path() const { return target.substr(0, target.find('?')); }
};

// Parses a plain http or https address. Returns nothing for anything else, or if it has a user or
// password, spaces, control characters, backslashes or bytes beyond ASCII.
[[nodiscard]] std::optional<Url> parse_url(std::string_view text);

// Returns the address that a Location or Link of `from` names: a full address, "//host/path" or
// "/path". Nothing for other forms.
[[nodiscard]] std::optional<Url> resolve(const Url& from, std::string_view location);

// Returns true if the path of `url` is that of `base` or lies below it, on the same server. A path
// with
// "." or ".." segments, also encoded ones, never does.
[[nodiscard]] bool is_below(const Url& base, const Url& url);

// Returns the address of rel="next" in a Link header (RFC 8288); nothing if there is none.
[[nodiscard]] std::optional<std::string> next_link(std::string_view header);

}  // namespace weir::publish
