// Measuring, judging and accepting in process: every effect is a fake.
#include "gate/flow/gate.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/flow/accept.hpp"
#include "gate/flow/explain.hpp"
#include "gate/flow/judge.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/stored_baselines.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

#include "tests/flow/fake_world.hpp"

namespace weir::flow {
namespace gate_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using tests::FakeWorld;
using tests::k_timed_yaml;

TEST(Run, MeasuresTheMatrixAndWritesARun) {
  FakeWorld world(k_timed_yaml);
  const auto answer = run_matrix(world.job(), {});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->code, ExitCode::pass);
  EXPECT_THAT(answer->text, HasSubstr("bench / tiny / cpu / decode"));
  EXPECT_THAT(answer->text, HasSubstr("run /out/"));
  const Json json = Json::parse(answer->json);
  EXPECT_EQ(json["schema"], "weir.profiles/1");
  EXPECT_EQ(json["profiles"].size(), 2U);
  EXPECT_EQ(world.processes.started.size(), 6U) << "3 runs of 2 cells";
  const auto run = read_measured(world.job(), "");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->profiles.size(), 2U);
  EXPECT_EQ(run->interrupted, "");
}

// A world in which each engine crashes.
struct Crashing {
  explicit Crashing(FakeWorld& world)
      : broken{world.files, processes,  world.clock, world.locks,    world.http,
               world.pause, world.coin, world.load,  world.terminal, world.world.environment},
        job{broken, world.job().selection, world.job().output} {}

  run::FakeProcesses processes{[](const sys::ProcessSpec&) {
    sys::Finished finished;
    finished.ended = sys::HowEnded::signaled;
    finished.signal = 11;
    return finished;
  }};
  sys::World broken;
  Job job;
};

TEST(Run, OnlyShowsWhatADryOneWouldStart) {
  FakeWorld world(k_timed_yaml);
  RunOptions options;
  options.dry_run = true;
  Job job = world.job();
  job.selection.cells = {"*/decode"};
  const auto answer = run_matrix(job, options);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_THAT(answer->text, HasSubstr("/project/bench -m "));
  EXPECT_THAT(answer->text, HasSubstr("-n 16"));
  EXPECT_THAT(answer->text, Not(HasSubstr("-n 8")));
  EXPECT_TRUE(world.processes.started.empty());
  const std::vector<std::string> lines = text::lines(answer->text);
  EXPECT_THAT(std::set(lines.begin(), lines.end()), testing::SizeIs(lines.size()));
  EXPECT_THAT(lines, testing::Contains(testing::EndsWith("decode, 3 times")));
}

TEST(Run, NotesWhatTheMatrixLeavesOut) {
  std::string yaml = k_timed_yaml;
  yaml.insert(yaml.find("  other:"), "  hello: {text: hello, tokens: 8}\n");
  FakeWorld world(yaml);
  Job job = world.job();
  job.output.quiet = false;
  for (const bool is_dry : {true, false}) {
    RunOptions options;
    options.dry_run = is_dry;
    world.terminal.err.clear();
    const auto answer = run_matrix(job, options);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_THAT(is_dry ? world.terminal.err : answer->text,
                HasSubstr("note: left out: bench \u00d7 hello: the command takes no text"));
  }
}

TEST(Run, IsAnErrorWhereTheEngineCrashes) {
  FakeWorld world(k_timed_yaml);
  Crashing crashing(world);
  Job& job = crashing.job;
  const auto answer = run_matrix(job, {});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->code, ExitCode::unmeasured);
}

TEST(Interrupted, NamesTheCommandThatGoesOn) {
  struct Case {
    const char* verb;
    const char* command;
    Result<Answer> (*flow)(const Job&);
  };
  const auto measure = [](const Job& job) {
    RunOptions options;
    options.wanted.verb = "run";
    return run_matrix(job, options);
  };
  for (const Case& test_case : {Case{"run", "weir run --resume /out/", measure},
                                {"baseline accept", "weir baseline accept and the same options",
                                 [](const Job& job) { return accept(job, {}); }}}) {
    FakeWorld world(k_timed_yaml);
    run::FakeProcesses stopped{[](const sys::ProcessSpec& spec) {
      (void)std::raise(SIGINT);
      return run::FakeProcesses::good(spec);
    }};
    sys::World inside{
        world.files, stopped,    world.clock, world.locks,    world.http,
        world.pause, world.coin, world.load,  world.terminal, world.world.environment};
    const auto answer = test_case.flow(Job{inside, world.job().selection, world.job().output});
    ASSERT_FALSE(answer) << test_case.verb;
    EXPECT_EQ(answer.error().code, Code::interrupted) << test_case.verb;
    EXPECT_THAT(answer.error().message, StartsWith("interrupted")) << test_case.verb;
    EXPECT_THAT(answer.error().message, HasSubstr(test_case.command));
    // A gate cannot go on with what another verb planned: nobody is sent there.
    const auto read = read_measured(world.job(), "");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_THAT(read->interrupted, HasSubstr(std::string("weir ") + test_case.verb));
    EXPECT_EQ(read->interrupted.find("weir gate"), std::string::npos) << read->interrupted;
  }
}

