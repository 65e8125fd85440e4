// Writes commands and waits to the event file. The times of a command are read when the program
// itself has learned that something is done.
#include <stdlib.h>

#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

// The number of unfinished commands that are checked in an out-of-order queue.
constexpr uint32_t k_max_misses = 256;

bool read_time(cl_event event, cl_profiling_info what, cl_ulong* out) {
  const auto get_info = g.driver.clGetEventProfilingInfo;
  return get_info != nullptr && get_info(event, what, sizeof *out, out, nullptr) == CL_SUCCESS &&
         *out != 0;
}

// Returns true if the command is done or failed; `body` then has its times, if the driver gives
// any.
bool read_if_done(const PendingCommand& command, weir_event_command* times) {
  // Read the status first, and once: the command may be done a moment later.
  cl_int status = CL_COMPLETE;
  g.driver.clGetEventInfo(command.event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                          nullptr);
  if (status > CL_COMPLETE) return false;
  if (status < CL_COMPLETE) {
    set_events_flag(WEIR_EVENTS_UNTIMED);  // it failed
    return true;
  }
  cl_ulong queued = 0, begin = 0, end = 0;
  if (!read_time(command.event, CL_PROFILING_COMMAND_START, &begin) ||
      !read_time(command.event, CL_PROFILING_COMMAND_END, &end) || begin > end) {
    report_untimed(k_activity, "the driver does not tell when a command ran");
    return true;
  }
  read_time(command.event, CL_PROFILING_COMMAND_QUEUED, &queued);
  times->queued = queued;
  times->begin = begin;
  times->end = end;
  return true;
}

weir_event_command command_event(const Queue* queue, const PendingCommand& command) {
  return {0, 0, 0, command.bytes, queue_index(queue), command.copy, command.cpu};
}

void write_untimed(const Queue* queue, const PendingCommand& command) {
  const weir_event_command body = command_event(queue, command);
  write_event(WEIR_EVENT_COMMAND, command.kernel, &body, sizeof body);
}

// Writes those of the oldest `count` commands that are done, and moves the others up. Returns how
// many places at the front of the ring are then free.
uint32_t write_completed(Queue* queue, uint32_t count) {
  const PendingCommands& pending_commands = queue->pending_commands;
  const uint32_t max_misses = queue->in_order ? 1 : k_max_misses;
  uint32_t unfinished[k_max_misses];
  uint32_t unfinished_count = 0, checked = 0;
  for (; checked < count && unfinished_count < max_misses; ++checked) {
    const PendingCommand& command = pending_commands.at(checked);
    weir_event_command body = command_event(queue, command);
    if (!read_if_done(command, &body)) {
      unfinished[unfinished_count++] = checked;
      continue;
    }
    write_event(WEIR_EVENT_COMMAND, command.kernel, &body, sizeof body);
    g.driver.clReleaseEvent(command.event);
  }
  for (uint32_t i = unfinished_count; i-- > 0;)
    pending_commands.at(checked - unfinished_count + i) = pending_commands.at(unfinished[i]);
  return checked - unfinished_count;
}

// Removes the `oldest` first places from the ring. Under the lock.
void drop_oldest(PendingCommands& pending_commands, uint32_t oldest) {
  pending_commands.first = (pending_commands.first + oldest) % k_max_pending;
  pending_commands.count -= oldest;
}

// Writes the oldest pending commands, at most `max_count`, without their times, and removes them.
// Does nothing if another thread is reading them.
void write_oldest_untimed(Queue* queue, uint32_t max_count) {
  PendingCommands& pending_commands = queue->pending_commands;
  uint32_t count = 0;
  {
    const Locked locked(&pending_commands.lock);
    if (pending_commands.is_reading) return;
    count = pending_commands.count < max_count ? pending_commands.count : max_count;
    if (count == 0) return;
    pending_commands.is_reading = true;
  }
  set_events_flag(WEIR_EVENTS_UNTIMED);
  for (uint32_t i = 0; i < count; ++i) {
    write_untimed(queue, pending_commands.at(i));
    g.driver.clReleaseEvent(pending_commands.at(i).event);
  }
  const Locked locked(&pending_commands.lock);
  drop_oldest(pending_commands, count);
  pending_commands.is_reading = false;
}

