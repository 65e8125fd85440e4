// Threads that take parts of one piece of work at a time, for kernels of a few microseconds: they
// look for work in a loop for a moment before they sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace weir::engine {

class Workers {
 public:
  // The calling thread is one of them: `threads` - 1 are started.
  explicit Workers(unsigned threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Calls part(first, last) for ranges that make up 0 … count, each at least `min_rows` long where
  // there is more than one; returns when all are done. Only from the thread that made this.
  using Part = std::function<void(std::uint32_t first, std::uint32_t last)>;
  void share(std::uint32_t count, std::uint32_t min_rows, const Part& part);

 private:
  void work(unsigned index);

  unsigned threads_;
  const Part* part_ = nullptr;
  std::uint32_t count_ = 0, parts_ = 0;
  std::atomic<std::uint32_t> round_{0};  // goes up with each piece of work
  std::atomic<std::uint32_t> done_{0};   // workers that are through with this round
  std::atomic<bool> stop_{false};
  std::vector<std::thread> started_;
};

}  // namespace weir::engine
