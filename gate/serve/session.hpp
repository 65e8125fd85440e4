// One connection: requests one after the other, each read within its limits, handed on and
// answered. What all connections share, and how bytes come and go. For use within serve alone.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "gate/serve/access.hpp"
#include "gate/serve/server.hpp"
#include "gate/serve/server_reader.hpp"

namespace weir::serve {

namespace net = boost::asio;
using ErrorCode = boost::system::error_code;

// A connection's two directions: plain as it stands here, with TLS in a class of its own. All calls
// and completions on the connection's strand; one read and one write at a time.
class Wire {
 public:
  using Done = std::function<void(ErrorCode)>;
  using Moved = std::function<void(ErrorCode, std::size_t)>;

  explicit Wire(net::ip::tcp::socket socket) : socket_(std::move(socket)) {}
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] virtual bool tls() const { return false; }
  // What has to be said before a request.
  virtual void greet(Done done);
  virtual void read_some(char* to, std::size_t size, Moved moved);
  virtual void write_some(const char* from, std::size_t size, Moved moved);
  // Says that nothing more comes from here.
  virtual void part(Done done);

  // What is under way ends with operation_aborted.
  void cancel() { socket_.cancel(ignored_); }
  void close() { socket_.close(ignored_); }
  // Also throws away what the system still had to send.
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

// What all connections of a server share. Thread-safe.
//
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

  Traffic counted;
  std::atomic<bool> draining{false};

  // Declared before the sessions, whose sockets live in it.
  net::io_context io;

  enum class Place { taken, full, beyond };
  // Is there room for one more connection of `holder`? `full`: for its refusal alone; `beyond`: not
  // even for that.
  Place add(const std::shared_ptr<Session>& session, const std::string& holder, bool trusted);
  void remove(const std::shared_ptr<Session>& session, const std::string& holder);
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

// All of it runs on the connection's strand.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // The socket's executor is a strand. `core` outlives it.
  Session(Core& core, std::unique_ptr<Wire> wire, const Address& other_end);

  void start();
  // Answers 503 whatever is asked, and closes. With TLS without a word: a handshake is work, too.
  void refuse();
  // The core drains: closes at once where no head has come whole.
  void drain();
  // From outside of the strand only when nothing runs on it any more.
  void close();

  void respond(Response response);  // what the handler answered
  [[nodiscard]] net::any_io_executor executor() { return wire_->socket().get_executor(); }

 private:
  enum class Phase { greeting, idle, head, body, handling, writing, parting, closed };
  using Clock = std::chrono::steady_clock;

  void next_request();
  void read();
  void on_read(std::size_t size, ErrorCode error);
  void go_on();
  void on_head();
  void on_body();
  void hand_on();
  void refuse_request(const Refusal& why);
  void answer(Response response, bool close);
  void write();
  void on_written(std::size_t size, ErrorCode error);
  void put_out(std::string text, std::shared_ptr<const std::string> body);
  void part();
  void swallow();

  void begin(Phase phase, double seconds);
  void expect_rate(std::uint64_t bytes, double seconds);
  void set_deadline(Clock::time_point deadline);
  void wait_for_deadline();
  void on_deadline();

  Core& core_;
  const std::unique_ptr<Wire> wire_;
  const Address other_end_;
  const std::string holder_;
  std::string peer_;  // of the request under way, when its head has come

  Phase phase_ = Phase::greeting;
  bool late_ = false;  // the deadline has passed; what was cancelled by that is still on its way

  net::steady_timer timer_;
  Clock::time_point began_{}, deadline_{};
  bool timer_waits_ = false;

  std::string buffer_;         // came and not yet taken
  std::size_t read_into_ = 0;  // where in it the read under way writes
  std::unique_ptr<RequestReader> reader_;
  std::uint64_t room_ = 0;  // of the core's, for the body, then for the answer
  std::uint64_t body_came_ = 0;

  // The answer under way: its head and the beginning of its body, then the rest.
  std::string text_;
  std::shared_ptr<const std::string> rest_;
  std::size_t in_front_ = 0;  // of the body in text_
  std::size_t sent_ = 0;      // of both
  bool is_head_request_ = false, http_1_0_ = false, keep_ = false, close_ = false;
  bool interim_ = false;  // a 100 Continue: the body comes behind it
};

}  // namespace weir::serve
