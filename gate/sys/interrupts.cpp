// Turns signals, and the end of a time limit, into requests to stop.
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

std::atomic<Stop*> g_stop{nullptr};  // the only way to reach it from a signal handler

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
  // One byte is enough: nobody reads it, so every later poll sees it too.
  if (times_.fetch_add(1) == 0 && pipe_.write.open()) {
    [[maybe_unused]] const ssize_t written = write(pipe_.write.get(), "!", 1);
  }
}

struct Interrupts::Previous {
  struct sigaction stopping[std::size(k_stopping)];
  struct sigaction pipe;
  Stop* stop = nullptr;
};

// Installs handlers that request the stop, unless the signal was ignored before.
Interrupts::Interrupts(std::optional<double> limit_seconds)
    : previous_(std::make_unique<Previous>()) {
  previous_->stop = g_stop.exchange(&stop_);
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // long waits poll the stop's descriptor instead
  for (std::size_t i = 0; i < std::size(k_stopping); ++i) {
    sigaction(k_stopping[i], nullptr, &previous_->stopping[i]);
    if (previous_->stopping[i].sa_handler == SIG_IGN) continue;
    sigaction(k_stopping[i], &action, nullptr);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &previous_->pipe);
  constexpr double k_max_seconds = 1e8;  // three years, still within a clock's range
  if (limit_seconds) {
    limit_ = std::thread([this, s = std::min(*limit_seconds, k_max_seconds)] { wait_for_end(s); });
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

// Stops the time limit and restores the previous handlers.
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
    sigaction(k_stopping[i], &previous_->stopping[i], nullptr);
  }
  sigaction(SIGPIPE, &previous_->pipe, nullptr);
  g_stop.store(previous_->stop);
}

}  // namespace weir::sys
