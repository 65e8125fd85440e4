// Who asks, and whether too often. Looking up never waits for the store: tokens are kept in memory
// and put in anew every few seconds by whoever owns this. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gate/serve/rate.hpp"
#include "gate/serve/token.hpp"

namespace weir::serve {

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
};

class Access {
 public:
  explicit Access(const AccessLimits& limits)
      : limits_(limits), uploads_(limits.uploads), refusals_(limits.refusals) {}

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
  Rates uploads_, refusals_;
  std::mutex mutex_;
  std::shared_ptr<const Table> table_ = std::make_shared<Table>();  // under mutex_
  std::optional<double> asked_again_;                               // under mutex_
};

}  // namespace weir::serve
