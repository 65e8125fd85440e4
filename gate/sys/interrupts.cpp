#include "gate/sys/interrupts.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace weir::sys {
namespace {

constexpr int k_stopping[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<Stop*> g_stop{nullptr};  // a signal handler has no other way to know

void on_signal(int signal) {
  const int error = errno;
  if (Stop* stop = g_stop.load()) stop->request(signal);
  errno = error;
}

}  // namespace

Stop::Stop() {
  if (!make_pipe(pipe_)) return;
  for (const Fd* end : {&pipe_.read, &pipe_.write}) fcntl(end->get(), F_SETFL, O_NONBLOCK);
}

void Stop::request(int signal) noexcept {
  if (signal != 0) signal_.store(signal);
  // One byte is enough: it is never read, so every poller sees it, also those that come later.
  if (times_.fetch_add(1) == 0 && pipe_.write.open()) {
    [[maybe_unused]] const ssize_t written = write(pipe_.write.get(), "!", 1);
  }
}

struct Interrupts::Before {
  struct sigaction stopping[std::size(k_stopping)];
  struct sigaction pipe;
  Stop* stop = nullptr;
};

Interrupts::Interrupts(std::optional<double> limit_seconds) : before_(std::make_unique<Before>()) {
  before_->stop = g_stop.exchange(&stop_);
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // who waits for long polls the stop's descriptor
  for (std::size_t i = 0; i < std::size(k_stopping); ++i) {
    sigaction(k_stopping[i], nullptr, &before_->stopping[i]);
    if (before_->stopping[i].sa_handler == SIG_IGN) continue;
    sigaction(k_stopping[i], &action, nullptr);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before_->pipe);
  constexpr double k_longest = 1e8;  // three years; a clock holds it
  if (limit_seconds) {
    limit_ = std::thread([this, s = std::min(*limit_seconds, k_longest)] { wait_for_end(s); });
  }
}

void Interrupts::wait_for_end(double limit_seconds) {
  std::unique_lock lock(mutex_);
  if (ended_.wait_for(lock, std::chrono::duration<double>(limit_seconds), [&] { return ends_; })) {
    return;
  }
  if (!stop_.requested()) over_.store(true);
  stop_.request();
}

Interrupts::~Interrupts() {
  if (limit_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    ended_.notify_one();
    limit_.join();
  }
  for (std::size_t i = 0; i < std::size(k_stopping); ++i) {
    sigaction(k_stopping[i], &before_->stopping[i], nullptr);
  }
  sigaction(SIGPIPE, &before_->pipe, nullptr);
  g_stop.store(before_->stop);
}

}  // namespace weir::sys
