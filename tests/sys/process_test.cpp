// Tests how processes are started, watched and ended.
#include "gate/sys/process.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <set>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include "gate/base/text.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/files.hpp"

#include "tests/support/eventually.hpp"

namespace weir::sys {
namespace process_test {

const std::string k_engine = WEIR_BINARY_DIR "/tests/fake_engines/fake_engine";

class Folder {
 public:
  Folder() {
    char pattern[] = "/tmp/weir-sys-XXXXXX";
    path_ = mkdtemp(pattern);
  }
  ~Folder() { (void)RealFiles().remove_tree(path_); }
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

ProcessSpec engine(const std::string& mode, std::vector<std::string> more = {}) {
  ProcessSpec spec;
  spec.argv = {k_engine, mode};
  spec.argv.insert(spec.argv.end(), more.begin(), more.end());
  spec.timeout_seconds = 600;  // only in case it hangs
  spec.kill_grace_seconds = 0.2;
  return spec;
}

Finished finished(const ProcessSpec& spec) {
  static RealProcesses processes;
  const Stop never;
  auto result = processes.run(spec, never);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
  return result ? std::move(*result) : Finished{};
}

// A clock that adds time to the system's if a test asks for it.
class LeapingClock final : public Clock {
 public:
  [[nodiscard]] double now() const override { return real_.now(); }
  [[nodiscard]] double steady() const override { return real_.steady() + leapt_; }
  void leap(double seconds) { leapt_ = leapt_ + seconds; }

