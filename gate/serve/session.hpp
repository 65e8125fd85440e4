// One connection: requests one after the other, each read within its limits, handed on and
// answered. For use within serve alone. All of it runs on the connection's strand.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/steady_timer.hpp>

#include "gate/serve/server_core.hpp"
#include "gate/serve/server_reader.hpp"
#include "gate/serve/server_wire.hpp"

namespace weir::serve {

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
  void say_continue();
  void hand_on();
  void refuse_request(const Refusal& why);
  void answer(Response response, bool close);
  [[nodiscard]] bool take_room_for(const Response& response);
  void write();
  void on_written(std::size_t size, ErrorCode error);
  void after_answer();
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
  std::size_t text_sent_ = 0, rest_sent_ = 0;
  std::uint64_t sent_ = 0;
  bool is_head_request_ = false, http_1_0_ = false, keep_ = false, close_ = false;
  bool interim_ = false;  // a 100 Continue: the body comes behind it
};

}  // namespace weir::serve
