// Ties a device's clock to the CPU's, where OpenCL 2.1 or later offers that.
#include "gate/probes/inject/opencl/events.h"
#include "gate/probes/inject/opencl/flights.h"
#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {
namespace {

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
