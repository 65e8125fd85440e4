#include "gate/serve/server_wire.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

namespace weir::serve {
namespace {

class PlainWire final : public Wire {
 public:
  using Wire::Wire;
  [[nodiscard]] bool tls() const override { return false; }
  void greet(Done done) override {
    net::post(socket_.get_executor(), [done = std::move(done)] { done({}); });
  }
  void read_some(char* to, std::size_t size, Moved moved) override {
    socket_.async_read_some(net::buffer(to, size), std::move(moved));
  }
  void write_some(const char* from, std::size_t size, Moved moved) override {
    socket_.async_write_some(net::buffer(from, size), std::move(moved));
  }
  void part(Done done) override {
    ErrorCode error;
    socket_.shutdown(net::ip::tcp::socket::shutdown_send, error);
    net::post(socket_.get_executor(), [done = std::move(done), error] { done(error); });
  }
};

}  // namespace

std::unique_ptr<Wire> plain_wire(net::ip::tcp::socket socket) {
  return std::make_unique<PlainWire>(std::move(socket));
}

}  // namespace weir::serve
