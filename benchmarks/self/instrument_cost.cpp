// Measures the cost of an engine's own marks (gate/probes/instrument): off, counted for weir, and
// timed. One iteration is an op scope or a dispatch. The library is linked dynamically, as in most
// engines. `clock_twice` is the part of a timed scope that cannot be avoided.
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "weir/instrument.h"

namespace {

// Declares the queue once.
std::uint32_t declare_queue() {
  static const std::uint32_t k_queue =
      weir_queue_declare(weir_device_declare("cpu", "cpu", "benchmark", ""));
  return k_queue;
}

void scopes(benchmark::State& state, std::uint32_t flags) {
  (void)declare_queue();
  weir_profile_enable(flags);
  for (auto _ : state) {
    weir_op_begin("MUL_MAT", 0, 3);
    benchmark::ClobberMemory();
    weir_op_end();
  }
  weir_profile_enable(0);
}

void dispatches(benchmark::State& state, std::uint32_t flags) {
  const std::uint32_t queue = declare_queue();
  weir_profile_enable(flags);
  for (auto _ : state) {
    weir_dispatch(queue, "mul_mat_q4_0_f32");
    benchmark::ClobberMemory();
  }
  weir_profile_enable(0);
}

void nothing_marked(benchmark::State& state) {
  for (auto _ : state) benchmark::ClobberMemory();
}
void scope_off(benchmark::State& state) { scopes(state, 0); }
void scope_timed(benchmark::State& state) { scopes(state, WEIR_PROFILE_OPS); }
void dispatch_off(benchmark::State& state) { dispatches(state, 0); }
void dispatch_counted(benchmark::State& state) { dispatches(state, WEIR_PROFILE_COUNTS); }
void clock_twice(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(weir_now());
    benchmark::DoNotOptimize(weir_now());
  }
}
BENCHMARK(nothing_marked);
BENCHMARK(scope_off);
BENCHMARK(scope_timed);
BENCHMARK(clock_twice);
BENCHMARK(dispatch_off);
BENCHMARK(dispatch_counted);

}  // namespace
