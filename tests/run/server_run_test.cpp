// Tests steps with a server. Its process is a stand-in, and a script gives its answers.
#include "gate/run/server_run.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate/sys/clock.hpp"
#include "gate/sys/process.hpp"

#include "tests/load/scripts.hpp"
#include "tests/run/scene.hpp"
#include "tests/support/eventually.hpp"

namespace weir::run {
namespace server_run_test {

using profile::Pass;
using profile::RunRecord;
using testing::HasSubstr;

constexpr double k_process_seconds = 1e6;  // no machine takes that long for a cell

// A process that runs until it is told to end; `starts` is called at each start.
class StandIn final : public sys::Processes {
 public:
  // Called with the number of each start, from 1. Returning a Finished ends the process at once.
  std::function<std::optional<sys::Finished>(const sys::ProcessSpec&, int)> starts;
  std::vector<sys::ProcessSpec> started;
  std::optional<std::vector<std::string>> opened;  // files that each is seen to open

  Result<sys::Finished> run(const sys::ProcessSpec& spec, const sys::Stop& stop) override {
    started.push_back(spec);
    if (starts) {
      if (auto at_once = starts(spec, static_cast<int>(started.size()))) return *at_once;
    }
    pollfd stop_event{stop.fd(), POLLIN, 0};
    while (!stop.requested()) poll(&stop_event, 1, -1);
    sys::Finished finished;
    finished.ended = sys::HowEnded::interrupted;
    finished.wall_seconds = k_process_seconds;
    if (spec.watched) finished.opened = opened;
    return finished;
  }
};

// Reports the server as up at once.
class Up final : public sys::Http {
 public:
  tl::expected<sys::HttpResponse, sys::HttpFailure> send(const sys::HttpRequest& request,
                                                         const sys::HttpLimits&,
                                                         const sys::Stop&) override {
    requested_url = request.url;
    return sys::HttpResponse{200, {}, "ok"};
  }
  static inline std::string requested_url;
};

// Answers 404 on all paths but one; `asked` is called at each request.
class OnePath final : public sys::Http {
 public:
  OnePath(std::string path, std::function<void()> asked)
      : path_(std::move(path)), asked_(std::move(asked)) {}
  tl::expected<sys::HttpResponse, sys::HttpFailure> send(const sys::HttpRequest& request,
                                                         const sys::HttpLimits&,
                                                         const sys::Stop&) override {
    asked_();
    return sys::HttpResponse{request.url.ends_with(path_) ? 200 : 404, {}, ""};
  }

 private:
  std::string path_;
  std::function<void()> asked_;
};

// Counts 100 at the start and 7 for each answered request.
class CountingProbes final : public Probing {
 public:
  explicit CountingProbes(const tests::StreamServer& server) : server_(server) {}
  Result<config::Environment> attach(std::span<const std::string>, const std::string& folder,
                                     const config::Environment*) override {
    return config::Environment{{"WEIR_PROBE_DIR", folder}};
  }
  Result<std::vector<profile::ProbeCounts>> collect(std::span<const std::string> probes,
                                                    const std::string&,
                                                    std::span<const config::ProcessRole>) override {
    profile::ProbeCounts counts;
    counts.probe = probes.front();
    counts.counts["dispatches"] = 100 + 7 * server_.requests();
    return std::vector{counts};
  }
  [[nodiscard]] std::string folder() const override { return "/probe"; }

 private:
  const tests::StreamServer& server_;
};

class ServerRun : public testing::Test {
 protected:
  // Prepares a run with these keys of the engine; its command is ./bench.
  void make(const std::string& keys, const std::string& prompt, const std::string& more = "") {
    scene_ = make_scene(
        "version: 1\nengines:\n  s: {kind: server, command: [./bench, '{port}'], "
        "api: completions, probes: [vulkan], " +
        keys + "}\nmodels: {tiny: tiny.bin}\nbackends: {vulkan: {}}\nprompts: {p: " + prompt +
        "}\ngate: {runs: 1}\n" + more);
    plan_ = plan_scene(*scene_);
  }
  [[nodiscard]] std::string there() const { return "url: '" + server_.url() + "'"; }

