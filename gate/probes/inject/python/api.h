// CPython's C API as far as the probe calls it, found in the process by name: no headers, one
// library for 3.10 and later.
#pragma once

#include <stddef.h>

namespace weir_probe::python {

struct Object;  // PyObject
struct Frame;   // PyFrameObject

// Kinds of events: PyTrace_CALL and others.
constexpr int k_call = 0, k_line = 2, k_return = 3, k_c_call = 4;
using Hook = int (*)(Object*, Frame*, int, Object*);
using Function = Object* (*)(Object*, Object*);

// Functions of the process's Python, by their names without "Py".
struct Api {
  int (*is_initialized)();
  int (*add_pending_call)(int (*)(void*), void*);
  void (*set_profile)(Hook, Object*);
  void (*set_trace)(Hook, Object*);
  Object* (*frame_code)(Frame*);
  void (*add_reference)(Object*);
  void (*drop_reference)(Object*);
  Object* (*attribute)(Object*, const char*);
  Object* (*item)(Object*, const char*);  // borrowed, of a dict
  int (*has_key)(Object*, const char*);
  Object* (*module_dict)();
  Object* (*element)(Object*, ptrdiff_t);
  ptrdiff_t (*size)(Object*);
  const char* (*text)(Object*, ptrdiff_t*);
  long (*integer)(Object*);
  Object* (*type_of)(Object*);
  int (*is_subtype)(Object*, Object*);
  Object* (*function_self)(Object*);
  void* (*function_address)(Object*);
  Object* (*new_function)(const void*, Object*, Object*);
  Object* (*call)(Object*, Object*, Object*);
  Object* (*tuple)(ptrdiff_t, ...);
  void (*fetch_error)(Object**, Object**, Object**);
  void (*restore_error)(Object*, Object*, Object*);
  void (*clear_error)();
  Object *type_type, *object_type, *none;
};

// The process's Python; null where it has none, or one that lacks a function.
const Api* find_api();

}  // namespace weir_probe::python
