#include "gate/sys/curl_pieces.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <pthread.h>

#include "gate/base/text.hpp"

namespace weir::sys {
namespace {

bool fits_in_a_line(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F; });
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

bool CurlHandle::add(const std::string& line) {
  curl_slist* longer = curl_slist_append(headers, line.c_str());
  if (longer != nullptr) headers = longer;
  return longer != nullptr;
}

bool CurlHandle::add_all(const HttpHeaders& lines, const Secret& authorization) {
  bool good = true;
  for (const auto& [name, value] : lines) good = add(fmt::format("{}: {}", name, value)) && good;
  if (!authorization.empty()) good = add("Authorization: " + authorization.reveal()) && good;
  return add("Expect:") && good;  // no waiting for "100 Continue"
}

bool fits_in_headers(const std::string& method, const std::string& url, const HttpHeaders& headers,
                     const Secret& authorization) {
  return fits_in_a_line(method) && fits_in_a_line(url) && fits_in_a_line(authorization.reveal()) &&
         std::all_of(headers.begin(), headers.end(), [](const auto& header) {
           return fits_in_a_line(header.first) && fits_in_a_line(header.second);
         });
}

long curl_milliseconds(double seconds) { return std::lround(std::clamp(seconds * 1000, 1.0, 1e9)); }

std::string shown_words(std::string_view words, const Secret& authorization) {
  Masker masker;
  const std::string& value = authorization.reveal();  // "Bearer TOKEN"
  masker.add(Secret(value.substr(value.rfind(' ') + 1)));
  return text::printable(masker.mask(std::string(text::trim(words))));
}

}  // namespace weir::sys