  RunRecord run(const Step& step) { return run(step, clock_); }
  RunRecord run(const Step& step, const sys::Clock& clock) {
    Effects effects{processes_, scene_->files, clock, locks_, load_, probing_, progress_, stop_};
    // The test itself listens at there().
    effects.connections.is_free = [this](int port) { return port != taken_; };
    effects.connections.http = http_;
    auto record = run_server(effects, "/out", {&plan_.cell_of(step), &step});
    EXPECT_TRUE(record) << record.error().message;
    EXPECT_TRUE(!record || *record) << "stopped";
    return record && *record ? **record : RunRecord{};
  }
  [[nodiscard]] const Step& first(Pass pass) const {
    return *std::find_if(plan_.steps.begin(), plan_.steps.end(),
                         [&](const Step& step) { return step.pass == pass; });
  }

  bool bad_ = false, stops_ = false;  // the effect of a prompt "Bad"
  std::atomic<int> received_ = 0;
  int refused_ = 0;  // number of the request that is refused, from 1
  int taken_ = -1;   // a port that another program has
  std::function<std::unique_ptr<sys::Http>()> http_ = [] { return std::make_unique<Up>(); };
  sys::Stop stop_;
  tests::StreamServer server_{[this](const tests::ReceivedPost& post) {
    const bool bad = post.body.find("Bad") != std::string::npos;
    if (bad && stops_) stop_.request();
    if ((bad && bad_) || ++received_ == refused_)
      return tests::scripts::refusal("500 Internal Server Error", "{}");
    return tests::scripts::well(tests::scripts::completions(4));
  }};
  StandIn processes_;
  sys::RealClock clock_;
  FakeLocks locks_;
  FakeLoad load_;
  CountingProbes probing_{server_};
  FakeProgress progress_;
  std::unique_ptr<Scene> scene_;
  Plan plan_;
};

TEST_F(ServerRun, CountsItsRequestsAloneWithoutStartAndWarmUp) {
  make(there() + ", warm_up: 3", "{text: Hello, tokens: 4}");
  const RunRecord record = run(first(Pass::counted));
  EXPECT_EQ(record.error, std::nullopt) << *record.error;
  EXPECT_EQ(server_.requests(), 4);  // three warm-ups, one that counts
  ASSERT_EQ(record.probes.size(), 1U);
  EXPECT_EQ(record.probes[0].counts.at("dispatches"), 7);
  ASSERT_TRUE(record.report);
  EXPECT_EQ(record.report->generated_tokens, 4);
  EXPECT_EQ(record.report->prompt_tokens, 5);
  EXPECT_TRUE(record.report->output_digest);
  EXPECT_EQ(record.ended, profile::Ended::exited);
  EXPECT_EQ(record.wall_seconds, k_process_seconds);
}

TEST_F(ServerRun, TimesAllRequestsOfATimedRun) {
  make(there(), "{text: Hello, tokens: 4, concurrency: 2, requests: 6, hold: none}");
  const RunRecord record = run(first(Pass::timed));
  EXPECT_EQ(record.error, std::nullopt) << *record.error;
  EXPECT_EQ(server_.requests(), 2 + 6);
  EXPECT_TRUE(record.probes.empty());
  ASSERT_TRUE(record.report);
  std::vector<std::string> names;
  for (const auto& series : record.report->times) names.push_back(series.metric.name);
  EXPECT_THAT(names, testing::IsSupersetOf({"time_to_first_token_seconds",
                                            "cold_time_to_first_token_seconds", "load_seconds",
                                            "requests_per_second"}));
  EXPECT_FALSE(record.report->output_digest) << "batches may change a token";
}

// The layer that would hold requests back writes no page here.
TEST_F(ServerRun, ThatNothingHoldsBackIsCountedInSeveralRunsOrAsWrittenNotAtAll) {
  const std::string load = "text: Hello, tokens: 4, concurrency: 2, requests: 6";
  make(there(), "{" + load + "}");
  plan_ = plan_scene(*scene_, {.times = false});
  ASSERT_EQ(plan_.steps.size(), 1U) << "one, as if it were held";
  Effects effects{processes_, scene_->files, clock_, locks_, load_, probing_, progress_, stop_};
  effects.connections.is_free = [](int) { return true; };
  effects.connections.http = [] { return std::make_unique<Up>(); };
  auto journal = Journal::create(scene_->files, "/out", make_header(plan_));
  ASSERT_TRUE(journal);
  const auto records = Runner(effects, 2).run(plan_, *journal);
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(records->size(), 3U) << "as many as of requests that overlap";
  for (const RunRecord& record : *records) {
    EXPECT_EQ(record.error, std::nullopt) << *record.error;
    EXPECT_EQ(record.held, std::nullopt);
    EXPECT_EQ(record.parameters.repeats, 6) << "not the four of a held burst";
    EXPECT_THAT(record.warnings, testing::Contains(HasSubstr("as they happen to meet")));
  }
  const auto resumed = Journal::resume(scene_->files, "/out", plan_);
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->earlier().size(), 3U);
  EXPECT_EQ(resumed->added_earlier().size(), 2U);

