#include "gate/serve/session.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>
#include <spdlog/spdlog.h>

#include "gate/sys/clock.hpp"

namespace weir::serve {
namespace {

constexpr std::size_t k_head_read = 8 << 10, k_body_read = 64 << 10;

// Answers once, whatever the handler does: a second answer is dropped, and one that is forgotten is
// a fault that the other end hears of.
class Promise {
 public:
  Promise(std::shared_ptr<Core> core, std::weak_ptr<Session> session)
      : core_(std::move(core)), session_(std::move(session)) {}
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
  ~Promise() { give(error_response(500, "internal", "no answer was made")); }

  void give(Response response) {
    if (given_.exchange(true)) return;
    const std::shared_ptr<Session> session = session_.lock();
    if (!session) return;
    net::post(session->executor(), [session, response = std::move(response)]() mutable {
      session->respond(std::move(response));
    });
  }

 private:
  // In this order: the session's socket needs the core's io_context.
  std::shared_ptr<Core> core_;
  std::weak_ptr<Session> session_;
  std::atomic<bool> given_{false};
};

Response fault(const char* what) {
  spdlog::error("a request ended in an exception: {}", what);
  return error_response(500, "internal", "the service failed");
}

// Before a rate is asked for: connections begin slowly.
constexpr double k_rate_grace = 5;
// How long the other end may take to hear of an answer that comes before it has said all. Closed at
// once, its system would throw the answer away.
constexpr double k_parting = 2;
// Of a body that go with the head in one write.
constexpr std::size_t k_in_front = 16 << 10;
constexpr std::size_t k_swallow = 4 << 10;
// Of an answer that nobody has to have room for: most are smaller.
constexpr std::uint64_t k_free_of_room = std::uint64_t{64} << 10;

std::chrono::steady_clock::duration span(double seconds) {
  constexpr double k_longest = 1e8;  // three years; a clock holds it
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, k_longest)));
}

}  // namespace

void Session::next_request() {
  reader_ = RequestReader::make(static_cast<std::size_t>(core_.limits.header_bytes));
  peer_.clear();
  is_head_request_ = false;
  keep_ = false;
  body_came_ = 0;
  if (buffer_.empty()) {
    buffer_.shrink_to_fit();
    if (core_.draining) return part();
    begin(Phase::idle, core_.limits.idle_seconds);
  } else {
    begin(Phase::head, core_.limits.header_seconds);
  }
  go_on();
}

void Session::read() {
  read_into_ = buffer_.size();
  buffer_.resize(read_into_ + (phase_ == Phase::body ? k_body_read : k_head_read));
  wire_->read_some(buffer_.data() + read_into_, buffer_.size() - read_into_,
                   [self = shared_from_this()](ErrorCode error, std::size_t size) {
                     self->on_read(size, error);
                   });
}

void Session::on_read(std::size_t size, ErrorCode error) {
  buffer_.resize(read_into_ + size);
  if (phase_ == Phase::closed) return;
  if (late_) return refuse_request({408, "timed_out", "the request took too long to come"});
  if (error) return close();
  core_.counted.bytes_in += size;
  if (phase_ == Phase::idle) begin(Phase::head, core_.limits.header_seconds);
  if (phase_ == Phase::body) {
    body_came_ += size;
    expect_rate(body_came_, core_.limits.body_seconds);
  }
  go_on();
}

