// Accepts connections and runs the threads that serve them.
#include "gate/serve/server.hpp"

#include <algorithm>
#include <thread>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include "gate/base/text.hpp"
#include "gate/serve/session.hpp"
#include "gate/sys/clock.hpp"

namespace weir::serve {
namespace {

using net::ip::tcp;

// Pause before accepting again after the system ran out of descriptors. Connections wait in its
// queue meanwhile.
constexpr auto k_accept_pause = std::chrono::milliseconds(100);
constexpr double k_drain_check_seconds = 0.05;           // at a second request to stop, in seconds
constexpr auto k_tick = std::chrono::milliseconds(100);  // from one look at deadlines to the next
const sys::RealClock k_machine_clock;

// Descriptors needed besides connections: refused connections, files and stores.
constexpr std::size_t k_other_descriptors = 192;

// Connections beyond the limit that get an answer; further ones are closed at once.
constexpr std::size_t k_max_refusals = 64;

// Raises the process's limit of open files for `wanted` connections. Returns how many are possible;
// warns if they are fewer.
std::size_t raise_connection_limit(std::size_t wanted) {
  const rlim_t needed = wanted + k_other_descriptors;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return wanted;
  rlimit raised = limit;
  raised.rlim_cur = std::min(needed, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  if (limit.rlim_cur >= needed) return wanted;
  const std::size_t possible = limit.rlim_cur > 2 * k_other_descriptors
                                   ? limit.rlim_cur - k_other_descriptors
                                   : limit.rlim_cur / 2;
  spdlog::warn("{} connections at most, not {}: the system allows {} open files (ulimit -n)",
               possible, wanted, limit.rlim_cur);
  return std::min(possible, wanted);
}

// Parses the address to listen at. Takes "localhost" and IPv6 in brackets; fails on other names.
Result<tcp::endpoint> parse_endpoint(const ServerOptions& options) {
  std::string text = options.address == "localhost" ? "127.0.0.1" : options.address;
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  ErrorCode error;
  const auto address = net::ip::make_address(text, error);
  if (error) {
    return fail(Code::config,
                "\"{}\" is no address to listen at: 127.0.0.1 and ::1 are this machine alone,\n"
                "0.0.0.0 and :: all of its networks",
                text::printable(options.address));
  }
  return tcp::endpoint(address, options.port);
}

// Returns the address of the socket's other end, or nothing if it is gone.
std::optional<Address> peer_address(const tcp::socket& socket) {
  ErrorCode error;
  const tcp::endpoint remote = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  return parse_address(remote.address().to_string());
}

// Binds the acceptor to the endpoint and listens. Fails with `unavailable` if the port is taken.
Result<void> open(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  ErrorCode error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  // "::" takes IPv4 as well, whatever the system's own setting is.
  if (!error && endpoint.address().is_v6()) acceptor.set_option(net::ip::v6_only(false), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) return {};
  const std::string where =
      fmt::format("{} port {}", endpoint.address().to_string(), endpoint.port());
  if (error == net::error::address_in_use) {
    return fail(Code::unavailable, "{} is taken: another program listens there", where);
  }
  if (error == boost::system::errc::address_not_available) {
    return fail(Code::config, "{}: this machine has no such address", where);
  }
  return fail(Code::unavailable, "{}: {}", where, error.message());
}

}  // namespace

// Registers a connection, unless too many are open in total or for its client, the holder. If it is
// full, closes an idle connection to make room. Returns `full` if the client gets a refusal,
// `beyond` if not even that.
Core::Place Core::add(const std::shared_ptr<Session>& session, const std::string& holder,
                      bool trusted) {
  ++traffic.connections;
  const std::lock_guard lock(mutex_);
  const auto holder_entry = holders_.find(holder);
  const std::size_t open_count = holder_entry == holders_.end() ? 0 : holder_entry->second;
  const bool is_client_full = !trusted && open_count >= limits.connections_a_peer;
  bool is_full = is_client_full || sessions_.size() >= limits.connections;
  if (is_full) {
    const auto busiest = std::ranges::max_element(
        holders_, {}, [](const auto& connections) { return connections.second; });
    std::shared_ptr<Session> idler;
    if (is_client_full) {
      idler = find_idler(holder);
    } else if (busiest != holders_.end() && busiest->second >= open_count) {
      idler = find_idler(busiest->first);
    }
    if (idler) {
      forget(idler, idler->holder());
      net::post(idler->executor(), [idler] { idler->close(); });
      is_full = false;
    }
  }
  if (is_full) ++traffic.refused;
  const std::size_t max_sessions = limits.connections + k_max_refusals;
  if (is_full && (sessions_.size() >= max_sessions ||
                  open_count >= limits.connections_a_peer + k_max_refusals))
    return Place::beyond;
  sessions_.insert(session);
  ++traffic.open;
  ++holders_[holder];
  return is_full ? Place::full : Place::added;
}

// Claims the holder's connection that has waited longest for a request. Returns null if none has
// waited for `patience_seconds`.
std::shared_ptr<Session> Core::find_idler(const std::string& holder) const {
  const double now = clock.steady();
  while (true) {
    std::shared_ptr<Session> idler;
    double since = now - limits.patience_seconds;
    for (const auto& session : sessions_) {
      const double waits_since = session->waits_since();
      if (session->holder() != holder || waits_since >= since) continue;
      since = waits_since;
      idler = session;
    }
    if (!idler || idler->claim(since)) return idler;
  }
}

void Core::remove(const std::shared_ptr<Session>& session, const std::string& holder) {
  const std::lock_guard lock(mutex_);
  forget(session, holder);
}

void Core::forget(const std::shared_ptr<Session>& session, const std::string& holder) {
  if (sessions_.erase(session) == 0) return;
  --traffic.open;
  const auto entry = holders_.find(holder);
  if (entry != holders_.end()) {
    --entry->second;
    if (entry->second == 0) holders_.erase(entry);
  }
  if (sessions_.empty()) none_.notify_all();
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
  std::unordered_set<std::shared_ptr<Session>> sessions;
  const std::lock_guard lock(mutex_);
  sessions.swap(sessions_);
  traffic.open = 0;
  holders_.clear();
}

void Core::check_deadlines() {
  const double now = clock.steady();
  for (const auto& session : sessions()) {
    if (!session->is_late(now)) continue;
    net::post(session->executor(), [session] { session->check_deadline(); });
  }
}

bool Core::begin_request(const std::string& client) {
  const std::lock_guard lock(mutex_);
  std::size_t& count = requests_[client];
  if (count >= limits.connections_a_peer) return false;
  ++count;
  return true;
}

void Core::end_request(const std::string& client) {
  const std::lock_guard lock(mutex_);
  const auto entry = requests_.find(client);
  if (entry == requests_.end()) return;
  --entry->second;
  if (entry->second == 0) requests_.erase(entry);
}

bool Core::reserve_bytes(const std::string& client, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto entry = rooms_.find(client);
  const std::uint64_t held = entry == rooms_.end() ? 0 : entry->second;
  if (buffered_ + bytes > limits.buffered_bytes || held + bytes > limits.buffered_bytes / 2) {
    return false;
  }
  rooms_[client] += bytes;
  buffered_ += bytes;
  return true;
}

void Core::give_room(const std::string& client, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto entry = rooms_.find(client);
  if (entry == rooms_.end()) return;
  buffered_ -= bytes;
  entry->second -= bytes;
  if (entry->second == 0) rooms_.erase(entry);
}

struct Server::State {
  explicit State(std::shared_ptr<Core> shared_core)
      : core(std::move(shared_core)),
        strand(net::make_strand(core->io)),
        acceptor(strand),
        pause(strand),
        tick(strand) {}