  make(there(), "{" + load + ", hold: all}");
  EXPECT_THAT(run(first(Pass::counted)).error.value_or(""),
              HasSubstr("hold: all: no probe can hold this server"));
}

class SharedStart : public ServerRun {
 protected:
  // Builds three cells, with the prompt Bad in the middle one.
  void SetUp() override {
    scene_ = make_scene(
        "version: 1\nengines:\n  s: {kind: server, command: [./bench, '{port}'], "
        "api: completions, probes: [vulkan], " +
        there() +
        "}\nmodels: {tiny: tiny.bin}\nbackends: {vulkan: {}}\n"
        "prompts: {a: {text: Good, tokens: 4}, b: {text: Bad, tokens: 4}, "
        "c: {text: Well, tokens: 4}}\ngate: {runs: 1}\n");
    plan_ = plan_scene(*scene_, {.counts = false});
    ASSERT_EQ(plan_.steps.size(), 3U);
    for (const Step& step : plan_.steps) slots_.push_back({&plan_.cell_of(step), &step, 1});
  }

  std::vector<RunRecord> run_all() {
    Effects effects{processes_, scene_->files, clock_, locks_, load_, probing_, progress_, stop_};
    effects.connections.is_free = [](int) { return true; };  // the test itself listens there
    effects.connections.http = [] { return std::make_unique<Up>(); };
    ServedEvents events;
    events.on_begin = [&](const Step& step) { begun_.push_back(step.order); };
    events.on_measured = [&](const RunRecord& record) {
      EXPECT_TRUE(record.report);
      EXPECT_EQ(record.start, 0);
      measured_.push_back(record.order);
    };
    auto records = run_on_one_server(effects, "/out", slots_, events);
    EXPECT_TRUE(records) << records.error().message;
    return records.value_or(std::vector<RunRecord>{});
  }

  std::vector<ServerSlot> slots_;
  std::vector<std::int64_t> begun_, measured_;
};

TEST_F(SharedStart, ServesEachCellWithAWarmUpOfItsOwn) {
  const auto records = run_all();
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(processes_.started.size(), 1U);
  EXPECT_THAT(begun_, testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(measured_, testing::ElementsAre(0, 1)) << "while others were to come";
  EXPECT_EQ(server_.requests(), 3 * (2 + 8)) << "two to warm up, and eight that are timed";
  for (const RunRecord& record : records) {
    EXPECT_EQ(record.error, std::nullopt);
    EXPECT_EQ(record.start, 0);
    EXPECT_LT(record.wall_seconds, k_process_seconds) << "its own, not that of the process";
    ASSERT_TRUE(record.report);
    EXPECT_EQ(record.report->times.back().metric.name, "load_seconds");
  }
  const auto start_times = [](const RunRecord& record) {  // cold start and loading
    const auto& times = record.report->times;
    EXPECT_EQ(std::prev(times.end(), 2)->metric.name, "cold_time_to_first_token_seconds");
    return std::vector(std::prev(times.end(), 2), times.end());
  };
  EXPECT_EQ(start_times(records[0]), start_times(records[2]));
}

// Connections end with the requests of the second cell, so we cannot know how the third would go.
TEST_F(SharedStart, EndsWithTheFirstCellThatFails) {
  bad_ = true;
  const auto records = run_all();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].error, std::nullopt);
  EXPECT_TRUE(records[0].report);
  ASSERT_TRUE(records[1].error);
  EXPECT_THAT(*records[1].error, HasSubstr("warm-up: 2 of 2 requests failed: 2 status"));
  EXPECT_THAT(begun_, testing::ElementsAre(0, 1));
}

