#include "gate/sys/http.hpp"

#include <algorithm>
#include <cstdint>

#include <curl/curl.h>

#include "gate/base/text.hpp"
#include "gate/sys/curl_pieces.hpp"

namespace weir::sys {
namespace {

using What = HttpFailure::What;

constexpr std::size_t k_most_header_bytes = 256 << 10;

// What is being received.
struct Incoming {
  HttpResponse response{};
  std::size_t most_body = 0;
  std::size_t header_bytes = 0;
  bool too_large = false;
};

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  const std::string_view line = text::trim(std::string_view(data, size));
  incoming.header_bytes += size;
  if (incoming.header_bytes > k_most_header_bytes) {
    incoming.too_large = true;
    return 0;
  }
  if (line.substr(0, 5) == "HTTP/") incoming.response.headers.clear();  // of a "100 Continue"
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  incoming.response.headers.emplace_back(text::lower(line.substr(0, colon)),
                                         text::trim(line.substr(colon + 1)));
  return size;
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  if (size > incoming.most_body - incoming.response.body.size()) {
    incoming.too_large = true;
    return 0;
  }
  incoming.response.body.append(data, size);
  return size;
}

// This machine's own addresses are not reached through a proxy.
bool is_loopback(const std::string& url) {
  CURLU* parts = curl_url();
  char* host = nullptr;
  bool loopback = false;
  if (parts != nullptr && curl_url_set(parts, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK &&
      curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
    const std::string name = text::lower(host);
    loopback = name == "localhost" || name == "127.0.0.1" || name == "[::1]";
  }
  curl_free(host);
  curl_url_cleanup(parts);
  return loopback;
}

What what_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:  // a handshake that broke off, which may pass
      return What::no_connection;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return What::tls;
    case CURLE_OPERATION_TIMEDOUT:
      return What::timed_out;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
      return What::cut;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return What::invalid;
    default:
      return What::other;
  }
}

HttpFailure failure(CURLcode code, const Incoming& incoming, CURL* easy, std::string_view words) {
  long request_bytes = 0;
  curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &request_bytes);
  HttpFailure failed{.what = what_of(code), .sent = request_bytes > 0};
  if (incoming.too_large) failed.what = What::too_large;
  if (failed.what == What::timed_out && !failed.sent) failed.what = What::no_connection;
  failed.message = words.empty() ? curl_easy_strerror(code) : std::string(text::trim(words));
  if (incoming.too_large) {
    failed.message = "the answer is larger than the " + std::to_string(incoming.most_body) +
                     " bytes taken of one";
  }
  return failed;
}

bool set_up(CurlHandle& handle, const HttpRequest& request, const HttpLimits& limits) {
  CURL* easy = handle.easy;
  bool good = true;
  const auto set = [&](CURLoption option, auto value) {
    good = curl_easy_setopt(easy, option, value) == CURLE_OK && good;
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_CONNECTTIMEOUT_MS, curl_milliseconds(limits.connect_seconds));
  set(CURLOPT_TIMEOUT_MS, curl_milliseconds(limits.total_seconds));
  set(CURLOPT_QUICK_EXIT, 1L);  // do not wait for a name server when time is up
  if (is_loopback(request.url)) set(CURLOPT_PROXY, "");
  const bool sends =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (sends || request.body) {
    set(CURLOPT_POSTFIELDSIZE_LARGE,
        static_cast<curl_off_t>(request.body ? request.body->size() : 0));
    set(CURLOPT_POSTFIELDS, request.body ? request.body->c_str() : "");
  }
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);
  // libcurl by itself sends a request again when a connection that it kept turns out to be dead,
  // also one that may have been carried out. Only what does no harm twice may meet such a one.
  if (request.method != "GET" && request.method != "HEAD") set(CURLOPT_FRESH_CONNECT, 1L);
  good = handle.add_all(request.headers, request.authorization) && good;
  set(CURLOPT_HTTPHEADER, handle.headers);
  return good;
}

}  // namespace

std::optional<std::string> HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

// Connections are kept open between requests.
class RealHttp::Connections {
 public:
  Connections() : multi_(libcurl_ready() ? curl_multi_init() : nullptr) {}
  ~Connections() { curl_multi_cleanup(multi_); }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  [[nodiscard]] bool ready() const { return multi_ != nullptr; }
  // Until it ends, one way or the other; nothing when the stop came first.
  std::optional<CURLcode> perform(CURL* easy, const Stop& stop) {
    if (curl_multi_add_handle(multi_, easy) != CURLM_OK) return CURLE_FAILED_INIT;
    std::optional<CURLcode> ended;
    while (!ended && !stop.requested()) {
      int running = 0;
      if (curl_multi_perform(multi_, &running) != CURLM_OK) ended = CURLE_FAILED_INIT;
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        if (message->msg == CURLMSG_DONE) ended = message->data.result;
      }
      if (ended) break;
      curl_waitfd also{stop.fd(), CURL_WAIT_POLLIN, 0};
      const bool has_fd = stop.fd() >= 0;
      curl_multi_poll(multi_, has_fd ? &also : nullptr, has_fd ? 1 : 0, 200, nullptr);
    }
    curl_multi_remove_handle(multi_, easy);
    return ended;
  }

 private:
  CURLM* multi_;
};

RealHttp::RealHttp() : connections_(std::make_unique<Connections>()) {}
RealHttp::~RealHttp() {
  const NoPipeSignal quiet;  // TLS connections say goodbye
  connections_.reset();
}

tl::expected<HttpResponse, HttpFailure> RealHttp::send(const HttpRequest& request,
                                                       const HttpLimits& limits, const Stop& stop) {
  const auto failed = [](What what, const char* words) {
    return tl::unexpected(HttpFailure{.what = what, .message = words});
  };
  const bool fits =
      fits_in_headers(request.method, request.url, request.headers, request.authorization);
  if (!fits) return failed(What::invalid, "the request holds control characters");
  if (stop.requested()) return failed(What::stopped, "interrupted");
  const NoPipeSignal quiet;
  CurlHandle handle;
  if (!connections_->ready() || handle.easy == nullptr || !set_up(handle, request, limits)) {
    return failed(What::other, "libcurl can not be set up");
  }
  Incoming incoming{.most_body = limits.body_bytes};
  char words[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(handle.easy, CURLOPT_ERRORBUFFER, words);
  curl_easy_setopt(handle.easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(handle.easy, CURLOPT_HEADERDATA, &incoming);
  curl_easy_setopt(handle.easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(handle.easy, CURLOPT_WRITEDATA, &incoming);
  const std::optional<CURLcode> ended = connections_->perform(handle.easy, stop);
  if (!ended || *ended != CURLE_OK) {
    HttpFailure why =
        failure(ended.value_or(CURLE_ABORTED_BY_CALLBACK), incoming, handle.easy, words);
    if (!ended) why = {.what = What::stopped, .sent = why.sent, .message = "interrupted"};
    why.message = shown_words(why.message, request.authorization);
    return tl::unexpected(std::move(why));
  }
  long status = 0;
  curl_easy_getinfo(handle.easy, CURLINFO_RESPONSE_CODE, &status);
  incoming.response.status = static_cast<int>(status);
  return std::move(incoming.response);
}

}  // namespace weir::sys
