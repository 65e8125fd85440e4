#include "gate/probes/inject/streams/front.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "gate/probes/inject/writer/old_symbols.h"

namespace weir_probe::streams {
namespace {

struct Search {
  const char* wanted;
  int skip;  // so many that fit were looked at already
  char path[4096];
};

int find_path(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (info->dlpi_name == nullptr || strstr(info->dlpi_name, search->wanted) == nullptr) return 0;
  if (search->skip-- > 0) return 0;
  return copy_text(search->path, sizeof search->path, info->dlpi_name) ? 1 : 0;
}

}  // namespace

__thread const char* t_outermost __attribute__((tls_model("initial-exec")));

// dlopen takes the lock that dl_iterate_phdr holds while it visits: first the path, then the
// handle.
void* look_up(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  for (const char* const* library = k_libraries; *library != nullptr; ++library) {
    for (int skip = 0; found == nullptr; ++skip) {
      Search search{*library, skip, ""};
      if (dl_iterate_phdr(find_path, &search) == 0) break;
      void* handle = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
      if (handle != nullptr) found = dlsym(handle, name);
    }
  }
  return found;
}

void* next_function(void** slot, const char* name) {
  void* known = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (known != nullptr) return known;
  known = look_up(name);
  __atomic_store_n(slot, known, __ATOMIC_RELEASE);
  return known;
}

}  // namespace weir_probe::streams
