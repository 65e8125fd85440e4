#include "gate/serve/session.hpp"

#include <algorithm>
#include <atomic>

#include <boost/asio/post.hpp>
#include <spdlog/spdlog.h>

#include "gate/serve/server_answer.hpp"

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

}  // namespace

void Session::next_request() {
  reader_ = std::make_unique<RequestReader>(static_cast<std::size_t>(core_.limits.header_bytes));
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
    if (reader_->expects_continue() && buffer_.empty()) return say_continue();
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

}  // namespace weir::serve