 private:
  RealClock real_;
  std::atomic<double> leapt_{0};
};

// Returns a callback that calls `then` once, when the engine has printed that it is ready.
std::function<void(std::string_view)> when_ready(std::function<void()> then) {
  return [then = std::move(then), output = std::string()](std::string_view piece) mutable {
    const bool before = output.find("ready\n") != std::string::npos;
    output += piece;
    if (!before && output.find("ready\n") != std::string::npos) then();
  };
}

// Runs an engine that times out as soon as it is ready, however long that takes.
Finished timed_out_when_ready(ProcessSpec spec) {
  LeapingClock clock;
  RealPause pause;
  RealProcesses processes(clock, pause);
  const Stop never;
  spec.heard = when_ready([&] { clock.leap(2 * spec.timeout_seconds); });
  auto result = processes.run(spec, never);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
  return result ? std::move(*result) : Finished{};
}

// Returns the process ids that fake engines wrote into their log.
std::vector<pid_t> logged(const std::string& path) {
  std::ifstream log(path);
  std::vector<pid_t> pids;
  std::string mode, rest;
  pid_t pid = 0;
  while (log >> mode >> pid && std::getline(log, rest)) pids.push_back(pid);
  return pids;
}

// Returns true if the process runs. A zombie that init has not reaped yet does not.
bool is_alive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return false;
  const std::size_t end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() && text[end + 2] != 'Z';
}

TEST(Processes, TellHowAnEngineEnded) {
  struct Case {
    const char* mode;
    HowEnded ended;
    int code, signal;
  };
  const Case cases[] = {
      {"ok", HowEnded::exited, 0, 0},
      {"exit3", HowEnded::exited, 3, 0},
      {"crash", HowEnded::signaled, 0, SIGSEGV},
      {"silent", HowEnded::exited, 0, 0},
      {"garbage", HowEnded::exited, 0, 0},
      {"hang", HowEnded::timed_out, 0, SIGTERM},
      {"ignore_term", HowEnded::timed_out, 0, SIGKILL},
      {"exit_on_term", HowEnded::timed_out, 0, 0},
      {"wrapper", HowEnded::timed_out, 0, SIGTERM},
      {"flood", HowEnded::output_limit, 0, SIGKILL},
      {"flood_stderr", HowEnded::output_limit, 0, SIGKILL},
      {"fork_escape", HowEnded::exited, 0, 0},
      {"stdin", HowEnded::exited, 0, 0},
  };
  for (const Case& c : cases) {
    ProcessSpec spec = engine(c.mode, {"-n", "4"});
    // An engine that ends on request has the time for it.
    if (c.signal != SIGKILL) spec.kill_grace_seconds = 600;
    const Finished end =
        c.ended == HowEnded::timed_out ? timed_out_when_ready(spec) : finished(spec);
    EXPECT_EQ(end.ended, c.ended) << c.mode;
    EXPECT_EQ(end.exit_code, c.code) << c.mode;
    EXPECT_EQ(end.signal, c.signal) << c.mode;
    EXPECT_NE(end.err.find(c.mode), std::string::npos) << c.mode << ": " << end.err.substr(0, 200);
  }
}

TEST(Processes, SayPreciselyWhyAnEngineDidNotStart) {
  const Folder folder;
  std::ofstream(folder.at("text")) << "no program\n";
  std::ofstream(folder.at("script")) << "#!/no/such/interpreter\n";
  chmod(folder.at("script").c_str(), 0755);
  std::ofstream(folder.at("unknown")) << "????";
  chmod(folder.at("unknown").c_str(), 0755);
  const auto start_error = [](const std::string& program, const std::string& in = "") {
    ProcessSpec spec;
    spec.argv = {program};
    spec.folder = in;
    const Finished end = finished(spec);
    EXPECT_EQ(end.ended, HowEnded::not_started) << program;
    return end.start_error;
  };
  EXPECT_EQ(start_error("/no/such/engine"), "/no/such/engine: No such file or directory");
  EXPECT_EQ(start_error(folder.at("text")), folder.at("text") + ": Permission denied");
  EXPECT_EQ(start_error(folder.at("script")),
            folder.at("script") + ": the interpreter or loader that it names is not there");
  EXPECT_EQ(start_error(folder.at("unknown")),
            folder.at("unknown") +
                ": not a program for this machine (a script needs a "
                "first line #!)");
  EXPECT_EQ(start_error(k_engine, "/no/such/folder"),
            "cannot enter the folder /no/such/folder: No such file or directory");
  EXPECT_NE(start_error(std::string("a\0b", 3)).find("zero byte"), std::string::npos);
}

TEST(Processes, LeaveNoDescendantBehindHoweverTheEngineEnds) {
  const Folder folder;
  struct Case {
    const char* mode;
    bool times_out;
    std::size_t processes;  // expected to log themselves
  };
  const Case cases[] = {
      {"fork_escape", false, 2}, {"fork_escape_pipe", false, 2}, {"fork_escape_hang", true, 2},
      {"fork_bomb", false, 41},  {"wrapper", true, 2},           {"ignore_term", true, 1},
  };
  for (const Case& c : cases) {
    ProcessSpec spec = engine(c.mode);
    const std::string log = folder.at(c.mode);
    spec.env = {{"FAKE_ENGINE_LOG", log}};
    const Finished end = c.times_out ? timed_out_when_ready(spec) : finished(spec);
    const auto pids = logged(log);
    EXPECT_EQ(pids.size(), c.processes) << c.mode;
    for (const pid_t pid : pids) EXPECT_FALSE(is_alive(pid)) << c.mode;
    if (std::string_view(c.mode) == "fork_bomb") {
      EXPECT_EQ(end.left_behind, 40);
    }
  }
}

TEST(Processes, LetWhatTheEngineLeftEndByItselfWhereThatIsAllowed) {
  struct Case {
    const char* left;       // descendants of the engine, after its end
    double settle_seconds;  // 600: longer than any machine takes
    bool done;              // the command came to its end
  };
  for (const Case& c : {Case{"sleep 0.3", 600, true}, Case{"sleep 0.3; sleep 600", 0.01, false},
                        Case{"sleep 600", 0, false}}) {
    const Folder folder;
    ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c",
                 fmt::format("( {}; : > {} ) >/dev/null 2>&1 & exit 3", c.left, folder.at("done"))};
    spec.settle_seconds = c.settle_seconds;
    const Finished end = finished(spec);
    EXPECT_EQ(end.exit_code, 3);
    EXPECT_EQ(RealFiles().exists(folder.at("done")), c.done) << c.left;
    EXPECT_EQ(end.left_behind > 0, !c.done) << c.left;
  }
}

// The descendant writes after the engine has ended and the supervisor has reported that. The
// supervisor reports it when it adopts an orphan that was made after the end. The time-out of the
// engine expires between the second and the third text, and then the descendant may end.
TEST(Processes, CountNoTimeAgainstAnEngineForWhatItLeft) {
  const Folder folder;
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c",
               fmt::format("( while kill -0 $$; do sleep 0.01; done\n"
                           "orphan=$(sleep 0.01 >/dev/null & echo $!)\n"
                           "while kill -0 $orphan; do sleep 0.01; done\n"
                           "while [ ! -e {0}/go ]; do echo left; sleep 0.01; done\n"
                           ": > {0}/done ) 2>/dev/null & exit 3",
                           folder.path())};
  spec.timeout_seconds = spec.settle_seconds = 600;
  LeapingClock clock;
  RealPause pause;
  int heard = 0;
  spec.heard = [&](std::string_view) {
    if (++heard == 2) clock.leap(1200);
    if (heard == 3) std::ofstream(folder.at("go")) << "";
  };
  const auto end = RealProcesses(clock, pause).run(spec, Stop());
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->ended, HowEnded::exited);
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(end->left_behind, 0);
  EXPECT_TRUE(RealFiles().exists(folder.at("done")));
}

TEST(Processes, HearAStopWhileWhatTheEngineLeftIsWaitedFor) {
  const Folder folder;
  const std::string log = folder.at("log");
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c",
               fmt::format("sleep 600 >/dev/null 2>&1 & echo engine $$ > {}; exit 3", log)};
  spec.timeout_seconds = spec.settle_seconds = 600;
  Stop stop;
  std::thread interrupter([&] {
    (void)tests::eventually([&] { return !logged(log).empty() && !is_alive(logged(log).front()); });
    stop.request(SIGINT);
  });
  const auto end = RealProcesses().run(spec, stop);
  interrupter.join();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->ended, HowEnded::interrupted);
  // Otherwise it was abandoned, and the engine's end was not reported.
  EXPECT_EQ(end->exit_code, 3);
}

