// Intercepts another library's functions (HIP, CUDA): finds the library's own, and counts after
// them.
//
// Counts only calls of the program, not those that the library makes itself; and only those that
// succeeded.
#pragma once

#include "gate/probes/inject/streams/streams.h"

namespace weir_probe::streams {

constexpr int k_not_found = 500;  // the result where the library below has no such function

// Finds the library's own function, also if it was loaded privately (plug-ins). Null if it has
// none.
void* find_below(const char* name);
// Does the same and caches the result in `slot`.
void* next_function(void** slot, const char* name);

// Defines `getter`, which returns a `type`: a struct with functions of the library below, filled in
// as `table` by `...` at the first call; null where the library has none.
#define WEIR_FUNCTION_TABLE(type, getter, ...) \
  const type& getter() {                       \
    static type table;                         \
    static Once once;                          \
    once.run([] { __VA_ARGS__ });              \
    return table;                              \
  }

// initial-exec: read in two instructions, and no part of the C library that could allocate.
extern __thread const char* t_outermost __attribute__((tls_model("initial-exec")));

// Returns 1 within a call that the probe intercepted, on the calling thread. A twin's functions ask
// this when they are called: a program that has their addresses from dlsym goes around the probe.
WEIR_EXPORTED int weir_probe_in_call();

// --- Defined by the probe: beginnings of the names of the libraries that it intercepts, without
// ".so" ("libcudart-3b2f9a1c.so.13" in a wheel); ends with null.
extern const char* const k_libraries[];

}  // namespace weir_probe::streams

// Intercepts `name`: runs `before`, calls the library, and runs `...` if `when` holds. Both only
// around the program's own calls. In variants with per-thread default streams (`per_thread`) a null
// stream stands for the thread's own.
#define WEIR_INTERCEPT(name, per_thread, parameters, arguments, before, when, ...)               \
  WEIR_EXPORTED int name parameters {                                                            \
    static void* slot;                                                                           \
    const auto next =                                                                            \
        reinterpret_cast<int(*) parameters>(weir_probe::streams::next_function(&slot, #name));   \
    if (next == nullptr) return weir_probe::streams::k_not_found;                                \
    [[maybe_unused]] const auto actual_stream = [](void* requested) {                            \
      constexpr auto k_thread = weir_probe::streams::k_thread_stream;                            \
      return per_thread && requested == nullptr ? reinterpret_cast<void*>(k_thread) : requested; \
    };                                                                                           \
    const weir_probe::OutermostCall outermost_call(&weir_probe::streams::t_outermost,            \
                                                   __builtin_frame_address(0));                  \
    if (outermost_call.is_outermost()) {                                                         \
      before;                                                                                    \
    }                                                                                            \
    const int result = next arguments;                                                           \
    if (outermost_call.is_outermost() && (when)) {                                               \
      __VA_ARGS__;                                                                               \
    }                                                                                            \
    return result;                                                                               \
  }
// Intercepts a function by its full name.
#define WEIR_INTERCEPT_NAMED(name, ...) WEIR_INTERCEPT(name, false, __VA_ARGS__)

// How a call counts. `variants`: the functions to intercept, WEIR_INTERCEPT_NAMED or a macro like
// it. Counts if the call succeeded.
#define WEIR_COUNTED(variants, name, parameters, arguments, ...) \
  variants(name, parameters, arguments, , result == weir_probe::streams::k_done, __VA_ARGS__)
// Counts whatever the call returned.
#define WEIR_ANSWERED(variants, name, parameters, arguments, ...) \
  variants(name, parameters, arguments, , true, __VA_ARGS__)
// A call that frees a handle or an address. `before` forgets it first: once the call is back,
// another thread may have been requested the same one.
#define WEIR_ENDED(variants, name, parameters, arguments, before) \
  variants(name, parameters, arguments, before, false, )
