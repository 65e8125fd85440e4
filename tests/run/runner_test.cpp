// Tests how the runner works through a plan, with stand-ins for engines.
#include "gate/run/runner.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "gate/base/find.hpp"
#include "gate/run/engine_call.hpp"
#include "gate/run/engine_run.hpp"
#include "gate/run/schedule.hpp"

#include "tests/run/scene.hpp"

namespace weir::run {
namespace runner_test {

using profile::Counts;
using profile::Ended;
using profile::Pass;
using profile::RunRecord;
using ::testing::StartsWith;

sys::RealFiles g_files;

// A runner with fake effects.
struct Stage {
  explicit Stage(std::unique_ptr<Scene> of, FakeProcesses::Engine engine = {})
      : scene(std::move(of)),
        processes(engine ? std::move(engine) : FakeProcesses::Engine(FakeProcesses::good)) {}

  Effects effects() {
    return {processes, scene->files, clock, locks, load, probing, progress, stop};
  }
  Result<std::vector<RunRecord>> run(const Plan& plan, std::int64_t cores = 4) {
    auto journal = scene->files.exists("/out/run.jsonl")
                       ? Journal::resume(scene->files, "/out", plan)
                       : Journal::create(scene->files, "/out", make_header(plan));
    if (!journal) return tl::unexpected(journal.error());
    return Runner(effects(), cores).run(plan, *journal);
  }
  std::vector<RunRecord> written() const {
    return read_run(scene->files, "/out").value_or(RunFile{}).records;
  }

