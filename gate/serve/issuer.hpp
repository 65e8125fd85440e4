// Tokens that an issuer of OpenID Connect (GitHub Actions) signs for one job, in place of tokens
// that live long. RS256 alone, checked against the keys that the issuer publishes. Everything that
// comes is hostile until its signature holds; what is in it then goes as far as a rule says.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"

struct evp_pkey_st;  // OpenSSL's

namespace weir::serve {

// Jobs of `repository` ("me/engine", or the digits of its repository_id, which a repository of that
// name that is made later does not have) on a ref that matches `ref` ('*' is any text) may upload
// to the projects that match `project`.
struct IssuerRule {
  std::string project, repository, ref;
};

struct IssuerOptions {
  std::string issuer = "https://token.actions.githubusercontent.com";
  std::string audience{};
  std::vector<IssuerRule> rules{};  // the first that fits counts
  // The issuer's published keys (a JSON Web Key Set). Called by one thread at a time; may wait.
  std::function<Result<std::string>()> fetch{};
  double fetch_again_seconds = 60;  // how soon a key that is not known makes them be fetched again
};

// The permissions of a job: its rule, and the facts that its upload must have.
struct Grant {
  IssuerRule rule;
  std::string ref, commit;
};

// By kid.
using IssuerKeys = std::map<std::string, std::shared_ptr<evp_pkey_st>, std::less<>>;

// Reads the keys of a set that check RS256, with 2048 to 4096 bits. Code::data if there is none.
[[nodiscard]] Result<IssuerKeys> parse_issuer_keys(std::string_view text);

// Has it three parts, as a JSON Web Token has? weir's own tokens have one.
[[nodiscard]] bool is_signed_token(std::string_view text);
// Which key it says it is signed with. Code::data where it is no token of RS256.
[[nodiscard]] Result<std::string> parse_key_id(std::string_view token);
// Its claims. Code::data where `key` did not sign it.
[[nodiscard]] Result<Json> verify_claims(std::string_view token, evp_pkey_st& key);
// Code::data where they are for somebody else, not valid at `now` (within a minute), or fit no
// rule.
[[nodiscard]] Result<Grant> find_grant(const Json& claims, const IssuerOptions& options,
                                       double now);

// Thread-safe. Looking up never waits.
class Issuer {
 public:
  explicit Issuer(IssuerOptions options) : options_(std::move(options)) {}

  struct Found {
    std::optional<Grant> grant{};
    bool wants_keys = false;  // its key is not known, and may be after renew()
  };
  [[nodiscard]] Found find(std::string_view token, double now, double steady);
  // Fetches the keys, unless it just did. What it has stays where that fails.
  [[nodiscard]] Result<void> renew(double steady);

 private:
  // Under mutex_.
  [[nodiscard]] bool is_stale(double steady) const {
    return !fetched_ || steady - *fetched_ >= options_.fetch_again_seconds;
  }

  const IssuerOptions options_;
  std::mutex mutex_;
  std::shared_ptr<const IssuerKeys> keys_ = std::make_shared<IssuerKeys>();  // under mutex_
  std::optional<double> fetched_;                                            // under mutex_
};

}  // namespace weir::serve