// Makes room for a pending command: reads the times that are available, else gives up those of the
// oldest commands.
void make_pending_room(Queue* queue) {
  if (__atomic_load_n(&queue->pending_commands.count, __ATOMIC_RELAXED) < k_max_pending) return;
  collect_times(queue);
  if (__atomic_load_n(&queue->pending_commands.count, __ATOMIC_RELAXED) < k_max_pending) return;
  report_untimed(k_activity, "too many commands are not known to be done");
  write_oldest_untimed(queue, k_max_pending / 8);
}

// Adds a pending command; false when there is no room or memory is out.
bool append(PendingCommands& pending_commands, const PendingCommand& command) {
  const Locked locked(&pending_commands.lock);
  if (pending_commands.ring == nullptr) {
    pending_commands.ring =
        static_cast<PendingCommand*>(calloc(k_max_pending, sizeof(PendingCommand)));
  }
  if (pending_commands.ring == nullptr || pending_commands.count >= k_max_pending) return false;
  pending_commands.at(pending_commands.count++) = command;
  return true;
}

// Adds a pending command and takes over its reference to the event.
void add_pending(Queue* queue, const PendingCommand& command) {
  make_pending_room(queue);
  if (append(queue->pending_commands, command)) return;
  set_events_flag(WEIR_EVENTS_UNTIMED);
  write_untimed(queue, command);
  g.driver.clReleaseEvent(command.event);
}

// --- the device's clock, if OpenCL 2.1 or later can relate it to the CPU's

constexpr uint64_t k_calibrate_every = 250000000;  // nanoseconds
// Tolerance in nanoseconds: a host timer that is CLOCK_MONOTONIC lies between its values before and
// after.
constexpr uint64_t k_same_clock = 2000000;

// Returns true if the driver has a host timer. The loader has the function for every driver, so
// only a driver that reports the resolution of its timer is asked.
bool has_host_timer(cl_device_id device) {
  cl_platform_id platform = nullptr;
  cl_ulong resolution = 0;
  return g.driver.clGetDeviceAndHostTimer != nullptr &&
         g.driver.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform,
                                  nullptr) == CL_SUCCESS &&
         g.driver.clGetPlatformInfo(platform, CL_PLATFORM_HOST_TIMER_RESOLUTION, sizeof resolution,
                                    &resolution, nullptr) == CL_SUCCESS &&
         resolution != 0;
}

// Reads the device's and the host's clock together. False if the driver cannot, or its host clock
// is not CLOCK_MONOTONIC.
bool read_clocks(cl_device_id device, weir_event_clock* clock) {
  cl_ulong ticks = 0, host = 0;
  const uint64_t before = now_nanoseconds();
  if (g.driver.clGetDeviceAndHostTimer(device, &ticks, &host) != CL_SUCCESS) return false;
  const uint64_t after = now_nanoseconds();
  if (host + k_same_clock < before || host > after + k_same_clock || ticks == 0) return false;
  clock->ticks = ticks;
  clock->cpu = host;
  clock->deviation = after - before;
  clock->source = WEIR_CLOCK_CALIBRATED;
  return true;
}

}  // namespace

void CommandTimer::prepare(cl_command_queue handle, cl_event** event) {
  // Also makes the files, if this queue is the first object that the layer sees.
  const Queue* queue = find_or_add_queue(handle);
  if (queue == nullptr || !queue->timed || !is_recording_events()) return;
  if (*event == nullptr) *event = &own_event_;
  event_ = *event;
}

void CommandTimer::write(Queue* queue, uint32_t kernel, uint32_t copy, uint64_t bytes) const {
  cl_event event = event_ == nullptr ? nullptr : *event_;
  // The program may release its own event at any time.
  if (event != nullptr && event_ != &own_event_ && g.driver.clRetainEvent(event) != CL_SUCCESS) {
    event = nullptr;
  }
  const PendingCommand command = {event, begin_, bytes, kernel, copy};
  if (event != nullptr) return add_pending(queue, command);
  write_untimed(queue, command);
}

