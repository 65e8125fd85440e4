/* weir/instrument.h: marks in an engine's own source that weir counts and times.
 *
 * Off unless WEIR_PROFILE says otherwise in the environment: then a mark is one test of a flag, no
 * allocation, no clock, no file, no output. `weir run`, `weir gate` and `weir profile` switch it on
 * by `probes: [instrument]`; by hand, WEIR_PROFILE=counts,ops,cb,dispatch prints tables to standard
 * error when the program ends.
 *
 *   counts     dispatches, barriers, copies, submits, syncs, by queue and kernel
 *   ops        op scopes, and what makes up a token
 *   cb         command buffers by label, those of prefills apart, with GPU times (implies counts)
 *   dispatch   each dispatch of a command buffer, in order (implies cb)
 *
 * Plain C11, valid C++, no macro among the functions: docs/how-to/instrument.md has C, C++, Zig,
 * Rust and Swift. Every function may be called from any thread at any time, never fails, never
 * throws and leaves errno as it was. Counts and op scopes take no lock but where a thread has
 * something new (a name, a queue, a shape); what comes once in a token or a command buffer, and
 * clocks, take a short one. Text is UTF-8, ends in 0 and is copied; NULL is "".
 *
 * The ABI: functions and numbers here are not changed or taken away within one WEIR_INSTRUMENT_ABI,
 * and the library is libweir_instrument.so.1 as long as that is 1. */
#ifndef WEIR_INSTRUMENT_H
#define WEIR_INSTRUMENT_H

#include <stdint.h>

#define WEIR_INSTRUMENT_ABI 1

#if defined(__GNUC__) && defined(WEIR_INSTRUMENT_STATIC)
/* Linked into the same program or library: the flag is then read without a detour. */
#define WEIR_INSTRUMENT_API __attribute__((visibility("hidden")))
#elif defined(__GNUC__)
#define WEIR_INSTRUMENT_API __attribute__((visibility("default")))
#else
#define WEIR_INSTRUMENT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PROFILE_COUNTS 1u
#define WEIR_PROFILE_OPS 2u
#define WEIR_PROFILE_CB 4u
#define WEIR_PROFILE_DISPATCH 8u
/* What needs to know which evaluation its work is of, and what needs to know of waits. */
#define WEIR_PROFILE_TOKENS (WEIR_PROFILE_OPS | WEIR_PROFILE_CB)
#define WEIR_PROFILE_WAITS (WEIR_PROFILE_OPS | WEIR_PROFILE_COUNTS)

/* What is on. To be read; weir_profile_enable changes it. */
extern WEIR_INSTRUMENT_API uint32_t weir_profile_flags;

/* WEIR_INSTRUMENT_ABI of the library that is linked. */
WEIR_INSTRUMENT_API uint32_t weir_instrument_abi(void);
/* Not 0 when any of `flags` is on. */
WEIR_INSTRUMENT_API int32_t weir_profile_is_enabled(uint32_t flags);
/* Switches to `flags`, 0 being off. To be called while no other thread marks anything. Op scopes
 * that are open when ops go off or on are not counted. */
WEIR_INSTRUMENT_API void weir_profile_enable(uint32_t flags);
/* Forgets what a dump would tell. What weir reads stays: it tells start from work by itself. */
WEIR_INSTRUMENT_API void weir_profile_reset(void);
/* Prints the tables, sorted by total, to a file descriptor. */
WEIR_INSTRUMENT_API void weir_profile_dump(int32_t descriptor);
/* One line to standard error, once for each text in a process. */
WEIR_INSTRUMENT_API void weir_warn_once(const char* text);
/* CLOCK_MONOTONIC, nanoseconds: the CPU's clock of all times here. */
WEIR_INSTRUMENT_API uint64_t weir_now(void);

/* --- Devices and queues. Also to be called while off: no allocation, a table of 16 and 64. ---
 *
 * A device is what `device:` in weir.yaml asks for: `api` is cpu, vulkan, opencl, cuda, hip or
 * metal, `type` is cpu, discrete, integrated, virtual or other, `device_class` is what counts
 * depend on (model, driver and features, safe as a file name); "" makes one of api and name. */
WEIR_INSTRUMENT_API uint32_t weir_device_declare(const char* api, const char* type,
                                                 const char* name, const char* device_class);
WEIR_INSTRUMENT_API uint32_t weir_queue_declare(uint32_t device);

/* --- Counts. Marked where the engine records or calls, in the words of
 * docs/explanation/counting.md. --- */
WEIR_INSTRUMENT_API void weir_dispatch(uint32_t queue, const char* kernel);
/* The same with the number of workgroups. */
WEIR_INSTRUMENT_API void weir_dispatch_groups(uint32_t queue, const char* kernel, uint32_t x,
                                              uint32_t y, uint32_t z);
WEIR_INSTRUMENT_API void weir_barrier(uint32_t queue);

#define WEIR_COPY_WITHIN 0u  /* device to device */
#define WEIR_COPY_FILLING 1u /* a fill */
#define WEIR_COPY_TO_HOST 5u
#define WEIR_COPY_TO_DEVICE 6u
WEIR_INSTRUMENT_API void weir_copy(uint32_t queue, uint32_t kind, uint64_t bytes);
/* Work was handed over: `buffer` of weir_buffer_begin, or 0. */
WEIR_INSTRUMENT_API void weir_submit(uint32_t queue, uint64_t buffer);
/* The CPU waits from here on; optional, and of this thread. Until weir_sync it is no time of the op
 * that is open. */
