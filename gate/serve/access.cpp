#include "gate/serve/access.hpp"

#include "gate/serve/server_proxies.hpp"

namespace weir::serve {

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
  const auto id = id_of_token(credential->text);
  if (!id) return {Standing::unknown, {}, credential->basic};
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
      return {Standing::unknown, {}, credential->basic};
    }
    asked_again_ = steady;
    return {Standing::perhaps, {}, credential->basic};
  }
  const history::StoredToken& token = *found->second;
  const bool same = equal_in_constant_time(token.hash, hash);
  if (!same || !is_good(token, now)) return {Standing::unknown, {}, credential->basic};
  return {Standing::known, found->second, credential->basic};
}

}  // namespace weir::serve
