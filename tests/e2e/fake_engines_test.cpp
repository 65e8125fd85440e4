// The built weir against engines that misbehave: what is wrong is said for that cell alone.
#include <csignal>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace fake_engines_test {

const std::string k_fake = WEIR_BINARY_DIR "/tests/fake_engines/fake_engine";

class FakeEngines : public testing::Test {
 protected:
  // An engine for each mode, one model, the CPU, one prompt. Who ends by itself has the time for
  // it.
  void write_config(const std::vector<std::string>& modes, const std::string& gate = "{runs: 1}") {
    std::string engines;
    for (const std::string& mode : modes) {
      const bool hangs = mode == "hang" || mode == "ignore_term";
      engines += "  " + mode + ": {command: [" + k_fake + ", " + mode +
                 ", -m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, '{repeats}'], "
                 "output: llama-bench, timeout: " +
                 (hangs ? "2s" : "10m") + "}\n";
    }
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / "weir.yaml", "version: 1\nengines:\n" + engines +
                                      "models: {m: model.bin}\nbackends: {cpu: {}}\n"
                                      "prompts: {decode: {prompt_tokens: 0, tokens: 8}}\n"
                                      "gate: " +
                                      gate + "\n");
  }

  Json gate(int exit_code) {
    last_ = weir(scratch_, {"gate", "--json", "-"});
    EXPECT_EQ(last_.exit_code, exit_code) << last_.err;
    return json_of(last_);
  }

  Scratch scratch_;
  Ended last_;
};

TEST_F(FakeEngines, ThatFailEachGetAnErrorWhileTheOthersGetTheirResults) {
  struct Case {
    const char* mode;
    const char* reason;  // in the cell's reason
  };
  const std::vector<Case> cases{{"crash", "SIG"},
                                {"hang", "did not end within 2 s"},
                                {"ignore_term", "did not end within 2 s"},
                                {"silent", "printed nothing"},
                                {"garbage", "no llama-bench result"},
                                {"truncated_json", "JSON"},
                                {"nan", ""},
                                {"flood", "output_limit"}};
  std::vector<std::string> modes{"ok"};
  for (const Case& c : cases) modes.emplace_back(c.mode);
  write_config(modes);
  const Json verdict = gate(3);
  for (const Case& c : cases) {
    const Json cell = cell_of(verdict, std::string(c.mode) + "/m/cpu/decode");
    EXPECT_EQ(cell["verdict"], "error") << c.mode;
    EXPECT_NE(cell.value("reason", "").find(c.reason), std::string::npos)
        << c.mode << ": " << cell["reason"];
  }
  EXPECT_EQ(metric_of(cell_of(verdict, "ok/m/cpu/decode"), "decode_tokens_per_second")["verdict"],
            "new");
  EXPECT_EQ(processes_with(scratch_.path().string()), std::vector<std::string>{});
#ifndef __SANITIZE_ADDRESS__  // whose own memory would be counted
  // 64 MiB above the engine's own memory; the fake engine needs none to speak of.
  EXPECT_LT(last_.peak_kib, 64 * 1024) << "with an engine that printed 1 GB";
#endif
}

TEST_F(FakeEngines, ShowTheLastLinesOfTheirErrors) {
  write_config({"exit3"});
  const Json cell = cell_of(gate(3), "exit3/m/cpu/decode");
  EXPECT_NE(cell.value("stderr_tail", ""), "");
  EXPECT_NE(last_.err.find(cell.value("stderr_tail", "?").substr(0, 10)), std::string::npos)
      << last_.err;
}

// On a CI system a line that begins like that is obeyed.
TEST_F(FakeEngines, CanNotSpeakToTheCiSystem) {
  spill_program(scratch_ / "engine",
                "#!/bin/sh\necho '::error::obey me' >&2\necho '##[group]obey me' >&2\n"
                "echo '::stop-commands::obey'\nexit 3\n");
  write_config({"ok"});
  std::string config = slurp(scratch_ / "weir.yaml");
  config.replace(config.find(k_fake), k_fake.size(), "./engine");
  spill(scratch_ / "weir.yaml", config);
  for (const char* verb : {"run", "gate"}) {
    for (const Ended& ended : {weir(scratch_, {verb}), weir(scratch_, {verb, "--json", "-"})}) {
      EXPECT_EQ(ended.exit_code, 3) << ended.err;
      EXPECT_NE((ended.out + ended.err).find("obey me"), std::string::npos) << "still told";
      std::istringstream lines(ended.out + "\n" + ended.err);
      for (std::string line; std::getline(lines, line);) {
        const std::size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
        EXPECT_NE(line.compare(begin, 2, "::"), 0) << verb << ": " << line;
        EXPECT_NE(line.compare(begin, 3, "##["), 0) << verb << ": " << line;
      }
    }
  }
}

