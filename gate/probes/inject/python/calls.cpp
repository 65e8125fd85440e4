// Counts the calls of Python's functions and of functions written in C, by name, in the file of
// this process (gate/probes/format.h); where asked for, the lines that run as well.
//
// A directory is listed while Python starts. From there the main thread is asked to begin, as the
// program itself cannot be stood in front of. Each event looks for new threads, which then count as
// well. Python calls the hooks with its lock held.
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
  void* function;
  int flags;
  const char* doc;
};

OwnFile g_own;
Table g_entries;    // hash of the name -> weir_probe_function
Table g_codes;      // code object -> weir_probe_function
Table g_functions;  // Definition -> CFunction
// Code object that ran within an import -> g_modules, or g_machinery if it is of importlib itself.
Table g_import_codes;
char g_modules, g_machinery;
uint32_t g_code_count, g_import_code_count;
size_t g_header_bytes;  // of a Python object
const Api* g_api;
Interpreter* g_interpreter;
bool g_counts_lines;
uint32_t g_state;  // atomic: 0 at first, 1 once the main thread is asked to begin
uint64_t* g_import_calls;
uint64_t* g_unseen_threads;
uint64_t g_newest_id;
bool g_is_setting;  // a profile function, by the probe

#define WEIR_OF_THREAD __thread __attribute__((tls_model("initial-exec")))
WEIR_OF_THREAD bool t_is_main;
// The frame that imports a module in this thread, or null. Calls below it have no names: they are
// made once, and the order of sets of types, which goes with addresses, is seen in them.
WEIR_OF_THREAD const Frame* t_import;

void open_own_file() {
  Capacity capacity{};
  capacity.functions = k_max_functions;
  capacity.counters = 2;
  open_file(&g_own.file, "python", capacity);
  g_import_calls = add_counter(&g_own.file, "import_calls");
  g_unseen_threads = add_counter(&g_own.file, "unseen_threads");
}

void ensure_file() {
  if (is_ready(g_own)) return;
  const Locked locked(&g_own.lock);
  ensure_initialized(&g_own, open_own_file);
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

bool begins_with(const Name& name, const char* start) {
  return strncmp(name.text, start, strlen(start)) == 0;
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

// Returns true if the frame runs code of importlib. How often that runs depends on which modules
// were compiled before, and where they lie.
bool is_of_importlib(Frame* frame) {
  Object* code = g_api->frame_code(frame);
  const char* kind = g_import_codes.get<char>(key_of(code));
  if (__builtin_expect(kind == nullptr, 0)) {
    Name name;
    name_frame(*g_api, frame, code, &name);
    const bool is_machinery = begins_with(name, "importlib._bootstrap") ||
                              begins_with(name, "_frozen_importlib") ||
                              begins_with(name, "zipimport.");
    char* place = is_machinery ? &g_machinery : &g_modules;
    kind = place;
    if (g_import_code_count < k_max_codes && g_import_codes.insert(key_of(code), place)) {
      ++g_import_code_count;
      return is_machinery;  // keeps the reference
    }
  }
  g_api->drop_reference(code);
  return kind == &g_machinery;
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

int count_call(Object*, Frame* frame, int event, Object* argument);

// Makes the threads that are newer than the last one seen count. Those that came and went meanwhile
// were not seen.
void watch_new_threads() {
  Thread* newest = g_api->newest_thread(g_interpreter);
  const uint64_t newest_id = g_api->thread_id(newest);
  if (__builtin_expect(newest_id <= g_newest_id, 1)) return;
  uint64_t unseen = newest_id - g_newest_id;
  g_is_setting = true;
  for (Thread* thread = newest; thread != nullptr; thread = g_api->older_thread(thread)) {
    if (g_api->thread_id(thread) <= g_newest_id) break;
    --unseen;
    if (g_api->set_profile_of != nullptr) g_api->set_profile_of(thread, count_call, nullptr);
  }
  if (g_api->set_profile_of == nullptr) g_api->set_profile_of_all(count_call, nullptr);
  g_is_setting = false;
  g_newest_id = newest_id;
  if (unseen > 0) add(g_unseen_threads, unseen);
}

// Finds the last threads that came and went, by the number that a further one gets.
void find_last_threads() {
  Thread* further = g_api->new_thread(g_interpreter);
  if (further == nullptr) return;
  const uint64_t id = g_api->thread_id(further);
  if (id > g_newest_id + 1) add(g_unseen_threads, id - g_newest_id - 1);
  g_newest_id = id;
  g_api->clear_thread(further);
  g_api->delete_thread(further);
}

// Counts a call in any thread. Python passes each call and return.
int count_call(Object*, Frame* frame, int event, Object* argument) {
  ensure_file();
  watch_new_threads();
  // A further interpreter has no profile function.
  if (event == k_c_return && g_api->newest_interpreter() != g_interpreter)
    raise_flag(&g_own, WEIR_PROBE_CALLS_UNSEEN);
  const bool is_call = event == k_call || event == k_c_call;
  if (t_import != nullptr) {
    if (is_call && !is_of_importlib(frame)) add(g_import_calls, 1);
    if (event == k_return && frame == t_import) t_import = nullptr;
    return 0;
  }
  if (!is_call) return 0;
  weir_probe_function* entry =
      event == k_call ? entry_of_frame(frame) : entry_of_function(argument);
  add(t_is_main ? &entry->calls : &entry->calls_in_threads, 1);
  if (event == k_call && (entry->flags & WEIR_FUNCTION_IMPORTS) != 0) t_import = frame;
  return 0;
}

int count_lines(Object*, Frame* frame, int event, Object*) {
  if (event != k_line || t_import != nullptr) return 0;
  ensure_file();
  add(&entry_of_frame(frame)->lines, 1);
  return 0;
}

// Hears of a profile function that the program sets in place of the probe's, and of its last
// threads.
int hear(const char* event, Object*, void*) {
  if (g_is_setting) return 0;
  const bool is_replaced = strcmp(event, "sys.setprofile") == 0 ||
                           (g_counts_lines && strcmp(event, "sys.settrace") == 0);
  if (is_replaced) raise_flag(&g_own, WEIR_PROBE_REPLACED);
  if (strcmp(event, "cpython._PySys_ClearAuditHooks") == 0) find_last_threads();
  return 0;
}

// Runs in the main thread, between two of its instructions.
int begin(void*) {
  Object* size = g_api->attribute(g_api->object_type, "__basicsize__");
  g_header_bytes = static_cast<size_t>(g_api->integer(size));
  g_api->drop_reference(size);
  g_interpreter = g_api->interpreter();
  t_is_main = true;
  if (g_api->add_audit_hook(hear, nullptr) < 0) g_api->clear_error();
  ensure_file();
  watch_new_threads();
  g_is_setting = true;
  if (g_counts_lines) g_api->set_trace(count_lines, nullptr);
  g_is_setting = false;
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