TEST(Interrupted, AnAcceptGoesOnWithItsOwnRun) {
  FakeWorld world(k_timed_yaml);
  std::size_t started = 0;
  run::FakeProcesses stopped{[&started](const sys::ProcessSpec& spec) {
    if (++started == 2) (void)std::raise(SIGINT);
    return run::FakeProcesses::good(spec);
  }};
  sys::World inside{world.files, stopped,    world.clock, world.locks,    world.http,
                    world.pause, world.coin, world.load,  world.terminal, world.world.environment};
  ASSERT_FALSE(accept(Job{inside, world.job().selection, world.job().output}, {}));
  const auto again = accept(world.job(), {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_LT(world.processes.started.size(), 6U) << "3 runs of 2 cells, less what was kept";
  EXPECT_EQ(run::list_runs(world.files, "/out").size(), 1U) << "the same run";
}

TEST(Gate, ChecksEachPlaceOfAReportBeforeAnythingIsMeasured) {
  for (std::size_t i = 0; i < report::report_formats().size(); ++i) {
    FakeWorld world(k_timed_yaml);
    GateOptions options;
    options.files.files[i] = "/nowhere/report";
    const auto answer = gate(world.job(), options);
    ASSERT_FALSE(answer) << report::report_formats()[i].option;
    EXPECT_EQ(answer.error().code, Code::usage) << report::report_formats()[i].option;
    EXPECT_THAT(answer.error().message, HasSubstr("/nowhere"));
    EXPECT_TRUE(world.processes.started.empty()) << report::report_formats()[i].option;
  }
}

TEST(Gate, WritesEachReportOfTheTable) {
  FakeWorld world(k_timed_yaml);
  GateOptions options;
  for (std::size_t i = 0; i < report::report_formats().size(); ++i) {
    options.files.files[i] = fmt::format("/out/report{}", report::report_formats()[i].option);
  }
  const auto answer = gate(world.job(), options);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_THAT(*world.files.read("/out/report--junit", 1 << 20), StartsWith("<?xml"));
  EXPECT_THAT(*world.files.read("/out/report--html", 1 << 24), HasSubstr("<html"));
  EXPECT_THAT(*world.files.read("/out/report--openmetrics", 1 << 20), EndsWith("# EOF\n"));
  EXPECT_THAT(*world.files.read("/out/report--markdown", 1 << 20), HasSubstr("decode"));
  EXPECT_THAT(world.terminal.out, HasSubstr("tiny \u00d7 cpu \u00d7 decode, other"));
}

TEST(Gate, PutsWhatDrawsFiguresIntoThePageWhereItIsInstalled) {
  const std::string pages = sys::folder_of(sys::own_program_path()) + "/share/weir/web/";
  for (const bool installed : {false, true}) {
    FakeWorld world(k_timed_yaml);
    if (installed) {
      world.files.put(pages + "index.html", "");
      world.files.put(pages + "report.html", "<script>draw()</script>\n");
    }
    GateOptions options;
    for (std::size_t i = 0; i < report::report_formats().size(); ++i) {
      if (report::report_formats()[i].is_page) options.files.files[i] = "/out/page";
    }
    ASSERT_TRUE(gate(world.job(), options));
    const std::string page = world.files.read("/out/page", 1 << 24).value();
    EXPECT_EQ(page.find("draw()") != page.npos, installed);
    EXPECT_EQ(page.find("Content-Security-Policy") == page.npos, installed)
        << "what is installed brings its own";
  }
}

// A cell that only result files have, next to one of an engine that is started.
TEST(Gate, NamesTheCommandOfTheBaseWhereItsProgramIsAbsent) {
  for (const char* program : {"./nosuch", "nosuch", "/project/tiny.bin"}) {
    FakeWorld world(k_timed_yaml);
    GateOptions options;
    options.against = "";
    options.trailing_arguments = {program, "-m",       "{model}", "-p",       "{prompt_tokens}",
                                  "-n",    "{tokens}", "-r",      "{repeats}"};
    const auto answer = gate(world.job(), options);
    ASSERT_FALSE(answer) << program;
    EXPECT_EQ(answer.error().code, Code::config) << program;
    EXPECT_THAT(answer.error().message, StartsWith(fmt::format("--against -- {}: ", program)));
    EXPECT_THAT(answer.error().message, Not(HasSubstr("weir.yaml"))) << program;
    EXPECT_TRUE(world.processes.started.empty()) << program;
  }
}

TEST(Gate, LeavesCellsOfResultFilesOutWhereItStartsEngines) {
  std::string yaml = k_timed_yaml;
  const std::size_t engines = yaml.find("engines:");
  ASSERT_NE(engines, std::string::npos);
  FakeWorld world(yaml);
  const auto alone = gate(world.job(), {});
  ASSERT_TRUE(alone) << alone.error().message;
  const std::size_t started = world.processes.started.size();
  const std::size_t line = yaml.find('\n', engines);
  yaml.insert(line + 1, "  vllm: {output: vllm-bench}\n");
  FakeWorld both(yaml);
  const auto answer = gate(both.job(), {});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(both.processes.started.size(), started);
  EXPECT_THAT(both.terminal.out, HasSubstr("weir gate --results"));
}

std::string vllm_result(double throughput) {
  return fmt::format(
      R"({{"model_id": "m", "num_prompts": 100, "completed": 100, "failed": 0, "request_rate": "inf",
           "total_output_tokens": 2100, "request_throughput": 8.0, "output_throughput": {},
           "median_ttft_ms": 70.25, "p99_ttft_ms": 180.0}})",
      throughput);
}

