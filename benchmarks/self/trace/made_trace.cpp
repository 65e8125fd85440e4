// Generates a Chrome trace of any length.
#include "benchmarks/self/trace/made_trace.hpp"

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace weir::bench {
namespace {

constexpr int k_threads = 8;  // threads of the program, and queues of the device
constexpr int k_ops = 400, k_kernels = 1500;

class TraceWriter {
 public:
  TraceWriter(std::uint64_t seed, const std::function<void(std::string_view)>& write)
      : random_(seed), write_(write), now_(2 * k_threads, 1'000'000'000) {
    for (int i = 0; i < k_ops; ++i) ops_.push_back(fmt::format("aten::op_{}_{}", below(90), i));
    for (int i = 0; i < k_kernels; ++i) {
      kernels_.push_back(
          fmt::format("void gemv_{}<float, {}, true>(float const*, float*, int)", i, below(9)));
    }
  }

  // Writes names of threads, then steps until the trace has `bytes`, then its end.
  TraceSummary write_trace(std::uint64_t bytes) {
    text_ =
        "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [{\"id\": 0, \"name\": \"Made-up\"}],\n"
        "\"traceEvents\": [\n";
    for (int i = 0; i < 2 * k_threads; ++i) {
      const int pid = i < k_threads ? 100 : 7;
      put(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": "{} {}"}}}})",
          pid, i, i < k_threads ? "thread" : "stream", i);
    }
    summary_.events = 0;  // names of threads do not count
    while (summary_.bytes + text_.size() < bytes) {
      flush(1 << 16);
      // The thread whose clock is furthest behind writes the next step.
      const auto behind = std::min_element(now_.begin(), now_.begin() + k_threads);
      write_step(static_cast<std::uint64_t>(behind - now_.begin()));
    }
    text_.resize(text_.size() - 2);  // ",\n"
    text_ += "\n],\n\"displayTimeUnit\": \"ms\"\n}\n";
    flush(0);
    return summary_;
  }

 private:
  // A random number below `limit`. The distributions of <random> differ between libraries.
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  template <class... A>
  void put(fmt::format_string<A...> format, A&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<A>(values)...);
    text_ += ",\n";
    ++summary_.events;
  }

  // Writes the text out if it has at least `threshold` bytes.
  void flush(std::size_t threshold) {
    if (text_.size() < threshold) return;
    write_(text_);
    summary_.bytes += text_.size();
    text_.clear();
  }

  static std::string micros(std::uint64_t nanos) {
    return fmt::format("{}.{:03}", nanos / 1000, nanos % 1000);
  }

  // A step of one thread: begin, a request, ops with their kernel launches, end.
  void write_step(std::uint64_t thread) {
    std::uint64_t& now = now_[thread];
    const std::uint64_t request = ++requests_;
    put(R"({{"ph": "B", "cat": "step", "name": "decode", "pid": 100, "tid": {}, "ts": {}}})",
        thread, micros(now));
    put(R"({{"ph": "b", "cat": "request", "name": "request", "id": "0x{:x}", "pid": 100, "tid": {}, "ts": {}}})",
        request, thread, micros(now));
    for (std::uint64_t i = 0; i < 24; ++i) write_op(thread, now);
    if (below(8) == 0) {
      put(R"({{"ph": "i", "cat": "mark", "name": "sampled", "pid": 100, "tid": {}, "ts": {}, "s": "t"}})",
          thread, micros(now));
    }
    put(R"({{"ph": "C", "name": "memory", "pid": 100, "ts": {}, "args": {{"used": {}, "kept": {}}}}})",
        micros(now), below(1 << 30), below(1 << 30));
    put(R"({{"ph": "e", "cat": "request", "name": "request", "id": "0x{:x}", "pid": 100, "tid": {}, "ts": {}}})",
        request, thread, micros(now));
    put(R"({{"ph": "E", "pid": 100, "tid": {}, "ts": {}}})", thread, micros(now));
    now += 500 + below(500);
  }

  // An op and the launch of its kernel; moves `now` to its end.
  void write_op(std::uint64_t thread, std::uint64_t& now) {
    const std::uint64_t begin = now;
    now += 200 + below(2000);
    write_kernel(thread, now);
    now += 3000 + below(4000);
    put(R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": {}, "ts": {}, "dur": {}, "args": {{"correlation": {}, "cbid": 211}}}})",
        thread, micros(now - 2500), micros(2000), summary_.kernels);
    // The op, which encloses the launch, is written when it ends, as most tracers do.
    put(R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 100, "tid": {}, "ts": {}, "dur": {}, "args": {{"External id": {}, "Input Dims": [[1, {}], [{}, 4096]], "Input type": ["float", "float"]}}}})",
        ops_[below(k_ops)], thread, micros(begin), micros(now - begin), summary_.events,
        1 + below(64), 256 << below(5));
  }

  // A kernel on the queue of this thread, after its launch; half of them have a flow event.
  void write_kernel(std::uint64_t thread, std::uint64_t launched) {
    std::uint64_t& now = now_[k_threads + thread];
    const std::uint64_t length = 1500 + below(20'000);
    now = std::max(now, launched) + 100;
    put(R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 7, "tid": {}, "ts": {}, "dur": {}, "args": {{"stream": {}, "correlation": {}, "bytes": {}, "grid": [{}, 1, 1], "block": [128, 1, 1], "shape": "{}x{}"}}}})",
        kernels_[below(k_kernels)], k_threads + thread, micros(now), micros(length),
        k_threads + thread, summary_.kernels, 4096 + below(1 << 20), 1 + below(512), 64 << below(3),
        64 << below(3));
    if (below(2) == 0) {
      put(R"({{"ph": "s", "id": {}, "cat": "ac2g", "name": "ac2g", "pid": 100, "tid": {}, "ts": {}}})",
          summary_.kernels, thread, micros(launched));
    }
    ++summary_.kernels;
    summary_.kernel_nanos += length;
    now += length;
  }

  std::mt19937_64 random_;
  const std::function<void(std::string_view)>& write_;
  std::vector<std::uint64_t> now_;  // ns, of each thread and queue
  std::vector<std::string> ops_, kernels_;
  std::string text_;
  std::uint64_t requests_ = 0;
  TraceSummary summary_;
};

}  // namespace

TraceSummary make_trace(std::uint64_t bytes, std::uint64_t seed,
                        const std::function<void(std::string_view)>& write) {
  return TraceWriter(seed, write).write_trace(bytes);
}

}  // namespace weir::bench
