#include "gate/serve/server_proxies.hpp"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "gate/base/text.hpp"

namespace weir::serve {
namespace {

constexpr std::uint8_t k_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

bool is_mapped(const Address& address) {
  return std::equal(std::begin(k_mapped), std::end(k_mapped), address.begin());
}

// As a list of X-Forwarded-For has them, with or without a port.
std::optional<Address> forwarded_address(std::string_view text) {
  text = text::trim(text);
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    return end == std::string_view::npos ? std::nullopt : parse_address(text.substr(1, end - 1));
  }
  if (std::count(text.begin(), text.end(), ':') == 1) text = text.substr(0, text.find(':'));
  return parse_address(text);
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  const std::string name(text.substr(0, text.find('%')));
  Address address{};
  if (name.find('\0') != std::string::npos) return std::nullopt;
  if (inet_pton(AF_INET6, name.c_str(), address.data()) == 1) return address;
  std::copy(std::begin(k_mapped), std::end(k_mapped), address.begin());
  if (inet_pton(AF_INET, name.c_str(), address.data() + sizeof k_mapped) == 1) return address;
  return std::nullopt;
}

std::string to_text(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_mapped(address)) {
    inet_ntop(AF_INET, address.data() + sizeof k_mapped, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, address.data(), text, sizeof text);
  }
  return text;
}

std::string holder_of(const Address& address) {
  if (is_mapped(address)) return to_text(address);
  Address network = address;
  std::fill(network.begin() + 8, network.end(), std::uint8_t{0});
  return to_text(network);
}

Result<Proxies> Proxies::parse(const std::vector<std::string>& texts) {
  Proxies proxies;
  for (const std::string& text : texts) {
    const std::size_t slash = text.find('/');
    const auto address = parse_address(text.substr(0, slash));
    const int most =
        address && is_mapped(*address) && text.find(':') == std::string::npos ? 32 : 128;
    long long bits = most;
    if (slash != std::string::npos) bits = text::to_int(text.substr(slash + 1)).value_or(-1);
    if (!address || bits < 0 || bits > most) {
      return fail(Code::config,
                  "trusted proxy \"{}\": no address (\"10.0.0.1\", \"::1\") and no network\n"
                  "(\"10.0.0.0/8\", \"fd00::/8\")",
                  text::printable(text));
    }
    proxies.networks_.push_back({*address, static_cast<int>(bits) + 128 - most});
  }
  return proxies;
}

bool Proxies::trusted(const Address& address) const {
  return std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
    const auto whole = static_cast<std::size_t>(network.bits / 8);
    if (!std::equal(address.begin(), address.begin() + network.bits / 8, network.address.begin())) {
      return false;
    }
    const int rest = network.bits % 8;
    return rest == 0 || (address[whole] ^ network.address[whole]) >> (8 - rest) == 0;
  });
}

void Proxies::set_peer(const Address& other_end, bool tls, Head& head) const {
  Address peer = other_end;
  head.secure = tls;
  if (trusted(other_end)) {
    if (const std::string* proto = head.header("x-forwarded-proto")) {
      // Of several, what the nearest proxy said.
      const std::string_view nearest = std::string_view(*proto).substr(proto->rfind(',') + 1);
      head.secure = tls || text::lower(text::trim(nearest)) == "https";
    }
    const std::string* list = head.header("x-forwarded-for");
    std::string_view rest = list == nullptr ? std::string_view() : std::string_view(*list);
    while (!rest.empty() && trusted(peer)) {
      const std::size_t comma = rest.rfind(',');
      const auto named =
          forwarded_address(rest.substr(comma == std::string_view::npos ? 0 : comma + 1));
      if (!named) break;  // "unknown", or nonsense: who stands left of it nobody vouches for
      peer = *named;
      rest = rest.substr(0, comma == std::string_view::npos ? 0 : comma);
    }
  }
  head.peer = to_text(peer);
}

}  // namespace weir::serve
