// Shared by the probes of APIs with streams (CUDA, HIP): records of streams, kernels and graphs,
// and the counting of calls.
//
// A probe defines what stands under "Defined by the probe"; what its API alone has is in k_api.
#pragma once

#include <pthread.h>

#include "gate/probes/inject/streams/last_writes.h"
#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/inject/writer/file.h"
#include "gate/probes/table.h"

namespace weir_probe::streams {

constexpr int k_max_devices = 16;

// Streams that are not handles; others are pointers. The APIs agree on these numbers, on the
// directions of copies and on the kinds of nodes.
constexpr uint64_t k_null_stream = 0, k_legacy_stream = 1, k_thread_stream = 2;
enum Direction : int { k_to_host_from_host = 0, k_to_device = 1, k_to_host = 2, k_within = 3 };
enum NodeType : int {
  k_kernel_node = 0,
  k_copy_node = 1,
  k_fill_node = 2,
  k_host_node = 3,
  k_child_node = 4
};
constexpr int k_done = 0;  // the result of success

struct Size3 {
  uint32_t x, y, z;
};

// cudaMemcpy3DPeerParms of driver_types.h, where both ends are memory, not arrays.
struct PeerCopy {
  struct End {
    void* array;
    size_t position[3];
    char* at;
    size_t pitch, width, height;
    int device;
  } from, to;
  size_t width, height, depth;  // bytes, rows, and blocks of these
};

// Counters by name, beside those of queues and devices.
enum Counter {
  k_no_counter,
  k_markers,  // recorded events
  k_graph_launches,
  k_graph_instantiations,
  k_library_calls,               // of the API's libraries for matrix products
  k_programmatic_launches,       // kernels that may start before the one ahead of them has ended
  k_device_memory_bytes,         // equals the maximum, for its growth over lengths
  k_device_memory_peak_bytes,    // the maximum, rounded up as by the driver
  k_device_memory_steady_bytes,  // in use at the last submit
  k_allocations,
  k_memory_refused,    // allocations that failed for lack of memory
  k_small_read_backs,  // copies of few bytes to the program
  k_counters
};

// The kernel that ran last, by its index in the file, and LastWrites::count() at that time.
struct LastKernel {
  uint32_t index;   // atomic; 0: none
  uint64_t writes;  // atomic
};

struct Stream {
  int device;  // its number + 1; 0: to be asked again
  weir_probe_device* device_entry;
  weir_probe_queue* entry;
  uint32_t pending;  // atomic; 1: work since its last counted sync
  LastKernel last_kernel;
};

// One way of launching one kernel.
struct Launch {
  const void* function;            // host function, or a module's function
  const char* name;                // if the API gives it with the call; else null
  weir_probe_launch sizes;         // without its kernel
  uint64_t attributes = 0;         // a hash of those that change how it runs; 0: none does
  Counter counter = k_no_counter;  // one that each such launch counts as well
};

// The work of a graph each time it is launched.
struct Graph {
  Launch* launches;
  size_t launch_count, room;
  uint64_t copies;
  bool is_incomplete;  // it has work that was not seen, or for which memory was out
};

struct Globals : OwnFile {               // its lock is that of the records, too
  uint64_t* counters[k_counters];        // null: not counted
  uint32_t device_index[k_max_devices];  // index of the entry, +1; 0: none yet
  Table streams;                         // key -> Stream
  Table events;                          // event -> Stream, of its latest record
  Table graphs;                          // executable graph -> Graph
  Table kernels;                         // function and device -> weir_probe_kernel
  Table library_streams;                 // handle of a library -> stream
  Launches launches;
  Codes codes;
  uint64_t memory_used;    // atomic; of all devices
  LastKernel last_kernel;  // of all streams
  LastWrites writes;       // by copies and fills
};
extern Globals g;

// Returns the record of a stream, adding it if it is new; null when memory is out. The default
// streams are those of the calling thread.
Stream* find_stream(void* handle);
void forget_stream(void* handle);
// The file of this process, made if there is none yet.
void ensure_file();
// Adds to a counter if the probe has it.
void count(Counter what, uint64_t amount = 1);

weir_probe_launch launch_sizes(Size3 grid, Size3 block, size_t shared);
// Forgets the kernels of a function, as its address may be another's.
void forget_kernels(const void* function);

// Returns the record of an executable graph, empty; null when memory is out.
Graph* renew_graph(void* exec);
void forget_graph(void* exec);
void free_graph(Graph* graph);
// Appends a launch to a graph; the graph is incomplete when memory is out.
void append(Graph* to, const Launch& launch);

// Count calls that succeeded, or polls that answered `result`. On a stream that is being captured
// they build a graph, which counts when it is launched.
void count_launch(void* stream, const Launch& launch);
void count_launch(void* stream, const void* function, Size3 grid, Size3 block, size_t shared);
void count_graph_launch(void* stream, void* exec);
// Counts a call of a library as one dispatch of that name, however many kernels it runs.
void count_library_call(const char* name, void* stream, Counter counter);
struct Copy {
  int direction;
  uint64_t bytes;
  const void *to, *from;  // null: unknown
};
void count_copy(void* stream, const Copy& copy, bool waits);
void count_fill(void* stream, const void* at, uint64_t bytes);
void note_event_record(void* event, void* stream);
void count_barrier(void* stream);  // the stream waits for an event, not the program
void count_wait(Stream* stream);   // null: unknown, not counted
void count_device_wait();
void count_poll(Stream* stream, int result);
Stream* find_event_stream(void* event);  // null for one that was never recorded

// --- captures.cpp: a graph holds the program's calls while it was captured, not the nodes that the
// runtime made of them. So a call of a library is one dispatch, in a graph and outside.
// Notes that `stream` is captured, into `graph` if that is not null. From then on each stream is
// asked if it takes part in a capture.
void note_capture(void* stream, void* graph);
// Makes the work of the capture that began on `stream` that of `graph`; null: the capture failed.
void end_capture(void* stream, void* graph);
// Records the work of an executable graph; note_instantiation() also counts that it was made.
void add_executable(void* exec, void* graph);
void note_instantiation(void* exec, void* graph);
void forget_captured_graph(void* graph);

// --- functions.cpp
// `container`: as for kernel_key() (gate/probes/twin/runtime/blob.h).
void name_function(const void* function, const char* name, uint64_t container = 0);
// Gives `function` the name and facts of another one.
void copy_function_name(const void* function, const void* original);

// --- memory.cpp: counts device memory, by calls that answered `result`.
void count_allocation(int result, void* const* at, uint64_t bytes);
// The same for memory that has a handle in place of an address (cuMemCreate).
struct AllocationProperties;
void count_created_memory(int result, const uint64_t* handle, uint64_t bytes,
                          const AllocationProperties* properties);
void free_memory(const void* at);
void reset_memory(int device);
void map_memory(uint64_t handle, uint64_t at);
void release_memory(uint64_t handle);
void unmap_memory(uint64_t at, uint64_t bytes);

// --- collectives.cpp: a call of NCCL, named with what it sends.
void count_collective(const char* function, size_t number, int type, void* communicator,
                      void* stream);

// --- device.cpp: what is asked of the runtime.
// Functions of runtime and driver that the probe calls, besides those that it intercepts.
#define WEIR_RUNTIME_FUNCTIONS(X)                                          \
  X(current_device, (int*))                                                \
  X(device_name, (char*, int, int))                                        \
  X(device_attribute, (int*, int, int))                                    \
  X(version, (int*))                                                       \
  X(pointer_attribute, (void*, int, uint64_t))                             \
  X(capture_info, (void*, int*, uint64_t*, void**, const void**, size_t*)) \
  X(function_attributes, (void*, const void*))                             \
  X(occupancy, (int*, const void*, int, size_t))                           \
  X(last_error, ())

struct Runtime {  // each may be null
#define WEIR_FIELD(name, parameters) int(*name) parameters;
  WEIR_RUNTIME_FUNCTIONS(WEIR_FIELD)
#undef WEIR_FIELD
};
const Runtime& runtime();
int current_device();
// Returns the entry of a device, with a class made from its name, driver and features.
weir_probe_device describe_device(int device);
// Returns the Direction of a copy.
int find_direction(int direction, const void* to, const void* from);

// Returns true if the API has the function and it succeeds.
template <class R, class... P, class... A>
bool succeeds(R (*function)(P...), A... arguments) {
  return function != nullptr && function(arguments...) == k_done;
}

// Reads of a function's attributes, by the API's struct of them, the costs that both APIs have.
template <class Attributes>
bool read_common_costs(const void* function, Attributes* attributes, weir_probe_code_costs* out) {
  if (!succeeds(runtime().function_attributes, static_cast<void*>(attributes), function)) {
    return false;
  }
  out->registers = static_cast<uint32_t>(attributes->registers);
  out->local_bytes = static_cast<uint32_t>(attributes->local_bytes);
  out->shared_bytes = static_cast<uint32_t>(attributes->shared_bytes);
  return true;
}

// --- Defined by the probe ---
extern const char k_probe_name[];
extern const char* const k_counter_names[k_counters];  // null: not counted

struct Api {
  const char* name;  // in device classes
  uint32_t vendor;
  const char* driver;              // what has a version: "CUDA driver for"
  int major_unit, minor_unit;      // of that version
  int is_integrated = 0;           // the number of this attribute
  List<int> features = {};         // the numbers of those that tell devices apart
  uint64_t allocation_bytes = 1;   // the driver rounds up to a multiple of these
  uint64_t reservation_bytes = 1;  // the same of memory that has a handle
  bool tells_spills = false;       // whether its machine code says what was spilled
  struct {                         // null: not asked
#define WEIR_FIELD(name, parameters) const char* name = nullptr;
    WEIR_RUNTIME_FUNCTIONS(WEIR_FIELD)
#undef WEIR_FIELD
  } functions = {};
};
extern const Api k_api;
// Reads what the runtime says of a function's code. False: it does not know it.
bool read_costs(const void* function, weir_probe_code_costs* out);

// captures.cpp and functions.cpp define these for probes in front of a library.
bool is_captured(void* stream);
// Return true on a stream that is captured, and add the work to the capture.
bool capture_launch(void* stream, const Launch& launch);
bool capture_copy(void* stream);
bool capture_graph_launch(void* stream, void* exec);
// Returns a kernel's name; null or "" if it has none.
const char* kernel_name(const Launch& launch);
// Returns a hash of a kernel's code; 0 if it is unknown.
uint64_t code_hash(const Launch& launch);
// Fills in a kernel's costs when launched so, and its flags. May ask the driver.
void measure_costs(const Launch& launch, weir_probe_code* out);

}  // namespace weir_probe::streams