TEST(Gate, JudgesResultsOfAnotherToolAsRunsOfACell) {
  FakeWorld world("");
  (void)world.files.remove("/project/weir.yaml");  // none is needed
  Job job = world.job();
  GateOptions options;
  for (const char* name : {"/a.json", "/b.json", "/c.json"}) {
    world.files.put(name, vllm_result(1680));
    options.results.emplace_back(name);
  }
  const auto first = gate(job, options);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(world.processes.started.empty());
  ASSERT_TRUE(accept(job, {}));
  world.files.put("/a.json", vllm_result(1681));
  const auto same = gate(job, options);
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->code, ExitCode::pass) << world.terminal.out;
  for (const std::string& name : options.results) world.files.put(name, vllm_result(840));
  const auto slower = gate(job, options);
  ASSERT_TRUE(slower) << slower.error().message;
  EXPECT_EQ(slower->code, ExitCode::fail) << world.terminal.out;
  EXPECT_THAT(world.terminal.out, HasSubstr("output tok/s"));
  world.files.put("/b.json", "{}");
  const auto broken = gate(job, options);
  ASSERT_TRUE(broken) << broken.error().message;
  EXPECT_EQ(broken->code, ExitCode::unmeasured);
  EXPECT_THAT(world.terminal.out, HasSubstr("/b.json"));
  EXPECT_TRUE(world.processes.started.empty());
}

TEST(Gate, AllowsFailedRequestsByALimit) {
  const std::string yaml = R"(version: 1
engines: {vllm: {output: vllm-bench}}
backends: {h100: {device: cuda, gpu: NVIDIA H100}}
prompts: {chat: {}}
)";
  const auto report_under = [&](const std::string& limit, int failed, int completed) {
    FakeWorld world(yaml + limit);
    std::string text = vllm_result(1680);
    const auto replace = [&](const std::string& from, const std::string& to) {
      text.replace(text.find(from), from.size(), to);
    };
    replace("\"failed\": 0", fmt::format("\"failed\": {}", failed));
    replace("\"completed\": 100", fmt::format("\"completed\": {}", completed));
    world.files.put("/a.json", text);
    GateOptions options;
    options.results = {"/a.json"};
    const auto answer = gate(world.job(), options);
    EXPECT_TRUE(answer) << answer.error().message;
    const bool is_measured = answer && answer->code != ExitCode::unmeasured;
    return (is_measured ? "" : "not measured\n") + world.terminal.out;
  };
  const std::string share = "limits: [{metrics: failed_requests, max: 1%}]\n";
  const auto is_unmeasured = StartsWith("not measured");
  EXPECT_THAT(report_under("", 0, 100), Not(is_unmeasured));
  EXPECT_THAT(report_under("", 1, 99), AllOf(is_unmeasured, HasSubstr("1 of 100 requests failed")));
  EXPECT_THAT(report_under(share, 0, 100), AllOf(Not(is_unmeasured), HasSubstr("1 metric within")));
  EXPECT_THAT(report_under(share, 1, 99),
              AllOf(Not(is_unmeasured), HasSubstr("1 of 100 requests failed, as the limit allows"),
                    HasSubstr("1 metric within")));
  EXPECT_THAT(report_under(share, 2, 98),
              AllOf(is_unmeasured, HasSubstr("2 of 100 requests failed")));
}

