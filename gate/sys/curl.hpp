// Parts of libcurl that http.cpp and streams.cpp share; libcurl stays in this folder.
#pragma once

#include <string>
#include <string_view>

#include <curl/curl.h>
#include <signal.h>

#include "gate/base/secret.hpp"
#include "gate/sys/streams.hpp"

namespace weir::sys {

// Once for the program, before the first handle; never undone, so that no other user of libcurl in
// this process and no thread that still runs at exit loses it. False: libcurl cannot be used.
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

// An easy handle, the header lines that it sends, and libcurl's words about it.
struct CurlHandle {
  CURL* easy = curl_easy_init();
  curl_slist* headers = nullptr;
  bool good = easy != nullptr;  // there, and nothing was refused
  char words[CURL_ERROR_SIZE] = "";
  CurlHandle() = default;
  CurlHandle(const CurlHandle&) = delete;
  CurlHandle& operator=(const CurlHandle&) = delete;
  ~CurlHandle() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
  }
  template <class Value>
  void set(CURLoption option, Value value) {
    good = good && curl_easy_setopt(easy, option, value) == CURLE_OK;
  }
  // Sets what every request has: HTTP/1.1, TLS always verified, no redirect followed. All arguments
  // except the headers must outlive it.
  void begin(const std::string& url, const HttpHeaders& lines, const Secret& authorization,
             double connect_seconds);
  void set_body(const char* bytes, std::size_t size);
};

// The lines of an answer's header, as libcurl hands them on; 1xx are passed over.
struct CurlHead {
  HttpHeaders headers{};  // names in lower case
  std::size_t bytes = 0;
  bool too_large = false;
  // False: beyond all measure.
  [[nodiscard]] bool take(std::string_view line);
};

// No line of a header can be made of a part of another.
[[nodiscard]] bool fits_in_headers(const std::string& method, const std::string& url,
                                   const HttpHeaders& headers, const Secret& authorization);

// The meaning of a code for a single request, and for a stream.
struct CurlFault {
  CURLcode code = CURLE_OK;
  HttpFailure::What http = HttpFailure::What::other;
  StreamEnd::What stream = StreamEnd::What::other;
};
[[nodiscard]] CurlFault curl_fault(CURLcode code);

// For libcurl, where 0 would mean "no limit".
[[nodiscard]] long curl_milliseconds(double seconds);

// libcurl's words (or `words`, where it had more to say), fit to show, without the authorization.
[[nodiscard]] std::string printable_error(std::string_view words, const Secret& authorization);

}  // namespace weir::sys
