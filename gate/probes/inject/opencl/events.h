// What is told of commands and waits in the event file. Nothing of it happens without events.
#pragma once

#include "gate/probes/inject/opencl/state.h"
#include "gate/probes/inject/writer/events.h"

namespace weir_probe::opencl {

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
// A poll found work of `queue` not done.
void note_poll(Queue* queue, uint64_t begin);

}  // namespace weir_probe::opencl
