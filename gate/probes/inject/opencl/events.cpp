// Commands and waits in the event file: when the device ran a command is asked when the program
// itself has learned that something is done.
#include <stdlib.h>

#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

// Of an out-of-order queue: how many unfinished commands are looked at before giving up.
constexpr uint32_t k_most_misses = 256;

bool ask_time(cl_event event, cl_profiling_info what, cl_ulong* out) {
  const auto ask = g.next.clGetEventProfilingInfo;
  return ask != nullptr && ask(event, what, sizeof *out, out, nullptr) == CL_SUCCESS && *out != 0;
}

// Whether it is done; if so, with its times, where there are any.
bool is_done(const Flight& flight, weir_event_command* body) {
  // First, and once: it may be done a moment later.
  cl_int status = CL_COMPLETE;
  g.next.clGetEventInfo(flight.event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                        nullptr);
  if (status > CL_COMPLETE) return false;
  if (status < CL_COMPLETE) {
    set_events_flag(WEIR_EVENTS_UNTIMED);  // it failed
    return true;
  }
  cl_ulong queued = 0, begin = 0, end = 0;
  if (!ask_time(flight.event, CL_PROFILING_COMMAND_START, &begin) ||
      !ask_time(flight.event, CL_PROFILING_COMMAND_END, &end) || begin > end) {
    untimed(k_told, "the driver does not tell when a command ran");
    return true;
  }
  ask_time(flight.event, CL_PROFILING_COMMAND_QUEUED, &queued);
  body->queued = queued;
  body->begin = begin;
  body->end = end;
  return true;
}

weir_event_command told(const Queue* queue, const Flight& flight) {
  return {0, 0, 0, flight.bytes, index_of(queue), flight.copy, flight.cpu};
}

void tell_untimed(const Queue* queue, const Flight& flight) {
  const weir_event_command body = told(queue, flight);
  write_event(WEIR_EVENT_COMMAND, flight.kernel, &body, sizeof body);
}

// Tells what is done of the oldest `count`. How many places are free then: those that are left
// have moved up to what is behind them.
uint32_t land(Queue* queue, uint32_t count) {
  const Flights& flights = queue->flights;
  const uint32_t most = queue->in_order ? 1 : k_most_misses;
  uint32_t missed[k_most_misses];
  uint32_t misses = 0, seen = 0;
  for (; seen < count && misses < most; ++seen) {
    const Flight& flight = flights.at(seen);
    weir_event_command body = told(queue, flight);
    if (!is_done(flight, &body)) {
      missed[misses++] = seen;
      continue;
    }
    write_event(WEIR_EVENT_COMMAND, flight.kernel, &body, sizeof body);
    g.next.clReleaseEvent(flight.event);
  }
  for (uint32_t i = misses; i-- > 0;) flights.at(seen - misses + i) = flights.at(missed[i]);
  return seen - misses;
}

// Under the lock.
void take_out(Flights& flights, uint32_t oldest) {
  flights.first = (flights.first + oldest) % k_most_flights;
  flights.count -= oldest;
}

// The oldest, unless another thread reads them.
void let_go(Queue* queue, uint32_t most) {
  Flights& flights = queue->flights;
  pthread_mutex_lock(&flights.lock);
  const uint32_t count = flights.reading ? 0 : flights.count < most ? flights.count : most;
  flights.reading = flights.reading || count != 0;
  pthread_mutex_unlock(&flights.lock);
  if (count == 0) return;
  set_events_flag(WEIR_EVENTS_UNTIMED);
  for (uint32_t i = 0; i < count; ++i) {
    tell_untimed(queue, flights.at(i));
    g.next.clReleaseEvent(flights.at(i).event);
  }
  const Locked locked(&flights.lock);
  take_out(flights, count);
  flights.reading = false;
}

void make_room(Queue* queue) {
  if (__atomic_load_n(&queue->flights.count, __ATOMIC_RELAXED) < k_most_flights) return;
  harvest(queue);
  if (__atomic_load_n(&queue->flights.count, __ATOMIC_RELAXED) < k_most_flights) return;
  untimed(k_told, "too many commands are not known to be done");
  let_go(queue, k_most_flights / 8);
}

bool append(Flights& flights, const Flight& flight) {
  const Locked locked(&flights.lock);
  if (flights.ring == nullptr) {
    flights.ring = static_cast<Flight*>(calloc(k_most_flights, sizeof(Flight)));
  }
  if (flights.ring == nullptr || flights.count >= k_most_flights) return false;
  flights.at(flights.count++) = flight;
  return true;
}

// Takes over the reference that `flight.event` is.
void push_flight(Queue* queue, const Flight& flight) {
  make_room(queue);
  if (append(queue->flights, flight)) return;
  set_events_flag(WEIR_EVENTS_UNTIMED);
  tell_untimed(queue, flight);
  g.next.clReleaseEvent(flight.event);
}

