// A thread that does something again and again until it is destroyed, and waits in between.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace weir::serve {

class Periodic {
 public:
  // Gets what `what` threw. Called by the thread; may be empty.
  using Trouble = std::function<void(const std::string&)>;
  enum class First { at_once, after_a_while };

  // `what` may throw: it is told, and done again the next time.
  Periodic(double seconds, std::function<void()> what, Trouble trouble = {},
           First first = First::after_a_while)
      : what_(std::move(what)),
        trouble_(std::move(trouble)),
        wanted_(first == First::at_once),
        thread_([this, seconds] { work(seconds); }) {}
  ~Periodic() { stop(); }
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

  // Does it no more, and returns when it does not. By one thread.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  // Soon, once, however often it is called until then. Returns at once.
  void soon() {
    {
      const std::lock_guard lock(mutex_);
      wanted_ = true;
    }
    changed_.notify_all();
  }

 private:
  void work(double seconds) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                        [&] { return over_ || wanted_; });
      if (over_) return;
      wanted_ = false;
      lock.unlock();
      once();
      lock.lock();
    }
  }
  // An exception that leaves a thread ends the whole program.
  void once() noexcept {
    try {
      try {
        what_();
      } catch (const std::exception& error) {
        if (trouble_) trouble_(error.what());
      }
    } catch (...) {  // NOLINT(bugprone-empty-catch): nobody is left to be told
    }
  }

  std::function<void()> what_;
  Trouble trouble_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false, wanted_;  // under mutex_
  std::thread thread_;
};

}  // namespace weir::serve
