// Counts the calls of Python's functions and of functions written in C, by name, in the file of
// this process (gate/probes/format.h); where asked for, the lines that run as well.
//
// A directory is listed while Python starts. From there the main thread is asked to begin, as the
// program itself cannot be stood in front of. Each event looks for new threads, which then count as
// well. Python calls the hooks with its lock held.
//
// Calls by ctypes are no calls of Python's: they are seen at libffi's ffi_call, without that lock.
#include "gate/probes/inject/writer/calls.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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
// Code object that ran within an import -> g_modules, or g_importlib if it is of importlib itself.
Table g_import_codes;
Table g_addresses;  // of a function that ctypes calls -> weir_probe_function
char g_modules, g_importlib;
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
// Calls in C that this thread is in and that are looked at, the outermost first.
struct SampledCall {
  const void* function;
  weir_probe_function* entry;
  long switches;  // of the thread, before
};
constexpr uint32_t k_max_sampled = 8;
WEIR_OF_THREAD SampledCall t_sampled[k_max_sampled];
WEIR_OF_THREAD uint32_t t_sampled_count;
// The frame that imports a module in this thread, or null. Calls below it have no names: they are
// made once, and the order of sets of types, which goes with addresses, is seen in them.
WEIR_OF_THREAD const Frame* t_import;
// The frame that starts a thread, or the first one of that, or null. Each may be ahead of the other
// there, so that calls of threading are left out until it runs other code.
WEIR_OF_THREAD const Frame* t_start;

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

// Returns the flags of a Python function by its name: that it imports a module, that it belongs to
// threading itself, or that it starts a thread too. 0 for all others, also for a thread's work.
uint32_t flags_of(const Name& name) {
  constexpr const char* k_starts[] = {"threading.Thread.start", "threading.Thread._bootstrap",
                                      "threading.start", "threading._bootstrap"};
  if (imports_module(name)) return WEIR_FUNCTION_IMPORTS;
  if (!begins_with(name, "threading.")) return 0;
  for (const char* start : k_starts) {
    if (strcmp(name.text, start) == 0) return WEIR_FUNCTION_OF_THREADING | WEIR_FUNCTION_STARTS;
  }
  // The work of a thread.
  const bool is_run = strcmp(name.text + name.length - strlen(".run"), ".run") == 0;
  return is_run ? 0 : WEIR_FUNCTION_OF_THREADING;
}

// Returns the entry of the function that a frame runs. Its name is made once for each code object,
// which is then kept alive.
weir_probe_function* entry_of_frame(Frame* frame) {
  Object* code = g_api->frame_code(frame);
  const uint64_t key = address_key(code);
  auto* entry = g_codes.get<weir_probe_function>(key);
  if (__builtin_expect(entry == nullptr, 0)) {
    Name name;
    name_frame(*g_api, frame, code, &name);
    entry = find_or_add(name, flags_of(name));
    if (g_code_count < k_max_codes && g_codes.insert(key, entry)) {
      ++g_code_count;
      return entry;  // keeps the reference
    }
  }
  g_api->drop_reference(code);
  return entry;
}

// Returns true if the frame runs code of importlib, whose calls are not counted: their number
// depends on which modules were compiled before, and where they lie. The answer is stored for each
// code object, which is then kept alive.
bool is_of_importlib(Frame* frame) {
  Object* code = g_api->frame_code(frame);
  const char* owner = g_import_codes.get<char>(address_key(code));
  if (__builtin_expect(owner == nullptr, 0)) {
    Name name;
    name_frame(*g_api, frame, code, &name);
    const bool is_importlib = begins_with(name, "importlib._bootstrap") ||
                              begins_with(name, "_frozen_importlib") ||
                              begins_with(name, "zipimport.");
    char* new_owner = is_importlib ? &g_importlib : &g_modules;
    owner = new_owner;
    if (g_import_code_count < k_max_codes && g_import_codes.insert(address_key(code), new_owner)) {
      ++g_import_code_count;
      return is_importlib;  // keeps the reference
    }
  }
  g_api->drop_reference(code);
  return owner == &g_importlib;
}