// Names of files come from repositories and archives: GitHub reads workflow commands from lines of
// standard output.
TEST(NamesOfFiles, CanNotSpeakToTheCiSystem) {
  const Scratch scratch;
  spill(scratch / "models/a\n::error::b.gguf", "");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"model", "make", "::error::model.gguf"},
        {"init", "-c", "weir\n::error::config.yaml"}}) {
    const Ended ended = weir(scratch, words);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_NE(ended.out.find("error"), std::string::npos) << ended.out;
    for (const std::string& text : {"\n" + ended.out, "\n" + ended.err}) {
      EXPECT_EQ(text.find("\n::"), std::string::npos) << text;
      EXPECT_EQ(text.find("\n  ::"), std::string::npos) << text;
    }
  }
}

TEST_F(FakeEngines, LeaveNoOrphanAfterCtrlCAndCanBeResumed) {
  for (const int signal : {SIGINT, SIGTERM}) {
    write_config({"ok", "held"}, "{runs: 3}");
    const std::string out = "out" + std::to_string(signal);
    const fs::path hold_file = scratch_ / "held", starts = scratch_ / ("starts-" + out);
    spill(hold_file, "");
    Weir interrupted(
        scratch_, {"run", "--out", out},
        {{"FAKE_ENGINE_HELD", hold_file.string()}, {"FAKE_ENGINE_LOG", starts.string()}});
    EXPECT_TRUE(eventually([&] { return slurp(starts).find("held ") != std::string::npos; }));
    interrupted.kill(signal);
    const Ended ended = interrupted.wait();
    fs::remove(hold_file);
    EXPECT_EQ(ended.exit_code, 130) << ended.err;
    EXPECT_NE(ended.err.find("--resume"), std::string::npos) << ended.err;
    EXPECT_EQ(processes_with(scratch_.path().string()), std::vector<std::string>{});
    const Ended resumed = weir(scratch_, {"run", "--resume", "--out", out});
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  }
}

TEST_F(FakeEngines, AreNotStartedWhenSomethingCanBeKnownToBeWrongBefore) {
  write_config({"ok"});
  const std::string good = slurp(scratch_ / "weir.yaml");
  struct Case {
    const char* from;
    const char* to;
    const char* message;
  };
  for (const Case& c :
       {Case{"model.bin", "absent.bin", "absent.bin"},
        Case{"backends: {cpu: {}}", "backends: {cqu: {}}", "device"},
        Case{"{model}", "{modle}", "did you mean"},
        Case{"output: llama-bench", "output: llama-bnch", "did you mean \"llama-bench\""},
        Case{k_fake.c_str(), "/no/such/engine", "/no/such/engine"}}) {
    std::string text = good;
    text.replace(text.find(c.from), std::string(c.from).size(), c.to);
    spill(scratch_ / "weir.yaml", text);
    const Ended ended =
        weir(scratch_, {"gate"}, {{"FAKE_ENGINE_LOG", (scratch_ / "starts").string()}});
    EXPECT_EQ(ended.exit_code, 2) << c.to;
    EXPECT_NE(ended.err.find(c.message), std::string::npos) << ended.err;
    EXPECT_FALSE(fs::exists(scratch_ / "starts")) << c.to;
  }
}

