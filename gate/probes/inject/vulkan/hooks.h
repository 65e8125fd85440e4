// How the layer stands in front: each file makes a table of its own list (state.h).
//
// (On Linux Vulkan's functions have C's calling convention, so none is named here.)
#pragma once

#include <vulkan/vulkan.h>

#include "gate/probes/inject/vulkan/keep.h"
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
struct Below {
  using Function = F;
  static F of(const Device* device) { return device->next.*member; }
};
#define WEIR_NEXT(name) Below<PFN_vk##name, &NextDevice::name>

// Before<WEIR_NEXT(DestroyFence), note>: note(device, the other arguments), then the call goes
// down. Where there is none below (of names, see get_device_proc_addr) that is all.
template <class Next, auto note, class Function = typename Next::Function>
struct Before;
template <class Next, auto note, class R, class... A>
struct Before<Next, note, R (*)(VkDevice, A...)> {
  static R call(VkDevice handle, A... arguments) {
    Device* device = device_of(handle);
    note(device, arguments...);
    const auto next = Next::of(device);
    return next == nullptr ? R() : next(handle, arguments...);
  }
};
// The same of a command, with its buffer's record.
template <class Next, auto note, class R, class... A>
struct Before<Next, note, R (*)(VkCommandBuffer, A...)> {
  static R call(VkCommandBuffer handle, A... arguments) {
    CommandBuffer* buffer = command_buffer(handle);
    if (__builtin_expect(buffer == nullptr, 0)) {  // memory was out when it was made
      const auto next = Next::of(device_of(handle));
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

// After<WEIR_NEXT(CreateFence), note>: note(device, the other arguments) when the call came back
// with success.
template <class Next, auto note, class Function = typename Next::Function>
struct After;
template <class Next, auto note, class R, class... A>
struct After<Next, note, R (*)(VkDevice, A...)> {
  static R call(VkDevice handle, A... arguments) {
    Device* device = device_of(handle);
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

// Of recording kernels: note(what is kept of the device, the other arguments).
template <auto note>
constexpr auto kept = [](Device* device, auto... arguments) {
  if (device->kept != nullptr) note(device->kept, arguments...);
};

// Of destroying: what was kept of an object in `table` goes.
template <auto table>
constexpr auto forget = [](auto* owner, auto handle, const VkAllocationCallbacks*) {
  free((owner->*table).remove(number(handle)));
};

#define WEIR_HOOK(name, function, when) \
  { "vk" #name, untyped<PFN_vk##name>(function), When::when }
#define WEIR_BEFORE(name, note, when) WEIR_HOOK(name, (Before<WEIR_NEXT(name), note>::call), when)
#define WEIR_AFTER(name, note, when) WEIR_HOOK(name, (After<WEIR_NEXT(name), note>::call), when)
// By a function of ours that calls the one below itself: function<WEIR_NEXT(name)>.
#define WEIR_THROUGH(name, function, when) WEIR_HOOK(name, function<WEIR_NEXT(name)>, when)
// A row of the lists in state.h.
#define WEIR_ROW(how, name, function, when) WEIR_##how(name, function, when),

}  // namespace weir_probe
