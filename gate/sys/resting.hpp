// Tells when a server has read everything that was sent to it and its threads sleep, from /proc,
// and stops a server that shall not run meanwhile. Linux only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::sys {

// One thread, as /proc/PID/task/TID/status tells of it.
struct ThreadState {
  bool sleeps = false;         // waits for something that may never come ("S")
  std::uint64_t switches = 0;  // how often it left a processor: it grows with each time that it ran
  bool is_stopped = false;     // by a signal or a tracer ("T", "t")
  friend bool operator==(const ThreadState&, const ThreadState&) = default;
};
[[nodiscard]] std::optional<ThreadState> parse_thread_status(std::string_view text);

// Connections of this machine's own clients to one of its ports, from /proc/net/tcp and tcp6.
struct PortTraffic {
  std::int64_t connections = 0;  // at the server's end
  std::int64_t unread = 0;       // connections not accepted yet, or with bytes that nobody has read
  std::int64_t unsent = 0;       // at the clients' end, with bytes that have not arrived
  friend bool operator==(const PortTraffic&, const PortTraffic&) = default;
};
// Adds those of one such file.
void add_traffic(std::string_view text, int port, PortTraffic& traffic);

// The threads of some processes and of all others in their process groups.
class Resting {
 public:
  // `proc`: where /proc is.
  explicit Resting(std::span<const std::int64_t> processes, std::string proc = "/proc");

  // Do all of them sleep, and has none run since the call before? (Then there was a moment at which
  // all slept together.) Or has each been seen asleep in every one of k_rounds rounds since
  // begin_again()? Threads that look at a clock each second hardly ever sleep all together on a
  // busy machine; what one hands to another that slept already is seen in the next round.
  [[nodiscard]] bool all_sleep();
  void begin_again();
  [[nodiscard]] std::optional<PortTraffic> traffic(int port) const;
  // One that did not sleep at the last call, for people: "llama-server (thread 17)"; or "".
  [[nodiscard]] const std::string& awake() const { return awake_; }

 private:
  using Threads = std::map<std::pair<std::int64_t, std::int64_t>, ThreadState>;
  [[nodiscard]] std::vector<std::int64_t> members() const;

  std::string proc_;
  std::vector<std::int64_t> groups_, processes_;
  static constexpr int k_rounds = 4;
  Threads previous_threads_;
  std::set<Threads::key_type> asleep_;  // seen so in this round
  int rounds_ = 0;                      // completed rounds
  std::string awake_;
};

// Memory that a process's descendants have in use, together. Nothing where that cannot be seen.
[[nodiscard]] std::optional<std::int64_t> resident_bytes_below(std::int64_t process,
                                                               const std::string& proc = "/proc");

// All that a process started, and that this started in turn.
[[nodiscard]] std::vector<std::int64_t> list_descendants(std::int64_t process,
                                                         const std::string& proc = "/proc");

// Stops all descendants of a process, until none of them runs (SIGSTOP), and returns those that
// ran. Those that weir may not signal go on. Does nothing where they cannot be seen.
[[nodiscard]] std::vector<std::int64_t> stop_descendants(std::int64_t process);
// Lets stopped processes go on (SIGCONT).
void continue_processes(std::span<const std::int64_t> processes);
// True if the process has descendants and all of them are stopped, or wait in the kernel.
[[nodiscard]] bool are_descendants_stopped(std::int64_t process);

// The descendants of a process from a moment on at which they were stopped. None of them does
// anything then: one that ran was woken, and its settings are changed by somebody else alone.
class StoppedTree {
 public:
  // Waits for a moment until all threads are stopped. Threads that wait in the kernel, and
  // processes that weir may not signal, are left out.
  explicit StoppedTree(std::int64_t process);

  enum class Change {
    none,
    ran,       // a thread has run, or one is there that was not
    settings,  // processors, priorities, policy, timers, limits or cgroup are others
  };
  // Tells what has changed since then.
  [[nodiscard]] Change find_change() const;

 private:
  struct Thread {
    ThreadState state;
    std::string settings;
    friend bool operator==(const Thread&, const Thread&) = default;
  };
  using Threads = std::map<std::pair<std::int64_t, std::int64_t>, Thread>;
  [[nodiscard]] Threads read_threads() const;

  std::int64_t process_;
  Threads threads_;
};

// True if this system provides all that.
[[nodiscard]] bool can_see_rest();

// A 4096-byte page at the beginning of a file that another process has mapped, to be changed word
// by word.
class SharedPage {
 public:
  SharedPage() = default;
  // Nothing where it is no such file, or cannot be had.
  [[nodiscard]] static std::optional<SharedPage> open(const std::string& path);
  SharedPage(SharedPage&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  SharedPage& operator=(SharedPage&& other) noexcept {
    std::swap(page_, other.page_);
    return *this;
  }
  ~SharedPage();

  [[nodiscard]] std::string_view bytes() const;
  // At a multiple of 4 bytes below 4096.
  [[nodiscard]] std::uint32_t get(std::size_t at) const;
  void set(std::size_t at, std::uint32_t value);
  // The same, and wakes whoever waits for the word (futex).
  void set_and_wake(std::size_t at, std::uint32_t value);

 private:
  explicit SharedPage(void* page) : page_(page) {}
  void* page_ = nullptr;
};

}  // namespace weir::sys