TEST(Gate, TakesAllResultsOfAFolderAsRuns) {
  FakeWorld world("");
  (void)world.files.remove("/project/weir.yaml");
  for (const char* name : {"/runs/a.json", "/runs/second/of/b.json"}) {
    world.files.put(name, vllm_result(1680));
  }
  world.files.put("/runs/profile_export_aiperf_aggregate.json",
                  R"({"aggregation_type": "confidence", "num_profile_runs": 2})");
  world.files.put("/runs/notes.txt", "nothing of a tool");
  Job job = world.job();
  GateOptions options;
  options.results = {"/runs"};
  const auto answer = gate(job, options);
  ASSERT_TRUE(answer) << answer.error().message;
  const auto run = read_measured(job, "");
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->profiles.size(), 1U);
  EXPECT_EQ(run->profiles[0].metrics.at("output_tokens_per_second").samples.size(), 2U);
  world.files.put("/none/notes.txt", "nothing of a tool");
  options.results = {"/none"};
  const auto none = gate(job, options);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no result of a tool"));
}

// One run of other lengths, or of another load, is no run of the same cell.
TEST(Gate, RefusesResultsOfOtherWork) {
  FakeWorld world("");
  (void)world.files.remove("/project/weir.yaml");
  Job job = world.job();
  GateOptions options;
  options.results = {"/a.json"};
  world.files.put("/a.json", vllm_result(1680));
  ASSERT_TRUE(gate(job, options));
  ASSERT_TRUE(accept(job, {}));
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = vllm_result(1680);
    return text.replace(text.find(from), from.size(), to);
  };
  world.files.put("/a.json", with("2100", "8400"));  // four times the tokens
  const auto longer = gate(job, options);
  ASSERT_TRUE(longer) << longer.error().message;
  EXPECT_NE(longer->code, ExitCode::pass);
  EXPECT_THAT(world.terminal.out, HasSubstr("did not do the same work"));
  world.files.put("/a.json", vllm_result(1680));
  world.files.put("/b.json", with("\"inf\"", "4.0"));
  options.results = {"/a.json", "/b.json"};
  const auto mixed = gate(job, options);
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_EQ(mixed->code, ExitCode::unmeasured);
  EXPECT_THAT(world.terminal.out, HasSubstr("runs disagree about the load"));
}

TEST(Gate, TakesResultsForTheCellThatIsNamed) {
  FakeWorld world(R"(version: 1
engines: {vllm: {output: vllm-bench}}
backends: {h100: {device: cuda, gpu: NVIDIA H100}}
prompts: {chat: {concurrency: [1, 8]}}
)");
  world.files.put("/a.json", vllm_result(1680));
  Job job = world.job();
  GateOptions options;
  options.results = {"/a.json"};
  const auto both = gate(job, options);
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, HasSubstr("no run of the load of one of the 2 cells"));
  job.selection.cells = {"*@c8"};
  const auto selected = gate(job, options);
  ASSERT_TRUE(selected) << selected.error().message;
  const auto run = read_measured(job, "");
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->profiles.size(), 1U);
  EXPECT_EQ(run->profiles[0].cell.str(), "vllm/none/h100/chat@c8");
  EXPECT_THAT(run->profiles[0].provenance.machine_class, StartsWith("cuda-NVIDIA"));
  const auto unnamed = gate(job, {});
  ASSERT_FALSE(unnamed);
  EXPECT_THAT(unnamed.error().message, HasSubstr("--results"));
}

