// The layer's records of the program's OpenCL objects, and the functions that its files share.
//
// Nothing wraps a handle. A record is made when a handle is created. If the layer did not see that,
// it is made at the first use, by asking the driver. Records are never freed: a handle that is used
// again gets its old record, so there are no more of them than handles at one time.
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
  uint32_t queues;            // so far: the next one's number
  bool host_timer;            // its driver relates its clock to the CPU's
  uint64_t last_calibration;  // atomic; CPU time; 0: never
  weir_probe_device* entry;
};

// A command whose device times are not read yet; only where events with times are requested.
struct PendingCommand {
  cl_event event;  // a reference of the layer's own
  uint64_t cpu;    // when the call that enqueued it began
  uint64_t bytes;
  uint32_t kernel;
  uint32_t copy;  // as in weir_event_command
};

// The most commands of a queue that wait for their times. Beyond it the oldest get none.
constexpr uint32_t k_max_pending = 16384;

// The pending commands of a queue, in the order in which they were enqueued.
struct PendingCommands {
  pthread_mutex_t lock;   // never held while the driver is asked: it may call the program back
  PendingCommand* ring;   // k_max_pending places; null: none yet
  uint32_t first, count;  // the oldest, and how many
  bool is_reading;        // a thread reads times; only that thread removes commands
  bool read_again;        // it is to read once more: further commands may be done

  [[nodiscard]] PendingCommand& at(uint32_t i) const { return ring[(first + i) % k_max_pending]; }
};

constexpr uint32_t k_unknown_references = 1U << 30;

struct Queue {
  Device* device;
  weir_probe_queue* entry;
  uint32_t pending;    // atomic; 1: a command since its last counted sync
  uint32_t unflushed;  // atomic; 1: a command since its last counted submit
  // With events only:
  uint32_t
      references;  // atomic; the program's; k_unknown_references if the queue was not seen created
  bool timed;      // its commands have device times
  bool in_order;   // commands behind an unfinished one are not done either
  PollStart polled;
  PendingCommands pending_commands;
};

// Hashes of what a program's kernels are built from.
struct Program {
  uint64_t source;  // hash of its source, IL or binary, or of the programs it was linked from; 0:
                    // unknown
  uint64_t build_hash;  // the same with the options and headers of its latest build
};

struct Kernel {
  uint64_t place;  // atomic; device's index + 1 in the upper half, entry in the lower; 0: unknown
  uint64_t hash;   // hash of the name
  uint64_t code;   // hash of the name and its program; 0: unknown
  weir_probe_code* code_entry;  // atomic; the entry of the code for the device in `place`
  char name[200];               // more than the file's field, so that a cut is noticed there
};

// Everything process-wide. Lives as long as the process: the library is never unloaded.
struct Globals : OwnFile {  // its lock is that of the records, too
  cl_icd_dispatch driver;   // the layer below, or the driver's side of the loader
  uint64_t* markers;        // counters by name
  uint64_t* copied_bytes;
  bool events_requested;  // by the environment; whether they can be written is another matter
  Table devices;          // cl_device_id -> Device
  Table queues;           // cl_command_queue -> Queue
  Table programs;         // cl_program -> Program
  Table kernels;          // cl_kernel -> Kernel
  Launches launches;
  Codes codes;
};
extern Globals g;

