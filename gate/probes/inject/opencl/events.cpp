// Commands and waits in the event file: when the device ran a command is asked when the program
// itself has learned that something is done.
#include <stdio.h>
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
  weir_event_command body = {};
  body.bytes = flight.bytes;
  body.queue = index_of(queue);
  body.copy = flight.copy;
  body.cpu = flight.cpu;
  return body;
}

void tell_untimed(const Queue* queue, const Flight& flight) {
  const weir_event_command body = told(queue, flight);
  write_event(WEIR_EVENT_COMMAND, flight.kernel, &body, sizeof body);
}

// Tells what is done of `list`, and moves it to `landed`. What is left, in order.
Flight* land(Queue* queue, Flight* list, Flight** landed) {
  Flight* left = nullptr;
  Flight** end = &left;
  uint32_t misses = 0;
  const uint32_t most = queue->in_order ? 1 : k_most_misses;
  while (list != nullptr && misses < most) {
    Flight* flight = list;
    weir_event_command body = told(queue, *flight);
    const bool done = is_done(*flight, &body);
    list = flight->next;
    if (!done) {
      ++misses;
      *end = flight;
      end = &flight->next;
      continue;
    }
    write_event(WEIR_EVENT_COMMAND, flight->kernel, &body, sizeof body);
    g.next.clReleaseEvent(flight->event);
    flight->next = *landed;
    *landed = flight;
  }
  *end = list;
  return left;
}

// Under the lock: what follows moves nodes between the lists.

void put_spare(Flights& flights, Flight* list) {
  while (list != nullptr) {
    Flight* next = list->next;
    list->next = flights.spare;
    flights.spare = list;
    --flights.count;
    list = next;
  }
}

void put_back(Flights& flights, Flight* list) {
  if (list == nullptr) return;
  Flight* last = list;
  while (last->next != nullptr) last = last->next;
  last->next = flights.first;
  if (flights.first == nullptr) flights.last = last;
  flights.first = list;
}

// The oldest `most` of them.
Flight* take(Flights& flights, uint32_t most) {
  Flight* list = flights.first;
  Flight* last = list;
  if (list == nullptr) return nullptr;
  for (uint32_t i = 1; i < most && last->next != nullptr; ++i) last = last->next;
  flights.first = last->next;
  if (flights.first == nullptr) flights.last = nullptr;
  last->next = nullptr;
  return list;
}

void let_go(Queue* queue, uint32_t most) {
  Flights& flights = queue->flights;
  pthread_mutex_lock(&flights.lock);
  Flight* list = take(flights, most);
  pthread_mutex_unlock(&flights.lock);
  if (list == nullptr) return;
  set_events_flag(WEIR_EVENTS_UNTIMED);
  for (Flight* at = list; at != nullptr; at = at->next) {
    tell_untimed(queue, *at);
    g.next.clReleaseEvent(at->event);
  }
  pthread_mutex_lock(&flights.lock);
  put_spare(flights, list);
  pthread_mutex_unlock(&flights.lock);
}

void make_room(Queue* queue) {
  if (__atomic_load_n(&queue->flights.count, __ATOMIC_RELAXED) < k_most_flights) return;
  harvest(queue);
  if (__atomic_load_n(&queue->flights.count, __ATOMIC_RELAXED) < k_most_flights) return;
  untimed(k_told, "too many commands are not known to be done");
  let_go(queue, k_most_flights / 8);
}

Flight* append(Flights& flights, const Flight& flight) {
  Flight* node = flights.spare;
  if (flights.count >= k_most_flights) return nullptr;
  if (node != nullptr) {
    flights.spare = node->next;
  } else {
    node = static_cast<Flight*>(malloc(sizeof(Flight)));
    if (node == nullptr) return nullptr;
  }
  *node = flight;
  node->next = nullptr;
  if (flights.last == nullptr) {
    flights.first = node;
  } else {
    flights.last->next = node;
  }
  flights.last = node;
  ++flights.count;
  return node;
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
  const Flight flight = {nullptr, event, begin_, bytes, kernel, copy};
  if (event != nullptr) return push_flight(queue, flight);
  tell_untimed(queue, flight);
}

void tell_wait(Queue* queue, uint32_t kind, uint64_t begin, bool sync) {
  if (begin == 0 || !events_on()) return;
  const uint64_t polled = queue->polled.take();
  const bool poll = kind == WEIR_WAIT_POLL;
  // Asking once more after what is done is no wait.
  if (!poll || sync) {
    const weir_event_wait body = {poll && polled != 0 ? polled : begin, now_nanoseconds(), kind,
                                  sync ? WEIR_WAIT_SYNC : 0};
    write_event(WEIR_EVENT_WAIT, index_of(queue), &body, sizeof body);
  }
  harvest(queue);
}

void push_flight(Queue* queue, const Flight& flight) {
  Flights& flights = queue->flights;
  make_room(queue);
  pthread_mutex_lock(&flights.lock);
  const bool kept = append(flights, flight) != nullptr;
  pthread_mutex_unlock(&flights.lock);
  if (kept) return;
  set_events_flag(WEIR_EVENTS_UNTIMED);
  tell_untimed(queue, flight);
  g.next.clReleaseEvent(flight.event);
}

void harvest(Queue* queue) {
  if (!queue->timed) return;
  Flights& flights = queue->flights;
  tie_clock(queue->device);
  pthread_mutex_lock(&flights.lock);
  if (flights.harvesting) {
    flights.again = true;
    pthread_mutex_unlock(&flights.lock);
    return;
  }
  flights.harvesting = true;
  do {
    flights.again = false;
    Flight* list = take(flights, UINT32_MAX);
    pthread_mutex_unlock(&flights.lock);
    Flight* landed = nullptr;
    Flight* left = land(queue, list, &landed);
    pthread_mutex_lock(&flights.lock);
    put_back(flights, left);
    put_spare(flights, landed);
  } while (flights.again);
  flights.harvesting = false;
  pthread_mutex_unlock(&flights.lock);
  // The program has let the queue go: it must not live on for the sake of its times.
  if (__atomic_load_n(&queue->references, __ATOMIC_ACQUIRE) == 0) let_go(queue, UINT32_MAX);
}

void forget_flights(Queue* queue) {
  Flights& flights = queue->flights;
  pthread_mutex_init(&flights.lock, nullptr);
  // Their memory stays: another thread of the parent may have been moving them.
  flights.first = flights.last = flights.spare = nullptr;
  flights.count = 0;
  flights.harvesting = flights.again = false;
}

void abandon_flights(Queue* queue) {
  Flights& flights = queue->flights;
  if (!queue->timed) return;
  pthread_mutex_lock(&flights.lock);
  Flight* list = take(flights, UINT32_MAX);
  pthread_mutex_unlock(&flights.lock);
  if (list != nullptr) set_events_flag(WEIR_EVENTS_UNTIMED);
  for (; list != nullptr; list = list->next) tell_untimed(queue, *list);
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
  weir_event_clock clock = {};
  clock.tick_seconds = 1e-9;  // OpenCL counts in nanoseconds
  clock.valid_bits = 64;
  clock.source = WEIR_CLOCK_NONE;
  const bool tied = (!first || has_host_timer(device->handle)) && read_both(device->handle, &clock);
  if (first) device->host_timer = tied;
  if (first || tied) write_event(WEIR_EVENT_CLOCK, device->index, &clock, sizeof clock);
}

}  // namespace weir_probe::opencl
