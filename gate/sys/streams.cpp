// HTTP requests whose answers are read as they arrive, with libcurl.
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

// Limit on idle connections: more than any load uses at once.
constexpr long k_max_idle_connections = 1024;

// Says how a stream ended, from libcurl's code, the system's error and libcurl's message.
Ended classify_end(CURLcode code, long os_error, std::string_view words) {
  if (code == CURLE_OK) return Ended::complete;
  if (code == CURLE_COULDNT_CONNECT && os_error == ECONNREFUSED) return Ended::refused;
  // libcurl has one code for all failures to receive; only its message shows malformed HTTP.
  if (code == CURLE_RECV_ERROR && words.find("chunk") != std::string_view::npos) {
    return Ended::bad_http;
  }
  return curl_fault(code).stream;
}

// libcurl's callbacks may not call libcurl, and must be short because other sockets wait. So they
// only record events, which are delivered once libcurl has nothing more to read.
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
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, k_max_idle_connections);
  }
  ~CurlStreams() override {
    const NoPipeSignal quiet;  // closing TLS connections writes to them
    for (auto& [id, stream] : streams_) remove(*stream);
    streams_.clear();
    if (multi_ != nullptr) curl_multi_cleanup(multi_);
  }

  CurlStreams(const CurlStreams&) = delete;
  CurlStreams& operator=(const CurlStreams&) = delete;

  // Begins a request. A request that cannot be sent ends with the next wait().
  Id post(const StreamRequest& request, StreamSink& sink) override {
    auto new_stream = std::make_unique<Stream>();
    Stream& stream = *new_stream;
    stream.owner = this;
    stream.id = ++last_id_;
    stream.request = request;
    stream.sink = &sink;
    streams_.emplace(stream.id, std::move(new_stream));
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
    const auto entry = streams_.find(id);
    if (entry == streams_.end()) return true;
    curl_off_t sent = 0;
    curl_easy_getinfo(entry->second->handle.easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    return sent >= static_cast<curl_off_t>(entry->second->request.body.size());
  }

  void drop(Id id) override {
    const auto entry = streams_.find(id);
    if (entry == streams_.end()) return;
    const NoPipeSignal quiet;
    remove(*entry->second);
    streams_.erase(entry);
  }

  void wait(double until, const Stop& stop) override {
    const NoPipeSignal quiet;
    if (multi_ != nullptr) {
      while (events_.empty() && poll_once(until, stop)) {
      }
    }
    deliver();
  }

 private:
  struct Stream {
    CurlStreams* owner = nullptr;
    Id id = 0;
    StreamRequest request;
    StreamSink* sink = nullptr;
    CurlHandle handle;
    bool added = false;   // added to the multi handle
    bool opened = false;  // opened a new connection
    int attempts = 0;     // libcurl's attempts to send it
    int status = 0;
    CurlHead head;  // header of the answer, as far as received
    bool head_done = false;
  };
  // An event that a callback recorded. Its text is in text_, starting at `begin`.
  struct Event {
    enum class What { connected, answered, bytes, ended } what = What::bytes;
    Id id = 0;
    double at = 0;
    std::size_t begin = 0, size = 0;
    StreamEnd end{};
  };

  // libcurl's callback: keeps the list of sockets to poll.
  static int on_socket(CURL*, curl_socket_t socket, int what, void* user, void*) {
    auto& sockets = static_cast<CurlStreams*>(user)->sockets_;
    const auto entry = std::ranges::find(sockets, socket, &pollfd::fd);
    if (what == CURL_POLL_REMOVE) {
      if (entry != sockets.end()) sockets.erase(entry);
      return 0;
    }
    short events = 0;
    if ((what & CURL_POLL_IN) != 0) events |= POLLIN;
    if ((what & CURL_POLL_OUT) != 0) events |= POLLOUT;
    if (entry == sockets.end()) {
      sockets.push_back({.fd = socket, .events = events, .revents = 0});
    } else {
      entry->events = events;
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

  // Called before each attempt to send. Aborts a second attempt: nothing is sent twice.
  static int on_connected(void* user, char*, char*, int, int) {
    auto& stream = *static_cast<Stream*>(user);
    ++stream.attempts;
    if (stream.attempts > 1) return CURL_PREREQFUNC_ABORT;
    stream.owner->add_event(Event::What::connected, stream.id);
    return CURL_PREREQFUNC_OK;
  }

  // libcurl's callback for each header line of an answer.
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
      stream.owner->add_event(Event::What::answered, stream.id);
    }
    return size;
  }

  static std::size_t on_bytes(char* data, std::size_t, std::size_t size, void* user) {
    auto& stream = *static_cast<Stream*>(user);
    CurlStreams& self = *stream.owner;
    self.add_event(Event::What::bytes, stream.id);
    self.events_.back().begin = self.text_.size();
    self.events_.back().size = size;
    self.text_.append(data, size);
    return size;
  }

  // Sets all options of a request; returns false if libcurl refuses one.
  bool set_up(Stream& stream) {
    CurlHandle& handle = stream.handle;
    const StreamRequest& request = stream.request;
    handle.begin(request.url, request.headers, request.authorization, options_.connect_seconds);
    handle.set(CURLOPT_PRIVATE, &stream);
    handle.set(CURLOPT_PROXY, "");
    handle.set(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    handle.set(CURLOPT_TCP_NODELAY, 1L);
    handle.set(CURLOPT_DNS_CACHE_TIMEOUT, -1L);  // each name is resolved once
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
  void add_event(Event::What what, Id id) {
    events_.push_back({.what = what, .id = id, .at = clock_.steady()});
  }
  void end(Stream& stream, StreamEnd stream_end) {
    add_event(Event::What::ended, stream.id);
    events_.back().end = std::move(stream_end);
  }

  // Records the end of every stream that libcurl has finished.
  void collect_ended() {
    int remaining = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &remaining)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* easy = message->easy_handle;
      char* user = nullptr;
      long os_error = 0;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &user);
      curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
      auto& stream = *reinterpret_cast<Stream*>(user);
      StreamEnd stream_end;
      const char* own_text = stream.handle.words;
      const std::string_view words = own_text[0] != 0 ? own_text : curl_easy_strerror(code);
      stream_end.what = classify_end(code, os_error, words);
      if (stream_end.what != Ended::complete)
        stream_end.message = printable_error(words, stream.request.authorization);
      if (stream.head.too_large) {
        stream_end = {Ended::bad_http, "the header of the answer is beyond all measure"};
      } else if (stream_end.what == Ended::complete && !stream.head_done) {  // no error to libcurl
        stream_end = {Ended::cut, "the connection ended amid the header of the answer"};
      } else if (stream.attempts > 1) {
        stream_end = {Ended::cut,
                      "a kept connection ended before the answer; nothing is sent twice"};
      }
      remove(stream);
      end(stream, std::move(stream_end));
    }
  }

  // Passes an event to its sink. Returns false if the sink wants no more of the stream.
  bool deliver(const Event& event, Stream& stream, std::string_view text) {
    switch (event.what) {
      case Event::What::connected:
        stream.sink->connected(event.at, !stream.opened);
        return true;
      case Event::What::answered:
        return stream.sink->answered(event.at, stream.status, stream.head.headers);
      case Event::What::bytes:
        return stream.sink->bytes(event.at, text.substr(event.begin, event.size));
      case Event::What::ended:
        break;
    }
    return true;
  }

  // Passes all recorded events to their sinks.
  void deliver() {
    std::vector<Event> events;
    std::string text;
    events.swap(events_);  // a sink may post, and that may fail at once
    text.swap(text_);
    for (const Event& event : events) {
      const auto entry = streams_.find(event.id);
      if (entry == streams_.end()) continue;  // dropped meanwhile
      Stream& stream = *entry->second;
      if (event.what != Event::What::ended && deliver(event, stream, text)) continue;
      if (streams_.count(event.id) == 0) continue;  // dropped by its own sink
      StreamSink* sink = stream.sink;
      StreamEnd stream_end = event.end;
      if (event.what != Event::What::ended) stream_end = {StreamEnd::What::dropped, ""};
      drop(event.id);
      sink->ended(event.at, stream_end);
    }
    if (events_.empty()) {  // reuse their memory in the next round
      events.clear();
      text.clear();
      events_.swap(events);
      text_.swap(text);
    }
  }

  // Waits for sockets once and lets libcurl act. Returns false if there is nothing more to wait
  // for. Acts even after `until`, else a caller that is always late would never get an event.
  bool poll_once(double until, const Stop& stop) {
    const double now = clock_.steady();
    if (stop.requested()) return false;
    // poll() counts milliseconds. The last fraction of one is polled without waiting, so that the
    // caller is on time. libcurl's own timers may be a little late.
    double wait_ms = std::max(std::floor((until - now) * 1e3), 0.0);
    if (timer_due_) wait_ms = std::min(wait_ms, std::ceil((*timer_due_ - now) * 1e3));
    polled_ = sockets_;
    if (stop.fd() >= 0) {
      polled_.push_back({.fd = stop.fd(), .events = POLLIN, .revents = 0});
      wait_ms = std::min(wait_ms, 3.6e6);
    } else {
      wait_ms = std::min(wait_ms, 200.0);
    }
    const int ready = poll(polled_.data(), static_cast<nfds_t>(polled_.size()),
                           static_cast<int>(std::max(wait_ms, 0.0)));
    int running = 0;
    for (std::size_t i = 0; ready > 0 && i < polled_.size(); ++i) {
      const pollfd& socket = polled_[i];
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
    collect_ended();
    return now < until;
  }

  const Clock& clock_;
  StreamOptions options_;
  CURLM* multi_ = nullptr;
  Id last_id_ = 0;
  std::map<Id, std::unique_ptr<Stream>> streams_;
  std::vector<pollfd> sockets_;      // the sockets that libcurl wants to watch
  std::vector<pollfd> polled_;       // a member, to reuse its memory
  std::optional<double> timer_due_;  // libcurl's own timer
  std::vector<Event> events_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Streams> real_streams(const Clock& clock, StreamOptions options) {
  return std::make_unique<CurlStreams>(clock, options);
}

}  // namespace weir::sys
