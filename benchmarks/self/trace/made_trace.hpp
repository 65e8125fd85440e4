// A Chrome trace of any length, made up: the same bytes for the same seed on every machine.
//
// It looks like what PyTorch, llama.cpp's profilers and tracers of requests write together: threads
// with nested X events, an outer one written when it ends (so behind those within it), queues of
// kernels with sizes and shapes, B and E of steps, requests that overlap (b, e), counters, marks,
// flows, names of processes and threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace weir::bench {

// What was written, for a reader's answer to be held to.
struct MadeTrace {
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;   // without metadata
  std::uint64_t kernels = 0;  // events of category "kernel"
  std::uint64_t kernel_nanos = 0;
};

// Writes a trace of at least `bytes`, ended properly, in pieces.
MadeTrace make_trace(std::uint64_t bytes, std::uint64_t seed,
                     const std::function<void(std::string_view)>& write);

}  // namespace weir::bench
