// The twin's GPU: its description, queries that both APIs have, and errors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/writer/system.h"
#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

const weir_runtime_twin* g_twin;
Once g_once;
__thread int t_device;
uint32_t g_used;  // atomic; a bit for each device
__thread int t_error;

// Maps the description of the simulated GPU that the environment names, if it is valid.
void load() {
  const char* path = getenv(WEIR_RUNTIME_TWIN_VARIABLE);
  size_t bytes = 0;
  const auto* blob =
      path == nullptr ? nullptr : static_cast<const weir_runtime_twin*>(map_file(path, &bytes));
  if (blob != nullptr && bytes >= sizeof(Description) && blob->magic == WEIR_RUNTIME_TWIN_MAGIC &&
      blob->bytes == sizeof *blob && blob->devices > 0 &&
      blob->devices <= WEIR_RUNTIME_MOST_DEVICES && memchr(blob->name, 0, sizeof blob->name)) {
    g_twin = blob;
    return;
  }
  report_not_counting(WEIR_API_PREFIX " twin",
                      "no description of a GPU in " WEIR_RUNTIME_TWIN_VARIABLE ":",
                      path == nullptr ? "" : path, 0);
}

struct ErrorText {
  int error;
  const char *name, *text;
};
constexpr ErrorText k_errors[] = {
    {k_ok, WEIR_API_PREFIX "Success", "no error"},
    {k_invalid_value, WEIR_API_PREFIX "ErrorInvalidValue", "invalid argument"},
    {k_out_of_memory, WEIR_API_PREFIX WEIR_NO_MEMORY_NAME, "out of memory"},
    {k_invalid_configuration, WEIR_API_PREFIX "ErrorInvalidConfiguration",
     "invalid configuration argument"},
    {k_invalid_function, WEIR_API_PREFIX "ErrorInvalidDeviceFunction", "invalid device function"},
    {k_no_device, WEIR_API_PREFIX "ErrorNoDevice", WEIR_NO_DEVICE_TEXT},
    {k_invalid_device, WEIR_API_PREFIX "ErrorInvalidDevice", "invalid device ordinal"},
    {k_no_image, WEIR_API_PREFIX WEIR_NO_IMAGE_NAME,
     "no kernel image is available for execution on the device"},
    {k_invalid_handle, WEIR_API_PREFIX WEIR_INVALID_HANDLE_NAME, "invalid resource handle"},
    {k_symbol_not_found, WEIR_API_PREFIX WEIR_NOT_FOUND_NAME, "named symbol not found"},
    {719, WEIR_API_PREFIX "ErrorLaunchFailure", "unspecified launch failure"},
    {600, WEIR_API_PREFIX "ErrorNotReady", "device not ready"},
    {k_out_of_resources, WEIR_API_PREFIX "ErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {k_peer_enabled, WEIR_API_PREFIX "ErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {k_host_registered, WEIR_API_PREFIX "ErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {k_host_not_registered, WEIR_API_PREFIX "ErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {k_not_supported, WEIR_API_PREFIX "ErrorNotSupported", "operation not supported"},
    {k_capture_unsupported, WEIR_API_PREFIX "ErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {k_capture_broken, WEIR_API_PREFIX "ErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {k_update_failed, WEIR_API_PREFIX "ErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints "
     "specific to instantiated graph update"},
    WEIR_OWN_ERRORS};
const ErrorText& find_error(int error) {
  static constexpr ErrorText k_unknown{0, "unrecognized error code", "unrecognized error code"};
  for (const ErrorText& entry : k_errors) {
    if (entry.error == error) return entry;
  }
  return k_unknown;
}

}  // namespace

const weir_runtime_twin* twin() {
  g_once.run(load);
  return g_twin;
}

int attribute(int number) {
  if (twin() == nullptr || number < 0 || number >= WEIR_RUNTIME_ATTRIBUTES) return 0;
  return twin()->attributes[number];
}

int device_count() { return twin() == nullptr ? 0 : static_cast<int>(twin()->devices); }
int driver_version() { return twin() == nullptr ? 0 : twin()->driver_version; }

int device() { return t_device; }
void set_device(int index) {
  t_device = index;
  __atomic_fetch_or(&g_used, 1U << index, __ATOMIC_RELAXED);
}
bool is_used(int index) { return (__atomic_load_n(&g_used, __ATOMIC_RELAXED) >> index & 1U) != 0; }
int check_device(int index) {
  if (twin() == nullptr) return fail(k_no_device);
  return success_if(index >= 0 && index < device_count(), k_invalid_device);
}
const char* error_name(int error) { return find_error(error).name; }
const char* error_text(int error) { return find_error(error).text; }
int fail(int error) {
  t_error = error;
  return error;
}

WEIR_RUNTIME(GetDeviceCount, (int* count)) {
  *count = device_count();
  return success_if(*count > 0, k_no_device);
}
WEIR_RUNTIME(GetDevice, (int* out)) {
  if (twin() == nullptr) return fail(k_no_device);
  *out = t_device;
  return k_ok;
}
WEIR_RUNTIME(SetDevice, (int index)) {
  if (const int error = check_device(index)) return error;
  set_device(index);
  return k_ok;
}
WEIR_RUNTIME(SetDeviceFlags, (unsigned)) { return k_ok; }
WEIR_RUNTIME(DeviceReset, ()) { return k_ok; }
WEIR_RUNTIME(DeviceGetAttribute, (int* out, int number, int index)) {
  if (const int error = check_device(index)) return error;
  *out = attribute(number) + (number == k_pci_bus ? index : 0);
  return k_ok;
}
WEIR_RUNTIME(DeviceGetPCIBusId, (char* out, int size, int index)) {
  if (twin() == nullptr) return fail(k_no_device);
  snprintf(out, static_cast<size_t>(size), "%04x:%02x:%02x.0", attribute(k_pci_domain),
           attribute(k_pci_bus) + index, attribute(k_pci_device));
  return k_ok;
}
WEIR_RUNTIME(DeviceEnablePeerAccess, (int, unsigned)) {
  return success_if(twin() != nullptr && twin()->peers != 0, k_not_supported);
}
WEIR_RUNTIME(DeviceDisablePeerAccess, (int)) { return k_ok; }
WEIR_RUNTIME(DriverGetVersion, (int* version)) {
  *version = driver_version();
  return k_ok;
}
WEIR_RUNTIME(GetLastError, ()) {
  const int error = t_error;
  t_error = k_ok;
  return error;
}
WEIR_RUNTIME(PeekAtLastError, ()) { return t_error; }

WEIR_RUNTIME_OF(const char*, GetErrorString, (int error)) { return error_text(error); }
WEIR_RUNTIME_OF(const char*, GetErrorName, (int error)) { return error_name(error); }

WEIR_RUNTIME(DeviceCanAccessPeer, (int* can_access, int from, int peer)) {
  *can_access = twin() != nullptr && twin()->peers != 0 && from != peer ? 1 : 0;
  return k_ok;
}
}  // namespace weir_probe::runtime_twin
