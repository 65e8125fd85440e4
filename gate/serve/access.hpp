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
// The key under which connections of an address are counted: for IPv6 its first 64 bits, because
// whoever has one address of such a network has them all.
[[nodiscard]] std::string client_key(const Address& address);

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
    double tokens = 0, at = 0;
  };
  void make_room(double now);

  const Rate rate_;
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

// Tokens: who may read or upload which projects. A token is "weir_", 12 hexadecimal digits that
// name it, "_", and 48 random ones (192 bits). The store keeps only its SHA-256, which is enough
// for a secret of that length.

enum class Scope { read, upload, remove, admin };
// "read", "upload", "delete", "admin".
[[nodiscard]] std::string_view to_string(Scope scope);

struct NewToken {
  history::StoredToken stored;
  Secret text;  // shown once
};
// Makes a token of `wanted`, and fills in its id and hash. Code::io if the system has no
// randomness.
[[nodiscard]] Result<NewToken> make_token(history::StoredToken wanted);

// The id of a text that has the form of a token.
[[nodiscard]] std::optional<std::string> parse_token_id(std::string_view text);

using sys::sha256_hex;

// True if the token is neither expired nor revoked at `now`.
[[nodiscard]] bool is_usable_token(const history::StoredToken& token, double now);
// True if the token has the scope for that project. `admin` includes all scopes; no other scope
// includes another.
[[nodiscard]] bool allows(const history::StoredToken& token, Scope scope, std::string_view project);
// The same for every project, including future ones.
[[nodiscard]] bool allows_all(const history::StoredToken& token, Scope scope);

// The token that an Authorization header carries.
struct Credential {
  std::string text;    // the token; with Basic, the password
  bool basic = false;  // a browser may send it unasked
};
// Nothing where there is no such header, or it is of another kind.
[[nodiscard]] std::optional<Credential> parse_credential(const std::string* authorization);

struct AccessLimits {
  Rate uploads{.burst = 100, .a_second = 10};   // per token
  Rate refusals{.burst = 20, .a_second = 0.2};  // tokens that are none, of each peer
  double look_again_seconds = 1;  // how often a token that is not known makes the store be asked
};

// client_key() of a Head's peer; the text itself if it is no address.
[[nodiscard]] std::string peer_client_key(const std::string& peer);

enum class Standing {
  anonymous,  // without a token
  identified,
  unknown,     // with an invalid token
  unverified,  // with text in the form of a token, and the store was not asked for a while
};

struct Caller {
  Standing standing = Standing::anonymous;
  std::shared_ptr<const history::StoredToken> token{};  // set if `known`
  bool basic = false;
  std::shared_ptr<const Grant> grant{};  // set for a job's token, which an issuer signed
  bool wants_keys = false;  // if unverified: the issuer's keys have to be fetched first
};

class Access {
 public:
  // `issuer` may be null.
  Access(const AccessLimits& limits, Issuer* issuer)
      : limits_(limits), issuer_(issuer), uploads_(limits.uploads), refusals_(limits.refusals) {}

  void put(const std::vector<history::StoredToken>& tokens);

  // `now` is in seconds since the epoch, `steady_now` in those of a clock that is never set. With
  // `may_recheck`, the result may be `unverified`, once in look_again_seconds.
  [[nodiscard]] Caller find(const std::optional<Credential>& credential, double now,
                            double steady_now, bool may_recheck);

  // Counts one upload. If there were too many, returns the seconds to wait.
  [[nodiscard]] std::optional<double> count_upload(const Caller& caller, double steady) {
    return uploads_.take(caller.token ? caller.token->id : std::string(), steady);
  }
  // Counts one invalid token. An IPv6 network counts as one peer: it has any number of addresses.
  [[nodiscard]] std::optional<double> count_refusal(const std::string& peer, double steady) {
    return refusals_.take(peer_client_key(peer), steady);
  }

 private:
  using Table =
      std::unordered_map<std::string, std::shared_ptr<const history::StoredToken>>;  // by id

  [[nodiscard]] Caller find_by_issuer(const Credential& credential, double now, double steady_now,
                                      bool may_recheck) const;
  [[nodiscard]] Caller find_by_store(const Credential& credential, double now, double steady_now,
                                     bool may_recheck);

  AccessLimits limits_;
  Issuer* const issuer_;
  Rates uploads_, refusals_;
  std::mutex mutex_;
  std::shared_ptr<const Table> table_ = std::make_shared<Table>();  // under mutex_
  std::optional<double> last_recheck_;                              // under mutex_
};

}  // namespace weir::serve