// Counts and a rate read out of an engine's own log lines.
TEST_F(FakeEngines, ReportTheirOwnCountsAndFailNamingEachThatGotWorse) {
  const auto write_engine = [&](const char* counts, const char* rate) {
    spill_program(scratch_ / "engine",
                  std::string("#!/bin/sh\necho 'loading…' >&2\necho '[info] Metal: ") + counts +
                      "' >&2\necho 'Hello there'\necho 'Token time: " + rate + "'\n");
  };
  spill(scratch_ / "weir.yaml", R"(version: 1
engines:
  mine:
    command: [./engine, --tokens, "{tokens}"]
    output: generic
    metrics:
      dispatches_per_token: {regex: '(\d+) dispatches'}
      barriers_per_token: {regex: '(\d+) barriers'}
      syncs_per_token: {regex: '(\d+) syncs'}
      decode_tokens_per_second: {regex: '\(([\d.]+) tok/s\)'}
models: {m: model.bin}
backends: {metal: {}}
prompts: {decode: {tokens: 8}}
)");
  spill(scratch_ / "model.bin", "no model at all");
  write_engine("690 dispatches, 690 barriers, 1 syncs", "71ms (14.1 tok/s)");
  ASSERT_EQ(weir(scratch_, {"run"}).exit_code, 0);
  const Ended accepted = weir(scratch_, {"baseline", "accept"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.out << accepted.err;
  EXPECT_EQ(weir(scratch_, {"gate"}).exit_code, 0);
  // The runs that accept counts give no times: accepting again loses nothing.
  const std::string stored = relative_files(scratch_ / "baselines");
  ASSERT_EQ(weir(scratch_, {"baseline", "accept", "--counts-only"}).exit_code, 0);
  EXPECT_EQ(relative_files(scratch_ / "baselines"), stored);

  // A copy under another name must not compete with the real file.
  const fs::path folder = scratch_ / "baselines/mine/m/metal/decode";
  fs::copy_file(folder / "metal-unseen.json", folder / "aaa.json");
  EXPECT_EQ(weir(scratch_, {"gate"}).exit_code, 2);
  fs::remove(folder / "aaa.json");

  write_engine("706 dispatches, 930 barriers, 17 syncs", "83ms (12.0 tok/s)");
  const Ended ended = weir(scratch_, {"gate", "--json", "-"});
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  const Json cell = json_of(ended)["cells"][0];
  for (const char* metric : {"dispatches_per_token", "barriers_per_token", "syncs_per_token",
                             "decode_tokens_per_second"}) {
    EXPECT_EQ(metric_of(cell, metric)["verdict"], "fail") << metric << "\n" << ended.err;
  }
  EXPECT_EQ(metric_of(cell, "syncs_per_token")["current"], 17);
}

// An option that is taken and does nothing is worse than one that is refused.
TEST_F(FakeEngines, ObeyEveryOptionOrSayWhyNot) {
  write_config({"ok"});
  Ended ended = weir(scratch_, {"run", "--dry-run", "--json", "-"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json commands = json_of(ended)["commands"];
  ASSERT_EQ(commands.size(), 1U) << "one timed process, nothing sees counts";
  EXPECT_EQ(commands[0]["cell"], "ok/m/cpu/decode");
  EXPECT_EQ(commands[0]["pass"], "timed");
  EXPECT_EQ(commands[0]["argv"][1], "ok");
  ASSERT_EQ(weir(scratch_, {"run"}).exit_code, 0);
  ended = weir(scratch_, {"baseline", "accept", "--json", "-"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(json_of(ended)["schema"], "weir.accepted/1");
  EXPECT_EQ(json_of(ended)["cells"][0]["outcome"], "accepted");
  EXPECT_EQ(json_of(ended)["cells"][0]["path"].get<std::string>().find("baselines/ok/m/cpu/"), 0U);
  // A run is judged under its own configuration; naming that one is no mistake.
  EXPECT_EQ(weir(scratch_, {"gate", "--from", "-c", "./weir.yaml"}).exit_code, 0);
  ended = weir(scratch_, {"gate", "--from", "-c", "other.yaml"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_NE(ended.err.find("leave -c other.yaml out"), std::string::npos) << ended.err;
  ended = weir(scratch_, {"baseline", "accept", "--json", "accepted.json"});
  EXPECT_EQ(parse_json(slurp(scratch_ / "accepted.json"))->at("cells")[0]["outcome"], "same");

  const std::pair<std::vector<std::string>, const char*> k_refused[] = {
      {{"gate", "--from", "--counts-only"}, "--from judges what RUN measured"},
      {{"gate", "--from", "--runs", "3"}, "--from judges what RUN measured"},
      {{"compare", "a", "b", "-c", "x"}, "B's own configuration"},
      {{"compare", "a", "b", "--out", "x"}, "given with their folders"},
      {{"compare", "a", "b", "--baselines", "x"}, "takes the place of stored baselines"},
  };
  for (const auto& [arguments, message] : k_refused) {
    ended = weir(scratch_, arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments.back();
    EXPECT_NE((ended.out + ended.err).find(message), std::string::npos) << ended.out << ended.err;
  }
}

// A limit on the size of files stands for a full disk, with cells that are counted in parallel.
TEST_F(FakeEngines, LoseNoFinishedRecordOnAFullDisk) {
  spill_program(scratch_ / "engine", "#!/bin/sh\necho '65 syncs'\n");
  std::string prompts;
  for (int i = 8; i < 20; ++i)
    prompts += "p" + std::to_string(i) + ": {tokens: " + std::to_string(i) + "}, ";
  spill(scratch_ / "model.bin", "no model at all");
  spill(
      scratch_ / "weir.yaml",
      "version: 1\nengines:\n  mine: {command: [./engine, '{model}', '{tokens}'], output: generic, "
      "metrics: {syncs_per_token: {regex: '(\\d+) syncs'}}}\n"
      "models: {m: model.bin}\nbackends: {cpu: {}}\nprompts: {" +
          prompts + "}\n");
  ASSERT_EQ(weir(scratch_, {"run", "--counts-only", "--out", "whole"}).exit_code, 0);
  const auto journal = [&](const std::string& out) {
    return fs::directory_iterator(scratch_ / out)->path() / "run.jsonl";
  };
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{fs::file_size(journal("whole")) - 1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  const Ended ended = weir(scratch_, {"run", "--counts-only", "--out", "full"});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_NE(ended.err.find("cannot be written"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("Go on with: weir run --resume"), std::string::npos) << ended.err;
  const std::string records = slurp(journal("full"));
  EXPECT_TRUE(records.ends_with("}\n")) << records.substr(records.size() - 100);
  EXPECT_GT(std::count(records.begin(), records.end(), '\n'), 5);
  const Ended resumed =
      weir(scratch_, {"run", "--counts-only", "--out", "full", "--resume", "--json", "-"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const std::string all = slurp(journal("full"));
  EXPECT_EQ(all.substr(0, records.size()), records);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 13) << "the header and twelve records";
}

TEST_F(FakeEngines, SeeNoTokenAndNoFileThatGivesTheRunnerOrders) {
  spill_program(scratch_ / "engine", "#!/bin/sh\nenv > seen\nexec '" + k_fake + "' ok \"$@\"\n");
  const auto config = [&](const std::string& env) {
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  mine: {command: [./engine, -m, '{model}', -p, "
          "'{prompt_tokens}', -n, '{tokens}', -r, '{repeats}'], output: llama-bench" +
              env +
              "}\nmodels: {m: model.bin}\nbackends: {cpu: {}}\n"
              "prompts: {decode: {prompt_tokens: 0, tokens: 8}}\ngate: {runs: 1}\n");
  };
  const std::map<std::string, std::string> around{{"GITHUB_TOKEN", "planted"},
                                                  {"GITHUB_ENV", "/tmp/planted"},
                                                  {"ACTIONS_RUNTIME_URL", "planted"},
                                                  {"HF_TOKEN", "planted"}};
  config("");
  ASSERT_EQ(weir(scratch_, {"run"}, around).exit_code, 0);
  EXPECT_NE(slurp(scratch_ / "seen").find("PATH="), std::string::npos);
  EXPECT_EQ(slurp(scratch_ / "seen").find("planted"), std::string::npos)
      << slurp(scratch_ / "seen");
  Ended ended = weir(scratch_, {"run", "--dry-run"}, around);
  EXPECT_NE(ended.out.find("  # mine/m/cpu/decode"), std::string::npos) << ended.out;
  // The machine of the tests may have more, such as an SSH agent.
  for (const char* part :
       {"withheld from engines: ", "ACTIONS_RUNTIME_URL, ", "GITHUB_ENV, ", "GITHUB_TOKEN, ",
        "HF_TOKEN", " (a name under env without a value passes it through)"}) {
    EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
  }
  ended = weir(scratch_, {"doctor"}, around);
  EXPECT_NE(ended.out.find("HF_TOKEN"), std::string::npos) << ended.out;

  config(", env: {HF_TOKEN: }");
  ASSERT_EQ(weir(scratch_, {"run"}, around).exit_code, 0);
  EXPECT_NE(slurp(scratch_ / "seen").find("HF_TOKEN=planted\n"), std::string::npos);
  EXPECT_EQ(slurp(scratch_ / "seen").find("GITHUB_TOKEN"), std::string::npos);
  ended = weir(scratch_, {"run", "--dry-run", "--json", "-"}, around);
  EXPECT_EQ(json_of(ended)["commands"][0]["passed"], Json::parse(R"(["HF_TOKEN"])"));
  EXPECT_EQ(ended.err.find("HF_TOKEN"), std::string::npos) << ended.err;
}

// Cut off after the first process of a run: what is missing is never taken for measured.
TEST_F(FakeEngines, OfAnInterruptedRunAreNeitherPassedNorAccepted) {
  spill_program(scratch_ / "engine",
                "#!/bin/sh\necho '65 dispatches'\necho 'Token time: 71ms (14.1 tok/s)'\n");
  spill(scratch_ / "weir.yaml", R"(version: 1
engines:
  mine:
    command: [./engine, --tokens, "{tokens}"]
    output: generic
    metrics:
      dispatches_per_token: {regex: '(\d+) dispatches'}
      decode_tokens_per_second: {regex: '\(([\d.]+) tok/s\)'}
models: {m: model.bin}
backends: {metal: {}}
prompts: {a: {tokens: 8}, b: {tokens: 8}}
gate: {runs: 2}
)");
  spill(scratch_ / "model.bin", "no model at all");
  ASSERT_EQ(weir(scratch_, {"run"}).exit_code, 0);
  ASSERT_EQ(weir(scratch_, {"baseline", "accept"}).exit_code, 0);
  ASSERT_EQ(weir(scratch_, {"gate", "--from"}).exit_code, 0);
  const auto journal = [&] {
    for (const auto& folder : fs::directory_iterator(scratch_ / "weir-out")) {
      if (fs::exists(folder.path() / "run.jsonl") && folder.path().filename() != "accept") {
        return folder.path() / "run.jsonl";
      }
    }
    return fs::path();
  }();
  std::istringstream lines(slurp(journal));
  std::string header, first, second;
  std::getline(lines, header);
  std::getline(lines, first);
  std::getline(lines, second);

  // Counts of one cell and no time at all.
  spill(journal, header + "\n" + first + "\n");
  Ended ended = weir(scratch_, {"gate", "--from", "--json", "-"});
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  Json verdict = json_of(ended);
  EXPECT_EQ(cell_of(verdict, "mine/m/metal/a")["verdict"], "pass");
  const Json lost = cell_of(verdict, "mine/m/metal/b");
  EXPECT_EQ(lost["verdict"], "error");
  EXPECT_NE(lost.value("reason", "").find("interrupted"), std::string::npos) << lost;
  for (const Json& judgement : lost["judgements"])
    EXPECT_EQ(judgement["subject"], "placement") << judgement;
  EXPECT_NE(dump_json(verdict["not_judged"]).find("in 2 of 2 cells"), std::string::npos)
      << verdict["not_judged"];
  ended = weir(scratch_, {"baseline", "accept"});
  EXPECT_EQ(ended.exit_code, 2) << ended.out;
  EXPECT_NE(ended.err.find("--resume"), std::string::npos) << ended.err;

  // All counts: they are judged, and the first line says that times are missing.
  spill(journal, header + "\n" + first + "\n" + second + "\n");
  ended = weir(scratch_, {"gate", "--from", "--json", "-"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  verdict = json_of(ended);
  EXPECT_EQ(verdict["verdict"], "pass");
  EXPECT_NE(dump_json(verdict["not_judged"]).find("interrupted"), std::string::npos);
  EXPECT_EQ(weir(scratch_, {"baseline", "accept"}).exit_code, 2);
}

TEST_F(FakeEngines, ThatAnotherConfigurationMeasuredAreNotAcceptedForThisOne) {
  write_config({"ok"});
  fs::rename(scratch_ / "weir.yaml", scratch_ / "a.yaml");
  fs::copy_file(scratch_ / "a.yaml", scratch_ / "b.yaml");
  ASSERT_EQ(weir(scratch_, {"gate", "-c", "a.yaml"}).exit_code, 0);
  const Ended refused = weir(scratch_, {"baseline", "accept", "-c", "b.yaml"});
  EXPECT_EQ(refused.exit_code, 2) << refused.out;
  EXPECT_THAT(refused.err, testing::HasSubstr("was measured under a.yaml, not b.yaml"));
  EXPECT_FALSE(fs::exists(scratch_ / "baselines"));
  const Ended accepted = weir(scratch_, {"baseline", "accept", "-c", "./a.yaml"});
  EXPECT_EQ(accepted.exit_code, 0) << accepted.err;
}

// Nothing that leaves weir may name what is private; what stays with its owner does.
TEST_F(FakeEngines, ThatArePrivateAreShownByAnAliasEverywhere) {
  spill_program(scratch_ / "bin/falcon",
                "#!/bin/sh\necho \"falcon: $2: $4\" >&2\n"
                "test -f broken && { echo '::error::no such layer in' $2 >&2; exit 3; }\n"
                "echo '65 dispatches'\necho 'Token time: 71ms (14.1 tok/s)'\n");
  spill(scratch_ / "weir.yaml", R"(version: 1
engines:
  falcon-engine:
    command: [bin/falcon, -m, "{model}", -p, "{prompt}", "{tokens}"]
    output: generic
    private: true
    metrics:
      dispatches_per_token: {regex: '(\d+) dispatches'}
      decode_tokens_per_second: {regex: '\(([\d.]+) tok/s\)'}
models: {acme-13b: {path: weights/acme-secret.bin, private: true}}
backends: {metal: {}}
prompts: {contract: {text: "Dear Ms Miller", tokens: 8, private: true}}
gate: {runs: 1}
)");
  spill(scratch_ / "weights/acme-secret.bin", "no model at all");
  const auto names_something = [](const std::string& text) -> std::string {
    for (const char* word : {"falcon", "acme", "contract", "Miller", "weights"}) {
      if (text.find(word) != std::string::npos) return word;
    }
    return "";
  };
  const std::map<std::string, std::string> github{
      {"GITHUB_ACTIONS", "true"}, {"GITHUB_STEP_SUMMARY", (scratch_ / "summary.md").string()}};
  const auto quiet_about_it = [&](std::vector<std::string> arguments, int exit_code) {
    const Ended ended = weir(scratch_, arguments, github);
    EXPECT_EQ(ended.exit_code, exit_code) << arguments[0] << ended.out << ended.err;
    EXPECT_EQ(names_something(ended.out), "") << arguments[0] << "\n" << ended.out;
    EXPECT_EQ(names_something(ended.err), "") << arguments[0] << "\n" << ended.err;
    return ended;
  };
  const std::vector<std::string> gate{"gate",   "--json",        "v.json", "--markdown",
                                      "v.md",   "--junit",       "v.xml",  "--html",
                                      "v.html", "--openmetrics", "v.txt"};
  quiet_about_it({"run", "--json", "-"}, 0);
  quiet_about_it({"run", "--dry-run"}, 0);
  quiet_about_it({"baseline", "accept"}, 0);
  quiet_about_it(gate, 0);
  const std::string shown = parse_json(slurp(scratch_ / "v.json"))->at("cells")[0]["cell"];
  quiet_about_it({"gate", "--cell", shown, "--counts-only"}, 0);
  quiet_about_it({"gate", "--from", "--cell", shown}, 0);
  spill(scratch_ / "broken", "");
  const Ended broken = quiet_about_it(gate, 3);
  EXPECT_NE(broken.out.find("no such layer"), std::string::npos) << "its last words are shown";
  for (const char* file : {"v.json", "v.md", "v.xml", "v.html", "v.txt", "summary.md"}) {
    EXPECT_EQ(names_something(slurp(scratch_ / file)), "") << file;
  }
  quiet_about_it({"baseline", "accept"}, 3);
  fs::remove(scratch_ / "weights/acme-secret.bin");
  quiet_about_it({"gate"}, 2);
  std::string journals;
  for (const auto& entry : fs::recursive_directory_iterator(scratch_ / "weir-out")) {
    if (entry.path().filename() == "run.jsonl") journals += slurp(entry.path());
    if (entry.path().filename() == "verdict.json") {
      EXPECT_EQ(names_something(slurp(entry.path())), "") << "it is made to be shown";
    }
  }
  EXPECT_EQ(names_something(journals), "falcon");
  // Its owner's own files have the true names, or no baseline would be found by them.
  EXPECT_TRUE(fs::exists(scratch_ / "baselines/falcon-engine/acme-13b/metal/contract"));
}

}  // namespace fake_engines_test
}  // namespace weir::e2e
