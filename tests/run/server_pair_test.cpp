// Tests both servers of a pair beside each other, in virtual time: the order of their blocks, and
// that the coin gives a program nothing but its slot.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "gate/run/against.hpp"
#include "gate/run/server_run.hpp"
#include "gate/sys/perf_events.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/resting.hpp"

#include "tests/load/scripts.hpp"
#include "tests/load/virtual_server.hpp"
#include "tests/run/scene.hpp"

namespace weir::run {
namespace server_pair_test {

using profile::RunRecord;
using profile::Side;
using testing::ElementsAre;
using testing::HasSubstr;

// Processes that run until they are told to end, except those that `fails` ends.
class StandIns final : public sys::Processes {
 public:
  std::function<std::optional<sys::Finished>(const sys::ProcessSpec&)> fails;
  std::vector<std::string> started;  // programs
  std::atomic<int> running{0};
  int most = 0;

  Result<sys::Finished> run(const sys::ProcessSpec& spec, const sys::Stop& stop) override {
    {
      const std::lock_guard hold(mutex_);
      started.push_back(spec.argv.front());
      programs_[spec.argv.at(1)] = spec.argv.front();
      most = std::max(most, ++running);
      if (fails) {
        if (auto at_once = fails(spec)) {
          --running;
          return *at_once;
        }
      }
    }
    if (runs_sleep) return run_sleep(spec, stop);
    pollfd stop_event{stop.fd(), POLLIN, 0};
    while (!stop.requested()) poll(&stop_event, 1, -1);
    --running;
    sys::Finished finished;
    finished.ended = sys::HowEnded::interrupted;
    finished.wall_seconds = 2;
    return finished;
  }

  bool is_there(const std::string& url) {
    const std::string program = program_at(url);
    return !program.empty() && (!runs_sleep || is_running(program));
  }
  // Real processes stand for the servers, so that they can be stopped.
  bool runs_sleep = false;
  std::set<std::string> watchers;  // programs that hold a performance event
  bool is_stopped(const std::string& program) {
    return sys::are_descendants_stopped(supervisor_of(program));
  }
  // The process that stands for a program's server.
  pid_t process_of(const std::string& program) {
    const auto processes = sys::list_descendants(supervisor_of(program));
    return processes.size() == 1 ? static_cast<pid_t>(processes.front()) : -1;
  }
  // Returns the last program that was started there; "" if none was.
  std::string program_at(const std::string& url) {
    const std::lock_guard hold(mutex_);
    for (const auto& [port, program] : programs_) {
      if (url.find(":" + port + "/") != std::string::npos) return program;
    }
    return "";
  }

 private:
  Result<sys::Finished> run_sleep(const sys::ProcessSpec& spec, const sys::Stop& stop) {
    sys::ProcessSpec sleep;
    sleep.argv = {"/bin/sleep", "1000"};
    if (watchers.contains(spec.argv.front())) {
      sleep.argv = {WEIR_BINARY_DIR "/tests/fake_engines/fake_engine", "perf"};
      sleep.env = {{"FAKE_ENGINE_WATCHED", "0"}};
    }
    sleep.started = [&](std::int64_t supervisor) {
      const std::lock_guard hold(mutex_);
      supervisors_[spec.argv.front()] = supervisor;
      if (spec.started) spec.started(supervisor);
    };
    auto finished = sys::RealProcesses().run(sleep, stop);
    --running;
    return finished;
  }
  std::int64_t supervisor_of(const std::string& program) {
    const std::lock_guard hold(mutex_);
    return supervisors_[program];
  }
  bool is_running(const std::string& program) {
    const std::int64_t supervisor = supervisor_of(program);
    return supervisor != 0 && sys::resident_bytes_below(supervisor).has_value();
  }

