// Decides who a caller is: addresses behind proxies, rate limits, and tokens.
#include "gate/serve/access.hpp"

#include <algorithm>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <unistd.h>

#include "gate/base/encode.hpp"
#include "gate/base/text.hpp"

namespace weir::serve {

namespace {

constexpr std::uint8_t k_ipv4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

bool is_ipv4(const Address& address) {
  return std::equal(std::begin(k_ipv4_prefix), std::end(k_ipv4_prefix), address.begin());
}

// Parses an entry of X-Forwarded-For, with or without a port.
std::optional<Address> forwarded_address(std::string_view text) {
  text = text::trim(text);
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    return end == std::string_view::npos ? std::nullopt : parse_address(text.substr(1, end - 1));
  }
  if (std::ranges::count(text, ':') == 1) text = text.substr(0, text.find(':'));
  return parse_address(text);
}

constexpr auto k_scopes = names_in_order<Scope>("read", "upload", "delete", "admin");
constexpr std::string_view k_prefix = "weir_";
constexpr std::size_t k_id_digits = 12, k_secret_digits = 48;
// Bytes; an issuer's tokens are the longest.
constexpr std::size_t k_longest_authorization = 9 << 10;

// Returns true if one of the token's scopes grants `scope`.
bool has_scope(const history::StoredToken& token, Scope scope) {
  const std::vector<std::string> words = text::split(token.scopes, ' ');
  return std::ranges::any_of(words, [&](const std::string& word) {
    const auto token_scope = value_of(k_scopes, word);
    return token_scope && (*token_scope == scope || *token_scope == Scope::admin);
  });
}

// Compares in a time that depends on the length only.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

// Parses IPv6 or IPv4; IPv4 is stored as a mapped IPv6 address.
std::optional<Address> parse_address(std::string_view text) {
  const std::string name(text.substr(0, text.find('%')));
  Address address{};
  if (name.find('\0') != std::string::npos) return std::nullopt;
  if (inet_pton(AF_INET6, name.c_str(), address.data()) == 1) return address;
  std::copy(std::begin(k_ipv4_prefix), std::end(k_ipv4_prefix), address.begin());
  if (inet_pton(AF_INET, name.c_str(), address.data() + sizeof k_ipv4_prefix) == 1) return address;
  return std::nullopt;
}

std::string to_text(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4(address)) {
    inet_ntop(AF_INET, address.data() + sizeof k_ipv4_prefix, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, address.data(), text, sizeof text);
  }
  return text;
}

std::string client_key(const Address& address) {
  if (is_ipv4(address)) return to_text(address);
  Address network = address;
  std::fill(network.begin() + 8, network.end(), std::uint8_t{0});
  return to_text(network);
}

// Parses the addresses and networks ("10.0.0.0/8") of trusted proxies; fails on the first text that
// is neither. IPv4 is stored as IPv6, with 96 more bits of prefix.
Result<Proxies> Proxies::parse(const std::vector<std::string>& texts) {
  Proxies proxies;
  for (const std::string& text : texts) {
    const std::size_t slash = text.find('/');
    const auto address = parse_address(text.substr(0, slash));
    const int max_prefix_bits =
        address && is_ipv4(*address) && text.find(':') == std::string::npos ? 32 : 128;
    long long prefix_bits = max_prefix_bits;
    if (slash != std::string::npos) prefix_bits = text::to_int(text.substr(slash + 1)).value_or(-1);
    if (!address || prefix_bits < 0 || prefix_bits > max_prefix_bits) {
      return fail(Code::config,
                  "trusted proxy \"{}\": no address (\"10.0.0.1\", \"::1\") and no network\n"
                  "(\"10.0.0.0/8\", \"fd00::/8\")",
                  text::printable(text));
    }
    proxies.networks_.push_back({*address, static_cast<int>(prefix_bits) + 128 - max_prefix_bits});
  }
  return proxies;
}

bool Proxies::trusted(const Address& address) const {
  return std::ranges::any_of(networks_, [&](const Network& network) {
    const auto whole_bytes = static_cast<std::size_t>(network.bits / 8);
    if (!std::equal(address.begin(), address.begin() + network.bits / 8, network.address.begin())) {
      return false;
    }
    const int rest_bits = network.bits % 8;
    return rest_bits == 0 ||
           (address[whole_bytes] ^ network.address[whole_bytes]) >> (8 - rest_bits) == 0;
  });
}

