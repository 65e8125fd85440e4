// What http.cpp and streams.cpp share of libcurl, which stays in this folder.
#pragma once

#include <string>
#include <string_view>

#include <curl/curl.h>
#include <signal.h>

#include "gate/base/secret.hpp"
#include "gate/sys/http.hpp"

namespace weir::sys {

// Once for the program, before the first handle; never undone, so that no other user of libcurl in
// this process and no thread that still runs at exit loses it. False: libcurl can not be used.
[[nodiscard]] bool libcurl_ready();

// OpenSSL writes to sockets in a way that raises SIGPIPE when the other side is gone. Holds it back
// in this thread, and takes away one that came meanwhile.
class NoPipeSignal {
 public:
  NoPipeSignal();
  ~NoPipeSignal();
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

// An easy handle and the header lines that it sends.
struct CurlHandle {
  CURL* easy = curl_easy_init();
  curl_slist* headers = nullptr;
  CurlHandle() = default;
  CurlHandle(const CurlHandle&) = delete;
  CurlHandle& operator=(const CurlHandle&) = delete;
  ~CurlHandle() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
  }
  // False: out of memory.
  [[nodiscard]] bool add(const std::string& line);
  [[nodiscard]] bool add_all(const HttpHeaders& lines, const Secret& authorization);
};

// No line of a header can be made of a part of another.
[[nodiscard]] bool fits_in_headers(const std::string& method, const std::string& url,
                                   const HttpHeaders& headers, const Secret& authorization);

// For libcurl, where 0 would mean "no limit".
[[nodiscard]] long curl_milliseconds(double seconds);

// libcurl's words (or `words`, where it had more to say), fit to show, without the authorization.
[[nodiscard]] std::string shown_words(std::string_view words, const Secret& authorization);

}  // namespace weir::sys
