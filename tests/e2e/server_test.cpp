// The built weir against servers that are none: started, asked, ended, with nothing left of them.
#include <map>

#include "tests/e2e/servers.hpp"

namespace weir::e2e {
namespace server_test {

TEST_F(Servers, AreMeasuredByWhatTheyAnswer) {
  write_config({"ok"}, ", slo: {ttft: 10m, tpot: 10m}");
  const Json cell = cell_of(gate(0), "ok/m/cpu/hello");
  for (const char* name :
       {"time_to_first_token_seconds", "time_to_first_token_p90_seconds",
        "time_to_first_token_p99_seconds", "time_per_output_token_seconds",
        "inter_token_latency_seconds", "end_to_end_latency_seconds", "output_tokens_per_second",
        "requests_per_second", "goodput_requests_per_second", "load_seconds",
        "cold_time_to_first_token_seconds"}) {
    EXPECT_GT(metric_of(cell, name).value("current", -1.0), 0) << name;
  }
}

TEST_F(Servers, AreAskedByTheDoctor) {
  write_config({"ok", "dies_early"});
  const Ended healthy = weir(scratch_, {"doctor", "--cell", "ok/m/cpu/hello"});
  EXPECT_EQ(healthy.exit_code, 0) << healthy.out << healthy.err;
  EXPECT_NE(healthy.out.find("it answered a request"), std::string::npos) << healthy.out;
  const Ended dead = weir(scratch_, {"doctor", "--cell", "dies_early/m/cpu/hello"});
  EXPECT_EQ(dead.exit_code, 3) << dead.out << dead.err;
  EXPECT_NE(dead.out.find("the server ended before it was up"), std::string::npos) << dead.out;
}

// Held to what they took before, and to a millionth of it: however busy the machine is, that is as
// far from a limit of a thousand times.
TEST_F(Servers, PassAgainstThemselvesAndFailWhenTheyGetMuchSlower) {
  const std::string prompts =
      "{hello: {text: Hello world, tokens: 8, concurrency: [1, 2], requests: 8, hold: none}}\n"
      "limits: [{metrics: time_per_output_token_seconds, max_increase: 100000%},\n"
      "         {metrics: '*tokens_per_second', mode: 'off'}]";
  write_config({"slower"}, "", prompts);
  Ended accepted = weir(scratch_, {"baseline", "accept"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_NE(cell_of(gate(0), "slower/m/cpu/hello@c2")["verdict"], "fail");
  for (const auto& entry : fs::recursive_directory_iterator(scratch_ / "baselines")) {
    if (!entry.is_regular_file()) continue;
    Json stored = Json::parse(slurp(entry.path()));
    for (Json& sessions : stored.at("sessions")) {
      for (Json& session : sessions) {
        for (Json& sample : session.at("samples").at("time_per_output_token_seconds"))
          sample = sample.get<double>() / 1e6;
      }
    }
    spill(entry.path(), stored.dump(1));
  }
  EXPECT_EQ(cell_of(gate(1), "slower/m/cpu/hello@c2")["verdict"], "fail");
}

TEST_F(Servers, ThatFailEachSayHowWhileTheOthersGetTheirResults) {
  struct Case {
    const char* mode;
    const char* reason;  // in the cell's reason
  };
  const std::vector<Case> cases{
      {"dies_early", "the server ended before it was up: exited with code 3"},
      {"exits_early", "the server ended before it was up: it exited with code 0"},
      {"never_up", "the server was not up within 2.0 s: http://127.0.0.1:"},
      {"dies_serving", "the server ended while it served: crashed: SIGSEGV"},
      {"refuses", "warm-up: 2 of 2 requests failed: 2 status (HTTP 500: out of memory)"}};
  std::vector<std::string> modes{"ok"};
  for (const Case& c : cases) modes.emplace_back(c.mode);
  write_config(modes);
  // Who comes up has the time for it.
  std::string config = slurp(scratch_ / "weir.yaml");
  const std::string command = "never_up, '{port}', " + mark() + "]";
  config.insert(config.find(command) + command.size(), ", ready: {url: /health, timeout: 2s}");
  spill(scratch_ / "weir.yaml", config);
  const Json verdict = gate(3);
  EXPECT_NE(cell_of(verdict, "ok/m/cpu/hello")["verdict"], "error");
  for (const Case& c : cases) {
    const Json cell = cell_of(verdict, std::string(c.mode) + "/m/cpu/hello");
    EXPECT_EQ(cell["verdict"], "error") << c.mode;
    EXPECT_NE(cell.value("reason", "").find(c.reason), std::string::npos)
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
  EXPECT_TRUE(fs::exists(scratch_ / "left.pid")) << "it left nothing";
}

TEST_F(Servers, AreEndedWhenWeirIsInterruptedAndTheRunGoesOnLater) {
  write_config({"ok"}, "", "{hello: {text: Hello, tokens: 100, requests: 4}}");
  Weir process(scratch_, {"run"}, answering(1));
  ASSERT_TRUE(eventually([&] { return slurp(scratch_ / "prompts").size() == 2; }));
  EXPECT_FALSE(processes_with(mark()).empty());
  process.kill(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 130);
  EXPECT_EQ(processes_with(mark()), std::vector<std::string>{});
  const Ended resumed = weir(scratch_, {"run", "--resume"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

// By start (`order` of its first step): how many records it brought. Those without are under -1.
std::map<int, int> starts_in(const fs::path& folder) {
  std::map<int, int> starts, by_order;  // the later line of an order is complete
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "run.jsonl") continue;
    std::istringstream lines(slurp(entry.path()));
    std::string line;
    while (std::getline(lines, line)) {
      const Json record = Json::parse(line);
      if (record.contains("cell") && record.contains("pass"))
        by_order[record.at("order")] = record.value("start", -1);
    }
  }
  for (const auto& [order, start] : by_order) ++starts[start];
  return starts;
}

// Two runs of three cells: two starts, each with a record of each cell.
TEST_F(Servers, ServeAllTheirCellsOnOneStartUnlessToldOtherwise) {
  const std::string prompts =
      "{hello: {text: Hello, tokens: 8, concurrency: [1, 2], requests: 4, hold: none}, "
      "bye: {text: Bye, tokens: 8, requests: 4}}";
  write_config({"ok"}, "", prompts);
  gate(0, {"--out", "shared"});
  EXPECT_EQ(starts_in(scratch_ / "shared"), (std::map<int, int>{{0, 3}, {3, 3}}));
  write_config({"ok"}, ", share_start: false", prompts);
  gate(0, {"--out", "own"});
  EXPECT_EQ(starts_in(scratch_ / "own"), (std::map<int, int>{{-1, 6}}));
}

// Two to warm up and eight of the first cell are answered: killed in the second one, the first
// one's numbers are on the disk.
TEST_F(Servers, ThatServeSeveralCellsLoseNoneThatWasWholeWhenWeirIsKilled) {
  write_config({"ok"}, "",
               "{one: {text: Hello, tokens: 16, requests: 8}, "
               "two: {text: Hello, tokens: 100, requests: 8}}\n");
  Weir process(scratch_, {"run", "--out", "killed"}, answering(10));
  const auto records = [&] {
    int lines = 0;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_ / "killed")) {
      if (entry.path().filename() != "run.jsonl") continue;
      const std::string text = slurp(entry.path());
      lines += static_cast<int>(std::count(text.begin(), text.end(), '\n')) - 1;
    }
    return lines;
  };
  EXPECT_TRUE(eventually([&] { return fs::exists(scratch_ / "killed") && records() == 1; }));
  process.kill(SIGKILL);
  process.wait();
  const Ended resumed = weir(scratch_, {"run", "--out", "killed", "--resume", "--json", "-"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(starts_in(scratch_ / "killed").at(0), 1) << "the one that was there was not run again";
}

// 8 KiB a request, six requests a cell: the limit is one cell's.
TEST_F(Servers, MayPrintAsMuchForEachCellAsIfItWereAlone) {
  const std::string prompts =
      "{one: {text: Hello, tokens: 8, requests: 4}, two: {text: Hello, tokens: 8, requests: 4}, "
      "three: {text: Hello, tokens: 8, requests: 4}}";
  write_config({"talks"}, ", output_limit: 64KiB", prompts);
  gate(0);
}

// It crashes within its fourth answer, which is the second cell's: each cell has one to warm up.
TEST_F(Servers, ThatDieTakeNoOtherCellWithThem) {
  write_config({"dies_serving"}, ", warm_up: 1",
               "{one: {text: Hello, tokens: 8, requests: 1}, "
               "two: {text: Hello, tokens: 8, requests: 4}, "
               "three: {text: Hello, tokens: 8, requests: 1}}");
  const Json verdict = gate(3);
  EXPECT_EQ(cell_of(verdict, "dies_serving/m/cpu/two")["verdict"], "error");
  for (const char* name : {"dies_serving/m/cpu/one", "dies_serving/m/cpu/three"}) {
    EXPECT_NE(cell_of(verdict, name)["verdict"], "error") << name;
  }
}

TEST_F(Servers, SayWhatTheyCountThemselves) {
  write_config({"ok", "miscounts"}, ", server_metrics: /metrics");
  const Json verdict = gate(0);
  const Json cell = cell_of(verdict, "ok/m/cpu/hello");
  ASSERT_EQ(cell["server_metrics"].size(), 1U);
  // Four requests of 8 tokens; the warm-up came before.
  EXPECT_EQ(cell["server_metrics"][0]["name"], "llamacpp:tokens_predicted_total");
  EXPECT_EQ(cell["server_metrics"][0]["value"], 32);
  EXPECT_EQ(cell["warnings"].dump().find("own metrics"), std::string::npos);
  // The gate's text says what shows them, and that does: of the run, and of what was written of it.
  const std::string run = verdict["run"].get<std::string>();
  EXPECT_NE(last_.err.find("servers  weir profile " + run), std::string::npos) << last_.err;
  const Ended shown = weir(scratch_, {"profile", run, "--json", "profiles.json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  const std::string line = "+32  grew  llamacpp:tokens_predicted_total";
  EXPECT_NE(shown.out.find(line), std::string::npos) << shown.out;
  const Ended again = weir(scratch_, {"profile", "profiles.json"});
  EXPECT_NE(again.out.find(line), std::string::npos) << again.out << again.err;
  EXPECT_EQ(weir(scratch_, {"profile", run + "/run.jsonl"}).out, again.out);
  // A server's cell is none that one program alone shows: it says what does.
  const Ended refused = weir(scratch_, {"profile", "ok/m/cpu/hello"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("weir profile RUN shows"), std::string::npos) << refused.err;
  EXPECT_NE(cell_of(verdict, "miscounts/m/cpu/hello")["warnings"].dump().find(
                "own metrics count 60 generated tokens, its answers 32"),
            std::string::npos)
      << cell_of(verdict, "miscounts/m/cpu/hello")["warnings"].dump();
}

TEST_F(Servers, AreAskedWithTheTokenOfTheEnvironmentWhichIsSaidNowhere) {
  ::setenv("WEIR_TEST_TOKEN", "sesame-0123", 1);
  write_config({"guarded"}, ", token_env: WEIR_TEST_TOKEN, server_metrics: /metrics");
  const Json cell = cell_of(gate(0), "guarded/m/cpu/hello");
  EXPECT_EQ(cell["server_metrics"].size(), 1U);
  // Another token: the server says what it got, weir does not.
  ::setenv("WEIR_TEST_TOKEN", "sesame-9999", 1);
  const std::string output = gate(3).dump() + last_.err;
  EXPECT_NE(output.find("HTTP 401: not with Authorization: Bearer ***"), std::string::npos)
      << output;
  for (const auto& entry : fs::recursive_directory_iterator(scratch_.path())) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(slurp(entry.path()).find("sesame"), std::string::npos) << entry.path();
  }
  EXPECT_EQ(output.find("sesame"), std::string::npos);
  ::unsetenv("WEIR_TEST_TOKEN");
  // Not set: said before any server starts, whatever else there is to measure.
  write_config({"guarded", "ok"}, ", token_env: WEIR_TEST_TOKEN");
  const Ended none = weir(scratch_, {"gate", "--out", "untouched"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("engine \"guarded\": the environment has no WEIR_TEST_TOKEN (token_env)"),
            std::string::npos)
      << none.err;
  EXPECT_FALSE(fs::exists(scratch_ / "untouched")) << "nothing was begun";
}

TEST_F(Servers, ThatAnswerOtherwiseAreADoubtUntilALimitSaysHowOftenTheyMay) {
  // Two to warm up, then requests 3 to 6: the first and the last of four differ.
  const std::string twice =
      "{hello: {text: Hello, tokens: 4, concurrency: 2, requests: 4, hold: none}}";
  write_config({"differs"}, ", max_different_outputs: 2", twice);
  EXPECT_NE(cell_of(gate(0), "differs/m/cpu/hello")["warnings"].dump().find("different outputs"),
            std::string::npos);
  write_config({"differs"}, ", max_different_outputs: 1", twice);
  EXPECT_NE(cell_of(gate(3), "differs/m/cpu/hello")
                .value("reason", "")
                .find("2 of 4 requests were answered otherwise than most of them "
                      "(max_different_outputs: 1)"),
            std::string::npos);
}

TEST_F(Servers, ArePlannedWithTheRunsAndRequestsOfEach) {
  // Two timed runs of all requests; of what is counted three of one request, one of a burst that is
  // held, or three of all.
  write_config({"ok"}, ", probes: [ggml]",
               "{chat: {text: Hello, tokens: 8, concurrency: [1, 4]},\n"
               "          busy: {text: Hello, tokens: 8, rate: 2.5, requests: 50}}");
  const auto seconds = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"plan", "--guess", "--shards", "3", "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    std::map<std::string, double> by_cell;
    const Json plan = json_of(weir(scratch_, words));
    for (const Json& shard : plan["shards"]) {
      EXPECT_EQ(shard["cells"].size(), 1U) << shard;
      by_cell[shard["cells"][0]] = shard["seconds"];
    }
    return by_cell;
  };
  // 0.16 s a request of 8 tokens, 0.08 and 0.24 those of the other lengths; 2 of them warm it up.
  const double start = 0.5;
  const double middle = start + 3 * 0.16, shorter = start + 3 * 0.08, longer = start + 3 * 0.24;
  const double each = start + 2 * 0.16;
  const auto all = seconds({}), counts = seconds({"--counts-only"});
  EXPECT_NEAR(counts.at("ok/m/cpu/chat@c1"), shorter + middle + longer, 1e-9);
  const double burst = each + 8 * 0.16 / 2, timed = each + 32 * 0.16 / 2;
  EXPECT_NEAR(counts.at("ok/m/cpu/chat@c4"), burst, 1e-9);
  EXPECT_NEAR(counts.at("ok/m/cpu/busy"), 3 * (each + 20 + 0.16), 1e-9);
  EXPECT_NEAR(all.at("ok/m/cpu/chat@c1"), shorter + middle + longer + 2 * (each + 8 * 0.16), 1e-9);
  EXPECT_NEAR(all.at("ok/m/cpu/chat@c4"), burst + 2 * timed, 1e-9);
  EXPECT_NEAR(all.at("ok/m/cpu/busy"), 5 * (each + 20 + 0.16), 1e-9);
}

TEST_F(Servers, AreSentFieldsOfTheirOwnWithEachRequestAndOtherFieldsAreOtherWork) {
  // Rates are of no interest: no machine is so busy that it is red by these.
  const auto write_salted = [&](const std::string& body) {
    write_config({"salted"}, ", extra_body: " + body,
                 "{hello: {text: Hello world, tokens: 8, requests: 4}}\n"
                 "limits: [{metrics: '*tokens_per_second', max_drop: 89%, tolerate: 80%}]");
  };
  write_salted("{cache_salt: x}");
  EXPECT_NE(cell_of(gate(0), "salted/m/cpu/hello")["verdict"], "error");
  const Ended accepted = weir(scratch_, {"baseline", "accept"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  const Json again = cell_of(gate(0), "salted/m/cpu/hello");
  EXPECT_NE(again["verdict"], "new") << "the same cell: " << again;
  EXPECT_NE(again["verdict"], "error") << again;
  write_salted("{cache_salt: x, user: me}");
  EXPECT_EQ(cell_of(gate(0), "salted/m/cpu/hello")["verdict"], "new") << "another cell";
  write_salted("{user: me}");
  EXPECT_NE(cell_of(gate(3), "salted/m/cpu/hello").value("reason", "").find("no salt"),
            std::string::npos);
  write_salted("{max_tokens: 1}");
  const Ended refused = weir(scratch_, {"gate"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("\"max_tokens\" is what weir itself sends; what says it in weir.yaml: "
                             "tokens of the prompt"),
            std::string::npos)
      << refused.err;
}

TEST_F(Servers, AreNotMistakenForAnotherOneThatListensAtTheirUrl) {
  // One of somebody else's, one of weir's server.
  const Port theirs, own;
  const std::string port = theirs.str(), own_port = own.str();
  pid_t server = -1;
  const char* words[] = {k_fake.c_str(), "ok", port.c_str(), nullptr};
  ASSERT_EQ(posix_spawn(&server, words[0], nullptr, nullptr, const_cast<char**>(words), environ),
            0);
  const auto engine_at = [&](const std::string& url_port) {
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  fixed: {kind: server, api: completions, command: [" + k_fake +
              ", ok, '" + own_port + "', " + mark() + "], url: 'http://localhost:" + url_port +
              "'}\nmodels: {m: model.bin}\nbackends: {cpu: {}}\n"
              "prompts: {hello: {text: Hello, tokens: 4}}\ngate: {runs: 2}\n"
              "limits: [{metrics: '*tokens_per_second', max_drop: 89%, tolerate: 80%}]\n");
  };
  // Until it is there.
  engine_at(port);
  ASSERT_TRUE(eventually([&] { return theirs.answers(); }));
  EXPECT_NE(cell_of(gate(3), "fixed/m/cpu/hello")
                .value("reason", "")
                .find("something listens at http://localhost:" + port + " already"),
            std::string::npos);
  ::kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  // Its own port, twice; and beside a base one server after the other, for both would have it.
  engine_at(own_port);
  EXPECT_NE(cell_of(gate(0), "fixed/m/cpu/hello")["verdict"], "error");
  const Json beside = gate(0, {"--against", "--", k_fake, "ok", own_port, mark()});
  EXPECT_NE(cell_of(beside, "fixed/m/cpu/hello")["verdict"], "error");
}

TEST_F(Servers, ThatRunAlreadyAreAskedUnderTheirUrl) {
  const Port own;
  const std::string port = own.str();
  pid_t server = -1;
  const char* words[] = {k_fake.c_str(), "ok", port.c_str(), nullptr};
  ASSERT_EQ(posix_spawn(&server, words[0], nullptr, nullptr, const_cast<char**>(words), environ),
            0);
  spill(scratch_ / "model.bin", "no model at all");
  const auto write_ready_timeout = [&](const std::string& ready) {
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  there: {kind: server, api: completions, ready: {timeout: " +
              ready + "}, url: 'http://127.0.0.1:" + port + "'}\n" +
              "models: {m: model.bin}\nbackends: {cpu: {}}\n"
              "prompts: {hello: {text: Hello, tokens: 4, rate: 100, requests: 8}}\n"
              "gate: {runs: 1}\n");
  };
  write_ready_timeout("2m");
  const Json cell = cell_of(gate(0), "there/m/cpu/hello");
  EXPECT_GT(metric_of(cell, "requests_per_second").value("current", 0.0), 0);
  ::kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  write_ready_timeout("2s");
  EXPECT_NE(cell_of(gate(3), "there/m/cpu/hello").value("reason", "").find("was not up within"),
            std::string::npos);
}

}  // namespace server_test
}  // namespace weir::e2e
