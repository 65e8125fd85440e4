// The part of the Objective-C runtime that the probe calls, without its headers: Apple's, or GNU's
// in tests. No Objective-C syntax anywhere, so that any C++ compiler will do.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace weir_probe::metal {

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

inline Class class_of(id object) {
#ifdef __APPLE__
  return object_getClass(object);  // not the first word: that has other bits in it
#else
  Class found;
  memcpy(&found, static_cast<const void*>(object), sizeof found);
  return found;
#endif
}

// GNU's runtime keeps one table for all classes that nobody used yet, which a changed method would
// spoil, and forgets the tables of subclasses; Apple's needs neither of the two.
inline void before_changes([[maybe_unused]] id object) {
#ifndef __APPLE__
  objc_msg_lookup(object, sel_registerName("release"));
#endif
}
inline void after_changes([[maybe_unused]] id object) {
#ifndef __APPLE__
  __objc_update_dispatch_table_for_class(class_of(object));
#endif
}

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
#ifdef __APPLE__
  return reinterpret_cast<Function>(objc_msgSend)(to, selector, arguments...);
#else
  return reinterpret_cast<Function>(objc_msg_lookup(to, selector))(to, selector, arguments...);
#endif
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

}  // namespace weir_probe::metal