TEST_F(SharedStart, KeepsWhatWasWholeWhenWeirIsStopped) {
  stops_ = true;
  const auto records = run_all();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].order, 0);
  EXPECT_EQ(records[0].error, std::nullopt);
}

// A port of 127.0.0.1 that the system gives to nobody while this object lives.
class Somebody {
 public:
  explicit Somebody(int wanted = 0) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const int yes = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in at{};
    socklen_t size = sizeof at;
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(wanted));
    (void)bind(fd_, reinterpret_cast<const sockaddr*>(&at), size);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port = ntohs(at.sin_port);
  }
  ~Somebody() { close(fd_); }
  Somebody(const Somebody&) = delete;
  Somebody& operator=(const Somebody&) = delete;

  void listen() const { EXPECT_EQ(::listen(fd_, 1), 0); }
  int port = 0;

 private:
  int fd_ = -1;
};

// The port of the first start is taken, as if another program had been quicker.
TEST_F(ServerRun, TriesAnotherPortWhereOneWasTakenMeanwhile) {
  make(there() + ", ready: {line: never, timeout: 2m}", "{text: Hello, tokens: 4}");
  std::optional<Somebody> occupant;  // the system does not give out that port again
  processes_.starts = [&](const sys::ProcessSpec& spec,
                          int number) -> std::optional<sys::Finished> {
    if (number > 1) {
      spec.heard("never say ne");
      return std::nullopt;
    }
    taken_ = std::stoi(spec.argv.at(1));
    occupant.emplace(taken_);
    sys::Finished finished;
    finished.exit_code = 1;
    finished.err = "bind: address already in use\n";
    return finished;
  };
  const RunRecord record = run(first(Pass::timed));
  EXPECT_EQ(record.error, std::nullopt) << *record.error;
  ASSERT_EQ(processes_.started.size(), 2U);
  EXPECT_NE(processes_.started[0].argv, processes_.started[1].argv);
}

TEST_F(ServerRun, SaysHowItEndedBeforeItWasUp) {
  make(there() + ", ready: {line: never, timeout: 2m}", "{text: Hello, tokens: 4}");
  processes_.starts = [](const sys::ProcessSpec&, int) -> std::optional<sys::Finished> {
    sys::Finished finished;
    finished.exit_code = 3;
    finished.err = "error: no such model\n";
    return finished;
  };
  const RunRecord record = run(first(Pass::timed));
  EXPECT_EQ(record.error, "the server ended before it was up: exited with code 3");
  EXPECT_EQ(record.stderr_tail, "error: no such model");
  EXPECT_EQ(processes_.started.size(), 1U) << "its port is free: another one would not help";
}

TEST_F(ServerRun, IsUpWithItsListOfModelsWhereItHasNoHealth) {
  make(there(), "{text: Hello, tokens: 4}");
  http_ = [] { return std::make_unique<OnePath>("/v1/models", [] {}); };
  EXPECT_EQ(run(first(Pass::timed)).error, std::nullopt);
}

