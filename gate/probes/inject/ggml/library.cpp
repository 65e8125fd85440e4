// Which ggml a call was meant for, and whether its tensors look as they are known to.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/inject/writer/file.h"
#include "gate/probes/inject/writer/old_symbols.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

constexpr size_t k_tensor_checks = 256;
constexpr size_t k_header_of_object = 32;  // ggml_tensor_overhead() counts it in
constexpr size_t k_tensor_size = 336;
constexpr size_t k_data_at = 248;
constexpr size_t k_name_at = 256;
constexpr int k_most_types = 256;
constexpr const char* k_sentinel = "ggml_backend_synchronize";

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Library* g_global;    // atomic: the one that everybody sees
bool g_has_private;   // atomic: some call sites belong to others
Table g_sites;        // return address -> Library
Table g_by_sentinel;  // address of its ggml_backend_synchronize -> Library
bool g_complained;
// Stands for call sites within the probe: ggml left a function of its own by a jump.
Library g_ours;

bool is_ours(const void* address) {
  Dl_info ours, theirs;
  if (dladdr(reinterpret_cast<const void*>(&g_lock), &ours) == 0) return false;
  return dladdr(address, &theirs) != 0 && theirs.dli_fbase == ours.dli_fbase;
}

// dlsym that does not find ourselves.
void* find(void* scope, const char* name) {
  void* found = dlsym(scope, name);
  return found == nullptr || is_ours(found) ? nullptr : found;
}