// Sets `head.peer`, the client's address, and `head.secure` (HTTPS). Believes X-Forwarded-For and
// X-Forwarded-Proto only if a trusted proxy sent them. Reads addresses from the last to the first
// that is no trusted proxy.
void Proxies::set_peer(const Address& other_end, bool is_tls, Head& head) const {
  Address peer = other_end;
  head.secure = is_tls;
  if (trusted(other_end)) {
    if (const std::string* forwarded_protocol = head.header("x-forwarded-proto")) {
      // If there are several values, use that of the nearest proxy.
      const std::string_view nearest =
          std::string_view(*forwarded_protocol).substr(forwarded_protocol->rfind(',') + 1);
      head.secure = is_tls || text::lower(text::trim(nearest)) == "https";
    }
    const std::string* forwarded_for = head.header("x-forwarded-for");
    std::string_view unread_addresses =
        forwarded_for == nullptr ? std::string_view() : std::string_view(*forwarded_for);
    while (!unread_addresses.empty() && trusted(peer)) {
      const std::size_t comma = unread_addresses.rfind(',');
      const auto forwarded = forwarded_address(
          unread_addresses.substr(comma == std::string_view::npos ? 0 : comma + 1));
      if (!forwarded) break;  // "unknown" or nonsense; nobody vouches for the entries left of it
      peer = *forwarded;
      unread_addresses = unread_addresses.substr(0, comma == std::string_view::npos ? 0 : comma);
    }
  }
  head.peer = to_text(peer);
}

// Takes a token from the key's bucket (a rate limit) and returns nullopt. If the bucket is empty,
// returns the seconds until it has a token.
std::optional<double> Rates::take(const std::string& key, double now) {
  const std::lock_guard lock(mutex_);
  auto entry = buckets_.find(key);
  if (entry == buckets_.end()) {
    if (buckets_.size() >= rate_.keys) make_room(now);
    entry = buckets_.emplace(key, Bucket{rate_.burst, now}).first;
  }
  Bucket& bucket = entry->second;
  bucket.tokens = std::min(rate_.burst, bucket.tokens + (now - bucket.at) * rate_.a_second);
  bucket.at = now;
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return std::nullopt;
  }
  return (1 - bucket.tokens) / rate_.a_second;
}

// Makes room for another key. Drops full buckets, which hold no information, then the ones unused
// for longest. It drops an eighth at once, so that strangers cannot force a scan with every
// request.
void Rates::make_room(double now) {
  std::erase_if(buckets_, [&](const auto& entry) {
    return entry.second.tokens + (now - entry.second.at) * rate_.a_second >= rate_.burst;
  });
  const std::size_t batch = std::max<std::size_t>(rate_.keys / 8, 1);
  const std::size_t goal = rate_.keys - std::min(rate_.keys, batch);
  if (buckets_.size() <= goal) return;
  std::size_t surplus = buckets_.size() - goal;
  std::vector<double> times;
  times.reserve(buckets_.size());
  for (const auto& [key, bucket] : buckets_) times.push_back(bucket.at);
  const auto last = times.begin() + static_cast<std::ptrdiff_t>(surplus - 1);
  std::nth_element(times.begin(), last, times.end());
  std::erase_if(buckets_, [&](const auto& entry) {
    const bool is_oldest = surplus > 0 && entry.second.at <= *last;
    if (is_oldest) --surplus;
    return is_oldest;
  });
}

std::string_view to_string(Scope scope) { return name_of(k_scopes, scope); }

// Makes a token from 'stored' with a random id and secret. The result holds the text for the user
// and, for the store, only its hash. Fails if the system has no randomness.
Result<NewToken> make_token(history::StoredToken stored) {
  std::array<unsigned char, (k_id_digits + k_secret_digits) / 2> random{};
  if (getentropy(random.data(), random.size()) != 0) {
    return fail(Code::io, "the system has no randomness to give");
  }
  NewToken token{std::move(stored), {}};
  token.stored.id = hex(random.data(), k_id_digits / 2);
  const std::string text = fmt::format("{}{}_{}", k_prefix, token.stored.id,
                                       hex(random.data() + k_id_digits / 2, k_secret_digits / 2));
  token.stored.hash = sha256_hex(text);
  token.text = Secret(text);
  return token;
}

std::optional<std::string> parse_token_id(std::string_view text) {
  if (!text.starts_with(k_prefix)) return std::nullopt;
  text.remove_prefix(k_prefix.size());
  if (text.size() != k_id_digits + 1 + k_secret_digits || text[k_id_digits] != '_') {
    return std::nullopt;
  }
  const std::string_view id = text.substr(0, k_id_digits);
  if (!text::is_hex(id) || !text::is_hex(text.substr(k_id_digits + 1))) return std::nullopt;
  return std::string(id);
}

// Returns true if the token is neither revoked nor expired.
bool is_usable_token(const history::StoredToken& token, double now) {
  return !token.revoked_at && (!token.expires_at || now < *token.expires_at);
}

