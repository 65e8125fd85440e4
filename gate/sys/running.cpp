// Runs one engine: reads its output, enforces its limits, and reports how it ended.
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
constexpr double k_drain_seconds = 1;  // for a pipe that is open after the engine's end
// Seconds that a killed engine has to end; one that hangs in a driver never does.
constexpr double k_give_up_seconds = 15;

std::string error_text(int error) { return std::generic_category().message(error); }

Finished not_started(std::string why) {
  return {.ended = HowEnded::not_started, .start_error = std::move(why)};
}

// Explains why an engine could not be started, by the stage at which that failed and its errno.
std::string explain_start(const ProcessSpec& spec, const SupervisorReport& report) {
  const std::string error_message = error_text(report.error);
  switch (report.stage) {
    case Stage::folder:
      return fmt::format("cannot enter the folder {}: {}", spec.folder, error_message);
    case Stage::fork:
    case Stage::redirect:
      return fmt::format("no new process could be made: {}", error_message);
    case Stage::trace:
      return fmt::format("its system calls cannot be counted here: ptrace: {}", error_message);
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
  return fmt::format("{}: {}", spec.argv[0], error_message);
}

// Variables as "NAME=VALUE"; owns the text.
class VariableTexts {
 public:
  // Returns a list that ends in null; null without variables.
  const char* const* list(const EnvironmentList& variables) {
    if (variables.empty()) return nullptr;
    for (const auto& [name, value] : variables) texts_.push_back(name + "=" + value);
    for (const std::string& text : texts_) pointers_.push_back(text.c_str());
    pointers_.push_back(nullptr);
    return pointers_.data();
  }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
};

// Arguments and environment in the form that execve() takes; owns the text.
class CallText {
 public:
  explicit CallText(const ProcessSpec& spec) {
    for (const std::string& argument : spec.argv) texts_.push_back(argument);
    const std::size_t arguments = texts_.size();
    std::map<std::string, std::string> merged;
    for (const auto& [name, value] : inherited(own_environment(), spec.passed_variables)) {
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

// One run of an engine: the loop that reads, waits and stops.
class ProcessRun {
 public:
  ProcessRun(const ProcessSpec& spec, const Stop& stop, const Clock& clock, Pause& pause)
      : spec_(spec),
        stop_(stop),
        clock_(clock),
        pause_(pause),
        out_(spec.keep_head, spec.keep_tail),
        err_(spec.keep_head, spec.keep_tail) {
    err_.cut();
    if (!spec.whole_output) out_.cut();
  }

  // Runs the engine to its end. While large output waits for its place in memory, time stands
  // still.
  Finished run(const TakeOutputPlace& take_output_place) {
    const CallText text(spec_);
    if (auto problem = start(text)) return not_started(*problem);
    const double began_at = clock_.steady();
    deadline_ = began_at + std::max(0.0, spec_.timeout_seconds);
    double now = began_at;
    while (!is_done(now)) {
      const bool is_paused = must_pause(take_output_place);
      wait(now, is_paused);
      const double before = now;
      now = clock_.steady();
      if (is_paused) deadline_ += now - before;
      // Output that waits for its place is still in the pipe, so give it more time.
      if (is_paused && ended_at_) *ended_at_ += now - before;
      check_limits(now);
    }
    return finish();
  }

  // Returns true if there was no process because the system does not let it be watched.
  [[nodiscard]] bool may_not_watch() const {
    return is_watched() && last_report_.stage == Stage::trace;
  }

 private:
  // Starts the supervisor, which starts the engine. Returns the problem if that fails.
  std::optional<std::string> start(const CallText& text) {
    Pipe control, report, out, err;
    if (spec_.count_calls && calls_.emplace().counts == nullptr) {
      return fmt::format("no memory to count system calls in: {}", error_text(errno));
    }
    if (is_watched()) watch_files();
    if (!make_pipe(control) || !make_pipe(report) || !make_pipe(out) || !make_pipe(err)) {
      return fmt::format("no pipe could be made: {}", error_text(errno));
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
    if (supervisor_ < 0) return fmt::format("no new process could be made: {}", error_text(errno));
    for (const Fd* fd : {&report.read, &out.read, &err.read}) {
      fcntl(fd->get(), F_SETFL, O_NONBLOCK);
    }
    if (spec_.started) spec_.started(supervisor_);
    control_ = std::move(control.write);
    report_fd_ = std::move(report.read);
    out_fd_ = std::move(out.read);
    err_fd_ = std::move(err.read);
    return std::nullopt;
  }

  [[nodiscard]] bool is_watched() const {
    const bool needs_variables =
        !spec_.needed_with_gpu.empty() || !spec_.needed_with_python.empty();
    return (spec_.watched || needs_variables) && !spec_.count_calls;
  }

  // Makes the supervisor record which files are opened, as far as somebody asks.
  void watch_files() {
    if (calls_.emplace().counts == nullptr) return calls_.reset();
    calls_->counts->opened.needed_variables = needed_with_gpu_.list(spec_.needed_with_gpu);
    calls_->counts->opened.needed_by_python = needed_with_python_.list(spec_.needed_with_python);
    if (!spec_.watched) return;
    for (const std::string& path : spec_.watched->except) except_.push_back(path.c_str());
    except_.push_back(nullptr);
    calls_->counts->opened.folder = spec_.watched->folder.c_str();
    calls_->counts->opened.except = except_.data();
  }

  [[nodiscard]] bool is_done(double now) const {
    if (ended_at_) {
      return (!out_fd_.open() && !err_fd_.open()) || now > *ended_at_ + k_drain_seconds;
    }
    // The supervisor is gone without a report, or the killed engine does not end.
    return !report_fd_.open() || (killed_at_ && now > *killed_at_ + k_give_up_seconds);
  }

  // Returns true if standard output has to wait for the place of a large output.
  bool must_pause(const TakeOutputPlace& take_output_place) {
    if (!out_.is_complete() || out_.size() < k_free_output || output_place_ != nullptr)
      return false;
    output_place_ = take_output_place();
    return output_place_ == nullptr;
  }

  // Waits for output, a report, a stop or the next deadline, and reads what came.
  void wait(double now, bool paused) {
    std::array<pollfd, 4> fds{};
    // poll() ignores negative descriptors.
    fds[0] = {report_fd_.get(), POLLIN, 0};
    fds[1] = {paused ? -1 : out_fd_.get(), POLLIN, 0};
    fds[2] = {err_fd_.get(), POLLIN, 0};
    fds[3] = {stop_seen_ ? -1 : stop_.fd(), POLLIN, 0};
    double until = now + 1;
    if (stop_reason_ == StopReason::none && !settling_) until = std::min(until, deadline_);
    if (stop_reason_ != StopReason::none && !killed_at_) until = std::min(until, kill_at_);
    if (ended_at_) until = std::min(until, *ended_at_ + k_drain_seconds);
    if (paused || stop_seen_ || stop_.fd() < 0) until = std::min(until, now + 0.05);
    const int milliseconds = static_cast<int>(std::ceil(std::max(0.0, until - now) * 1000));
    if (poll(fds.data(), fds.size(), milliseconds) <= 0) return;
    if (fds[0].revents != 0) read_report();
    if (fds[1].revents != 0) read_stream(out_fd_, out_);
    if (fds[2].revents != 0) read_stream(err_fd_, err_);
  }

  // Reads one report of the supervisor.
  void read_report() {
    SupervisorReport report;
    const ssize_t count = read(report_fd_.get(), &report, sizeof report);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count != sizeof report) return report_fd_.reset();
    if (report.what == SupervisorReport::What::settling) {
      settling_ = true;
    } else if (report.what != SupervisorReport::What::started) {
      last_report_ = report;
      ended_at_ = clock_.steady();
    }
  }

  // Reads output that is available.
  void read_stream(Fd& fd, Capture& capture) {
    char buffer[65536];
    // Only a few rounds, so that the other stream, the time-out and the stop get their turn.
    for (int round = 0; round < 4; ++round) {
      const ssize_t count = read(fd.get(), buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) return fd.reset();
      const auto bytes = static_cast<std::size_t>(count);
      if (out_.bytes() + err_.bytes() + bytes > spec_.output_limit) {
        out_.cut();
        if (stop_reason_ == StopReason::none && !ended_at_)
          stop_engine(StopReason::output, clock_.steady());
        over_limit_ = true;
      } else if (&capture == &out_) {
        reserve_output(bytes);
      }
      capture.add({buffer, bytes});
      if (spec_.heard) spec_.heard({buffer, bytes});
      if (&capture == &out_ && out_.is_complete() && out_.size() >= k_free_output && !output_place_)
        return;
    }
  }

  // Reserves memory for output: twice what is needed, but never more than the limit. A growing
  // string alone could take up to twice the limit.
  void reserve_output(std::size_t bytes) {
    const std::size_t needed = out_.size() + bytes;
    if (!out_.is_complete() || needed <= reserved_bytes_) return;
    reserved_bytes_ = std::max(
        needed, static_cast<std::size_t>(std::min<std::uint64_t>(spec_.output_limit, 2 * needed)));
    out_.reserve(reserved_bytes_);
  }

  enum class StopReason { none, timeout, output, interrupted };

  void send_order(char order) {
    if (!control_.open()) return;
    while (write(control_.get(), &order, 1) < 0 && errno == EINTR) {
    }
  }

  void stop_engine(StopReason reason, double now) {
    stop_reason_ = reason;
    if (reason == StopReason::output)
      return kill_engine(now);  // asked politely, it would go on printing
    send_order(k_control_terminate);
    kill_at_ = now + std::max(0.0, spec_.kill_grace_seconds);
  }

  void kill_engine(double now) {
    send_order(k_control_kill);
    killed_at_ = now;
  }

  // Stops or kills the engine if a stop, the time-out or the grace period says so.
  void check_limits(double now) {
    if (ended_at_) return;
    if (stop_.requested()) {
      stop_seen_ = true;
      if (stop_reason_ == StopReason::none) stop_engine(StopReason::interrupted, now);
      if (stop_.times() > 1 && !killed_at_) kill_engine(now);
    }
    // An engine that is settling has ended in time.
    if (stop_reason_ == StopReason::none && !settling_ && now >= deadline_) {
      stop_engine(StopReason::timeout, now);
    }
    if (stop_reason_ != StopReason::none && !killed_at_ && now >= kill_at_) kill_engine(now);
  }

  // A batch system asks all processes of a job to end, in any order. So an engine that was asked to
  // end did not crash if weir is asked too, a moment later.
  static bool asks_to_end(int signal) {
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
  }
  [[nodiscard]] bool stop_follows() const {
    constexpr double k_moment_seconds = 0.5;
    (void)pause_.wait(k_moment_seconds, stop_);
    return stop_.requested();
  }

  // Collects the result once the engine has ended.
  Finished finish() {
    control_.reset();  // ends a supervisor that is still there
    if (ended_at_ || !report_fd_.open()) {
      while (waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    if (last_report_.what == SupervisorReport::What::not_started && ended_at_) {
      return not_started(explain_start(spec_, last_report_));
    }
    Finished finished;
    finished.out_bytes = out_.bytes();
    finished.err_bytes = err_.bytes();
    finished.out = out_.take();
    finished.err = err_.take();
    finished.output_place = std::move(output_place_);
    if (ended_at_) {
      finished.wall_seconds = static_cast<double>(last_report_.wall_ns) / 1e9;
      finished.cpu_seconds = static_cast<double>(last_report_.cpu_us) / 1e6;
      if (last_report_.peak_is_bound) {
        finished.peak_rss_bound = last_report_.peak_bytes;
      } else {
        finished.peak_rss_bytes = last_report_.peak_bytes;
      }
      finished.usage = last_report_.usage;
      finished.left_behind = last_report_.left_behind;
      if (spec_.count && last_report_.count_error == 0) finished.counted = last_report_.counted;
      if (spec_.count && last_report_.count_error != 0) {
        finished.count_error = perf_refusal(last_report_.count_error, std::nullopt);
      }
      if (calls_ && spec_.count_calls) finished.calls = calls_of(*calls_->counts);
      if (calls_ && is_watched()) {
        const OpenedFiles& opened = calls_->counts->opened;
        if (spec_.watched) finished.opened = paths_of(opened);
        finished.gpu_library = opened.library.data();
        finished.has_unprobed_python = opened.has_unprobed_python;
      }
      if (WIFSIGNALED(last_report_.status)) {
        finished.ended = HowEnded::signaled;
        finished.signal = WTERMSIG(last_report_.status);
        if (stop_reason_ == StopReason::none && asks_to_end(finished.signal) && stop_follows()) {
          finished.ended = HowEnded::interrupted;
        }
      } else {
        finished.exit_code = WEXITSTATUS(last_report_.status);
      }
    } else {
      // Either the supervisor was killed, which ends the engine too, or the engine cannot be
      // killed.
      kill_session(supervisor_);
      finished.ended = HowEnded::signaled;
      finished.signal = SIGKILL;
      finished.err += killed_at_ ? "\n[weir: killed, but it did not end: it may hang in a driver]\n"
                                 : "\n[weir: the process that watches over it was killed]\n";
    }
    if (stop_reason_ == StopReason::timeout) finished.ended = HowEnded::timed_out;
    if (stop_reason_ == StopReason::interrupted) finished.ended = HowEnded::interrupted;
    const bool is_over_limit =
        stop_reason_ == StopReason::output || (stop_reason_ == StopReason::none && over_limit_);
    if (is_over_limit) finished.ended = HowEnded::output_limit;
    return finished;
  }

  const ProcessSpec& spec_;
  const Stop& stop_;
  const Clock& clock_;
  Pause& pause_;
  Capture out_, err_;
  Fd control_, report_fd_, out_fd_, err_fd_;
  pid_t supervisor_ = -1;
  std::shared_ptr<void> output_place_;
  std::size_t reserved_bytes_ = 0;
  double deadline_ = 0, kill_at_ = 0;
  std::optional<double> killed_at_, ended_at_;
  StopReason stop_reason_ = StopReason::none;
  bool stop_seen_ = false, over_limit_ = false, settling_ = false;
  SupervisorReport last_report_;
  std::optional<SharedCounts> calls_;
  std::vector<const char*> except_;
  VariableTexts needed_with_gpu_, needed_with_python_;
};

}  // namespace

Finished run_process(const ProcessSpec& spec, const Stop& stop, const Clock& clock, Pause& pause,
                     const TakeOutputPlace& take_output_place) {
  ProcessRun run(spec, stop, clock, pause);
  Finished finished = run.run(take_output_place);
  if (!run.may_not_watch()) return finished;
  ProcessSpec unwatched = spec;
  unwatched.watched.reset();
  unwatched.needed_with_gpu.clear();
  unwatched.needed_with_python.clear();
  return ProcessRun(unwatched, stop, clock, pause).run(take_output_place);
}

}  // namespace weir::sys
