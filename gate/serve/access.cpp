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
  if (std::ranges::count(text, ':') == 1) text = text.substr(0, text.find(':'));
  return parse_address(text);
}

constexpr auto k_scopes = names_in_order<Scope>("read", "upload", "delete", "admin");
constexpr std::string_view k_prefix = "weir_";
constexpr std::size_t k_id_digits = 12, k_secret_digits = 48;
// Bytes; an issuer's tokens are the longest.
constexpr std::size_t k_longest_authorization = 9 << 10;

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Does one of `token`'s scopes do for `scope`?
bool has_scope(const history::StoredToken& token, Scope scope) {
  const std::vector<std::string> words = text::split(token.scopes, ' ');
  return std::ranges::any_of(words, [&](const std::string& word) {
    const auto held = value_of(k_scopes, word);
    return held && (*held == scope || *held == Scope::admin);
  });
}

// Takes the same time for any two texts of the same length.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
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
  return std::ranges::any_of(networks_, [&](const Network& network) {
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

std::optional<double> Rates::take(const std::string& key, double now) {
  const std::lock_guard lock(mutex_);
  auto found = buckets_.find(key);
  if (found == buckets_.end()) {
    if (buckets_.size() >= rate_.keys) make_room(now);
    found = buckets_.emplace(key, Bucket{rate_.burst, now}).first;
  }
  Bucket& bucket = found->second;
  bucket.left = std::min(rate_.burst, bucket.left + (now - bucket.at) * rate_.a_second);
  bucket.at = now;
  if (bucket.left >= 1) {
    bucket.left -= 1;
    return std::nullopt;
  }
  return (1 - bucket.left) / rate_.a_second;
}

// Full buckets say nothing. Of the others those go that nobody asked for longest, an eighth of all
// at once: to look at all of them for each key that comes would be work that strangers can order.
void Rates::make_room(double now) {
  std::erase_if(buckets_, [&](const auto& one) {
    return one.second.left + (now - one.second.at) * rate_.a_second >= rate_.burst;
  });
  const std::size_t batch = std::max<std::size_t>(rate_.keys / 8, 1);
  const std::size_t kept = rate_.keys - std::min(rate_.keys, batch);
  if (buckets_.size() <= kept) return;
  std::size_t many = buckets_.size() - kept;
  std::vector<double> times;
  times.reserve(buckets_.size());
  for (const auto& [key, bucket] : buckets_) times.push_back(bucket.at);
  const auto last = times.begin() + static_cast<std::ptrdiff_t>(many - 1);
  std::nth_element(times.begin(), last, times.end());
  std::erase_if(buckets_, [&](const auto& one) {
    const bool goes = many > 0 && one.second.at <= *last;
    if (goes) --many;
    return goes;
  });
}

std::string_view to_string(Scope scope) { return name_of(k_scopes, scope); }

Result<NewToken> make_token(history::StoredToken wanted) {
  std::array<unsigned char, (k_id_digits + k_secret_digits) / 2> random{};
  if (getentropy(random.data(), random.size()) != 0) {
    return fail(Code::io, "the system has no randomness to give");
  }
  NewToken made{std::move(wanted), {}};
  made.stored.id = hex(random.data(), k_id_digits / 2);
  const std::string text = fmt::format("{}{}_{}", k_prefix, made.stored.id,
                                       hex(random.data() + k_id_digits / 2, k_secret_digits / 2));
  made.stored.hash = sha256_hex(text);
  made.text = Secret(text);
  return made;
}

std::optional<std::string> id_of_token(std::string_view text) {
  if (!text.starts_with(k_prefix)) return std::nullopt;
  text.remove_prefix(k_prefix.size());
  if (text.size() != k_id_digits + 1 + k_secret_digits || text[k_id_digits] != '_') {
    return std::nullopt;
  }
  const std::string_view id = text.substr(0, k_id_digits);
  if (!is_hex(id) || !is_hex(text.substr(k_id_digits + 1))) return std::nullopt;
  return std::string(id);
}

bool is_good(const history::StoredToken& token, double now) {
  return !token.revoked_at && (!token.expires_at || now < *token.expires_at);
}

bool allows(const history::StoredToken& token, Scope scope, std::string_view project) {
  return has_scope(token, scope) && text::glob_match(token.project, project);
}

bool allows_all(const history::StoredToken& token, Scope scope) {
  return has_scope(token, scope) && !token.project.empty() &&
         token.project.find_first_not_of('*') == std::string::npos;
}

std::optional<Credential> credential_of(const std::string* authorization) {
  if (authorization == nullptr || authorization->size() > k_longest_authorization) {
    return std::nullopt;
  }
  const std::string_view all = text::trim(*authorization);
  const std::size_t space = std::min(all.find(' '), all.size());
  const std::string kind = text::lower(all.substr(0, space));
  const std::string_view rest = text::trim(all.substr(space));
  if (kind == "bearer") return Credential{std::string(rest), false};
  if (kind != "basic") return std::nullopt;
  const auto decoded = base64_decoded(rest);
  if (!decoded) return std::nullopt;
  const std::size_t colon = decoded->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Credential{decoded->substr(colon + 1), true};
}

std::string holder_of_peer(const std::string& peer) {
  const auto address = parse_address(peer);
  return address ? holder_of(*address) : peer;
}

void Access::put(const std::vector<history::StoredToken>& tokens) {
  auto table = std::make_shared<Table>();
  for (const history::StoredToken& token : tokens) {
    table->emplace(token.id, std::make_shared<const history::StoredToken>(token));
  }
  const std::lock_guard lock(mutex_);
  table_ = std::move(table);
}

Caller Access::find(const std::optional<Credential>& credential, double now, double steady,
                    bool again) {
  if (!credential) return {};
  if (issuer_ != nullptr && !credential->basic && is_signed_token(credential->text)) {
    auto found = issuer_->find(credential->text, now, steady);
    if (!found.grant) {
      const bool perhaps = found.wants_keys && again;
      return {perhaps ? Standing::perhaps : Standing::unknown, {}, false, {}, perhaps};
    }
    auto token = std::make_shared<history::StoredToken>();
    token->id = found.grant->rule.repository + "@" + found.grant->rule.ref;
    token->project = found.grant->rule.project;
    token->scopes = to_string(Scope::upload);
    return {Standing::known, std::move(token), false,
            std::make_shared<const Grant>(*std::move(found.grant))};
  }
  const auto answer = [&](Standing standing) {
    return Caller{.standing = standing, .basic = credential->basic};
  };
  const auto id = id_of_token(credential->text);
  if (!id) return answer(Standing::unknown);
  std::shared_ptr<const Table> table;
  {
    const std::lock_guard lock(mutex_);
    table = table_;
  }
  const std::string hash = sha256_hex(credential->text);
  const auto found = table->find(*id);
  if (found == table->end()) {
    const std::lock_guard lock(mutex_);
    if (!again || (asked_again_ && steady - *asked_again_ < limits_.look_again_seconds)) {
      return answer(Standing::unknown);
    }
    asked_again_ = steady;
    return answer(Standing::perhaps);
  }
  const history::StoredToken& token = *found->second;
  const bool same = equal_in_constant_time(token.hash, hash);
  if (!same || !is_good(token, now)) return answer(Standing::unknown);
  return {.standing = Standing::known, .token = found->second, .basic = credential->basic};
}

}  // namespace weir::serve
