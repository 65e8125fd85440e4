// A request to stop, and the signals that make one.
#pragma once

#include <atomic>

namespace weir::sys {

// Raised once and for all; whoever waits for something also waits for its fd(). Thread-safe, and
// request() may be called from a signal handler.
class Stop {
 public:
  Stop();
  ~Stop();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  void request(int signal = 0) noexcept;
  [[nodiscard]] bool requested() const noexcept { return times_.load() > 0; }
  // How often it was asked for: the second time means "at once".
  [[nodiscard]] int times() const noexcept { return times_.load(); }
  [[nodiscard]] int signal() const noexcept { return signal_.load(); }
  // Becomes readable with the first request and stays so (nobody may read from it): poll it, and
  // leave it out of later polls. -1 when the system had no pipe to give: then poll in short steps.
  [[nodiscard]] int fd() const noexcept { return fds_[0]; }

 private:
  std::atomic<int> times_{0};
  std::atomic<int> signal_{0};
  int fds_[2] = {-1, -1};
};

// While it lives, SIGINT, SIGTERM and SIGHUP request stop() instead of ending the program (those
// that were ignored, as under nohup, stay so), and SIGPIPE is ignored. At most one at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  [[nodiscard]] const Stop& stop() const { return stop_; }

 private:
  Stop stop_;
};

}  // namespace weir::sys
