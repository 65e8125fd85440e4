// HTTP requests with libcurl, one at a time.
#include "gate/sys/http.hpp"

#include <curl/curl.h>

#include "gate/base/text.hpp"
#include "gate/sys/curl.hpp"

namespace weir::sys {
namespace {

using What = HttpFailure::What;

// The answer as far as received.
struct Incoming {
  CurlHead head{};
  std::string body{};
  std::size_t max_body_bytes = 0;
  bool too_large = false;
};

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  incoming.too_large = !incoming.head.take({data, size});
  return incoming.too_large ? 0 : size;
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  incoming.too_large = size > incoming.max_body_bytes - incoming.body.size();
  if (incoming.too_large) return 0;
  incoming.body.append(data, size);
  return size;
}

// Returns true if a URL names this machine, so that no proxy may be used.
bool is_loopback(const std::string& url) {
  CURLU* parts = curl_url();
  char* host = nullptr;
  bool is_this_machine = false;
  if (parts != nullptr && curl_url_set(parts, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK &&
      curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
    const std::string name = text::lower(host);
    is_this_machine = name == "localhost" || name == "127.0.0.1" || name == "[::1]";
  }
  curl_free(host);
  curl_url_cleanup(parts);
  return is_this_machine;
}

// Describes why a request failed: what happened, whether any of it was sent, and a message.
HttpFailure make_failure(CURLcode code, const Incoming& incoming, const CurlHandle& handle) {
  long request_bytes = 0;
  curl_easy_getinfo(handle.easy, CURLINFO_REQUEST_SIZE, &request_bytes);
  HttpFailure result{.what = curl_fault(code).http, .sent = request_bytes > 0};
  if (incoming.too_large) result.what = What::too_large;
  if (result.what == What::timed_out && !result.sent) result.what = What::no_connection;
  result.message = handle.words[0] == 0 ? curl_easy_strerror(code) : handle.words;
  if (incoming.too_large) {
    result.message = "the answer is larger than the " + std::to_string(incoming.max_body_bytes) +
                     " bytes taken of one";
  }
  return result;
}

// Sets all options of a request: method, body, limits in time and bytes, and where the answer
// goes.
void set_up(CurlHandle& handle, const HttpRequest& request, const HttpLimits& limits,
            Incoming& incoming) {
  handle.begin(request.url, request.headers, request.authorization, limits.connect_seconds);
  handle.set(CURLOPT_TIMEOUT_MS, curl_milliseconds(limits.total_seconds));
  if (is_loopback(request.url)) handle.set(CURLOPT_PROXY, "");
  const bool needs_body =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (request.body) {
    handle.set_body(request.body->c_str(), request.body->size());
  } else if (needs_body) {
    handle.set_body("", 0);
  }
  handle.set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "HEAD") handle.set(CURLOPT_NOBODY, 1L);
  // libcurl repeats a request if a connection that it kept proves dead, even if the server may have
  // carried it out. So only requests that do no harm twice may use a kept connection.
  if (request.method != "GET" && request.method != "HEAD") handle.set(CURLOPT_FRESH_CONNECT, 1L);
  handle.set(CURLOPT_HEADERFUNCTION, on_header);
  handle.set(CURLOPT_HEADERDATA, &incoming);
  handle.set(CURLOPT_WRITEFUNCTION, on_body);
  handle.set(CURLOPT_WRITEDATA, &incoming);
}

// Carries out a request. Returns libcurl's result, or nothing if the stop was requested first.
std::optional<CURLcode> perform(CURLM* multi, CURL* easy, const Stop& stop) {
  if (curl_multi_add_handle(multi, easy) != CURLM_OK) return CURLE_FAILED_INIT;
  std::optional<CURLcode> outcome;
  while (!outcome && !stop.requested()) {
    int running = 0;
    if (curl_multi_perform(multi, &running) != CURLM_OK) outcome = CURLE_FAILED_INIT;
    int remaining = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &remaining)) {
      if (message->msg == CURLMSG_DONE) outcome = message->data.result;
    }
    if (outcome) break;
    curl_waitfd stop_fd{stop.fd(), CURL_WAIT_POLLIN, 0};
    const bool has_fd = stop.fd() >= 0;
    curl_multi_poll(multi, has_fd ? &stop_fd : nullptr, has_fd ? 1 : 0, 200, nullptr);
  }
  curl_multi_remove_handle(multi, easy);
  return outcome;
}

}  // namespace

std::optional<std::string> HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

RealHttp::RealHttp() : multi_(libcurl_ready() ? curl_multi_init() : nullptr) {}
RealHttp::~RealHttp() {
  const NoPipeSignal quiet;  // closing TLS connections writes to them
  curl_multi_cleanup(multi_);
}

// Sends a request and waits for the complete answer. A failure says if any of the request was
// sent.
tl::expected<HttpResponse, HttpFailure> RealHttp::send(const HttpRequest& request,
                                                       const HttpLimits& limits, const Stop& stop) {
  const auto make_error = [](What what, const char* message) {
    return tl::unexpected(HttpFailure{.what = what, .message = message});
  };
  const bool is_valid =
      fits_in_headers(request.method, request.url, request.headers, request.authorization);
  if (!is_valid) return make_error(What::invalid, "the request holds control characters");
  if (stop.requested()) return make_error(What::stopped, "interrupted");
  const NoPipeSignal no_pipe_signal;
  CurlHandle handle;
  Incoming incoming{.max_body_bytes = limits.body_bytes};
  set_up(handle, request, limits, incoming);
  if (multi_ == nullptr || !handle.good) return make_error(What::other, "libcurl cannot be set up");
  const std::optional<CURLcode> outcome = perform(multi_, handle.easy, stop);
  if (!outcome || *outcome != CURLE_OK) {
    HttpFailure http_failure =
        make_failure(outcome.value_or(CURLE_ABORTED_BY_CALLBACK), incoming, handle);
    if (!outcome)
      http_failure = {.what = What::stopped, .sent = http_failure.sent, .message = "interrupted"};
    http_failure.message = printable_error(http_failure.message, request.authorization);
    return tl::unexpected(std::move(http_failure));
  }
  long status = 0;
  curl_easy_getinfo(handle.easy, CURLINFO_RESPONSE_CODE, &status);
  return HttpResponse{static_cast<int>(status), std::move(incoming.head.headers),
                      std::move(incoming.body)};
}

}  // namespace weir::sys
