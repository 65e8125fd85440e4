#include "gate/sys/streams.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <poll.h>

#include "gate/base/text.hpp"
#include "gate/sys/curl.hpp"

namespace weir::sys {
namespace {

using Ended = StreamEnd::What;

// Of idle connections: more than any load has at once.
constexpr long k_most_kept = 1024;

Ended what_ended(CURLcode code, long os_error, std::string_view words) {
  if (code == CURLE_OK) return Ended::complete;
  if (code == CURLE_COULDNT_CONNECT && os_error == ECONNREFUSED) return Ended::refused;
  // libcurl has one code for all that it could not receive; its words tell what was no HTTP.
  if (code == CURLE_RECV_ERROR && words.find("chunk") != std::string_view::npos) {
    return Ended::bad_http;
  }
  return curl_fault(code).stream;
}

// libcurl's callbacks may not call libcurl, nor take long while other sockets wait: what they bring
// is kept, with its moment, and handed on when libcurl has nothing more to read.
class CurlStreams final : public Streams {
 public:
  CurlStreams(const Clock& clock, StreamOptions options) : clock_(clock), options_(options) {
    if (!libcurl_ready()) return;
    multi_ = curl_multi_init();
    if (multi_ == nullptr) return;
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, k_most_kept);
  }
  ~CurlStreams() override {
    const NoPipeSignal quiet;  // TLS connections say goodbye
    for (auto& [id, stream] : streams_) remove(*stream);
    streams_.clear();
    if (multi_ != nullptr) curl_multi_cleanup(multi_);
  }

  CurlStreams(const CurlStreams&) = delete;
  CurlStreams& operator=(const CurlStreams&) = delete;

  Id post(const StreamRequest& request, StreamSink& sink) override {
    auto made = std::make_unique<Stream>();
    Stream& stream = *made;
    stream.owner = this;
    stream.id = ++last_id_;
    stream.request = request;
    stream.sink = &sink;
    streams_.emplace(stream.id, std::move(made));
    if (!fits_in_headers("POST", request.url, request.headers, request.authorization)) {
      end(stream, {StreamEnd::What::invalid, "the request holds control characters"});
    } else if (multi_ == nullptr || !set_up(stream) ||
               curl_multi_add_handle(multi_, stream.handle.easy) != CURLM_OK) {
      end(stream, {StreamEnd::What::other, "libcurl cannot be set up"});
    } else {
      stream.added = true;
    }
    return stream.id;
  }

