// One connection: requests one after the other, each read within its limits, handed on and
// answered. What all connections share, and how bytes come and go. For use within serve alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "gate/serve/access.hpp"
#include "gate/serve/server.hpp"
#include "gate/serve/server_reader.hpp"

namespace weir::serve {

namespace net = boost::asio;
using ErrorCode = boost::system::error_code;

// Both directions of a connection: plain TCP here, TLS in a derived class. All calls and
// completions run on the connection's strand; one read and one write at a time.
class Wire {
 public:
  using Done = std::function<void(ErrorCode)>;
  using Moved = std::function<void(ErrorCode, std::size_t)>;

  explicit Wire(net::ip::tcp::socket socket) : socket_(std::move(socket)) {}
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] virtual bool tls() const { return false; }
  // Does the handshake that comes before the first request, if there is one.
  virtual void greet(Done done);
  virtual void read_some(char* to, std::size_t size, Moved moved);
  virtual void write_some(const char* from, std::size_t size, Moved moved);
  // Tells the other end that nothing more is sent.
  virtual void shutdown_send(Done done);

  // Ends pending operations with operation_aborted.
  void cancel() { socket_.cancel(ignored_); }
  void close() { socket_.close(ignored_); }
  // Closes and discards what the system still had to send.
  void abort() {
    socket_.set_option(net::socket_base::linger(true, 0), ignored_);
    close();
  }
  [[nodiscard]] net::ip::tcp::socket& socket() { return socket_; }

 protected:
  net::ip::tcp::socket socket_;
  ErrorCode ignored_;
};

// The server's end of TLS 1.2 and 1.3 (OpenSSL), with a certificate and its key: of connections
// that it is given one after the other. It looks after the files (Tls::look_again_seconds): new
// connections get what stands in them. Where that is no good (half of them replaced), what was
// there stays, with a warning in the log. Code::config where they cannot be read or do not belong
// together; Code::unavailable in a program that was built without TLS.
using MakeWire = std::function<std::unique_ptr<Wire>(net::ip::tcp::socket)>;
[[nodiscard]] Result<MakeWire> tls_wires(const Tls& files);

class Session;

// The state that all connections of a server share. Thread-safe.
//
// The server and every pending answer keep it alive: an answer may come from any thread, also after
// the server is gone.
class Core : public std::enable_shared_from_this<Core> {
 public:
  using Refused = std::function<void(int status, const std::string& peer)>;

  Core(const Limits& its_limits, Handler& its_handler, Proxies its_proxies, Refused its_refused,
       const sys::Clock& its_clock)
      : limits(its_limits),
        handler(its_handler),
        proxies(std::move(its_proxies)),
        refused(std::move(its_refused)),
        clock(its_clock) {}

  const Limits limits;
  Handler& handler;
  const Proxies proxies;
  const Refused refused;  // may be empty
  const sys::Clock& clock;

  Traffic traffic;
  std::atomic<bool> draining{false};

  // Declared before the sessions, whose sockets live in it.
  net::io_context io;

  enum class Place { added, full, beyond };
  // Returns whether there is room for one more connection of `holder`, which may be the place of
  // one that waited too long. `full`: only for its refusal; `beyond`: not even for that.
  Place add(const std::shared_ptr<Session>& session, const std::string& holder, bool trusted);
  void remove(const std::shared_ptr<Session>& session, const std::string& holder);
  // Returns false if a connection is still there after `seconds`.
  bool wait_until_none(double seconds);
  [[nodiscard]] std::vector<std::shared_ptr<Session>> sessions() const;
  void forget_sessions();
  // Ends what has passed its deadline.
  void check_deadlines();

  // Counts a request of a proxy's client; false if it has too many under way.
  bool begin_request(const std::string& client);
  void end_request(const std::string& client);

  // Room for bodies, and for large answers until they are sent; false if there is none for
  // `client`.
  bool reserve_bytes(const std::string& client, std::uint64_t bytes);
  void give_room(const std::string& client, std::uint64_t bytes);

 private:
  void forget(const std::shared_ptr<Session>& session, const std::string& holder);
  std::shared_ptr<Session> find_idler(const std::string& holder) const;