Library* made_from(void* scope, void* sentinel) {
  const uint64_t key = reinterpret_cast<uint64_t>(sentinel);
  if (auto* known = g_by_sentinel.get<Library>(key)) return known;
  auto* library = static_cast<Library*>(calloc(1, sizeof(Library)));
  if (library == nullptr) return nullptr;
#define WEIR_FETCH(name, ...) \
  library->ggml.name = reinterpret_cast<decltype(library->ggml.name)>(find(scope, "ggml_" #name));
#define WEIR_FETCH_MOVE(how, name, ...) WEIR_FETCH(name)
  WEIR_GGML_MOVES(WEIR_FETCH_MOVE)
  WEIR_GGML_INTERPOSED(WEIR_FETCH)
  WEIR_GGML_ASKED(WEIR_FETCH)
#undef WEIR_FETCH_MOVE
#undef WEIR_FETCH
  if (!g_by_sentinel.insert(key, library)) {
    free(library);
    return nullptr;
  }
  return library;
}

Library* in_scope(void* scope) {
  void* sentinel = find(scope, k_sentinel);
  return sentinel == nullptr ? nullptr : made_from(scope, sentinel);
}

Library* in_object(const char* path) {
  if (path == nullptr || path[0] == '\0') return nullptr;
  // Never closed again: what we call must stay.
  void* handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  return handle == nullptr ? nullptr : in_scope(handle);
}

struct Paths {
  char* at[1024];
  size_t count;
};

int note_path(dl_phdr_info* info, size_t, void* data) {
  auto* paths = static_cast<Paths*>(data);
  if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0') return 0;
  if (paths->count == sizeof paths->at / sizeof paths->at[0]) return 1;
  paths->at[paths->count] = strdup(info->dlpi_name);
  if (paths->at[paths->count] != nullptr) ++paths->count;
  return 0;
}

// For a call whose return address lies in a library without a ggml of its own: the function that
// called us left by a jump.
Library* anywhere() {
  auto* paths = static_cast<Paths*>(calloc(1, sizeof(Paths)));
  if (paths == nullptr) return nullptr;
  dl_iterate_phdr(note_path, paths);
  Library* found = nullptr;
  for (size_t i = 0; i < paths->count; ++i) {
    if (found == nullptr) found = in_object(paths->at[i]);
    free(paths->at[i]);
  }
  free(paths);
  return found;
}

Library* search(const void* caller) {
  if (Library* global = in_scope(RTLD_NEXT)) {
    __atomic_store_n(&g_global, global, __ATOMIC_RELEASE);
    return global;
  }
  if (is_ours(caller)) {
    g_sites.insert(reinterpret_cast<uint64_t>(caller), &g_ours);
    return t_meant;
  }
  Dl_info info;
  Library* library = nullptr;
  if (dladdr(caller, &info) != 0) library = in_object(info.dli_fname);
  if (library == nullptr && t_meant != nullptr) return t_meant;
  if (library == nullptr) library = anywhere();
  if (library == nullptr) {
    if (!g_complained) complain("ggml", "cannot find the functions of", "ggml", 0);
    g_complained = true;
    return nullptr;
  }
  g_sites.insert(reinterpret_cast<uint64_t>(caller), library);
  __atomic_store_n(&g_has_private, true, __ATOMIC_RELEASE);
  return library;
}

bool can_check(const Functions& ggml) {
  return ggml.tensor_overhead != nullptr && ggml.get_name != nullptr && ggml.get_data != nullptr &&
         ggml.nelements != nullptr && ggml.type_size != nullptr && ggml.type_name != nullptr &&
         ggml.element_size != nullptr;
}

// Does `tensor` look as tensors have since November 2024? What lies at fixed places is compared
// with what ggml itself says of the tensor. Reads no more than ggml says a tensor has.
bool layout_fits(const Functions& ggml, const Tensor* tensor) {
  if (!can_check(ggml) || ggml.tensor_overhead() != k_header_of_object + k_tensor_size)
    return false;
  const auto* at = reinterpret_cast<const char*>(tensor);
  if (ggml.get_name(tensor) != at + k_name_at) return false;
  if (ggml.get_data(tensor) != *reinterpret_cast<void* const*>(at + k_data_at)) return false;
  const TensorView view(tensor);
  int64_t elements = 1;
  for (int i = 0; i < 4; ++i) {
    if (view.ne()[i] < 0 || __builtin_mul_overflow(elements, view.ne()[i], &elements)) return false;
  }
  if (elements != ggml.nelements(tensor)) return false;
  const int type = view.type();
  return type >= 0 && type < k_most_types && ggml.type_size(type) == ggml.element_size(tensor);
}

}  // namespace

__thread Library* t_meant __attribute__((tls_model("initial-exec")));

Library* library_for(const void* caller) {
  Library* global = __atomic_load_n(&g_global, __ATOMIC_ACQUIRE);
  if (global != nullptr && !__atomic_load_n(&g_has_private, __ATOMIC_RELAXED)) return global;
  void* known = g_sites.find(reinterpret_cast<uint64_t>(caller));
  if (known == &g_ours) return t_meant;
  if (known != nullptr) return static_cast<Library*>(known);
  if (global != nullptr) return global;
  const Locked locked(&g_lock);
  return search(caller);
}

const char* file_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) == 0 ? nullptr : info.dli_fname;
}

void reset_library_lock_after_fork() { pthread_mutex_init(&g_lock, nullptr); }

bool readable(Library* library, const Tensor* tensor) {
  const int layout = __atomic_load_n(&library->layout, __ATOMIC_RELAXED);
  if (layout == k_unknown || tensor == nullptr) return false;
  if (layout == k_fits) return true;
  if (!layout_fits(library->ggml, tensor)) {
    const int before = __atomic_exchange_n(&library->layout, k_unknown, __ATOMIC_RELAXED);
    set_flag(&g.file, WEIR_PROBE_SHAPES_UNKNOWN);
    if (before != k_unknown) {
      complain("ggml", "shapes and directions, since it does not know how tensors look in this",
               "ggml", 0);
    }
    return false;
  }
  const int seen = __atomic_add_fetch(&library->tensors_seen, 1, __ATOMIC_RELAXED);
  if (seen >= static_cast<int>(k_tensor_checks)) {
    int unproven = k_unproven;
    __atomic_compare_exchange_n(&library->layout, &unproven, k_fits, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
  }
  return true;
}

}  // namespace weir_probe