// Feeds the reader until it needs more than there is.
void Session::go_on() {
  for (;;) {
    const std::size_t taken = reader_->feed(buffer_);
    buffer_.erase(0, taken);
    switch (reader_->state()) {
      case RequestReader::State::head:
        if (taken > 0) continue;  // an empty line in front
        if (core_.draining) return part();
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

void Session::on_head() {
  ++core_.counted.requests;
  Head head = reader_->head();
  core_.proxies.set_peer(other_end_, wire_->tls(), head);
  peer_ = head.peer;
  is_head_request_ = head.method == Method::head;
  http_1_0_ = reader_->http_1_0();
  keep_ = reader_->keep_alive();
  Admission admission;
  try {
    admission = core_.handler.admit(head);
  } catch (const std::exception& error) {
    admission.refused = fault(error.what());
  }
  if (admission.refused) return answer(std::move(*admission.refused), reader_->body_announced());
  reader_->admit(admission.most_body);
  if (reader_->state() == RequestReader::State::body) {
    begin(Phase::body, core_.limits.body_seconds);
    body_came_ = buffer_.size();
    expect_rate(body_came_, core_.limits.body_seconds);
    if (reader_->expects_continue() && buffer_.empty()) {
      interim_ = true;
      put_out("HTTP/1.1 100 Continue\r\n\r\n", nullptr);
      return write();
    }
  }
  go_on();
}

void Session::on_body() {
  const std::uint64_t bytes = reader_->body_bytes();
  if (bytes > room_) {
    if (!core_.take_room(bytes - room_)) {
      return refuse_request({503, "busy", "too many uploads at once: try again soon"});
    }
    room_ = bytes;
  }
  if (reader_->state() == RequestReader::State::done) return hand_on();
  read();
}

void Session::hand_on() {
  phase_ = Phase::handling;
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
  if (phase_ == Phase::handling) answer(std::move(response), false);
}

void Session::refuse_request(const Refusal& why) {
  late_ = false;
  if (why.status == 413 || why.status == 414 || why.status == 431) {
    ++core_.counted.too_large;
  } else if (why.status == 400 || why.status == 505) {
    ++core_.counted.malformed;
  }
  if (core_.refused) core_.refused(why.status, peer_.empty() ? to_text(other_end_) : peer_);
  answer(error_response(why.status, why.code, why.message), true);
}

// How answers go out, what time everything has, and how it ends.

Session::Session(Core& core, std::unique_ptr<Wire> wire, const Address& other_end)
    : core_(core),
      wire_(std::move(wire)),
      other_end_(other_end),
      holder_(holder_of(other_end)),
      timer_(wire_->socket().get_executor()) {}

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
  answer(error_response(503, "busy", "too many connections: try again soon"), true);
}

void Session::drain() {
  const bool asked = phase_ == Phase::body || phase_ == Phase::handling ||
                     phase_ == Phase::writing || phase_ == Phase::parting;
  if (!asked) close();
}

void Session::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  core_.give_room(std::exchange(room_, 0));
  timer_.cancel();
  wire_->close();
  core_.remove(shared_from_this(), holder_);
}

void Session::answer(Response response, bool close) {
  if (phase_ == Phase::closed) return;
  core_.give_room(std::exchange(room_, 0));
  if (response.status < 200 || response.status > 599) {
    response = error_response(500, "internal", "the service made no answer of its own");
  }
  // Whoever takes a large answer slowly holds it for long: it has its share of the room for bodies.
  const std::uint64_t bytes = response.body && !is_head_request_ ? response.body->size() : 0;
  const std::uint64_t large = bytes > k_free_of_room ? bytes - k_free_of_room : 0;
  if (large == 0 || core_.take_room(large)) {
    room_ = large;
  } else {
    response = error_response(503, "busy", "too many large answers at once: try again soon");
  }
  close_ = close || core_.draining || !keep_;
  const bool with_body = response.body && has_body(response.status) && !is_head_request_;
  std::string head = head_text(response, {close_, http_1_0_, sys::RealClock().now()});
  put_out(std::move(head), with_body ? std::move(response.body) : nullptr);
  interim_ = false;
  begin(Phase::writing, core_.limits.answer_seconds);
  expect_rate(0, core_.limits.answer_seconds);
  write();
}

void Session::put_out(std::string text, std::shared_ptr<const std::string> body) {
  text_ = std::move(text);
  rest_ = std::move(body);
  in_front_ = rest_ ? std::min(rest_->size(), k_in_front) : 0;
  if (rest_) text_.append(*rest_, 0, in_front_);
  sent_ = 0;
}

void Session::write() {
  const bool front = sent_ < text_.size();
  const std::string& from = front ? text_ : *rest_;
  const std::size_t at = front ? sent_ : sent_ - text_.size() + in_front_;
  wire_->write_some(from.data() + at, from.size() - at,
                    [self = shared_from_this()](ErrorCode error, std::size_t size) {
                      self->on_written(size, error);
                    });
}

void Session::on_written(std::size_t size, ErrorCode error) {
  if (phase_ == Phase::closed) return;
  if (error || late_) return close();
  core_.counted.bytes_out += size;
  sent_ += size;
  if (sent_ < text_.size() + (rest_ ? rest_->size() - in_front_ : 0)) {
    if (!interim_) expect_rate(sent_, core_.limits.answer_seconds);
    return write();
  }
  text_.clear();
  rest_ = nullptr;
  if (std::exchange(interim_, false)) return go_on();
  core_.give_room(std::exchange(room_, 0));
  if (close_) return part();
  next_request();
}

// Says that nothing more comes, and waits a little until the other end has heard it.
void Session::part() {
  begin(Phase::parting, k_parting);
  wire_->part([self = shared_from_this()](ErrorCode) {
    if (self->phase_ != Phase::closed) self->swallow();
  });
}

void Session::swallow() {
  buffer_.resize(k_swallow);
  wire_->socket().async_read_some(net::buffer(buffer_),
                                  [self = shared_from_this()](ErrorCode error, std::size_t) {
                                    if (self->phase_ == Phase::closed) return;
                                    if (error) return self->close();
                                    self->swallow();
                                  });
}

void Session::begin(Phase phase, double seconds) {
  phase_ = phase;
  began_ = Clock::now();
  set_deadline(began_ + span(seconds));
}

// `bytes` have moved since the phase began: when is the next one too late?
void Session::expect_rate(std::uint64_t bytes, double seconds) {
  double until = seconds;
  if (core_.limits.least_rate > 0) {
    until = std::min(until, k_rate_grace + static_cast<double>(bytes) / core_.limits.least_rate);
  }
  set_deadline(began_ + span(until));
}

void Session::set_deadline(Clock::time_point deadline) {
  deadline_ = deadline;
  // A timer that fires too early looks at the deadline again; one that would fire too late is set
  // anew. So the usual move of a deadline costs nothing.
  if (timer_waits_ && timer_.expiry() <= deadline) return;
  wait_for_deadline();
}

void Session::wait_for_deadline() {
  timer_.expires_at(deadline_);
  timer_waits_ = true;
  timer_.async_wait([self = shared_from_this()](ErrorCode error) {
    if (error || self->phase_ == Phase::closed) return;  // set anew, or over
    self->timer_waits_ = false;
    if (self->phase_ == Phase::handling) return;
    if (Clock::now() < self->deadline_) return self->wait_for_deadline();
    self->on_deadline();
  });
}

void Session::on_deadline() {
  switch (phase_) {
    case Phase::head:
    case Phase::body:
      ++core_.counted.timed_out;
      if (interim_) return close();
      late_ = true;
      return wire_->cancel();  // on_read() answers
    case Phase::greeting:
    case Phase::writing:
      ++core_.counted.timed_out;
      wire_->abort();  // the system would keep megabytes for who does not take them
      return close();
    default:
      return close();
  }
}

}  // namespace weir::serve