  std::unique_ptr<Scene> scene;
  FakeProcesses processes;
  FakeClock clock;
  FakeLocks locks;
  FakeLoad load;
  FakeProbing probing;
  FakeProgress progress;
  sys::Stop stop;
};

bool is_counted(const sys::ProcessSpec& spec) {
  for (const auto& [name, value] : spec.env) {
    if (name == "WEIR_PROBE_DIR") return true;
  }
  return false;
}

std::string value_of(const sys::ProcessSpec& spec, const std::string& name) {
  for (const auto& [key, value] : spec.env) {
    if (key == name) return value;
  }
  return "(not set)";
}

TEST(Runner, RecordsEveryStepOfThePlan) {
  Stage stage(make_scene());
  const Plan plan = plan_scene(*stage.scene);
  const auto records = stage.run(plan);
  ASSERT_TRUE(records.has_value()) << records.error().message;
  ASSERT_EQ(records->size(), plan.steps.size());
  for (std::size_t i = 0; i < records->size(); ++i) {
    const RunRecord& record = (*records)[i];
    EXPECT_EQ(record.order, static_cast<std::int64_t>(i));
    EXPECT_EQ(record.error, std::nullopt) << *record.error;
    EXPECT_EQ(record.pass, plan.steps[i].pass);
    EXPECT_EQ(record.parameters, plan.steps[i].parameters);
    EXPECT_EQ(record.wall_seconds, 2);
    EXPECT_EQ(record.peak_rss_bytes, std::int64_t{50} << 20);
    EXPECT_EQ(record.machine.other_load, 0.5);
    ASSERT_TRUE(record.report.has_value());
    EXPECT_EQ(record.report->generated_tokens, record.parameters.tokens);
    EXPECT_EQ(record.probes.size(), record.pass == Pass::counted ? 1U : 0U);
    if (record.pass == Pass::timed) {
      EXPECT_EQ(record.machine.steal_share, 0.1);  // FakeLoad: 10 of 100
    }
  }
  EXPECT_EQ(stage.written().size(), plan.steps.size());
  EXPECT_TRUE(stage.progress.finished);
  EXPECT_FALSE(stage.scene->files.exists("/out/tmp")) << "places of processes are removed";
}

TEST(Runner, AProgramThatIsEditedWhileItRunsMeasuresNothingMore) {
  const std::pair<std::string, std::string> cases[] = {{"bench", "./bench was changed"},
                                                       {"tool.py", "tool.py was changed"},
                                                       {"cache.so", ""},
                                                       {"tiny.bin", ""}};
  for (const auto& [file, error] : cases) {
    SCOPED_TRACE(file);
    std::string yaml = k_scene_yaml;
    yaml.replace(yaml.find("./bench, "), 9, "./bench, tool.py, cache.so, ");
    auto scene = make_scene(yaml);
    scene->files.put("/project/tool.py", "script");
    scene->files.put("/project/cache.so",
                     "\x7f"
                     "ELF");
    sys::MemoryFiles& files = scene->files;
    int processes = 0;
    Stage stage(std::move(scene), [&](const sys::ProcessSpec& spec) {
      if (++processes == 2) files.put("/project/" + file, "edited");
      return FakeProcesses::good(spec);
    });
    const auto records = stage.run(plan_scene(*stage.scene), 1);
    ASSERT_TRUE(records) << records.error().message;
    EXPECT_EQ(records->at(0).error, std::nullopt);
    EXPECT_THAT(records->at(1).error.value_or(""), StartsWith(error));
    EXPECT_EQ(records->at(1).error.has_value(), !error.empty());
  }
}

TEST(Runner, GivesEachEngineItsCommandItsFolderAndItsEnvironment) {
  Stage stage(make_scene());
  ASSERT_TRUE(stage.run(plan_scene(*stage.scene), 1).has_value());
  const sys::ProcessSpec& counted = stage.processes.started.front();
  EXPECT_EQ(counted.argv, (std::vector<std::string>{"/project/bench", "-m", "/project/tiny.bin",
                                                    "-p", "0", "-n", "4", "-r", "1"}));
  EXPECT_EQ(counted.folder, "/project");
  EXPECT_EQ(counted.timeout_seconds, 5);
  EXPECT_EQ(value_of(counted, "PLAIN"), "value");
  EXPECT_EQ(value_of(counted, "WEIR_PROBE_DIR"), "/out/tmp/0000000-1/probes");
  EXPECT_EQ(value_of(counted, "VK_LAYER_PATH"), "/probe/layers:/config/layers");
  // A timed pass has no probe attached.
  for (const sys::ProcessSpec& spec : stage.processes.started) {
    if (is_counted(spec)) continue;
    EXPECT_NE(value_of(spec, "VK_LAYER_PATH"), "/probe/layers:/config/layers");
  }
}

TEST(Runner, CountsSideBySideAndTakesTimesAlone) {
  std::atomic<int> timed{0}, max_timed{0};
  std::mutex mutex;
  std::condition_variable came;
  int counted = 0;
  bool together = true;
  // Waits for a process that should not start meanwhile: a lone process stays alone however long it
  // takes.
  const auto linger = [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  const auto engine = [&](const sys::ProcessSpec& spec) {
    if (is_counted(spec) && together) {  // none ends before the third has begun
      std::unique_lock lock(mutex);
      ++counted;
      came.notify_all();
      came.wait_for(lock, std::chrono::minutes(2), [&] { return counted >= 3; });
      return FakeProcesses::good(spec);
    }
    if (!is_counted(spec)) max_timed = std::max(max_timed.load(), ++timed);
    linger();
    if (!is_counted(spec)) --timed;
    return FakeProcesses::good(spec);
  };
  Stage stage(make_scene(), engine);
  ASSERT_TRUE(stage.run(plan_scene(*stage.scene)).has_value());
  EXPECT_EQ(stage.processes.most, 3);  // three lengths of the one counted cell
  EXPECT_EQ(max_timed, 1);

  together = false;
  Stage alone(make_scene(), engine);
  alone.load.memory = std::nullopt;  // the machine does not report its memory
  ASSERT_TRUE(alone.run(plan_scene(*alone.scene)).has_value());
  EXPECT_EQ(alone.processes.most, 1);
}

TEST(Runner, LocksTheProcessorsOfTheWholeHostForTimes) {
  Stage stage(make_scene());
  const Plan plan = plan_scene(*stage.scene, {.runs = 1});
  ASSERT_TRUE(stage.run(plan, 1).has_value());
  using sys::Share;
  const std::vector<sys::LockWanted> counted = {{"cpu", Share::shared}, {"vulkan", Share::shared}};
  const std::vector<sys::LockWanted> cpu = {{"cpu", Share::exclusive}};
  const std::vector<sys::LockWanted> software = {{"cpu", Share::exclusive},
                                                 {"vulkan", Share::exclusive}};
  EXPECT_EQ(stage.locks.all, (std::vector{counted, counted, counted, cpu, software}));

  Stage hardware(make_scene());
  hardware.scene->around.devices["vulkan"].on_cpu = false;
  ASSERT_TRUE(hardware.run(plan_scene(*hardware.scene, {.runs = 1}), 1).has_value());
  EXPECT_EQ(hardware.locks.all.back(),
            (std::vector<sys::LockWanted>{{"cpu", Share::shared}, {"vulkan", Share::exclusive}}));
}

sys::Finished ended(sys::HowEnded how, int code = 0, int signal = 0) {
  sys::Finished finished;
  finished.ended = how;
  finished.exit_code = code;
  finished.signal = signal;
  finished.start_error = "no such program";
  finished.err = "\x1b[31mlast words\x1b[0m\n";
  return finished;
}

TEST(Runner, TriesOnceMoreWhatDidNotStartAndNothingElse) {
  using sys::HowEnded;
  struct Case {
    sys::Finished first;
    int starts;
    const char* error;  // expected in the step's last record
  };
  const Case cases[] = {
      {ended(HowEnded::not_started), 2, nullptr},
      {ended(HowEnded::exited, 1), 1, "exited with code 1"},
      {ended(HowEnded::signaled, 0, 11), 1, "crashed: SIGSEGV (Segmentation fault)"},
      {ended(HowEnded::signaled, 0, 9), 1,
       "was killed (SIGKILL): by the system when memory ran out, or by hand"},
      {ended(HowEnded::timed_out), 1,
       "did not end within 5 s and was stopped; if it was only slow, set a longer time for engine "
       "bench: \"timeout: 10s\""},
      {ended(HowEnded::output_limit), 1, "printed more than 16 MiB and was stopped (output_limit)"},
      {ended(HowEnded::exited), 1, "llama-bench printed nothing on standard output"},
  };
  for (const Case& c : cases) {
    std::atomic<int> starts{0};
    Stage stage(make_scene(), [&](const sys::ProcessSpec& spec) {
      return ++starts == 1 ? c.first : FakeProcesses::good(spec);
    });
    stage.scene->cells.resize(1);  // the CPU's: nothing is counted
    const auto records = stage.run(plan_scene(*stage.scene, {.runs = 1}));
    ASSERT_TRUE(records.has_value());
    EXPECT_EQ(starts, c.starts) << c.error;
    const RunRecord& last = records->back();
    EXPECT_EQ(last.attempt, c.starts);
    EXPECT_EQ(last.error, c.error == nullptr ? std::nullopt : std::optional<std::string>(c.error));
    EXPECT_EQ(last.stderr_tail, c.error == nullptr ? "" : "last words");
    // Both attempts are recorded.
    EXPECT_EQ(stage.written().size(), static_cast<std::size_t>(c.starts));
    if (c.starts == 2) {
      EXPECT_EQ(records->front().error, "could not be started: no such program");
      EXPECT_EQ(records->front().ended, Ended::not_started);
    }
  }
}

TEST(Runner, GivesUpACellThatFailsAndMeasuresTheOthers) {
  struct Case {
    sys::HowEnded how;
    std::size_t records;  // expected of the failing cell, of 3 wanted
    const char* warning;
  };
  const Case cases[] = {
      {sys::HowEnded::timed_out, 1,
       "no further timed process of this cell is started: this one timed out"},
      {sys::HowEnded::signaled, 2, "no further timed process of this cell is started: two failed"},
  };
  for (const Case& c : cases) {
    Stage stage(make_scene(), [&](const sys::ProcessSpec& spec) {
      return value_of(spec, "PLAIN") == "value" && !is_counted(spec) ? ended(c.how, 0, 11)
                                                                     : FakeProcesses::good(spec);
    });
    const auto records = stage.run(plan_scene(*stage.scene));
    ASSERT_TRUE(records.has_value());
    std::vector<RunRecord> failed, fine;
    for (const RunRecord& record : *records) (record.error ? failed : fine).push_back(record);
    ASSERT_EQ(failed.size(), c.records);
    EXPECT_EQ(fine.size(), 6U);  // 3 counted, and 3 times of the other cell
    EXPECT_EQ(failed.back().warnings, std::vector<std::string>{c.warning});
    EXPECT_EQ(failed.back().cell, "bench/tiny/vulkan/decode");
    EXPECT_EQ(stage.progress.lines.size(), c.records);
  }
}

TEST(Runner, TakesAnExitCodeThatTheEngineDeclaresForSuccess) {
  for (const bool declared : {false, true}) {
    Stage stage(make_scene(), [](const sys::ProcessSpec& spec) {
      sys::Finished finished = FakeProcesses::good(spec);
      finished.exit_code = 255;
      return finished;
    });
    for (config::EngineSettings& engine : stage.scene->settings->engines) {
      if (declared) engine.ok_exit_codes = {1, 255};
    }
    const auto records = stage.run(plan_scene(*stage.scene));
    ASSERT_TRUE(records.has_value());
    for (const RunRecord& record : *records) {
      EXPECT_EQ(record.error.has_value(), !declared);
      EXPECT_EQ(record.exit_code, 255);
    }
  }
}

TEST(Runner, GoesOnWhereARunWasInterrupted) {
  std::atomic<int> starts{0};
  Stage* watched = nullptr;
  const auto engine = [&](const sys::ProcessSpec& spec) {
    if (++starts == 5) watched->stop.request();
    sys::Finished finished = FakeProcesses::good(spec);
    if (starts == 5) finished.ended = sys::HowEnded::interrupted;
    return finished;
  };
  Stage first(make_scene(), engine);
  watched = &first;
  const Plan plan = plan_scene(*first.scene);
  const auto interrupted = first.run(plan, 1);
  ASSERT_FALSE(interrupted.has_value());
  EXPECT_EQ(interrupted.error().code, Code::interrupted);
  EXPECT_EQ(interrupted.error().message,
            "interrupted after 4 of 9 engine runs; what was measured is in /out");
  EXPECT_EQ(first.written().size(), 4U);
  EXPECT_TRUE(first.progress.finished);

  Stage second(std::move(first.scene));
  const auto records = second.run(plan, 1);
  ASSERT_TRUE(records.has_value());
  EXPECT_EQ(records->size(), 9U);
  EXPECT_EQ(second.processes.started.size(), 5U) << "what was done is not done again";
}

TEST(Runner, GivesUpAgainWhatWasGivenUpBeforeTheInterruption) {
  const auto hangs = [](const sys::ProcessSpec&) { return ended(sys::HowEnded::timed_out); };
  Stage first(make_scene(), hangs);
  const Plan plan = plan_scene(*first.scene);
  ASSERT_TRUE(first.run(plan, 1).has_value());
  EXPECT_EQ(first.processes.started.size(), 3U);  // one counted, one timed of each cell
  Stage second(std::move(first.scene), hangs);
  ASSERT_TRUE(second.run(plan, 1).has_value());
  EXPECT_EQ(second.processes.started.size(), 0U);
}

TEST(Runner, StopsWhenTheJournalCanNotBeWritten) {
  Stage stage(make_scene());
  const Plan plan = plan_scene(*stage.scene);
  auto journal = Journal::create(stage.scene->files, "/out", make_header(plan));
  ASSERT_TRUE(journal.has_value());
  stage.scene->files.refuse_writes("/out/run.jsonl");
  const auto records = Runner(stage.effects(), 1).run(plan, *journal);
  ASSERT_FALSE(records.has_value());
  EXPECT_EQ(records.error().code, Code::io);
  EXPECT_EQ(stage.processes.started.size(), 1U);
}

TEST(Runner, TellsWhenTheProbesCanNotBeAttached) {
  Stage stage(make_scene());
  stage.probing.refuse = true;
  const auto records = stage.run(plan_scene(*stage.scene, {.times = false}), 1);
  ASSERT_TRUE(records.has_value());
  EXPECT_EQ(records->back().error, "the probes could not be attached: no probe here");
  EXPECT_TRUE(stage.processes.started.empty());
}

TEST(Runner, SaysWhatAnEngineHasNoKernelFor) {
  sys::Finished refused = ended(sys::HowEnded::exited, 2);
  refused.err =
      "engine: vulkan: matrix-vector product of BF16 not implemented \xE2\x80\x94 use "
      "--backend cpu or convert to Q8_0\n";
  Stage stage(make_scene(), [&](const sys::ProcessSpec&) { return refused; });
  stage.scene->cells.resize(1);
  const auto records = stage.run(plan_scene(*stage.scene, {.runs = 1}));
  ASSERT_TRUE(records.has_value());
  EXPECT_EQ(records->back().error,
            "missing kernel: engine: vulkan: matrix-vector product of BF16 not implemented "
            "\xE2\x80\x94 use --backend cpu or convert to Q8_0 (exited with code 2)");
}

// Uses real processes, files and locks. One engine works, the others fail in every way: each gets
// its error, and the good one its result.
TEST(Runner, MeasuresTheGoodCellWhateverTheOthersDo) {
  char pattern[] = "/tmp/weir-runner-XXXXXX";
  const std::string folder = mkdtemp(pattern);
  struct Case {
    const char* mode;
    Ended ended;
    const char* error;  // beginning of the error
  };
  const Case cases[] = {
      {"ok", Ended::exited, nullptr},
      {"noisy", Ended::exited, nullptr},
      {"exit3", Ended::exited, "exited with code 3"},
      {"crash", Ended::signaled, "crashed: SIGSEGV"},
      {"hang", Ended::timed_out, "did not end within 2 s"},
      {"ignore_term", Ended::timed_out, "did not end within 2 s"},
      {"silent", Ended::exited, "llama-bench printed nothing"},
      {"garbage", Ended::exited, "no llama-bench result in the output"},
      {"truncated_json", Ended::exited, ""},
      {"nan", Ended::exited, ""},
      {"flood", Ended::output_limit, "printed more than 16 MiB"},
      {"flood_stderr", Ended::output_limit, "printed more than 16 MiB"},
      {"fork_escape_pipe", Ended::exited, nullptr},
  };
  std::string yaml = "version: 1\nengines:\n";
  for (const Case& c : cases) {
    // An engine that ends by itself gets the time for it.
    yaml += fmt::format(
        "  {0}: {{command: [\"{1}\", {0}, -p, \"{{prompt_tokens}}\", -n, \"{{tokens}}\", -r, "
        "\"{{repeats}}\"], output: llama-bench, timeout: {2}}}\n",
        c.mode, WEIR_BINARY_DIR "/tests/fake_engines/fake_engine",
        c.ended == Ended::timed_out ? "2s" : "10m");
  }
  yaml +=
      "models: {tiny: tiny.bin}\nbackends: {cpu: {}}\n"
      "prompts: {decode: {prompt_tokens: 0, tokens: 8}}\n";
  const auto scene = make_scene(yaml);
  sys::RealFiles files;
  ASSERT_TRUE(files.write_atomic(folder + "/tiny.bin", "weights").has_value());
  scene->around.config_folder = folder;
  auto prepared = preflight(scene->cells, scene->around, files);
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
  const Plan plan = make_plan(std::move(*prepared), *scene->settings, {.runs = 1});

  sys::RealProcesses processes;
  const sys::RealClock clock;
  sys::RealPause pause;
  sys::HostLocks locks(folder + "/locks", pause);
  const sys::RealMachineLoad load;
  FakeProbing probing;
  FakeProgress progress;
  const sys::Stop stop;
  auto journal = Journal::create(files, folder, make_header(plan));
  ASSERT_TRUE(journal.has_value());
  const auto records = Runner({processes, files, clock, locks, load, probing, progress, stop}, 2)
                           .run(plan, *journal);
  ASSERT_TRUE(records.has_value()) << records.error().message;
  ASSERT_EQ(records->size(), std::size(cases));
  for (std::size_t i = 0; i < records->size(); ++i) {
    const RunRecord& record = (*records)[i];
    const Case& c = cases[i];
    EXPECT_EQ(record.ended, c.ended) << c.mode;
    if (c.error == nullptr) {
      EXPECT_EQ(record.error, std::nullopt) << c.mode << ": " << record.error.value_or("");
      EXPECT_TRUE(record.report.has_value()) << c.mode;
      continue;
    }
    ASSERT_TRUE(record.error.has_value()) << c.mode;
    EXPECT_TRUE(record.error->starts_with(c.error)) << c.mode << ": " << *record.error;
    EXPECT_NE(record.stderr_tail, "") << c.mode;
    EXPECT_LT(record.stderr_tail.size(), 12'000U) << c.mode;
  }
  ASSERT_TRUE(files.remove_tree(folder).has_value());
}

TEST(LastLines, AreFewShortAndClean) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += fmt::format("line {}\n", i);
  const std::string last = last_lines(text + "\n\n");
  EXPECT_TRUE(last.starts_with("line 80\n")) << last;
  EXPECT_TRUE(last.ends_with("line 99")) << last;
  // A long backtrace does not hide the message that weir printed before it.
  EXPECT_THAT(last_lines("weir: no code for this GPU\n" + text),
              testing::EndsWith("\nweir: no code for this GPU"));
  EXPECT_EQ(last_lines("weir: it waits. The kernel: _Z12rms_norm_f32ILi256ELb1EEvPKfPf\n"),
            "weir: it waits. The kernel: rms_norm_f32<256, true>");
  EXPECT_EQ(last_lines(std::string(600, 'x')), std::string(500, 'x') + "…");
  EXPECT_EQ(last_lines("a\x1b[31m\r\x07 b\n"), "a b");
  EXPECT_EQ(last_lines(std::string(1 << 20, '\n')), "");
}

TEST(Admission, LetsInWhatFitsIntoMemoryAndOnTheDevice) {
  PreparedCell software, hardware;
  software.cell.key.engine = "a";
  software.cell.device = "cpu";
  software.model_bytes = std::uint64_t{1} << 30;
  hardware.cell.key.engine = "b";
  hardware.cell.device = "cuda";
  hardware.on_cpu = false;
  constexpr std::int64_t k_gib = std::int64_t{1} << 30;
  Admission admission(3);
  EXPECT_EQ(admission.estimate(software), k_gib + k_gib / 2 + k_gib / 4);  // 1.75 GiB
  EXPECT_TRUE(admission.admits(software, 0)) << "alone, anything may try";
  admission.started(software);
  EXPECT_FALSE(admission.admits(software, 4 * k_gib)) << "3.5 GiB in 80 % of 4";
  EXPECT_TRUE(admission.admits(software, 5 * k_gib)) << "3.5 GiB in 80 % of 5";
  EXPECT_FALSE(admission.admits(software, std::nullopt)) << "memory is not known";
  EXPECT_TRUE(admission.admits(hardware, 5 * k_gib));
  admission.started(hardware);
  EXPECT_FALSE(admission.admits(hardware, 100 * k_gib)) << "one at a time on a device";
  admission.started(software);
  EXPECT_FALSE(admission.admits(software, 100 * k_gib)) << "three cores";
  admission.ended(software, k_gib / 2);
  EXPECT_EQ(admission.estimate(software), k_gib / 2 + k_gib / 10) << "1.2 x what was seen";
  admission.ended(software, std::nullopt);
  admission.ended(hardware, std::nullopt);
  EXPECT_TRUE(admission.admits(hardware, 0)) << "empty again";
}

TEST(Admission, LetsInOneServerAtAPortThatIsAlwaysTheSame) {
  constexpr std::int64_t k_plenty = std::int64_t{64} << 30;
  config::EngineSettings fixed, picked, elsewhere;
  for (config::EngineSettings* engine : {&fixed, &picked, &elsewhere}) {
    engine->command = {"serve"};
    engine->server.emplace();
  }
  fixed.server->url = "http://127.0.0.1:8080";
  elsewhere.server->url = "http://127.0.0.1:8081";
  const auto make_cell = [](const config::EngineSettings& engine) {
    PreparedCell cell;
    cell.cell.engine = &engine;
    cell.cell.device = "cpu";
    return cell;
  };
  Admission admission(8);
  admission.started(make_cell(fixed));
  EXPECT_FALSE(admission.admits(make_cell(fixed), k_plenty));
  EXPECT_TRUE(admission.admits(make_cell(elsewhere), k_plenty));
  EXPECT_TRUE(admission.admits(make_cell(picked), k_plenty));
  admission.started(make_cell(picked));
  EXPECT_TRUE(admission.admits(make_cell(picked), k_plenty)) << "weir picks a port for each";
  admission.ended(make_cell(fixed), std::nullopt);
  EXPECT_TRUE(admission.admits(make_cell(fixed), k_plenty));
}

TEST(Admission, LetsNothingRunBesideRequestsThatShareBatches) {
  constexpr std::int64_t k_plenty = std::int64_t{64} << 30;
  PreparedCell cell, shared;
  shared.facts.sweep = profile::Sweep::overlapping;
  EXPECT_FALSE(counts_alone(cell));
  EXPECT_TRUE(counts_alone(shared));
  config::EngineSettings once;
  once.exclusive = true;
  PreparedCell exclusive;
  exclusive.cell.engine = &once;
  EXPECT_TRUE(counts_alone(exclusive));
  Admission admission(8);
  admission.started(cell);
  EXPECT_FALSE(admission.admits(shared, k_plenty, true));
  admission.ended(cell, std::nullopt);
  EXPECT_TRUE(admission.admits(shared, k_plenty, true));
  admission.started(shared, true);
  EXPECT_FALSE(admission.admits(cell, k_plenty));
  admission.ended(shared, std::nullopt);
  EXPECT_TRUE(admission.admits(cell, k_plenty));
}

TEST(Tally, TellsTheTimeLeftFromWhatTheOthersTook) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);  // 3 counted of one cell, 3 rounds of 2 cells
  Tally tally(plan, 3);
  EXPECT_EQ(tally.seconds_left(), std::nullopt);
  RunRecord record;
  record.wall_seconds = 6;
  tally.note(plan.steps[0], record);
  // Two counted processes of 6 s in 3 lanes, and 6 timed ones of 6 s. Their time is unknown: we
  // assume the same.
  EXPECT_DOUBLE_EQ(tally.seconds_left().value_or(0), 2 * 6 / 3.0 + 6 * 6);
  record.wall_seconds = 1;
  tally.note(plan.steps[3], record);  // known now for this cell: 2 more of 1 s
  // Three processes of the other cell take (6 + 1) / 2 each.
  EXPECT_DOUBLE_EQ(tally.seconds_left().value_or(0), 4 + 2 * 1 + 3 * 3.5);
  record.ended = Ended::timed_out;
  record.error = "x";
  tally.note(plan.steps[4], record);  // the other is given up
  EXPECT_TRUE(tally.given_up(plan.steps[6]));
  EXPECT_FALSE(tally.given_up(plan.steps[1])) << "its counted pass goes on";
  EXPECT_DOUBLE_EQ(tally.seconds_left().value_or(0), 4 + 2 * 1);
  EXPECT_EQ(tally.done(Pass::timed), 1 + 3);
  EXPECT_EQ(tally.total(Pass::timed), 6);
}

std::unique_ptr<Scene> scene_with_instructions(const std::string& how) {
  std::string yaml = k_scene_yaml;
  const auto replace = [&](const std::string& from, const std::string& to) {
    yaml.replace(yaml.find(from), from.size(), to);
  };
  replace("probes: [vulkan]", "probes: [vulkan, instructions]\n    instructions: " + how +
                                  "\n    threads: 3\n    counted_env: {COUNTED: \"1\"}");
  replace("-r, \"{repeats}\"", "-r, \"{repeats}\", -t, \"{threads}\"");
  auto scene = make_scene(yaml);
  scene->files.put("/usr/bin/valgrind", "program");
  scene->files.set_executable("/usr/bin/valgrind");
  return scene;
}

bool under_valgrind(const sys::ProcessSpec& spec) { return spec.argv[0] == "/usr/bin/valgrind"; }

// Fake of Valgrind: prints the engine's output and writes a file into the given folder.
FakeProcesses::Engine valgrind(sys::MemoryFiles& files, bool writes = true) {
  return [&files, writes](const sys::ProcessSpec& spec) {
    if (under_valgrind(spec) && writes) {
      for (const std::string& argument : spec.argv) {
        const std::string option = "--callgrind-out-file=";
        if (!argument.starts_with(option)) continue;
        std::string path = argument.substr(option.size());
        path.replace(path.find("%p"), 2, "17");
        files.put(path.substr(0, path.rfind('/')) + "/valgrind.17", "");
        files.put(path, "positions: line\nevents: Ir\nfn=dot\n0 500\ntotals: 500\n");
      }
    }
    return FakeProcesses::good(spec);
  };
}

TEST(Runner, CountsInstructionsUnderValgrindWithOneThreadAndNothingAttached) {
  auto scene = scene_with_instructions("valgrind");
  sys::MemoryFiles& files = scene->files;
  Stage stage(std::move(scene), valgrind(files));
  const Plan plan = plan_scene(*stage.scene, {.times = false});
  const auto records = stage.run(plan, 1);
  ASSERT_TRUE(records) << records.error().message;
  for (const RunRecord& record : *records) {
    EXPECT_EQ(record.error, std::nullopt) << *record.error;
    ASSERT_EQ(record.probes.size(), 1U);
    const bool is_valgrind = record.counts == Counts::instructions;
    EXPECT_EQ(is_valgrind, record.cell == "bench/tiny/cpu/decode");
    if (!is_valgrind) continue;
    EXPECT_EQ(record.probes[0].probe, "valgrind");
    EXPECT_EQ(record.probes[0].counts.at("instructions"), 500);
    EXPECT_EQ(record.probes[0].functions.at("dot"), 500);
  }
  std::size_t valgrind_runs = 0;
  for (const sys::ProcessSpec& spec : stage.processes.started) {
    const auto has = [&](const std::string& word) {
      return std::find(spec.argv.begin(), spec.argv.end(), word) != spec.argv.end();
    };
    if (!under_valgrind(spec)) continue;
    ++valgrind_runs;
    EXPECT_TRUE(has("/project/bench"));
    EXPECT_EQ(spec.argv.back(), "1") << "threads: 3 are for the other processes";
    EXPECT_FALSE(is_counted(spec));
    EXPECT_EQ(value_of(spec, "COUNTED"), "(not set)");
    EXPECT_FALSE(spec.count);
    EXPECT_EQ(spec.timeout_seconds, 250) << "fifty times that of the engine";
  }
  EXPECT_EQ(valgrind_runs, 3U);
  EXPECT_EQ(stage.written(), *records);
}

TEST(Runner, CountsInstructionsByPerfEventsAroundTheEngineItself) {
  Stage stage(scene_with_instructions("perf"), [](const sys::ProcessSpec& spec) {
    sys::Finished finished = FakeProcesses::good(spec);
    if (spec.count) finished.counted = sys::PerfCount{700, 10, 10};
    return finished;
  });
  const auto records = stage.run(plan_scene(*stage.scene, {.times = false}));
  ASSERT_TRUE(records) << records.error().message;
  for (const RunRecord& record : *records) {
    if (record.counts != Counts::instructions) continue;
    EXPECT_EQ(record.error, std::nullopt) << *record.error;
    EXPECT_EQ(record.probes.at(0).probe, "perf");
    EXPECT_EQ(record.probes.at(0).counts.at("instructions"), 700);
  }
  for (const sys::ProcessSpec& spec : stage.processes.started) {
    EXPECT_EQ(spec.count.has_value(), !is_counted(spec));
    if (spec.count) {
      EXPECT_EQ(*spec.count, sys::instructions_event());
    }
  }
}

TEST(Runner, WatchesABaseWhoseTimesAreNotJudged) {
  std::optional<std::vector<std::string>> opened;
  Stage stage(make_scene(), [&](const sys::ProcessSpec& spec) {
    sys::Finished finished = FakeProcesses::good(spec);
    if (spec.watched) finished.opened = opened;
    return finished;
  });
  Plan plan = plan_scene(*stage.scene);
  const auto watched_record = [&](Step step) {
    step.parameters = plan.steps.front().parameters;
    auto record = run_engine(stage.effects(), "/out", plan.cells[0], step, 1);
    return record.value().value();
  };
  const Step counted{.pass = Pass::counted}, warm_up{.pair = 0}, judged{.pair = 1},
      instructions{.pass = Pass::counted, .counts = Counts::instructions};
  (void)watched_record(counted);
  EXPECT_FALSE(stage.processes.started.back().watched) << "the candidate";

  plan.cells[0].watched = sys::WatchedFolder{"/tree", {"/tree/weir-out"}};
  for (const Step& step : {counted, warm_up}) {
    opened = {"/tree/data", "/tree/bin/x.py"};
    stage.scene->files.put("/tree/data", "text");
    EXPECT_THAT(watched_record(step).error.value_or(""),
                testing::HasSubstr("where the candidate's is: bin/x.py; "));
    const auto& watched = stage.processes.started.back().watched;
    ASSERT_TRUE(watched);
    EXPECT_EQ(watched->except.front(), "/tree/weir-out");
    EXPECT_THAT(watched->except, testing::Contains("/probe"));

    opened = {"/tree/data"};
    EXPECT_EQ(watched_record(step).error, std::nullopt);
    stage.scene->files.put("/tree/data", "#!/bin/sh");
    EXPECT_THAT(watched_record(step).error.value_or(""), testing::HasSubstr("is: data; "));

    opened.reset();
    const RunRecord unknown = watched_record(step);
    EXPECT_EQ(unknown.error, std::nullopt);
    EXPECT_THAT(unknown.warnings, testing::ElementsAre(std::string(k_not_watched)));
  }
  for (const Step& step : {judged, instructions}) {
    (void)watched_record(step);
    EXPECT_FALSE(stage.processes.started.back().watched);
  }
}

// On a device twin there are no times that would show work that is in no count.
TEST(Runner, TakesNoCountsOnATwinIfAProcessUsedItOutOfTheProbesSight) {
  std::string library;
  Stage stage(make_scene(), [&](const sys::ProcessSpec& spec) {
    sys::Finished finished = FakeProcesses::good(spec);
    if (!spec.needed_with_gpu.empty()) finished.gpu_library = library;
    return finished;
  });
  Plan plan = plan_scene(*stage.scene);
  PreparedCell cell = plan.cells.at(1);  // on Vulkan
  Step step{.pass = Pass::counted};
  step.parameters = plan.steps.front().parameters;
  const auto record = [&] { return run_engine(stage.effects(), "/out", cell, step, 1); };
  const auto needed = [&] { return stage.processes.started.back().needed_with_gpu; };
  library = "libvulkan.so.1";
  EXPECT_EQ(record().value().value().error, std::nullopt) << "its times would show it";
  EXPECT_THAT(needed(), testing::IsEmpty());

  cell.twin.emplace().driver = "/twins/weir_twin.json";
  EXPECT_THAT(record().value().value().error.value_or(""),
              testing::HasSubstr("opened libvulkan.so.1 without the variables of the probes"));
  EXPECT_THAT(needed(),
              testing::Contains(testing::Pair("VK_LAYER_PATH", "/probe/layers:/config/layers")));
  EXPECT_THAT(needed(), testing::Contains(testing::Pair("WEIR_PROBE_DIR", testing::_)));
  library.clear();
  EXPECT_EQ(record().value().value().error, std::nullopt);
}

TEST(Runner, TakesNoCallsOfPythonIfAProcessRanItOutOfTheProbesSight) {
  Stage stage(make_scene(), [&](const sys::ProcessSpec& spec) {
    sys::Finished finished = FakeProcesses::good(spec);
    finished.has_unprobed_python = !spec.needed_with_python.empty();
    return finished;
  });
  Plan plan = plan_scene(*stage.scene);
  const PreparedCell cell = plan.cells.at(1);
  Step step{.pass = Pass::counted};
  step.parameters = plan.steps.front().parameters;
  const auto error = [&] {
    return run_engine(stage.effects(), "/out", cell, step, 1).value().value().error.value_or("");
  };
  EXPECT_EQ(error(), "");
  step.counts = profile::Counts::python;
  EXPECT_THAT(error(), testing::HasSubstr("ran Python without the variables of the probes"));
  EXPECT_THAT(stage.processes.started.back().needed_with_python,
              testing::Contains(testing::Pair("WEIR_PROBE_DIR", testing::_)));
}

// A child could count and have its record removed, or turn the probe's layer off.
TEST(Runner, TakesNoCountsIfARecordIsGoneOrAProcessUsedATwinPastTheLayer) {
  auto folder = sys::ScratchFolder::make_temporary(g_files, "weir-counts-");
  ASSERT_TRUE(folder);
  std::function<void(const std::filesystem::path&)> act;
  Stage stage(make_scene(), [&](const sys::ProcessSpec& spec) {
    const auto* probes = find_first(
        spec.env, [](const auto& variable) { return variable.first == "WEIR_PROBE_DIR"; });
    if (probes != nullptr) act(probes->second);
    return FakeProcesses::good(spec);
  });
  Effects with_files{stage.processes, g_files,       stage.clock,    stage.locks,
                     stage.load,      stage.probing, stage.progress, stage.stop};
  Plan plan = plan_scene(*stage.scene);
  PreparedCell cell = plan.cells.at(1);  // on Vulkan
  Step step{.pass = Pass::counted};
  step.parameters = plan.steps.front().parameters;
  const auto error = [&] {
    return run_engine(with_files, folder->path(), cell, step, 1).value().value().error.value_or("");
  };
  const auto put = [](const std::filesystem::path& path) { std::ofstream(path) << "counts"; };
  act = [&](const auto& probes) { put(probes / "vulkan-1-a.weirprobe"); };
  EXPECT_EQ(error(), "");
  act = [&](const auto& probes) {
    put(probes / "trace.tmp");
    std::filesystem::rename(probes / "trace.tmp", probes / "trace.json");
  };
  EXPECT_EQ(error(), "") << "the engine's own files are its own";
#ifdef __linux__
  const std::function<void(const std::filesystem::path&)> attacks[] = {
      [&](const auto& probes) {
        put(probes / "vulkan-2-b.weirprobe");
        std::filesystem::remove(probes / "vulkan-2-b.weirprobe");
      },
      [&](const auto& probes) {
        put(probes / "vulkan-2-b.weirprobe");
        std::filesystem::rename(probes / "vulkan-2-b.weirprobe", probes / "b");
      },
      [&](const auto& probes) {
        put(probes / "vulkan-2-b.weirprobe");
        put(probes / "small");
        std::filesystem::rename(probes / "small", probes / "vulkan-2-b.weirprobe");
      },
      [&](const auto& probes) {
        const auto root = probes.parent_path();
        std::filesystem::rename(root, root.string() + "-away");
        std::filesystem::create_directories(probes);
        put(probes / "vulkan-2-b.weirprobe");
        std::filesystem::remove_all(root);
        std::filesystem::rename(root.string() + "-away", root);
      }};
  for (const auto& attack : attacks) {
    act = attack;
    EXPECT_THAT(error(), testing::HasSubstr("a process of it left no record"));
  }
#endif
  act = [&](const auto& probes) { put(probes / "uncounted-3-c.weirprobe"); };
  EXPECT_EQ(error(), "") << "no twin";
  cell.twin.emplace().driver = "/twins/weir_twin.json";
  EXPECT_THAT(error(), testing::HasSubstr("used the device twin past the probe"));
  cell.probes = {"ggml"};
  EXPECT_EQ(error(), "") << "no layer was asked for";
}

// One side could drop the model from the system's cache, and the other would wait for the disk.
TEST(Runner, ReadsTheModelIntoTheCacheBeforeEachProcessOfAPair) {
  Stage stage(make_scene());
  const Plan plan = plan_scene(*stage.scene);
  std::vector<std::string> read;
  Effects effects = stage.effects();
  effects.read_into_cache = [&](const std::string& path) {
    EXPECT_EQ(stage.processes.started.size(), 0U) << "after the process began";
    read.push_back(path);
  };
  const auto record_of = [&](Step step) {
    read.clear();
    stage.processes.started.clear();
    step.parameters = plan.steps.front().parameters;
    return run_engine(effects, "/out", plan.cells[0], step, 1).value().value();
  };
  EXPECT_THAT(record_of({.pass = Pass::counted}).warnings, testing::IsEmpty());
  EXPECT_THAT(read, testing::IsEmpty());
  for (const Step& step : {Step{.side = profile::Side::base, .pair = 0},
                           Step{.side = profile::Side::candidate, .pair = 3}}) {
    EXPECT_THAT(record_of(step).warnings, testing::IsEmpty());
    EXPECT_THAT(read, testing::ElementsAre("/project/tiny.bin", "/project/bench"));
  }
  stage.load.memory = 6;  // the model has 7 bytes
  EXPECT_THAT(record_of({.pair = 1}).warnings, testing::ElementsAre(std::string(k_not_cached)));
  EXPECT_THAT(read, testing::ElementsAre("/project/bench"));
}

TEST(Runner, ReadsFilesThatTheCommandNamesIntoTheCacheBeforeEachProcessOfAPair) {
  auto scene = make_scene();
  config::Cell& cell = scene->cells[0];
  sys::MemoryFiles& files = scene->files;
  for (const char* name : {"a.bin", "data/b.txt", "data/deep/c.txt", "data/.git/config", "d1.csv",
                           "d2.csv", "e.json", "sets/f.bin", "lib/g.txt", "h.yaml", "other.bin"})
    files.put(std::string("/project/") + name, "input");
  files.put("/project/libbench.so.2", "library");
  files.put("/elsewhere/w.bin", "input");
  cell.command.insert(cell.command.end(),
                      {"--table=a.bin", "data", "d?.csv", "[e].json", "/elsewhere/w.bin",
                       "none.bin", "cd sets && cat f.bin; x <$H", ".", ".."});
  cell.env["H"] = "h.yaml";
  cell.env["LD_LIBRARY_PATH"] = "lib";
  Stage stage(std::move(scene));
  const Plan plan = plan_scene(*stage.scene);
  std::set<std::string> read;
  Effects effects = stage.effects();
  effects.read_into_cache = [&](const std::string& path) {
    EXPECT_TRUE(read.insert(path).second) << path << " is read twice";
  };
  const auto warnings = [&] {
    read.clear();
    Step step{.pair = 1};
    step.parameters = plan.steps.front().parameters;
    return run_engine(effects, "/out", plan.cells[0], step, 1).value().value().warnings;
  };
  EXPECT_THAT(warnings(), testing::IsEmpty());
  EXPECT_THAT(read, testing::ElementsAre(
                        "/elsewhere/w.bin", "/project/a.bin", "/project/bench", "/project/d1.csv",
                        "/project/d2.csv", "/project/data/b.txt", "/project/data/deep/c.txt",
                        "/project/e.json", "/project/h.yaml", "/project/libbench.so.2",
                        "/project/sets/f.bin", "/project/tiny.bin"));
  stage.load.memory = 7 + 7 + 5;  // the model, the library and one of the others
  EXPECT_THAT(warnings(), testing::ElementsAre(std::string(k_inputs_not_cached)));
  EXPECT_THAT(
      read, testing::ElementsAre("/project/bench", "/project/libbench.so.2", "/project/tiny.bin"));
}

TEST(Runner, GivesUpInstructionsAloneWhereTheyCanNotBeCounted) {
  auto scene = scene_with_instructions("valgrind");
  sys::MemoryFiles& files = scene->files;
  Stage stage(std::move(scene), valgrind(files, false));
  const auto records = stage.run(plan_scene(*stage.scene, {.runs = 1}), 1);
  ASSERT_TRUE(records) << records.error().message;
  std::size_t failed = 0, fine = 0;
  for (const RunRecord& record : *records) {
    EXPECT_EQ(record.error.has_value(), record.counts == Counts::instructions);
    if (record.error) {
      ++failed;
      EXPECT_EQ(*record.error, "instructions could not be counted: valgrind wrote nothing");
    } else {
      ++fine;
    }
  }
  EXPECT_EQ(failed, 2U) << "after two the third is left out";
  EXPECT_EQ(fine, 5U) << "three counted, two timed";
}

}  // namespace runner_test
}  // namespace weir::run
