#include <cmath>
#include <map>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/sys/capture.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/supervisor.hpp"

namespace weir::sys {
namespace {

constexpr std::size_t k_free_output = std::size_t{1} << 20;
constexpr double k_drain_seconds = 1;  // an open pipe after the engine's end
constexpr double k_give_up_seconds =
    15;  // a killed engine that does not end (it hangs in a driver)

std::string words_of(int error) { return std::generic_category().message(error); }

Finished not_started(std::string why) {
  return {.ended = HowEnded::not_started, .start_error = std::move(why)};
}

std::string explain_start(const ProcessSpec& spec, const SupervisorReport& report) {
  const std::string words = words_of(report.error);
  switch (report.stage) {
    case Stage::folder:
      return fmt::format("cannot enter the folder {}: {}", spec.folder, words);
    case Stage::fork:
    case Stage::redirect:
      return fmt::format("no new process could be made: {}", words);
    case Stage::trace:
      return fmt::format("its system calls cannot be counted here: ptrace: {}", words);
    case Stage::exec:
    case Stage::none:
      break;
  }
  if (report.error == ENOENT && access(spec.argv[0].c_str(), F_OK) == 0) {
    return fmt::format("{}: the interpreter or loader that it names is not there", spec.argv[0]);
  }
  if (report.error == ENOEXEC) {
    return fmt::format("{}: not a program for this machine (a script needs a first line #!)",
                       spec.argv[0]);
  }
  return fmt::format("{}: {}", spec.argv[0], words);
}

// Environment and arguments as the system wants them; owns the text.
class CallText {
 public:
  explicit CallText(const ProcessSpec& spec) {
    for (const std::string& argument : spec.argv) texts_.push_back(argument);
    const std::size_t arguments = texts_.size();
    std::map<std::string, std::string> merged;
    for (const auto& [name, value] : inherited(own_environment(), spec.passed)) {
      merged[name] = value;
    }
    for (const std::string& name : spec.unset) merged.erase(name);
    for (const auto& [name, value] : spec.env) merged[name] = value;
    for (const auto& [name, value] : merged) texts_.push_back(name + "=" + value);
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (i < arguments) {
        argv_.push_back(texts_[i].data());
      } else {
        envp_.push_back(texts_[i].data());
      }
    }
    argv_.push_back(nullptr);
    envp_.push_back(nullptr);
  }
  [[nodiscard]] char* const* argv() const { return argv_.data(); }
  [[nodiscard]] char* const* envp() const { return envp_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> argv_, envp_;
};

// One engine being run: the loop that reads, waits and stops.
class Running {
 public:
  Running(const ProcessSpec& spec, const Stop& stop, const Clock& clock, Pause& pause)
      : spec_(spec),
        stop_(stop),
        clock_(clock),
        pause_(pause),
        out_(spec.keep_head, spec.keep_tail),
        err_(spec.keep_head, spec.keep_tail) {
    err_.cut();
    if (!spec.whole_output) out_.cut();
  }

  Finished run(const TakePlace& take_place) {
    const CallText text(spec_);
    if (auto problem = start(text)) return not_started(*problem);
    const double begun = clock_.steady();
    deadline_ = begun + std::max(0.0, spec_.timeout_seconds);
    double now = begun;
    while (!done(now)) {
      const bool paused = must_pause(take_place);
      wait(now, paused);
      const double then = std::exchange(now, clock_.steady());
      if (paused) deadline_ += now - then;
      // The end of an output that waits for its place is still in the pipe.
      if (paused && ended_at_) *ended_at_ += now - then;
      obey(now);
    }
    return finish();
  }

 private:
  std::optional<std::string> start(const CallText& text) {
    Pipe control, report, out, err;
    if (spec_.count_calls && calls_.emplace().counts == nullptr) {
      return fmt::format("no memory to count system calls in: {}", words_of(errno));
    }
    if (!make_pipe(control) || !make_pipe(report) || !make_pipe(out) || !make_pipe(err)) {
      return fmt::format("no pipe could be made: {}", words_of(errno));
    }
    SupervisorOrder order;
    order.program = spec_.argv[0].c_str();
    order.argv = text.argv();
    order.envp = text.envp();
    order.folder = spec_.folder.empty() ? nullptr : spec_.folder.c_str();
    order.count = spec_.count ? &*spec_.count : nullptr;
    order.calls = calls_ ? calls_->counts : nullptr;
    order.settle_ns = static_cast<std::int64_t>(std::max(0.0, spec_.settle_seconds) * 1e9);
    order.control_fd = control.read.get();
    order.report_fd = report.write.get();
    order.out_fd = out.write.get();
    order.err_fd = err.write.get();
    supervisor_ = start_supervisor(order);
    if (supervisor_ < 0) return fmt::format("no new process could be made: {}", words_of(errno));
    for (const Fd* fd : {&report.read, &out.read, &err.read}) {
      fcntl(fd->get(), F_SETFL, O_NONBLOCK);
    }
    control_ = std::move(control.write);
    report_fd_ = std::move(report.read);
    out_fd_ = std::move(out.read);
    err_fd_ = std::move(err.read);
    return std::nullopt;
  }