TEST(Gate, GivesEachCellTheRunsOfItsLoad) {
  FakeWorld world(R"(version: 1
engines: {vllm: {output: vllm-bench}, guide: {output: guidellm}}
backends: {h100: {device: cuda}}
prompts: {chat: {concurrency: [1, 4]}}
matrix: {exclude: [{engine: guide}]}
)");
  const auto run_at = [](int concurrency, double throughput) {
    std::string text = vllm_result(throughput);
    return text.insert(1, fmt::format("\"max_concurrency\": {}, ", concurrency));
  };
  world.files.put("/sweep.json", run_at(1, 500) + "\n" + run_at(4, 1680) + "\n");
  world.files.put("/c4.json", run_at(4, 1690));
  world.files.put("/three.json", run_at(1, 510) + "\n" + run_at(4, 1700) + run_at(8, 1800));
  Job job = world.job();
  GateOptions options;
  options.results = {"/sweep.json", "/c4.json", "/three.json"};
  const auto answer = gate(job, options);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_THAT(world.terminal.out, HasSubstr("/three.json: 1 of 3"));
  const auto run = read_measured(job, "");
  ASSERT_TRUE(run) << run.error().message;
  std::map<std::string, std::vector<double>> samples;
  for (const profile::Profile& profile : run->profiles) {
    samples[profile.cell.prompt_part()] = profile.metrics.at("output_tokens_per_second").samples;
  }
  EXPECT_EQ(samples, (std::map<std::string, std::vector<double>>{{"chat@c1", {500, 510}},
                                                                 {"chat@c4", {1680, 1690, 1700}}}));
  options.results = {"/c4.json"};
  const auto missing = gate(job, options);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("no file holds a run of vllm/none/h100/chat@c1"));
}

// A tool that failed altogether may leave the file of its run before.
TEST(Gate, WarnsOfAResultThatIsOlderThanTheJobOrTheNewestRunOrBaselineOfItsCell) {
  constexpr const char* k_yaml = R"(version: 1
engines: {vllm: {output: vllm-bench}}
backends: {h100: {device: cuda}}
prompts: {chat: {}}
)";
  FakeWorld world(k_yaml);
  world.files.put("/a.json", vllm_result(1680));
  GateOptions options;
  options.results = {"/a.json"};
  const auto warned = [&](const char* event) {
    world.terminal.out.clear();
    const auto answer = gate(world.job(), options);
    EXPECT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(world.terminal.out.find("was written before") != std::string::npos, *event != '\0')
        << world.terminal.out;
    return world.terminal.out.find(event) != std::string::npos;
  };
  const double now = world.clock.now();
  world.files.set_written_at("/a.json", now - 60);
  EXPECT_TRUE(warned("")) << "no run and no baseline is stored";
  EXPECT_TRUE(warned("/a.json was written before the newest run"));
  world.files.set_written_at("/a.json", now + 1e5);
  EXPECT_TRUE(warned(""));
  ASSERT_TRUE(accept(world.job(), {}));
  const std::string folder = "/project/baselines/vllm/none/h100/chat";
  const auto names = world.files.list(folder);
  ASSERT_TRUE(names);
  world.files.set_written_at(folder + "/" + names->front(), now + 2e5);
  EXPECT_TRUE(warned("before the baseline"));
  world.files.set_written_at(folder + "/" + names->front(), now);
  world.files.set_written_at("/project/weir.yaml", now + 3e5);
  EXPECT_TRUE(warned("")) << "an edited weir.yaml is no checkout";
  world.environment["CI"] = "true";
  EXPECT_TRUE(warned("before this job"));
}

TEST(Gate, TakesASweepWithoutAConfigurationAsCellsOfItsConcurrencies) {
  FakeWorld world("");
  (void)world.files.remove("/project/weir.yaml");
  std::string one = vllm_result(500), four = vllm_result(1680);
  world.files.put("/sweep.json", one.insert(1, "\"max_concurrency\": 1, ") + "\n" +
                                     four.insert(1, "\"max_concurrency\": 4, "));
  Job job = world.job();
  GateOptions options;
  options.results = {"/sweep.json"};
  const auto answer = gate(job, options);
  ASSERT_TRUE(answer) << answer.error().message;
  const auto run = read_measured(job, "");
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->profiles.size(), 2U);
  EXPECT_EQ(run->profiles[1].cell.str(), "vllm-bench/none/server/load@c4");
}

