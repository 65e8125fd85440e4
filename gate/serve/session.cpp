// One connection: reads requests, hands them to the handler, writes answers, and keeps deadlines.
#include "gate/serve/session.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>
#include <spdlog/spdlog.h>

#include "gate/sys/clock.hpp"

namespace weir::serve {
namespace {

constexpr std::size_t k_idle_read = 1 << 10, k_head_read = 4 << 10, k_body_read = 16 << 10;

// Answers a request exactly once: a second answer is dropped, and if the handler gives none, the
// destructor answers 500.
class Promise {
 public:
  Promise(std::shared_ptr<Core> core, std::weak_ptr<Session> session)
      : core_(std::move(core)), session_(std::move(session)) {}
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
  ~Promise() { give(error_response(500, "internal", "no answer was made")); }

  void give(Response response) {
    if (is_answered_.exchange(true)) return;
    const std::shared_ptr<Session> session = session_.lock();
    if (!session) return;
    net::post(session->executor(), [session, response = std::move(response)]() mutable {
      session->respond(std::move(response));
    });
  }

 private:
  // Keep this order: the session's socket needs the core's io_context.
  std::shared_ptr<Core> core_;
  std::weak_ptr<Session> session_;
  std::atomic<bool> is_answered_{false};
};

// Logs an exception of the handler and returns the answer for it.
Response fault(const char* what) {
  spdlog::error("a request ended in an exception: {}", what);
  return error_response(500, "internal", "the service failed");
}

// Seconds before a minimum rate is enforced: connections begin slowly.
constexpr double k_rate_grace = 5;
// Seconds that a closed connection lingers, so that the client can read an answer that came before
// it had sent everything. If closed at once, the operating system would discard the answer.
constexpr double k_linger_seconds = 2;
// Bytes of a body that are written together with the head.
constexpr std::size_t k_body_bytes_in_text = 16 << 10;
constexpr std::size_t k_discard_bytes = 4 << 10;
// Bytes of an answer that need no reserved room: most answers are smaller.
constexpr std::uint64_t k_free_answer_bytes = std::uint64_t{16} << 10;

}  // namespace

// Waits for the next request, or begins to read it if its first bytes are in the buffer. Closes the
// connection instead if the server drains.
void Session::next_request() {
  end_request();
  reader_ = RequestReader::make(static_cast<std::size_t>(core_.limits.header_bytes));
  is_head_request_ = false;
  keeps_alive_ = false;
  body_received_ = 0;
  if (buffer_.empty()) {
    buffer_.shrink_to_fit();
    if (core_.draining) return linger();
    begin(Phase::idle, core_.limits.idle_seconds);
  } else {
    begin(Phase::head, core_.limits.header_seconds);
  }
  continue_request();
}

void Session::read() {
  read_offset_ = buffer_.size();
  std::size_t size = phase_ == Phase::body ? k_body_read : k_head_read;
  if (phase_ == Phase::idle) size = k_idle_read;
  buffer_.resize(read_offset_ + size);
  wire_->read_some(buffer_.data() + read_offset_, buffer_.size() - read_offset_,
                   [self = shared_from_this()](ErrorCode error, std::size_t size) {
                     self->on_read(size, error);
                   });
}

// Continues after `size` bytes were read: feeds them to the request's reader. Refuses a request
// that came too slowly.
void Session::on_read(std::size_t size, ErrorCode error) {
  buffer_.resize(read_offset_ + size);
  if (phase_ == Phase::closed) return;
  if (is_late_) return refuse_request({408, "timed_out", "the request took too long to come"});
  if (error) return close();
  core_.traffic.bytes_in += size;
  if (phase_ == Phase::idle) begin(Phase::head, core_.limits.header_seconds);
  if (phase_ == Phase::body) {
    body_received_ += size;
    require_min_rate(body_received_, core_.limits.body_seconds);
  }
  continue_request();
}

// Feeds the reader with the buffer until it needs more bytes, then acts on the reader's state:
// reads on, handles the head or body, or refuses.
void Session::continue_request() {
  for (;;) {
    const std::size_t consumed = reader_->feed(buffer_);
    buffer_.erase(0, consumed);
    switch (reader_->state()) {
      case RequestReader::State::head:
        if (consumed > 0) continue;  // skipped an empty line
        if (core_.draining) return linger();
        return read();
      case RequestReader::State::waiting:
        return on_head();
      case RequestReader::State::body:
      case RequestReader::State::done:
        return on_body();
      case RequestReader::State::refused:
        return refuse_request(reader_->refusal());
    }
  }
}

// Handles a complete head: asks the handler whether it admits the request, then reads the body.
// Sends "100 Continue" first if the client waits for it.
void Session::on_head() {
  if (!try_stop_waiting()) return close();
  ++core_.traffic.requests;
  Head head = reader_->head();
  core_.proxies.set_peer(other_end_, wire_->tls(), head);
  peer_ = head.peer;
  client_ = peer_client_key(peer_);
  is_head_request_ = head.method == Method::head;
  http_1_0_ = reader_->http_1_0();
  keeps_alive_ = reader_->keep_alive();
  // A proxy's connections are its own, so its clients are counted by their requests.
  if (client_ != connection_client_) {
    is_request_counted_ = core_.begin_request(client_);
    if (!is_request_counted_) {
      ++core_.traffic.refused;
      return refuse_request({503, "busy", "too many requests at once: try again soon"});
    }
  }
  Admission admission;
  try {
    admission = core_.handler.admit(head);
  } catch (const std::exception& error) {
    admission.refused = fault(error.what());
  }
  if (admission.refused)
    return answer(std::move(*admission.refused), /*close=*/reader_->body_announced());
  reader_->set_body_limit(admission.max_body_bytes);
  if (reader_->state() == RequestReader::State::body) {
    begin(Phase::body, core_.limits.body_seconds);
    body_received_ = buffer_.size();
    require_min_rate(body_received_, core_.limits.body_seconds);
    if (reader_->expects_continue() && buffer_.empty()) {
      is_sending_continue_ = true;
      set_output("HTTP/1.1 100 Continue\r\n\r\n", nullptr);
      return write();
    }
  }
  continue_request();
}

// Reserves room for the body read so far; passes the request on once it is complete.
void Session::on_body() {
  const std::uint64_t bytes = reader_->body_bytes();
  if (bytes > reserved_bytes_ && !reserve_memory(bytes)) {
    return refuse_request({503, "busy", "too many uploads at once: try again soon"});
  }
  if (reader_->state() == RequestReader::State::done) return call_handler();
  read();
}

// Passes the complete request to the handler, which may answer from any thread, now or later.
void Session::call_handler() {
  begin(Phase::handling, k_never);
  Request request;
  request.head = reader_->take_head();
  core_.proxies.set_peer(other_end_, wire_->tls(), request.head);
  request.body = reader_->take_body();
  const auto promise = std::make_shared<Promise>(core_.shared_from_this(), weak_from_this());
  try {
    core_.handler.handle(std::move(request),
                         [promise](Response response) { promise->give(std::move(response)); });
  } catch (const std::exception& error) {
    promise->give(fault(error.what()));
  }
}

void Session::respond(Response response) {
  if (phase_ == Phase::handling) answer(std::move(response), /*close=*/false);
}

// Answers a request that is malformed, too large or too slow, and closes the connection.
void Session::refuse_request(const Refusal& why) {
  is_late_ = false;
  if (why.status == 413 || why.status == 414 || why.status == 431) {
    ++core_.traffic.too_large;
  } else if (why.status == 400 || why.status == 505) {
    ++core_.traffic.malformed;
  }
  if (core_.refused) core_.refused(why.status, peer_.empty() ? to_text(other_end_) : peer_);
  answer(error_response(why.status, why.code, why.message), /*close=*/true);
}

// Writing answers, deadlines, and closing.

Session::Session(Core& core, std::unique_ptr<Wire> wire, const Address& other_end)
    : core_(core),
      wire_(std::move(wire)),
      other_end_(other_end),
      connection_client_(client_key(other_end)),
      client_(connection_client_) {}

void Session::start() {
  if (core_.draining) return close();
  begin(Phase::greeting, core_.limits.header_seconds);
  wire_->greet([self = shared_from_this()](ErrorCode error) {
    if (self->phase_ == Phase::closed) return;
    if (error || self->core_.draining) return self->close();
    self->next_request();
  });
}

void Session::refuse() {
  if (wire_->tls()) return close();
  answer(error_response(503, "busy", "too many connections: try again soon"), /*close=*/true);
}

void Session::drain() {
  const bool is_busy = phase_ == Phase::body || phase_ == Phase::handling ||
                       phase_ == Phase::writing || phase_ == Phase::lingering;
  if (!is_busy) close();
}

void Session::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  (void)reserve_memory(0);
  end_request();
  wire_->close();
  core_.remove(shared_from_this(), connection_client_);
}

