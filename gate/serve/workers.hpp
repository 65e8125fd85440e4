// Threads for what blocks, with a queue that has an end: whoever comes when it is full is told so
// at once. Everyone who waits gets the next thread in turn, however much one has waiting.
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weir::serve {

class Workers {
 public:
  // `threads` of them, at most `max_waiting` tasks in the queue.
  Workers(std::size_t threads, std::size_t max_waiting);
  // Lets all that was taken run to its end.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False where the queue is full or stop() was called: the task is not taken then. The number is
  // that of the thread that runs it, 0 … threads - 1: what one thread may use alone goes by it. A
  // task throws nothing, and may post others. `owner`: among whom the threads take turns.
  using Task = std::function<void(std::size_t thread)>;
  [[nodiscard]] bool post(Task task, const std::string& owner = "");
  // Takes no more; returns when all that was taken has run. Not from a task.
  void stop();
  [[nodiscard]] std::size_t waiting() const;

 private:
  void work(std::size_t number);

  const std::size_t max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Owners with waiting tasks, in the order of their turns. Guarded by mutex_, as the next two.
  std::deque<std::pair<std::string, std::deque<Task>>> queues_;
  std::size_t waiting_ = 0;
  bool stopped_ = false;
  std::mutex joining_;  // stop() may be called by several
  std::vector<std::thread> threads_;
};

// Places in a queue, shared out so that nobody takes them all: who comes gets one as long as more
// are free than it has already. One alone gets half of them, two get a third each. Thread-safe.
class Places {
 public:
  explicit Places(std::size_t places);

  // Taken until it is gone, which may be after Places.
  using Place = std::shared_ptr<void>;
  // Null where there is none for `key`.
  [[nodiscard]] Place take(const std::string& key);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A thread that does something again and again until it is destroyed, and waits in between.

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
