// What stands in front of another library's functions (HIP, CUDA): finds that library's own, and
// counts behind it.
//
// Only what the program asks for itself is counted, not what the library asks of itself; and only
// what succeeded.
#pragma once

#include "gate/probes/inject/streams/streams.h"

namespace weir_probe::streams {

constexpr int k_not_found = 500;  // the result where the library below has no such function

// The library's own function, also where it was loaded out of sight (plug-ins); null where it has
// none.
void* look_up(const char* name);
// The same, remembered in `slot`.
void* next_function(void** slot, const char* name);

// `type`, a struct of functions that LIST names, with those of the library below: looked up when
// `ask` is first called, null where it has none.
#define WEIR_LOOK_UP(name, ...) \
  table.name = reinterpret_cast<decltype(table.name)>(weir_probe::streams::look_up(#name));
#define WEIR_ASKED(type, ask, LIST)      \
  const type& ask() {                    \
    static type table;                   \
    static Once once;                    \
    once.run([] { LIST(WEIR_LOOK_UP) }); \
    return table;                        \
  }

// initial-exec: read in two instructions, and no part of the C library that could allocate.
extern __thread const char* t_outermost __attribute__((tls_model("initial-exec")));

// --- Told by the probe: beginnings of the names of the libraries it stands in front of, null at
// the end.
extern const char* const k_libraries[];

}  // namespace weir_probe::streams

// Stands in front of `name`: `before` and `...` are what to do before and behind the program's own
// call, the latter where `when` holds. For variants with per-thread default streams (`per_thread`)
// no stream is the thread's own.
#define WEIR_ROUND(name, per_thread, parameters, arguments, before, when, ...)                 \
  WEIR_EXPORTED int name parameters {                                                          \
    static void* slot;                                                                         \
    const auto next =                                                                          \
        reinterpret_cast<int(*) parameters>(weir_probe::streams::next_function(&slot, #name)); \
    if (next == nullptr) return weir_probe::streams::k_not_found;                              \
    [[maybe_unused]] const auto meant = [](void* given) {                                      \
      constexpr auto k_thread = weir_probe::streams::k_thread_stream;                          \
      return per_thread && given == nullptr ? reinterpret_cast<void*>(k_thread) : given;       \
    };                                                                                         \
    const weir_probe::Within within(&weir_probe::streams::t_outermost,                         \
                                    __builtin_frame_address(0));                               \
    if (within.outermost()) {                                                                  \
      before;                                                                                  \
    }                                                                                          \
    const int result = next arguments;                                                         \
    if (within.outermost() && (when)) {                                                        \
      __VA_ARGS__;                                                                             \
    }                                                                                          \
    return result;                                                                             \
  }
// A call by its name as it is.
#define WEIR_NAMED(name, ...) WEIR_ROUND(name, false, __VA_ARGS__)

// How a call counts. `variants`: which functions it is, WEIR_NAMED or another macro like it.
// Where it succeeded.
#define WEIR_COUNTED(variants, name, parameters, arguments, ...) \
  variants(name, parameters, arguments, , result == weir_probe::streams::k_done, __VA_ARGS__)
// Whatever it answered.
#define WEIR_ANSWERED(variants, name, parameters, arguments, ...) \
  variants(name, parameters, arguments, , true, __VA_ARGS__)
// One that ends what a handle or an address stands for: once it is back another thread may have
// been given the same one. `before` forgets it first.
#define WEIR_ENDED(variants, name, parameters, arguments, before) \
  variants(name, parameters, arguments, before, false, )
