// libcurl's functions for a weir that is not linked with it (WEIR_STATIC): opened when the first
// request is made, so that measuring needs no libcurl on the machine. Where it is missing,
// curl_global_init says that it failed, and nothing else is called. A function that sys/http or
// sys/streams uses and that is not here does not link.
//
// Not linked, because Debian's static libcurl needs libraries that Debian has no static form of;
// and because distributions version its symbols in different ways: a look-up by name takes each.
#include <cstdarg>

#include <curl/curl.h>
#include <dlfcn.h>

// Macros that hold callers to three arguments.
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

namespace {

#ifdef __APPLE__
constexpr const char* k_names[] = {"/usr/lib/libcurl.4.dylib"};  // a part of macOS
constexpr const char* k_missing = "/usr/lib/libcurl.4.dylib is not on this machine";
#else
constexpr const char* k_names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
constexpr const char* k_missing = "libcurl.so.4 is not on this machine";
#endif

// Never closed: its threads and handlers may outlive any one request.
void* library() {
  static void* const k_library = [] {
    void* opened = nullptr;
    for (const char* name : k_names) {
      if (opened == nullptr) opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    return opened;
  }();
  return k_library;
}

template <class Function>
Function* real(Function* /*declared*/, const char* name) {
  return library() != nullptr ? reinterpret_cast<Function*>(dlsym(library(), name)) : nullptr;
}

// Newer headers have a const there.
template <class Result, class First, class... Others>
First first_of(Result (*function)(First, Others...));
using UrlToRead = decltype(first_of(&curl_url_get));

}  // namespace

// The real one, looked up once; what is answered where there is none.
#define WEIR_REAL(name, otherwise)                     \
  static auto* const real_##name = real(&name, #name); \
  if (real_##name == nullptr) return otherwise

extern "C" {

CURLcode curl_global_init(long flags) {
  WEIR_REAL(curl_global_init, CURLE_FAILED_INIT);
  return real_curl_global_init(flags);
}

CURL* curl_easy_init() {
  WEIR_REAL(curl_easy_init, nullptr);
  return real_curl_easy_init();
}
void curl_easy_cleanup(CURL* easy) {
  WEIR_REAL(curl_easy_cleanup, );
  real_curl_easy_cleanup(easy);
}
// Every option is a pointer or as wide as one: long, curl_off_t.
static_assert(sizeof(void*) == sizeof(long) && sizeof(void*) == sizeof(curl_off_t));
CURLcode curl_easy_setopt(CURL* easy, CURLoption option, ...) {
  WEIR_REAL(curl_easy_setopt, CURLE_FAILED_INIT);
  va_list rest;
  va_start(rest, option);
  void* value = va_arg(rest, void*);
  va_end(rest);
  return real_curl_easy_setopt(easy, option, value);
}
CURLcode curl_easy_getinfo(CURL* easy, CURLINFO info, ...) {
  WEIR_REAL(curl_easy_getinfo, CURLE_FAILED_INIT);
  va_list rest;
  va_start(rest, info);
  void* value = va_arg(rest, void*);
  va_end(rest);
  return real_curl_easy_getinfo(easy, info, value);
}
CURLcode curl_easy_perform(CURL* easy) {
  WEIR_REAL(curl_easy_perform, CURLE_FAILED_INIT);
  return real_curl_easy_perform(easy);
}
const char* curl_easy_strerror(CURLcode code) {
  WEIR_REAL(curl_easy_strerror, k_missing);
  return real_curl_easy_strerror(code);
}

CURLM* curl_multi_init() {
  WEIR_REAL(curl_multi_init, nullptr);
  return real_curl_multi_init();
}
CURLMcode curl_multi_cleanup(CURLM* multi) {
  WEIR_REAL(curl_multi_cleanup, CURLM_INTERNAL_ERROR);
  return real_curl_multi_cleanup(multi);
}
CURLMcode curl_multi_add_handle(CURLM* multi, CURL* easy) {
  WEIR_REAL(curl_multi_add_handle, CURLM_INTERNAL_ERROR);
  return real_curl_multi_add_handle(multi, easy);
}
CURLMcode curl_multi_remove_handle(CURLM* multi, CURL* easy) {
  WEIR_REAL(curl_multi_remove_handle, CURLM_INTERNAL_ERROR);
  return real_curl_multi_remove_handle(multi, easy);
}
CURLMcode curl_multi_perform(CURLM* multi, int* running) {
  WEIR_REAL(curl_multi_perform, CURLM_INTERNAL_ERROR);
  return real_curl_multi_perform(multi, running);
}
CURLMcode curl_multi_poll(CURLM* multi, curl_waitfd* more, unsigned count, int timeout,
                          int* ready) {
  WEIR_REAL(curl_multi_poll, CURLM_INTERNAL_ERROR);
  return real_curl_multi_poll(multi, more, count, timeout, ready);
}
CURLMcode curl_multi_socket_action(CURLM* multi, curl_socket_t socket, int events, int* running) {
  WEIR_REAL(curl_multi_socket_action, CURLM_INTERNAL_ERROR);
  return real_curl_multi_socket_action(multi, socket, events, running);
}
// As with curl_easy_setopt: functions are as wide as pointers.
CURLMcode curl_multi_setopt(CURLM* multi, CURLMoption option, ...) {
  WEIR_REAL(curl_multi_setopt, CURLM_INTERNAL_ERROR);
  va_list rest;
  va_start(rest, option);
  void* value = va_arg(rest, void*);
  va_end(rest);
  return real_curl_multi_setopt(multi, option, value);
}
CURLMsg* curl_multi_info_read(CURLM* multi, int* left) {
  WEIR_REAL(curl_multi_info_read, nullptr);
  return real_curl_multi_info_read(multi, left);
}
const char* curl_multi_strerror(CURLMcode code) {
  WEIR_REAL(curl_multi_strerror, k_missing);
  return real_curl_multi_strerror(code);
}

curl_slist* curl_slist_append(curl_slist* list, const char* text) {
  WEIR_REAL(curl_slist_append, nullptr);
  return real_curl_slist_append(list, text);
}
void curl_slist_free_all(curl_slist* list) {
  WEIR_REAL(curl_slist_free_all, );
  real_curl_slist_free_all(list);
}

CURLU* curl_url() {
  WEIR_REAL(curl_url, nullptr);
  return real_curl_url();
}
CURLUcode curl_url_set(CURLU* url, CURLUPart part, const char* text, unsigned flags) {
  WEIR_REAL(curl_url_set, CURLUE_OUT_OF_MEMORY);
  return real_curl_url_set(url, part, text, flags);
}
CURLUcode curl_url_get(UrlToRead url, CURLUPart part, char** text, unsigned flags) {
  WEIR_REAL(curl_url_get, CURLUE_OUT_OF_MEMORY);
  return real_curl_url_get(url, part, text, flags);
}
void curl_url_cleanup(CURLU* url) {
  WEIR_REAL(curl_url_cleanup, );
  real_curl_url_cleanup(url);
}
void curl_free(void* text) {
  WEIR_REAL(curl_free, );
  real_curl_free(text);
}

}  // extern "C"
