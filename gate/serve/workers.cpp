#include "gate/serve/workers.hpp"

#include <algorithm>

namespace weir::serve {

Workers::Workers(std::size_t threads, std::size_t most_waiting) : most_waiting_(most_waiting) {
  const std::size_t count = std::max<std::size_t>(threads, 1);
  threads_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this, i] { work(i); });
}

Workers::~Workers() { stop(); }

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

bool Workers::post(Task task, const std::string& whose) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || waiting_ >= most_waiting_) return false;
    auto own = std::ranges::find_if(queues_, [&](const auto& one) { return one.first == whose; });
    if (own == queues_.end()) own = queues_.insert(own, {whose, {}});
    own->second.push_back(std::move(task));
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
