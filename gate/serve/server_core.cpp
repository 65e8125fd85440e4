#include "gate/serve/server_core.hpp"

#include <chrono>

#include "gate/serve/session.hpp"

namespace weir::serve {
namespace {

// Connections beyond the limit that are told so; still more are closed without a word.
constexpr std::size_t k_most_refusals = 64;

}  // namespace

Core::Place Core::add(const std::shared_ptr<Session>& session, const std::string& holder,
                      bool trusted) {
  ++counted.connections;
  const std::lock_guard lock(mutex_);
  const auto found = holders_.find(holder);
  const std::size_t of_holder = found == holders_.end() ? 0 : found->second;
  const bool full = sessions_.size() >= limits.connections ||
                    (!trusted && of_holder >= limits.connections_a_peer);
  if (full) ++counted.refused;
  const std::size_t most = limits.connections + k_most_refusals;
  if (full &&
      (sessions_.size() >= most || of_holder >= limits.connections_a_peer + k_most_refusals))
    return Place::beyond;
  sessions_.insert(session);
  ++holders_[holder];
  return full ? Place::full : Place::taken;
}

void Core::remove(const std::shared_ptr<Session>& session, const std::string& holder) {
  const std::lock_guard lock(mutex_);
  if (sessions_.erase(session) == 0) return;
  const auto found = holders_.find(holder);
  if (found != holders_.end() && --found->second == 0) holders_.erase(found);
  if (sessions_.empty()) none_.notify_all();
}

std::size_t Core::open() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

bool Core::wait_until_none(double seconds) {
  std::unique_lock lock(mutex_);
  return none_.wait_for(lock, std::chrono::duration<double>(seconds),
                        [&] { return sessions_.empty(); });
}

std::vector<std::shared_ptr<Session>> Core::sessions() const {
  const std::lock_guard lock(mutex_);
  return {sessions_.begin(), sessions_.end()};
}

void Core::forget_sessions() {
  std::unordered_set<std::shared_ptr<Session>> ended;
  const std::lock_guard lock(mutex_);
  ended.swap(sessions_);
  holders_.clear();
}

bool Core::take_room(std::uint64_t bytes) {
  if (buffered_.fetch_add(bytes) + bytes <= limits.buffered_bytes) return true;
  buffered_.fetch_sub(bytes);
  return false;
}

void Core::give_room(std::uint64_t bytes) { buffered_.fetch_sub(bytes); }

}  // namespace weir::serve