  [[nodiscard]] bool done(double now) const {
    if (ended_at_) {
      return (!out_fd_.open() && !err_fd_.open()) || now > *ended_at_ + k_drain_seconds;
    }
    // The supervisor is gone without a word, or what was killed does not end.
    return !report_fd_.open() || (killed_at_ && now > *killed_at_ + k_give_up_seconds);
  }

  bool must_pause(const TakePlace& take_place) {
    if (!out_.whole() || out_.held() < k_free_output || place_ != nullptr) return false;
    place_ = take_place();
    return place_ == nullptr;
  }

  void wait(double now, bool paused) {
    std::array<pollfd, 4> fds{};
    // A negative descriptor is left alone by poll.
    fds[0] = {report_fd_.get(), POLLIN, 0};
    fds[1] = {paused ? -1 : out_fd_.get(), POLLIN, 0};
    fds[2] = {err_fd_.get(), POLLIN, 0};
    fds[3] = {stop_seen_ ? -1 : stop_.fd(), POLLIN, 0};
    double until = now + 1;
    if (reason_ == Reason::none && !settling_) until = std::min(until, deadline_);
    if (reason_ != Reason::none && !killed_at_) until = std::min(until, kill_at_);
    if (ended_at_) until = std::min(until, *ended_at_ + k_drain_seconds);
    if (paused || stop_seen_ || stop_.fd() < 0) until = std::min(until, now + 0.05);
    const int milliseconds = static_cast<int>(std::ceil(std::max(0.0, until - now) * 1000));
    if (poll(fds.data(), fds.size(), milliseconds) <= 0) return;
    if (fds[0].revents != 0) read_report();
    if (fds[1].revents != 0) read_stream(out_fd_, out_);
    if (fds[2].revents != 0) read_stream(err_fd_, err_);
  }

  void read_report() {
    SupervisorReport report;
    const ssize_t got = read(report_fd_.get(), &report, sizeof report);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got != sizeof report) return report_fd_.reset();
    if (report.what == SupervisorReport::What::settling) {
      settling_ = true;
    } else if (report.what != SupervisorReport::What::started) {
      last_ = report;
      ended_at_ = clock_.steady();
    }
  }

  void read_stream(Fd& fd, Capture& capture) {
    char buffer[65536];
    // Few rounds at a time: the other stream, the time-out and the stop have their turn too.
    for (int round = 0; round < 4; ++round) {
      const ssize_t got = read(fd.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) return fd.reset();
      const auto bytes = static_cast<std::size_t>(got);
      if (out_.bytes() + err_.bytes() + bytes > spec_.output_limit) {
        out_.cut();
        if (reason_ == Reason::none && !ended_at_) stop_engine(Reason::output, clock_.steady());
        over_limit_ = true;
      } else if (&capture == &out_) {
        grow(bytes);
      }
      capture.add({buffer, bytes});
      if (spec_.heard) spec_.heard({buffer, bytes});
      if (&capture == &out_ && out_.whole() && out_.held() >= k_free_output && !place_) return;
    }
  }

  // Doubling, but never beyond the limit: a string by itself would take up to twice of it.
  void grow(std::size_t bytes) {
    const std::size_t wanted = out_.held() + bytes;
    if (!out_.whole() || wanted <= room_) return;
    room_ = std::max(
        wanted, static_cast<std::size_t>(std::min<std::uint64_t>(spec_.output_limit, 2 * wanted)));
    out_.reserve(room_);
  }

  enum class Reason { none, timeout, output, interrupted };

  void tell(char order) {
    if (!control_.open()) return;
    while (write(control_.get(), &order, 1) < 0 && errno == EINTR) {
    }
  }

