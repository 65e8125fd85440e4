// The built weir against servers that are none: started, asked, ended, with nothing left of them.
#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace {

const std::string k_fake = WEIR_BINARY_DIR "/tests/fake_engines/fake_server";

class Servers : public testing::Test {
 protected:
  // An engine for each mode, one model, the CPU; `more` of the engine, `prompts` and what follows.
  void write_config(const std::vector<std::string>& modes, const std::string& more = "",
                    const std::string& prompts =
                        "{hello: {text: Hello world, tokens: 8, "
                        "requests: 4}}") {
    std::string engines;
    for (const std::string& mode : modes) {
      engines += "  " + mode + ": {kind: server, command: [" + k_fake + ", " + mode +
                 ", '{port}', " + mark() + "], api: completions, timeout: 60s" + more + "}\n";
    }
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / "weir.yaml", "version: 1\nengines:\n" + engines +
                                      "models: {m: model.bin}\nbackends: {cpu: {}}\n"
                                      "prompts: " +
                                      prompts + "\ngate: {runs: 2}\n");
  }

  // Stands in the command line of every server of this test.
  [[nodiscard]] std::string mark() const { return scratch_.path().filename(); }

  Json gate(int exit_code, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"gate", "--json", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    last_ = weir(scratch_, arguments);
    EXPECT_EQ(last_.exit_code, exit_code) << last_.err;
    EXPECT_EQ(processes_with(mark()), std::vector<std::string>{}) << "left behind";
    return json_of(last_);
  }

  Scratch scratch_;
  Ended last_;
};

TEST_F(Servers, AreMeasuredByWhatTheyAnswer) {
  write_config({"ok"}, ", slo: {ttft: 10s, tpot: 10s}");
  const Json cell = cell_of(gate(0), "ok/m/cpu/hello");
  for (const char* name :
       {"time_to_first_token_seconds", "time_to_first_token_p90_seconds",
        "time_to_first_token_p99_seconds", "time_per_output_token_seconds",
        "inter_token_latency_seconds", "end_to_end_latency_seconds", "output_tokens_per_second",
        "requests_per_second", "goodput_requests_per_second", "load_seconds"}) {
    EXPECT_GT(metric_of(cell, name).value("current", -1.0), 0) << name;
  }
}

TEST_F(Servers, PassAgainstThemselvesAndFailWhenTheyGetMuchSlower) {
  const std::string prompts =
      "{hello: {text: Hello world, tokens: 8, concurrency: [1, 2], requests: 8}}\n"
      "limits: [{metrics: time_per_output_token_seconds, max_increase: 50%},\n"
      "         {metrics: '*tokens_per_second', mode: 'off'}]";
  write_config({"slower"}, "", prompts);
  Ended accepted = weir(scratch_, {"baseline", "accept"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_NE(cell_of(gate(0), "slower/m/cpu/hello@c2")["verdict"], "fail");
}

TEST_F(Servers, ThatFailEachSayHowWhileTheOthersGetTheirResults) {
  struct Case {
    const char* mode;
    const char* says;  // in the cell's reason
  };
  const std::vector<Case> cases{
      {"dies_early", "the server ended before it was up: exited with code 3"},
      {"exits_early", "the server ended before it was up: it exited with code 0"},
      {"never_up", "the server was not up within 2.0 s: http://127.0.0.1:"},
      {"dies_serving", "the server ended while it served: crashed: SIGSEGV"},
      {"refuses", "warm-up: 2 of 2 requests failed: 2 status (HTTP 500: out of memory)"}};
  std::vector<std::string> modes{"ok"};
  for (const Case& c : cases) modes.emplace_back(c.mode);
  write_config(modes, ", ready: {url: /health, timeout: 2s}");
  const Json verdict = gate(3);
  EXPECT_NE(cell_of(verdict, "ok/m/cpu/hello")["verdict"], "error");
  for (const Case& c : cases) {
    const Json cell = cell_of(verdict, std::string(c.mode) + "/m/cpu/hello");
    EXPECT_EQ(cell["verdict"], "error") << c.mode;
    EXPECT_NE(cell.value("reason", "").find(c.says), std::string::npos)
        << c.mode << ": " << cell.value("reason", "");
  }
  EXPECT_NE(last_.out.find("no such model"), std::string::npos) << "its last words are shown";
}

TEST_F(Servers, ThatTakeTheirTimeAreWaitedForByAnAnswerOrByALine) {
  write_config({"slow_start"});
  EXPECT_GE(
      metric_of(cell_of(gate(0), "slow_start/m/cpu/hello"), "load_seconds").value("current", 0.0),
      0.3);
  write_config({"ok"}, ", ready: {line: 'listening on \\d+'}");
  gate(0);
  write_config({"ok"}, ", ready: {line: 'never said', timeout: 1s}");
  EXPECT_NE(cell_of(gate(3), "ok/m/cpu/hello")
                .value("reason", "")
                .find("it printed no line that matches \"never said\""),
            std::string::npos);
}

TEST_F(Servers, ThatDoNotEndAreKilledAndThatIsSaid) {
  write_config({"stays"});
  const Json verdict = gate(0);
  EXPECT_NE(verdict.dump().find("the server did not end within 5 s of SIGTERM and was killed"),
            std::string::npos)
      << verdict.dump(1);
}

TEST_F(Servers, LeaveNothingBehind) {
  write_config({"leaves"});
  const Json verdict = gate(0);
  EXPECT_NE(verdict.dump().find("left a process running, which weir ended"), std::string::npos);
  const pid_t left = std::stoi(slurp(scratch_ / "left.pid"));
  EXPECT_NE(::kill(left, 0), 0) << left;
}

TEST_F(Servers, AreEndedWhenWeirIsInterruptedAndTheRunGoesOnLater) {
  write_config({"slower"}, "", "{hello: {text: Hello, tokens: 100, requests: 4}}");
  Weir process(scratch_, {"run"});
  for (int i = 0; i < 500 && processes_with(mark()).empty(); ++i) usleep(20'000);
  ASSERT_FALSE(processes_with(mark()).empty());
  process.kill(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 130);
  EXPECT_EQ(processes_with(mark()), std::vector<std::string>{});
  const Ended resumed = weir(scratch_, {"run", "--resume"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(Servers, ThatRunAlreadyAreAskedUnderTheirUrl) {
  const std::string port = "18" + std::to_string(100 + getpid() % 900);
  pid_t server = -1;
  const char* words[] = {k_fake.c_str(), "ok", port.c_str(), nullptr};
  ASSERT_EQ(posix_spawn(&server, words[0], nullptr, nullptr, const_cast<char**>(words), environ),
            0);
  spill(scratch_ / "model.bin", "no model at all");
  spill(
      scratch_ / "weir.yaml",
      "version: 1\nengines:\n  there: {kind: server, api: completions, ready: {timeout: 2s}, url: "
      "'http://127.0.0.1:" +
          port + "'}\n" +
          "models: {m: model.bin}\nbackends: {cpu: {}}\n"
          "prompts: {hello: {text: Hello, tokens: 4, rate: 100, requests: 8}}\ngate: {runs: 1}\n");
  const Json cell = cell_of(gate(0), "there/m/cpu/hello");
  EXPECT_GT(metric_of(cell, "requests_per_second").value("current", 0.0), 0);
  ::kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  EXPECT_NE(cell_of(gate(3), "there/m/cpu/hello").value("reason", "").find("was not up within"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::e2e
