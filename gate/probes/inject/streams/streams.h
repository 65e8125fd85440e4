// Shared by the probes of APIs with streams (HIP, CUDA): records of streams, kernels and graphs,
// and the counting of calls.
//
// Each probe implements the functions under "Implemented by the probe" with its API.
#pragma once

#include <pthread.h>

#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/inject/writer/file.h"
#include "gate/probes/table.h"

namespace weir_probe::streams {

constexpr int k_max_devices = 16;

// Streams that are not handles; others are pointers. The APIs agree on these numbers, on the
// directions of copies and on the kinds of nodes.
constexpr uint64_t k_null_stream = 0, k_legacy_stream = 1, k_thread_stream = 2;
enum Direction : int { k_to_host_from_host = 0, k_to_device = 1, k_to_host = 2, k_within = 3 };
enum NodeType : int { k_kernel_node = 0, k_copy_node = 1, k_fill_node = 2, k_child_node = 4 };
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

struct Stream {
  int device;  // its number + 1; 0: to be asked again
  weir_probe_device* device_entry;
  weir_probe_queue* entry;
  uint32_t pending;  // atomic; 1: work since its last counted sync
};

// One way of launching one kernel.
struct Launch {
  const void* function;     // host function, or a module's function
  const char* name;         // if the API gives it with the call; else null
  weir_probe_launch sizes;  // without its kernel
  uint64_t attributes = 0;  // a hash of those that change how it runs; 0: none does
};

// The work of a graph each time it is launched.
struct Graph {
  Launch* launches;
  size_t launch_count, room;
  uint64_t copies;
};

struct Globals : OwnFile {               // its lock is that of the records, too
  bool capturing;                        // atomic: some stream has been captured
  uint64_t* markers;                     // a counter by name
  uint32_t device_index[k_max_devices];  // index of the entry, +1; 0: none yet
  Table streams;                         // key -> Stream
  Table events;                          // event -> Stream, of its latest record
  Table graphs;                          // executable graph -> Graph
  Table kernels;                         // function and device -> weir_probe_kernel
  Table names;                           // function -> char*, for the probe to fill
  Launches launches;
  Codes codes;
  uint64_t memory_used;     // atomic; of all devices
  uint64_t* memory_steady;  // counter of the memory in use at the last submit; null: not counted
};
extern Globals g;

// --- memory.cpp: device memory. A probe that sees it calls add_memory_counters(), so that its
// counts are reported even if they are 0. `bytes` are rounded up as by the driver.
void add_memory_counters();
// Adds an allocation and returns by how much it raised the maximum.
uint64_t add_memory(uint64_t at, uint64_t bytes, int device);
void free_memory(const void* at);
void reset_memory(int device);
// The same for memory that has a handle in place of an address (cuMemCreate).
void map_memory(uint64_t handle, uint64_t at);
void release_memory(uint64_t handle);
void unmap_memory(uint64_t at, uint64_t bytes);

// Returns the record of a stream, adding it if it is new; null when memory is out. The default
// streams are those of the calling thread.
Stream* find_stream(void* handle);
void forget_stream(void* handle);
// The file of this process, made if there is none yet.
void ensure_file();

weir_probe_launch launch_sizes(Size3 grid, Size3 block, size_t shared);
// Reads the work of `graph` into the record of `exec`.
void add_graph(void* exec, void* graph);
void forget_graph(void* exec);
// Forgets the function that had this address; name_function also gives the name of the new one.
void forget_function(const void* function);
void name_function(const void* function, const char* name);

// Count calls that succeeded, or polls that answered `result`. Nothing counts on a stream that is
// being captured: that builds a graph, which counts when it is launched.
void count_launch(void* stream, const Launch& launch);
void count_graph_launch(void* stream, void* exec);
void count_copy(void* stream, int direction, uint64_t bytes, bool waits);
void count_fill(void* stream, uint64_t bytes);
void note_event_record(void* event, void* stream);
void count_barrier(void* stream);  // the stream waits for an event, not the program
void count_wait(Stream* stream);   // null: unknown, not counted
void count_device_wait();
void count_poll(Stream* stream, int result);
Stream* find_event_stream(void* event);  // null for one that was never recorded

// Fills in the probe's API and a device number made from the name; without a name it is "unknown".
// Returns the hash of the name.
uint64_t name_device(weir_probe_device* device, bool has_name);
// Fills in the device class, from the other fields.
void classify_device(weir_probe_device* device);

// Notes that a stream is being captured. From then on each stream is asked if it is.
void note_capture();

// Returns true if the API has the function and it succeeds.
template <class R, class... P, class... A>
bool succeeds(R (*function)(P...), A... arguments) {
  return function != nullptr && function(arguments...) == k_done;
}

// --- Implemented by the probe ---
extern const char k_probe_name[];
extern const char k_api_name[];  // in device classes
int current_device();
weir_probe_device describe_device(int device);
// Returns a kernel's name; null or "" if it has none.
const char* kernel_name(const Launch& launch, void* stream);
// Returns a hash of a kernel's code; 0 if it is unknown.
uint64_t code_hash(const Launch& launch);
// Fills in a kernel's costs when launched so, and its flags. May ask the driver.
void measure_costs(const Launch& launch, weir_probe_code* out);
bool is_captured(void* stream);
// Lists the nodes of a graph; only their number if `nodes` is null. False if the API cannot tell.
bool list_nodes(void* graph, void** nodes, size_t* count);
int node_type(void* node);  // a NodeType, another number, or -1 if it is unknown
bool read_launch(void* node, Launch* out);
void* child_graph(void* node);  // null if it is unknown

}  // namespace weir_probe::streams
