// Where a store is, without what nobody may read: pure text, so that messages can be made before
// anything is opened.
#include <array>

#include "gate/base/text.hpp"
#include "gate/history/database.hpp"

namespace weir::history {
namespace {

constexpr std::array<std::string_view, 2> k_schemes{"postgres://", "postgresql://"};

// "user:word@host/name" -> "user@host/name"; the last '@' ends what may be a password.
bool without_password(std::string& authority) {
  const std::size_t at = authority.rfind('@');
  if (at == std::string::npos) return false;
  const std::size_t colon = authority.find(':');
  if (colon == std::string::npos || colon > at) return false;
  authority.erase(colon, at - colon);
  return true;
}

// "a=1&password=x" -> "a=1".
bool without_secrets(std::string& query) {
  std::vector<std::string> kept;
  bool dropped = false;
  for (std::string& one : text::split(query, '&')) {
    // libpq decodes names, too: what is written in an odd way is not shown either.
    const std::string name = text::lower(one.substr(0, one.find('=')));
    const bool secret =
        name.find("pass") != std::string::npos || name.find('%') != std::string::npos;
    if (!secret) kept.push_back(std::move(one));
    dropped = dropped || secret;
  }
  query = text::join(kept, "&");
  return dropped;
}

}  // namespace

StoreAddress parse_address(const std::string& text) {
  StoreAddress address;
  address.target = Secret(text);
  for (const std::string_view scheme : k_schemes) {
    if (!text.starts_with(scheme)) continue;
    address.postgres = true;
    const std::string rest = text.substr(scheme.size());
    // A '?' may stand in a password that is not encoded as it should be: behind the last '@'.
    const std::size_t at = rest.rfind('@');
    const std::size_t mark = rest.find('?', at == std::string::npos ? 0 : at);
    std::string authority = rest.substr(0, mark);
    address.has_password = without_password(authority);
    address.shown = std::string(scheme) + authority;
    if (mark != std::string::npos) {
      std::string query = rest.substr(mark + 1);
      if (without_secrets(query)) address.has_password = true;
      if (!query.empty()) address.shown += "?" + query;
    }
    address.shown = text::printable(address.shown);
    return address;
  }
  address.shown = text::printable(text);
  return address;
}

}  // namespace weir::history
