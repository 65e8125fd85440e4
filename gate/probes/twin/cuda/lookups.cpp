// Functions that a program looks up by name instead of linking them. A probe is loaded before the
// twin, so the probe's function is found where there is one.
#include <dlfcn.h>
#include <stdio.h>

#include "gate/probes/inject/writer/old_symbols.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

int not_supported() { return k_not_supported; }

// Finds a function of the driver. The newest version comes first: cuMemAlloc is cuMemAlloc_v2. What
// the twin lacks gets a function that fails: torch demands a list of names before it calls any.
void* find_driver_function(const char* name) {
  static constexpr const char* k_endings[] = {"_v3", "_v2", ""};
  char versioned[256];
  for (const char* ending : k_endings) {
    snprintf(versioned, sizeof versioned, "%s%s", name, ending);
    if (void* function = dlsym(RTLD_DEFAULT, versioned)) return function;
  }
  return reinterpret_cast<void*>(&not_supported);
}

// A handle of the library that this function is in; null if it cannot be found.
void* find_own_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&not_supported), &info) == 0) return nullptr;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

int look_up(const char* name, void** out, int* result) {
  *out = find_driver_function(name);
  constexpr int k_found = 0;
  if (result != nullptr) *result = k_found;
  return k_ok;
}

// Answers of functions that a compiled library calls and the twin lacks, by the beginning of their
// names; others answer k_not_supported.
struct Missing {
  const char* prefix;
  int answer;
};
constexpr Missing k_missing[] = {
    {"cublas", 15}, {"cudnn", 3000},  {"nccl", 3},   {"cusparse", 10}, {"cusolver", 16},
    {"cufft", 16},  {"cuFile", 5011}, {"cupti", 15}, {"nvshmem", 1},   {"nvml", 3}};

}  // namespace

void* find_probes_function(const char* name) {
  static const auto in_call =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "weir_probe_in_call"));
  if (in_call == nullptr || in_call() != 0) return nullptr;
  static void* const twin_library = find_own_library();
  if (twin_library == nullptr) return nullptr;
  void* front = dlsym(RTLD_DEFAULT, name);
  return front == dlsym(twin_library, name) ? nullptr : front;
}

WEIR_EXPORTED int cuGetProcAddress(const char* name, void** out, int, uint64_t) {
  return look_up(name, out, nullptr);
}
WEIR_EXPORTED int cuGetProcAddress_v2(const char* name, void** out, int, uint64_t, int* result) {
  return look_up(name, out, result);
}
WEIR_RUNTIME(GetDriverEntryPoint, (const char* name, void** out, unsigned long long, int* result)) {
  return look_up(name, out, result);
}
WEIR_RUNTIME(GetDriverEntryPointByVersion,
             (const char* name, void** out, unsigned, unsigned long long, int* result)) {
  return look_up(name, out, result);
}
// The undocumented tables of a real driver are not answered.
WEIR_EXPORTED int cuGetExportTable(const void** out, const void*) {
  *out = nullptr;
  return k_not_supported;
}

// Called by the stub of a function that the twin lacks (gate/probes/read/stub_library.hpp), once a
// call: returns the library's "not supported". Prints the name the first time.
WEIR_EXPORTED int weir_twin_missing(const char* name, uint32_t* called) {
  if (__atomic_exchange_n(called, 1U, __ATOMIC_RELAXED) == 0) {
    print_line(STDERR_FILENO, "weir: the CUDA twin lacks %s: it answers \"not supported\"\n", name);
  }
  for (const Missing& missing : k_missing) {
    if (strncmp(name, missing.prefix, strlen(missing.prefix)) == 0) return missing.answer;
  }
  return k_not_supported;
}

}  // namespace weir_probe::runtime_twin