// The container answers what it sees; the engine in it prints what the fake always does.
TEST(Gate, TakesTheGpuOfAContainerIntoTheMachineClass) {
  FakeWorld world(R"(version: 1
engines:
  bench:
    command: [llama-bench, -m, "{model}", -p, "{prompt_tokens}", -n, "{tokens}", -r, "{repeats}"]
    output: llama-bench
    container: {runtime: docker, image: me/engine, args: [--gpus, all]}
models: {tiny: tiny.bin}
backends: {cuda: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 16}}
gate: {runs: 1, repeats: 2}
)");
  world.environment["PATH"] = "/usr/bin";
  world.files.put("/usr/bin/docker", "program");
  world.files.set_executable("/usr/bin/docker");
  bool hangs = false;
  run::FakeProcesses asking_processes{[&](const sys::ProcessSpec& spec) {
    sys::Finished finished;
    if (spec.argv.at(1) == "ps") finished.out = "abc123\n";  // by its label, for it has no id yet
    if (spec.argv.at(1) != "run") return finished;
    const auto at = std::ranges::find(spec.argv, "nvidia-smi");
    if (at == spec.argv.end()) return run::FakeProcesses::good(spec);
    EXPECT_EQ(*(at - 1), "--entrypoint");
    EXPECT_EQ(*(at + 1), "me/engine");
    EXPECT_EQ(spec.argv.at(2), "--rm");
    EXPECT_THAT(spec.argv.at(3), testing::StartsWith("--cidfile=/"));
    finished.out = "NVIDIA A100, 40960 MiB\nNVIDIA A100, 40960 MiB\n";
    if (hangs) finished.ended = sys::HowEnded::timed_out;
    return finished;
  }};
  sys::World inside{
      world.files, asking_processes, world.clock, world.locks,    world.http,
      world.pause, world.coin,       world.load,  world.terminal, world.world.environment};
  const Job job{inside, world.job().selection, world.job().output};
  const auto answer = gate(job, {});
  ASSERT_TRUE(answer) << answer.error().message;
  const auto run = read_measured(job, "");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_THAT(run->profiles.at(0).provenance.machine_class, HasSubstr("2x-NVIDIA-A100"));

  hangs = true;
  ASSERT_TRUE(gate(job, {}));
  EXPECT_TRUE(std::ranges::any_of(asking_processes.started, [](const sys::ProcessSpec& spec) {
    return spec.argv ==
           std::vector<std::string>{"/usr/bin/docker", "rm", "--force", "--volumes", "abc123"};
  })) << "what hangs is removed";
}

