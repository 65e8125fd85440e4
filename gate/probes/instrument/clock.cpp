// A device's ticks on the CPU's clock.
#include "gate/probes/instrument/state.h"

#define WEIR_EXPORT extern "C" __attribute__((visibility("default")))

namespace weir_probe {
namespace {

// Nearer pairs say more about how they were taken than about the clocks.
constexpr uint64_t k_least_apart = 1'000'000;

void write_pair(uint32_t device, const Clock& clock, int which) {
  const weir_event_clock event = {
      clock.ticks[which], clock.cpu[which], 0, clock.told_tick * 1e-9, 64, WEIR_CLOCK_CALIBRATED};
  write_event(WEIR_EVENT_CLOCK, device, &event, sizeof event);
}

// The event file takes one length of a tick for good: once it is known or times need it, all pairs
// so far go there.
void tell(uint32_t device, Clock* clock) {
  if (clock->told_tick <= 0) clock->told_tick = clock->tick;
  if (!events_on() || clock->told_tick <= 0 || clock->pairs == 0) return;
  if (!clock->told) write_pair(device, *clock, 0);
  clock->told = true;
  if (clock->pairs == 2) write_pair(device, *clock, 1);
}

}  // namespace

double tick_of(const Clock& clock) { return clock.tick > 0 ? clock.tick : 1; }

void use_clock(uint32_t device) {
  Clock& clock = g.clocks[device];
  if (clock.used) return;
  clock.used = true;
  if (clock.told_tick <= 0) clock.told_tick = tick_of(clock);
  if (clock.pairs != 0) {
    if (!clock.told) tell(device, &clock);
    return;
  }
  if (!events_on()) return;
  const weir_event_clock event = {0, 0, 0, clock.told_tick * 1e-9, 64, WEIR_CLOCK_NONE};
  write_event(WEIR_EVENT_CLOCK, device, &event, sizeof event);
}

void warn_of_tick() {
  weir_warn_once("no clock rate and no two clock pairs: a GPU tick is taken for 1 ns");
}

}  // namespace weir_probe

using namespace weir_probe;

WEIR_EXPORT void weir_clock_pair(uint32_t device, uint64_t cpu_nanoseconds, uint64_t gpu_ticks) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0) return;
  self();
  device = checked_device(device);
  pthread_mutex_lock(&g.lock);
  Clock& clock = g.clocks[device];
  if (clock.pairs == 0) {
    clock.cpu[0] = cpu_nanoseconds;
    clock.ticks[0] = gpu_ticks;
    clock.pairs = 1;
    tell(device, &clock);
  } else if (cpu_nanoseconds >= clock.cpu[0] + k_least_apart && gpu_ticks > clock.ticks[0]) {
    clock.cpu[1] = cpu_nanoseconds;
    clock.ticks[1] = gpu_ticks;
    clock.pairs = 2;
    if (clock.tick <= 0) {
      clock.tick = static_cast<double>(cpu_nanoseconds - clock.cpu[0]) /
                   static_cast<double>(gpu_ticks - clock.ticks[0]);
    }
    tell(device, &clock);
  }
  pthread_mutex_unlock(&g.lock);
}

WEIR_EXPORT void weir_clock_rate(uint32_t device, double nanoseconds_per_tick) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0) return;
  if (!(nanoseconds_per_tick > 0) || nanoseconds_per_tick > 1e9) return;
  self();
  device = checked_device(device);
  pthread_mutex_lock(&g.lock);
  Clock& clock = g.clocks[device];
  if (clock.tick <= 0) {
    clock.tick = nanoseconds_per_tick;
    tell(device, &clock);
  }
  pthread_mutex_unlock(&g.lock);
}

WEIR_EXPORT uint64_t weir_ticks_to_nanoseconds(uint32_t device, uint64_t ticks) {
  device = checked_device(device);
  pthread_mutex_lock(&g.lock);
  const Clock clock = g.clocks[device];
  pthread_mutex_unlock(&g.lock);
  if (clock.pairs == 0) return ticks;
  if (clock.tick <= 0) warn_of_tick();
  const uint32_t last = clock.pairs - 1;
  // Signed: a moment before the pair is one.
  const auto since = static_cast<int64_t>(ticks - clock.ticks[last]);
  return clock.cpu[last] +
         static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(since) * tick_of(clock)));
}
