#include "gate/sys/streams.hpp"

#include <algorithm>
#include <cmath>

#include "gate/sys/streams_curl.hpp"

namespace weir::sys {
namespace {

// Of idle connections: more than any load has at once.
constexpr long k_most_kept = 1024;

}  // namespace

RealStreams::Curl::Curl(const Clock& clock, StreamOptions options)
    : clock_(clock), options_(options) {
  if (!libcurl_ready()) return;
  multi_ = curl_multi_init();
  if (multi_ == nullptr) return;
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, k_most_kept);
}
RealStreams::Curl::~Curl() {
  const NoPipeSignal quiet;  // TLS connections say goodbye
  for (auto& [id, stream] : streams_) remove(*stream);
  streams_.clear();
  if (multi_ != nullptr) curl_multi_cleanup(multi_);
}

Streams::Id RealStreams::Curl::post(const StreamRequest& request, StreamSink& sink) {
  auto made = std::make_unique<Stream>();
  Stream& stream = *made;
  stream.owner = this;
  stream.id = ++last_id_;
  stream.request = request;
  stream.sink = &sink;
  streams_.emplace(stream.id, std::move(made));
  if (!fits_in_headers("POST", request.url, request.headers, request.authorization)) {
    end(stream, {StreamEnd::What::invalid, "the request holds control characters"});
  } else if (multi_ == nullptr || stream.handle.easy == nullptr || !set_up(stream) ||
             curl_multi_add_handle(multi_, stream.handle.easy) != CURLM_OK) {
    end(stream, {StreamEnd::What::other, "libcurl can not be set up"});
  } else {
    stream.added = true;
  }
  return stream.id;
}

void RealStreams::Curl::drop(Id id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const NoPipeSignal quiet;
  remove(*found->second);
  streams_.erase(found);
}

// False: the sink wants no more of it.
bool RealStreams::Curl::hand_on(const News& news, Stream& stream, std::string_view text) {
  switch (news.what) {
    case News::What::connected:
      stream.sink->connected(news.at, !stream.opened);
      return true;
    case News::What::answered:
      return stream.sink->answered(news.at, stream.status, stream.headers);
    case News::What::bytes:
      return stream.sink->bytes(news.at, text.substr(news.begin, news.size));
    case News::What::ended:
      break;
  }
  return true;
}

void RealStreams::Curl::hand_on() {
  std::vector<News> news;
  std::string text;
  news.swap(news_);  // a sink may post, and that may fail at once
  text.swap(text_);
  for (const News& one : news) {
    const auto found = streams_.find(one.id);
    if (found == streams_.end()) continue;  // dropped meanwhile
    Stream& stream = *found->second;
    if (one.what != News::What::ended && hand_on(one, stream, text)) continue;
    if (streams_.count(one.id) == 0) continue;  // by its own sink
    StreamSink* sink = stream.sink;
    StreamEnd why = one.end;
    if (one.what != News::What::ended) why = {StreamEnd::What::dropped, ""};
    drop(one.id);
    sink->ended(one.at, why);
  }
  if (news_.empty()) {  // their memory is for the next round
    news.clear();
    text.clear();
    news_.swap(news);
    text_.swap(text);
  }
}

// Waits for sockets once, and lets libcurl do what is to be done. False: nothing more to wait for.
// Also when `until` has passed: a caller that is always late would else never hear of anything.
bool RealStreams::Curl::look(double until, const Stop& stop) {
  const double now = clock_.steady();
  if (stop.requested()) return false;
  // poll() counts in milliseconds: the last part of one is looked through without waiting, so that
  // what is due is done on time. libcurl's own timers may be a little late.
  double wait_ms = std::max(std::floor((until - now) * 1e3), 0.0);
  if (timer_due_) wait_ms = std::min(wait_ms, std::ceil((*timer_due_ - now) * 1e3));
  looked_ = sockets_;
  if (stop.fd() >= 0) {
    looked_.push_back({.fd = stop.fd(), .events = POLLIN, .revents = 0});
    wait_ms = std::min(wait_ms, 3.6e6);
  } else {
    wait_ms = std::min(wait_ms, 200.0);
  }
  const int ready = poll(looked_.data(), static_cast<nfds_t>(looked_.size()),
                         static_cast<int>(std::max(wait_ms, 0.0)));
  int running = 0;
  for (std::size_t i = 0; ready > 0 && i < looked_.size(); ++i) {
    const pollfd& socket = looked_[i];
    if (socket.revents == 0 || socket.fd == stop.fd()) continue;
    int events = 0;
    if ((socket.revents & (POLLIN | POLLHUP)) != 0) events |= CURL_CSELECT_IN;
    if ((socket.revents & POLLOUT) != 0) events |= CURL_CSELECT_OUT;
    if ((socket.revents & (POLLERR | POLLNVAL)) != 0) events |= CURL_CSELECT_ERR;
    curl_multi_socket_action(multi_, socket.fd, events, &running);
  }
  if (timer_due_ && *timer_due_ <= clock_.steady()) {
    timer_due_.reset();
    curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
  take_ended();
  return now < until;
}

void RealStreams::Curl::wait(double until, const Stop& stop) {
  const NoPipeSignal quiet;
  if (multi_ != nullptr) {
    while (news_.empty() && look(until, stop)) {
    }
  }
  hand_on();
}

RealStreams::RealStreams(const Clock& clock, StreamOptions options)
    : curl_(std::make_unique<Curl>(clock, options)) {}
RealStreams::~RealStreams() = default;
Streams::Id RealStreams::post(const StreamRequest& request, StreamSink& sink) {
  return curl_->post(request, sink);
}
void RealStreams::drop(Id id) { curl_->drop(id); }
void RealStreams::wait(double until, const Stop& stop) { curl_->wait(until, stop); }

}  // namespace weir::sys
