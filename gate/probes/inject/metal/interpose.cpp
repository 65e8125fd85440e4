// The entry of the library: intercepts the functions that give a program its devices, and hooks
// methods of classes.
#include "gate/probes/inject/metal/state.h"
#ifndef __APPLE__
#include <dlfcn.h>
#endif

namespace weir_probe::metal {

thread_local const char* t_outermost;

namespace {

IMP function_at(const void* array, uint32_t index) {
  IMP function;
  memcpy(&function, static_cast<const char*>(array) + index * sizeof function, sizeof function);
  return function;
}

// Replaces a class's method by the hook's function, unless that was done. False when all
// replacements of the hook are in use.
bool put_hook(const Hook& hook, Class object_type) {
  Method method = class_getInstanceMethod(object_type, sel_registerName(hook.selector));
  if (method == nullptr) return true;
  IMP original = method_getImplementation(method);
  for (uint32_t i = 0; i < k_slots; ++i) {
    // A class made at run time may have been given a replacement as its own method.
    if ((i < *hook.used && hook.methods[i] == method) ||
        function_at(hook.replacements, i) == original) {
      return true;
    }
  }
  if (*hook.used == k_slots) return false;
  const uint32_t slot = (*hook.used)++;
  hook.methods[slot] = method;
  __atomic_store_n(static_cast<IMP*>(hook.originals) + slot, original, __ATOMIC_RELEASE);
  method_setImplementation(method, function_at(hook.replacements, slot));
  return true;
}

}  // namespace

bool put_hooks(const Hooks& hooks, id object) {
  bool has_room = true;
  before_changes(object);
  for (const Hook& hook : hooks) has_room = put_hook(hook, object_class(object)) && has_room;
  after_changes(object);
  return has_room;
}

namespace {

id hook_device(id device) {
  hook_class(k_device, device);
  return device;
}

// Hooks the class of each device in an NSArray, and returns the array.
id hook_devices(id devices) {
  const auto count = call_if_implemented<unsigned long>(devices, "count");
  for (unsigned long i = 0; i < count; ++i)
    hook_class(k_device, call_if_implemented<id>(devices, "objectAtIndex:", i));
  return devices;
}

}  // namespace
}  // namespace weir_probe::metal

using weir_probe::metal::id;

#ifdef __APPLE__
// Weak, so that dyld accepts a system without these functions.
extern "C" __attribute__((weak_import)) id MTLCreateSystemDefaultDevice();
extern "C" __attribute__((weak_import)) id MTLCopyAllDevices();
extern "C" __attribute__((weak_import)) id MTLCopyAllDevicesWithObserver(id* observer, id handler);

namespace {
id default_device() { return weir_probe::metal::hook_device(MTLCreateSystemDefaultDevice()); }
id all_devices() { return weir_probe::metal::hook_devices(MTLCopyAllDevices()); }
id all_devices_observed(id* observer, id handler) {
  return weir_probe::metal::hook_devices(MTLCopyAllDevicesWithObserver(observer, handler));
}
struct Interpose {
  const void* ours;
  const void* theirs;
};
__attribute__((used, section("__DATA,__interpose"))) const Interpose k_interposed[] = {
    {reinterpret_cast<const void*>(&default_device),
     reinterpret_cast<const void*>(&MTLCreateSystemDefaultDevice)},
    {reinterpret_cast<const void*>(&all_devices),
     reinterpret_cast<const void*>(&MTLCopyAllDevices)},
    {reinterpret_cast<const void*>(&all_devices_observed),
     reinterpret_cast<const void*>(&MTLCopyAllDevicesWithObserver)},
};
}  // namespace
#else
// On other systems the library is preloaded in front of a stand-in for Metal, for tests.
namespace {
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
}  // namespace

extern "C" {
extern void* _NSConcreteGlobalBlock[32];
void* _NSConcreteGlobalBlock[32];
}

WEIR_EXPORTED id MTLCreateSystemDefaultDevice() {
  auto* real = next<id()>("MTLCreateSystemDefaultDevice");
  return real == nullptr ? nullptr : weir_probe::metal::hook_device(real());
}
WEIR_EXPORTED id MTLCopyAllDevices() {
  auto* real = next<id()>("MTLCopyAllDevices");
  return real == nullptr ? nullptr : weir_probe::metal::hook_devices(real());
}
#endif
