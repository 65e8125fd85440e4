// How the library enters: it stands in front of the functions that give a program its devices, and
// of the methods of what it is given.
#include "gate/probes/inject/metal/state.h"
#ifndef __APPLE__
#include <dlfcn.h>
#endif

namespace weir_probe::metal {

thread_local const char* t_outermost;

namespace {

IMP function_at(const void* array, uint32_t index) {
  IMP found;
  memcpy(&found, static_cast<const char*>(array) + index * sizeof found, sizeof found);
  return found;
}

bool put(const Hook& hook, Class on) {
  Method method = class_getInstanceMethod(on, sel_registerName(hook.selector));
  if (method == nullptr) return true;
  IMP real = method_getImplementation(method);
  for (uint32_t i = 0; i < k_slots; ++i) {
    // The second: a class made at run time may have been given the hook as its own method.
    if ((i < *hook.used && hook.methods[i] == method) || function_at(hook.stand_ins, i) == real) {
      return true;
    }
  }
  if (*hook.used == k_slots) return false;
  const uint32_t slot = (*hook.used)++;
  hook.methods[slot] = method;
  __atomic_store_n(static_cast<IMP*>(hook.originals) + slot, real, __ATOMIC_RELEASE);
  method_setImplementation(method, function_at(hook.stand_ins, slot));
  return true;
}

}  // namespace

bool put_hooks(const Hooks& hooks, id object) {
  bool room = true;
  before_changes(object);
  for (const Hook& hook : hooks) room = put(hook, class_of(object)) && room;
  after_changes(object);
  return room;
}

namespace {

id met(id device) {
  meet(k_device, device);
  return device;
}

id met_all(id devices) {
  const auto count = ask<unsigned long>(devices, "count");
  for (unsigned long i = 0; i < count; ++i) meet(k_device, ask<id>(devices, "objectAtIndex:", i));
  return devices;
}

}  // namespace
}  // namespace weir_probe::metal

using weir_probe::metal::id;

#ifdef __APPLE__
// dyld leaves these alone where there is no such function.
extern "C" __attribute__((weak_import)) id MTLCreateSystemDefaultDevice();
extern "C" __attribute__((weak_import)) id MTLCopyAllDevices();
extern "C" __attribute__((weak_import)) id MTLCopyAllDevicesWithObserver(id* observer, id handler);

namespace {
id default_device() { return weir_probe::metal::met(MTLCreateSystemDefaultDevice()); }
id all_devices() { return weir_probe::metal::met_all(MTLCopyAllDevices()); }
id all_devices_observed(id* observer, id handler) {
  return weir_probe::metal::met_all(MTLCopyAllDevicesWithObserver(observer, handler));
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
// Preloaded, in front of the stand-in that it is tested on.
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
  return real == nullptr ? nullptr : weir_probe::metal::met(real());
}
WEIR_EXPORTED id MTLCopyAllDevices() {
  auto* real = next<id()>("MTLCopyAllDevices");
  return real == nullptr ? nullptr : weir_probe::metal::met_all(real());
}
#endif
