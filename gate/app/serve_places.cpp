// What the command line of weir serve says, taken apart.
#include <set>

#include "gate/app/serve.hpp"
#include "gate/base/text.hpp"

namespace weir::app {

Result<ListenPlace> parse_listen(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto wrong = [&] {
    return fail(Code::usage, "--listen {}: should be like 127.0.0.1:8080 or [::1]:8080",
                text::printable(text));
  };
  if (colon == std::string::npos) return wrong();
  const auto port = text::to_int(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65'535) return wrong();
  ListenPlace place{text.substr(0, colon), static_cast<std::uint16_t>(*port), false};
  if (place.address.starts_with('[') && place.address.ends_with(']')) {
    place.address = place.address.substr(1, place.address.size() - 2);
  } else if (place.address.find(':') != std::string::npos) {
    return wrong();  // where does the port of an IPv6 address begin?
  }
  if (place.address == "localhost") place.address = "127.0.0.1";
  if (place.address.empty()) return wrong();
  place.loopback = place.address.starts_with("127.") || place.address == "::1";
  return place;
}

Result<std::vector<std::pair<std::string, std::string>>> parse_pairs(
    const char* option, const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::set<std::string> seen;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
      return fail(Code::usage, "{} {}: should be PROJECT=VALUE", option, text::printable(text));
    }
    pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    if (!seen.insert(pairs.back().first).second) {
      return fail(Code::usage, "{}: {} stands twice", option, text::printable(pairs.back().first));
    }
  }
  return pairs;
}

}  // namespace weir::app