  std::mutex mutex_;
  std::map<std::string, std::string> programs_;      // by port
  std::map<std::string, std::int64_t> supervisors_;  // by program
};

// Reports a server as up as soon as its process runs.
class Up final : public sys::Http {
 public:
  explicit Up(StandIns& processes) : processes_(processes) {}
  tl::expected<sys::HttpResponse, sys::HttpFailure> send(const sys::HttpRequest& request,
                                                         const sys::HttpLimits&,
                                                         const sys::Stop&) override {
    return sys::HttpResponse{processes_.is_there(request.url) ? 200 : 503, {}, ""};
  }

 private:
  StandIns& processes_;
};

// The stream of one server; `log` gets its letter at each request.
class Logged final : public sys::Streams {
 public:
  Logged(load::VirtualClock& clock, char letter, std::string& log, std::vector<double>& sent,
         load::VirtualStreams::Answer answer, std::function<void()> on_request)
      : clock_(clock),
        letter_(letter),
        log_(log),
        sent_(sent),
        inner_(clock, std::move(answer)),
        on_request_(std::move(on_request)) {}
  Id post(const sys::StreamRequest& request, sys::StreamSink& sink) override {
    log_ += letter_;
    on_request_();
    sent_.push_back(clock_.at);
    return inner_.post(request, sink);
  }
  void drop(Id id) override { inner_.drop(id); }
  void wait(double until, const sys::Stop& stop) override { inner_.wait(until, stop); }

 private:
  load::VirtualClock& clock_;
  char letter_;
  std::string& log_;
  std::vector<double>& sent_;
  load::VirtualStreams inner_;
  std::function<void()> on_request_;
};

constexpr const char* k_base = "/base/bench";

// Finds the server of a stream by its port.
class ByProgram final : public sys::Streams {
 public:
  using Answer = std::function<load::VirtualAnswer(bool base)>;
  ByProgram(load::VirtualClock& clock, StandIns& processes, Answer answer)
      : processes_(processes),
        inner_(clock,
               [this, answer = std::move(answer)](std::size_t, double) { return answer(base_); }) {}
  Id post(const sys::StreamRequest& request, sys::StreamSink& sink) override {
    base_ = processes_.program_at(request.url) == k_base;
    return inner_.post(request, sink);
  }
  void drop(Id id) override { inner_.drop(id); }
  void wait(double until, const sys::Stop& stop) override { inner_.wait(until, stop); }

 private:
  StandIns& processes_;
  bool base_ = false;
  load::VirtualStreams inner_;
};

class NoCounts final : public KnownCounts {
 public:
  std::vector<baseline::Baseline> find_counts(const profile::CellKey&) const override { return {}; }
};

class Coin final : public sys::Coin {
 public:
  [[nodiscard]] bool flip() override { return ++flips_ % 3 == 0; }

 private:
  int flips_ = 0;
};

class ServerPair : public testing::Test {
 protected:
  void make(const std::string& keys = "", const std::string& prompt = "requests: 8",
            const std::string& more = "") {
    scene_ = make_scene(
        "version: 1\nengines:\n  s: {kind: server, command: [./bench, '{port}'], "
        "api: completions, warm_up: 1" +
        keys + "}\nmodels: {tiny: tiny.bin}\nbackends: {cpu: {}}\nprompts: {p: {tokens: 2, " +
        prompt + (prompt.starts_with("workload") ? "" : ", text: Hello") + "}}\n" + more);
    scene_->files.put("/project/trace.jsonl",
                      "{\"prompt\": \"a\", \"timestamp\": 0}\n"
                      "{\"prompt\": \"b\", \"timestamp\": 100}\n"
                      "{\"prompt\": \"c\", \"timestamp\": 1000}\n");
    candidate_ = plan_scene(*scene_).cells.at(0);
    base_ = candidate_;
    base_.program = k_base;
  }