  bool has_sent(Id id) const override {
    const auto found = streams_.find(id);
    if (found == streams_.end()) return true;
    curl_off_t sent = 0;
    curl_easy_getinfo(found->second->handle.easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    return sent >= static_cast<curl_off_t>(found->second->request.body.size());
  }

  void drop(Id id) override {
    const auto found = streams_.find(id);
    if (found == streams_.end()) return;
    const NoPipeSignal quiet;
    remove(*found->second);
    streams_.erase(found);
  }

  void wait(double until, const Stop& stop) override {
    const NoPipeSignal quiet;
    if (multi_ != nullptr) {
      while (news_.empty() && look(until, stop)) {
      }
    }
    hand_on();
  }

 private:
  struct Stream {
    CurlStreams* owner = nullptr;
    Id id = 0;
    StreamRequest request;
    StreamSink* sink = nullptr;
    CurlHandle handle;
    bool added = false;   // to the multi handle
    bool opened = false;  // a connection of its own
    int attempts = 0;     // libcurl's, to send it
    int status = 0;
    CurlHead head;  // of the answer, so far
    bool head_done = false;
  };
  // What a callback brought. Text lies in text_, from `begin` on.
  struct News {
    enum class What { connected, answered, bytes, ended } what = What::bytes;
    Id id = 0;
    double at = 0;
    std::size_t begin = 0, size = 0;
    StreamEnd end{};
  };

  static int on_socket(CURL*, curl_socket_t socket, int what, void* user, void*) {
    auto& sockets = static_cast<CurlStreams*>(user)->sockets_;
    const auto found = std::ranges::find(sockets, socket, &pollfd::fd);
    if (what == CURL_POLL_REMOVE) {
      if (found != sockets.end()) sockets.erase(found);
      return 0;
    }
    short events = 0;
    if ((what & CURL_POLL_IN) != 0) events |= POLLIN;
    if ((what & CURL_POLL_OUT) != 0) events |= POLLOUT;
    if (found == sockets.end()) {
      sockets.push_back({.fd = socket, .events = events, .revents = 0});
    } else {
      found->events = events;
    }
    return 0;
  }

  static int on_timer(CURLM*, long milliseconds, void* user) {
    auto& self = *static_cast<CurlStreams*>(user);
    self.timer_due_.reset();
    if (milliseconds >= 0)
      self.timer_due_ = self.clock_.steady() + static_cast<double>(milliseconds) / 1e3;
    return 0;
  }

  static int on_new_socket(void* user, curl_socket_t, curlsocktype) {
    static_cast<Stream*>(user)->opened = true;
    return CURL_SOCKOPT_OK;
  }

  // Called before each attempt to send. There is no second one.
  static int on_connected(void* user, char*, char*, int, int) {
    auto& stream = *static_cast<Stream*>(user);
    if (++stream.attempts > 1) return CURL_PREREQFUNC_ABORT;
    stream.owner->add_news(News::What::connected, stream.id);
    return CURL_PREREQFUNC_OK;
  }

  static std::size_t on_head(char* data, std::size_t, std::size_t size, void* user) {
    auto& stream = *static_cast<Stream*>(user);
    if (stream.head_done) return size;  // trailers
    if (!stream.head.take({data, size})) return 0;
    const std::string_view line = text::trim(std::string_view(data, size));
    if (line.starts_with("HTTP/")) {
      const std::size_t blank = line.find(' ');
      stream.status = 0;
      if (blank != std::string_view::npos) {
        stream.status = static_cast<int>(text::to_int(line.substr(blank + 1, 3)).value_or(0));
      }
    } else if (line.empty() && stream.status >= 200) {
      stream.head_done = true;
      stream.owner->add_news(News::What::answered, stream.id);
    }
    return size;
  }

  static std::size_t on_bytes(char* data, std::size_t, std::size_t size, void* user) {
    auto& stream = *static_cast<Stream*>(user);
    CurlStreams& self = *stream.owner;
    self.add_news(News::What::bytes, stream.id);
    self.news_.back().begin = self.text_.size();
    self.news_.back().size = size;
    self.text_.append(data, size);
    return size;
  }

  bool set_up(Stream& stream) {
    CurlHandle& handle = stream.handle;
    const StreamRequest& request = stream.request;
    handle.begin(request.url, request.headers, request.authorization, options_.connect_seconds);
    handle.set(CURLOPT_PRIVATE, &stream);
    handle.set(CURLOPT_PROXY, "");
    handle.set(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    handle.set(CURLOPT_TCP_NODELAY, 1L);
    handle.set(CURLOPT_DNS_CACHE_TIMEOUT, -1L);  // a name is asked for once
    handle.set(CURLOPT_FRESH_CONNECT, options_.keep_connections ? 0L : 1L);
    handle.set(CURLOPT_FORBID_REUSE, options_.keep_connections ? 0L : 1L);
    handle.set_body(request.body.c_str(), request.body.size());
    handle.set(CURLOPT_SOCKOPTFUNCTION, on_new_socket);
    handle.set(CURLOPT_SOCKOPTDATA, &stream);
    handle.set(CURLOPT_PREREQFUNCTION, on_connected);
    handle.set(CURLOPT_PREREQDATA, &stream);
    handle.set(CURLOPT_HEADERFUNCTION, on_head);
    handle.set(CURLOPT_HEADERDATA, &stream);
    handle.set(CURLOPT_WRITEFUNCTION, on_bytes);
    handle.set(CURLOPT_WRITEDATA, &stream);
    return handle.good;
  }
  void remove(Stream& stream) {
    if (stream.added) curl_multi_remove_handle(multi_, stream.handle.easy);
    stream.added = false;
  }
  void add_news(News::What what, Id id) {
    news_.push_back({.what = what, .id = id, .at = clock_.steady()});
  }
  void end(Stream& stream, StreamEnd why) {
    add_news(News::What::ended, stream.id);
    news_.back().end = std::move(why);
  }

  void take_ended() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* easy = message->easy_handle;
      char* user = nullptr;
      long os_error = 0;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &user);
      curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
      auto& stream = *reinterpret_cast<Stream*>(user);
      StreamEnd why;
      const char* own = stream.handle.words;
      const std::string_view words = own[0] != 0 ? own : curl_easy_strerror(code);
      why.what = what_ended(code, os_error, words);
      if (why.what != Ended::complete)
        why.message = shown_words(words, stream.request.authorization);
      if (stream.head.too_large) {
        why = {Ended::bad_http, "the header of the answer is beyond all measure"};
      } else if (why.what == Ended::complete && !stream.head_done) {  // libcurl lets that pass
        why = {Ended::cut, "the connection ended amid the header of the answer"};
      } else if (stream.attempts > 1) {
        why = {Ended::cut, "a kept connection ended before the answer; nothing is sent twice"};
      }
      remove(stream);
      end(stream, std::move(why));
    }
  }

  // False: the sink wants no more of it.
  bool hand_on(const News& news, Stream& stream, std::string_view text) {
    switch (news.what) {
      case News::What::connected:
        stream.sink->connected(news.at, !stream.opened);
        return true;
      case News::What::answered:
        return stream.sink->answered(news.at, stream.status, stream.head.headers);
      case News::What::bytes:
        return stream.sink->bytes(news.at, text.substr(news.begin, news.size));
      case News::What::ended:
        break;
    }
    return true;
  }

  void hand_on() {
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

  // Waits for sockets once, and lets libcurl do what is to be done. False: nothing more to wait
  // for. Also when `until` has passed: a caller that is always late would else never hear of
  // anything.
  bool look(double until, const Stop& stop) {
    const double now = clock_.steady();
    if (stop.requested()) return false;
    // poll() counts in milliseconds: the last part of one is looked through without waiting, so
    // that what is due is done on time. libcurl's own timers may be a little late.
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

  const Clock& clock_;
  StreamOptions options_;
  CURLM* multi_ = nullptr;
  Id last_id_ = 0;
  std::map<Id, std::unique_ptr<Stream>> streams_;
  std::vector<pollfd> sockets_;      // as libcurl wants them watched
  std::vector<pollfd> looked_;       // of one look, kept for its memory
  std::optional<double> timer_due_;  // libcurl's
  std::vector<News> news_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Streams> real_streams(const Clock& clock, StreamOptions options) {
  return std::make_unique<CurlStreams>(clock, options);
}

}  // namespace weir::sys
