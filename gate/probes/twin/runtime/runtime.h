// Declarations that the stand-in libraries of a CUDA or HIP twin share. They behave as the GPU's
// would and count nothing: the probe in front of them (gate/probes/inject) does, as with a real
// driver.
//
// The files of this folder are compiled once for each API, whose header says how its functions are
// called: WEIR_RUNTIME(Malloc, …) is cudaMalloc or hipMalloc.
#pragma once

#include "gate/probes/inject/streams/interface.h"
#include "gate/probes/inject/streams/last_writes.h"

#ifdef WEIR_TWIN_HIP
#include "gate/probes/twin/hip/hip.h"
#else
#include "gate/probes/twin/cuda/cuda.h"
#endif

#include <pthread.h>

#include "gate/probes/twin/runtime/blob.h"

namespace weir_probe::runtime_twin {

// --- device.cpp
// The description; null where there is none, after a message.
const weir_runtime_twin* twin();
int attribute(int number);  // 0 without a twin
int device_count();         // the same
int driver_version();       // the same
int device();               // the calling thread's
void set_device(int index);
bool is_used(int index);      // whether a thread made it its own
int check_device(int index);  // k_ok for a device that there is
int fail(int error);          // sets the thread's last error and returns it
const char* error_name(int error);
const char* error_text(int error);
// Returns k_ok if `good`, else fails with `error`.
inline int success_if(bool good, int error) { return good ? k_ok : fail(error); }

// --- kernels.cpp
struct Module {
  int arch;            // of the chosen image; CUDA: 10 * major + minor; HIP: 1; 0: none fits
  bool machine_code;   // else PTX
  uint64_t container;  // as kernel_key() wants it
};
struct Function {
  const char* name;
  const weir_runtime_kernel* facts;  // null: unknown
  Module module;
  int dynamic_shared;  // atomic; bytes that FuncSetAttribute allows; 0: never set
};
constexpr int k_guessed_registers = 64;  // of a function without facts
// Makes a function known by an address. The function stays.
void add_function(const void* host_or_handle, Function* function);
// Null for an unknown function.
Function* find_function(const void* host_or_handle);
// Returns true if the facts come from the code that this GPU runs. Limits in another GPU's code do
// not apply: llama.cpp compiles its attention for different blocks on each generation.
bool is_exact(const weir_runtime_kernel* facts);
int max_block_threads(const Function& function);
int report_no_image();

// Launches a function, or adds it to the stream's capture.
int launch(const void* kernel, Size3 grid, Size3 block, size_t shared, void* stream);
int find_loaded_function(const void* kernel, Function** out);
// Sets the limit of dynamic shared memory; other attributes have no effect.
int set_function_attribute(const void* kernel, int number, int value);

// --- memory.cpp
bool is_device_address(const void* at);
// The block of device memory that contains `at`; false if there is none.
bool find_block(const void* at, uint64_t* begin, uint64_t* bytes, int* device);
// Returns true for memory of the host that was allocated or registered by the API.
bool is_pinned(const void* at);
// The writes of copies and fills to device memory.
extern LastWrites g_writes;

// --- values.cpp
// Writes to `to` what the kernel that wrote a value would have computed, where a rule knows it.
void answer_read(char* to, size_t bytes, const char* kernel);

// --- streams.cpp
// Returns true if the work runs now. While `stream` is captured, the work becomes a node of the
// graph and the result is false. `*error` is set for an invalidated capture.
bool runs_now(void* stream, NodeType type, int* error, const void* function = nullptr);
// Notes that the kernel `name` ran on `stream`.
void note_kernel(void* stream, const char* name);
struct LastKernel {
  const char* name;  // null: none ran
  uint64_t writes;   // LastWrites::count() when it ran
};
// The kernel that ran last on `stream`, or of all if none did there.
LastKernel last_kernel(void* stream);
// Runs a call of a library, which is one kernel of that name. Returns `failure` within an
// invalidated capture.
int run_library_call(void* stream, const char* name, int failure);
// Checks a call that waits for `stream`. Such a call invalidates a capture, and fails.
int check_wait(void* stream);
// Reads the capture that a stream takes part in. Its nodes have no dependencies that are known.
int capture_info(void* stream, int* status, uint64_t* number, void** graph, size_t* dependencies);
// Returns true if an executable graph can take the nodes of `graph`.
bool can_update(const void* exec, const void* graph);

// --- Implemented for each API
// Chooses the code of a program's fat binary that the GPU would load.
Module choose_image(const void* wrapper);
// Returns the error for a launch that a real driver refuses, or k_ok. `shared`: bytes of dynamic
// shared memory.
int check_launch(const Function& function, Size3 grid, Size3 block, size_t shared);
// The number of its blocks that one multiprocessor holds at a time.
int resident_blocks(const Function& function, int threads, size_t dynamic_shared);
// Prints that the engine has no code for the GPU.
void print_no_image();

}  // namespace weir_probe::runtime_twin
