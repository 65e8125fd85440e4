#include "gate/probes/inject/opencl/flights.h"

#include <stdio.h>
#include <stdlib.h>

#include "gate/probes/inject/opencl/events.h"
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
    untimed("the driver does not tell when a command ran");
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
  untimed("too many commands are not known to be done");
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

}  // namespace

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

void untimed(const char* why) {
  static uint32_t told = 0;
  set_events_flag(WEIR_EVENTS_UNTIMED);
  if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) != 0) return;
  fprintf(stderr, "weir: the opencl probe tells events without times: %s; the program goes on\n",
          why);
}

}  // namespace weir_probe::opencl
