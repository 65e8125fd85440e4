// What probes of APIs with streams share (HIP, CUDA): streams, kernels, graphs, and how calls
// count.
//
// The probe fills in what only its API can tell: the functions under "Told by the probe".
#pragma once

#include <pthread.h>

#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/inject/writer/file.h"
#include "gate/probes/table.h"

namespace weir_probe::streams {

constexpr int k_most_devices = 16;

// Streams that are no handles; others are pointers. The APIs agree on these, on the directions of
// copies and on the kinds of nodes.
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
  int device;  // its number, +1; 0: to be asked again
  weir_probe_device* device_entry;
  weir_probe_queue* entry;
  uint32_t pending;  // atomic; 1: work since its last counted sync
};

// One way of launching one kernel.
struct Launch {
  const void* function;     // of the host, or a module's
  const char* name;         // where the API tells it with the call; else null
  weir_probe_launch sizes;  // without its kernel
  uint64_t attributes = 0;  // a hash of those that change how it runs; 0: none does
};

// What a graph does each time it is launched.
struct Graph {
  Launch* launches;
  size_t launch_count, room;
  uint64_t copies;
};

struct Globals : OwnFile {                // its lock is that of the records, too
  bool capturing;                         // atomic: some stream has been captured
  uint64_t* markers;                      // a counter by name
  uint32_t device_index[k_most_devices];  // of the entry, +1; 0: none yet
  Table streams;                          // key -> Stream
  Table events;                           // event -> Stream, of its latest record
  Table graphs;                           // executable graph -> Graph
  Table kernels;                          // function and device -> weir_probe_kernel
  Table names;                            // function -> char*, for the probe to fill
  Launches launches;
  Codes codes;
  uint64_t memory_used;     // atomic; of all devices
  uint64_t* memory_steady;  // the counter of what was taken last; null: the probe sees no memory
};
extern Globals g;

// --- memory.cpp: memory of devices. Whoever sees it calls have_memory(), and then nothing of it is
// absent; `bytes` as the driver hands it out.
void have_memory();
// By how much more was taken at once than ever before.
uint64_t memory_taken(uint64_t at, uint64_t bytes, int device);
void memory_given_back(const void* at);
void memory_reset(int device);
// Of memory with a handle for its address (cuMemCreate).
void memory_mapped(uint64_t handle, uint64_t at);
void memory_released(uint64_t handle);
void memory_unmapped(uint64_t at, uint64_t bytes);

// The record of a stream as the calling thread means it; null when memory is out.
Stream* stream_of(void* handle);
void stream_ended(void* handle);
// The file of this process, made if there is none yet.
void ensure_file();

weir_probe_launch sizes_of(Size3 grid, Size3 block, size_t shared);
// Reads what `graph` does into the record of `exec`.
void graph_was_made(void* exec, void* graph);
void graph_ended(void* exec);
// The address stands for another function from now on; the same with its name.
void forget_function(const void* function);
void function_is(const void* function, const char* name);

// Calls that succeeded, or polls that answered `result`. They count nothing on a stream that is
// being captured: that builds a graph, which counts when it is launched.
void launched(void* stream, const Launch& launch);
void launched_graph(void* stream, void* exec);
void copied(void* stream, int direction, uint64_t bytes, bool waits);
void filled(void* stream, uint64_t bytes);
void recorded(void* event, void* stream);
void waits_for_event(void* stream);  // the stream, not the program
void waited(Stream* stream);         // null: nothing is known of it
void waited_for_device();
void polled(Stream* stream, int result);
Stream* stream_of_event(void* event);  // null for one that was never recorded

// Fills in the probe's API, "unknown" where the device's name was not told, and a number for the
// device made from its name; the name's hash.
uint64_t name_device(weir_probe_device* device, bool told);
// Its class, of what else is there.
void classify_device(weir_probe_device* device);

// Some stream is being captured: from now on each is asked whether it is.
void capture_began();

// Whether the API has such a function and it answers with success.
template <class R, class... P, class... A>
bool succeeds(R (*function)(P...), A... arguments) {
  return function != nullptr && function(arguments...) == k_done;
}

// --- Told by the probe ---
extern const char k_probe_name[];
extern const char k_api_name[];  // in device classes
int current_device();
weir_probe_device describe(int device);
// Null or "" where it has none.
const char* name_of(const Launch& launch, void* stream);
// A hash of its code; 0 where it is not known.
uint64_t code_of(const Launch& launch);
// What it costs when launched so, and its flags. May ask the driver.
void measure(const Launch& launch, weir_probe_code* out);
bool is_captured(void* stream);
// With `nodes` null only their number. False where the API cannot tell.
bool nodes_of(void* graph, void** nodes, size_t* count);
int type_of(void* node);  // a NodeType, another number, or -1 where it cannot be told
bool launch_of(void* node, Launch* out);
void* child_of(void* node);  // null where it cannot be told

}  // namespace weir_probe::streams