// --- the device's clock, where OpenCL 2.1 or later can tie it to the CPU's

constexpr uint64_t k_tie_every = 250000000;  // nanoseconds
// A host timer that is CLOCK_MONOTONIC reads, in between, what that reads before and after.
constexpr uint64_t k_same_clock = 2000000;

// The loader's function is there for every driver, what lies behind it is not: only those that
// tell how fine their host timer is are asked.
bool has_host_timer(cl_device_id device) {
  cl_platform_id platform = nullptr;
  cl_ulong resolution = 0;
  return g.next.clGetDeviceAndHostTimer != nullptr &&
         g.next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr) ==
             CL_SUCCESS &&
         g.next.clGetPlatformInfo(platform, CL_PLATFORM_HOST_TIMER_RESOLUTION, sizeof resolution,
                                  &resolution, nullptr) == CL_SUCCESS &&
         resolution != 0;
}

bool read_both(cl_device_id device, weir_event_clock* clock) {
  cl_ulong ticks = 0, host = 0;
  const uint64_t before = now_nanoseconds();
  if (g.next.clGetDeviceAndHostTimer(device, &ticks, &host) != CL_SUCCESS) return false;
  const uint64_t after = now_nanoseconds();
  if (host + k_same_clock < before || host > after + k_same_clock || ticks == 0) return false;
  clock->ticks = ticks;
  clock->cpu = host;
  clock->deviation = after - before;
  clock->source = WEIR_CLOCK_CALIBRATED;
  return true;
}

}  // namespace

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
  const Flight flight = {event, begin_, bytes, kernel, copy};
  if (event != nullptr) return push_flight(queue, flight);
  tell_untimed(queue, flight);
}

void tell_wait(Queue* queue, uint32_t kind, uint64_t begin, bool sync) {
  if (begin == 0 || !events_on()) return;
  const uint64_t polled = queue->polled.take();
  const bool poll = kind == WEIR_WAIT_POLL;
  // Asking once more after what is done is no wait.
  if (!poll || sync) write_wait(index_of(queue), kind, poll && polled != 0 ? polled : begin, sync);
  harvest(queue);
}

void harvest(Queue* queue) {
  if (!queue->timed) return;
  Flights& flights = queue->flights;
  tie_clock(queue->device);
  pthread_mutex_lock(&flights.lock);
  if (flights.reading) {
    flights.again = true;
    pthread_mutex_unlock(&flights.lock);
    return;
  }
  flights.reading = true;
  do {
    flights.again = false;
    const uint32_t count = flights.count;
    pthread_mutex_unlock(&flights.lock);
    const uint32_t landed = land(queue, count);
    pthread_mutex_lock(&flights.lock);
    take_out(flights, landed);
  } while (flights.again);
  flights.reading = false;
  pthread_mutex_unlock(&flights.lock);
  // The program has let the queue go: it must not live on for the sake of its times.
  if (__atomic_load_n(&queue->references, __ATOMIC_ACQUIRE) == 0) let_go(queue, UINT32_MAX);
}

void forget_flights(Queue* queue) {
  Flights& flights = queue->flights;
  pthread_mutex_init(&flights.lock, nullptr);
  flights.first = flights.count = 0;
  flights.reading = flights.again = false;
}

void abandon_flights(Queue* queue) {
  Flights& flights = queue->flights;
  if (!queue->timed) return;
  const Locked locked(&flights.lock);
  if (flights.reading || flights.count == 0) return;
  set_events_flag(WEIR_EVENTS_UNTIMED);
  for (uint32_t i = 0; i < flights.count; ++i) tell_untimed(queue, flights.at(i));
  flights.count = 0;
}

void tie_clock(Device* device) {
  const uint64_t last = __atomic_load_n(&device->last_tie, __ATOMIC_RELAXED);
  const bool first = last == 0;
  if (!first && !device->host_timer) return;
  const uint64_t now = now_nanoseconds();
  if (!first && now - last < k_tie_every) return;
  uint64_t seen = last;
  if (!__atomic_compare_exchange_n(&device->last_tie, &seen, now, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED)) {
    return;  // another thread does it
  }
  constexpr double k_tick = 1e-9;  // OpenCL counts in nanoseconds
  weir_event_clock clock = {0, 0, 0, k_tick, 64, WEIR_CLOCK_NONE};
  const bool tied = (!first || has_host_timer(device->handle)) && read_both(device->handle, &clock);
  if (first) device->host_timer = tied;
  if (first || tied) write_event(WEIR_EVENT_CLOCK, device->index, &clock, sizeof clock);
}

}  // namespace weir_probe::opencl
