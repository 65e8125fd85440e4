// Settings and error codes that all libcurl requests share.
#include "gate/sys/curl.hpp"

#include <algorithm>
#include <cmath>

#include <pthread.h>

#include "gate/base/text.hpp"

namespace weir::sys {
namespace {

// Returns true if the text has no control characters, which could end a header line.
bool fits_in_a_line(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F; });
}

}  // namespace

bool libcurl_ready() {
  static const bool k_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return k_ready;
}

NoPipeSignal::NoPipeSignal() {
  sigemptyset(&pipe_);
  sigaddset(&pipe_, SIGPIPE);
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
}

NoPipeSignal::~NoPipeSignal() {
  sigset_t pending;
  sigpending(&pending);
  if (!was_pending_ && sigismember(&pending, SIGPIPE) == 1) {
    int signal = 0;
    sigwait(&pipe_, &signal);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// Sets the options and headers that all requests have. `good` becomes false if memory runs out.
void CurlHandle::begin(const std::string& url, const HttpHeaders& headers_to_send,
                       const Secret& authorization, double connect_seconds) {
  const auto add_header = [&](const std::string& line) {
    curl_slist* extended = curl_slist_append(headers, line.c_str());
    good = good && extended != nullptr;
    if (extended != nullptr) headers = extended;
  };
  for (const auto& [name, value] : headers_to_send) add_header(fmt::format("{}: {}", name, value));
  if (!authorization.empty()) add_header("Authorization: " + authorization.reveal());
  add_header("Expect:");  // do not wait for "100 Continue"
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_ERRORBUFFER, words);
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_CONNECTTIMEOUT_MS, curl_milliseconds(connect_seconds));
  set(CURLOPT_QUICK_EXIT, 1L);  // do not wait for a name server when time is up
}

void CurlHandle::set_body(const char* bytes, std::size_t size) {
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(size));
  set(CURLOPT_POSTFIELDS, bytes);
}

// Adds a header line of the answer. Returns false, which ends the transfer, if all headers are too
// large.
bool CurlHead::take(std::string_view line) {
  constexpr std::size_t k_max_bytes = 256 << 10;
  bytes += line.size();
  too_large = too_large || bytes > k_max_bytes;
  if (too_large) return false;
  line = text::trim(line);
  if (line.starts_with("HTTP/")) {
    headers.clear();  // drops the headers of a "100 Continue"
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    headers.emplace_back(text::lower(line.substr(0, colon)), text::trim(line.substr(colon + 1)));
  }
  return true;
}

bool fits_in_headers(const std::string& method, const std::string& url, const HttpHeaders& headers,
                     const Secret& authorization) {
  return fits_in_a_line(method) && fits_in_a_line(url) && fits_in_a_line(authorization.reveal()) &&
         std::ranges::all_of(headers, [](const auto& header) {
           return fits_in_a_line(header.first) && fits_in_a_line(header.second);
         });
}

// Returns what libcurl's error code means for whole answers and for streams; "other" if it is not
// listed.
CurlFault curl_fault(CURLcode code) {
  using Answer = HttpFailure::What;
  using Stream = StreamEnd::What;
  constexpr CurlFault k_faults[] = {
      {CURLE_URL_MALFORMAT, Answer::invalid, Stream::invalid},
      // Also reported for an answer without a header (HTTP/0.9).
      {CURLE_UNSUPPORTED_PROTOCOL, Answer::invalid, Stream::bad_http},
      {CURLE_COULDNT_RESOLVE_PROXY, Answer::no_connection, Stream::other},
      {CURLE_COULDNT_RESOLVE_HOST, Answer::no_connection, Stream::no_connection},
      {CURLE_COULDNT_CONNECT, Answer::no_connection, Stream::no_connection},
      {CURLE_SSL_CONNECT_ERROR, Answer::no_connection, Stream::tls},  // broke off: may be temporary
      {CURLE_PEER_FAILED_VERIFICATION, Answer::tls, Stream::tls},
      {CURLE_SSL_CACERT_BADFILE, Answer::tls, Stream::tls},
      {CURLE_SSL_ISSUER_ERROR, Answer::tls, Stream::tls},
      // A stream's only limit is that on connecting.
      {CURLE_OPERATION_TIMEDOUT, Answer::timed_out, Stream::no_connection},
      {CURLE_GOT_NOTHING, Answer::cut, Stream::cut},
      {CURLE_SEND_ERROR, Answer::cut, Stream::cut},
      {CURLE_RECV_ERROR, Answer::cut, Stream::cut},
      {CURLE_PARTIAL_FILE, Answer::cut, Stream::cut},
      {CURLE_WEIRD_SERVER_REPLY, Answer::other, Stream::bad_http},
      {CURLE_BAD_CONTENT_ENCODING, Answer::other, Stream::bad_http}};
  for (const CurlFault& fault : k_faults) {
    if (fault.code == code) return fault;
  }
  return {};
}

long curl_milliseconds(double seconds) { return std::lround(std::clamp(seconds * 1000, 1.0, 1e9)); }

std::string printable_error(std::string_view words, const Secret& authorization) {
  Masker masker;
  const std::string& value = authorization.reveal();  // "Bearer TOKEN"
  masker.add(Secret(value.substr(value.rfind(' ') + 1)));
  return text::printable(masker.mask(std::string(text::trim(words))));
}

}  // namespace weir::sys
