// How the layer intercepts functions: each file makes a table of its own list (state.h).
//
// (On Linux Vulkan's functions have C's calling convention, so none is named here.)
#pragma once

#include <vulkan/vulkan.h>

#include "gate/probes/inject/vulkan/capture.h"
#include "gate/probes/inject/vulkan/state.h"

namespace weir_probe {

enum class When : uint8_t { always, with_events, with_kernels, with_either };

struct Hook {
  const char* name;
  PFN_vkVoidFunction function;
  When when;
};
using Hooks = List<Hook>;
extern const Hooks k_device_hooks, k_submit_hooks, k_sync_hooks, k_kernel_hooks, k_buffer_hooks,
    k_command_hooks, k_object_hooks, k_pipeline_hooks, k_memory_hooks, k_binding_hooks;

template <class Function>
PFN_vkVoidFunction untyped(Function function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}

// A function below this layer.
template <class F, F NextDevice::*member>
struct NextFunction {
  using Function = F;
  static F of(const Device* device) { return device->next.*member; }
};
#define WEIR_NEXT(name) NextFunction<PFN_vk##name, &NextDevice::name>

// Before<WEIR_NEXT(DestroyFence), note> runs note(device, the other arguments), then calls the
// function below. Functions that give names may have none below (see get_device_proc_addr).
template <class Next, auto note, class Function = typename Next::Function>
struct Before;
template <class Next, auto note, class R, class... A>
struct Before<Next, note, R (*)(VkDevice, A...)> {
  static R call(VkDevice handle, A... arguments) {
    Device* device = find_device(handle);
    note(device, arguments...);
    const auto next = Next::of(device);
    return next == nullptr ? R() : next(handle, arguments...);
  }
};
// The same for a command: note(the buffer's record, the other arguments).
template <class Next, auto note, class R, class... A>
struct Before<Next, note, R (*)(VkCommandBuffer, A...)> {
  static R call(VkCommandBuffer handle, A... arguments) {
    CommandBuffer* buffer = command_buffer(handle);
    if (__builtin_expect(buffer == nullptr, 0)) {  // memory was out when it was allocated
      const auto next = Next::of(find_device(handle));
      return next == nullptr ? R() : next(handle, arguments...);
    }
    note(buffer, arguments...);
    const auto next = Next::of(buffer->device);
    if constexpr (__is_same(R, void)) {
      if (__builtin_expect(buffer->recording != nullptr, 0)) {
        if (next != nullptr) next(handle, arguments...);
        return serialize(buffer);
      }
    }
    return next == nullptr ? R() : next(handle, arguments...);
  }
};

// After<WEIR_NEXT(CreateFence), note> calls the function below, and on success runs note(device,
// the other arguments).
template <class Next, auto note, class Function = typename Next::Function>
struct After;
template <class Next, auto note, class R, class... A>
struct After<Next, note, R (*)(VkDevice, A...)> {
  static R call(VkDevice handle, A... arguments) {
    Device* device = find_device(handle);
    if constexpr (__is_same(R, void)) {
      Next::of(device)(handle, arguments...);
      note(device, arguments...);
    } else {
      const R result = Next::of(device)(handle, arguments...);
      if (result == VK_SUCCESS) note(device, arguments...);
      return result;
    }
  }
};

// Runs note(the device's capture, the other arguments) if the device is captured.
template <auto note>
constexpr auto with_capture = [](Device* device, auto... arguments) {
  if (device->capture != nullptr) note(device->capture, arguments...);
};

// Frees the record in `table` of an object that is destroyed.
template <auto table>
constexpr auto forget = [](auto* owner, auto handle, const VkAllocationCallbacks*) {
  free((owner->*table).remove(handle_key(handle)));
};

#define WEIR_HOOK(name, function, when) \
  { "vk" #name, untyped<PFN_vk##name>(function), When::when }
#define WEIR_BEFORE(name, note, when) WEIR_HOOK(name, (Before<WEIR_NEXT(name), note>::call), when)
#define WEIR_AFTER(name, note, when) WEIR_HOOK(name, (After<WEIR_NEXT(name), note>::call), when)
// The layer's function<WEIR_NEXT(name)> calls the one below itself.
#define WEIR_THROUGH(name, function, when) WEIR_HOOK(name, function<WEIR_NEXT(name)>, when)
// A row of the lists in state.h.
#define WEIR_ROW(how, name, function, when) WEIR_##how(name, function, when),

}  // namespace weir_probe
