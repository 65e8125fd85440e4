// Which HIP runtime a call is meant for, and what only it can tell of its devices, kernels and
// graphs.
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "gate/probes/inject/hip/hip.h"
#include "gate/probes/inject/writer/old_symbols.h"

namespace weir_probe {
namespace hip {
namespace {

constexpr uint32_t k_vendor = 0x1002;

constexpr const char* k_library = "libamdhip64.so";

void* g_private;  // atomic: the runtime, where it was loaded out of sight (plug-ins)
Asked g_asked;
Once g_asked_once;

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

}  // namespace

void* next_function(void** slot, const char* name) {
  void* known = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (known != nullptr) return known;
  known = look_up(name);
  __atomic_store_n(slot, known, __ATOMIC_RELEASE);
  return known;
}

const Asked& asked() {
  g_asked_once.run([] {
#define WEIR_FETCH(name, result, parameters) \
  g_asked.name = reinterpret_cast<result(*) parameters>(look_up(#name));
    WEIR_HIP_ASKED(WEIR_FETCH)
#undef WEIR_FETCH
  });
  return g_asked;
}

void function_was_found(void* function, const char* name) {
  // The address may have been another function's, of a module that is gone.
  streams::forget_function(function);
  // The old name is left to itself: another thread may be reading it.
  char* copy = strdup(name);
  if (copy != nullptr) streams::g.names.insert(reinterpret_cast<uint64_t>(function), copy);
}

}  // namespace hip

namespace streams {

using namespace hip;

const char k_probe_name[] = "hip";

weir_probe_device describe(int device) {
  const Asked& ask = asked();
  weir_probe_device entry{};
  copy_text(entry.type, sizeof entry.type, "other");
  const uint64_t name = name_device(
      &entry, succeeds(ask.hipDeviceGetName, entry.name, int{sizeof entry.name - 1}, device));
  int version = 0, capability[2] = {};
  succeeds(ask.hipRuntimeGetVersion, &version);
  succeeds(ask.hipDeviceComputeCapability, &capability[0], &capability[1], device);
  entry.vendor = k_vendor;
  entry.driver_version = static_cast<uint32_t>(version);
  entry.feature_hash = hash_bytes(name, capability, sizeof capability);
  snprintf(entry.driver, sizeof entry.driver, "HIP runtime %d", version);
  classify_device(&entry);
  return entry;
}

int current_device() {
  int device = 0;
  return succeeds(asked().hipGetDevice, &device) ? device : 0;
}

const char* name_of(const Launch& launch, void* stream) {
  if (void* known = g.names.find(reinterpret_cast<uint64_t>(launch.function))) {
    return static_cast<const char*>(known);
  }
  const auto ask = asked().hipKernelNameRefByPtr;
  return ask == nullptr ? nullptr : ask(launch.function, stream);
}

bool is_captured(void* stream) {
  int status = 0;
  return succeeds(asked().hipStreamIsCapturing, stream, &status) && status != 0;
}

bool nodes_of(void* graph, void** nodes, size_t* count) {
  return succeeds(asked().hipGraphGetNodes, graph, nodes, count);
}

int type_of(void* node) {
  int type = -1;
  return succeeds(asked().hipGraphNodeGetType, node, &type) ? type : -1;
}

bool launch_of(void* node, Launch* out) {
  KernelNodeParams params{};
  if (!succeeds(asked().hipGraphKernelNodeGetParams, node, &params)) return false;
  out->function = params.function;
  out->sizes = sizes_of(params.grid, params.block, params.shared);
  return true;
}

void* child_of(void* node) {
  void* child = nullptr;
  return succeeds(asked().hipGraphChildGraphNodeGetGraph, node, &child) ? child : nullptr;
}

}  // namespace streams
}  // namespace weir_probe
