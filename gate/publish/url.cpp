// Parses and resolves the addresses of a REST API.
#include "gate/publish/url.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/text.hpp"

namespace weir::publish {
namespace {

int usual_port(std::string_view scheme) { return scheme == "https" ? 443 : 80; }

bool is_plain_char(char c) {
  return c > ' ' && c < 0x7F && c != '\\' && c != '"' && c != '<' && c != '>';
}

bool is_host_char(char c) { return text::is_alphanumeric(c) || c == '-' || c == '.' || c == '_'; }

// Reads "host", "host:8080" or "[::1]:8080" into `url`; returns false for anything else.
bool read_authority(std::string_view authority, Url& url) {
  std::size_t host_end = authority.find(':');
  const bool bracketed = !authority.empty() && authority[0] == '[';
  if (bracketed) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return false;
    host_end = close + 1 < authority.size() ? close + 1 : std::string_view::npos;
  }
  url.host = text::lower(authority.substr(0, host_end));
  if (url.host.empty()) return false;
  if (bracketed) {
    const std::string_view inner = std::string_view(url.host).substr(1, url.host.size() - 2);
    if (inner.find_first_not_of("0123456789abcdef:.") != std::string_view::npos) return false;
  } else if (!std::ranges::all_of(url.host, is_host_char)) {
    return false;
  }
  url.port = usual_port(url.scheme);
  if (host_end == std::string_view::npos) return true;
  if (authority[host_end] != ':') return false;
  const auto port = text::to_int(authority.substr(host_end + 1)).value_or(0);
  if (port < 1 || port > 65'535) return false;
  url.port = static_cast<int>(port);
  return true;
}

}  // namespace

std::string Url::origin() const {
  if (port == usual_port(scheme)) return fmt::format("{}://{}", scheme, host);
  return fmt::format("{}://{}:{}", scheme, host, port);
}

// Parses a plain http or https address. Nullopt for others, such as those with a user, spaces or
// bytes beyond ASCII.
std::optional<Url> parse_url(std::string_view text) {
  if (!std::ranges::all_of(text, is_plain_char)) return std::nullopt;
  text = text.substr(0, text.find('#'));
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  Url url;
  url.scheme = text::lower(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https") return std::nullopt;
  text.remove_prefix(colon + 3);
  const std::size_t authority_end = std::min(text.find_first_of("/?"), text.size());
  if (!read_authority(text.substr(0, authority_end), url)) return std::nullopt;
  url.target = text.substr(authority_end);
  if (url.target.empty() || url.target[0] != '/') url.target.insert(0, 1, '/');
  return url;
}

std::optional<Url> resolve(const Url& from, std::string_view location) {
  location = text::trim(location);
  std::string prefix;
  if (location.starts_with("//")) {
    prefix = from.scheme + ":";
  } else if (location.starts_with('/')) {
    prefix = from.origin();
  }
  return parse_url(prefix + std::string(location));
}

// Returns true if `url` is `base` or lies below it on the same server. A path with "." or ".."
// never does.
bool is_below(const Url& base, const Url& url) {
  if (base.origin() != url.origin()) return false;
  const std::string path = url.path();
  for (const std::string& segment : text::split(text::lower(path), '/')) {
    std::string decoded = segment;
    for (std::size_t at = decoded.find("%2e"); at != std::string::npos;
         at = decoded.find("%2e", at)) {
      decoded.replace(at, 3, ".");
    }
    if (decoded == "." || decoded == "..") return false;
  }
  std::string root = base.path();
  while (!root.empty() && root.back() == '/') root.pop_back();
  return path == root || path.compare(0, root.size() + 1, root + "/") == 0;
}

// Returns the address of rel="next" in a Link header (RFC 8288); nullopt if there is none.
std::optional<std::string> next_link(std::string_view header) {
  // <address>; name=value; name="value", <address>; ...
  std::size_t at = header.find('<');
  while (at != std::string_view::npos) {
    const std::size_t close = header.find('>', at);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view address = header.substr(at + 1, close - at - 1);
    const std::size_t end = std::min(header.find('<', close), header.size());
    for (const std::string& part : text::split(header.substr(close + 1, end - close - 1), ';')) {
      std::string parameter = text::lower(text::trim(part));
      while (!parameter.empty() && (parameter.back() == ',' || parameter.back() == ' ')) {
        parameter.pop_back();
      }
      if (parameter == "rel=\"next\"" || parameter == "rel=next") return std::string(address);
    }
    at = header.find('<', end);
  }
  return std::nullopt;
}

}  // namespace weir::publish
