// A server that weir started, while it runs: its start, what it prints, its end.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "gate/base/result.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/process.hpp"

namespace weir::run {

// Two threads of its own: one is in Processes::run(), one hands the stop on. Used by one thread.
class ServerProcess {
 public:
  // Is asked about every line as it is printed, ended or not, on another thread.
  using OnLine = std::function<bool(std::string_view line)>;

  // Starts it. A line that `on_line` answers true for makes has_said() true. All must outlive it.
  ServerProcess(sys::Processes& processes, sys::ProcessSpec spec, const sys::Stop& stop,
                OnLine on_line = nullptr);
  ~ServerProcess();  // ends it
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // It ended without being told to, or never began.
  [[nodiscard]] bool is_gone() const { return gone_.load(); }
  [[nodiscard]] bool has_said() const { return said_.load(); }
  // Requested when it is gone, or weir shall stop: what waits for the server waits no longer.
  [[nodiscard]] const sys::Stop& over() const { return over_; }

  // Tells it to end (SIGTERM, after the spec's grace SIGKILL), waits until it and all it started
  // are gone, and answers how that went. Of one that went by itself: how. Once.
  [[nodiscard]] Result<sys::Finished> end();

 private:
  void run();
  void hand_on();
  void hear(std::string_view piece);

  sys::Processes& processes_;
  sys::ProcessSpec spec_;
  const sys::Stop& stop_;
  OnLine on_line_;
  std::string line_;  // begun and not ended; of the thread in run()
  sys::Stop end_;     // ends the process
  sys::Stop over_;
  sys::Stop ended_;  // ends hand_on()
  std::atomic<bool> told_{false}, gone_{false}, said_{false};
  Result<sys::Finished> finished_;  // when runner_ was joined
  std::thread runner_, hander_;
};

}  // namespace weir::run