bool allows(const history::StoredToken& token, Scope scope, std::string_view project) {
  return has_scope(token, scope) && text::glob_match(token.project, project);
}

bool allows_all(const history::StoredToken& token, Scope scope) {
  return has_scope(token, scope) && !token.project.empty() &&
         token.project.find_first_not_of('*') == std::string::npos;
}

// Returns the token of an Authorization header: that of Bearer, or the password of Basic. Returns
// nullopt if the header is missing (null), too long or malformed.
std::optional<Credential> parse_credential(const std::string* authorization) {
  if (authorization == nullptr || authorization->size() > k_longest_authorization) {
    return std::nullopt;
  }
  const std::string_view value = text::trim(*authorization);
  const std::size_t space = std::min(value.find(' '), value.size());
  const std::string kind = text::lower(value.substr(0, space));
  const std::string_view rest = text::trim(value.substr(space));
  if (kind == "bearer") return Credential{.text = std::string(rest), .basic = false};
  if (kind != "basic") return std::nullopt;
  const auto decoded = decode_base64(rest);
  if (!decoded) return std::nullopt;
  const std::size_t colon = decoded->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Credential{.text = decoded->substr(colon + 1), .basic = true};
}

std::string peer_client_key(const std::string& peer) {
  const auto address = parse_address(peer);
  return address ? client_key(*address) : peer;
}

void Access::put(const std::vector<history::StoredToken>& tokens) {
  auto table = std::make_shared<Table>();
  for (const history::StoredToken& token : tokens) {
    table->emplace(token.id, std::make_shared<const history::StoredToken>(token));
  }
  const std::lock_guard lock(mutex_);
  table_ = std::move(table);
}

// Identifies the caller by a token of an issuer or of the store. A token that is unknown is
// `unverified` if it may be known once keys or tokens are read again.
Caller Access::find(const std::optional<Credential>& credential, double now, double steady_now,
                    bool may_recheck) {
  if (!credential) return {};
  if (issuer_ != nullptr && !credential->basic && is_signed_token(credential->text)) {
    return find_by_issuer(*credential, now, steady_now, may_recheck);
  }
  return find_by_store(*credential, now, steady_now, may_recheck);
}

// Identifies the caller by a token that an issuer signed, as of a CI job; it may only upload.
// Without a matching rule the caller is `unknown`. It is `unverified` if newer keys of the issuer
// could show more and `may_recheck`. Times are in seconds.
Caller Access::find_by_issuer(const Credential& credential, double now, double steady_now,
                              bool may_recheck) const {
  auto check = issuer_->find(credential.text, now, steady_now);
  if (!check.grant) {
    const bool newer_keys_may_help = check.wants_keys && may_recheck;
    return {.standing = newer_keys_may_help ? Standing::unverified : Standing::unknown,
            .wants_keys = newer_keys_may_help};
  }
  auto token = std::make_shared<history::StoredToken>();
  token->id = check.grant->rule.repository + "@" + check.grant->rule.ref;
  token->project = check.grant->rule.project;
  token->scopes = to_string(Scope::upload);
  return {.standing = Standing::identified,
          .token = std::move(token),
          .grant = std::make_shared<const Grant>(*std::move(check.grant))};
}

// Identifies the caller by a stored token, whose hash is compared in constant time. If the id is
// not in the table, the result is `unverified`: read the store again. It is `unknown` if the token
// is wrong, expired or revoked, or the store was just read.
Caller Access::find_by_store(const Credential& credential, double now, double steady_now,
                             bool may_recheck) {
  const Caller unknown{.standing = Standing::unknown, .basic = credential.basic};
  const auto id = parse_token_id(credential.text);
  if (!id) return unknown;
  std::shared_ptr<const Table> table;  // copied, so that hashing needs no lock
  {
    const std::lock_guard lock(mutex_);
    table = table_;
  }
  const std::string hash = sha256_hex(credential.text);
  const auto entry = table->find(*id);
  if (entry == table->end()) {
    const std::lock_guard lock(mutex_);
    const bool was_store_just_read =
        last_recheck_ && steady_now - *last_recheck_ < limits_.look_again_seconds;
    if (!may_recheck || was_store_just_read) return unknown;
    last_recheck_ = steady_now;
    return {.standing = Standing::unverified, .basic = credential.basic};
  }
  const history::StoredToken& token = *entry->second;
  const bool is_match = equal_in_constant_time(token.hash, hash);
  if (!is_match || !is_usable_token(token, now)) return unknown;
  return {.standing = Standing::identified, .token = entry->second, .basic = credential.basic};
}

}  // namespace weir::serve