TEST(Processes, GoOnWhenADescendantKeepsTheOutputOpen) {
  const Finished end = finished(engine("fork_escape_pipe", {"-n", "4"}));
  EXPECT_EQ(end.ended, HowEnded::exited);
  EXPECT_NE(end.out.find("\"n_gen\": 4"), std::string::npos);
  EXPECT_EQ(end.left_behind, 1);
}

TEST(Processes, EndEveryEngineWhenAStopIsRequested) {
  for (const char* mode : {"hang", "ignore_term", "fork_escape_hang", "wrapper"}) {
    const Folder folder;
    Stop stop;
    ProcessSpec spec = engine(mode);
    spec.env = {{"FAKE_ENGINE_LOG", folder.at("log")}};
    std::promise<void> ready;
    spec.heard = when_ready([&] { ready.set_value(); });
    std::thread interrupter([&] {
      (void)ready.get_future().wait_for(std::chrono::minutes(2));
      stop.request(SIGINT);
    });
    RealProcesses processes;
    const auto end = processes.run(spec, stop);
    interrupter.join();
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->ended, HowEnded::interrupted) << mode;
    const auto pids = logged(folder.at("log"));
    EXPECT_FALSE(pids.empty()) << mode;
    for (const pid_t pid : pids) EXPECT_FALSE(is_alive(pid)) << mode;
  }
}

// A batch system asks all processes to end, and the engine is quicker.
TEST(Processes, TakeAnEngineThatWasAskedToEndJustBeforeThemForInterrupted) {
  class Moment final : public Pause {
   public:
    explicit Moment(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
    [[nodiscard]] bool wait(double, const Stop& stop) override {
      meanwhile_();
      return !stop.requested();
    }

   private:
    std::function<void()> meanwhile_;
  };
  const RealClock clock;
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c", "kill -TERM $$"};
  Stop stop_soon;
  Moment asks([&] { stop_soon.request(SIGTERM); });
  const auto interrupted = RealProcesses(clock, asks).run(spec, stop_soon);
  ASSERT_TRUE(interrupted);
  EXPECT_EQ(interrupted->ended, HowEnded::interrupted);
  EXPECT_TRUE(stop_soon.requested()) << "it was not waited for";
  const Stop no_stop;
  Moment nothing([] {});
  const auto crashed = RealProcesses(clock, nothing).run(spec, no_stop);
  ASSERT_TRUE(crashed);
  EXPECT_EQ(crashed->ended, HowEnded::signaled);
  EXPECT_EQ(crashed->signal, SIGTERM);
}

TEST(Processes, StartNothingAfterAStop) {
  Stop stop;
  stop.request();
  const Folder folder;
  ProcessSpec spec = engine("ok");
  spec.env = {{"FAKE_ENGINE_LOG", folder.at("log")}};
  const auto end = RealProcesses().run(spec, stop);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->ended, HowEnded::interrupted);
  EXPECT_TRUE(logged(folder.at("log")).empty());
}

// Runs in a process of its own, which is killed by a signal that no handler sees.
TEST(Processes, LeaveNoDescendantBehindWhenWeirIsKilled) {
  for (const char* mode : {"hang", "ignore_term", "fork_escape_hang", "wrapper"}) {
    const Folder folder;
    const pid_t weir = fork();
    if (weir == 0) {
      RealProcesses processes;
      const Stop never;
      ProcessSpec spec = engine(mode);
      spec.env = {{"FAKE_ENGINE_LOG", folder.at("log")}};
      // Starts it from a thread, like counted passes.
      std::thread([&] { (void)processes.run(spec, never); }).join();
      _exit(0);
    }
    const std::size_t expected =
        std::string_view(mode) == "fork_escape_hang" || std::string_view(mode) == "wrapper" ? 2 : 1;
    EXPECT_TRUE(tests::eventually([&] { return logged(folder.at("log")).size() >= expected; }));
    const auto pids = logged(folder.at("log"));
    ASSERT_EQ(pids.size(), expected) << mode;
    for (const pid_t pid : pids) EXPECT_TRUE(is_alive(pid)) << mode;
    kill(weir, SIGKILL);
    waitpid(weir, nullptr, 0);
    EXPECT_TRUE(tests::eventually([&] { return std::ranges::none_of(pids, is_alive); })) << mode;
  }
}

TEST(Processes, KeepTheWholeOutputUpToTheLimit) {
  ProcessSpec spec = engine("large");
  spec.env = {{"FAKE_ENGINE_MODE", "unused"}};
  const Finished end = finished(spec);
  EXPECT_EQ(end.ended, HowEnded::exited);
  EXPECT_EQ(end.out.size(), std::size_t{15} << 20);
  EXPECT_EQ(end.out.find_first_not_of('x'), std::string::npos);
}