  // Runs with the base or the candidate in slot 0.
  PairRecords run(bool base_first, std::int64_t attempt = 1) {
    log_.clear();
    sent_.clear();
    processes_.started.clear();
    std::size_t stream_count = 0;
    Effects effects{processes_, scene_->files, clock_, locks_, load_, probing_, progress_, stop_};
    effects.check = check_;
    effects.read_into_cache = read_into_cache_;
    effects.connections.is_free = [](int) { return true; };  // the test itself listens there
    effects.connections.http = [this] { return std::make_unique<Up>(processes_); };
    effects.connections.streams = [&](const sys::Clock&) -> std::unique_ptr<sys::Streams> {
      // Servers are warmed up in the order of their slots.
      const bool base = (stream_count++ == 0) == base_first;
      return std::make_unique<Logged>(
          clock_, base ? 'b' : 'c', log_, sent_,
          [this, base](std::size_t, double) { return answer(base); },
          [this, base] { note_stopped(base); });
    };
    steps_[0].order = 0;
    steps_[1].order = 1;
    std::array<ServerSlot, 2> slots;
    for (std::size_t slot = 0; slot < 2; ++slot) {
      const bool base = (slot == 0) == base_first;
      steps_.at(slot).parameters = {0, 2, 8, 0};
      steps_.at(slot).pair = 1;
      steps_.at(slot).side = base ? Side::base : Side::candidate;
      slots.at(slot) = {base ? &base_ : &candidate_, &steps_.at(slot), attempt};
    }
    auto records = run_server_pair(effects, "/out", slots);
    EXPECT_TRUE(records) << records.error().message;
    EXPECT_EQ(processes_.running, 0) << "one is still up";
    return records ? std::move(*records) : PairRecords{};
  }

  // Logs if a server is stopped at a request of the base or the candidate.
  void note_stopped(bool base) {
    if (!processes_.runs_sleep) return;
    const std::string own = base ? k_base : "/project/bench",
                      other = base ? "/project/bench" : k_base;
    if (processes_.is_stopped(own)) log_ += '!';
    if (processes_.is_stopped(other)) log_ += '.';
    if (disturb_) disturb_(base, processes_.process_of(other));
  }

  // Runs pairs until all is decided, and judges them.
  verdict::CellVerdict judged() {
    Effects effects{processes_, scene_->files, clock_, locks_, load_, probing_, progress_, stop_};
    effects.connections.is_free = [](int) { return true; };  // the test itself listens there
    effects.connections.http = [this] { return std::make_unique<Up>(processes_); };
    effects.connections.streams = [this](const sys::Clock&) {
      return std::make_unique<ByProgram>(clock_, processes_,
                                         [this](bool base) { return answer(base); });
    };
    PlanOptions pairs;
    pairs.pairs = true;
    const Plan plan = make_plan({candidate_}, *scene_->settings, pairs, {base_});
    auto journal = Journal::create(scene_->files, "/out", make_header(plan));
    EXPECT_TRUE(journal);
    AgainstOptions options;
    options.limits = scene_->settings->limits;
    options.gate = scene_->settings->gate;
    options.counts = false;
    const NoCounts known_counts;
    Coin coin;
    const auto against = make_against(plan, options, known_counts, coin, [](const PairsPlan&) {});
    const auto records = Runner(effects, 1).run(plan, *journal, against.get());
    EXPECT_TRUE(records) << records.error().message;
    if (!records) return {};
    const profile::CellFacts& facts = plan.cells.at(0).facts;
    return verdict::judge_cell(profile::assemble(facts, *records),
                               {{}, profile::paired_runs(facts, *records)}, options.limits,
                               verdict::Policy{});
  }

  // An answer of two tokens: the first after its time to first token, the second 10 ms later.
  load::VirtualAnswer answer(bool base) {
    const auto words = tests::scripts::completions(2);
    const double first = (base ? base_seconds_ : candidate_seconds_) + drift_ * (clock_.at - 1000);
    load::VirtualAnswer answer;
    answer.says = {{0, ""}, {first, words.tokens.at(0)}, {first + 0.01, words.tokens.at(1)}};
    for (const std::string& end : words.end) answer.says.emplace_back(first + 0.01, end);
    return answer;
  }

