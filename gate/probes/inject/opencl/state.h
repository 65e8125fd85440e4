// What the layer keeps in mind about the program's OpenCL objects.
//
// Nothing wraps a handle. Records are made when a handle is created, or when one is first used that
// the layer did not see created, by asking the driver. They are never freed: a handle that comes
// back gets its old record, so there are never more of them than handles at one time.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "gate/probes/inject/opencl/cl.h"
#include "gate/probes/inject/opencl/flights.h"
#include "gate/probes/inject/writer/file.h"
#include "gate/probes/inject/writer/launch.h"
#include "gate/probes/table.h"

namespace weir_probe::opencl {

struct Device {
  cl_device_id handle;
  uint32_t index;
  uint32_t queues;    // so far: the next one's number
  bool host_timer;    // that ties its clock to the CPU's
  uint64_t last_tie;  // atomic; CPU time; 0: never
  weir_probe_device* entry;
};

constexpr uint32_t k_not_seen_made = 1U << 30;

struct Queue {
  Device* device;
  weir_probe_queue* entry;
  uint32_t pending;    // atomic; 1: a command since its last counted sync
  uint32_t unflushed;  // atomic; 1: a command since its last counted submit
  // With events only:
  uint32_t references;    // atomic; the program's; k_not_seen_made where they are not known
  bool timed;             // its commands can be asked when they ran
  bool in_order;          // what is not done has nothing done behind it
  uint64_t polled_since;  // atomic; CPU time of the first poll that was not done; 0: none
  Flights flights;
};

struct Kernel {
  uint64_t place;  // atomic; device's index + 1 in the upper half, entry in the lower; 0: unknown
  uint64_t hash;   // of the name
  char name[200];  // more than the file's field, so that a cut is noticed there
};

// Everything process-wide. Lives as long as the process: the library is never unloaded.
struct Globals {
  pthread_mutex_t lock;  // of the file's tables and of the records
  cl_icd_dispatch next;  // the layer below, or the driver's side of the loader
  File file;
  bool ready;         // atomic: the file is made, and this process's own
  uint64_t* markers;  // counters by name
  uint64_t* copied_bytes;
  bool events_asked;  // by the environment; whether they can be written is another matter
  bool calls_unseen;  // atomic: to be told by the file once it is made
  Table devices;      // cl_device_id -> Device
  Table queues;       // cl_command_queue -> Queue
  Table kernels;      // cl_kernel -> Kernel
  Launches launches;
};
extern Globals g;

template <class Handle>
inline uint64_t number(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

// The record of a queue; null when memory is out (said in the file).
Queue* queue_of(cl_command_queue handle);
// The entry in the file for launches of `kernel` on `device`.
uint32_t kernel_on(Device* device, cl_kernel handle);

enum class What { dispatch, copy, barrier, marker, other };

// A command was enqueued with success.
void count_command(Queue* queue, What what);
// A call that waits for `queue` returned with success. `kind` and `begin` as in tell_wait.
void count_wait(Queue* queue, uint32_t kind, uint64_t begin);

// Puts the layer's functions into `table`, over those that are there.
void put_objects(cl_icd_dispatch* table);
void put_commands(cl_icd_dispatch* table);
void put_syncs(cl_icd_dispatch* table);

}  // namespace weir_probe::opencl

// Stands in front of `name` where there is something behind it.
#define WEIR_PUT(table, name, function) \
  if ((table)->name != nullptr) (table)->name = function
