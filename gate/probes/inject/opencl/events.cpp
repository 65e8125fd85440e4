#include "gate/probes/inject/opencl/events.h"

namespace weir_probe::opencl {

void Enqueued::prepare(cl_command_queue handle, cl_event** event) {
  // Also makes the files, if this queue is the first thing that is seen.
  const Queue* queue = queue_of(handle);
  if (queue == nullptr || !queue->timed || !events_on()) return;
  if (*event == nullptr) *event = &mine_;
  made_ = *event;
}

void Enqueued::put(Queue* queue, uint32_t kernel, uint32_t copy, uint64_t bytes) const {
  cl_event event = made_ == nullptr ? nullptr : *made_;
  // The program releases its own whenever it likes.
  if (event != nullptr && made_ != &mine_ && g.next.clRetainEvent(event) != CL_SUCCESS) {
    event = nullptr;
  }
  if (event != nullptr) {
    push_flight(queue, {nullptr, event, begin_, bytes, kernel, copy});
    return;
  }
  weir_event_command body = {};
  body.bytes = bytes;
  body.queue = index_of(queue);
  body.copy = copy;
  body.cpu = begin_;
  write_event(WEIR_EVENT_COMMAND, kernel, &body, sizeof body);
}

void tell_wait(Queue* queue, uint32_t kind, uint64_t begin, bool sync) {
  if (begin == 0 || !events_on()) return;
  const uint64_t polled = __atomic_exchange_n(&queue->polled_since, 0, __ATOMIC_RELAXED);
  const bool poll = kind == WEIR_WAIT_POLL;
  // Asking once more after what is done is no wait.
  if (!poll || sync) {
    const weir_event_wait body = {poll && polled != 0 ? polled : begin, now_nanoseconds(), kind,
                                  sync ? WEIR_WAIT_SYNC : 0};
    write_event(WEIR_EVENT_WAIT, index_of(queue), &body, sizeof body);
  }
  harvest(queue);
}

void note_poll(Queue* queue, uint64_t begin) {
  if (begin == 0) return;
  uint64_t none = 0;
  __atomic_compare_exchange_n(&queue->polled_since, &none, begin, false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
}

}  // namespace weir_probe::opencl
