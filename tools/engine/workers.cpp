// Threads that share pieces of work of a few microseconds.
#include "tools/engine/workers.hpp"

#include <algorithm>

namespace weir::engine {
namespace {

constexpr int k_spins = 4000;  // some tens of microseconds: the time between two ops

// Waits until `value` is no longer `old`.
void await_change(std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int i = 0; i < k_spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
  }
  value.wait(old, std::memory_order_acquire);
}

// Returns where part `index` begins if `count` items are cut into `parts` equal ones.
std::uint32_t part_begin(std::uint32_t count, std::uint32_t parts, std::uint32_t index) {
  return static_cast<std::uint32_t>(std::uint64_t{count} * index / parts);
}

}  // namespace

Workers::Workers(unsigned threads) : threads_(std::max(threads, 1U)) {
  for (unsigned i = 1; i < threads_; ++i) started_.emplace_back([this, i] { work(i); });
}

Workers::~Workers() {
  stop_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : started_) thread.join();
}

// Splits `count` rows among the threads, each at least `min_rows`. Computes the first part here,
// and waits for the others.
void Workers::share(std::uint32_t count, std::uint32_t min_rows, const Part& part) {
  parts_ = std::clamp(count / std::max(min_rows, 1U), 1U, threads_);
  if (parts_ == 1) {
    part(0, count);
    return;
  }
  part_ = &part;
  count_ = count;
  done_.store(0, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  part(0, part_begin(count, parts_, 1));
  const auto others = static_cast<std::uint32_t>(started_.size());
  while (true) {
    const std::uint32_t done = done_.load(std::memory_order_acquire);
    if (done == others) return;
    await_change(done_, done);
  }
}

void Workers::work(unsigned index) {
  for (std::uint32_t round = 0;; ++round) {
    await_change(round_, round);
    if (stop_) return;
    if (index < parts_)
      (*part_)(part_begin(count_, parts_, index), part_begin(count_, parts_, index + 1));
    done_.fetch_add(1, std::memory_order_release);
    done_.notify_one();
  }
}

}  // namespace weir::engine
