// Where a store is, without what nobody may read: pure text, so that messages can be made before
// anything is opened.
#include <algorithm>
#include <array>

#include "gate/base/text.hpp"
#include "gate/history/database.hpp"

namespace weir::history {
namespace {

constexpr std::array<std::string_view, 2> k_schemes{"postgres://", "postgresql://"};

// "user:word@host/name" -> "user@host/name"; the last '@' ends what may be a password.
void take_password(std::string& authority, std::vector<Secret>& passwords) {
  const std::size_t at = authority.rfind('@');
  if (at == std::string::npos) return;
  const std::size_t colon = authority.find(':');
  if (colon == std::string::npos || colon > at) return;
  passwords.emplace_back(authority.substr(colon + 1, at - colon - 1));
  authority.erase(colon, at - colon);
}

// "a=1&password=x" -> "a=1".
void take_secrets(std::string& query, std::vector<Secret>& passwords) {
  std::vector<std::string> kept;
  for (std::string& one : text::split(query, '&')) {
    // libpq decodes names, too: what is written in an odd way is not shown either.
    const std::size_t equals = std::min(one.find('='), one.size());
    const std::string name = text::lower(one.substr(0, equals));
    if (name.find("pass") != std::string::npos || name.find('%') != std::string::npos) {
      passwords.emplace_back(one.substr(std::min(equals + 1, one.size())));
    } else {
      kept.push_back(std::move(one));
    }
  }
  query = text::join(kept, "&");
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
    take_password(authority, address.passwords);
    address.shown = std::string(scheme) + authority;
    if (mark != std::string::npos) {
      std::string query = rest.substr(mark + 1);
      take_secrets(query, address.passwords);
      if (!query.empty()) address.shown += "?" + query;
    }
    address.shown = text::printable(address.shown);
    return address;
  }
  address.shown = text::printable(text);
  return address;
}

}  // namespace weir::history