template <class Handle>
inline uint64_t handle_key(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

// Under g.lock. Makes the files before the first count, also in a child.
void ensure_initialized();

// Returns the device's record, adding it if it is new; null when memory is out.
Device* find_or_add_device(cl_device_id handle);

// Returns the record of `handle`, zeroed if it is new; null when memory is out. Under g.lock.
template <class Record>
Record* find_or_add_record(Table* table, uint64_t handle) {
  auto* record = get_or_create<Record>(table, handle);
  if (record == nullptr) set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  return record;
}

// Returns the queue's record, adding it if it is new; null when memory is out, which sets a flag of
// the file.
Queue* find_or_add_queue(cl_command_queue handle);
// The entries in the file of a kernel on a device, and of its code.
struct KernelEntry {
  uint32_t index;
  weir_probe_code* code;  // null: unknown
};
KernelEntry find_or_add_kernel(Device* device, cl_kernel handle);
// Returns the code hash of a program's kernel; 0 if the layer did not see how the program was made.
uint64_t kernel_code_hash(cl_program program, uint64_t kernel_name);

// Kinds of commands. The values are the counters of a queue; markers and others have none there.
enum class CommandKind : uint32_t {
  dispatch = WEIR_COUNT_DISPATCHES,
  copy = WEIR_COUNT_COPIES,
  barrier = WEIR_COUNT_BARRIERS,
  marker = WEIR_COUNTERS,
  other
};

// Counts a command that was enqueued with success.
void count_command(Queue* queue, CommandKind what);
// Counts a successful call that waits for `queue`; also at the device if `count_at_device`. `kind`
// and `begin` as in write_wait_event.
void count_wait(Queue* queue, uint32_t kind, uint64_t begin, bool count_at_device = true);

// Put the layer's functions into `table`, in place of those that are there.
void intercept_queues(cl_icd_dispatch* table);
void intercept_programs(cl_icd_dispatch* table);
void intercept_commands(cl_icd_dispatch* table);
void intercept_memory(cl_icd_dispatch* table);

// --- memory.cpp: adds the counters to a new file; notes the memory in use at a submit.
void add_memory_counters();
void record_steady_memory();

// --- Commands and waits in the event file (events.cpp); only with events.

// The queue's index in the file.
inline uint32_t queue_index(const Queue* queue) {
  return static_cast<uint32_t>(queue->entry - g.file.queues);
}

// CPU time if events are requested, else 0.
inline uint64_t call_begin() {
  return __builtin_expect(g.events_requested, 0) ? now_nanoseconds() : 0;
}

// Times one command, from before its call goes down. If the program did not ask for an event, the
// layer does, and keeps it until the command's times are known.
class CommandTimer {
 public:
  // `event`: address of the call's last argument. This object must outlive the call.
  CommandTimer(cl_command_queue handle, cl_event** event) : begin_(call_begin()) {
    if (begin_ != 0) prepare(handle, event);
  }
  // Writes the command's event, or adds it to the pending ones. Call it when the driver has
  // accepted the command. `copy` as in weir_event_command.
  void write_command(Queue* queue, uint32_t kernel, uint32_t copy, uint64_t bytes) const {
    if (begin_ != 0 && is_recording_events()) write(queue, kernel, copy, bytes);
  }
  [[nodiscard]] uint64_t begin() const { return begin_; }

 private:
  void prepare(cl_command_queue handle, cl_event** event);
  void write(Queue* queue, uint32_t kernel, uint32_t copy, uint64_t bytes) const;

  uint64_t begin_;
  cl_event* event_ = nullptr;  // address for the call's event; null when it is not timed
  cl_event own_event_ = nullptr;
};

// Writes a wait or poll of that kind that reported work of `queue` done. `begin`: when the call
// began; 0 without events.
void write_wait_event(Queue* queue, uint32_t kind, uint64_t begin, bool sync);
// Notes a poll that began at `begin` and found work of `queue` not done.
inline void note_poll(Queue* queue, uint64_t begin) {
  if (begin != 0) queue->polled.note_not_ready(begin);
}

// Writes the times of the commands that are done on `queue`; waits for nothing. To be called when
// the program itself has learned that something is done.
void collect_times(Queue* queue);
// Forgets the pending commands in the child of a fork: their events belong to the parent.
void reset_pending(Queue* queue);
// Writes the pending commands without times, and without asking the driver: it may be gone.
void write_pending_untimed(Queue* queue);

constexpr const char* k_activity = "tells events";  // subject of the message about missing times

// Ties the device's clock to the CPU's, if that was not done lately.
void calibrate_clock(Device* device);

}  // namespace weir_probe::opencl

// Replaces `name` in the table, if the layer below has such a function.
#define WEIR_INTERCEPT(table, name, function) \
  if ((table)->name != nullptr) (table)->name = function