TEST_F(ServerRun, SaysWhileItWaitsWhatItWaitsForAndThatReadyNamesAnotherPath) {
  make(there() + ", ready: {timeout: 20s}", "{text: Hello, tokens: 4}");
  FakeClock clock;
  const std::string answer = server_.url() +
                             "/health: HTTP 404, and /v1/models: HTTP 404: it answers, but not "
                             "there; set `ready:` to another "
                             "path";
  http_ = [&] { return std::make_unique<OnePath>("/up", [&] { clock.seconds += 1; }); };
  const RunRecord record = run(first(Pass::timed), clock);
  EXPECT_EQ(record.error, "the server was not up within 20 s: " + answer);
  EXPECT_THAT(
      progress_.lines,
      testing::ElementsAre("waiting up to 20 s for the server of s/tiny/vulkan/p: " + answer));
}

TEST_F(ServerRun, OfABaseThatOpensTheCandidatesCodeMeasuresNothing) {
  make(there(), "{text: Hello, tokens: 4}");
  plan_.cells[0].watched = sys::WatchedFolder{"/tree"};
  processes_.opened = {"/tree/serve.py"};
  const RunRecord record = run(first(Pass::counted));
  EXPECT_THAT(record.error.value_or(""), HasSubstr("where the candidate's is: serve.py; "));
  EXPECT_FALSE(record.report);
  processes_.opened = {"/tree/model.gguf"};
  EXPECT_EQ(run(first(Pass::counted)).error, std::nullopt);
}

TEST_F(ServerRun, MeasuresNothingWhereARequestFailed) {
  make(there(), "{text: Hello, tokens: 4, requests: 3}");
  server_.die();
  const RunRecord record = run(first(Pass::timed));
  ASSERT_TRUE(record.error);
  EXPECT_THAT(*record.error, HasSubstr("warm-up: 2 of 2 requests failed: 2 cut_off"));
  EXPECT_FALSE(record.report);
}

TEST_F(ServerRun, MeasuresWithFailedRequestsAsFarAsALimitAllows) {
  struct Case {
    const char* limit;
    int refused;
    std::optional<double> failed;
  };
  for (const Case& c :
       {Case{"", 3, std::nullopt}, Case{"max: 0", 3, std::nullopt},
        Case{"max: 24%", 3, std::nullopt}, Case{"max: 25%", 3, 1}, Case{"max: 1", 3, 1},
        Case{"max: 1", 1, std::nullopt}, Case{"max: 1", 0, 0}}) {
    received_ = 0;
    refused_ = c.refused;  // 1: the warm-up
    make(there() + ", warm_up: 1", "{text: Hello, tokens: 4, requests: 4}",
         *c.limit == '\0' ? ""
                          : fmt::format("limits: [{{metrics: failed_requests, {}}}]\n", c.limit));
    const RunRecord record = run(first(Pass::timed));
    ASSERT_EQ(record.report.has_value(), c.failed.has_value()) << c.limit;
    if (!c.failed) {
      EXPECT_THAT(record.error.value_or(""), HasSubstr("requests failed: 1 status")) << c.limit;
      continue;
    }
    EXPECT_EQ(record.report->requests, 4 - *c.failed);
    EXPECT_EQ(record.report->generated_tokens, 4);
    const auto& times = record.report->times;
    const auto failed = std::ranges::find(times, "failed_requests",
                                          [](const auto& series) { return series.metric.name; });
    ASSERT_NE(failed, times.end());
    EXPECT_EQ(failed->samples, std::vector{*c.failed});
  }
}

TEST(Port, IsFreeUntilSomebodyListensThere) {
  const Somebody somebody;
  EXPECT_TRUE(sys::is_free(somebody.port));
  somebody.listen();
  EXPECT_FALSE(sys::is_free(somebody.port));
}

// Another program may be quicker, but not always.
TEST(Port, ThatIsFreeIsFound) {
  EXPECT_TRUE(tests::eventually([] {
    const auto port = sys::free_port();
    EXPECT_TRUE(port) << port.error().message;
    return sys::is_free(port.value_or(0));
  }));
}

}  // namespace server_run_test
}  // namespace weir::run
