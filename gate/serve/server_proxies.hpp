// Addresses, and whose word counts about them: X-Forwarded-For and -Proto of trusted proxies. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/serve/http.hpp"

namespace weir::serve {

// IPv6, or IPv4 mapped into it.
using Address = std::array<std::uint8_t, 16>;

// "192.0.2.1", "2001:db8::1" (also mapped ones, also with a "%scope", which is left out).
[[nodiscard]] std::optional<Address> parse_address(std::string_view text);
// The same address always as the same text; IPv4 as IPv4.
[[nodiscard]] std::string to_text(const Address& address);
// Whom an address belongs to where connections are counted: of IPv6 the first 64 bits, because
// whoever has one of these has them all.
[[nodiscard]] std::string holder_of(const Address& address);

class Proxies {
 public:
  // "127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8". Code::config for what is none.
  [[nodiscard]] static Result<Proxies> parse(const std::vector<std::string>& texts);

  [[nodiscard]] bool trusted(const Address& address) const;
  // Sets peer and secure. `tls`: the connection itself is. Of X-Forwarded-For the rightmost address
  // that is no trusted proxy's counts: whatever stands left of it, its owner may have written.
  void set_peer(const Address& other_end, bool tls, Head& head) const;

 private:
  struct Network {
    Address address{};
    int bits = 128;
  };
  std::vector<Network> networks_;
};

}  // namespace weir::serve