  void accept();
  void add_session(tcp::socket socket);
  void watch_deadlines();
  void work() noexcept;
  void close_sessions();

  std::shared_ptr<Core> core;
  net::strand<net::io_context::executor_type> strand;  // the acceptor's
  tcp::acceptor acceptor;
  net::steady_timer pause, tick;
  MakeWire wire = [](tcp::socket socket) { return std::make_unique<Wire>(std::move(socket)); };
  std::size_t threads = 1;
  std::uint16_t port = 0;
};

// Accepts one connection after another; pauses if the system has no resources left, such as file
// descriptors.
void Server::State::accept() {
  acceptor.async_accept(net::make_strand(core->io), [this](ErrorCode error, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    if (!error) {
      try {
        add_session(std::move(socket));
      } catch (const std::exception& thrown) {
        // Probably out of memory. This connection is closed; later ones are still accepted.
        spdlog::error("a connection was dropped: {}", thrown.what());
      }
    } else if (error != net::error::connection_aborted) {
      pause.expires_after(k_accept_pause);
      pause.async_wait([this](ErrorCode stopped) {
        if (!stopped && acceptor.is_open()) accept();
      });
      return;
    }
    accept();
  });
}

// Starts a session on the socket. If the server is full, the session only sends a refusal, or the
// socket is closed.
void Server::State::add_session(tcp::socket socket) {
  const auto peer = peer_address(socket);
  if (!peer) return;  // gone already
  ErrorCode ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  auto session_wire = wire(std::move(socket));
  const auto session = std::make_shared<Session>(*core, std::move(session_wire), *peer);
  const std::string holder = client_key(*peer);
  const auto place = core->add(session, holder, core->proxies.trusted(*peer));
  if (place == Core::Place::beyond) return;
  try {
    net::dispatch(session->executor(), [session, full = place == Core::Place::full] {
      if (full) return session->refuse();
      session->start();
    });
  } catch (...) {
    core->remove(session, holder);
    throw;
  }
}

// Looks at the deadlines of all connections, again and again.
void Server::State::watch_deadlines() {
  tick.expires_after(k_tick);
  tick.async_wait([this](ErrorCode stopped) {
    if (stopped) return;
    core->check_deadlines();
    watch_deadlines();
  });
}

void Server::State::work() noexcept {
  for (;;) {
    try {
      core->io.run();
      return;
    } catch (const std::exception& error) {
      // Probably out of memory. One connection is stuck until its deadline; the others continue.
      spdlog::error("the server went on after: {}", error.what());
    }
  }
}

void Server::State::close_sessions() {
  for (const auto& session : core->sessions()) session->close();
  core->forget_sessions();
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() { state_->close_sessions(); }

// Checks the options and starts to listen; run() then serves.
Result<std::unique_ptr<Server>> Server::listen(const ServerOptions& options, Handler& handler) {
  WEIR_TRY(const tcp::endpoint endpoint, parse_endpoint(options));
  WEIR_TRY(Proxies proxies, Proxies::parse(options.trusted_proxies));
  Limits limits = options.limits;
  limits.connections = raise_connection_limit(limits.connections);
  auto state = std::make_unique<State>(
      std::make_shared<Core>(limits, handler, std::move(proxies), options.refused,
                             options.clock != nullptr ? *options.clock : k_machine_clock));
  if (options.tls) {
    WEIR_TRY(state->wire, tls_wires(*options.tls));
  }
  WEIR_CHECK(open(state->acceptor, endpoint));
  state->threads = std::max<std::size_t>(options.threads, 1);
  state->port = state->acceptor.local_endpoint().port();
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

std::uint16_t Server::port() const { return state_->port; }

const Traffic& Server::traffic() const { return state_->core->traffic; }

// Serves until `stop` is requested, then drains: no new connections, and a limited time for
// requests in progress. A second request to stop ends that time.
void Server::run(const sys::Stop& stop, const std::function<void()>& on_drain) {
  State& state = *state_;
  Core& core = *state.core;
  auto guard = net::make_work_guard(core.io);
  net::post(state.strand, [&] {
    state.accept();
    state.watch_deadlines();
  });
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < state.threads; ++i) threads.emplace_back([&] { state.work(); });

  constexpr double k_a_year = 3.2e7;
  while (sys::RealPause().wait(k_a_year, stop)) {
  }
  core.draining = true;
  if (on_drain) on_drain();
  net::post(state.strand, [&] {
    ErrorCode ignored;
    state.acceptor.close(ignored);
    state.pause.cancel();
  });
  for (const auto& session : core.sessions()) {
    net::post(session->executor(), [session] { session->drain(); });
  }
  double seconds_left = core.limits.shutdown_seconds;
  while (stop.times() < 2 && seconds_left > 0 &&
         !core.wait_until_none(std::min(seconds_left, k_drain_check_seconds))) {
    seconds_left -= k_drain_check_seconds;
  }
  guard.reset();
  core.io.stop();
  for (std::thread& thread : threads) thread.join();
  state.close_sessions();
}

}  // namespace weir::serve
