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

// Where the system has no descriptor left: connections wait in its queue, and this is how often it
// is asked again.
constexpr auto k_accept_pause = std::chrono::milliseconds(100);
constexpr double k_look = 0.05;  // at a second request to stop, in seconds

// Besides connections: those that are refused (k_most_refusals), files and connections of stores.
constexpr std::size_t k_other_descriptors = 192;

// Connections beyond the limit that are told so; still more are closed without a word.
constexpr std::size_t k_most_refusals = 64;

// How many connections the system has descriptors for; `wanted` where it has enough. Usual is a
// limit of 1024 that a process may raise.
std::size_t connections_possible(std::size_t wanted) {
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

Result<tcp::endpoint> endpoint_of(const ServerOptions& options) {
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

// Asio's addresses as ours.
std::optional<Address> address_of(const tcp::socket& socket) {
  ErrorCode error;
  const tcp::endpoint other = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  return parse_address(other.address().to_string());
}

Result<void> open(tcp::acceptor& acceptor, const tcp::endpoint& at) {
  ErrorCode error;
  acceptor.open(at.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  // "::" takes IPv4 as well, whatever the system's own setting is.
  if (!error && at.address().is_v6()) acceptor.set_option(net::ip::v6_only(false), error);
  if (!error) acceptor.bind(at, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) return {};
  const std::string where = fmt::format("{} port {}", at.address().to_string(), at.port());
  if (error == net::error::address_in_use) {
    return fail(Code::unavailable, "{} is taken: another program listens there", where);
  }
  if (error == boost::system::errc::address_not_available) {
    return fail(Code::config, "{}: this machine has no such address", where);
  }
  return fail(Code::unavailable, "{}: {}", where, error.message());
}

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
  ++counted.open;
  ++holders_[holder];
  return full ? Place::full : Place::taken;
}

void Core::remove(const std::shared_ptr<Session>& session, const std::string& holder) {
  const std::lock_guard lock(mutex_);
  if (sessions_.erase(session) == 0) return;
  --counted.open;
  const auto found = holders_.find(holder);
  if (found != holders_.end() && --found->second == 0) holders_.erase(found);
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
  std::unordered_set<std::shared_ptr<Session>> ended;
  const std::lock_guard lock(mutex_);
  ended.swap(sessions_);
  counted.open = 0;
  holders_.clear();
}

bool Core::take_room(std::uint64_t bytes) {
  if (buffered_.fetch_add(bytes) + bytes <= limits.buffered_bytes) return true;
  buffered_.fetch_sub(bytes);
  return false;
}

void Core::give_room(std::uint64_t bytes) { buffered_.fetch_sub(bytes); }

struct Server::State {
  explicit State(std::shared_ptr<Core> its_core)
      : core(std::move(its_core)),
        strand(net::make_strand(core->io)),
        acceptor(strand),
        pause(strand) {}

  void accept();
  void take(tcp::socket socket);
  void work() noexcept;
  void end_sessions();

  std::shared_ptr<Core> core;
  net::strand<net::io_context::executor_type> strand;  // of what accepts
  tcp::acceptor acceptor;
  net::steady_timer pause;
  MakeWire wire = [](tcp::socket socket) { return std::make_unique<Wire>(std::move(socket)); };
  std::size_t threads = 1;
  std::uint16_t port = 0;
};

void Server::State::accept() {
  acceptor.async_accept(net::make_strand(core->io), [this](ErrorCode error, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    if (!error) {
      try {
        take(std::move(socket));
      } catch (const std::exception& thrown) {
        // Memory, in all likelihood. This one is closed; those after it are accepted still.
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

void Server::State::take(tcp::socket socket) {
  const auto other_end = address_of(socket);
  if (!other_end) return;  // gone already
  ErrorCode ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  auto its_wire = wire(std::move(socket));
  const auto session = std::make_shared<Session>(*core, std::move(its_wire), *other_end);
  const std::string holder = holder_of(*other_end);
  const auto place = core->add(session, holder, core->proxies.trusted(*other_end));
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

void Server::State::work() noexcept {
  for (;;) {
    try {
      core->io.run();
      return;
    } catch (const std::exception& error) {
      // Memory, in all likelihood. One connection is stuck until its deadline; the others go on.
      spdlog::error("the server went on after: {}", error.what());
    }
  }
}

void Server::State::end_sessions() {
  for (const auto& session : core->sessions()) session->close();
  core->forget_sessions();
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() { state_->end_sessions(); }

Result<std::unique_ptr<Server>> Server::listen(const ServerOptions& options, Handler& handler) {
  WEIR_TRY(const tcp::endpoint at, endpoint_of(options));
  WEIR_TRY(Proxies proxies, Proxies::parse(options.trusted_proxies));
  Limits limits = options.limits;
  limits.connections = connections_possible(limits.connections);
  auto state = std::make_unique<State>(
      std::make_shared<Core>(limits, handler, std::move(proxies), options.refused));
  if (options.tls) {
    WEIR_TRY(state->wire, tls_wires(*options.tls));
  }
  WEIR_CHECK(open(state->acceptor, at));
  state->threads = std::max<std::size_t>(options.threads, 1);
  state->port = state->acceptor.local_endpoint().port();
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

std::uint16_t Server::port() const { return state_->port; }

const Traffic& Server::traffic() const { return state_->core->counted; }

void Server::run(const sys::Stop& stop, const std::function<void()>& on_drain) {
  State& state = *state_;
  Core& core = *state.core;
  auto guard = net::make_work_guard(core.io);
  net::post(state.strand, [&] { state.accept(); });
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
  double left = core.limits.shutdown_seconds;
  while (stop.times() < 2 && left > 0 && !core.wait_until_none(std::min(left, k_look))) {
    left -= k_look;
  }
  guard.reset();
  core.io.stop();
  for (std::thread& thread : threads) thread.join();
  state.end_sessions();
}

}  // namespace weir::serve
