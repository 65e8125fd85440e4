// The OpenCL layer: named in OPENCL_LAYERS, the loader puts it between the program and the drivers.
// It passes every call on unchanged, and counts. Where it is entered: at the bottom of this file.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/events.h"
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {

Globals g = {};

namespace {

cl_icd_dispatch g_table;  // what the layer above, or the program, calls

// Command buffers and the like are reached through functions that only the driver knows: their
// calls pass the layer by. Asking is not using, so this is a warning, not an error.
void note_extension(const char* name, const void* found) {
  if (found == nullptr || name == nullptr || strncmp(name, "clEnqueue", 9) != 0) return;
  if (__atomic_exchange_n(&g.calls_unseen, true, __ATOMIC_RELAXED)) return;
  if (__atomic_load_n(&g.ready, __ATOMIC_ACQUIRE)) set_flag(&g.file, WEIR_PROBE_CALLS_UNSEEN);
  complain("opencl", "what goes through an extension,", name, 0);
}

void* CL_API_CALL get_extension_function(const char* name) {
  void* found = g.next.clGetExtensionFunctionAddress(name);
  note_extension(name, found);
  return found;
}

void* CL_API_CALL get_extension_function_for_platform(cl_platform_id platform, const char* name) {
  void* found = g.next.clGetExtensionFunctionAddressForPlatform(platform, name);
  note_extension(name, found);
  return found;
}

}  // namespace
}  // namespace weir_probe::opencl

using namespace weir_probe::opencl;

#define WEIR_EXPORTED extern "C" __attribute__((visibility("default")))

WEIR_EXPORTED cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void* value,
                                                size_t* size_out) {
  const auto answer = [&](const void* from, size_t needed) {
    if (value != nullptr && size < needed) return CL_INVALID_VALUE;
    if (value != nullptr) memcpy(value, from, needed);
    if (size_out != nullptr) *size_out = needed;
    return CL_SUCCESS;
  };
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  constexpr char k_name[] = "weir";
  if (what == CL_LAYER_API_VERSION) return answer(&version, sizeof version);
  if (what == CL_LAYER_NAME) return answer(k_name, sizeof k_name);
  return CL_INVALID_VALUE;
}

WEIR_EXPORTED cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* below,
                                             cl_uint* entries_out, const cl_icd_dispatch** out) {
  constexpr cl_uint k_entries = sizeof(cl_icd_dispatch) / sizeof(void*);
  if (below == nullptr || entries_out == nullptr || out == nullptr) return CL_INVALID_VALUE;
  // An older loader has fewer; the rest stays null, and nothing stands in front of it.
  memcpy(static_cast<void*>(&g.next), below,
         (entries < k_entries ? entries : k_entries) * sizeof(void*));
  g_table = g.next;
  g.events_asked = secure_getenv(WEIR_PROBE_EVENTS_VARIABLE) != nullptr;
  put_objects(&g_table);
  put_commands(&g_table);
  put_syncs(&g_table);
  WEIR_PUT(&g_table, clGetExtensionFunctionAddress, get_extension_function);
  WEIR_PUT(&g_table, clGetExtensionFunctionAddressForPlatform, get_extension_function_for_platform);
  *entries_out = entries < k_entries ? entries : k_entries;
  *out = &g_table;
  return CL_SUCCESS;
}