  void stop_engine(Reason reason, double now) {
    reason_ = reason;
    if (reason == Reason::output) return kill_engine(now);  // it would go on printing
    tell(k_control_terminate);
    kill_at_ = now + std::max(0.0, spec_.kill_grace_seconds);
  }

  void kill_engine(double now) {
    tell(k_control_kill);
    killed_at_ = now;
  }

  void obey(double now) {
    if (ended_at_) return;
    if (stop_.requested()) {
      stop_seen_ = true;
      if (reason_ == Reason::none) stop_engine(Reason::interrupted, now);
      if (stop_.times() > 1 && !killed_at_) kill_engine(now);
    }
    // An engine that is settling has ended in time.
    if (reason_ == Reason::none && !settling_ && now >= deadline_) {
      stop_engine(Reason::timeout, now);
    }
    if (reason_ != Reason::none && !killed_at_ && now >= kill_at_) kill_engine(now);
  }

  // A batch system asks all processes of a job to end, in any order: the engine's end is then no
  // crash, and the same wish reaches this process in a moment.
  static bool asks_to_end(int signal) {
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
  }
  [[nodiscard]] bool stop_follows() const {
    constexpr double k_moment_seconds = 0.5;
    (void)pause_.wait(k_moment_seconds, stop_);
    return stop_.requested();
  }

  Finished finish() {
    control_.reset();  // should the supervisor still be there, this ends it
    if (ended_at_ || !report_fd_.open()) {
      while (waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    if (last_.what == SupervisorReport::What::not_started && ended_at_) {
      return not_started(explain_start(spec_, last_));
    }
    Finished finished;
    finished.out_bytes = out_.bytes();
    finished.err_bytes = err_.bytes();
    finished.out = out_.take();
    finished.err = err_.take();
    finished.output_place = std::move(place_);
    if (ended_at_) {
      finished.wall_seconds = static_cast<double>(last_.wall_ns) / 1e9;
      finished.cpu_seconds = static_cast<double>(last_.cpu_us) / 1e6;
      if (last_.peak_bytes >= 0) finished.peak_rss_bytes = last_.peak_bytes;
      finished.took = last_.took;
      finished.left_behind = last_.left_behind;
      if (spec_.count && last_.count_error == 0) finished.counted = last_.counted;
      if (spec_.count && last_.count_error != 0) {
        finished.count_error = perf_refusal(last_.count_error, std::nullopt);
      }
      if (calls_) finished.calls = calls_of(*calls_->counts);
      if (WIFSIGNALED(last_.status)) {
        finished.ended = HowEnded::signaled;
        finished.signal = WTERMSIG(last_.status);
        if (reason_ == Reason::none && asks_to_end(finished.signal) && stop_follows()) {
          finished.ended = HowEnded::interrupted;
        }
      } else {
        finished.exit_code = WEXITSTATUS(last_.status);
      }
    } else {
      // Either the supervisor was killed (it takes the engine along), or the engine cannot die.
      kill_session(supervisor_);
      finished.ended = HowEnded::signaled;
      finished.signal = SIGKILL;
      finished.err += killed_at_ ? "\n[weir: killed, but it did not end: it may hang in a driver]\n"
                                 : "\n[weir: the process that watches over it was killed]\n";
    }
    if (reason_ == Reason::timeout) finished.ended = HowEnded::timed_out;
    if (reason_ == Reason::interrupted) finished.ended = HowEnded::interrupted;
    const bool too_much = reason_ == Reason::output || (reason_ == Reason::none && over_limit_);
    if (too_much) finished.ended = HowEnded::output_limit;
    return finished;
  }

  const ProcessSpec& spec_;
  const Stop& stop_;
  const Clock& clock_;
  Pause& pause_;
  Capture out_, err_;
  Fd control_, report_fd_, out_fd_, err_fd_;
  pid_t supervisor_ = -1;
  std::shared_ptr<void> place_;
  std::size_t room_ = 0;
  double deadline_ = 0, kill_at_ = 0;
  std::optional<double> killed_at_, ended_at_;
  Reason reason_ = Reason::none;
  bool stop_seen_ = false, over_limit_ = false, settling_ = false;
  SupervisorReport last_;
  std::optional<SharedCounts> calls_;
};

}  // namespace

Finished run_process(const ProcessSpec& spec, const Stop& stop, const Clock& clock, Pause& pause,
                     const TakePlace& take_place) {
  return Running(spec, stop, clock, pause).run(take_place);
}

}  // namespace weir::sys
