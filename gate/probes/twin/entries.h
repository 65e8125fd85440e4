// The table of the driver's functions: each file brings its own part.
#pragma once

#include "gate/probes/twin/state.h"

namespace weir_twin {

enum Level : uint8_t { k_global, k_instance, k_physical, k_device };

struct Entry {
  const char* name;
  PFN_vkVoidFunction function;
  Level level;
  uint8_t core;           // there since Vulkan 1.(core - 1); 0: only with the extension
  const char* extension;  // a device's, which must be enabled; null: an instance's or none
};
struct Entries {
  const Entry* first;
  uint32_t count;
};
template <uint32_t n>
Entries all_of(const Entry (&entries)[n]) {
  return {entries, n};
}

template <class F>
PFN_vkVoidFunction untyped(F function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}
template <class F>
PFN_vkVoidFunction checked(F function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}
#define WEIR_TWIN_AT(level, core, name, function) \
  { "vk" #name, checked<PFN_vk##name>(function), level, core, nullptr }
#define WEIR_TWIN_CORE(minor, name, function) \
  { "vk" #name, checked<PFN_vk##name>(function), k_device, minor + 1, nullptr }
#define WEIR_TWIN_EXTENSION(extension, name, function) \
  { "vk" #name, checked<PFN_vk##name>(function), k_device, 0, extension }

// A command that is accepted and does nothing.
template <class F>
struct Swallow;
template <class... A>
struct Swallow<void(VKAPI_PTR*)(A...)> {
  static VKAPI_ATTR void VKAPI_CALL call(A...) {}
};
template <class... A>
struct Swallow<VkResult(VKAPI_PTR*)(A...)> {
  static VKAPI_ATTR VkResult VKAPI_CALL call(A...) { return VK_SUCCESS; }
};

// A function that a twin does not have: said once, and an error where one can be returned.
template <size_t n>
struct Text {
  char letters[n];
  constexpr Text(const char (&text)[n]) {  // NOLINT: made from a literal
    for (size_t i = 0; i < n; ++i) letters[i] = text[i];
  }
};
template <class F, Text name>
struct Refusal;
template <class R, class Of, class... A, Text name>
struct Refusal<R(VKAPI_PTR*)(Of, A...), name> {
  static VKAPI_ATTR R VKAPI_CALL call(Of object, A...) {
    static bool said = false;
    refuse(&said, name.letters, name_of(object));
    if constexpr (__is_same(R, VkResult)) {
      return VK_ERROR_FEATURE_NOT_PRESENT;
    } else {
      return R();
    }
  }
};

Entries instance_entries();
Entries properties_entries();
Entries device_entries();
Entries memory_entries();
Entries object_entries();
Entries record_entries();
Entries submit_entries();
Entries sync_entries();
Entries query_entries();
Entries refused_entries();

PFN_vkVoidFunction instance_function(const char* name);
// Null for what the device does not have.
PFN_vkVoidFunction device_function(const Device* device, const char* name);

}  // namespace weir_twin