TEST(Gate, HoldsWhatIsAcceptedAgainstWhatComes) {
  FakeWorld world(k_timed_yaml);
  GateOptions options;
  auto first = gate(world.job(), options);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->code, ExitCode::pass) << "new is no failure";
  EXPECT_THAT(world.terminal.out, HasSubstr("new"));
  EXPECT_THAT(world.terminal.out, HasSubstr("weir baseline accept -c /project/weir.yaml"));
  EXPECT_THAT(world.terminal.out, HasSubstr("--baselines /project/baselines"));
  EXPECT_THAT(world.terminal.out, HasSubstr("--out /out"));

  const auto stored = accept(world.job(), {});
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_THAT(stored->text, HasSubstr("2 cells accepted, 0 left out"));
  const auto again = accept(world.job(), {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT(again->text, HasSubstr("same      bench/tiny/cpu/decode"));

  const auto list = list_baselines(world.job(), {});
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(Json::parse(list->json)["baselines"].size(), 2U);

  options.from = "";  // the newest run, judged again by what is stored now
  world.terminal.out.clear();
  const auto judged = gate(world.job(), options);
  ASSERT_TRUE(judged) << judged.error().message;
  EXPECT_THAT(world.terminal.out, HasSubstr("stored baselines in /project/baselines"));
}

TEST(Judge, NamesTheBaseThatJudged) {
  FakeWorld world(R"(version: 1
engines:
  mine:
    command: [./bench, "{model}", "{tokens}"]
    output: generic
    metrics: {syncs_per_token: {regex: "([0-9]+) syncs"}}
models: {tiny: tiny.bin}
backends: {cpu: {}}
prompts: {one: {tokens: 8}, two: {tokens: 16}}
)");
  run::FakeProcesses counting{[](const sys::ProcessSpec&) {
    sys::Finished finished;
    finished.out = "65 syncs\n";
    return finished;
  }};
  sys::World inside{world.files, counting,   world.clock, world.locks,    world.http,
                    world.pause, world.coin, world.load,  world.terminal, world.world.environment};
  Job job{inside, world.job().selection, world.job().output};
  job.selection.counts_only = true;
  const auto accepted = accept(job, {});
  ASSERT_TRUE(accepted) << accepted.error().message;
  const auto ran = run_matrix(job, {});
  ASSERT_TRUE(ran) << ran.error().message;
  auto measured = read_measured(job, "");
  ASSERT_TRUE(measured) << measured.error().message;
  ASSERT_EQ(measured->profiles.size(), 2U);
  const StoredBaselines stored(job.files(), job.selection.baselines);
  EXPECT_EQ(StoredBaselines(job.files(), "/project/none").words(),
            "no stored baselines: there is no folder /project/none");

  const std::string base = "the command ./old",
                    in_folder = "stored baselines in /project/baselines";
  struct Case {
    std::vector<bool> counted;  // which cells of the base
    std::string source;
    bool has_commit;
  };
  for (const Case& test_case :
       {Case{{true, true}, base, true}, Case{{false, false}, in_folder, false},
        Case{{true, false}, base + "; " + in_folder + " judge the counts of 1 of 2 cells", true}}) {
    BaseRuns& beside = measured->base_runs.emplace();
    beside.facts.words = base;
    beside.facts.commit = "1a2b3c4";
    for (std::size_t i = 0; i < 2; ++i) {
      const profile::Profile& profile = measured->profiles[i];
      baseline::BaselineChoice none;
      none.reason = "it crashed";
      beside.counts.push_back(test_case.counted[i] ? baseline::choose_run(profile, profile) : none);
      beside.pairs.emplace_back();
      beside.cells.emplace_back().cell = profile.cell;
    }
    const auto verdict =
        judge_against_base(*measured, stored, gate_policy(*measured, false), job.files());
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_EQ(verdict->verdict, verdict::Outcome::pass) << test_case.source;
    EXPECT_EQ(verdict->base_origin, test_case.source);
    EXPECT_EQ(verdict->base_commit.has_value(), test_case.has_commit) << test_case.source;
  }
}

TEST(Pairs, AreLeftToALaterCommitOnlyWhereThereAreCommits) {
  const run::PairsPlan plan{
      {{.cell = "e/m/cpu/decode", .pair_seconds = 2, .metrics = 1, .fewest = 8}}, 10, 16};
  BaseFacts facts;
  EXPECT_THAT(describe_pairs(plan, facts, config::Redactor()).at(1),
              EndsWith("not within this budget"));
  facts.candidate_commit = "1a2b3c4";
  EXPECT_THAT(describe_pairs(plan, facts, config::Redactor()).at(1),
              EndsWith("a later commit measures it"));
}

TEST(Pairs, AreAnnouncedWithTheCellsWhoseCountsFailedAlready) {
  run::PairsPlan plan{
      {{.cell = "e/m/cpu/decode", .pair_seconds = 2, .metrics = 1, .fewest = 8}}, 10, 16};
  plan.failed_cells = {"e/m/cpu/decode", "e/m/cpu/chat"};
  EXPECT_THAT(describe_pairs(plan, BaseFacts(), config::Redactor()).at(1),
              testing::StartsWith("  counts break a limit already: e/m/cpu/decode and 1 more"));
}

TEST(Gate, RefusesOptionsThatContradictEachOther) {
  FakeWorld world(k_timed_yaml);
  const auto message = [&](const GateOptions& options) {
    const auto answer = gate(world.job(), options);
    EXPECT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::usage);
    return answer ? "" : answer.error().message;
  };
  GateOptions from;
  from.from = "";
  from.against = "HEAD";
  EXPECT_THAT(message(from), HasSubstr("--against"));
  GateOptions two;
  two.against = "HEAD";
  two.trailing_arguments = {"./other"};
  EXPECT_THAT(message(two), HasSubstr("--against takes one base"));
  GateOptions none;
  none.against = "";
  EXPECT_THAT(message(none), HasSubstr("a REF, a DIR, or -- COMMAND"));
  GateOptions words;
  words.trailing_arguments = {"./other"};
  EXPECT_THAT(message(words), HasSubstr("words after"));
}

TEST(Prune, RemovesTheBaselinesOfCellsThatTheConfigurationNoLongerHas) {
  FakeWorld world(k_timed_yaml);
  ASSERT_TRUE(gate(world.job(), {}));
  ASSERT_TRUE(accept(world.job(), {}));
  std::string fewer = k_timed_yaml;
  fewer.erase(fewer.find("  other:"),
              std::string("  other: {prompt_tokens: 0, tokens: 8}\n").size());
  world.files.put("/project/weir.yaml", fewer);
  BaselinePruneOptions options;
  options.dry = true;
  auto pruned = prune_baselines(world.job(), options);
  ASSERT_TRUE(pruned) << pruned.error().message;
  EXPECT_THAT(pruned->text, HasSubstr("would remove /project/baselines/bench/tiny/cpu/other/"));
  options.dry = false;
  pruned = prune_baselines(world.job(), options);
  ASSERT_TRUE(pruned) << pruned.error().message;
  EXPECT_THAT(pruned->text, HasSubstr("1 of 2 baselines belong to no cell"));
  EXPECT_EQ(Json::parse(list_baselines(world.job(), {})->json)["baselines"].size(), 1U);
}

