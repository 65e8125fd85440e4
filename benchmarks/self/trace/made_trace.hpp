// Makes up a Chrome trace of any length; a seed gives the same bytes on every machine.
//
// It mixes the events that PyTorch, llama.cpp's profilers and request tracers write: threads with
// nested X events, kernels with sizes and shapes on queues, B and E of steps, overlapping requests
// (b, e), counters, marks, flows, names of processes and threads. An outer X event is written when
// it ends, so after those within it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace weir::bench {

// The contents of the trace, which a reader's result can be compared with.
struct TraceSummary {
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;   // without metadata
  std::uint64_t kernels = 0;  // events of category "kernel"
  std::uint64_t kernel_nanos = 0;
};

// Writes a complete trace of at least `bytes`, in pieces.
TraceSummary make_trace(std::uint64_t bytes, std::uint64_t seed,
                        const std::function<void(std::string_view)>& write);

}  // namespace weir::bench
