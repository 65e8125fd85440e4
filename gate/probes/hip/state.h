// What the parts of the HIP probe share.
#pragma once

#include <pthread.h>

#include "gate/probes/hip/hip.h"
#include "gate/probes/table.h"
#include "gate/probes/writer/file.h"
#include "gate/probes/writer/launch.h"

namespace weir_probe::hip {

constexpr int k_most_devices = 16;

struct Stream {
  int device;  // its number; -1: to be asked again
  weir_probe_device* device_entry;
  weir_probe_queue* entry;
  uint32_t pending;  // atomic; 1: work since its last counted sync
};

// One way of launching one kernel.
struct Launch {
  const void* function;     // of the host, or a module's
  weir_probe_launch sizes;  // without its kernel
};

// What a graph does each time it is launched.
struct Graph {
  Launch* launches;
  size_t launch_count;
  uint64_t copies;
};

struct Globals {
  pthread_mutex_t lock;  // of the file's tables and the records
  File file;
  bool ready;                             // atomic: the file is made, and this process's own
  bool capturing;                         // atomic: some stream has been captured
  uint64_t* markers;                      // a counter by name
  uint32_t device_index[k_most_devices];  // of the entry, +1; 0: none yet
  Table streams;                          // key -> Stream
  Table events;                           // hipEvent_t -> Stream, of its latest record
  Table graphs;                           // hipGraphExec_t -> Graph
  Table kernels;                          // function and device -> weir_probe_kernel
  Table names;                            // hipFunction_t -> char*
  Launches launches;
};
extern Globals g;

// The record of a stream as the calling thread means it; null when memory is out.
Stream* stream_of(void* handle);
void stream_ended(void* handle);
// True where calls on `stream` only build a graph.
bool is_captured(void* stream);

weir_probe_launch sizes_of(Dim3 grid, Dim3 block, size_t shared);
void count_launch(void* stream, const Launch& launch);
void count_graph(void* stream, void* exec);
// Reads what `graph` does into the record of `exec`.
void graph_was_made(void* exec, void* graph);
void graph_ended(void* exec);
// A module's functions have no host function to be named by.
void function_was_found(void* function, const char* name);

// `kind` is a weir_probe_transfer_kind; `from` and `to` "program", "device" or "".
void count_copy(void* stream, uint32_t kind, const char* from, const char* to, uint64_t bytes,
                bool waits);

void count_wait(Stream* stream);
void count_sync(Stream* stream);

}  // namespace weir_probe::hip
