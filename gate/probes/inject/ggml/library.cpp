// Finds the ggml that a call goes on to, and checks if its tensors have the expected layout.
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
constexpr size_t k_min_tensor_size = 336;  // GGML_MAX_NAME of 64; in some wheels 160
constexpr size_t k_data_at = 248;
constexpr size_t k_name_at = 256;
constexpr int k_max_types = 256;
constexpr const char* k_sentinel = "ggml_backend_synchronize";

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Library* g_global;    // atomic: the ggml in the global scope
bool g_has_private;   // atomic: some call sites belong to other ggmls
Table g_sites;        // return address -> Library
Table g_by_sentinel;  // address of its ggml_backend_synchronize -> Library
bool g_complained;
// Stands for call sites within the probe, from which ggml calls after leaving a function by a jump.
Library g_probe_site;

// Returns true if `address` lies in this library.
bool is_in_probe(const void* address) {
  Dl_info probe, other;
  if (dladdr(reinterpret_cast<const void*>(&g_lock), &probe) == 0) return false;
  return dladdr(address, &other) != 0 && other.dli_fbase == probe.dli_fbase;
}

// Looks up a symbol like dlsym; null if it would find this library's own.
void* find_symbol(void* scope, const char* name) {
  void* symbol = dlsym(scope, name);
  return symbol == nullptr || is_in_probe(symbol) ? nullptr : symbol;
}

// Returns the record of a ggml library with all functions that the probe calls, looked up in
// `scope`. `sentinel`, one of its functions, identifies it. Null when memory is out.
Library* find_or_add_library(void* scope, void* sentinel) {
  const uint64_t key = reinterpret_cast<uint64_t>(sentinel);
  if (auto* stored = g_by_sentinel.get<Library>(key)) return stored;
  auto* library = static_cast<Library*>(calloc(1, sizeof(Library)));
  if (library == nullptr) return nullptr;
#define WEIR_FETCH(name, ...) \
  library->ggml.name =        \
      reinterpret_cast<decltype(library->ggml.name)>(find_symbol(scope, "ggml_" #name));
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

Library* find_in_scope(void* scope) {
  void* sentinel = find_symbol(scope, k_sentinel);
  return sentinel == nullptr ? nullptr : find_or_add_library(scope, sentinel);
}

// Returns the ggml that a loaded library sees, or null. The library is never closed, as its
// functions must stay loaded.
Library* find_in_file(const char* path) {
  if (path == nullptr || path[0] == '\0') return nullptr;
  void* handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  return handle == nullptr ? nullptr : find_in_scope(handle);
}

struct Paths {
  char* at[1024];
  size_t count;
};

int add_path(dl_phdr_info* info, size_t, void* data) {
  auto* paths = static_cast<Paths*>(data);
  if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0') return 0;
  if (paths->count == sizeof paths->at / sizeof paths->at[0]) return 1;
  paths->at[paths->count] = strdup(info->dlpi_name);
  if (paths->at[paths->count] != nullptr) ++paths->count;
  return 0;
}

// Searches all loaded libraries for a ggml; null if there is none. Needed if the calling function
// jumped here, so that the return address lies in another library.
Library* find_anywhere() {
  auto* paths = static_cast<Paths*>(calloc(1, sizeof(Paths)));
  if (paths == nullptr) return nullptr;
  dl_iterate_phdr(add_path, paths);
  Library* library = nullptr;
  for (size_t i = 0; i < paths->count; ++i) {
    if (library == nullptr) library = find_in_file(paths->at[i]);
    free(paths->at[i]);
  }
  free(paths);
  return library;
}

// Returns the ggml that a call belongs to, and remembers it for the call site: the global one,
// else that of the calling library, else any. Null when there is none. Needs g_lock.
Library* find_library(const void* caller) {
  if (Library* global = find_in_scope(RTLD_NEXT)) {
    __atomic_store_n(&g_global, global, __ATOMIC_RELEASE);
    return global;
  }
  if (is_in_probe(caller)) {
    g_sites.insert(reinterpret_cast<uint64_t>(caller), &g_probe_site);
    return t_library;
  }
  Dl_info caller_info;
  Library* library = nullptr;
  if (dladdr(caller, &caller_info) != 0) library = find_in_file(caller_info.dli_fname);
  if (library == nullptr && t_library != nullptr) return t_library;
  if (library == nullptr) library = find_anywhere();
  if (library == nullptr) {
    if (!g_complained) report_not_counting("ggml", "cannot find the functions of ggml", "", 0);
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

// Returns true if `tensor` has the memory layout of ggml since November 2024. Compares fields at
// fixed offsets with ggml's own answers, and reads no further than a tensor's size.
bool layout_fits(const Functions& ggml, const Tensor* tensor) {
  if (!can_check(ggml) || ggml.tensor_overhead() < k_header_of_object + k_min_tensor_size)
    return false;
  const auto* bytes = reinterpret_cast<const char*>(tensor);
  if (ggml.get_name(tensor) != bytes + k_name_at) return false;
  if (ggml.get_data(tensor) != *reinterpret_cast<void* const*>(bytes + k_data_at)) return false;
  const TensorView view(tensor);
  int64_t elements = 1;
  for (int i = 0; i < 4; ++i) {
    if (view.ne()[i] < 0 || __builtin_mul_overflow(elements, view.ne()[i], &elements)) return false;
  }
  if (elements != ggml.nelements(tensor)) return false;
  const int type = view.type();
  return type >= 0 && type < k_max_types && ggml.type_size(type) == ggml.element_size(tensor);
}

}  // namespace

__thread Library* t_library __attribute__((tls_model("initial-exec")));

Library* library_for(const void* caller) {
  Library* global = __atomic_load_n(&g_global, __ATOMIC_ACQUIRE);
  if (global != nullptr && !__atomic_load_n(&g_has_private, __ATOMIC_RELAXED)) return global;
  void* library = g_sites.find(reinterpret_cast<uint64_t>(caller));
  if (library == &g_probe_site) return t_library;
  if (library != nullptr) return static_cast<Library*>(library);
  if (global != nullptr) return global;
  const Locked locked(&g_lock);
  return find_library(caller);
}

const char* file_containing(const void* address) {
  Dl_info info;
  return dladdr(address, &info) == 0 ? nullptr : info.dli_fname;
}

void reset_library_lock_after_fork() { pthread_mutex_init(&g_lock, nullptr); }

// Returns true if fields of the tensor can be read directly. The first k_tensor_checks tensors are
// checked; after one that does not fit, the result is always false.
bool is_readable(Library* library, const Tensor* tensor) {
  const int layout = __atomic_load_n(&library->layout, __ATOMIC_RELAXED);
  if (layout == k_unknown || tensor == nullptr) return false;
  if (layout == k_fits) return true;
  if (!layout_fits(library->ggml, tensor)) {
    const int earlier_layout = __atomic_exchange_n(&library->layout, k_unknown, __ATOMIC_RELAXED);
    set_flag(&g.file, WEIR_PROBE_SHAPES_UNKNOWN);
    if (earlier_layout != k_unknown) {
      report_not_counting(
          "ggml", "shapes and directions, since it does not know how tensors look in this ggml", "",
          0);
    }
    return false;
  }
  const int checked = __atomic_add_fetch(&library->tensors_checked, 1, __ATOMIC_RELAXED);
  if (checked >= static_cast<int>(k_tensor_checks)) {
    int unproven = k_unproven;
    __atomic_compare_exchange_n(&library->layout, &unproven, k_fits, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
  }
  return true;
}

}  // namespace weir_probe
