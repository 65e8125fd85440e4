#include "gate/serve/workers.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace weir::serve {

struct Workers::State {
  std::size_t most_waiting = 0;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void(std::size_t)>> queue;  // under mutex
  bool stopped = false;                                // under mutex
  std::vector<std::thread> threads;
  std::mutex joining;  // stop() may be called by several

  void work(std::size_t number) {
    while (true) {
      std::function<void(std::size_t)> task;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stopped || !queue.empty(); });
        if (queue.empty()) return;
        task = std::move(queue.front());
        queue.pop_front();
      }
      task(number);
    }
  }
};

Workers::Workers(std::size_t threads, std::size_t most_waiting)
    : state_(std::make_unique<State>()) {
  state_->most_waiting = most_waiting;
  const std::size_t count = std::max<std::size_t>(threads, 1);
  state_->threads.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    state_->threads.emplace_back([state = state_.get(), i] { state->work(i); });
  }
}

Workers::~Workers() { stop(); }

bool Workers::post(std::function<void(std::size_t thread)> task) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopped || state_->queue.size() >= state_->most_waiting) return false;
    state_->queue.push_back(std::move(task));
  }
  state_->changed.notify_one();
  return true;
}

void Workers::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopped = true;
  }
  state_->changed.notify_all();
  const std::lock_guard lock(state_->joining);
  for (std::thread& thread : state_->threads) {
    if (thread.joinable()) thread.join();
  }
}

std::size_t Workers::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->queue.size();
}

struct Places::State {
  std::mutex mutex;
  std::size_t free = 0;                                // under mutex, as the next
  std::unordered_map<std::string, std::size_t> taken;  // by key; none is 0

  void give_back(const std::string& key) {
    const std::lock_guard lock(mutex);
    ++free;
    const auto found = taken.find(key);
    if (found != taken.end() && --found->second == 0) taken.erase(found);
  }
};

Places::Places(std::size_t places) : state_(std::make_shared<State>()) { state_->free = places; }

Places::Place Places::take(const std::string& key) {
  struct Held {
    std::shared_ptr<State> state;
    std::string key;
    ~Held() {
      if (state) state->give_back(key);
    }
  };
  const auto held = std::make_shared<Held>();  // before anything is counted: it may throw
  held->key = key;
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->taken.find(key);
  if (state_->free <= (found == state_->taken.end() ? 0 : found->second)) return nullptr;
  ++state_->taken[key];
  --state_->free;
  held->state = state_;
  return held;
}

}  // namespace weir::serve
