// CPython's C API as far as the probe calls it, found in the process by name: no headers, one
// library for 3.10 and later.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir_probe::python {

struct Object;       // PyObject
struct Frame;        // PyFrameObject
struct Thread;       // PyThreadState
struct Interpreter;  // PyInterpreterState

// Kinds of events: PyTrace_CALL and others.
constexpr int k_call = 0, k_line = 2, k_return = 3, k_c_call = 4, k_c_exception = 5, k_c_return = 6;
using Hook = int (*)(Object*, Frame*, int, Object*);
using AuditHook = int (*)(const char*, Object*, void*);

// Functions of the process's Python, by their names without "Py".
struct Api {
  int (*is_initialized)();
  int (*add_pending_call)(int (*)(void*), void*);
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
  Interpreter* (*interpreter)();
  Interpreter* (*newest_interpreter)();
  Thread* (*newest_thread)(Interpreter*);
  Thread* (*older_thread)(Thread*);
  uint64_t (*thread_id)(Thread*);  // 1, 2, … in an interpreter; none is used again
  Thread* (*new_thread)(Interpreter*);
  void (*clear_thread)(Thread*);
  void (*delete_thread)(Thread*);
  int (*add_audit_hook)(AuditHook, void*);
  void (*fetch_error)(Object**, Object**, Object**);
  void (*restore_error)(Object*, Object*, Object*);
  void (*clear_error)();
  Object *type_type, *object_type;
  // Either may be null.
  int (*set_profile_of)(Thread*, Hook, Object*);
  void (*set_profile_of_all)(Hook, Object*);
};

// The process's Python; null where it has none, or one that lacks a function.
const Api* find_api();

}  // namespace weir_probe::python