// Begins to write an answer. A large one first reserves its bytes of the memory for bodies, since a
// slow client holds it for long; without room it becomes 503.
void Session::answer(Response response, bool close) {
  if (phase_ == Phase::closed) return;
  if (!try_stop_waiting()) return this->close();
  (void)reserve_memory(0);
  if (response.status < 200 || response.status > 599) {
    response = error_response(500, "internal", "the service made no answer of its own");
  }
  // A large answer uses the room for bodies until it is sent.
  const std::uint64_t bytes = response.body && !is_head_request_ ? response.body->size() : 0;
  const std::uint64_t large = bytes > k_free_answer_bytes ? bytes - k_free_answer_bytes : 0;
  if (!reserve_memory(large)) {
    response = error_response(503, "busy", "too many large answers at once: try again soon");
  }
  closes_after_ = close || core_.draining || !keeps_alive_;
  const bool with_body = response.body && has_body(response.status) && !is_head_request_;
  std::string head = head_text(response, {closes_after_, http_1_0_, sys::RealClock().now()});
  set_output(std::move(head), with_body ? std::move(response.body) : nullptr);
  is_sending_continue_ = false;
  begin(Phase::writing, core_.limits.answer_seconds);
  require_min_rate(0, core_.limits.answer_seconds);
  write();
}

