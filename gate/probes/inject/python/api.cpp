// Finds Python's functions in the process.
#include "gate/probes/inject/python/api.h"

#include <dlfcn.h>
#include <string.h>

#include "gate/probes/inject/writer/old_symbols.h"

namespace weir_probe::python {
namespace {

// Sets `*slot` to the symbol's address. False where there is none.
template <class T>
bool find(T* slot, const char* name) {
  void* symbol = dlsym(RTLD_DEFAULT, name);
  memcpy(static_cast<void*>(slot), &symbol, sizeof symbol);
  return symbol != nullptr;
}

Api g_api;
bool g_is_ready;  // atomic

}  // namespace

// Finds the functions of Python's C interface in this process. Null if one is missing; of the two
// that set a profiling function, one is enough: older Pythons set it a thread, newer ones for all.
// Threads may search at once, as all of them find the same functions.
const Api* find_api() {
  if (__atomic_load_n(&g_is_ready, __ATOMIC_ACQUIRE)) return &g_api;
  Api api;
  const bool is_complete =
      find(&api.is_initialized, "Py_IsInitialized") &&
      find(&api.add_pending_call, "Py_AddPendingCall") && find(&api.set_trace, "PyEval_SetTrace") &&
      find(&api.frame_code, "PyFrame_GetCode") && find(&api.add_reference, "Py_IncRef") &&
      find(&api.drop_reference, "Py_DecRef") && find(&api.attribute, "PyObject_GetAttrString") &&
      find(&api.item, "PyDict_GetItemString") && find(&api.has_key, "PyMapping_HasKeyString") &&
      find(&api.module_dict, "PyImport_GetModuleDict") && find(&api.element, "PyTuple_GetItem") &&
      find(&api.size, "PyTuple_Size") && find(&api.text, "PyUnicode_AsUTF8AndSize") &&
      find(&api.integer, "PyLong_AsLong") && find(&api.type_of, "PyObject_Type") &&
      find(&api.is_subtype, "PyType_IsSubtype") &&
      find(&api.function_self, "PyCFunction_GetSelf") &&
      find(&api.function_address, "PyCFunction_GetFunction") &&
      find(&api.interpreter, "PyInterpreterState_Get") &&
      find(&api.newest_interpreter, "PyInterpreterState_Head") &&
      find(&api.newest_thread, "PyInterpreterState_ThreadHead") &&
      find(&api.older_thread, "PyThreadState_Next") &&
      find(&api.thread_id, "PyThreadState_GetID") && find(&api.new_thread, "PyThreadState_New") &&
      find(&api.clear_thread, "PyThreadState_Clear") &&
      find(&api.delete_thread, "PyThreadState_Delete") &&
      find(&api.add_audit_hook, "PySys_AddAuditHook") && find(&api.fetch_error, "PyErr_Fetch") &&
      find(&api.restore_error, "PyErr_Restore") && find(&api.clear_error, "PyErr_Clear") &&
      find(&api.type_type, "PyType_Type") && find(&api.object_type, "PyBaseObject_Type");
  const bool can_profile_one_thread = find(&api.set_profile_of, "_PyEval_SetProfile");
  const bool can_profile_all_threads = find(&api.set_profile_of_all, "PyEval_SetProfileAllThreads");
  if (!is_complete || (!can_profile_one_thread && !can_profile_all_threads)) return nullptr;
  g_api = api;
  __atomic_store_n(&g_is_ready, true, __ATOMIC_RELEASE);
  return &g_api;
}

}  // namespace weir_probe::python