WEIR_INSTRUMENT_API void weir_wait_begin(void);
/* A wait ended, or a poll said "done". Counts when something was submitted to the queue since the
 * last one that did; each time on a queue that is never submitted to. */
WEIR_INSTRUMENT_API void weir_sync(uint32_t queue);

/* --- Ops and tokens. --- */
#define WEIR_LAYER_UNKNOWN (-1)
/* A scope of this thread; scopes nest, up to 32 deep. It counts when it ends. */
WEIR_INSTRUMENT_API void weir_op_begin(const char* name, uint32_t device, int32_t layer);
/* Type and four dimensions (the fastest first, 1 where there is none) of an operand of the scope
 * that is open: the sources, at most 10, then the result. */
WEIR_INSTRUMENT_API void weir_op_operand(const char* type, const int64_t* ne);
WEIR_INSTRUMENT_API void weir_op_end(void);
/* An evaluation of `rows` tokens is over: 1 in decoding, the length of the batch in a prefill, 0
 * for what is none of a model (a warm-up). What ended since the call before, on any thread, belongs
 * to it. */
WEIR_INSTRUMENT_API void weir_token(uint32_t rows);

/* --- Command buffers and GPU times. --- */
/* Begins a command buffer: what this thread marks until the next one is in it. 0 when off. */
WEIR_INSTRUMENT_API uint64_t weir_buffer_begin(const char* label);
/* When the GPU ran it, in its ticks; from any thread, when it is known (a completion handler).
 * `pairs`: `dispatches` times begin and end, in the order of the buffer's dispatches; or NULL, 0.
 */
WEIR_INSTRUMENT_API void weir_buffer_times(uint32_t queue, uint64_t buffer, uint64_t begin,
                                           uint64_t end, const uint64_t* pairs,
                                           uint32_t dispatches);
/* A duration that the engine has measured itself. For the tables alone: `weir profile` has no place
 * for it, since it is no moment. */
WEIR_INSTRUMENT_API void weir_record(const char* label, uint64_t nanoseconds);
/* Both clocks at the same moment. The first ties them, a second one at least a millisecond later
 * tells the length of a tick; until then, and without weir_clock_rate, a tick is taken for a
 * nanosecond, and a warning says so. An event file keeps what was taken at its first times. */
WEIR_INSTRUMENT_API void weir_clock_pair(uint32_t device, uint64_t cpu_nanoseconds,
                                         uint64_t gpu_ticks);
/* The length of a tick where the API tells it (timestampPeriod). */
WEIR_INSTRUMENT_API void weir_clock_rate(uint32_t device, double nanoseconds_per_tick);
/* A moment of the device on the CPU's clock; the ticks themselves without a pair. */
WEIR_INSTRUMENT_API uint64_t weir_ticks_to_nanoseconds(uint32_t device, uint64_t ticks);

/* --- For this header and the library alone. ---
 *
 * The marks that are a test and a call: what switches each on, its name, parameters, arguments.
 * weir_NAME_on is what one does when it is on. */
#define WEIR_INSTRUMENT_MARKS(MARK)                                                              \
  MARK(COUNTS, dispatch, (uint32_t queue, const char* kernel), (queue, kernel))                  \
  MARK(COUNTS, dispatch_groups,                                                                  \
       (uint32_t queue, const char* kernel, uint32_t x, uint32_t y, uint32_t z),                 \
       (queue, kernel, x, y, z))                                                                 \
  MARK(COUNTS, barrier, (uint32_t queue), (queue))                                               \
  MARK(COUNTS, copy, (uint32_t queue, uint32_t kind, uint64_t bytes), (queue, kind, bytes))      \
  MARK(COUNTS, submit, (uint32_t queue, uint64_t buffer), (queue, buffer))                       \
  MARK(WAITS, wait_begin, (void), ())                                                            \
  MARK(WAITS, sync, (uint32_t queue), (queue))                                                   \
  MARK(OPS, op_begin, (const char* name, uint32_t device, int32_t layer), (name, device, layer)) \
  MARK(OPS, op_operand, (const char* type, const int64_t* ne), (type, ne))                       \
  MARK(OPS, op_end, (void), ())                                                                  \
  MARK(TOKENS, token, (uint32_t rows), (rows))

#define WEIR_INSTRUMENT_DECLARE(flag, name, parameters, arguments) \
  WEIR_INSTRUMENT_API void weir_##name##_on parameters;
WEIR_INSTRUMENT_MARKS(WEIR_INSTRUMENT_DECLARE)

/* With GCC and Clang a mark is its test, in line, and a call when that is true. Each of these is a
 * function of the library as well, for other languages and for WEIR_NO_INLINE. */
#if defined(__GNUC__) && !defined(WEIR_NO_INLINE)
#define WEIR_INSTRUMENT_INLINE extern inline __attribute__((gnu_inline, always_inline))
#define WEIR_INSTRUMENT_IN_LINE(flag, name, parameters, arguments)              \
  WEIR_INSTRUMENT_INLINE void weir_##name parameters {                          \
    if (__builtin_expect((weir_profile_flags & WEIR_PROFILE_##flag) != 0, 0)) { \
      weir_##name##_on arguments;                                               \
    }                                                                           \
  }
WEIR_INSTRUMENT_MARKS(WEIR_INSTRUMENT_IN_LINE)
WEIR_INSTRUMENT_INLINE int32_t weir_profile_is_enabled(uint32_t flags) {
  return (weir_profile_flags & flags) != 0;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
