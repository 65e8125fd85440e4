// What all connections of a server share. For use within serve alone. Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "gate/serve/access.hpp"
#include "gate/serve/server.hpp"

namespace weir::serve {

class Session;

// Kept alive by the server and by every answer that is still owed: an answer may come from any
// thread, also when the server has gone.
class Core : public std::enable_shared_from_this<Core> {
 public:
  using Refused = std::function<void(int status, const std::string& peer)>;

  Core(const Limits& its_limits, Handler& its_handler, Proxies its_proxies, Refused its_refused)
      : limits(its_limits),
        handler(its_handler),
        proxies(std::move(its_proxies)),
        refused(std::move(its_refused)) {}

  const Limits limits;
  Handler& handler;
  const Proxies proxies;
  const Refused refused;  // may be empty

  struct Counters {
    std::atomic<std::uint64_t> connections{0}, refused{0}, requests{0}, malformed{0}, timed_out{0},
        too_large{0}, bytes_in{0}, bytes_out{0};
  };
  Counters counted;
  std::atomic<bool> draining{false};

  // Declared before the sessions, whose sockets live in it.
  boost::asio::io_context io;

  enum class Place { taken, full, beyond };
  // Is there room for one more connection of `holder`? `full`: for its refusal alone; `beyond`: not
  // even for that.
  Place add(const std::shared_ptr<Session>& session, const std::string& holder, bool trusted);
  void remove(const std::shared_ptr<Session>& session, const std::string& holder);
  [[nodiscard]] std::size_t open() const;
  // False when that time has passed and there still is a connection.
  bool wait_until_none(double seconds);
  [[nodiscard]] std::vector<std::shared_ptr<Session>> sessions() const;
  void forget_sessions();

  // Room for bodies, and for large answers until they are taken; false where there is none.
  bool take_room(std::uint64_t bytes);
  void give_room(std::uint64_t bytes);

 private:
  mutable std::mutex mutex_;
  std::condition_variable none_;
  std::unordered_set<std::shared_ptr<Session>> sessions_;  // under mutex_, as the next
  std::map<std::string, std::size_t> holders_;
  std::atomic<std::uint64_t> buffered_{0};
};

}  // namespace weir::serve
