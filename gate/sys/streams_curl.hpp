// RealStreams' inside, for streams.cpp (what its caller asks for) and streams_curl.cpp (what
// libcurl calls) alone.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>

#include "gate/sys/curl_pieces.hpp"
#include "gate/sys/streams.hpp"

namespace weir::sys {

// libcurl's callbacks may not call libcurl, nor take long while other sockets wait: what they bring
// is kept, with its moment, and handed on when libcurl has nothing more to read.
class RealStreams::Curl {
 public:
  Curl(const Clock& clock, StreamOptions options);
  ~Curl();
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;

  Id post(const StreamRequest& request, StreamSink& sink);
  void drop(Id id);
  void wait(double until, const Stop& stop);

 private:
  struct Stream {
    Curl* owner = nullptr;
    Id id = 0;
    StreamRequest request;
    StreamSink* sink = nullptr;
    CurlHandle handle;
    char words[CURL_ERROR_SIZE] = "";
    bool added = false;   // to the multi handle
    bool opened = false;  // a connection of its own
    int attempts = 0;     // libcurl's, to send it
    int status = 0;
    HttpHeaders headers;  // of the answer, so far
    std::size_t head_bytes = 0;
    bool head_done = false, head_too_large = false;
  };
  // What a callback brought. Text lies in text_, from `begin` on.
  struct News {
    enum class What { connected, answered, bytes, ended } what = What::bytes;
    Id id = 0;
    double at = 0;
    std::size_t begin = 0, size = 0;
    StreamEnd end{};
  };

  static int on_socket(CURL*, curl_socket_t socket, int what, void* user, void*);
  static int on_timer(CURLM*, long milliseconds, void* user);
  static int on_new_socket(void* user, curl_socket_t, curlsocktype);
  static int on_connected(void* user, char*, char*, int, int);
  static std::size_t on_head(char* data, std::size_t, std::size_t size, void* user);
  static std::size_t on_bytes(char* data, std::size_t, std::size_t size, void* user);

  bool set_up(Stream& stream);
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
  void take_ended();
  void hand_on();
  bool hand_on(const News& news, Stream& stream, std::string_view text);
  [[nodiscard]] bool look(double until, const Stop& stop);

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

}  // namespace weir::sys
