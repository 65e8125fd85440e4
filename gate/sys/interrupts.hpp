// A request to stop, and the signals that make one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "gate/sys/fd.hpp"

namespace weir::sys {

// Raised once and for all; whoever waits for something also waits for its fd(). Thread-safe, and
// request() may be called from a signal handler.
class Stop {
 public:
  Stop();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  void request(int signal = 0) noexcept;
  [[nodiscard]] bool requested() const noexcept { return times_.load() > 0; }
  // How often it was asked for: the second time means "at once".
  [[nodiscard]] int times() const noexcept { return times_.load(); }
  [[nodiscard]] int signal() const noexcept { return signal_.load(); }
  // Becomes readable with the first request and stays so (nobody may read from it): poll it, and
  // leave it out of later polls. -1 when the system had no pipe to give: then poll in short steps.
  [[nodiscard]] int fd() const noexcept { return pipe_.read.get(); }

 private:
  std::atomic<int> times_{0};
  std::atomic<int> signal_{0};
  Pipe pipe_;
};

// While it lives, SIGINT, SIGTERM and SIGHUP request stop() instead of ending the program (those
// that were ignored, as under nohup, stay so), and SIGPIPE is ignored. One may live within another,
// which then has them again.
// With `limit_seconds`, their end requests it too.
class Interrupts {
 public:
  explicit Interrupts(std::optional<double> limit_seconds = {});
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  [[nodiscard]] const Stop& stop() const { return stop_; }
  // The limit's end came before any signal.
  [[nodiscard]] bool over() const noexcept { return over_.load(); }

 private:
  void wait_for_end(double limit_seconds);

  struct Previous;  // signal handlers before this object

  Stop stop_;
  std::unique_ptr<Previous> previous_;
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;  // under mutex_
  std::thread limit_;
};

}  // namespace weir::sys