  static double number(const std::optional<RunRecord>& record, const std::string& name) {
    if (!record || !record->report) {
      ADD_FAILURE() << (record ? record->error.value_or("no report") : "no record");
      return -1;
    }
    for (const auto& series : record->report->times) {
      if (series.metric.name == name) return series.samples.at(0);
    }
    ADD_FAILURE() << name;
    return -1;
  }

  double base_seconds_ = 0.02, candidate_seconds_ = 0.02, drift_ = 0;
  // At each request: the side that has its turn, and the other one's process.
  std::function<void(bool base, pid_t other)> disturb_;
  std::function<Result<void>()> check_;
  std::function<void(const std::string&)> read_into_cache_ = [](const std::string&) {};
  std::string log_;
  std::vector<double> sent_;  // time of each entry of log_
  std::unique_ptr<Scene> scene_;
  PreparedCell base_, candidate_;
  std::array<Step, 2> steps_;
  StandIns processes_;
  load::VirtualClock clock_;
  FakeLocks locks_;
  FakeLoad load_;
  FakeProbing probing_;
  FakeProgress progress_;
  sys::Stop stop_;
};

TEST_F(ServerPair, SendsItsBlocksInTurnsThatTheSlotDecides) {
  make();
  auto records = run(true);
  // One request each to warm up, then four blocks of two: 0 1 1 0 0 1 1 0.
  EXPECT_EQ(log_,
            "bc"
            "bb"
            "cc"
            "cc"
            "bb"
            "bb"
            "cc"
            "cc"
            "bb");
  ASSERT_TRUE(records[0] && records[1]);
  EXPECT_EQ(records[0]->side, Side::base);
  EXPECT_THAT(records[0]->turns, ElementsAre(0, 3, 4, 7));
  EXPECT_THAT(records[1]->turns, ElementsAre(1, 2, 5, 6));
  EXPECT_EQ(processes_.most, 2) << "both are up";
  EXPECT_THAT(processes_.started, ElementsAre(k_base, "/project/bench"));

  records = run(false);
  EXPECT_EQ(log_,
            "cb"
            "cc"
            "bb"
            "bb"
            "cc"
            "cc"
            "bb"
            "bb"
            "cc");
  ASSERT_TRUE(records[0] && records[1]);
  EXPECT_EQ(records[0]->side, Side::candidate);
  EXPECT_THAT(processes_.started, ElementsAre("/project/bench", k_base));
}

// A server that spins while it is idle would make the other one slow.
TEST_F(ServerPair, StopsAServerWhileTheOtherOneHasItsTurn) {
  if (!sys::can_see_rest()) GTEST_SKIP() << "no /proc";
  make();
  processes_.runs_sleep = true;
  const auto records = run(true);
  EXPECT_EQ(log_,
            "b.c."
            "b.b."
            "c.c."
            "c.c."
            "b.b."
            "b.b."
            "c.c."
            "c.c."
            "b.b.");
  ASSERT_TRUE(records[0] && records[1]);
  EXPECT_EQ(records[0]->error, std::nullopt);
  EXPECT_EQ(records[1]->error, std::nullopt);
}

// Processes of one side may wake each other, or the other side's, and change how these are run.
TEST_F(ServerPair, IsVoidIfAStoppedServerWasNotLeftAlone) {
  if (!sys::can_see_rest()) GTEST_SKIP() << "no /proc";
  const auto wake = [](pid_t process) { kill(process, SIGCONT); };
  const auto set_nice = [](pid_t process) {
    setpriority(PRIO_PROCESS, static_cast<id_t>(process), 19);
  };
  const auto narrow = [](pid_t process) {
    cpu_set_t cpus;
    sched_getaffinity(process, sizeof cpus, &cpus);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&cpus) > 1; ++cpu) CPU_CLR(cpu, &cpus);
    sched_setaffinity(process, sizeof cpus, &cpus);
  };
  const auto limit = [](pid_t process) {
    const rlimit cores{0, 0};
    prlimit(process, RLIMIT_CORE, &cores, nullptr);
    const rlimit files{64, 64};
    prlimit(process, RLIMIT_NOFILE, &files, nullptr);
  };
  const auto set_idle_disk = [](pid_t process) {
    constexpr int k_idle = 3 << 13;  // IOPRIO_CLASS_IDLE
    syscall(SYS_ioprio_set, 1, process, k_idle);
  };
  const auto slow_timers = [](pid_t process) {
    std::ofstream("/proc/" + std::to_string(process) + "/timerslack_ns") << 100'000'000;
  };
  const bool may_slow_timers = std::ifstream("/proc/1/timerslack_ns").get() != EOF;
  const struct {
    const char* what;
    bool in_turn_of_base;
    std::function<void(pid_t)> disturb;
    const char* error;
  } cases[] = {
      {"wakes itself", true, wake,
       "the candidate's server, or what it started, ran while the base"},
      {"wakes the base's", false, wake,
       "the base's server, or what it started, ran while the cand"},
      {"another priority", false, set_nice, "priority or limits of the base's server were changed"},
      {"fewer processors", false, narrow, "priority or limits of the base's server were changed"},
      {"other limits", false, limit, "priority or limits of the base's server were changed"},
      {"waits for disks", false, set_idle_disk,
       "priority or limits of the base's server were changed"},
      {"slow timers", false, slow_timers, "priority or limits of the base's server were changed"},
  };
  for (const auto& c : cases) {
    if (c.what == std::string("slow timers") && !may_slow_timers) continue;
    if (c.what == std::string("fewer processors") && std::thread::hardware_concurrency() < 2)
      continue;
    make();
    processes_.runs_sleep = true;
    disturb_ = [&](bool base, pid_t other) {
      if (base == c.in_turn_of_base) c.disturb(other);
    };
    for (const bool base_first : {true, false}) {
      const auto records = run(base_first);
      const auto& candidate = records[base_first ? 1 : 0];
      ASSERT_TRUE(records[0] && records[1]) << c.what;
      EXPECT_THAT(candidate->error.value_or("none"), HasSubstr(c.error)) << c.what;
      EXPECT_EQ(candidate->report, std::nullopt) << c.what;
      EXPECT_EQ(records[base_first ? 0 : 1]->error, std::nullopt)
          << c.what << ": the base would count as infinitely slow";
    }
  }
}