// The first engine's output has the place for a large one. The second output is over 1 MiB by the
// size of a pipe. Its engine is gone long before the output may be read to its end.
TEST(Processes, KeepTheEndOfAnOutputThatWaitedForItsPlace) {
  class Hurrying final : public Clock {  // a second later at each look
   public:
    [[nodiscard]] double now() const override { return steady(); }
    [[nodiscard]] double steady() const override { return ++looks; }
    mutable std::atomic<int> looks{0};
  } clock;
  RealPause pause;
  RealProcesses processes(clock, pause);
  const Stop never;
  ProcessSpec spec = engine("large");
  spec.timeout_seconds = 1e9;
  auto first = processes.run(spec, never);
  ASSERT_TRUE(first && first->output_place);
  constexpr std::size_t k_bytes = (std::size_t{1} << 20) + 40'000;
  spec.argv = {"/usr/bin/head", "-c", std::to_string(k_bytes), "/dev/zero"};
  std::optional<Result<Finished>> second;
  std::atomic<bool> over{false};
  std::thread runs([&] {
    second = processes.run(spec, never);
    over = true;
  });
  const int looks = clock.looks;
  EXPECT_TRUE(tests::eventually([&] { return over || clock.looks > looks + 100; }));
  first = Finished{};
  runs.join();
  ASSERT_TRUE(*second);
  EXPECT_EQ((*second)->ended, HowEnded::exited);
  EXPECT_EQ((*second)->out.size(), k_bytes);
}

TEST(Processes, KeepBeginningAndEndOfATalkativeStandardError) {
  const Finished end = finished(engine("noisy", {"-n", "2"}));
  EXPECT_EQ(end.ended, HowEnded::exited);
  EXPECT_TRUE(end.err.starts_with("fake engine: mode noisy\nxxx"));
  EXPECT_LT(end.err.size(), std::size_t{129} << 10);  // 64 KiB + 64 KiB and the line between
  EXPECT_GT(end.err.size(), std::size_t{128} << 10);
  EXPECT_NE(end.err.find("bytes left out"), std::string::npos);
  EXPECT_EQ(end.err_bytes, (std::uint64_t{4} << 20) + 24);
  EXPECT_NE(end.out.find("\"n_gen\": 2"), std::string::npos);
}

// Returns the peak memory of this process in KiB.
long peak_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  long kib = 0;
  while (status >> word) {
    if (word == "VmHWM:") status >> kib;
  }
  return kib;
}

// Eight engines at a time print 1 GB, and 15 MiB are kept. weir itself stays within 64 MiB of its
// start. A sanitizer's own memory would be measured instead of weir's.
TEST(Processes, StayWithin64MiBWhateverIsPrinted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr long k_allowed_kib = 1024 * 1024;
#else
  constexpr long k_allowed_kib = 64 * 1024;
#endif
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  const pid_t weir = fork();
  if (weir == 0) {
    RealProcesses processes;
    const Stop never;
    const long before = peak_kib();
    std::vector<std::thread> threads;
    const char* modes[] = {"flood", "large", "flood_stderr", "large",
                           "large", "flood", "large",        "noisy"};
    std::atomic<int> right{0};
    for (const char* mode : modes) {
      threads.emplace_back([&, mode] {
        const auto end = processes.run(engine(mode), never);
        const bool limit = std::string_view(mode).starts_with("flood");
        if (end && end->ended == (limit ? HowEnded::output_limit : HowEnded::exited)) ++right;
      });
    }
    for (auto& thread : threads) thread.join();
    const long grown = right == 8 ? peak_kib() - before : -1;
    if (write(report[1], &grown, sizeof grown) < 0) _exit(1);
    _exit(0);
  }
  close(report[1]);
  long grown = -2;
  EXPECT_EQ(read(report[0], &grown, sizeof grown), static_cast<ssize_t>(sizeof grown));
  waitpid(weir, nullptr, 0);
  close(report[0]);
  EXPECT_GE(grown, 0) << "an engine did not end as it should";
  EXPECT_LT(grown, k_allowed_kib);
}

// srun and ssh open ports of connections before the server that they start binds its own.
TEST(FreePort, LiesBelowThePortsOfConnections) {
  const auto port = free_port();
  ASSERT_TRUE(port);
  EXPECT_LT(*port, 32768);
  EXPECT_TRUE(is_free(*port));
}

TEST(Processes, MeasureTheEngineAndNotThemselves) {
  const Finished big = finished(engine("allocate", {"-n", "1"}));
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // which make weir the bigger one
  ASSERT_TRUE(big.peak_rss_bytes.has_value());
  EXPECT_GE(*big.peak_rss_bytes, std::int64_t{100} << 20);  // it touches this much memory
  EXPECT_LT(*big.peak_rss_bytes, std::int64_t{140} << 20);
#endif
  EXPECT_GT(big.cpu_seconds.value_or(0), 0);

  // If weir is bigger than its engine, it must not report its own size as the engine's.
  std::vector<char> ballast(64 << 20, 'b');
  const Finished small = finished(engine("ok", {"-n", "1"}));
  EXPECT_FALSE(small.peak_rss_bytes.has_value()) << *small.peak_rss_bytes;
  ASSERT_TRUE(small.peak_rss_bound.has_value());
  EXPECT_GE(*small.peak_rss_bound, std::int64_t{64} << 20);
  EXPECT_EQ(ballast[12345], 'b');

  EXPECT_GE(finished(engine("slow", {"-n", "1"})).wall_seconds, 0.3);  // it sleeps this long
}