  mutable std::mutex mutex_;
  std::condition_variable none_;
  std::unordered_set<std::shared_ptr<Session>> sessions_;  // under mutex_, as all that follow
  std::map<std::string, std::size_t> holders_, requests_;  // connections; requests of clients
  std::map<std::string, std::uint64_t> rooms_;             // by client; none is 0
  std::uint64_t buffered_ = 0;                             // their sum
};

// One connection. All of it runs on the connection's strand.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // The socket's executor is a strand. `core` outlives it.
  Session(Core& core, std::unique_ptr<Wire> wire, const Address& other_end);

  void start();
  // Answers 503 to any request and closes. With TLS it only closes, since a handshake costs work.
  void refuse();
  // Called when the core drains: closes at once if no complete head has come.
  void drain();
  // Call it from outside the strand only if nothing runs there any more.
  void close();

  // Thread-safe. Seconds of the core's clock since when it waits for the head of a request;
  // infinite if it does not, or is claimed.
  [[nodiscard]] double waits_since() const {
    const double since = waits_since_;
    return since == k_claimed ? k_never : since;
  }
  // Returns true if it still waits since `since`: then it takes no request any more. Close it.
  bool claim(double since) { return waits_since_.compare_exchange_strong(since, k_claimed); }
  [[nodiscard]] bool is_late(double now) const { return now >= deadline_; }
  [[nodiscard]] const std::string& holder() const { return connection_client_; }

  void check_deadline();
  void respond(Response response);  // called with the handler's answer
  [[nodiscard]] net::any_io_executor executor() { return wire_->socket().get_executor(); }

 private:
  enum class Phase { greeting, idle, head, body, handling, writing, lingering, closed };
  static constexpr double k_never = std::numeric_limits<double>::infinity(), k_claimed = -k_never;

  void next_request();
  void read();
  void on_read(std::size_t size, ErrorCode error);
  void continue_request();
  void on_head();
  void on_body();
  void call_handler();
  void refuse_request(const Refusal& why);
  void answer(Response response, bool close);
  void write();
  void on_written(std::size_t size, ErrorCode error);
  void set_output(std::string text, std::shared_ptr<const std::string> body);
  void linger();
  void discard_input();

  // Returns false if somebody else was given its place.
  [[nodiscard]] bool try_stop_waiting();
  void begin(Phase phase, double seconds);
  void require_min_rate(std::uint64_t bytes, double seconds);
  void on_deadline();
  // Reserves so many bytes in place of those so far; false, and as before, if there is no room.
  bool reserve_memory(std::uint64_t bytes);
  void release_memory() { (void)reserve_memory(0); }
  void end_request();

  Core& core_;
  const std::unique_ptr<Wire> wire_;
  const Address other_end_;
  const std::string connection_client_;
  std::string peer_;                 // client of the current request, once its head has come
  std::string client_;               // whose room it holds: the client's key
  bool is_request_counted_ = false;  // its request counts as one of a proxy's client

  Phase phase_ = Phase::greeting;
  bool is_late_ = false;  // the deadline has passed; the cancelled read has not completed yet

  // Seconds of the core's clock.
  double began_ = 0;  // when the phase began
  std::atomic<double> deadline_{k_never}, waits_since_{k_never};

  std::string buffer_;           // received and not yet consumed
  std::size_t read_offset_ = 0;  // offset in buffer_ of the current read
  std::unique_ptr<RequestReader> reader_;
  std::uint64_t reserved_bytes_ = 0;  // reserved from the core: for the body, then for the answer
  std::uint64_t body_received_ = 0;

  // The current answer: its head and the beginning of its body, then the rest of the body.
  std::string text_;
  std::shared_ptr<const std::string> body_;
  std::size_t body_bytes_in_text_ = 0;  // bytes of the body that are in text_
  std::size_t sent_ = 0;                // bytes of text_ and body_ together
  bool is_head_request_ = false, http_1_0_ = false, keeps_alive_ = false, closes_after_ = false;
  bool is_sending_continue_ = false;  // the text is a 100 Continue; the request's body follows
};

}  // namespace weir::serve