// By breakpoints or samples a stopped process slows others down.
TEST_F(ServerPair, IsVoidIfTheCandidateAloneHoldsPerformanceEvents) {
  if (!sys::can_see_rest() || sys::counter_problem(sys::page_faults_event()))
    GTEST_SKIP() << "no perf events";
  const auto error = [&](const std::set<std::string>& watchers) {
    make();
    processes_.runs_sleep = true;
    processes_.watchers = watchers;
    const auto records = run(true);
    EXPECT_TRUE(records[0] && records[1]);
    EXPECT_EQ(records[0]->error, std::nullopt) << "the base's";
    return records[1]->error.value_or("none");
  };
  EXPECT_THAT(error({"/project/bench"}), HasSubstr("holds performance events (perf_event_open)"));
  EXPECT_EQ(error({"/project/bench", k_base}), "none") << "of their own work";
  EXPECT_EQ(error({k_base}), "none");
  EXPECT_EQ(error({}), "none");
}

// A server may change files while it has its turn, and put them back in the next one.
TEST_F(ServerPair, LooksAtTheBasesFilesBeforeEachTurnAndReadsTheModelIntoTheCache) {
  make();
  check_ = [&]() -> Result<void> {
    log_ += '?';
    return {};
  };
  int readings = 0;
  read_into_cache_ = [&](const std::string& path) {
    if (path == "/project/tiny.bin") ++readings;
  };
  (void)run(true);
  EXPECT_GE(readings, 2 + 8) << "each server's start, and each turn";
  EXPECT_EQ(log_,
            "?????b?c"
            "?bb"
            "?cc"
            "?cc"
            "?bb"
            "?bb"
            "?cc"
            "?cc"
            "?bb");
}