// The subshell ends at once, and its child comes to the supervisor. The pipe ends with that child.
TEST(Processes, MeasureWhatTheEngineStartedAndDidNotWaitFor) {
  const auto orphan = [](const std::string& mode) {
    ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c", fmt::format("( {} {} -n 1 & ) | cat", k_engine, mode)};
    return finished(spec);
  };
  const Finished small = orphan("ok"), big = orphan("allocate");
  ASSERT_TRUE(small.usage && big.usage);
  constexpr std::int64_t k_large_pages = 40;  // 2 MiB each, where the system gives such
  EXPECT_GT(big.usage->minor_faults, small.usage->minor_faults + k_large_pages);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ASSERT_TRUE(big.peak_rss_bytes.has_value());
  EXPECT_GE(*big.peak_rss_bytes, std::int64_t{100} << 20);
#endif
}

TEST(Processes, GiveTheEngineAPlainSurrounding) {
  EXPECT_EQ(finished(engine("descriptors")).out, "") << "a descriptor of weir's was inherited";
  EXPECT_EQ(finished(engine("signals")).out, "") << "signals are not as the system gives them";
  const Folder folder;
  ProcessSpec spec = engine("where");
  spec.folder = folder.path();
  EXPECT_EQ(finished(spec).out, folder.path() + "\n");

  setenv("WEIR_TEST_REPLACED", "old", 1);
  setenv("WEIR_TEST_KEPT", "kept", 1);
  spec = engine("environment");
  spec.env = {{"WEIR_TEST_REPLACED", "new"}, {"WEIR_TEST_ADDED", "a=b c"}};
  const auto lines = text::lines(finished(spec).out);
  const std::multiset<std::string> environment(lines.begin(), lines.end());
  EXPECT_EQ(environment.count("WEIR_TEST_REPLACED=new"), 1U);
  EXPECT_EQ(environment.count("WEIR_TEST_REPLACED=old"), 0U);
  EXPECT_EQ(environment.count("WEIR_TEST_KEPT=kept"), 1U);
  EXPECT_EQ(environment.count("WEIR_TEST_ADDED=a=b c"), 1U);
}

#ifdef __linux__
// An engine of the same user may change weir's, for those that start after it.
TEST(Processes, GiveTheEngineTheProcessorsAndThePolicyThatWeirBeganWith) {
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c",
               "grep Cpus_allowed: /proc/self/status; cut -d' ' -f41 /proc/self/stat"};
  const std::string before = finished(spec).out;
  std::thread changed([&] {
    cpu_set_t all, first;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&first);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all)) ++cpu;
    CPU_SET(cpu, &first);
    ASSERT_EQ(sched_setaffinity(0, sizeof first, &first), 0);
    const sched_param parameters{};
    ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &parameters), 0);
    EXPECT_EQ(finished(spec).out, before);
  });
  changed.join();
}

TEST(Processes, GiveWeirBackWhatAnotherProcessOfTheUserChanged) {
  const pid_t self = getpid();
  cpu_set_t all, first;
  ASSERT_EQ(sched_getaffinity(self, sizeof all, &all), 0);
  CPU_ZERO(&first);
  for (int cpu = 0; CPU_COUNT(&first) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &first);
  }
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit fewer{files.rlim_cur / 2, files.rlim_max};
  ASSERT_EQ(sched_setaffinity(self, sizeof first, &first), 0);
  ASSERT_EQ(prlimit(self, RLIMIT_NOFILE, &fewer, nullptr), 0);
  constexpr int k_idle = 3 << 13;  // IOPRIO_CLASS_IDLE
  const long io_priority = syscall(SYS_ioprio_get, 1, self);
  ASSERT_EQ(syscall(SYS_ioprio_set, 1, self, k_idle), 0);
  const auto wishes = [&] {  // struct sched_attr: the time slice, and bounds on the clock
    std::array<std::uint64_t, 7> attributes{};
    EXPECT_EQ(syscall(SYS_sched_getattr, self, attributes.data(), sizeof attributes, 0), 0);
    return attributes;
  };
  const auto wishes_before = wishes();
  auto shorter_slice = wishes_before;
  shorter_slice[3] = 200'000;
  ASSERT_EQ(syscall(SYS_sched_setattr, self, shorter_slice.data(), 0), 0);
  const int timer_slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  ASSERT_EQ(prctl(PR_SET_TIMERSLACK, 100'000'000, 0, 0, 0), 0);
  const auto session_priority = [] {
    std::ifstream file("/proc/self/autogroup");  // "/autogroup-7 nice 0"
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string session_before = session_priority();
  std::ofstream("/proc/self/autogroup") << 5;
  std::thread([] { EXPECT_TRUE(restore_own_settings()); }).join();
  EXPECT_EQ(session_priority(), session_before);
  EXPECT_EQ(syscall(SYS_ioprio_get, 1, self), io_priority);
  EXPECT_EQ(wishes(), wishes_before);
  // Without the right to change the timers of others, nobody can have changed weir's.
  if (std::ifstream("/proc/1/timerslack_ns").get() != EOF) {
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), timer_slack);
  }
  prctl(PR_SET_TIMERSLACK, timer_slack, 0, 0, 0);
  cpu_set_t cpus_now;
  rlimit files_now{};
  ASSERT_EQ(sched_getaffinity(self, sizeof cpus_now, &cpus_now), 0);
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files_now), 0);
  EXPECT_TRUE(CPU_EQUAL(&cpus_now, &all));
  EXPECT_EQ(files_now.rlim_cur, files.rlim_cur);
}
#endif

