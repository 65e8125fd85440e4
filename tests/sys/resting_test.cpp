// Tests how a process is seen to be at rest.
#include "gate/sys/resting.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "gate/sys/files.hpp"
#include "gate/sys/perf_events.hpp"
#include "gate/sys/perf_watch.hpp"
#include "gate/sys/process.hpp"

namespace weir::sys {
namespace resting_test {

std::string status(const std::string& state, int waits, int preemptions) {
  return "Name:\tllama-server\nState:\t" + state + "\nThreads:\t9\nvoluntary_ctxt_switches:\t" +
         std::to_string(waits) + "\nnonvoluntary_ctxt_switches:\t" + std::to_string(preemptions) +
         "\n";
}

TEST(ThreadStatus, SaysWhetherAThreadSleepsAndHowOftenItRan) {
  EXPECT_EQ(parse_thread_status(status("S (sleeping)", 7, 3)), (ThreadState{true, 10}));
  for (const char* awake : {"R (running)", "D (disk sleep)", "Z (zombie)"}) {
    EXPECT_EQ(parse_thread_status(status(awake, 7, 3)), (ThreadState{false, 10})) << awake;
  }
  for (const char* stopped : {"T (stopped)", "t (tracing stop)"}) {
    EXPECT_EQ(parse_thread_status(status(stopped, 7, 3)), (ThreadState{false, 10, true}))
        << stopped;
  }
  for (const std::string none : {"", "State:\tS (sleeping)\n", "State:\n:\n\n",
                                 "State:\tS\nvoluntary_ctxt_switches:\t-1\n"
                                 "nonvoluntary_ctxt_switches:\t2\n"}) {
    EXPECT_FALSE(parse_thread_status(none)) << none;
  }
}

// Lines as Linux 6.1 printed them. 8080 is 1F90; state 01 is an established connection.
TEST(Traffic, IsReadFromTheTableOfSockets) {
  const std::string head =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n";
  const auto line = [](const char* local, const char* remote, const char* state, const char* queues,
                       const char* inode) {
    return std::string("   0: ") + local + " " + remote + " " + state + " " + queues +
           " 00:00000000 00000000     0        0 " + inode + " 1 0000000000000000 20 4 30 10 -1\n";
  };
  const char *server = "0100007F:1F90", *client = "0100007F:D2A6", *none = "00000000:00000000";
  const struct {
    const char* what;
    std::string text;
    PortTraffic want;
  } cases[] = {
      {"nothing", head, {0, 0, 0}},
      {"one that listens", line(server, "00000000:0000", "0A", none, "7"), {0, 0, 0}},
      {"read", line(server, client, "01", none, "7"), {1, 0, 0}},
      {"with bytes to read", line(server, client, "01", "00000000:000000C8", "7"), {1, 1, 0}},
      {"not accepted", line(server, client, "01", none, "0"), {1, 1, 0}},
      {"sent", line(client, server, "01", none, "8"), {0, 0, 0}},
      {"on its way", line(client, server, "01", "000000C8:00000000", "8"), {0, 0, 1}},
      {"ended", line(server, client, "08", "00000000:000000C8", "7"), {0, 0, 0}},
      {"of another port", line("0100007F:1F91", client, "01", none, "7"), {0, 0, 0}},
      {"by IPv6",
       line("00000000000000000000000001000000:1F90", "00000000000000000000000001000000:D2A6", "01",
            none, "7"),
       {1, 0, 0}},
      {"no table", "a b\n0: x y 01 z:z w w w w w\n\n", {0, 0, 0}},
  };
  for (const auto& c : cases) {
    PortTraffic traffic;
    add_traffic(c.text, 8080, traffic);
    EXPECT_EQ(traffic, c.want) << c.what;
  }
}

// Fake of /proc with two processes in one group and one in another.
class Proc {
 public:
  Proc() {
    process(10, 10);
    process(11, 10);
    process(12, 12);
  }
  void thread(int process, int thread, const std::string& text) {
    const auto folder = at_ / std::to_string(process) / "task" / std::to_string(thread);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "status") << text;
  }
  [[nodiscard]] std::string path() const { return at_.string(); }

