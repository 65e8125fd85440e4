// Counts the calls of Python's functions and of functions written in C, by name, in the file of
// this process (gate/probes/format.h); where asked for, the lines that run as well.
//
// A directory is listed while Python starts. From there the main thread is asked to begin, as the
// program itself cannot be stood in front of. Python calls the hooks with its lock held.
#include "gate/probes/inject/writer/calls.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/python/api.h"
#include "gate/probes/inject/python/names.h"
#include "gate/probes/inject/writer/file.h"
#include "gate/probes/inject/writer/old_symbols.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/table.h"

namespace weir_probe::python {
namespace {

constexpr uint32_t k_max_functions = 8192;
// Code objects that are kept alive, so that their addresses stay theirs.
constexpr uint32_t k_max_codes = 65'536;

static_assert(sizeof(Name::text) == sizeof(weir_probe_function::name));

// A function written in C. Its definition may be freed and its place used again.
struct CFunction {
  weir_probe_function* entry;
  const char* name;
  void* address;
};
// Python's PyMethodDef.
struct Definition {
  const char* name;
  Function function;
  int flags;
  const char* doc;
};

OwnFile g_own;
Table g_entries;    // hash of the name -> weir_probe_function
Table g_codes;      // code object -> weir_probe_function
Table g_functions;  // Definition -> CFunction
uint32_t g_code_count;
size_t g_header_bytes;  // of a Python object
const Api* g_api;
bool g_counts_lines;
uint32_t g_state;  // atomic: 0 at first, 1 once the main thread is asked to begin
bool g_watches_threads;
// The frame that imports a module in the main thread, or null. What runs below it is not counted:
// it is done once, and the order of sets of types, which goes with addresses, is seen in it.
const Frame* g_import;

void open_own_file() {
  Capacity capacity{};
  capacity.functions = k_max_functions;
  open_file(&g_own.file, "python", capacity);
}

// Returns the entry of a function by its name, adding it if it is new.
weir_probe_function* find_or_add(const Name& name, uint32_t flags) {
  weir_probe_function fresh{};
  fresh.flags = flags;
  memcpy(fresh.name, name.text, name.length + 1);
  const Locked locked(&g_own.lock);
  return find_or_add_entry(&g_own.file, WEIR_SECTION_FUNCTIONS, g_own.file.functions, &g_entries,
                           hash_text(name.text) + flags, fresh, WEIR_PROBE_FUNCTIONS_OVERFLOWED);
}

bool imports_module(const Name& name) {
  return strcmp(name.text, "importlib._bootstrap._find_and_load") == 0 ||
         strcmp(name.text, "_frozen_importlib._find_and_load") == 0;
}

// Returns the entry of the function that a frame runs. Its name is made once for each code object,
// which is then kept alive.
weir_probe_function* entry_of_frame(Frame* frame) {
  Object* code = g_api->frame_code(frame);
  const uint64_t key = key_of(code);
  auto* entry = g_codes.get<weir_probe_function>(key);
  if (__builtin_expect(entry == nullptr, 0)) {
    Name name;
    name_frame(*g_api, frame, code, &name);
    entry = find_or_add(name, imports_module(name) ? WEIR_FUNCTION_IMPORTS : 0);
    if (g_code_count < k_max_codes && g_codes.insert(key, entry)) {
      ++g_code_count;
      return entry;  // keeps the reference
    }
  }
  g_api->drop_reference(code);
  return entry;
}

// Returns the entry of a function written in C. A stored one is used again while name and address
// are the same.
weir_probe_function* entry_of_function(Object* function) {
  Definition* definition;
  memcpy(&definition, reinterpret_cast<const char*>(function) + g_header_bytes, sizeof definition);
  void* address = g_api->function_address(function);
  auto* stored = g_functions.get<CFunction>(key_of(definition));
  if (stored != nullptr && stored->name == definition->name && stored->address == address) {
    return stored->entry;
  }
  Name name;
  name_function(*g_api, function, definition->name, &name);
  weir_probe_function* entry = find_or_add(name, WEIR_FUNCTION_IN_C);
  if (stored == nullptr) stored = get_or_create<CFunction>(&g_functions, key_of(definition));
  if (stored != nullptr) *stored = {entry, definition->name, address};
  return entry;
}

int count_in_other_thread(Object*, Frame* frame, int event, Object* argument);

// A thread's profile function, which threading sets in each new one: takes its own place.
Object* begin_in_thread(Object*, Object*) {
  g_api->set_profile(count_in_other_thread, nullptr);
  g_api->add_reference(g_api->none);
  return g_api->none;
}
Definition g_begin_in_thread = {"weir", begin_in_thread, /*METH_VARARGS*/ 1, nullptr};

// Makes the threads that begin from here count, if the program has imported threading.
void watch_threads() {
  g_watches_threads = true;
  Object *type, *value, *trace;
  g_api->fetch_error(&type, &value, &trace);
  Object* threading = g_api->item(g_api->module_dict(), "threading");
  Object* set = threading == nullptr ? nullptr : g_api->attribute(threading, "setprofile");
  Object* hook = g_api->new_function(&g_begin_in_thread, nullptr, nullptr);
  Object* arguments = hook == nullptr ? nullptr : g_api->tuple(1, hook);
  Object* result =
      set == nullptr || arguments == nullptr ? nullptr : g_api->call(set, arguments, nullptr);
  Object* const owned[] = {set, hook, arguments, result};
  for (Object* object : owned) {
    if (object != nullptr) g_api->drop_reference(object);
  }
  g_api->restore_error(type, value, trace);
}

bool starts_a_thread(const weir_probe_function& entry) {
  return strcmp(entry.name, "_thread.start_new_thread") == 0 ||
         strcmp(entry.name, "_thread.start_joinable_thread") == 0;
}

weir_probe_function* entry_of(Frame* frame, int event, Object* argument) {
  if (event != k_call && event != k_c_call) return nullptr;
  if (!is_ready(g_own)) {
    const Locked locked(&g_own.lock);
    ensure_initialized(&g_own, open_own_file);
  }
  return event == k_call ? entry_of_frame(frame) : entry_of_function(argument);
}

// Counts a call in the main thread. Python passes each call and return; those inside an import are
// left out.
int count_in_main_thread(Object*, Frame* frame, int event, Object* argument) {
  if (g_import != nullptr) {
    if (event == k_return && frame == g_import) g_import = nullptr;
    return 0;
  }
  weir_probe_function* entry = entry_of(frame, event, argument);
  if (entry == nullptr) return 0;
  add(&entry->calls, 1);
  if (event == k_call && (entry->flags & WEIR_FUNCTION_IMPORTS) != 0) g_import = frame;
  if (event == k_c_call && !g_watches_threads && starts_a_thread(*entry)) watch_threads();
  return 0;
}

int count_in_other_thread(Object*, Frame* frame, int event, Object* argument) {
  weir_probe_function* entry = entry_of(frame, event, argument);
  if (entry != nullptr) add(&entry->calls_in_threads, 1);
  return 0;
}

int count_lines(Object*, Frame* frame, int event, Object*) {
  if (event != k_line || g_import != nullptr) return 0;
  weir_probe_function* entry = entry_of(frame, k_call, nullptr);
  add(&entry->lines, 1);
  return 0;
}

// Runs in the main thread, between two of its instructions.
int begin(void*) {
  Object* size = g_api->attribute(g_api->object_type, "__basicsize__");
  g_header_bytes = static_cast<size_t>(g_api->integer(size));
  g_api->drop_reference(size);
  g_api->set_profile(count_in_main_thread, nullptr);
  if (g_counts_lines) g_api->set_trace(count_lines, nullptr);
  return 0;
}

void ask_to_begin() {
  if (__atomic_load_n(&g_state, __ATOMIC_ACQUIRE) != 0) return;
  const Api* api = find_api();
  if (api == nullptr || api->is_initialized() == 0) return;
  if (__atomic_exchange_n(&g_state, 1, __ATOMIC_ACQ_REL) != 0) return;
  g_api = api;
  g_counts_lines = environment(WEIR_PROBE_PYTHON_LINES_VARIABLE) != nullptr;
  if (api->add_pending_call(begin, nullptr) != 0) __atomic_store_n(&g_state, 0, __ATOMIC_RELEASE);
}

}  // namespace
}  // namespace weir_probe::python

WEIR_EXPORTED int closedir(void* folder) {
  static int (*next)(void*);
  if (next == nullptr) {
    void* symbol = dlsym(RTLD_NEXT, "closedir");
    memcpy(static_cast<void*>(&next), &symbol, sizeof symbol);
  }
  weir_probe::python::ask_to_begin();
  return next(folder);
}
