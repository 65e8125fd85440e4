// libcurl's functions for a weir that is not linked with it (WEIR_STATIC): opened when the first
// request is made, so that measuring needs no libcurl on the machine. Where it is missing,
// curl_global_init says that it failed, and nothing else is called. A function that sys/http or
// sys/streams uses and that is not here does not link.
//
// Not linked, because Debian's static libcurl needs libraries that Debian has no static form of;
// and because distributions version its symbols in different ways: a look-up by name takes each.
#include <cstdarg>
#include <type_traits>

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

// The answer of every function if there is no library.
template <class Result>
Result missing() {
  if constexpr (std::is_same_v<Result, CURLcode>) return CURLE_FAILED_INIT;
  if constexpr (std::is_same_v<Result, CURLMcode>) return CURLM_INTERNAL_ERROR;
  if constexpr (std::is_same_v<Result, CURLUcode>) return CURLUE_OUT_OF_MEMORY;
  if constexpr (std::is_same_v<Result, const char*>) return k_missing;
  if constexpr (std::is_pointer_v<Result>) return nullptr;
}

template <class Result, class... Arguments>
auto real(Result (*)(Arguments...), const char* name) {
  using Function = Result (*)(Arguments...);
  auto* function = library() ? reinterpret_cast<Function>(dlsym(library(), name)) : nullptr;
  return function ? function : [](Arguments...) { return missing<Result>(); };
}

// Functions that set options and read facts. Their last argument is a pointer or as wide as one: a
// long, a curl_off_t, a function.
static_assert(sizeof(void*) == sizeof(long) && sizeof(void*) == sizeof(curl_off_t));
template <class Result, class Handle, class Option>
Result option_missing(Handle, Option, ...) {
  return missing<Result>();
}
template <class Result, class Handle, class Option>
auto real(Result (*)(Handle, Option, ...), const char* name) {
  using Function = Result (*)(Handle, Option, ...);
  auto* function = library() ? reinterpret_cast<Function>(dlsym(library(), name)) : nullptr;
  return function ? function : option_missing<Result, Handle, Option>;
}

// Newer headers have a const there.
template <class Result, class First, class... Others>
First find_first(Result (*function)(First, Others...));
using UrlToRead = decltype(find_first(&curl_url_get));

}  // namespace

// The real one, looked up once.
#define WEIR_REAL(result, name, parameters, ...)    \
  result name parameters {                          \
    static auto* const k_real = real(&name, #name); \
    return k_real(__VA_ARGS__);                     \
  }
#define WEIR_REAL_OPTION(result, name, handle, options) \
  result name(handle* owner, options option, ...) {     \
    static auto* const k_real = real(&name, #name);     \
    va_list rest;                                       \
    va_start(rest, option);                             \
    void* value = va_arg(rest, void*);                  \
    va_end(rest);                                       \
    return k_real(owner, option, value);                \
  }

extern "C" {

WEIR_REAL(CURLcode, curl_global_init, (long flags), flags)

WEIR_REAL(CURL*, curl_easy_init, ())
WEIR_REAL(void, curl_easy_cleanup, (CURL * easy), easy)
WEIR_REAL_OPTION(CURLcode, curl_easy_setopt, CURL, CURLoption)
WEIR_REAL_OPTION(CURLcode, curl_easy_getinfo, CURL, CURLINFO)
WEIR_REAL(const char*, curl_easy_strerror, (CURLcode code), code)

WEIR_REAL(CURLM*, curl_multi_init, ())
WEIR_REAL(CURLMcode, curl_multi_cleanup, (CURLM * multi), multi)
WEIR_REAL(CURLMcode, curl_multi_add_handle, (CURLM * multi, CURL* easy), multi, easy)
WEIR_REAL(CURLMcode, curl_multi_remove_handle, (CURLM * multi, CURL* easy), multi, easy)
WEIR_REAL(CURLMcode, curl_multi_perform, (CURLM * multi, int* running), multi, running)
WEIR_REAL(CURLMcode, curl_multi_poll,
          (CURLM * multi, curl_waitfd* more, unsigned count, int timeout, int* ready), multi, more,
          count, timeout, ready)
WEIR_REAL(CURLMcode, curl_multi_socket_action,
          (CURLM * multi, curl_socket_t socket, int events, int* running), multi, socket, events,
          running)
WEIR_REAL_OPTION(CURLMcode, curl_multi_setopt, CURLM, CURLMoption)
WEIR_REAL(CURLMsg*, curl_multi_info_read, (CURLM * multi, int* left), multi, left)

WEIR_REAL(curl_slist*, curl_slist_append, (curl_slist * list, const char* text), list, text)
WEIR_REAL(void, curl_slist_free_all, (curl_slist * list), list)

WEIR_REAL(CURLU*, curl_url, ())
WEIR_REAL(CURLUcode, curl_url_set, (CURLU * url, CURLUPart part, const char* text, unsigned flags),
          url, part, text, flags)
WEIR_REAL(CURLUcode, curl_url_get, (UrlToRead url, CURLUPart part, char** text, unsigned flags),
          url, part, text, flags)
WEIR_REAL(void, curl_url_cleanup, (CURLU * url), url)
WEIR_REAL(void, curl_free, (void* text), text)

}  // extern "C"
