#include "gate/sys/streams_curl.hpp"

#include <algorithm>
#include <cerrno>

#include "gate/base/text.hpp"

namespace weir::sys {
namespace {

using Ended = StreamEnd::What;

constexpr std::size_t k_most_head_bytes = 256 << 10;
// libcurl has one code for all that it could not receive; its words tell what was no HTTP.
bool is_bad_chunk(std::string_view words) { return words.find("chunk") != std::string_view::npos; }

Ended what_ended(CURLcode code, long os_error, std::string_view words) {
  switch (code) {
    case CURLE_OK:
      return Ended::complete;
    case CURLE_URL_MALFORMAT:
      return Ended::invalid;
    case CURLE_COULDNT_CONNECT:
      return os_error == ECONNREFUSED ? Ended::refused : Ended::no_connection;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_OPERATION_TIMEDOUT:  // the only limit that libcurl has is that on connecting
      return Ended::no_connection;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Ended::tls;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
      return Ended::cut;
    case CURLE_RECV_ERROR:
      return is_bad_chunk(words) ? Ended::bad_http : Ended::cut;
    case CURLE_UNSUPPORTED_PROTOCOL:  // also of an answer that has no header: HTTP/0.9
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return Ended::bad_http;
    default:
      return Ended::other;
  }
}

}  // namespace

int RealStreams::Curl::on_socket(CURL*, curl_socket_t socket, int what, void* user, void*) {
  auto& sockets = static_cast<Curl*>(user)->sockets_;
  const auto found = std::find_if(sockets.begin(), sockets.end(),
                                  [&](const pollfd& known) { return known.fd == socket; });
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

int RealStreams::Curl::on_timer(CURLM*, long milliseconds, void* user) {
  auto& self = *static_cast<Curl*>(user);
  self.timer_due_.reset();
  if (milliseconds >= 0)
    self.timer_due_ = self.clock_.steady() + static_cast<double>(milliseconds) / 1e3;
  return 0;
}

int RealStreams::Curl::on_new_socket(void* user, curl_socket_t, curlsocktype) {
  static_cast<Stream*>(user)->opened = true;
  return CURL_SOCKOPT_OK;
}

// Called before each attempt to send. There is no second one.
int RealStreams::Curl::on_connected(void* user, char*, char*, int, int) {
  auto& stream = *static_cast<Stream*>(user);
  if (++stream.attempts > 1) return CURL_PREREQFUNC_ABORT;
  stream.owner->add_news(News::What::connected, stream.id);
  return CURL_PREREQFUNC_OK;
}

std::size_t RealStreams::Curl::on_head(char* data, std::size_t, std::size_t size, void* user) {
  auto& stream = *static_cast<Stream*>(user);
  if (stream.head_done) return size;  // trailers
  const std::string_view line = text::trim(std::string_view(data, size));
  stream.head_bytes += size;
  if (stream.head_bytes > k_most_head_bytes) {
    stream.head_too_large = true;
    return 0;
  }
  if (line.starts_with("HTTP/")) {
    stream.headers.clear();  // of a "100 Continue"
    const std::size_t blank = line.find(' ');
    stream.status = 0;
    if (blank != std::string_view::npos) {
      stream.status = static_cast<int>(text::to_int(line.substr(blank + 1, 3)).value_or(0));
    }
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    stream.headers.emplace_back(text::lower(line.substr(0, colon)),
                                text::trim(line.substr(colon + 1)));
  } else if (line.empty() && stream.status >= 200) {
    stream.head_done = true;
    stream.owner->add_news(News::What::answered, stream.id);
  }
  return size;
}

std::size_t RealStreams::Curl::on_bytes(char* data, std::size_t, std::size_t size, void* user) {
  auto& stream = *static_cast<Stream*>(user);
  Curl& self = *stream.owner;
  self.add_news(News::What::bytes, stream.id);
  self.news_.back().begin = self.text_.size();
  self.news_.back().size = size;
  self.text_.append(data, size);
  return size;
}

bool RealStreams::Curl::set_up(Stream& stream) {
  CURL* easy = stream.handle.easy;
  bool good = stream.handle.add_all(stream.request.headers, stream.request.authorization);
  const auto set = [&](CURLoption option, auto value) {
    good = curl_easy_setopt(easy, option, value) == CURLE_OK && good;
  };
  set(CURLOPT_PRIVATE, &stream);
  set(CURLOPT_ERRORBUFFER, stream.words);
  set(CURLOPT_URL, stream.request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_PROXY, "");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_HTTP_CONTENT_DECODING, 0L);
  set(CURLOPT_TCP_NODELAY, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS, curl_milliseconds(options_.connect_seconds));
  set(CURLOPT_DNS_CACHE_TIMEOUT, -1L);  // a name is asked for once
  set(CURLOPT_QUICK_EXIT, 1L);          // do not wait for a name server when time is up
  set(CURLOPT_FRESH_CONNECT, options_.keep_connections ? 0L : 1L);
  set(CURLOPT_FORBID_REUSE, options_.keep_connections ? 0L : 1L);
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(stream.request.body.size()));
  set(CURLOPT_POSTFIELDS, stream.request.body.c_str());
  set(CURLOPT_HTTPHEADER, stream.handle.headers);
  set(CURLOPT_SOCKOPTFUNCTION, on_new_socket);
  set(CURLOPT_SOCKOPTDATA, &stream);
  set(CURLOPT_PREREQFUNCTION, on_connected);
  set(CURLOPT_PREREQDATA, &stream);
  set(CURLOPT_HEADERFUNCTION, on_head);
  set(CURLOPT_HEADERDATA, &stream);
  set(CURLOPT_WRITEFUNCTION, on_bytes);
  set(CURLOPT_WRITEDATA, &stream);
  return good;
}

void RealStreams::Curl::take_ended() {
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
    const std::string_view words = stream.words[0] != 0 ? stream.words : curl_easy_strerror(code);
    why.what = what_ended(code, os_error, words);
    if (why.what != Ended::complete) why.message = shown_words(words, stream.request.authorization);
    if (stream.head_too_large) {
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

}  // namespace weir::sys
