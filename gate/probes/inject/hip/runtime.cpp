// Which HIP runtime a call is meant for.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "gate/probes/inject/hip/hip.h"
#include "gate/probes/inject/writer/old_symbols.h"

namespace weir_probe::hip {
namespace {

constexpr const char* k_library = "libamdhip64.so";

void* g_private;  // atomic: the runtime, where it was loaded out of sight (plug-ins)
Asked g_asked;
bool g_asked_ready;  // atomic
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

struct Path {
  char text[4096];
};

int find_path(dl_phdr_info* info, size_t, void* data) {
  if (info->dlpi_name == nullptr || strstr(info->dlpi_name, k_library) == nullptr) return 0;
  if (strlen(info->dlpi_name) >= sizeof(Path::text)) return 0;
  strcpy(static_cast<Path*>(data)->text, info->dlpi_name);
  return 1;
}

// dlopen takes the lock that dl_iterate_phdr holds while it visits: first the path, then the
// handle.
void* private_runtime() {
  void* known = __atomic_load_n(&g_private, __ATOMIC_ACQUIRE);
  if (known != nullptr) return known;
  Path path;
  if (dl_iterate_phdr(find_path, &path) == 0) return nullptr;
  void* handle = dlopen(path.text, RTLD_LAZY | RTLD_NOLOAD);
  __atomic_store_n(&g_private, handle, __ATOMIC_RELEASE);
  return handle;
}

void* look_up(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found != nullptr) return found;
  void* runtime = private_runtime();
  return runtime == nullptr ? nullptr : dlsym(runtime, name);
}

void fetch_asked() {
#define WEIR_FETCH(name, result, parameters) \
  g_asked.name = reinterpret_cast<result(*) parameters>(look_up(#name));
  WEIR_HIP_ASKED(WEIR_FETCH)
#undef WEIR_FETCH
}

}  // namespace

void* next_function(void** slot, const char* name) {
  void* known = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (known != nullptr) return known;
  known = look_up(name);
  __atomic_store_n(slot, known, __ATOMIC_RELEASE);
  return known;
}

const Asked& asked() {
  if (__atomic_load_n(&g_asked_ready, __ATOMIC_ACQUIRE)) return g_asked;
  pthread_mutex_lock(&g_lock);
  fetch_asked();
  __atomic_store_n(&g_asked_ready, true, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&g_lock);
  return g_asked;
}

}  // namespace weir_probe::hip