void write_wait_event(Queue* queue, uint32_t kind, uint64_t begin, bool sync) {
  if (begin == 0 || !is_recording_events()) return;
  const uint64_t polled = queue->polled.take();
  const bool is_poll = kind == WEIR_WAIT_POLL;
  // A further poll after the work is done is no wait.
  if (!is_poll || sync)
    write_wait(queue_index(queue), kind, is_poll && polled != 0 ? polled : begin, sync);
  collect_times(queue);
}

// Reads the times of the queue's finished commands. Only one thread reads at a time; another that
// comes meanwhile makes it read once more. The lock is not held during calls of the driver.
void collect_times(Queue* queue) {
  if (!queue->timed) return;
  PendingCommands& pending_commands = queue->pending_commands;
  calibrate_clock(queue->device);
  pthread_mutex_lock(&pending_commands.lock);
  if (pending_commands.is_reading) {
    pending_commands.read_again = true;
    pthread_mutex_unlock(&pending_commands.lock);
    return;
  }
  pending_commands.is_reading = true;
  do {
    pending_commands.read_again = false;
    const uint32_t count = pending_commands.count;
    pthread_mutex_unlock(&pending_commands.lock);
    const uint32_t freed = write_completed(queue, count);
    pthread_mutex_lock(&pending_commands.lock);
    drop_oldest(pending_commands, freed);
  } while (pending_commands.read_again);
  pending_commands.is_reading = false;
  pthread_mutex_unlock(&pending_commands.lock);
  // The program has released the queue: events for times must not keep it alive.
  if (__atomic_load_n(&queue->references, __ATOMIC_ACQUIRE) == 0)
    write_oldest_untimed(queue, UINT32_MAX);
}

void reset_pending(Queue* queue) {
  PendingCommands& pending_commands = queue->pending_commands;
  pthread_mutex_init(&pending_commands.lock, nullptr);
  pending_commands.first = 0;
  pending_commands.count = 0;
  pending_commands.is_reading = false;
  pending_commands.read_again = false;
}

void write_pending_untimed(Queue* queue) {
  PendingCommands& pending_commands = queue->pending_commands;
  if (!queue->timed) return;
  const Locked locked(&pending_commands.lock);
  if (pending_commands.is_reading || pending_commands.count == 0) return;
  set_events_flag(WEIR_EVENTS_UNTIMED);
  for (uint32_t i = 0; i < pending_commands.count; ++i)
    write_untimed(queue, pending_commands.at(i));
  pending_commands.count = 0;
}

// Writes how the device's clock relates to the host's, at most once in k_calibrate_every. The
// first time writes an event in any case, without that relation if the device cannot read both
// clocks.
void calibrate_clock(Device* device) {
  const uint64_t last = __atomic_load_n(&device->last_calibration, __ATOMIC_RELAXED);
  const bool is_first = last == 0;
  if (!is_first && !device->host_timer) return;
  const uint64_t now = now_nanoseconds();
  if (!is_first && now - last < k_calibrate_every) return;
  uint64_t expected_last = last;
  if (!__atomic_compare_exchange_n(&device->last_calibration, &expected_last, now, false,
                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    return;  // another thread does it
  }
  constexpr double k_tick = 1e-9;  // OpenCL counts in nanoseconds
  weir_event_clock clock = {};
  clock.tick_seconds = k_tick;
  clock.valid_bits = 64;
  clock.source = WEIR_CLOCK_NONE;
  const bool is_calibrated =
      (!is_first || has_host_timer(device->handle)) && read_clocks(device->handle, &clock);
  if (is_first) device->host_timer = is_calibrated;
  if (is_first || is_calibrated) write_event(WEIR_EVENT_CLOCK, device->index, &clock, sizeof clock);
}

}  // namespace weir_probe::opencl
