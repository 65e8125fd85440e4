// Worker threads with fair queues, and places in a queue.
#include "gate/serve/workers.hpp"

#include <algorithm>

namespace weir::serve {

Workers::Workers(std::size_t threads, std::size_t max_waiting) : max_waiting_(max_waiting) {
  const std::size_t count = std::max<std::size_t>(threads, 1);
  threads_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this, i] { work(i); });
}

Workers::~Workers() { stop(); }

// Runs tasks until the queue is empty and stopped. Owners with waiting tasks take turns, one task
// each. `number` is this thread's.
void Workers::work(std::size_t number) {
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || waiting_ > 0; });
      if (waiting_ == 0) return;
      auto turn = std::move(queues_.front());
      queues_.pop_front();
      task = std::move(turn.second.front());
      turn.second.pop_front();
      --waiting_;
      if (!turn.second.empty()) queues_.push_back(std::move(turn));
    }
    task(number);
  }
}

// Queues a task under its owner; returns false if the queue is full or stopped.
bool Workers::post(Task task, const std::string& owner) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || waiting_ >= max_waiting_) return false;
    auto queue =
        std::ranges::find_if(queues_, [&](const auto& entry) { return entry.first == owner; });
    if (queue == queues_.end()) queue = queues_.insert(queue, {owner, {}});
    queue->second.push_back(std::move(task));
    ++waiting_;
  }
  changed_.notify_one();
  return true;
}

void Workers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  const std::lock_guard lock(joining_);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

std::size_t Workers::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

struct Places::State {
  std::mutex mutex;
  std::size_t free = 0;                               // under mutex, as the next
  std::unordered_map<std::string, std::size_t> used;  // by key; none is 0

  void give_back(const std::string& key) {
    const std::lock_guard lock(mutex);
    ++free;
    const auto entry = used.find(key);
    if (entry == used.end()) return;
    --entry->second;
    if (entry->second == 0) used.erase(entry);
  }
};

Places::Places(std::size_t places) : state_(std::make_shared<State>()) { state_->free = places; }

// Takes one of the shared places for `key`, if more places are free than the key holds already;
// else returns null. The place is given back when its last pointer goes.
Places::Place Places::take(const std::string& key) {
  struct HeldPlace {
    std::shared_ptr<State> state;
    std::string key;
    ~HeldPlace() {
      if (state) state->give_back(key);
    }
  };
  const auto place = std::make_shared<HeldPlace>();  // first, because it may throw
  place->key = key;
  const std::lock_guard lock(state_->mutex);
  const auto entry = state_->used.find(key);
  const std::size_t used = entry == state_->used.end() ? 0 : entry->second;
  // A key may take a place only while more are free than it holds.
  if (state_->free <= used) return nullptr;
  ++state_->used[key];
  --state_->free;
  place->state = state_;
  return place;
}

}  // namespace weir::serve