// Requests come at 0, 0.1 and 1 s; another round begins a mean gap later, at 1.5 s.
TEST_F(ServerPair, RecordedMomentsGoOnWhereTheRecordingBeginsAgain) {
  make("", "workload: trace.jsonl, requests: 8");
  const auto records = run(true);
  ASSERT_TRUE(records[0] && records[1]);
  EXPECT_EQ(records[0]->error, std::nullopt) << *records[0]->error;
  ASSERT_EQ(log_, "bcbbccccbbbbccccbb");
  const auto gap = [&](std::size_t at) { return sent_.at(at + 1) - sent_.at(at); };
  EXPECT_NEAR(gap(2), 0.1, 1e-9) << "the first and the second";
  EXPECT_NEAR(gap(8), 0.5, 1e-9) << "the third, and the first again";
  EXPECT_NEAR(gap(10), 0.9, 1e-9) << "the second and the third";
  EXPECT_NEAR(gap(16), 0.1, 1e-9);
}

TEST_F(ServerPair, MakesOneNumberOfAllRequestsOfASideAndLeavesTheOthersTurnsOut) {
  make();
  candidate_seconds_ = 0.03;
  for (const bool base_first : {true, false}) {
    const auto records = run(base_first);
    const auto& base = records[base_first ? 0 : 1];
    const auto& candidate = records[base_first ? 1 : 0];
    EXPECT_NEAR(number(base, "time_to_first_token_p90_seconds"), 0.02, 1e-9);
    EXPECT_NEAR(number(candidate, "time_to_first_token_p90_seconds"), 0.03, 1e-9);
    // 8 requests of 30 ms, and of 40 ms, one after the other; the time between them does not count.
    EXPECT_NEAR(number(base, "requests_per_second"), 8 / 0.24, 1e-6);
    EXPECT_NEAR(number(candidate, "requests_per_second"), 8 / 0.32, 1e-6);
    ASSERT_TRUE(base->report);
    EXPECT_EQ(base->report->requests, 8);
  }
}

// The proof of the decision rule needs this: where nothing changed, the coin alone decides which
// side gets which number. The machine gets slower all the while.
TEST_F(ServerPair, SwappingTheSidesSwapsTheirNumbersAndNothingElse) {
  make();
  drift_ = 0.01;
  clock_.at = 1000;
  const auto forward = run(true);
  clock_.at = 1000;
  const auto swapped = run(false);
  for (const char* name : {"time_to_first_token_seconds", "time_to_first_token_p99_seconds",
                           "requests_per_second", "output_tokens_per_second"}) {
    EXPECT_EQ(number(forward[0], name), number(swapped[0], name)) << name;
    EXPECT_EQ(number(forward[1], name), number(swapped[1], name)) << name;
    EXPECT_NE(number(forward[0], name), number(forward[1], name)) << name << ": nothing drifted";
  }
  EXPECT_EQ(forward[0]->side, swapped[1]->side);
}

