// Commands whose device times are not known yet, queue by queue. Only where events with times are
// asked for.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "gate/probes/inject/opencl/cl.h"

namespace weir_probe::opencl {

struct Queue;
struct Device;

struct Flight {
  Flight* next;
  cl_event event;  // a reference of the layer's own
  uint64_t cpu;    // when the call that enqueued it began
  uint64_t bytes;
  uint32_t kernel;
  uint32_t copy;  // as in weir_event_command
};

// In the order they were enqueued, as far as several threads can have one.
struct Flights {
  pthread_mutex_t lock;  // never held while the driver is asked: it may call the program back
  Flight* first;
  Flight* last;
  Flight* spare;
  uint32_t count;   // those that a thread is reading included
  bool harvesting;  // a thread reads times
  bool again;       // and is to look once more: something was done meanwhile
};

// The most that wait for a time on one queue. Beyond it the oldest are let go without one.
constexpr uint32_t k_most_flights = 16384;

// Takes over the reference that `flight.event` is.
void push_flight(Queue* queue, const Flight& flight);
// Reads the times of what is done on `queue` and tells them; waits for nothing. To be called when
// the program itself has learned that something is done.
void harvest(Queue* queue);
// For the child of a fork: these events are its parent's.
void forget_flights(Queue* queue);
// Tells what is still in flight, without times and without asking the driver: it may be gone.
void abandon_flights(Queue* queue);

// One line on standard error, the first time.
void untimed(const char* why);

// Ties the device's clock to the CPU's, if that was not done lately.
void tie_clock(Device* device);

}  // namespace weir_probe::opencl