TEST(Accept, MeasuresNothingForACellThatTheRunCouldNotMeasure) {
  FakeWorld world(k_timed_yaml);
  Crashing crashing(world);
  Job& job = crashing.job;
  ASSERT_TRUE(run_matrix(job, {}));
  const auto stored = accept(world.job(), {});
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_THAT(stored->text, HasSubstr("0 cells accepted, 2 left out"));
  EXPECT_TRUE(world.processes.started.empty());
}

TEST(Accept, SuggestsTheMetricThatIsMeant) {
  FakeWorld world(k_timed_yaml);
  AcceptOptions options;
  options.metrics = {"dispatches_per_tokn"};
  const auto answer = accept(world.job(), options);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::usage);
  EXPECT_THAT(answer.error().message, HasSubstr("did you mean \"dispatches_per_token\"?"));
}

TEST(Rules, TakeABranchAndAPathFromItsTop) {
  const auto place = baselines_place("origin/perf:data/baselines/");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->ref, "origin/perf");
  EXPECT_EQ(place->path, "data/baselines");
  EXPECT_EQ(baselines_place("perf")->path, std::nullopt);
  for (const char* wrong : {"perf:../other", "perf:.git/x", "perf:a//b", ":path", "perf:./a"}) {
    EXPECT_FALSE(baselines_place(wrong)) << wrong;
  }
}

TEST(Rules, AreKeptInARunAsTheyWere) {
  AppliedRules used;
  used.from = verdict::RulesFrom{"origin/main", std::string(40, 'a')};
  used.config_text = "version: 1\n";
  used.baselines_words = "stored baselines of origin/main";
  used.baselines_commit = std::string(40, 'b');
  used.not_judged = {"one"};
  used.notes = {"two"};
  const auto back = read_fields<AppliedRules>(write_fields(used), "rules");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(write_fields(*back), write_fields(used));
  EXPECT_FALSE(read_fields<AppliedRules>(Json::object(), "rules"));
}

TEST(Verdict, IsFoundInARunOrTheCommandThatLeadsToOneIsNamed) {
  FakeWorld world(k_timed_yaml);
  const auto search_result = [&](const std::string& place) {
    const auto verdict_file = find_verdict(place, world.files);
    return verdict_file ? "found " + *verdict_file : verdict_file.error().message;
  };
  EXPECT_THAT(search_result("/out"), HasSubstr("no run here"));
  EXPECT_THAT(search_result("/out/none.json"), HasSubstr("there is no such file"));
  world.files.put("/out/1/run.jsonl", "");
  world.files.put("/out/2 b/run.jsonl", "");
  EXPECT_THAT(search_result("/out/2 b"), HasSubstr("weir gate --from '/out/2 b' judges it"));
  EXPECT_THAT(search_result("/out"), HasSubstr("weir gate --from '/out/2 b' judges the newest"))
      << "of the folder of runs itself no gate is made";
  world.files.put("/out/1/verdict.json", "{}");
  EXPECT_THAT(search_result("/out"), HasSubstr("/out/1 is the newest that was judged"));
  EXPECT_EQ(search_result("/out/1"), "found /out/1/verdict.json");
  EXPECT_EQ(search_result("/out/1/verdict.json"), "found /out/1/verdict.json");
}

TEST(Verdict, ExplainedOfAFolderOfRunsCanBeHadByTheCommandThatItsErrorNames) {
  FakeWorld world(k_timed_yaml);
  ASSERT_TRUE(run_matrix(world.job(), {}));
  const auto explained = explain_changes(world.job(), {.what = {"/out"}});
  ASSERT_FALSE(explained);
  EXPECT_EQ(explained.error().code, Code::usage);
  const auto run = newest_run(world.job());
  ASSERT_TRUE(run);
  EXPECT_THAT(explained.error().message, HasSubstr("weir gate --from " + *run + " judges"));
  GateOptions again;
  again.from = *run;
  const auto judged = gate(world.job(), again);
  ASSERT_TRUE(judged) << judged.error().message;
  const auto now = explain_changes(world.job(), {.what = {*run}});
  EXPECT_TRUE(now) << now.error().message;
}

TEST(Verdict, OfAFileNamesItWhereItIsNone) {
  FakeWorld world(k_timed_yaml);
  world.files.put("/out/verdict.json", "{}");
  const auto read = read_verdict("/out/verdict.json", world.files);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, StartsWith("/out/verdict.json: "));
}

}  // namespace gate_test
}  // namespace weir::flow