TEST_F(ServerPair, IsJudgedByThePercentilesOfEachSidesStarts) {
  const auto outcome = [&](double base, double candidate) {
    make("", "requests: 8",
         "limits: [{metrics: time_to_first_token_p90_seconds, max_increase: 50%},\n"
         "         {metrics: '*tokens_per_second', mode: 'off'}]\n");
    base_seconds_ = base;
    candidate_seconds_ = candidate;
    const verdict::CellVerdict cell = judged();
    EXPECT_NE(cell.verdict, verdict::Outcome::error) << cell.reason;
    for (const verdict::Judgement& judgement : cell.metrics()) {
      if (judgement.metric.name != "time_to_first_token_p90_seconds") continue;
      EXPECT_GE(judgement.pairs.value_or(0), 8);
      EXPECT_NEAR(judgement.change.value_or(0), candidate / base - 1, 0.01);
      return judgement.verdict;
    }
    return verdict::Outcome::skipped;
  };
  EXPECT_EQ(outcome(0.02, 0.02), verdict::Outcome::pass);
  EXPECT_EQ(outcome(0.02, 0.06), verdict::Outcome::fail);
  EXPECT_EQ(outcome(0.06, 0.02), verdict::Outcome::improved);
}

TEST_F(ServerPair, TakesAsManyBlocksAsConcurrencyAndRequestsAllow) {
  const auto blocks = [&](const std::string& keys, const std::string& prompt,
                          std::int64_t requests) {
    make(keys, prompt);
    return split_into_blocks(candidate_, requests);
  };
  EXPECT_THAT(blocks("", "requests: 10", 10), ElementsAre(2, 3, 2, 3));
  EXPECT_THAT(blocks("", "requests: 2", 2), ElementsAre(1, 1));
  EXPECT_THAT(blocks("", "concurrency: 4, requests: 8", 8), ElementsAre(4, 4));
  EXPECT_THAT(blocks("", "concurrency: 4, requests: 3", 3), ElementsAre(3));
  EXPECT_THAT(blocks(", blocks: 2", "requests: 8", 8), ElementsAre(4, 4));
  EXPECT_TRUE(takes_turns(candidate_));
  make(", blocks: 0");
  EXPECT_FALSE(takes_turns(candidate_)) << "one after the other";
}

TEST_F(ServerPair, OneThatFailsIsAnErrorAndTheOtherGoesOn) {
  make();
  // Any request to a port here is answered, so a line tells if the process is up.
  scene_->settings->engines[0].server->ready_url.clear();
  scene_->settings->engines[0].server->ready_line = "never";
  processes_.fails = [&](const sys::ProcessSpec& spec) -> std::optional<sys::Finished> {
    spec.heard("never say never\n");
    if (spec.argv.front() == k_base) return std::nullopt;
    sys::Finished finished;
    finished.exit_code = 3;
    return finished;
  };
  const auto records = run(true);
  ASSERT_TRUE(records[0] && records[1]);
  EXPECT_EQ(records[0]->error, std::nullopt) << *records[0]->error;
  EXPECT_NEAR(number(records[0], "time_to_first_token_seconds"), 0.02, 1e-9);
  ASSERT_TRUE(records[1]->error);
  EXPECT_THAT(*records[1]->error, HasSubstr("exited with code 3"));
}

TEST_F(ServerPair, OneThatCouldNotBeStartedStopsTheFirstAttemptAlone) {
  make();
  scene_->settings->engines[0].server->ready_url.clear();
  scene_->settings->engines[0].server->ready_line = "up";
  processes_.fails = [](const sys::ProcessSpec& spec) -> std::optional<sys::Finished> {
    if (spec.argv.front() == k_base) {
      spec.heard("up\n");
      return std::nullopt;
    }
    sys::Finished finished;
    finished.ended = sys::HowEnded::not_started;
    finished.start_error = "out of memory";
    return finished;
  };
  const auto first = run(true);
  EXPECT_FALSE(first[0]) << "measured with nothing beside it: once more, both";
  ASSERT_TRUE(first[1]);
  EXPECT_EQ(first[1]->ended, profile::Ended::not_started);
  EXPECT_EQ(log_, "") << "nothing was asked";
  const auto second = run(true, 2);
  ASSERT_TRUE(second[0] && second[1]);
  EXPECT_EQ(second[0]->error, std::nullopt);
  EXPECT_TRUE(second[1]->error);
}

}  // namespace server_pair_test
}  // namespace weir::run
