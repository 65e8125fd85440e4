#include "gate/probes/inject/metal/hooks.h"

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
  for (size_t i = 0; i < hooks.count; ++i) room = put(hooks.first[i], class_of(object)) && room;
  after_changes(object);
  return room;
}

}  // namespace weir_probe::metal