// Returns the entry of a function written in C. A stored one is used again while name and address
// are the same.
weir_probe_function* entry_of_function(Object* function) {
  Definition* definition;
  memcpy(&definition, reinterpret_cast<const char*>(function) + g_header_bytes, sizeof definition);
  void* address = g_api->function_address(function);
  auto* stored = g_functions.get<CFunction>(address_key(definition));
  if (stored != nullptr && stored->name == definition->name && stored->address == address) {
    return stored->entry;
  }
  Name name;
  name_function(*g_api, function, definition->name, &name);
  weir_probe_function* entry = find_or_add(name, WEIR_FUNCTION_IN_C);
  if (stored == nullptr) stored = get_or_create<CFunction>(&g_functions, address_key(definition));
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
    if (g_api->set_profile_of == nullptr) continue;
    const bool is_set = g_api->set_profile_of(thread, count_call, nullptr) == 0;
    if (is_set) continue;
    g_api->clear_error();  // an audit hook of the program refuses it
    raise_flag(&g_own, WEIR_PROBE_REPLACED);
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

// Returns how often this thread gave up the processor.
long count_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Returns true if the call is to be looked at: the first ones, and then some, as it takes a system
// call.
bool is_sampled(const weir_probe_function& entry) {
  constexpr uint64_t k_first = 64, k_every = 16;
  const uint64_t calls = __atomic_load_n(&entry.calls, __ATOMIC_RELAXED) +
                         __atomic_load_n(&entry.calls_in_threads, __ATOMIC_RELAXED);
  return calls <= k_first || calls % k_every == 0;
}

void add_sample(weir_probe_function* entry, bool has_waited) {
  if (entry->sampled == UINT16_MAX) {
    entry->sampled /= 2;
    entry->waited /= 2;
  }
  ++entry->sampled;
  if (has_waited) ++entry->waited;
}

void begin_sample(const void* function, weir_probe_function* entry) {
  if (t_sampled_count == k_max_sampled || !is_sampled(*entry)) return;
  t_sampled[t_sampled_count++] = {function, entry, count_switches()};
}

// Ends the look at a call, and at inner ones whose end was not seen.
void end_sample(const void* function) {
  for (uint32_t i = t_sampled_count; i-- > 0;) {
    if (t_sampled[i].function != function) continue;
    add_sample(t_sampled[i].entry, count_switches() != t_sampled[i].switches);
    t_sampled_count = i;
    return;
  }
}

void count_entry(weir_probe_function* entry) {
  add(t_is_main ? &entry->calls : &entry->calls_in_threads, 1);
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
  if (event == k_c_return || event == k_c_exception) {
    if (t_sampled_count != 0) end_sample(argument);
    return 0;
  }
  if (event == k_return && frame == t_start) t_start = nullptr;
  if (!is_call) return 0;
  weir_probe_function* entry =
      event == k_call ? entry_of_frame(frame) : entry_of_function(argument);
  if (t_start != nullptr) {
    const weir_probe_function* caller = event == k_call ? entry : entry_of_frame(frame);
    if ((caller->flags & WEIR_FUNCTION_OF_THREADING) != 0) return 0;
    if (!t_is_main) t_start = nullptr;
  }
  count_entry(entry);
  if ((entry->flags & WEIR_FUNCTION_STARTS) != 0) t_start = frame;
  if (event == k_c_call) begin_sample(argument, entry);
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

// A function of C that ctypes calls, as "ctypes.usleep".
weir_probe_function* entry_of_address(void* address) {
  const KeepErrno keep;
  auto* stored = g_addresses.get<weir_probe_function>(address_key(address));
  if (stored != nullptr) return stored;
  Dl_info info{};
  const bool is_known = dladdr(address, &info) != 0;
  const char* symbol = is_known && info.dli_saddr == address ? info.dli_sname : nullptr;
  const char* library = is_known && info.dli_fname != nullptr ? info.dli_fname : "memory";
  const char* slash = strrchr(library, '/');
  const char* text = symbol != nullptr ? symbol : slash != nullptr ? slash + 1 : library;
  while (*text == '_') ++text;
  Name name;
  constexpr char k_start[] = "ctypes.";
  memcpy(name.text, k_start, sizeof k_start - 1);
  copy_text(name.text + sizeof k_start - 1, sizeof name.text - sizeof k_start + 1, text);
  name.length = strlen(name.text);
  stored = find_or_add(name, WEIR_FUNCTION_IN_C);
  g_addresses.insert(address_key(address), stored);
  return stored;
}

using FfiCall = void (*)(void*, void (*)(), void*, void**);

// Returns the ffi_call that the library at `caller` would have called.
FfiCall find_ffi_call(void* caller) {
  const KeepErrno keep;
  static Table calls;
  void* symbol = calls.find(address_key(caller));
  if (symbol == nullptr) {
    Dl_info info{};
    void* library = dladdr(caller, &info) == 0
                        ? nullptr
                        : dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);  // never closed
    symbol = library == nullptr ? nullptr : dlsym(library, "ffi_call");
    if (symbol == nullptr) symbol = dlsym(RTLD_NEXT, "ffi_call");
    if (symbol == nullptr) abort();  // the caller found this one by the same way
    calls.insert(address_key(caller), symbol);
  }
  FfiCall call;
  memcpy(static_cast<void*>(&call), &symbol, sizeof call);
  return call;
}

// Calls a function of C in place of libffi, and counts that once Python counts.
void call_by_ffi(FfiCall call, void* interface, void (*function)(), void* result,
                 void** arguments) {
  if (__atomic_load_n(&g_state, __ATOMIC_ACQUIRE) == 0 || !is_ready(g_own))
    return call(interface, function, result, arguments);
  if (t_import != nullptr) {
    add(g_import_calls, 1);
    return call(interface, function, result, arguments);
  }
  void* address;
  memcpy(&address, static_cast<void*>(&function), sizeof address);
  weir_probe_function* entry = entry_of_address(address);
  count_entry(entry);
  begin_sample(address, entry);
  call(interface, function, result, arguments);
  end_sample(address);
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

WEIR_EXPORTED void ffi_call(void* interface, void (*function)(), void* result, void** arguments) {
  using namespace weir_probe::python;
  call_by_ffi(find_ffi_call(__builtin_return_address(0)), interface, function, result, arguments);
}
