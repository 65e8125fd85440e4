// Addresses as a REST API gives them: which server one means, and where the next page of a list is.
// What a server says is hostile until it went through here. Pure.
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

// Nothing for anything but a plain http or https address: no user or password in it, no spaces,
// control characters, backslashes, no bytes beyond ASCII.
[[nodiscard]] std::optional<Url> parse_url(std::string_view text);

// Where a Location or Link that came with `from` points to: a whole address, "//host/path" or
// "/path". Nothing for other forms.
[[nodiscard]] std::optional<Url> resolve(const Url& from, std::string_view location);

// Whether the path of `url` is `base`'s path or lies below it, on the same server. A path with "."
// or ".." segments, also encoded ones, lies nowhere.
[[nodiscard]] bool below(const Url& base, const Url& url);

// The address of rel="next" in a Link header (RFC 8288); nothing when there is none.
[[nodiscard]] std::optional<std::string> next_link(std::string_view header);

}  // namespace weir::publish
