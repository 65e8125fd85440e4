// Finds the functions of the library that a probe intercepts.
#include "gate/probes/inject/streams/front.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "gate/probes/inject/writer/old_symbols.h"

namespace weir_probe::streams {
namespace {

struct Search {
  const char* name;
  int skip;  // number of matches to pass over
  char path[4096];
};

// Visits one loaded library: sets `path` and returns 1 at the wanted match, else returns 0.
int find_path(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (info->dlpi_name == nullptr || strstr(info->dlpi_name, search->name) == nullptr) return 0;
  if (search->skip-- > 0) return 0;
  return copy_text(search->path, sizeof search->path, info->dlpi_name) ? 1 : 0;
}

}  // namespace

__thread const char* t_outermost __attribute__((tls_model("initial-exec")));

WEIR_EXPORTED int weir_probe_in_call() { return t_outermost == nullptr ? 0 : 1; }

// Finds the API's own function of this name behind weir's: in the global scope, then in each
// loaded library of the API. Null if there is none. dlopen takes the lock that dl_iterate_phdr
// holds: so the path is found first, and the handle after it.
void* find_below(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  for (const char* const* library = k_libraries; *library != nullptr; ++library) {
    for (int skip = 0; function == nullptr; ++skip) {
      Search search{*library, skip, ""};
      if (dl_iterate_phdr(find_path, &search) == 0) break;
      void* handle = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
      if (handle != nullptr) function = dlsym(handle, name);
    }
  }
  return function;
}

void* next_function(void** slot, const char* name) {
  void* function = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (function != nullptr) return function;
  function = find_below(name);
  __atomic_store_n(slot, function, __ATOMIC_RELEASE);
  return function;
}

}  // namespace weir_probe::streams
