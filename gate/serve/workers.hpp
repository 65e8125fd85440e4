// Threads for what blocks, with a queue that has an end: whoever comes when it is full is told so
// at once. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace weir::serve {

class Workers {
 public:
  // `threads` of them, at most `most_waiting` tasks in the queue.
  Workers(std::size_t threads, std::size_t most_waiting);
  // Lets all that was taken run to its end.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False where the queue is full or stop() was called: the task is not taken then. The number is
  // that of the thread that runs it, 0 … threads - 1: what one thread may use alone goes by it. A
  // task throws nothing, and may post others.
  [[nodiscard]] bool post(std::function<void(std::size_t thread)> task);
  // Takes no more; returns when all that was taken has run. Not from a task.
  void stop();
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
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

}  // namespace weir::serve