TEST(Processes, KeepVariablesFromAnEngineThatShallNotSeeThem) {
  setenv("WEIR_TEST_GONE", "x", 1);
  setenv("WEIR_TEST_SET_AGAIN", "old", 1);
  ProcessSpec spec = engine("environment");
  spec.unset = {"WEIR_TEST_GONE", "WEIR_TEST_SET_AGAIN", "WEIR_TEST_NEVER_SET"};
  spec.env = {{"WEIR_TEST_SET_AGAIN", "new"}};
  const std::string out = finished(spec).out;
  EXPECT_EQ(out.find("WEIR_TEST_GONE"), std::string::npos);
  EXPECT_EQ(out.find("WEIR_TEST_NEVER_SET"), std::string::npos);
  EXPECT_NE(out.find("WEIR_TEST_SET_AGAIN=new\n"), std::string::npos);
}

// Sets environment variables while the object lives.
class Surrounding {
 public:
  explicit Surrounding(EnvironmentList set) : set_(std::move(set)) {
    for (const auto& [name, value] : set_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Surrounding() {
    for (const auto& [name, value] : set_) unsetenv(name.c_str());
  }

 private:
  EnvironmentList set_;
};

TEST(Processes, InheritNoSecretAndNoFileThatGivesTheRunnerOrders) {
  const auto names = text::split(
      "GITHUB_TOKEN GH_TOKEN WEIR_TOKEN WEIR_DB GITHUB_ENV GITHUB_OUTPUT GITHUB_PATH GITHUB_STATE "
      "GITHUB_STEP_SUMMARY ACTIONS_RUNTIME_URL ACTIONS_ID_TOKEN_REQUEST_URL HF_TOKEN npm_authToken "
      "AWS_SECRET_ACCESS_KEY PGPASSWORD MY_PASSWORD_FILE SSH_KEY GIT_CONFIG_PARAMETERS "
      // GitLab, Jenkins, Buildkite, CircleCI, Azure
      "CI_JOB_JWT CI_JOB_JWT_V2 DOCKER_AUTH_CONFIG CI_JOB_TOKEN KUBECONFIG DEPLOY_PSW BASH_ENV "
      "SSH_PASSPHRASE SSHPASS BUILDKITE_AGENT_ACCESS_TOKEN BUILDKITE_AGENT_JOB_API_SOCKET "
      "BUILDKITE_ENV_FILE CIRCLE_OIDC_TOKEN_V2 SYSTEM_ACCESSTOKEN "
      "ENDPOINT_AUTH_SYSTEMVSSCONNECTION "
      "VSS_NUGET_ACCESSTOKEN AZURE_DEVOPS_EXT_PAT "
      // package managers
      "NODE_AUTH_TOKEN npm_config__auth NPM_CONFIG__AUTH TWINE_PASSWORD UV_PUBLISH_TOKEN "
      "CARGO_REGISTRIES_MINE_TOKEN CARGO_REGISTRY_CREDENTIAL_PROVIDER "
      // clouds
      "AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN AWS_CONTAINER_CREDENTIALS_FULL_URI "
      "GOOGLE_APPLICATION_CREDENTIALS GOOGLE_GHA_CREDS_PATH AZURE_CLIENT_SECRET IDENTITY_HEADER "
      "AZURE_STORAGE_CONNECTION_STRING SQLAZURECONNSTR_MINE AZURE_STORAGE_SAS_TOKEN "
      "HUGGING_FACE_HUB_TOKEN OPENAI_API_KEYS WANDB_APIKEY SENTRY_DSN SLACK_WEBHOOK_URL "
      // agents and the like
      "SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO GIT_ASKPASS SSH_ASKPASS NETRC MYSQL_PWD DB_PASS "
      "DB_PASSWD PGPASSFILE",
      ' ');
  EnvironmentList all{
      {"CI_REPOSITORY_URL", "https://gitlab-ci-token:planted@gitlab.com/o/r.git"},
      {"PIP_EXTRA_INDEX_URL", "https://pypi.org/simple https://planted@pypi.example/simple"},
      {"MINE", "https://github.com/o/r/@planted-not"}};
  for (const std::string& name : names) all.emplace_back(name, "planted");
  const Surrounding around(all);
  const std::string out = finished(engine("environment")).out;
  EXPECT_EQ(out.find("planted\n"), std::string::npos) << out;
  EXPECT_EQ(out.find("planted@"), std::string::npos) << out;
  EXPECT_NE(out.find("PATH="), std::string::npos) << "all else is inherited";
  EXPECT_NE(out.find("MINE=https://github.com"), std::string::npos) << "an address without a user";

  ProcessSpec spec = engine("environment");
  spec.passed_variables = {"HF_TOKEN"};
  spec.env = {{"GITHUB_TOKEN", "another"}};
  const std::string given = finished(spec).out;
  EXPECT_NE(given.find("HF_TOKEN=planted\n"), std::string::npos) << "given back by name";
  EXPECT_NE(given.find("GITHUB_TOKEN=another\n"), std::string::npos) << "set by name";
  EXPECT_EQ(given.find("WEIR_TOKEN"), std::string::npos);
}

TEST(Processes, InheritNoVariableThatIsNamedLikeASecret) {
  for (const std::string& name : text::split(
           "PASS DB_PASS DB_PASS_FILE DB_PWD DB_PW REDIS_PASSCODE MY_PASSFILE LOGIN_OTP "
           "WALLET_MNEMONIC "
           "PRIVATEKEY SIGNINGKEY SSHKEY signingKey SIGNING_KEYS GPGKEYS TLS_KEYFILE JAVA_KEYSTORE "
           "TLS_PEM CERT_PFX CERT_P12 BLOB_SAS SAS SOME_CRED AUTH AUTH_HEADER HTTP_AUTH "
           "REGISTRY_AUTH_FILE AUTHORIZATION HTTP_AUTHORIZATION GOOGLE_OAUTH_ID BEARER COOKIE "
           "SESSION_COOKIE ConnectionStrings__Default DSN SENTRY_DSN DOCKER_CONFIG AWS_CONFIG_FILE "
           "AWS_SHARED_CREDENTIALS_FILE KUBECONFIG NETRC WGETRC CURL_HOME HELM_REGISTRY_CONFIG "
           "AZURE_CONFIG_DIR CLOUDSDK_CONFIG BOTO_CONFIG OCI_CLI_CONFIG_FILE "
           "DATABRICKS_CONFIG_FILE "
           "KAGGLE_CONFIG_DIR RCLONE_CONFIG RCLONE_CONFIG_X_PASS TF_CLI_CONFIG_FILE GH_CONFIG_DIR "
           "npm_config_userconfig GNUPGHOME PGSERVICEFILE MYSQL_TEST_LOGIN_FILE",
           ' ')) {
    EXPECT_EQ(inherited({{name, "x"}}, {}), EnvironmentList()) << name;
  }
}

TEST(Processes, InheritNoVariableThatHoldsASecret) {
  for (const std::string value : {"https://me:secret@host",
                                  "https://secret@host/x",
                                  "me:secret@host",
                                  "x my_me:se=cr@host:5432/db",
                                  "Server=h;User=u;Password=secret;",
                                  "host=h passwd=secret",
                                  "pwd=secret",
                                  "-Dpassphrase=secret",
                                  "https://h/c?sv=1&sig=secret%3D",
                                  "DefaultEndpointsProtocol=https;AccountKey=c2VjcmV0==;",
                                  "Endpoint=sb://h/;SharedAccessKey=c2V=",
                                  "api_key=secret",
                                  "--api-key=secret",
                                  "--token=secret",
                                  "https://h/?access_token=secret",
                                  "client_secret: secret",
                                  R"({"password": "secret"})",
                                  R"({"apiKey":"secret"})",
                                  "Authorization: Bearer secret",
                                  "authorization=secret",
                                  "Cookie: a=b",
                                  "ghp_0123456789abcdefghij",
                                  "x=hf_abcdefghijklmnopqrst",
                                  "sk-proj-0123456789abcdef",
                                  "eyJhbGciOiJIUzI1NiJ9.e30.x",
                                  "-----BEGIN RSA PRIVATE KEY-----\nMII"}) {
    EXPECT_EQ(inherited({{"MINE", value}}, {}), EnvironmentList()) << value;
    EXPECT_EQ(inherited({{"MINE", value}}, {"MINE"}).size(), 1U) << value;
  }
}

TEST(Processes, InheritWhatEnginesUse) {
  EnvironmentList own{{"PATH", "/usr/local/bin:/opt/python@3.11/bin:/home/u/.token:/x/pass:/bin"},
                      {"LLAMA_ARGS", "--max-tokens=128 --n-predict=8 --keys=3"},
                      {"IMAGE", "ghcr.io/o/r:v1@sha256:0123"},
                      {"REMOTE", "git@github.com:o/r.git"},
                      {"AT", "me@example.org"},
                      {"MINE", "https://github.com/o/r/@v1?x=y"},
                      {"LS_COLORS", "rs=0:di=01;34:*.tar=01;31"},
                      {"EMPTY", "password="},
                      {"SHORT", "hf_model sk-learn /models/hf_cache"}};
  for (const std::string& name : text::split(
           "HOME PWD OLDPWD USER LOGNAME SHELL LANG LC_ALL TERM DISPLAY XAUTHORITY XDG_RUNTIME_DIR "
           "XDG_SESSION_ID TMPDIR LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH VIRTUAL_ENV CONDA_PREFIX "
           "NODE_PATH "
           "HF_HOME HF_HUB_CACHE HF_HUB_OFFLINE HF_ENDPOINT TRANSFORMERS_CACHE "
           "CUDA_VISIBLE_DEVICES "
           "CUDA_DEVICE_ORDER CUDA_CACHE_PATH NVIDIA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES "
           "ROCR_VISIBLE_DEVICES HSA_OVERRIDE_GFX_VERSION GGML_VK_VISIBLE_DEVICES "
           "GGML_CUDA_DISABLE_GRAPHS "
           "LLAMA_ARG_N_GPU_LAYERS LLAMA_CACHE VK_DRIVER_FILES VK_ICD_FILENAMES VK_LAYER_PATH "
           "OMP_NUM_THREADS OMP_PROC_BIND OMP_PLACES KMP_AFFINITY MKL_NUM_THREADS I_MPI_PIN "
           "NCCL_DEBUG "
           "NCCL_SOCKET_IFNAME VLLM_ATTENTION_BACKEND VLLM_CONFIG_ROOT LMCACHE_CONFIG_FILE "
           "OLLAMA_HOST "
           "OLLAMA_MODELS OLLAMA_KEEP_ALIVE TRITON_CACHE_DIR TORCHINDUCTOR_CACHE_DIR SLURM_JOB_ID "
           "DOCKER_HOST GIT_AUTHOR_NAME GIT_CONFIG_GLOBAL PIP_CONFIG_FILE PASSES BYPASS COMPASS "
           "KEYBOARD "
           "KEYMAP AUTHOR AUTHORS SEED PATTERN PATCH DISPATCH CI GITHUB_ACTIONS GITHUB_SHA "
           "GITHUB_WORKSPACE",
           ' ')) {
    own.emplace_back(name, "x");
  }
  EXPECT_EQ(inherited(own, {}), own);
}

TEST(Processes, InheritOfGitsSettingsOnlyWhichFoldersAreSafe) {
  const EnvironmentList own{{"GIT_CONFIG_COUNT", "3"},
                            {"GIT_CONFIG_KEY_0", "http.https://github.com/.extraheader"},
                            {"GIT_CONFIG_VALUE_0", "AUTHORIZATION: basic c2VjcmV0"},
                            {"GIT_CONFIG_KEY_1", "safe.directory"},
                            {"GIT_CONFIG_VALUE_1", "*"},
                            {"GIT_CONFIG_KEY_2", "url.https://me:secret@host/.insteadOf"},
                            {"GIT_CONFIG_VALUE_2", "https://host/"},
                            {"GIT_CONFIG_GLOBAL", "/dev/null"}};
  EXPECT_EQ(inherited(own, {}), (EnvironmentList{{"GIT_CONFIG_GLOBAL", "/dev/null"},
                                                 {"GIT_CONFIG_KEY_0", "safe.directory"},
                                                 {"GIT_CONFIG_VALUE_0", "*"},
                                                 {"GIT_CONFIG_COUNT", "1"}}));
  EXPECT_EQ(inherited(own, {"GIT_CONFIG_*"}), own) << "git itself gets all";
}

#ifdef __linux__
// Root may read everything, so the reader is another user.
TEST(Processes, ReadNoVariableOfWeirsFromTheSystem) {
  const pid_t reader = fork();
  if (reader == 0) {
    constexpr uid_t k_nobody = 65534;
    if (geteuid() == 0 && (setgid(k_nobody) != 0 || setuid(k_nobody) != 0)) _exit(2);
    prctl(PR_SET_DUMPABLE, 1);  // as a program of that user begins
    RealProcesses processes;
    ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c",
                 "supervisor=$PPID\n"
                 "weir=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$supervisor/status)\n"
                 "for id in $weir $supervisor; do cat /proc/$id/environ; ls /proc/$id/fd; done\n"
                 "cat /proc/self/environ >/dev/null && echo own"};
    const auto end = processes.run(spec, Stop());
    _exit(end && end->out == "own\n" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(reader, &status, 0), reader);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

TEST(Processes, WithholdWhatTheDocumentationLists) {
  const auto page =
      RealFiles().read(WEIR_SOURCE_DIR "/docs/reference/configuration.md", 1 << 20).value();
  const std::size_t begin = page.find("## Withheld variables");
  ASSERT_NE(begin, std::string::npos);
  std::set<std::string> listed;
  for (const std::string& line :
       text::lines(page.substr(begin, page.find("\n## ", begin) - begin))) {
    if (!line.starts_with("| `")) continue;
    const auto parts = text::split(line.substr(0, line.find(" | ", 2)), '`');
    for (std::size_t i = 1; i < parts.size(); i += 2) listed.insert(parts[i]);
  }
  EXPECT_EQ(listed, std::set<std::string>(k_withheld.begin(), k_withheld.end()));
}

TEST(Processes, KeepTheEndsOfALongOutputWhereThatIsEnough) {
  ProcessSpec spec = engine("large");
  spec.whole_output = false;
  spec.keep_head = 1000;
  spec.keep_tail = 2000;
  const Finished end = finished(spec);
  EXPECT_EQ(end.ended, HowEnded::exited);
  EXPECT_GE(end.out_bytes, 15U << 20);
  EXPECT_LT(end.out.size(), 3200U) << "both ends and a line between them";
}

TEST(Processes, RunManySideBySideWithoutMixingThemUp) {
  RealProcesses processes;
  const Stop never;
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 1; i <= 24; ++i) {
    threads.emplace_back([&, i] {
      const auto end = processes.run(
          engine(i % 3 == 0 ? "fork_escape" : "ok", {"-n", std::to_string(i)}), never);
      const std::string wanted = "\"n_gen\": " + std::to_string(i) + ",";
      if (end && end->ended == HowEnded::exited && end->out.find(wanted) != std::string::npos &&
          end->left_behind == (i % 3 == 0 ? 1 : 0)) {
        ++right;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 24);
}

}  // namespace process_test
}  // namespace weir::sys
