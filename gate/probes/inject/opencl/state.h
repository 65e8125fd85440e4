// What the layer keeps in mind about the program's OpenCL objects.
//
// Nothing wraps a handle. Records are made when a handle is created, or when one is first used that
// the layer did not see created, by asking the driver. They are never freed: a handle that comes
// back gets its old record, so there are never more of them than handles at one time.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "gate/probes/inject/opencl/class.h"
#include "gate/probes/inject/writer/calls.h"
#include "gate/probes/inject/writer/events.h"
#include "gate/probes/inject/writer/file.h"
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

// A command whose device times are not known yet: only where events with times are asked for.
struct Flight {
  cl_event event;  // a reference of the layer's own
  uint64_t cpu;    // when the call that enqueued it began
  uint64_t bytes;
  uint32_t kernel;
  uint32_t copy;  // as in weir_event_command
};

// The most that wait for a time on one queue. Beyond it the oldest are let go without one.
constexpr uint32_t k_most_flights = 16384;

// In the order they were enqueued, as far as several threads can have one.
struct Flights {
  pthread_mutex_t lock;   // never held while the driver is asked: it may call the program back
  Flight* ring;           // k_most_flights places; null: none yet
  uint32_t first, count;  // the oldest, and how many
  bool reading;           // a thread looks at what is there: that one alone takes some out
  bool again;             // and is to look once more: something was done meanwhile

  [[nodiscard]] Flight& at(uint32_t i) const { return ring[(first + i) % k_most_flights]; }
};

constexpr uint32_t k_not_seen_made = 1U << 30;

struct Queue {
  Device* device;
  weir_probe_queue* entry;
  uint32_t pending;    // atomic; 1: a command since its last counted sync
  uint32_t unflushed;  // atomic; 1: a command since its last counted submit
  // With events only:
  uint32_t references;  // atomic; the program's; k_not_seen_made where they are not known
  bool timed;           // its commands can be asked when they ran
  bool in_order;        // what is not done has nothing done behind it
  Polled polled;
  Flights flights;
};

// What a program's kernels are made of.
struct Program {
  uint64_t source;  // hash of its source, IL or binary; of what it was linked from; 0: unknown
  uint64_t built;   // the same with the options and headers of its latest build
};

struct Kernel {
  uint64_t place;  // atomic; device's index + 1 in the upper half, entry in the lower; 0: unknown
  uint64_t hash;   // of the name
  uint64_t code;   // of that and its program; 0: unknown
  weir_probe_code* counted;  // atomic; the entry of that for the device in `place`
  char name[200];            // more than the file's field, so that a cut is noticed there
};

// Everything process-wide. Lives as long as the process: the library is never unloaded.
struct Globals : OwnFile {  // its lock is that of the records, too
  cl_icd_dispatch next;     // the layer below, or the driver's side of the loader
  uint64_t* markers;        // counters by name
  uint64_t* copied_bytes;
  bool events_asked;  // by the environment; whether they can be written is another matter
  Table devices;      // cl_device_id -> Device
  Table queues;       // cl_command_queue -> Queue
  Table programs;     // cl_program -> Program
  Table kernels;      // cl_kernel -> Kernel
  Launches launches;
  Codes codes;
};
extern Globals g;

template <class Handle>
inline uint64_t number(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

// Under g.lock. Makes the files before the first count, also in a child.
void make_ready();

// Null when memory is out.
Device* device_of(cl_device_id handle);

// Under g.lock. The record of `handle`, zeroed if it is new; null when memory is out.
template <class Record>
Record* record_of(Table* table, uint64_t handle) {
  auto* record = known_or_fresh<Record>(table, handle);
  if (record == nullptr) set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  return record;
}

// The record of a queue; null when memory is out (said in the file).
Queue* queue_of(cl_command_queue handle);
// The entry in the file for launches of `kernel` on `device`, and that of its code.
struct KernelEntry {
  uint32_t index;
  weir_probe_code* code;  // null: unknown
};
KernelEntry kernel_on(Device* device, cl_kernel handle);
// That of a program's kernel; 0 where it was not seen how the program was made.
uint64_t code_of(cl_program program, uint64_t kernel_name);

// By the counter of a queue; the others have none there.
enum class What : uint32_t {
  dispatch = WEIR_COUNT_DISPATCHES,
  copy = WEIR_COUNT_COPIES,
  barrier = WEIR_COUNT_BARRIERS,
  marker = WEIR_COUNTERS,
  other
};

// A command was enqueued with success.
void count_command(Queue* queue, What what);
// A call that waits for `queue` returned with success, `of_device`: which its device counts as
// well. `kind` and `begin` as in tell_wait.
void count_wait(Queue* queue, uint32_t kind, uint64_t begin, bool of_device = true);

// Puts the layer's functions into `table`, over those that are there.
void put_queues(cl_icd_dispatch* table);
void put_programs(cl_icd_dispatch* table);
void put_commands(cl_icd_dispatch* table);
void put_memory(cl_icd_dispatch* table);

// --- memory.cpp: its counters, in a new file; what is taken as work is handed over.
void have_memory();
void note_memory();

// --- What is told of commands and waits in the event file (events.cpp): only with events.

// The queue's index in the file.
inline uint32_t index_of(const Queue* queue) {
  return static_cast<uint32_t>(queue->entry - g.file.queues);
}

// CPU time where events are asked for, else 0.
inline uint64_t call_begins() {
  return __builtin_expect(g.events_asked, 0) ? now_nanoseconds() : 0;
}

// One command, from before its call goes down: the layer asks for an event where the program did
// not, and keeps it until the command's times are known.
class Enqueued {
 public:
  // `event`: where the call's last argument lies. This object must outlive the call.
  Enqueued(cl_command_queue handle, cl_event** event) : begin_(call_begins()) {
    if (begin_ != 0) prepare(handle, event);
  }
  // The driver took it. `copy` as in weir_event_command.
  void tell(Queue* queue, uint32_t kernel, uint32_t copy, uint64_t bytes) const {
    if (begin_ != 0 && events_on()) put(queue, kernel, copy, bytes);
  }
  [[nodiscard]] uint64_t begin() const { return begin_; }

 private:
  void prepare(cl_command_queue handle, cl_event** event);
  void put(Queue* queue, uint32_t kernel, uint32_t copy, uint64_t bytes) const;

  uint64_t begin_;
  cl_event* made_ = nullptr;  // where the call puts its event; null when it is not timed
  cl_event mine_ = nullptr;
};

// A call that began at `begin` (0: without events) has told the program that work of `queue` is
// done: a wait of this kind, or a poll.
void tell_wait(Queue* queue, uint32_t kind, uint64_t begin, bool sync);
// A poll that began at `begin` found work of `queue` not done.
inline void note_poll(Queue* queue, uint64_t begin) {
  if (begin != 0) queue->polled.not_yet(begin);
}

// Reads the times of what is done on `queue` and tells them; waits for nothing. To be called when
// the program itself has learned that something is done.
void harvest(Queue* queue);
// For the child of a fork: these events are its parent's.
void forget_flights(Queue* queue);
// Tells what is still in flight, without times and without asking the driver: it may be gone.
void abandon_flights(Queue* queue);

constexpr const char* k_told = "tells events";  // what is untimed

// Ties the device's clock to the CPU's, if that was not done lately.
void tie_clock(Device* device);

}  // namespace weir_probe::opencl

// Stands in front of `name` where there is something behind it.
#define WEIR_PUT(table, name, function) \
  if ((table)->name != nullptr) (table)->name = function
