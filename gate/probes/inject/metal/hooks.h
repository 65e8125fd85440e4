// Hooks Objective-C methods by selector, on the classes that objects turn out to have.
//
// Each hooked method gets a function of its own, out of a fixed number. That function knows its
// original without asking the runtime, also if a method calls that of its superclass.
#pragma once

#include <stdint.h>
#include <string.h>

#include "gate/probes/inject/writer/calls.h"

namespace weir_probe::metal {

// --- The part of the Objective-C runtime that the probe calls, without its headers: Apple's, or
// GNU's in tests. No Objective-C syntax anywhere, so that any C++ compiler will do.

struct Object;
struct ClassOf;
struct Selector;
struct MethodOf;
using id = Object*;
using Class = ClassOf*;
using SEL = Selector*;
using Method = MethodOf*;
using IMP = void (*)();

extern "C" {
SEL sel_registerName(const char* name);
Method class_getInstanceMethod(Class of, SEL selector);
IMP method_getImplementation(Method method);
// Changes it for the class that has the method and for all that inherit it.
IMP method_setImplementation(Method method, IMP implementation);
#ifdef __APPLE__
Class object_getClass(id object);
void objc_msgSend();
#else
IMP objc_msg_lookup(id object, SEL selector);
void __objc_update_dispatch_table_for_class(Class of);
#endif
}

#ifdef __APPLE__
// Not the first word: that has other bits in it.
inline Class object_class(id object) { return object_getClass(object); }
inline IMP method_function(id, SEL) { return objc_msgSend; }
inline void before_changes(id) {}
inline void after_changes(id) {}
#else
inline Class object_class(id object) {
  Class result;
  memcpy(&result, static_cast<const void*>(object), sizeof result);
  return result;
}
inline IMP method_function(id object, SEL selector) { return objc_msg_lookup(object, selector); }
// GNU's runtime shares one table among all classes not used yet, which a changed method would
// spoil: using the class first gives it its own. Afterwards the tables of subclasses need an
// update. Apple's runtime needs neither.
inline void before_changes(id object) { objc_msg_lookup(object, sel_registerName("release")); }
inline void after_changes(id object) {
  __objc_update_dispatch_table_for_class(object_class(object));
}
#endif

// Method arguments with these layouts: MTLSize and MTLOrigin, NSRange.
struct Size {
  unsigned long width, height, depth;
};
struct Range {
  unsigned long location, length;
};
using Bool = unsigned char;  // BOOL, which is a char or a bool

// Sends `selector` to an object. Results are numbers and pointers only: structs may be returned
// differently.
template <class R, class... A>
R send(id to, SEL selector, A... arguments) {
  using Function = R (*)(id, SEL, A...);
  return reinterpret_cast<Function>(method_function(to, selector))(to, selector, arguments...);
}

// Calls a method of `object`. Returns 0 if the object is null or has no such method.
template <class R, class... A>
R call_if_implemented(id object, const char* name, A... arguments) {
  if (object == nullptr) return R();
  SEL selector = sel_registerName(name);
  if (class_getInstanceMethod(object_class(object), selector) == nullptr) return R();
  return send<R>(object, selector, arguments...);
}

// The bytes of an NSString, owned by it; "" for null.
inline const char* string_text(id string) {
  const char* text = call_if_implemented<const char*>(string, "UTF8String");
  return text == nullptr ? "" : text;
}

// --- hooks

// Classes that implement one selector: drivers of several GPUs, and debug layers over them.
constexpr uint32_t k_slots = 8;

// A call of a hooked method. Calling it runs the original method.
template <class R, class... A>
struct Call {
  using Real = R (*)(id, SEL, A...);
  id self;
  SEL selector;
  Real real;
  R operator()(A... arguments) const { return real(self, selector, arguments...); }
};

// The stack frame of the outermost hooked call of this thread. Calls within it (of a superclass, or
// of the object behind a debug layer) are Metal's and not the program's. See OutermostCall.
extern thread_local const char* t_outermost;

// The functions that replace the methods of one selector. `around` handles a call. `tag` makes a
// type of its own for each selector with the same handler.
template <auto around, int tag>
struct Around;
template <class R, class... A, R (*around)(const Call<R, A...>&, A...), int tag>
struct Around<around, tag> {
  using Real = typename Call<R, A...>::Real;
  static inline Real originals[k_slots];
  static inline Method methods[k_slots];
  static inline uint32_t used;

  template <uint32_t slot>
  static R replacement(id self, SEL selector, A... arguments) {
    Real real = nullptr;
    // Set before the first call, but perhaps not yet visible to this processor.
    while (real == nullptr) real = __atomic_load_n(&originals[slot], __ATOMIC_ACQUIRE);
    const Call<R, A...> call{self, selector, real};
    const OutermostCall outermost_call(&t_outermost, __builtin_frame_address(0));
    return outermost_call.is_outermost() ? around(call, arguments...) : call(arguments...);
  }
  static constexpr Real replacements[k_slots] = {replacement<0>, replacement<1>, replacement<2>,
                                                 replacement<3>, replacement<4>, replacement<5>,
                                                 replacement<6>, replacement<7>};
};

struct Hook {
  const char* selector;
  const void* replacements;  // functions, as are the originals; all arrays of k_slots
  void* originals;
  Method* methods;
  uint32_t* used;
};
#define WEIR_HOOK(selector, around)                                                        \
  {                                                                                        \
    selector, Around<around, __LINE__>::replacements, Around<around, __LINE__>::originals, \
        Around<around, __LINE__>::methods, &Around<around, __LINE__>::used                 \
  }

using Hooks = List<Hook>;

// Puts the hooks on the class of `object`, each method once, and an inherited one on its
// superclass. False if a selector has more classes than there is room for. The caller holds a lock.
bool put_hooks(const Hooks& hooks, id object);

}  // namespace weir_probe::metal
