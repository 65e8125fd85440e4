// Standing in front of methods, by selector, on whatever classes objects turn out to have.
//
// Each method that is hooked gets a function of its own, out of a fixed number: it knows its
// original without asking the runtime, and a method that calls its superclass's finds that one's.
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
inline Class class_of(id object) { return object_getClass(object); }
inline IMP function_for(id, SEL) { return objc_msgSend; }
inline void before_changes(id) {}
inline void after_changes(id) {}
#else
inline Class class_of(id object) {
  Class found;
  memcpy(&found, static_cast<const void*>(object), sizeof found);
  return found;
}
inline IMP function_for(id object, SEL selector) { return objc_msg_lookup(object, selector); }
// GNU's runtime keeps one table for all classes that nobody used yet, which a changed method would
// spoil, and forgets the tables of subclasses; Apple's needs neither of the two.
inline void before_changes(id object) { objc_msg_lookup(object, sel_registerName("release")); }
inline void after_changes(id object) { __objc_update_dispatch_table_for_class(class_of(object)); }
#endif

// Method arguments with these layouts: MTLSize and MTLOrigin, NSRange.
struct Size {
  unsigned long width, height, depth;
};
struct Range {
  unsigned long location, length;
};
using Bool = unsigned char;  // BOOL, whether a char or a bool

// Sends `selector`. Results are numbers and pointers only: structs may return in other ways.
template <class R, class... A>
R send(id to, SEL selector, A... arguments) {
  using Function = R (*)(id, SEL, A...);
  return reinterpret_cast<Function>(function_for(to, selector))(to, selector, arguments...);
}

// The answer of `object`, or 0 where there is none: no object, or one without such a method.
template <class R, class... A>
R ask(id object, const char* name, A... arguments) {
  if (object == nullptr) return R();
  SEL selector = sel_registerName(name);
  if (class_getInstanceMethod(class_of(object), selector) == nullptr) return R();
  return send<R>(object, selector, arguments...);
}

// The bytes of an NSString, owned by it; "" where there is none.
inline const char* text_of(id string) {
  const char* text = ask<const char*>(string, "UTF8String");
  return text == nullptr ? "" : text;
}

// --- hooks

// Classes that implement one selector: drivers of several GPUs, and debug layers over them.
constexpr uint32_t k_slots = 8;

// A method on its way: calling it goes on to what the program asked for.
template <class R, class... A>
struct Call {
  using Real = R (*)(id, SEL, A...);
  id self;
  SEL selector;
  Real real;
  R operator()(A... arguments) const { return real(self, selector, arguments...); }
};

// The outermost hooked call of this thread: what Metal's own methods call within it (their
// superclass, the object that a debug layer stands in front of) is no call of the program's. Told
// by stack frames: an exception passes through here without unwinding a mark.
extern thread_local const char* t_outermost;

// The functions that stand in front of one selector. `tag` keeps those apart that are counted
// alike.
template <auto around, int tag>
struct Around;
template <class R, class... A, R (*around)(const Call<R, A...>&, A...), int tag>
struct Around<around, tag> {
  using Real = typename Call<R, A...>::Real;
  static inline Real originals[k_slots];
  static inline Method methods[k_slots];
  static inline uint32_t used;

  template <uint32_t slot>
  static R stand_in(id self, SEL selector, A... arguments) {
    Real real = nullptr;
    // There before the first call, but perhaps not yet for this processor.
    while (real == nullptr) real = __atomic_load_n(&originals[slot], __ATOMIC_ACQUIRE);
    const Call<R, A...> call{self, selector, real};
    const Within within(&t_outermost, __builtin_frame_address(0));
    return within.outermost() ? around(call, arguments...) : call(arguments...);
  }
  static constexpr Real stand_ins[k_slots] = {stand_in<0>, stand_in<1>, stand_in<2>, stand_in<3>,
                                              stand_in<4>, stand_in<5>, stand_in<6>, stand_in<7>};
};

struct Hook {
  const char* selector;
  const void* stand_ins;  // functions, as are the originals; all arrays of k_slots
  void* originals;
  Method* methods;
  uint32_t* used;
};
#define WEIR_HOOK(selector, around)                                                     \
  {                                                                                     \
    selector, Around<around, __LINE__>::stand_ins, Around<around, __LINE__>::originals, \
        Around<around, __LINE__>::methods, &Around<around, __LINE__>::used              \
  }

using Hooks = List<Hook>;

// Puts them on the class of `object`, each method once, inherited ones where they are. The caller
// holds a lock. False where a selector has more classes than there is room for.
bool put_hooks(const Hooks& hooks, id object);

}  // namespace weir_probe::metal
