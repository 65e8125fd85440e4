// A connection's two directions, plain or with TLS, behind one face: sessions are compiled once.
// For use within serve alone. All calls and completions on the connection's strand; one read and
// one write at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <boost/asio/ip/tcp.hpp>

namespace weir::serve {

namespace net = boost::asio;
using ErrorCode = boost::system::error_code;

class Wire {
 public:
  using Done = std::function<void(ErrorCode)>;
  using Moved = std::function<void(ErrorCode, std::size_t)>;

  explicit Wire(net::ip::tcp::socket socket) : socket_(std::move(socket)) {}
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] virtual bool tls() const = 0;
  // What has to be said before a request.
  virtual void greet(Done done) = 0;
  virtual void read_some(char* to, std::size_t size, Moved moved) = 0;
  virtual void write_some(const char* from, std::size_t size, Moved moved) = 0;
  // Says that nothing more comes from here.
  virtual void part(Done done) = 0;

  // What is under way ends with operation_aborted.
  void cancel() {
    ErrorCode ignored;
    socket_.cancel(ignored);
  }
  void close() {
    ErrorCode ignored;
    socket_.close(ignored);
  }
  // Also throws away what the system still had to send.
  void abort() {
    ErrorCode ignored;
    socket_.set_option(net::socket_base::linger(true, 0), ignored);
    socket_.close(ignored);
  }
  [[nodiscard]] net::ip::tcp::socket& socket() { return socket_; }

 protected:
  net::ip::tcp::socket socket_;
};

[[nodiscard]] std::unique_ptr<Wire> plain_wire(net::ip::tcp::socket socket);

}  // namespace weir::serve