 private:
  void process(int number, int group) {
    thread(number, number, status("S (sleeping)", 1, 1));
    std::ofstream(at_ / std::to_string(number) / "stat")
        << number << " (a) b) S 1 " << group << " 1 0 -1\n";
  }
  RealFiles files_;
  const ScratchFolder scratch_ = *ScratchFolder::make_temporary(files_, "weir-proc-");
  const std::filesystem::path at_{scratch_.path()};
};

TEST(Rest, IsSeenWhenNoThreadOfTheGroupRanBetweenTwoLooks) {
  Proc proc;
  const std::int64_t process = 11;
  Resting resting(std::span(&process, 1), proc.path());
  EXPECT_FALSE(resting.all_sleep()) << "nothing is known of before";
  EXPECT_TRUE(resting.all_sleep());
  EXPECT_EQ(resting.awake(), "");
  proc.thread(10, 17, status("S (sleeping)", 1, 1));
  EXPECT_FALSE(resting.all_sleep()) << "a new thread";
  EXPECT_TRUE(resting.all_sleep());
  resting.begin_again();
  proc.thread(10, 17, status("S (sleeping)", 2, 1));
  EXPECT_FALSE(resting.all_sleep()) << "it ran, and sleeps again";
  EXPECT_EQ(resting.awake(), "thread 17 of process 10");
  EXPECT_TRUE(resting.all_sleep());
  proc.thread(12, 12, status("R (running)", 9, 9));
  EXPECT_TRUE(resting.all_sleep()) << "of another group";
  resting.begin_again();
  proc.thread(11, 11, status("R (running)", 1, 1));
  EXPECT_FALSE(resting.all_sleep());
  EXPECT_FALSE(resting.all_sleep());
}

// Two threads look at a clock in turns: never both asleep, but each seen asleep in each round.
TEST(Rest, IsAlsoThatEachSleepsWheneverItIsItsTurn) {
  Proc proc;
  const std::int64_t process = 11;
  Resting resting(std::span(&process, 1), proc.path());
  int looks = 0;
  for (bool rests = false; !rests && looks < 100; ++looks) {
    const bool even = looks % 2 == 0;
    proc.thread(10, 10, status(even ? "R (running)" : "S (sleeping)", looks, 0));
    proc.thread(11, 11, status(even ? "S (sleeping)" : "R (running)", looks, 0));
    rests = resting.all_sleep();
  }
  EXPECT_EQ(looks, 8) << "4 rounds of 2 looks";
}

TEST(Rest, OfNobodyIsNone) {
  Proc proc;
  Resting resting({}, proc.path());
  EXPECT_FALSE(resting.all_sleep());
  EXPECT_FALSE(resting.all_sleep());
  EXPECT_FALSE(resting.traffic(80)) << "no table of sockets there";
}

// One of the engine's processes has left its group and its session.
TEST(Descendants, AreStoppedAndGoOnWhereverTheyWent) {
  if (!can_see_rest()) GTEST_SKIP() << "no /proc";
  Stop stop;
  std::atomic<std::int64_t> supervisor{0};
  std::promise<void> is_up;
  std::string heard;
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c", "setsid sh -c 'echo up; sleep 1000' & wait"};
  spec.started = [&](std::int64_t process) { supervisor = process; };
  spec.heard = [&](std::string_view piece) {
    heard += piece;
    if (heard == "up\n") is_up.set_value();
  };
  std::thread runner([&] { (void)RealProcesses().run(spec, stop); });
  is_up.get_future().wait();
  EXPECT_FALSE(are_descendants_stopped(supervisor));
  const std::vector<std::int64_t> stopped = stop_descendants(supervisor);
  EXPECT_GE(stopped.size(), 2U);
  EXPECT_TRUE(are_descendants_stopped(supervisor));
  continue_processes(stopped);
  while (are_descendants_stopped(supervisor)) std::this_thread::yield();
  EXPECT_FALSE(stop_descendants(supervisor).empty());
  stop.request();
  runner.join();  // stopped processes are ended as well
}

// A stopped process counts nothing of its own.
TEST(PerfWatch, SeesEventsOfStoppedProcessesAndWhetherTheyCountOthers) {
  if (counter_problem(page_faults_event()) || !can_see_rest()) GTEST_SKIP() << "no perf events";
  const struct {
    const char* what;
    std::string mode, watched;
    bool has_events, has_counted;
  } cases[] = {{"none", "hang", "", false, false},
               {"its own work", "perf", "0", true, false},
               {"ours", "perf", std::to_string(getpid()), true, true}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    Stop stop;
    std::atomic<std::int64_t> supervisor{0};
    std::promise<void> is_up;
    ProcessSpec spec;
    spec.argv = {WEIR_BINARY_DIR "/tests/fake_engines/fake_engine", c.mode};
    spec.env = {{"FAKE_ENGINE_WATCHED", c.watched}};
    spec.started = [&](std::int64_t process) { supervisor = process; };
    const std::string sign = c.mode == "perf" ? "up\n" : "mode hang\n";
    std::string heard;
    spec.heard = [&](std::string_view piece) {
      if (heard.find(sign) != std::string::npos) return;
      heard += piece;
      if (heard.find(sign) != std::string::npos) is_up.set_value();
    };
    std::thread runner([&] { (void)RealProcesses().run(spec, stop); });
    is_up.get_future().wait();
    const std::vector<std::int64_t> stopped = stop_descendants(supervisor);
    const StoppedTree tree(supervisor);
    const PerfWatch watch(supervisor);
    for (volatile int i = 0; i < 10'000'000; i = i + 1) continue;
    EXPECT_EQ(watch.has_events(), c.has_events);
    EXPECT_EQ(watch.has_counted(), c.has_counted);
    continue_processes(stopped);
    stop.request();
    runner.join();
  }
}

TEST(SharedPage, IsHadOfAWholeFileAlone) {
  RealFiles files;
  const ScratchFolder scratch = *ScratchFolder::make_temporary(files, "weir-page-");
  const std::string path = scratch.path() + "/page", link = scratch.path() + "/link";
  EXPECT_FALSE(SharedPage::open(path));
  std::ofstream(path) << std::string(4095, 'x');
  EXPECT_FALSE(SharedPage::open(path)) << "too short";
  std::ofstream(path) << std::string(4096, 'x');
  std::filesystem::create_symlink(path, link);
  EXPECT_FALSE(SharedPage::open(link)) << "could lead anywhere";
  EXPECT_FALSE(SharedPage::open(scratch.path()));
  auto first = SharedPage::open(path), second = SharedPage::open(path);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->get(8), 0x78787878U);
  first->set_and_wake(8, 7);
  EXPECT_EQ(second->get(8), 7U);
}

}  // namespace resting_test
}  // namespace weir::sys
