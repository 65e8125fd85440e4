// Who asks, and whether too often. Looking up never waits for the store: tokens are kept in memory
// and put in anew every few seconds by whoever owns this. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/base/secret.hpp"
#include "gate/history/store.hpp"
#include "gate/serve/http.hpp"
#include "gate/serve/issuer.hpp"
#include "gate/sys/digest.hpp"

namespace weir::serve {

// Addresses, and whose word counts about them: X-Forwarded-For and -Proto of trusted proxies. Pure.

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

// How often somebody may do something: a bucket of tokens for each key, refilled with time. Holds a
// bounded number of keys: when it is full, those that were not asked for longest go. Thread-safe.

struct Rate {
  double burst = 10;    // at once
  double a_second = 1;  // then
  std::size_t keys = 10'000;
};

class Rates {
 public:
  explicit Rates(const Rate& rate) : rate_(rate) {}

  // Takes one. Else how many seconds to wait until there is one. `now`: steady seconds.
  [[nodiscard]] std::optional<double> take(const std::string& key, double now);

 private:
  struct Bucket {
    double left = 0, at = 0;
  };
  void make_room(double now);

  const Rate rate_;
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

// Tokens: who may read or upload which projects. "weir_", 12 hexadecimal digits that name it, "_",
// and 48 that nobody can guess (192 bits of the system's random source). The store keeps the
// SHA-256 of it, which is enough for a secret of that length.

enum class Scope { read, upload, remove, admin };
// "read", "upload", "delete", "admin".
[[nodiscard]] std::string_view to_string(Scope scope);

struct NewToken {
  history::StoredToken stored;
  Secret text;  // shown once
};
// Of `wanted` all but id and hash. Code::io where the system has no randomness to give.
[[nodiscard]] Result<NewToken> make_token(history::StoredToken wanted);

// The id of a text that has the form of a token.
[[nodiscard]] std::optional<std::string> id_of_token(std::string_view text);

using sys::sha256_hex;

// Is it good at `now`: neither expired nor revoked?
[[nodiscard]] bool is_good(const history::StoredToken& token, double now);
// May it do that with that project? `admin` may do all. One scope does not hold another.
[[nodiscard]] bool allows(const history::StoredToken& token, Scope scope, std::string_view project);
// … with every project, also those to come?
[[nodiscard]] bool allows_all(const history::StoredToken& token, Scope scope);

// What an Authorization header brings along.
struct Credential {
  std::string text;    // of the token; Basic: the password
  bool basic = false;  // a browser may send it unasked
};
// Nothing where there is no such header, or it is of another kind.
[[nodiscard]] std::optional<Credential> credential_of(const std::string* authorization);

struct AccessLimits {
  Rate uploads{.burst = 100, .a_second = 10};   // of each token
  Rate refusals{.burst = 20, .a_second = 0.2};  // tokens that are none, of each peer
  double look_again_seconds = 1;  // how often a token that is not known makes the store be asked
};

// holder_of() the address that a Head names as its peer; that text where it is none.
[[nodiscard]] std::string holder_of_peer(const std::string& peer);

enum class Standing {
  anonymous,  // brought nothing
  known,
  unknown,  // what it brought is no good
  perhaps,  // it has the form of a token, and the store was not asked for a while
};

struct Caller {
  Standing standing = Standing::anonymous;
  std::shared_ptr<const history::StoredToken> token{};  // of `known`
  bool basic = false;
  std::shared_ptr<const Grant> grant{};  // of a job's token, which an issuer signed
  bool wants_keys = false;               // of `perhaps`: the issuer's keys have to be fetched first
};

class Access {
 public:
  // `issuer` may be null.
  Access(const AccessLimits& limits, Issuer* issuer)
      : limits_(limits), issuer_(issuer), uploads_(limits.uploads), refusals_(limits.refusals) {}

  void put(const std::vector<history::StoredToken>& tokens);

  // `now` since the epoch. With `again`: `perhaps` may be answered, once in look_again_seconds of
  // `steady` seconds.
  [[nodiscard]] Caller find(const std::optional<Credential>& credential, double now, double steady,
                            bool again);

  // Seconds to wait where it was too often.
  [[nodiscard]] std::optional<double> count_upload(const Caller& caller, double steady) {
    return uploads_.take(caller.token ? caller.token->id : std::string(), steady);
  }
  // … of an IPv6 peer's network together: it has as many addresses as it likes.
  [[nodiscard]] std::optional<double> count_refusal(const std::string& peer, double steady) {
    return refusals_.take(holder_of_peer(peer), steady);
  }

 private:
  using Table =
      std::unordered_map<std::string, std::shared_ptr<const history::StoredToken>>;  // by id

  AccessLimits limits_;
  Issuer* const issuer_;
  Rates uploads_, refusals_;
  std::mutex mutex_;
  std::shared_ptr<const Table> table_ = std::make_shared<Table>();  // under mutex_
  std::optional<double> asked_again_;                               // under mutex_
};

}  // namespace weir::serve