void Session::set_output(std::string text, std::shared_ptr<const std::string> body) {
  text_ = std::move(text);
  body_ = std::move(body);
  body_bytes_in_text_ = body_ ? std::min(body_->size(), k_body_bytes_in_text) : 0;
  if (body_) text_.append(*body_, 0, body_bytes_in_text_);
  sent_ = 0;
}

// Writes the next bytes: first the text (head and beginning of the body), then the rest of the
// body.
void Session::write() {
  const bool is_text = sent_ < text_.size();
  const std::string& source = is_text ? text_ : *body_;
  const std::size_t offset = is_text ? sent_ : sent_ - text_.size() + body_bytes_in_text_;
  wire_->write_some(source.data() + offset, source.size() - offset,
                    [self = shared_from_this()](ErrorCode error, std::size_t size) {
                      self->on_written(size, error);
                    });
}

// Continues after `size` bytes were written: writes the rest of the response, or, when all is sent,
// reads the next request or closes. After "100 Continue" it reads the body.
void Session::on_written(std::size_t size, ErrorCode error) {
  if (phase_ == Phase::closed) return;
  if (error || is_late_) return close();
  core_.traffic.bytes_out += size;
  sent_ += size;
  const std::size_t rest_of_body = body_ ? body_->size() - body_bytes_in_text_ : 0;
  const bool is_all_sent = sent_ >= text_.size() + rest_of_body;
  if (!is_all_sent) {
    if (!is_sending_continue_) require_min_rate(sent_, core_.limits.answer_seconds);
    return write();
  }
  text_.clear();
  body_ = nullptr;
  if (is_sending_continue_) {
    is_sending_continue_ = false;
    return continue_request();
  }
  release_memory();
  if (closes_after_) return linger();
  next_request();
}

// Shuts down our sending side, then waits a little until the client has read everything.
void Session::linger() {
  begin(Phase::lingering, k_linger_seconds);
  wire_->shutdown_send([self = shared_from_this()](ErrorCode) {
    if (self->phase_ != Phase::closed) self->discard_input();
  });
}

// Reads and ignores what the client still sends, until it closes.
void Session::discard_input() {
  buffer_.resize(k_discard_bytes);
  wire_->socket().async_read_some(net::buffer(buffer_),
                                  [self = shared_from_this()](ErrorCode error, std::size_t) {
                                    if (self->phase_ == Phase::closed) return;
                                    if (error) return self->close();
                                    self->discard_input();
                                  });
}

bool Session::try_stop_waiting() { return waits_since_.exchange(k_never) != k_claimed; }

// Begins a phase that may last so many seconds.
void Session::begin(Phase phase, double seconds) {
  const bool waits = phase == Phase::greeting || phase == Phase::idle || phase == Phase::head;
  const bool waited = phase_ == Phase::idle || phase_ == Phase::head;
  phase_ = phase;
  began_ = core_.clock.steady();
  deadline_ = began_ + seconds;
  // From its first byte to the end of its head, a request keeps the place in which it waits.
  if (waits && !waited && waits_since_ != k_claimed) waits_since_ = began_;
}

// Sets the deadline for the next bytes, given that `bytes` have moved since the phase began.
void Session::require_min_rate(std::uint64_t bytes, double seconds) {
  double until = seconds;
  if (core_.limits.min_rate > 0) {
    until = std::min(until, k_rate_grace + static_cast<double>(bytes) / core_.limits.min_rate);
  }
  deadline_ = began_ + until;
}

void Session::check_deadline() {
  if (phase_ == Phase::closed || !is_late(core_.clock.steady())) return;
  deadline_ = k_never;
  on_deadline();
}

bool Session::reserve_memory(std::uint64_t bytes) {
  if (bytes > reserved_bytes_ && !core_.reserve_bytes(client_, bytes - reserved_bytes_))
    return false;
  if (bytes < reserved_bytes_) core_.give_room(client_, reserved_bytes_ - bytes);
  reserved_bytes_ = bytes;
  return true;
}

void Session::end_request() {
  if (is_request_counted_) core_.end_request(client_);
  is_request_counted_ = false;
  peer_.clear();
  client_ = connection_client_;
}

// Ends what took too long. A late request still gets the answer 408; a client that reads its answer
// too slowly is cut off.
void Session::on_deadline() {
  switch (phase_) {
    case Phase::head:
    case Phase::body:
      ++core_.traffic.timed_out;
      if (is_sending_continue_) return close();
      is_late_ = true;
      return wire_->cancel();  // on_read() answers
    case Phase::greeting:
    case Phase::writing:
      ++core_.traffic.timed_out;
      wire_->abort();  // else the system would keep megabytes for a client that does not read
      return close();
    default:
      return close();
  }
}

}  // namespace weir::serve
